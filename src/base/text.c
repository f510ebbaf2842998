/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing text, and looking at text: equality, UTF-8, patterns, distance for suggestions. What
 * turns text into numbers and units, and back, is in units.c. A text remembers the first failed
 * allocation, so that a writer appends freely and asks once; after a failure its contents are
 * those before the failed append. No locale: a byte is a byte. Any thread, one text one thread.
 */
#include "base/text.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { CAPACITY_MIN = 64, DISTANCE_LENGTH_MAX = 127 };

void
lw_text_init(struct lw_text *text)
{
    *text = (struct lw_text){ .data = NULL };
}

void
lw_text_deinit(struct lw_text *text)
{
    lw_free(text->data);
    lw_text_init(text);
}

void
lw_text_clear(struct lw_text *text)
{
    text->size = 0;
    text->is_failed = false;
    if (text->data) {
        text->data[0] = '\0';
    }
}

/* Makes room for `size` more bytes and the zero. */
static bool
make_room(struct lw_text *text, size_t size)
{
    if (text->is_failed || size >= SIZE_MAX / 2 - text->size) {
        text->is_failed = true;
        return false;
    }
    size_t needed = text->size + size + 1;
    if (needed <= text->capacity) {
        return true;
    }
    size_t capacity = text->capacity ? text->capacity : CAPACITY_MIN;
    while (capacity < needed) {
        capacity *= 2;
    }
    char *data = lw_resize_array(text->data, capacity, 1);
    if (!data) {
        text->is_failed = true;
        return false;
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void
lw_text_append_bytes(struct lw_text *text, const void *data, size_t size)
{
    if (!make_room(text, size)) {
        return;
    }
    if (size) {
        memcpy(text->data + text->size, data, size);
    }
    text->size += size;
    text->data[text->size] = '\0';
}

void
lw_text_append(struct lw_text *text, const char *part)
{
    lw_text_append_bytes(text, part, strlen(part));
}

void
lw_text_append_char(struct lw_text *text, char c)
{
    lw_text_append_bytes(text, &c, 1);
}

void
lw_text_format_v(struct lw_text *text, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    size_t room = text->capacity - text->size;
    int length = vsnprintf(room ? text->data + text->size : NULL, room, format, arguments);
    if (length < 0) {
        text->is_failed = true;
    } else if ((size_t)length >= room) {
        if (make_room(text, (size_t)length)) {
            (void)vsnprintf(text->data + text->size, (size_t)length + 1, format, again);
            text->size += (size_t)length;
        } else if (text->data) {
            text->data[text->size] = '\0';
        }
    } else if (text->is_failed) {
        text->data[text->size] = '\0';
    } else {
        text->size += (size_t)length;
    }
    va_end(again);
}

void
lw_text_format(struct lw_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    lw_text_format_v(text, format, arguments);
    va_end(arguments);
}

char *
lw_text_take(struct lw_text *text)
{
    lw_text_append_bytes(text, "", 0); /* an empty text is a text too */
    if (text->is_failed) {
        lw_text_deinit(text);
        return NULL;
    }
    char *data = text->data;
    lw_text_init(text);
    return data;
}

void
lw_text_copy(char *out, size_t size, const char *from)
{
    if (size == 0) {
        return;
    }
    size_t length = strnlen(from, size - 1);
    memcpy(out, from, length);
    out[length] = '\0';
}

bool
lw_text_is_equal(struct lw_bytes bytes, const char *text)
{
    return lw_bytes_is_equal(bytes, lw_bytes_of(text));
}

bool
lw_bytes_is_equal(struct lw_bytes a, struct lw_bytes b)
{
    if (!a.data || !b.data) {
        return !a.data && !b.data;
    }
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

typedef size_t distance_rows[3][DISTANCE_LENGTH_MAX + 1];

/* Returns the distance of the first i letters of a and the first j of b, both at least 1. */
static size_t
distance_at(distance_rows rows, const char *a, const char *b, size_t i, size_t j)
{
    const size_t *above = rows[(i - 1) % 3];
    size_t cost = a[i - 1] == b[j - 1] ? 0 : 1;
    size_t distance = least(least(above[j] + 1, rows[i % 3][j - 1] + 1), above[j - 1] + cost);
    if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        distance = least(distance, rows[(i - 2) % 3][j - 2] + 1);
    }
    return distance;
}

/* Three rows of the usual table: the row before the last is for swapped neighbours. */
size_t
lw_text_distance(const char *a, const char *b)
{
    distance_rows rows;
    size_t a_length = strnlen(a, DISTANCE_LENGTH_MAX);
    size_t b_length = strnlen(b, DISTANCE_LENGTH_MAX);
    for (size_t j = 0; j <= b_length; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        rows[i % 3][0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            rows[i % 3][j] = distance_at(rows, a, b, i, j);
        }
    }
    return rows[a_length % 3][b_length];
}

/* Returns how many bytes a sequence has by its first one, 0 when that cannot begin one. */
static size_t
sequence_size(unsigned char first)
{
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xc2 && first <= 0xdf) {
        return 2;
    }
    if (first >= 0xe0 && first <= 0xef) {
        return 3;
    }
    return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/* The second byte's range depends on the first: no overlong form, surrogate, or > U+10FFFF. */
static bool
is_second(unsigned char first, unsigned char second)
{
    unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    return second >= low && second <= high;
}

size_t
lw_text_utf8_size(const void *data, size_t size)
{
    const unsigned char *from = (const unsigned char *)data;
    size_t length = size ? sequence_size(from[0]) : 0;
    if (length == 0 || length > size || (length > 1 && !is_second(from[0], from[1]))) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if ((from[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return length;
}

bool
lw_text_is_utf8(const void *data, size_t size)
{
    const char *from = (const char *)data;
    while (size > 0) {
        size_t length = lw_text_utf8_size(from, size);
        if (length == 0) {
            return false;
        }
        from += length;
        size -= length;
    }
    return true;
}

/* Goes back only to the last star: linear in practice, never worse than the product. */
bool
lw_text_is_match(const char *pattern, const char *text)
{
    const char *star = NULL;
    const char *star_text = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            star_text = text;
        } else if (*pattern == '?' || *pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++star_text;
        } else {
            return false;
        }
    }
    while (*pattern == '*') {
        pattern++;
    }
    return *pattern == '\0';
}
