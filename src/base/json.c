/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON writer, base64 and the time format of logs and APIs. Invariant: has_item's bit of the
 * current depth says whether a comma is due before the next item. What a handler or producer put
 * into bytes never breaks the output: control characters are escaped, bytes that are no UTF-8
 * become U+FFFD one by one. Lack of memory stays in the text (lw_text.is_failed). One thread.
 */
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { DEPTH_MAX = 63 };

/* The years 0000 to 9999: what RFC 3339 can write. */
#define WALL_MS_MIN INT64_C(-62167219200000)
#define WALL_MS_MAX INT64_C(253402300799999)

void
lw_json_init(struct lw_json *json, struct lw_text *text)
{
    *json = (struct lw_json){ .text = text };
}

/* Writes the comma that is due before an item. */
static void
begin_item(struct lw_json *json)
{
    uint64_t bit = UINT64_C(1) << json->depth;
    if (json->is_after_key) {
        json->is_after_key = false;
        return;
    }
    if (json->has_item & bit) {
        lw_text_append_char(json->text, ',');
    }
    json->has_item |= bit;
}

static void
open_level(struct lw_json *json, char c)
{
    begin_item(json);
    lw_assert(json->depth < DEPTH_MAX);
    json->depth++;
    json->has_item &= ~(UINT64_C(1) << json->depth);
    lw_text_append_char(json->text, c);
}

static void
close_level(struct lw_json *json, char c)
{
    lw_assert(json->depth > 0 && !json->is_after_key);
    json->depth--;
    lw_text_append_char(json->text, c);
}

void
lw_json_object(struct lw_json *json)
{
    open_level(json, '{');
}

void
lw_json_object_end(struct lw_json *json)
{
    close_level(json, '}');
}

void
lw_json_array(struct lw_json *json)
{
    open_level(json, '[');
}

void
lw_json_array_end(struct lw_json *json)
{
    close_level(json, ']');
}

static void
append_escape(struct lw_text *text, unsigned char c)
{
    static const char from[] = "\"\\\n\r\t\b\f";
    static const char to[] = "\"\\nrtbf";
    const char *found = memchr(from, c, sizeof from - 1);
    if (found) {
        char pair[2] = { '\\', to[found - from] };
        lw_text_append_bytes(text, pair, sizeof pair);
    } else {
        lw_text_format(text, "\\u%04x", c);
    }
}

static bool
is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Appends runs of plain characters whole, and the rest one sequence at a time. */
static void
append_quoted(struct lw_text *text, struct lw_bytes value)
{
    const unsigned char *at = (const unsigned char *)value.data;
    const unsigned char *end = at + value.size;
    lw_text_append_char(text, '"');
    while (at < end) {
        const unsigned char *run = at;
        while (at < end && is_plain(*at)) {
            at++;
        }
        lw_text_append_bytes(text, run, (size_t)(at - run));
        if (at == end) {
            break;
        }
        size_t size = lw_text_utf8_size(at, (size_t)(end - at));
        if (size == 0) {
            lw_text_append(text, "\xef\xbf\xbd");
        } else if (size > 1) {
            lw_text_append_bytes(text, at, size);
        } else {
            append_escape(text, *at);
        }
        at += size ? size : 1;
    }
    lw_text_append_char(text, '"');
}

void
lw_json_key_bytes(struct lw_json *json, struct lw_bytes key)
{
    lw_assert(json->depth > 0 && !json->is_after_key);
    begin_item(json);
    append_quoted(json->text, key.data ? key : lw_bytes_of(""));
    lw_text_append_char(json->text, ':');
    json->is_after_key = true;
}

void
lw_json_key(struct lw_json *json, const char *key)
{
    lw_json_key_bytes(json, lw_bytes_of(key));
}

void
lw_json_bytes(struct lw_json *json, struct lw_bytes value)
{
    if (!value.data) {
        lw_json_null(json);
        return;
    }
    begin_item(json);
    append_quoted(json->text, value);
}

void
lw_json_string(struct lw_json *json, const char *value)
{
    lw_json_bytes(json, lw_bytes_of(value));
}

void
lw_json_int(struct lw_json *json, int64_t value)
{
    begin_item(json);
    lw_text_format(json->text, "%lld", (long long)value);
}

void
lw_json_bool(struct lw_json *json, bool value)
{
    begin_item(json);
    lw_text_append(json->text, value ? "true" : "false");
}

void
lw_json_null(struct lw_json *json)
{
    begin_item(json);
    lw_text_append(json->text, "null");
}

