/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of diagnostics: adding, help, order. How they look is in diagnostic_print.c, how a
 * source line is made fit to be shown in source_line.c. Without memory a diagnostic is counted
 * and lost, never half filled.
 */
#include "service/diagnostic.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "service/source_line.h"

void
lw_diagnostics_init(struct lw_diagnostics *list)
{
    memset(list, 0, sizeof(*list));
}

static void
clear_item(struct lw_diagnostic *item)
{
    lw_free(item->name);
    lw_free(item->message);
    lw_free(item->help);
    for (size_t i = 0; i < item->line_count; i++) {
        lw_free(item->lines[i].text);
    }
    memset(item, 0, sizeof(*item));
}

void
lw_diagnostics_deinit(struct lw_diagnostics *list)
{
    for (size_t i = 0; i < list->count; i++) {
        clear_item(&list->items[i]);
    }
    clear_item(&list->spare);
    lw_free(list->items);
    lw_diagnostics_init(list);
}

bool
lw_diagnostics_has_error(const struct lw_diagnostics *list)
{
    return list->counts[LW_SEVERITY_ERROR] > 0 || list->is_out_of_memory;
}

/* Returns room for one more, or the spare when the list is full or memory has run out. */
static struct lw_diagnostic *
take_room(struct lw_diagnostics *list)
{
    if (list->count < LW_DIAGNOSTICS_MAX && list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 8 : list->capacity * 2;
        void *items = lw_resize_array(list->items, capacity, sizeof(list->items[0]));
        list->is_out_of_memory |= items == NULL;
        list->items = items ? items : list->items;
        list->capacity = items ? capacity : list->capacity;
    }
    if (list->count == list->capacity || list->count == LW_DIAGNOSTICS_MAX) {
        list->dropped++;
        clear_item(&list->spare);
        return &list->spare;
    }
    struct lw_diagnostic *item = &list->items[list->count++];
    memset(item, 0, sizeof(*item));
    return item;
}

/* Whatever a name or value brought along: a message is valid UTF-8. */
static void
make_utf8(char *data, size_t size)
{
    for (size_t at = 0; at < size;) {
        size_t step = lw_text_utf8_size(data + at, size - at);
        if (step == 0) {
            data[at] = '?';
            step = 1;
        }
        at += step;
    }
}

static char *
format_text(const char *format, va_list arguments)
{
    struct lw_text text;
    lw_text_init(&text);
    lw_text_format_v(&text, format, arguments);
    make_utf8(text.data, text.is_failed ? 0 : text.size);
    return lw_text_take(&text);
}

/* A pattern that is wrong for each topic of a family is told once. */
static bool
is_known(const struct lw_diagnostics *list, const struct lw_diagnostic *item)
{
    for (size_t i = 0; i + 1 < list->count; i++) {
        const struct lw_diagnostic *other = &list->items[i];
        if (other->line == item->line && other->column == item->column &&
            strcmp(other->code, item->code) == 0 && other->message && other->name &&
            strcmp(other->message, item->message) == 0 &&
            strcmp(other->name, item->name) == 0) {
            return true;
        }
    }
    return false;
}

/* Takes the item that was added last back; the spare takes what still comes for it. */
static struct lw_diagnostic *
forget_last(struct lw_diagnostics *list)
{
    struct lw_diagnostic *item = &list->items[--list->count];
    list->counts[item->severity]--;
    clear_item(item);
    clear_item(&list->spare);
    return &list->spare;
}

struct lw_diagnostic *
lw_diagnostics_add(struct lw_diagnostics *list, enum lw_severity severity, const char *code,
                   const struct lw_place *place, const char *format, ...)
{
    struct lw_diagnostic *item = take_room(list);
    list->counts[severity]++;
    item->severity = severity;
    lw_text_copy(item->code, sizeof(item->code), code);
    if (item == &list->spare) {
        return item;
    }
    va_list arguments;
    va_start(arguments, format);
    item->message = format_text(format, arguments);
    va_end(arguments);
    item->name = lw_copy_text(place && place->name ? place->name : "");
    list->is_out_of_memory |= !item->message || !item->name;
    if (place && place->line > 0) {
        item->line = place->line;
        item->column = place->column;
        lw_diagnostic_show(item, place);
    }
    bool is_whole = item->message && item->name;
    return is_whole && is_known(list, item) ? forget_last(list) : item;
}

void
lw_diagnostic_help(struct lw_diagnostic *diagnostic, const char *format, ...)
{
    va_list arguments;
    lw_free(diagnostic->help);
    va_start(arguments, format);
    diagnostic->help = format_text(format, arguments);
    va_end(arguments);
}

void
lw_diagnostic_show(struct lw_diagnostic *diagnostic, const struct lw_place *place)
{
    bool is_first = diagnostic->line_count == 0;
    if (!place->document || place->line == 0 || diagnostic->line_count == LW_SOURCE_LINES_MAX) {
        return;
    }
    for (size_t i = 0; i < diagnostic->line_count; i++) {
        if (diagnostic->lines[i].number == place->line) {
            return;
        }
    }
    struct lw_shown_line shown;
    if (lw_source_line_show(place, &shown)) {
        struct lw_source_line *line = &diagnostic->lines[diagnostic->line_count++];
        line->number = place->line;
        line->text = shown.text;
        diagnostic->caret_column = is_first ? shown.caret_column : diagnostic->caret_column;
        diagnostic->caret_length = is_first ? shown.caret_length : diagnostic->caret_length;
    }
}

static int
compare(const void *a, const void *b)
{
    const struct lw_diagnostic *left = a;
    const struct lw_diagnostic *right = b;
    int order = strcmp(left->name ? left->name : "", right->name ? right->name : "");
    if (order != 0) {
        return order;
    }
    if (left->line != right->line) {
        return left->line < right->line ? -1 : 1;
    }
    if (left->column != right->column) {
        return left->column < right->column ? -1 : 1;
    }
    return strcmp(left->code, right->code);
}

void
lw_diagnostics_sort(struct lw_diagnostics *list)
{
    if (list->count > 1) {
        qsort(list->items, list->count, sizeof(list->items[0]), compare);
    }
}

enum lw_status
lw_diagnostics_error(const struct lw_diagnostics *list, struct lw_error *ret_error)
{
    if (list->is_out_of_memory) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "",
                            "not enough memory to read the configuration");
    }
    const struct lw_diagnostic *item = list->items;
    const struct lw_diagnostic *end = item + list->count;
    while (item < end && item->severity != LW_SEVERITY_ERROR) {
        item++;
    }
    if (item == end) {
        return LW_STATUS_OK;
    }
    lw_error_set(ret_error, LW_STATUS_CONFIG, item->code, "%s", item->message);
    lw_error_help(ret_error, "%s", item->help ? item->help : "");
    lw_error_at(ret_error, item->name, (int)item->line, (int)item->column);
    return LW_STATUS_CONFIG;
}
