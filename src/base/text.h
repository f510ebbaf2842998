/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text building and scanning: a growable buffer that remembers failure (so that a chain of
 * appends is checked once), bounded copies, numbers, durations, sizes, edit distance, UTF-8.
 */
#ifndef LW_BASE_TEXT_H
#define LW_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <laneway/laneway.h>

struct lw_text {
    char *data; /* always terminated once something was appended; NULL when empty */
    size_t size;
    size_t capacity;
    bool is_failed; /* an allocation failed; later appends do nothing */
};

void lw_text_init(struct lw_text *text);
void lw_text_deinit(struct lw_text *text);
void lw_text_clear(struct lw_text *text); /* keeps the memory */
void lw_text_append(struct lw_text *text, const char *part);
void lw_text_append_bytes(struct lw_text *text, const void *data, size_t size);
void lw_text_append_char(struct lw_text *text, char c);
void lw_text_format(struct lw_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void lw_text_format_v(struct lw_text *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));
/* Gives the buffer away; the caller frees it with lw_free. NULL when failed. */
char *lw_text_take(struct lw_text *text);

/* Copies as much as fits, always terminates. */
void lw_text_copy(char *out, size_t size, const char *from);
bool lw_text_is_equal(struct lw_bytes bytes, const char *text);
bool lw_bytes_is_equal(struct lw_bytes a, struct lw_bytes b); /* null equals only null */
/* Whole text as a number; false when empty, trailed by anything, or out of range. */
bool lw_text_to_int(const char *text, int64_t *ret_value);
bool lw_bytes_to_int(struct lw_bytes bytes, int64_t *ret_value);
/* "250ms", "1h30m", "5s" -> ms. *ret_why names what is wrong ("needs a unit"). */
bool lw_text_to_duration_ms(const char *text, int64_t *ret_ms, const char **ret_why);
/* "64KiB", "1MB" -> bytes. */
bool lw_text_to_size(const char *text, int64_t *ret_bytes, const char **ret_why);
/* Writes "1h30m", "250ms", "64KiB" into out. */
void lw_text_from_duration_ms(int64_t ms, char *out, size_t size);
void lw_text_from_size(int64_t bytes, char *out, size_t size);
/* Optimal string alignment distance; for suggestions. */
size_t lw_text_distance(const char *a, const char *b);
/* Bytes of the valid UTF-8 sequence at the beginning of data; 0 when there is none. */
size_t lw_text_utf8_size(const void *data, size_t size);
/* True when the bytes are valid UTF-8 (no surrogates, no overlong forms). */
bool lw_text_is_utf8(const void *data, size_t size);
/* `*` and `?` patterns. */
bool lw_text_is_match(const char *pattern, const char *text);

#endif
