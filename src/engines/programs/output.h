/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program prints, on its way to our log: at most a number of lines and bytes a second,
 * the rest counted and said; control characters and broken UTF-8 replaced. The last lines are
 * kept, since they usually say why a program died.
 */
#ifndef LW_ENGINES_PROGRAMS_OUTPUT_H
#define LW_ENGINES_PROGRAMS_OUTPUT_H

#include "base/host.h"
#include "base/text.h"

#define LW_PROGRAMS_LAST_LINES 3
#define LW_PROGRAMS_LAST_BYTES 160

struct lw_programs_output {
    struct lw_host *host;
    const char *handler; /* its name, borrowed */
    uint64_t second_began;
    uint32_t second_lines;
    size_t second_bytes;
    uint64_t dropped; /* since it was last said */
    uint64_t dropped_total;
    char last[LW_PROGRAMS_LAST_LINES][LW_PROGRAMS_LAST_BYTES];
    uint32_t last_count; /* ever */
};

void lw_programs_output_init(struct lw_programs_output *output, struct lw_host *host,
                             const char *handler);
/* Forgets the last lines: a new process begins. */
void lw_programs_output_begin(struct lw_programs_output *output);
/* Passes a line on. `stream` is "stderr" or "stdout". */
void lw_programs_output_line(struct lw_programs_output *output, struct lw_bytes line,
                             const char *stream);
/* A line of the program's own structured log. */
void lw_programs_output_log(struct lw_programs_output *output, enum lw_log_level level,
                            struct lw_bytes text);
/* Writes its last lines, `count` at most, oldest first; "" when it printed nothing. */
void lw_programs_output_last(const struct lw_programs_output *output, uint32_t count, char *out,
                             size_t size);

#endif
