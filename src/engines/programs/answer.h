/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one line from a program says, or the header of one frame: ready, an answer, an extension,
 * a log line, or nothing of ours. Reading a line never fails: what is no JSON object, or one of
 * somebody else, is stray. A frame's bytes lie behind its header: fields such as reply_len take
 * them in order, in place of reply and reply_b64.
 * An answer is applied to its delivery: verdict, reason, code, delay, reply, outputs. An answer
 * that cannot be used as a whole becomes an error of that message that says why. Of a task of
 * several messages `results` has one answer for each, in order; `result` is one for all.
 */
#ifndef LW_ENGINES_PROGRAMS_ANSWER_H
#define LW_ENGINES_PROGRAMS_ANSWER_H

#include <jansson.h>

#include "core/delivery.h"

#define LW_PROGRAMS_PROTOCOL 1

/* Bytes of a line or frame, beside the size of what it answers. */
enum { LW_PROGRAMS_UNIT_MAX = 16 * 1024 * 1024 };

enum lw_programs_line {
    LW_PROGRAMS_LINE_STRAY,  /* not of the protocol: the program's own output */
    LW_PROGRAMS_LINE_READY,  /* protocol, is_concurrent */
    LW_PROGRAMS_LINE_ANSWER, /* id; has_result says whether it looks like one */
    LW_PROGRAMS_LINE_EXTEND, /* id, extend_ms */
    LW_PROGRAMS_LINE_LOG,    /* level, text */
    LW_PROGRAMS_LINE_BROKEN  /* of the protocol, but against it: why */
};

struct lw_programs_answer {
    enum lw_programs_line kind;
    json_t *root;
    struct lw_bytes line; /* or the frame's header */
    struct lw_bytes tail; /* of a frame: the bytes behind its header */
    bool is_framed;
    int64_t id;
    int64_t protocol;
    int64_t extend_ms;
    bool is_concurrent;
    bool takes_batches; /* of ready */
    bool has_result;
    enum lw_log_level level;
    struct lw_bytes text;
    char why[128];
};

/* The caller clears it. Views live until then. */
void lw_programs_answer_read(struct lw_bytes line, struct lw_programs_answer *ret_answer);
void lw_programs_answer_clear(struct lw_programs_answer *answer);
/* How many bytes belong behind this header; false: a length makes no sense, `why` names it. */
bool lw_programs_answer_measure(struct lw_programs_answer *answer, uint64_t *ret_size);
/*
 * Reads and applies one answer that needs no id, for engines that know whom it answers. Something
 * that is no answer becomes LW_ERROR with a reason. False: no memory, and nothing is known.
 */
bool lw_programs_answer_take(struct lw_bytes json, struct lw_delivery *delivery,
                             enum lw_verdict *ret_verdict);
/*
 * Fills the delivery's outcome and returns the verdict. With `results` those of all members of its
 * task are filled, their verdicts are set, and the first one's is returned.
 */
enum lw_verdict
lw_programs_answer_apply(const struct lw_programs_answer *answer, struct lw_delivery *delivery);

#endif
