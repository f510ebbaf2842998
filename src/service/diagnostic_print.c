/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a diagnostic looks, on a terminal and as JSON. The order is fixed: position that editors
 * can jump to, severity and code, the sentence; source lines, the caret under the position's
 * own; help. Colour adds escapes and changes no character of the text.
 */
#include <string.h>

#include "service/diagnostic.h"

static const char *const severity_names[] = {
    [LW_SEVERITY_ERROR] = "error",
    [LW_SEVERITY_WARNING] = "warning",
    [LW_SEVERITY_NOTE] = "note",
};

static const char *const severity_colours[] = {
    [LW_SEVERITY_ERROR] = "\x1b[1;31m",
    [LW_SEVERITY_WARNING] = "\x1b[1;33m",
    [LW_SEVERITY_NOTE] = "\x1b[1;36m",
};

static void
print_position(const struct lw_diagnostic *item, struct lw_text *out)
{
    if (item->name && item->name[0] != '\0') {
        lw_text_append(out, item->name);
        if (item->line > 0) {
            lw_text_format(out, ":%u:%u", item->line, item->column);
        }
        lw_text_append(out, ": ");
    }
}

static void
print_caret(const struct lw_diagnostic *item, const char *colour, const char *reset,
            struct lw_text *out)
{
    lw_text_append(out, "      | ");
    for (uint32_t i = 0; i < item->caret_column; i++) {
        lw_text_append_char(out, ' ');
    }
    lw_text_append(out, colour);
    for (uint32_t i = 0; i < item->caret_length; i++) {
        lw_text_append_char(out, '^');
    }
    lw_text_append(out, reset);
    lw_text_append_char(out, '\n');
}

/* The shown line that follows the number `after`; NULL when there is none. */
static const struct lw_source_line *
next_line(const struct lw_diagnostic *item, uint32_t after)
{
    const struct lw_source_line *next = NULL;
    for (size_t i = 0; i < item->line_count; i++) {
        const struct lw_source_line *line = &item->lines[i];
        if (line->number > after && (!next || line->number < next->number)) {
            next = line;
        }
    }
    return next;
}

/* Lines in order of their numbers; the first of the list is the one with the caret. */
static void
print_lines(const struct lw_diagnostic *item, const char *colour, const char *reset,
            struct lw_text *out)
{
    const struct lw_source_line *line = NULL;
    for (uint32_t after = 0; (line = next_line(item, after)) != NULL; after = line->number) {
        lw_text_format(out, "%5u | %s\n", line->number, line->text);
        if (line == &item->lines[0]) {
            print_caret(item, colour, reset, out);
        }
    }
}

void
lw_diagnostic_print(const struct lw_diagnostic *item, bool is_coloured, struct lw_text *out)
{
    const char *colour = is_coloured ? severity_colours[item->severity] : "";
    const char *reset = is_coloured ? "\x1b[0m" : "";
    print_position(item, out);
    lw_text_format(out, "%s%s[%s]%s: %s\n", colour, severity_names[item->severity], item->code,
                   reset, item->message ? item->message : "");
    print_lines(item, colour, reset, out);
    const char *indent = "help: ";
    for (const char *at = item->help; at && *at;) {
        size_t length = strcspn(at, "\n");
        lw_text_append(out, indent);
        lw_text_append_bytes(out, at, length);
        lw_text_append_char(out, '\n');
        at += length + (at[length] == '\n' ? 1 : 0);
        indent = "      ";
    }
}

static void
print_counts(const struct lw_diagnostics *list, struct lw_text *out)
{
    const char *separator = "";
    for (size_t i = 0; i < 3; i++) {
        if (list->counts[i] > 0) {
            lw_text_format(out, "%s%zu %s%s", separator, list->counts[i], severity_names[i],
                           list->counts[i] == 1 ? "" : "s");
            separator = ", ";
        }
    }
    if (list->dropped > 0) {
        lw_text_format(out, " (%zu not shown)", list->dropped);
    }
    lw_text_append_char(out, '\n');
}

void
lw_diagnostics_print(const struct lw_diagnostics *list, bool is_coloured, struct lw_text *out)
{
    for (size_t i = 0; i < list->count; i++) {
        lw_diagnostic_print(&list->items[i], is_coloured, out);
    }
    if (list->is_out_of_memory) {
        lw_text_append(out, "error: not enough memory to read the configuration\n");
    } else if (list->count > 0) {
        print_counts(list, out);
    }
}

static void
json_item(const struct lw_diagnostic *item, struct lw_json *json)
{
    lw_json_object(json);
    lw_json_key(json, "severity");
    lw_json_string(json, severity_names[item->severity]);
    lw_json_key(json, "code");
    lw_json_string(json, item->code);
    lw_json_key(json, "file");
    lw_json_string(json, item->name && item->name[0] != '\0' ? item->name : NULL);
    if (item->line > 0) {
        lw_json_key(json, "line");
        lw_json_int(json, item->line);
        lw_json_key(json, "column");
        lw_json_int(json, item->column);
    }
    lw_json_key(json, "message");
    lw_json_string(json, item->message);
    lw_json_key(json, "help");
    lw_json_string(json, item->help);
    lw_json_object_end(json);
}

void
lw_diagnostics_json(const struct lw_diagnostics *list, struct lw_json *json)
{
    lw_json_array(json);
    for (size_t i = 0; i < list->count; i++) {
        json_item(&list->items[i], json);
    }
    lw_json_array_end(json);
}
