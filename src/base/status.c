/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the statuses are called and which exit code (sysexits) a program ends with for each; the
 * version of the library; views of text. One table, so that a new status cannot be forgotten:
 * the size of the table is checked against the last status. Any thread.
 */
#include <string.h>

#include <laneway/laneway.h>

struct status_row {
    const char *name;
    int exit_code;
};

enum {
    EXIT_SAYS_FAILED = 1,
    EXIT_SAYS_USAGE = 64,
    EXIT_SAYS_DATA = 65,
    EXIT_SAYS_NO_INPUT = 66,
    EXIT_SAYS_UNAVAILABLE = 69,
    EXIT_SAYS_SOFTWARE = 70,
    EXIT_SAYS_SYSTEM = 71,
    EXIT_SAYS_AGAIN = 75,
    EXIT_SAYS_DENIED = 77,
    EXIT_SAYS_CONFIG = 78,
    EXIT_SAYS_STOPPED = 79
};

static const struct status_row rows[] = {
    [LW_STATUS_OK] = { "ok", 0 },
    [LW_STATUS_INVALID] = { "invalid", EXIT_SAYS_USAGE },
    [LW_STATUS_CONFIG] = { "config", EXIT_SAYS_CONFIG },
    [LW_STATUS_NOT_FOUND] = { "not_found", EXIT_SAYS_NO_INPUT },
    [LW_STATUS_UNAVAILABLE] = { "unavailable", EXIT_SAYS_UNAVAILABLE },
    [LW_STATUS_DENIED] = { "denied", EXIT_SAYS_DENIED },
    [LW_STATUS_TOO_LARGE] = { "too_large", EXIT_SAYS_DATA },
    [LW_STATUS_AGAIN] = { "again", EXIT_SAYS_AGAIN },
    [LW_STATUS_TIMEOUT] = { "timeout", EXIT_SAYS_UNAVAILABLE },
    [LW_STATUS_CLOSED] = { "closed", EXIT_SAYS_SOFTWARE },
    [LW_STATUS_STATE] = { "state", EXIT_SAYS_SOFTWARE },
    [LW_STATUS_ALREADY] = { "already", EXIT_SAYS_SOFTWARE },
    [LW_STATUS_WOULD_DEADLOCK] = { "would_deadlock", EXIT_SAYS_SOFTWARE },
    [LW_STATUS_NO_MEMORY] = { "no_memory", EXIT_SAYS_SYSTEM },
    [LW_STATUS_SYSTEM] = { "system", EXIT_SAYS_SYSTEM },
    [LW_STATUS_UNKNOWN] = { "unknown", EXIT_SAYS_FAILED },
    [LW_STATUS_UNSUPPORTED] = { "unsupported", EXIT_SAYS_CONFIG },
    [LW_STATUS_STOPPED] = { "stopped", EXIT_SAYS_STOPPED },
    [LW_STATUS_UNFINISHED] = { "unfinished", EXIT_SAYS_AGAIN },
    [LW_STATUS_INTERNAL] = { "internal", EXIT_SAYS_SOFTWARE },
};
_Static_assert(sizeof rows / sizeof rows[0] == LW_STATUS_INTERNAL + 1, "a row per status");

static const struct status_row *
find_row(enum lw_status status)
{
    size_t index = (size_t)status;
    return &rows[index < sizeof rows / sizeof rows[0] ? index : LW_STATUS_INTERNAL];
}

const char *
lw_status_name(enum lw_status status)
{
    return find_row(status)->name;
}

int
lw_error_exit_code(const struct lw_error *error)
{
    return error ? find_row(error->status)->exit_code : 0;
}

const char *
lw_version(void)
{
    return LW_VERSION_STRING;
}

struct lw_bytes
lw_bytes_of(const char *text)
{
    return (struct lw_bytes){ text, text ? strlen(text) : 0 };
}
