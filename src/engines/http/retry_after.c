/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seconds or a date. Dates come in three forms, all in GMT:
 *   Sun, 06 Nov 1994 08:49:37 GMT     the one that is written today
 *   Sunday, 06-Nov-94 08:49:37 GMT    RFC 850
 *   Sun Nov  6 08:49:37 1994          asctime
 * The names of days are not looked at. Numbers are read digit by digit and bounded, so nothing
 * overflows whatever a server sends.
 */
#include "engines/http/retry_after.h"

#include <string.h>
#include <strings.h>

#define SECONDS_MAX (INT64_C(366) * 24 * 3600)

struct cursor {
    const char *at;
    const char *end;
};

static void
skip(struct cursor *cursor, const char *set)
{
    while (cursor->at < cursor->end && *cursor->at && strchr(set, *cursor->at)) {
        cursor->at++;
    }
}

/* 1 to `digits_max` digits; more are clamped to the largest number that is meant. */
static bool
read_number(struct cursor *cursor, int digits_max, int64_t *ret_number)
{
    int64_t number = 0;
    int digits = 0;
    for (; cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9'; digits++) {
        number = number > SECONDS_MAX ? number : number * 10 + (*cursor->at - '0');
        cursor->at++;
    }
    *ret_number = number;
    return digits > 0 && (digits_max == 0 || digits <= digits_max);
}

static bool
read_month(struct cursor *cursor, int64_t *ret_month)
{
    static const char names[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    for (int64_t i = 0; cursor->end - cursor->at >= 3 && i < 12; i++) {
        if (strncasecmp(cursor->at, names + i * 3, 3) == 0) {
            cursor->at += 3;
            *ret_month = i + 1;
            return true;
        }
    }
    return false;
}

struct date {
    int64_t year, month, day, hour, minute, second;
};

static bool
read_time(struct cursor *cursor, struct date *date)
{
    bool is_read = read_number(cursor, 2, &date->hour) && cursor->at < cursor->end &&
                   *cursor->at++ == ':' && read_number(cursor, 2, &date->minute) &&
                   cursor->at < cursor->end && *cursor->at++ == ':' &&
                   read_number(cursor, 2, &date->second);
    return is_read && date->hour < 24 && date->minute < 60 && date->second <= 60;
}

/* "06 Nov 1994 08:49:37 GMT" and "06-Nov-94 08:49:37 GMT". */
static bool
read_day_first(struct cursor *cursor, struct date *date)
{
    bool is_read = read_number(cursor, 2, &date->day);
    skip(cursor, " -");
    is_read = is_read && read_month(cursor, &date->month);
    skip(cursor, " -");
    const char *year = cursor->at;
    is_read = is_read && read_number(cursor, 4, &date->year);
    if (cursor->at - year == 2) {
        date->year += date->year < 70 ? 2000 : 1900;
    }
    skip(cursor, " ");
    return is_read && read_time(cursor, date);
}

/* "Nov  6 08:49:37 1994". */
static bool
read_month_first(struct cursor *cursor, struct date *date)
{
    bool is_read = read_month(cursor, &date->month);
    skip(cursor, " ");
    is_read = is_read && read_number(cursor, 2, &date->day);
    skip(cursor, " ");
    is_read = is_read && read_time(cursor, date);
    skip(cursor, " ");
    return is_read && read_number(cursor, 4, &date->year);
}

/* Days since 1970-01-01 of a date of the Gregorian calendar (March-based years of 400). */
static int64_t
days_of(const struct date *date)
{
    int64_t year = date->year - (date->month <= 2 ? 1 : 0);
    int64_t era = year / 400;
    int64_t of_era = year - era * 400;
    int64_t of_year = (153 * (date->month + (date->month > 2 ? -3 : 9)) + 2) / 5 + date->day -
                      1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool
read_date(struct cursor *cursor, int64_t *ret_s)
{
    struct date date = { 0 };
    const char *blank = memchr(cursor->at, ' ', (size_t)(cursor->end - cursor->at));
    if (!blank) {
        return false;
    }
    cursor->at = blank;
    skip(cursor, " ");
    bool is_digit = cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9';
    bool is_read = is_digit ? read_day_first(cursor, &date) : read_month_first(cursor, &date);
    if (!is_read || date.year < 1970 || date.day < 1 || date.day > 31) {
        return false;
    }
    *ret_s = days_of(&date) * 86400 + date.hour * 3600 + date.minute * 60 + date.second;
    return true;
}

bool
lw_http_retry_after(struct lw_bytes value, int64_t wall_ms, int64_t *ret_ms)
{
    struct cursor cursor = { value.data, (const char *)value.data + value.size };
    int64_t number = 0;
    if (value.size == 0) {
        return false;
    }
    struct cursor seconds = cursor;
    if (read_number(&seconds, 0, &number)) {
        skip(&seconds, " \t");
        *ret_ms = (number < SECONDS_MAX ? number : SECONDS_MAX) * 1000;
        return seconds.at == seconds.end;
    }
    if (!read_date(&cursor, &number)) {
        return false;
    }
    int64_t left_ms = number * 1000 - wall_ms;
    left_ms = left_ms > 0 ? left_ms : 0;
    *ret_ms = left_ms < SECONDS_MAX * 1000 ? left_ms : SECONDS_MAX * 1000;
    return true;
}
