/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A conversation with one process of a handler, for `laneway handler check`: starts it as the
 * engine does, writes without ever blocking, and waits for what it says with a deadline. What it
 * prints beside the protocol is kept and counted. It blocks; it is for a command that does
 * nothing else.
 */
#ifndef LW_CLI_HANDLER_TALK_H
#define LW_CLI_HANDLER_TALK_H

#include "base/text.h"
#include "engines/programs/process.h"
#include "engines/programs/protocol.h"

#define LW_TALK_LAST_LINES 4
#define LW_TALK_SHOWN 240 /* bytes of a line that a report shows */

enum lw_heard {
    LW_HEARD_ANSWER,  /* talk->answer: ready, answer, extend or a broken line; talk->heard */
    LW_HEARD_NOTHING, /* in time */
    LW_HEARD_CLOSED,  /* it closed what it answers on, but lives */
    LW_HEARD_FLOOD,   /* a line that is longer than any may be */
    LW_HEARD_END      /* it ended; talk->exit says how */
};

struct lw_talk {
    const struct lw_programs_protocol *protocol;
    struct lw_programs_process process;
    bool is_open; /* there is a process */
    bool has_ended;
    bool has_said_ready;
    bool uses_answers; /* it answers on descriptor 3 */
    bool is_input_closed;
    bool is_output_ended;
    bool is_answers_ended;
    bool is_errors_ended;
    struct lw_programs_exit exit;
    uint32_t left_count; /* processes of its group that still ran when it had ended */
    struct lw_programs_reader output;
    struct lw_programs_reader answers;
    struct lw_programs_reader errors;
    struct lw_programs_sender sender;
    char sent[LW_TALK_SHOWN + 4]; /* the last line, or the header of the last frame */
    struct lw_programs_answer answer;
    char heard[LW_TALK_SHOWN + 4];                    /* the line of it */
    char last[LW_TALK_LAST_LINES][LW_TALK_SHOWN + 4]; /* of its standard error */
    uint32_t last_count;
    uint32_t stray_count; /* lines on standard output that are not of the protocol */
    char stray[LW_TALK_SHOWN + 4];
    uint32_t log_count; /* lines of the protocol's own log */
};

/* 0, or the errno of why it cannot be run. */
int lw_talk_open(struct lw_talk *talk, const struct lw_programs_command *command,
                 const struct lw_programs_protocol *protocol);
/* False without memory. */
bool lw_talk_greet(struct lw_talk *talk, const struct lw_programs_hello *hello);
/*
 * Hands a message over; false without memory. The delivery stays until lw_talk_forget. It is
 * written when it is next heard or finished, so that several come in one piece: a program that
 * takes what one read gives for one message is found however the two are scheduled.
 * has_more_words: with fields that this version does not know; for small messages only.
 */
bool lw_talk_ask(struct lw_talk *talk, int64_t id, const struct lw_delivery *delivery,
                 int64_t deadline_ms, bool has_more_words);
/* The delivery ends: what was not written of it is kept. */
void lw_talk_forget(struct lw_talk *talk, const struct lw_delivery *delivery);
/* No more is said: its input ends once all is written. */
void lw_talk_finish(struct lw_talk *talk);
/* True when all that was said has left our side. */
bool lw_talk_is_written(const struct lw_talk *talk);
/* Waits until `deadline` (monotonic ns). The answer lives until the next call. */
enum lw_heard lw_talk_hear(struct lw_talk *talk, uint64_t deadline);
/* Waits for its end; false when it still runs at the deadline. Answers are thrown away. */
bool lw_talk_wait_end(struct lw_talk *talk, uint64_t deadline);
/* Bytes that it wrote without the end of a line or frame. */
size_t lw_talk_unended(const struct lw_talk *talk);
/* Asks it to end. */
void lw_talk_terminate(struct lw_talk *talk);
/* Kills the group, closes everything. Counts and last lines stay. Fine when not open. */
void lw_talk_close(struct lw_talk *talk);
/* From now on SIGHUP, SIGINT and SIGTERM, which reach us alone, end the processes, too. */
void lw_talk_guard(void);
void lw_talk_deinit(struct lw_talk *talk);
/* Writes how it ended: "exit 1", "killed by signal 9 (SIGKILL)". */
void lw_talk_describe_end(const struct lw_talk *talk, char *out, size_t size);

#endif
