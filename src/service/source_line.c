/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Source lines for messages. What a line shows is decided from its text alone, because it must
 * also be right for files that could not be parsed: whatever follows a key that sounds secret is
 * blotted out up to the end of that value.
 */
#include "service/source_line.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"

enum { SHOWN_BYTES_MAX = 400, KEY_BYTES_MAX = 128 };

bool
lw_name_is_secret(const char *name, size_t length)
{
    static const char *const words[] = { "password",   "passwd",      "secret",        "token",
                                         "credential", "key.pem",     "private",       "jaas",
                                         "keytab",     "auth_params", "authorization", "cookie",
                                         "api-key",    "api_key",     "apikey" };
    char lower[KEY_BYTES_MAX];
    size_t size = length < KEY_BYTES_MAX - 1 ? length : KEY_BYTES_MAX - 1;
    for (size_t i = 0; i < size; i++) {
        lower[i] = (char)tolower((unsigned char)name[i]);
    }
    lower[size] = '\0';
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strstr(lower, words[i])) {
            return strstr(lower, "token.endpoint") == NULL;
        }
    }
    return false;
}

/* A piece of a line, in bytes. */
struct span {
    size_t begin;
    size_t end;
};

static bool
find_line(const struct lw_document *document, uint32_t number, const char **ret_line,
          size_t *ret_size)
{
    const char *at = document->text;
    const char *end = at + document->size;
    for (uint32_t line = 1; at < end && line < number; line++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        at = next ? next + 1 : end;
    }
    if (at >= end) {
        return false;
    }
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    size_t size = (size_t)((stop ? stop : end) - at);
    *ret_line = at;
    *ret_size = size > 0 && at[size - 1] == '\r' ? size - 1 : size;
    return true;
}

static bool
is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

/* The end of a value that begins at `at`: its closing quote, or what ends a plain value. */
static size_t
find_value_end(const char *line, size_t size, size_t at)
{
    char quote = at < size && (line[at] == '"' || line[at] == '\'') ? line[at] : '\0';
    for (size_t i = at + (quote ? 1 : 0); i < size; i++) {
        if (quote && line[i] == '\\') {
            i++;
        } else if (quote && line[i] == quote) {
            return i + 1;
        }
    }
    if (quote) {
        return size;
    }
    size_t end = at;
    while (end < size && line[end] != ',' && line[end] != '}') {
        end++;
    }
    while (end > at && line[end - 1] == ' ') {
        end--;
    }
    return end;
}

/* Finds the next value behind a secret-looking key, from `from` on. */
static bool
find_secret(const char *line, size_t size, size_t from, struct span *ret_span)
{
    for (size_t i = from; i < size; i++) {
        if (line[i] != ':' && line[i] != '=') {
            continue;
        }
        size_t end = i;
        while (end > from &&
               (line[end - 1] == '"' || line[end - 1] == '\'' || line[end - 1] == ' ')) {
            end--;
        }
        size_t begin = end;
        while (begin > from && is_name_char(line[begin - 1])) {
            begin--;
        }
        size_t value = i + 1;
        while (value < size && line[value] == ' ') {
            value++;
        }
        if (lw_name_is_secret(line + begin, end - begin) && value < size) {
            ret_span->begin = value;
            ret_span->end = find_value_end(line, size, value);
            return ret_span->end > ret_span->begin;
        }
    }
    return false;
}

static size_t
byte_of_column(const char *line, size_t size, uint32_t column)
{
    size_t at = 0;
    for (uint32_t i = 1; i < column && at < size; i++) {
        at++;
        while (at < size && ((unsigned char)line[at] & 0xC0) == 0x80) {
            at++;
        }
    }
    return at;
}

static uint32_t
count_characters(const char *text, size_t size)
{
    uint32_t count = 0;
    for (size_t i = 0; i < size; i++) {
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    }
    return count;
}

/* Appends bytes so that a terminal does nothing but show them. */
static void
append_shown(struct lw_text *out, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)bytes[i];
        lw_text_append_char(out, c == '\t' ? ' ' : c < 0x20 || c == 0x7F ? '?' : (char)c);
    }
}

static void
blot_out(struct lw_text *out, const char *line, size_t size, struct span *caret)
{
    struct span caret_in = *caret;
    struct span secret;
    size_t at = 0;
    while (find_secret(line, size, at, &secret)) {
        append_shown(out, line + at, secret.begin - at);
        size_t begin = out->size;
        lw_text_append(out, "***");
        if (caret_in.begin >= secret.end) {
            size_t shift = secret.end - secret.begin;
            caret->begin = caret->begin + 3 - shift;
            caret->end = caret->end + 3 - shift;
        } else if (caret_in.end > secret.begin) {
            caret->begin = caret_in.begin > secret.begin ? begin : caret->begin;
            caret->end = out->size;
        }
        at = secret.end;
    }
    append_shown(out, line + at, size - at);
}

bool
lw_source_line_show(const struct lw_place *place, struct lw_shown_line *ret_shown)
{
    const char *line = NULL;
    size_t size = 0;
    if (!find_line(place->document, place->line, &line, &size) || size > SHOWN_BYTES_MAX ||
        !lw_text_is_utf8(line, size)) {
        return false;
    }
    struct span caret = { .begin = byte_of_column(line, size, place->column) };
    caret.end = byte_of_column(line, size, place->column + place->length);
    struct lw_text out;
    lw_text_init(&out);
    blot_out(&out, line, size, &caret);
    if (out.is_failed || out.size == 0) {
        lw_text_deinit(&out);
        return false;
    }
    caret.begin = caret.begin > out.size ? out.size : caret.begin;
    caret.end = caret.end > out.size ? out.size : caret.end;
    uint32_t length = caret.end > caret.begin
                          ? count_characters(out.data + caret.begin, caret.end - caret.begin)
                          : 0;
    ret_shown->caret_column = count_characters(out.data, caret.begin);
    ret_shown->caret_length = length > 0 ? length : 1;
    ret_shown->text = lw_text_take(&out);
    return ret_shown->text != NULL;
}
