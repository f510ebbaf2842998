/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue for a terminal, as JSON, and as a page. Lines for a terminal are wrapped at 78
 * columns; the page escapes what Markdown would take for markup. The rows themselves are in
 * catalogue.c.
 */
#include <string.h>

#include "service/catalogue.h"

enum { WIDTH = 78 };

static const struct area {
    const char *prefix;
    const char *title;
} areas[] = {
    { "E01", "Syntax, keys and units" },
    { "E02", "References" },
    { "E03", "Rules" },
    { "E04", "Client properties" },
    { "E05", "Brokers" },
    { "E06", "Handlers" },
    { "E07", "Running" },
    { "E08", "Controlling" },
    { "W", "Warnings and notes" },
};

static void
append_wrapped(struct lw_text *out, const char *text)
{
    size_t column = 0;
    while (*text) {
        size_t length = strcspn(text, " ");
        if (column > 0 && column + 1 + length > WIDTH) {
            lw_text_append_char(out, '\n');
            column = 0;
        }
        if (column > 0) {
            lw_text_append_char(out, ' ');
            column++;
        }
        lw_text_append_bytes(out, text, length);
        column += length;
        text += length + strspn(text + length, " ");
    }
    lw_text_append_char(out, '\n');
}

void
lw_catalogue_list(struct lw_text *out)
{
    size_t count = 0;
    const struct lw_catalogue_entry *entries = lw_catalogue_entries(&count);
    for (size_t i = 0; i < count; i++) {
        lw_text_format(out, "%s  %s\n", entries[i].code, entries[i].title);
    }
}

void
lw_catalogue_print(const struct lw_catalogue_entry *entry, struct lw_text *out)
{
    lw_text_format(out, "%s: %s\n\n", entry->code, entry->title);
    append_wrapped(out, entry->explanation);
    lw_text_append(out, "\nWhat to do: ");
    struct lw_text remedy;
    lw_text_init(&remedy);
    append_wrapped(&remedy, entry->remedy);
    lw_text_append(out, remedy.data ? remedy.data : "");
    out->is_failed |= remedy.is_failed;
    lw_text_deinit(&remedy);
}

void
lw_catalogue_json(struct lw_json *json)
{
    size_t count = 0;
    const struct lw_catalogue_entry *entries = lw_catalogue_entries(&count);
    lw_json_array(json);
    for (size_t i = 0; i < count; i++) {
        lw_json_object(json);
        lw_json_key(json, "code");
        lw_json_string(json, entries[i].code);
        lw_json_key(json, "title");
        lw_json_string(json, entries[i].title);
        lw_json_key(json, "explanation");
        lw_json_string(json, entries[i].explanation);
        lw_json_key(json, "remedy");
        lw_json_string(json, entries[i].remedy);
        lw_json_object_end(json);
    }
    lw_json_array_end(json);
}

/* Placeholders in angle brackets or asterisks would be taken for markup. */
static void
append_escaped(struct lw_text *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("*_<|", *text)) {
            lw_text_append_char(out, '\\');
        }
        lw_text_append_char(out, *text);
    }
}

static void
append_section(struct lw_text *out, const struct lw_catalogue_entry *entry)
{
    lw_text_format(out, "\n### %s: ", entry->code);
    append_escaped(out, entry->title);
    lw_text_append(out, "\n\n");
    append_escaped(out, entry->explanation);
    lw_text_append(out, "\n\n*");
    append_escaped(out, entry->remedy);
    lw_text_append(out, "*\n");
}

static void
append_area(struct lw_text *out, const struct area *area)
{
    size_t count = 0;
    const struct lw_catalogue_entry *entries = lw_catalogue_entries(&count);
    lw_text_format(out, "\n## %s\n", area->title);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(entries[i].code, area->prefix, strlen(area->prefix)) == 0) {
            append_section(out, &entries[i]);
        }
    }
}

void
lw_catalogue_reference(struct lw_text *out)
{
    lw_text_append(out,
                   "# Error codes\n\nMade by `laneway config-reference errors`; do not edit. "
                   "`laneway errors CODE` prints the same, offline.\n");
    for (size_t i = 0; i < sizeof(areas) / sizeof(areas[0]); i++) {
        append_area(out, &areas[i]);
    }
}
