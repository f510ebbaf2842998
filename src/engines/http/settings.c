/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an http engine keeps of its options: copies of all texts, and the headers that every
 * request has, as lines for libcurl that are made once. The token is another matter (token.c),
 * since it changes.
 */
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "engines/http/http.h"

static bool
copy_texts(struct lw_http *http)
{
    struct lw_http_options *options = &http->options;
    const char **texts[] = { &options->url, &options->trust_file, &options->certificate_file,
                             &options->key_file, &options->proxy };
    bool has_all = true;
    _Static_assert(sizeof texts / sizeof texts[0] <= sizeof http->texts / sizeof http->texts[0],
                   "a place for each");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        http->texts[i] = lw_copy_text(*texts[i]);
        has_all = has_all && (http->texts[i] || !*texts[i]);
        *texts[i] = http->texts[i];
    }
    return has_all;
}

static void
append_line(struct lw_http *http, const char *name, const char *value)
{
    bool is_empty = !*value;
    lw_text_append(&http->fixed_text, name);
    lw_text_append(&http->fixed_text, is_empty ? ";" : ": ");
    lw_text_append(&http->fixed_text, value);
    lw_text_append_char(&http->fixed_text, '\0');
}

static bool
has_header(const struct lw_http_options *options, const char *name)
{
    for (size_t i = 0; i < options->header_count; i++) {
        if (strcasecmp(options->headers[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* A fixed content-type is for messages that have none of their own. */
static bool
is_content_type(const struct lw_property *header)
{
    return strcasecmp(header->name, "content-type") == 0;
}

static const char *
find_content_type(const struct lw_http_options *options)
{
    const char *found = "application/octet-stream";
    for (size_t i = 0; i < options->header_count; i++) {
        found = is_content_type(&options->headers[i]) ? options->headers[i].value : found;
    }
    return found;
}

static bool
write_lines(struct lw_http *http, const struct lw_http_options *options)
{
    size_t count = 1;
    if (!has_header(options, "user-agent")) {
        append_line(http, "user-agent", "laneway/" LW_VERSION_STRING);
        count++;
    }
    lw_text_append(&http->fixed_text, "expect:"); /* no question before large bodies */
    lw_text_append_char(&http->fixed_text, '\0');
    for (size_t i = 0; i < options->header_count; i++) {
        if (!is_content_type(&options->headers[i])) {
            append_line(http, options->headers[i].name, options->headers[i].value);
            count++;
        }
    }
    http->fixed_lines = lw_alloc_array(count, sizeof *http->fixed_lines);
    if (!http->fixed_lines || http->fixed_text.is_failed) {
        return false;
    }
    char *at = http->fixed_text.data;
    for (size_t i = 0; i < count; i++) {
        http->fixed_lines[i].data = at;
        http->fixed_lines[i].next = i + 1 < count ? &http->fixed_lines[i + 1] : NULL;
        at += strlen(at) + 1;
    }
    http->fixed.lines = http->fixed_lines;
    return true;
}

bool
lw_http_settings_copy(struct lw_http *http, const struct lw_http_engine_options *options)
{
    http->options = *options->http;
    http->options.headers = NULL;
    http->options.header_count = 0;
    http->options.token = NULL;
    http->connections = options->connections;
    http->timeout_ms = options->timeout_ms;
    http->read = options->read;
    http->write = options->write;
    lw_text_init(&http->fixed_text);
    http->name = lw_copy_text(options->name);
    http->pipeline = lw_copy_text(options->pipeline);
    http->content_type = lw_copy_text(find_content_type(options->http));
    bool has_all = copy_texts(http) && http->name && http->content_type &&
                   (http->pipeline || !options->pipeline) && write_lines(http, options->http);
    http->fixed.content_type = lw_bytes_of(http->content_type);
    return has_all;
}

void
lw_http_settings_free(struct lw_http *http)
{
    for (size_t i = 0; i < sizeof http->texts / sizeof http->texts[0]; i++) {
        lw_free(http->texts[i]);
    }
    lw_text_deinit(&http->fixed_text);
    lw_free(http->fixed_lines);
    lw_free(http->content_type);
    lw_free(http->pipeline);
    lw_free(http->name);
}
