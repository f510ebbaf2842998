/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sink of log lines: one event becomes one line and one write to a descriptor, as text on a
 * terminal and as JSON otherwise. Fields come as `key=value key="quoted value"`; an unquoted
 * value ends before the next ` key=`, a quoted one may hold anything (lw_log_quote). In JSON an
 * unquoted whole number, true or false keeps its type, so text of unknown origin is to be quoted.
 *
 * Repeats are folded: of one event (by name, above debug) the first lines of a window are
 * written, the rest is counted and said in one line when the window ends. Any thread may log: a
 * mutex is held around the fold table and the one write, so lines never mix. That is the one lock
 * that the loop thread may meet; a log line is no part of a message's path.
 */
#ifndef LW_BASE_LOG_H
#define LW_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include <laneway/laneway.h>

struct lw_log;

enum lw_log_format { LW_LOG_FORMAT_AUTO, LW_LOG_FORMAT_TEXT, LW_LOG_FORMAT_JSON };

struct lw_log_options {
    int fd;                    /* 2; stays the caller's */
    enum lw_log_format format; /* AUTO: text if fd is a terminal */
    bool is_journal;           /* lines begin with <4> and the like, for systemd */
    enum lw_log_level level;   /* INFO: what is less important is not written */
    const char *service;       /* NULL: no such field; copied */
    uint32_t burst;            /* 5 lines of an event are written in a window; 0: never fold */
    int64_t window_ms;         /* 10,000 */
    const char *const *unfolded; /* NULL-terminated: events that are never folded; not copied */
    int64_t (*wall_ms)(void *user); /* NULL: the system's clock */
    void *user;
};

void lw_log_options_init(struct lw_log_options *options);
LW_MUST_USE enum lw_status
lw_log_create(const struct lw_log_options *options, struct lw_log **ret_log);
/* Says what is still folded, and frees. NULL is fine. */
void lw_log_destroy(struct lw_log *log);
/* Writes one event: an lw_log_fn; `user` is the struct lw_log. Any thread. */
void lw_log_write(enum lw_log_level level, const char *event, const char *text,
                  const char *fields, void *user);
/*
 * Says what was folded in windows that have ended. Returns after how many ms it wants to be
 * called again, -1 when nothing is folded. Logging does the same on the way. Any thread.
 */
int64_t lw_log_flush(struct lw_log *log);
/* Changes the level. Any thread. */
void lw_log_set_level(struct lw_log *log, enum lw_log_level level);

/* Returns "error", "warn", "info", "debug" or "trace". */
const char *lw_log_level_name(enum lw_log_level level);
/* False when the name is none of these. */
bool lw_log_level_parse(const char *name, enum lw_log_level *ret_level);
/*
 * Writes `value` in quotes, escaped, for a field; cut to fit, the closing quote included, when
 * `size` is at least 3. NULL gives "". Returns out.
 */
const char *lw_log_quote(const char *value, char *out, size_t size);
const char *lw_log_quote_bytes(struct lw_bytes value, char *out, size_t size);

#endif