/* 15 digits if they come back as the same number, else the 17 that always do. */
void
lw_json_double(struct lw_json *json, double value)
{
    if (!isfinite(value)) {
        lw_json_null(json);
        return;
    }
    char text[40];
    (void)snprintf(text, sizeof text, "%.15g", value);
    double back = strtod(text, NULL);
    if (back < value || back > value) {
        (void)snprintf(text, sizeof text, "%.17g", value);
    }
    char *comma = strchr(text, ','); /* the embedding program may have set a locale */
    if (comma) {
        *comma = '.';
    }
    begin_item(json);
    lw_text_append(json->text, text);
}

/* -- base64 (RFC 4648) --------------------------------------------------------------------------- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Encodes up to three bytes as four characters. */
static void
append_group(struct lw_text *text, const unsigned char *from, size_t size)
{
    unsigned bits = (unsigned)from[0] << 16;
    bits |= size > 1 ? (unsigned)from[1] << 8 : 0;
    bits |= size > 2 ? from[2] : 0;
    char out[4] = { digits[bits >> 18], digits[bits >> 12 & 63], digits[bits >> 6 & 63],
                    digits[bits & 63] };
    if (size < 3) {
        out[3] = '=';
    }
    if (size < 2) {
        out[2] = '=';
    }
    lw_text_append_bytes(text, out, sizeof out);
}

void
lw_json_base64(struct lw_json *json, struct lw_bytes value)
{
    if (!value.data) {
        lw_json_null(json);
        return;
    }
    begin_item(json);
    lw_text_append_char(json->text, '"');
    const unsigned char *from = (const unsigned char *)value.data;
    for (size_t offset = 0; offset < value.size; offset += 3) {
        size_t rest = value.size - offset;
        append_group(json->text, from + offset, rest < 3 ? rest : 3);
    }
    lw_text_append_char(json->text, '"');
}

/* Returns a digit's value, 64 when it is none. */
static unsigned
digit_value(char c)
{
    const char *found = memchr(digits, c, sizeof digits - 1);
    return found ? (unsigned)(found - digits) : 64;
}

/* Decodes a group with `count` digits (2 to 4); the bits behind the last byte must be 0. */
static bool
decode_group(const char *from, size_t count, unsigned char *out)
{
    unsigned bits = 0;
    for (size_t i = 0; i < 4; i++) {
        unsigned value = i < count ? digit_value(from[i]) : 0;
        if (value == 64) {
            return false;
        }
        bits = bits << 6 | value;
    }
    unsigned unused = count == 4 ? 0 : count == 3 ? 0xff : 0xffff;
    if (bits & unused) {
        return false;
    }
    for (size_t i = 0; i + 1 < count; i++) {
        out[i] = (unsigned char)(bits >> (16 - 8 * i));
    }
    return true;
}

bool
lw_base64_decode(const char *text, size_t length, void **ret_data, size_t *ret_size)
{
    if (length % 4 != 0) {
        return false;
    }
    size_t padding = length && text[length - 1] == '=' ? 1 : 0;
    padding += padding && text[length - 2] == '=' ? 1 : 0;
    size_t size = length / 4 * 3 - padding;
    unsigned char *data = lw_alloc(size);
    if (!data) {
        return false;
    }
    for (size_t offset = 0; offset < length; offset += 4) {
        size_t count = offset + 4 == length ? 4 - padding : 4;
        if (!decode_group(text + offset, count, data + offset / 4 * 3)) {
            lw_free(data);
            return false;
        }
    }
    *ret_data = data;
    *ret_size = size;
    return true;
}

/* -- Time ------------------------------------------------------------------------------------------ */

/* Days since 1970 to a date of the Gregorian calendar, counted in eras of 400 years. */
static void
date_of(int64_t days, int64_t *ret_year, int *ret_month, int *ret_day)
{
    int64_t shifted = days + 719468; /* since 0000-03-01 */
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t of_era = shifted - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int month = (int)((5 * of_year + 2) / 153); /* from March */
    *ret_day = (int)(of_year - (153 * month + 2) / 5 + 1);
    *ret_month = month < 10 ? month + 3 : month - 9;
    *ret_year = year + era * 400 + (*ret_month <= 2);
}

void
lw_json_time(int64_t wall_ms, char out[32])
{
    const int64_t day_ms = 86400000;
    wall_ms = wall_ms < WALL_MS_MIN ? WALL_MS_MIN : wall_ms;
    wall_ms = wall_ms > WALL_MS_MAX ? WALL_MS_MAX : wall_ms;
    int64_t days = wall_ms / day_ms;
    int64_t ms = wall_ms % day_ms;
    int64_t year = 0;
    int month = 0;
    int day = 0;
    if (ms < 0) {
        ms += day_ms;
        days--;
    }
    date_of(days, &year, &month, &day);
    unsigned seconds = (unsigned)(ms / 1000);
    (void)snprintf(out, 32, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", (unsigned)year % 10000,
                   (unsigned)month % 100, (unsigned)day % 100, seconds / 3600 % 100,
                   seconds / 60 % 60, seconds % 60, (unsigned)(ms % 1000) % 1000);
}
