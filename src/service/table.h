/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of text for people: cells are added row by row, columns get the width of their widest
 * cell, numbers stand to the right. Widths are counted in characters, not bytes.
 */
#ifndef LW_SERVICE_TABLE_H
#define LW_SERVICE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

struct lw_table {
    const char *alignment; /* one letter a column: l or r */
    size_t columns;
    struct lw_text cells; /* all of them, each ended by a zero */
    size_t count;
};

/* `alignment` is borrowed, such as "lrr". */
void lw_table_init(struct lw_table *table, const char *alignment);
void lw_table_deinit(struct lw_table *table);
/* Adds the next cell; control characters in it become '?'. */
void lw_table_add(struct lw_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds a count, "--" for 0: no data is not a number. */
void lw_table_add_count(struct lw_table *table, unsigned long long count);
/* Appends all rows, each after `indent`; the last row may be short. */
void lw_table_print(const struct lw_table *table, const char *indent, struct lw_text *out);

/* "1st", "2nd", "11th" */
void lw_table_ordinal(unsigned number, char out[16]);
/* "41ms", "3.1s", "1h 12m", "3d 4h" */
void lw_table_duration(long long ms, char out[32]);
/* "950", "81.2k", "3.4M" */
void lw_table_number(unsigned long long number, char out[16]);

#endif
