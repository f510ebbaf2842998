/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes in, lines out, from one descriptor: a buffer that grows for a long line up to a bound and
 * shrinks after it. Where every line matters, one beyond the bound is an error; where lines are
 * only text for the log, it is cut. Protocol frames takes its frames out of the same buffer.
 */
#ifndef LW_ENGINES_PROGRAMS_READER_H
#define LW_ENGINES_PROGRAMS_READER_H

#include <stdbool.h>
#include <stddef.h>

#include <laneway/laneway.h>

enum lw_programs_read {
    LW_PROGRAMS_READ_SOME,
    LW_PROGRAMS_READ_NOTHING, /* not now */
    LW_PROGRAMS_READ_END      /* end of file, an error, or no memory */
};

struct lw_programs_reader {
    char *data;
    size_t begin;   /* of the first line that was not given out */
    size_t scanned; /* no newline before it */
    size_t end;
    size_t need; /* frames: nothing new before so many bytes from `begin` on are there */
    size_t capacity;
    size_t line_max;
    bool is_cutting;  /* only text for the log */
    bool is_overlong; /* a line is longer than line_max, and not cut */
    bool is_starved;  /* the end was for want of memory: what comes next was not read */
};

void
lw_programs_reader_init(struct lw_programs_reader *reader, size_t line_max, bool is_cutting);
void lw_programs_reader_deinit(struct lw_programs_reader *reader);
/* One read(2). */
enum lw_programs_read lw_programs_reader_fill(struct lw_programs_reader *reader, int fd);
/* The next whole line without its end, valid until the next fill; false when there is none. */
bool lw_programs_reader_next(struct lw_programs_reader *reader, struct lw_bytes *ret_line);
/* After the end: what is left without a newline; false when nothing is. */
bool lw_programs_reader_rest(struct lw_programs_reader *reader, struct lw_bytes *ret_line);

#endif
