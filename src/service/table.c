/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables and the short forms of numbers that stand in them: two passes over the cells, one that
 * measures and one that prints. Pure but for memory.
 */
#include "service/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { COLUMNS_MAX = 24 };

void
lw_table_init(struct lw_table *table, const char *alignment)
{
    table->alignment = alignment;
    table->columns = strlen(alignment);
    table->count = 0;
    lw_text_init(&table->cells);
}

void
lw_table_deinit(struct lw_table *table)
{
    lw_text_deinit(&table->cells);
}

static void
make_printable(char *cell)
{
    for (; *cell; cell++) {
        unsigned char c = (unsigned char)*cell;
        if (c < 0x20 || c == 0x7f) {
            *cell = '?';
        }
    }
}

void
lw_table_add(struct lw_table *table, const char *format, ...)
{
    size_t start = table->cells.size;
    va_list arguments;
    va_start(arguments, format);
    lw_text_format_v(&table->cells, format, arguments);
    va_end(arguments);
    if (!table->cells.is_failed) {
        if (table->cells.data) {
            make_printable(table->cells.data + start);
        }
        lw_text_append_bytes(&table->cells, "", 1);
        table->count++;
    }
}

void
lw_table_add_count(struct lw_table *table, unsigned long long count)
{
    char text[16];
    lw_table_number(count, text);
    lw_table_add(table, "%s", count ? text : "--");
}

/* Characters, not bytes: continuation bytes of UTF-8 are not counted. */
static size_t
width_of(const char *cell)
{
    size_t width = 0;
    for (; *cell; cell++) {
        width += ((unsigned char)*cell & 0xc0) != 0x80;
    }
    return width;
}

static void
measure(const struct lw_table *table, size_t widths[COLUMNS_MAX])
{
    const char *cell = table->cells.data;
    memset(widths, 0, COLUMNS_MAX * sizeof *widths);
    for (size_t i = 0; i < table->count; i++, cell += strlen(cell) + 1) {
        size_t width = width_of(cell);
        size_t column = i % table->columns;
        if (column < COLUMNS_MAX && width > widths[column]) {
            widths[column] = width;
        }
    }
}

static void
pad(struct lw_text *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        lw_text_append_char(out, ' ');
    }
}

void
lw_table_print(const struct lw_table *table, const char *indent, struct lw_text *out)
{
    size_t widths[COLUMNS_MAX];
    const char *cell = table->cells.data;
    measure(table, widths);
    for (size_t i = 0; i < table->count; i++, cell += strlen(cell) + 1) {
        size_t column = i % table->columns;
        size_t space = widths[column < COLUMNS_MAX ? column : 0] - width_of(cell);
        bool is_right = table->alignment[column] == 'r';
        bool is_last = column + 1 == table->columns || i + 1 == table->count;
        lw_text_append(out, column == 0 ? indent : "  ");
        pad(out, is_right ? space : 0);
        lw_text_append(out, cell);
        pad(out, is_right || is_last ? 0 : space);
        if (is_last) {
            lw_text_append_char(out, '\n');
        }
    }
}

void
lw_table_ordinal(unsigned number, char out[16])
{
    static const char *const endings[] = { "th", "st", "nd", "rd" };
    bool is_teen = number % 100 >= 11 && number % 100 <= 13;
    const char *ending = number % 10 <= 3 && !is_teen ? endings[number % 10] : "th";
    (void)snprintf(out, 16, "%u%s", number, ending);
}

void
lw_table_duration(long long ms, char out[32])
{
    long long s = ms / 1000;
    if (ms < 0) {
        (void)snprintf(out, 32, "--");
    } else if (ms < 1000) {
        (void)snprintf(out, 32, "%lldms", ms);
    } else if (s < 60) {
        (void)snprintf(out, 32, "%lld.%llds", s, ms % 1000 / 100);
    } else if (s < 3600) {
        (void)snprintf(out, 32, "%lldm %llds", s / 60, s % 60);
    } else if (s < 86400) {
        (void)snprintf(out, 32, "%lldh %lldm", s / 3600, s % 3600 / 60);
    } else {
        (void)snprintf(out, 32, "%lldd %lldh", s / 86400, s % 86400 / 3600);
    }
}

void
lw_table_number(unsigned long long number, char out[16])
{
    static const char units[] = "kMGTPE";
    if (number < 10000) {
        (void)snprintf(out, 16, "%llu", number);
        return;
    }
    size_t unit = 0;
    unsigned long long tenths = number / 100;
    while (tenths >= 10000 && unit + 1 < sizeof units - 1) {
        tenths /= 1000;
        unit++;
    }
    (void)snprintf(out, 16, "%u.%c%c", (unsigned)(tenths / 10), (char)('0' + tenths % 10),
                   units[unit]);
}
