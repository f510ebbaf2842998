/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text to numbers, durations and sizes, and back (declared in text.h). Durations are whole
 * milliseconds written with units, largest first ("1h30m"), sizes are one number and one unit;
 * a bare number is an error, since its unit would be a guess; only 0 needs none. Everything is
 * checked for overflow. No locale, no strtol: what is accepted is exactly what is written here.
 */
#include <stdio.h>
#include <string.h>

#include "base/text.h"

struct unit {
    const char *name;
    int64_t value;
};

/* A list of units, ended by one without a name. Largest first: so a duration's parts must come. */
static const struct unit duration_units[] = {
    { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 },
    { "s", 1000 },     { "ms", 1 },      { NULL, 0 },
};
static const struct unit size_units[] = {
    { "TiB", INT64_C(1) << 40 },
    { "GiB", 1 << 30 },
    { "MiB", 1 << 20 },
    { "KiB", 1 << 10 },
    { "TB", 1000000000000 },
    { "GB", 1000000000 },
    { "MB", 1000000 },
    { "kB", 1000 },
    { "KB", 1000 },
    { "B", 1 },
    { NULL, 0 },
};

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits at *at; false when there are none or too many. */
static bool
read_digits(const char **at, const char *end, uint64_t *ret_value)
{
    uint64_t value = 0;
    const char *from = *at;
    for (; from < end && is_digit(*from); from++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*from - '0'), &value)) {
            return false;
        }
    }
    if (from == *at) {
        return false;
    }
    *at = from;
    *ret_value = value;
    return true;
}

bool
lw_bytes_to_int(struct lw_bytes bytes, int64_t *ret_value)
{
    const char *at = (const char *)bytes.data;
    if (bytes.size == 0) {
        return false;
    }
    const char *end = at + bytes.size;
    bool is_negative = *at == '-';
    at += is_negative || *at == '+';
    uint64_t value = 0;
    uint64_t limit = (uint64_t)INT64_MAX + is_negative;
    if (!read_digits(&at, end, &value) || at != end || value > limit) {
        return false;
    }
    *ret_value = (int64_t)(is_negative ? -value : value);
    return true;
}

bool
lw_text_to_int(const char *text, int64_t *ret_value)
{
    return lw_bytes_to_int(lw_bytes_of(text), ret_value);
}

/* Finds the unit that the letters at *at spell, and passes over them; NULL when there is none. */
static const struct unit *
read_unit(const char **at, const struct unit *units)
{
    size_t length = strspn(*at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    for (const struct unit *unit = units; unit->name; unit++) {
        if (strlen(unit->name) == length && strncmp(unit->name, *at, length) == 0) {
            *at += length;
            return unit;
        }
    }
    return NULL;
}

static bool
refuse(const char **ret_why, const char *why)
{
    *ret_why = why;
    return false;
}

/* Reads one number and its unit and adds them to *total; returns the unit, NULL when refused. */
static const struct unit *
add_part(const char **at, const struct unit *units, int64_t *total, const char **ret_why)
{
    uint64_t number = 0;
    *ret_why = "is too large";
    if (!is_digit(**at)) {
        *ret_why = **at == '-' ? "must not be negative" : "is not a number with a unit";
        return NULL;
    }
    if (!read_digits(at, *at + strlen(*at), &number) || number > INT64_MAX) {
        return NULL;
    }
    const struct unit *unit = read_unit(at, units);
    if (!unit) {
        *ret_why = **at == '\0'  ? "needs a unit"
                   : **at == '.' ? "must be a whole number"
                                 : "has an unknown unit";
        return NULL;
    }
    int64_t part = 0;
    if (__builtin_mul_overflow((int64_t)number, unit->value, &part) ||
        __builtin_add_overflow(*total, part, total)) {
        return NULL;
    }
    return unit;
}

bool
lw_text_to_duration_ms(const char *text, int64_t *ret_ms, const char **ret_why)
{
    int64_t total = 0;
    const struct unit *last = NULL;
    if (text[0] == '\0') {
        return refuse(ret_why, "is empty");
    }
    if (strcmp(text, "0") == 0) {
        *ret_ms = 0;
        return true;
    }
    for (const char *at = text; *at;) {
        const struct unit *unit = add_part(&at, duration_units, &total, ret_why);
        if (!unit) {
            return false;
        }
        if (last && unit <= last) {
            return refuse(ret_why, "must name larger units first");
        }
        last = unit;
    }
    *ret_ms = total;
    return true;
}

bool
lw_text_to_size(const char *text, int64_t *ret_bytes, const char **ret_why)
{
    int64_t total = 0;
    const char *at = text;
    if (text[0] == '\0') {
        return refuse(ret_why, "is empty");
    }
    if (strcmp(text, "0") != 0) {
        if (!add_part(&at, size_units, &total, ret_why)) {
            return false;
        }
        if (*at) {
            return refuse(ret_why, "has something behind its unit");
        }
    }
    *ret_bytes = total;
    return true;
}

void
lw_text_from_duration_ms(int64_t ms, char *out, size_t size)
{
    char text[64] = "";
    size_t length = 0;
    uint64_t rest = ms < 0 ? -(uint64_t)ms : (uint64_t)ms;
    for (const struct unit *unit = duration_units; unit->name; unit++) {
        uint64_t value = (uint64_t)unit->value;
        if (rest >= value) {
            length += (size_t)snprintf(text + length, sizeof text - length, "%llu%s",
                                       (unsigned long long)(rest / value), unit->name);
            rest %= value;
        }
    }
    (void)snprintf(out, size, "%s%s", ms < 0 ? "-" : "", length ? text : "0s");
}

void
lw_text_from_size(int64_t bytes, char *out, size_t size)
{
    for (const struct unit *unit = size_units; unit->name; unit++) {
        if (bytes > 0 && unit->value > 1 && bytes % unit->value == 0) {
            (void)snprintf(out, size, "%lld%s", (long long)(bytes / unit->value), unit->name);
            return;
        }
    }
    (void)snprintf(out, size, "%lldB", (long long)bytes);
}
