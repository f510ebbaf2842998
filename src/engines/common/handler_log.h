/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program prints, on its way to our log: at most a number of lines and bytes a second,
 * the rest counted, and the count said when the second is over, whatever comes then; control
 * characters and broken UTF-8 replaced. The last lines are kept, since they usually say why a
 * program died.
 */
#ifndef LW_ENGINES_COMMON_HANDLER_LOG_H
#define LW_ENGINES_COMMON_HANDLER_LOG_H

#include "base/host.h"
#include "base/text.h"
#include "base/timers.h"

#define LW_HANDLER_LOG_LINES 3
#define LW_HANDLER_LOG_BYTES 160

struct lw_handler_log {
    struct lw_host *host;
    const char *handler; /* its name, borrowed */
    uint64_t second_began;
    uint32_t second_lines;
    size_t second_bytes;
    uint64_t dropped; /* since it was last said */
    uint64_t dropped_total;
    struct lw_timer timer; /* armed while there is a count to say */
    char last[LW_HANDLER_LOG_LINES][LW_HANDLER_LOG_BYTES];
    uint32_t last_count; /* ever */
};

void lw_handler_log_init(struct lw_handler_log *log, struct lw_host *host, const char *handler);
/* Says what is still to be said. Fine for one that is all zeros. */
void lw_handler_log_deinit(struct lw_handler_log *log);
/* Forgets the last lines: a new process begins. */
void lw_handler_log_begin(struct lw_handler_log *log);
/* Passes a line on. `stream` is "stderr" or "stdout". */
void lw_handler_log_line(struct lw_handler_log *log, struct lw_bytes line, const char *stream);
/* A line of the program's own structured log. */
void
lw_handler_log_own(struct lw_handler_log *log, enum lw_log_level level, struct lw_bytes text);
/* Writes its last lines, `count` at most, oldest first; "" when it printed nothing. */
void
lw_handler_log_last(const struct lw_handler_log *log, uint32_t count, char *out, size_t size);

#endif
