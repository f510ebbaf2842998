/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of exit codes: those of sysexits.h and of qmail, which mail filters have spoken for
 * decades, and the shell's two for commands that cannot be run.
 */
#include "engines/programs/exit_codes.h"

static const struct {
    int code;
    enum lw_verdict verdict;
    bool is_broken;
    const char *name;
} rows[] = {
    { 0, LW_OK, false, NULL },
    { 64, LW_ERROR, true, "it was called wrongly" },
    { 65, LW_DEAD, false, "bad data" },
    { 71, LW_RETRY, false, "an error of the system" },
    { 75, LW_RETRY, false, "a passing failure" },
    { 78, LW_ERROR, true, "its configuration is wrong" },
    { 99, LW_DROP, false, NULL },
    { 100, LW_DEAD, false, NULL },
    { 111, LW_RETRY, false, NULL },
    { 126, LW_ERROR, true, "it cannot be executed" },
    { 127, LW_ERROR, true, "command not found" },
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

struct lw_exit_class
lw_programs_exit_meaning(const struct lw_exit_class *classes, size_t count, int code)
{
    for (size_t i = 0; i < count; i++) {
        if (code >= classes[i].from && code <= classes[i].to) {
            return classes[i];
        }
    }
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].code == code) {
            return (struct lw_exit_class){ code, code, rows[i].verdict, rows[i].is_broken };
        }
    }
    return (struct lw_exit_class){ code, code, LW_ERROR, false };
}

const char *
lw_programs_exit_name(int code)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (rows[i].code == code) {
            return rows[i].name;
        }
    }
    return NULL;
}
