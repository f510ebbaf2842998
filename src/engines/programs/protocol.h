/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ways to speak with a program that is kept alive, as a table: lines of JSON, and frames
 * (a JSON header with a length before it, raw bytes behind it). Workers, tasks, blame and supply
 * are the same for both and know only this table. Pure but for the reader and the sender, which
 * they are given.
 */
#ifndef LW_ENGINES_PROGRAMS_PROTOCOL_H
#define LW_ENGINES_PROGRAMS_PROTOCOL_H

#include "engines/programs/answer.h"
#include "engines/programs/reader.h"
#include "engines/programs/sender.h"

enum lw_programs_next {
    LW_PROGRAMS_NEXT_NONE, /* not a whole one yet */
    LW_PROGRAMS_NEXT_UNIT, /* *ret_answer is filled; the caller clears it before the next fill */
    LW_PROGRAMS_NEXT_BROKEN /* what follows cannot be understood; ret_answer->why */
};

struct lw_programs_hello {
    const char *service;
    const char *handler;
    uint32_t window;
    const struct lw_batch_options *batch; /* NULL, or size 0: one message at a time */
};

struct lw_programs_protocol {
    const char *name;
    const char *doubt; /* what may be wrong with a program that never says a word */
    bool doubts_exits; /* ... and also with one that exits without a word */
    /* Appends; lack of memory stays in the text. */
    void (*write_hello)(struct lw_text *out, const struct lw_programs_hello *hello);
    /*
     * Appends a request, or nothing and false without memory. Large bytes are not copied: they
     * are read from the delivery when the pipe has room. deadline_ms < 0: none.
     */
    bool (*write_request)(struct lw_programs_sender *sender, int64_t id,
                          const struct lw_delivery *delivery, int64_t deadline_ms);
    /* The next thing that the program said. */
    enum lw_programs_next (*next)(struct lw_programs_reader *reader,
                                  struct lw_programs_answer *ret_answer);
    /* After the end, once `next` says NONE: what is left over. BROKEN: it was cut short. */
    enum lw_programs_next (*rest)(struct lw_programs_reader *reader,
                                  struct lw_programs_answer *ret_answer);
};

extern const struct lw_programs_protocol lw_programs_lines;
extern const struct lw_programs_protocol lw_programs_frames;

#endif
