/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of `laneway handler check`, for the files that share it: handler.c (flags, the run),
 * handler_steps.c (what is tried), handler_exchange.c (starting, asking, and what went wrong),
 * handler_report.c.
 * Each step ends in one finding. A step that fails ends the process; the next one gets a fresh
 * one, so that one fault is found once and the others are found too.
 */
#ifndef LW_CLI_HANDLER_CHECK_H
#define LW_CLI_HANDLER_CHECK_H

#include "base/json.h"
#include "cli/command.h"
#include "cli/handler_sample.h"
#include "cli/handler_talk.h"

enum { LW_CHECK_WINDOW = 16, LW_CHECK_AT_ONCE_MAX = 256 };

enum lw_finding_result { LW_FINDING_OK, LW_FINDING_WARNING, LW_FINDING_FAILED };

struct lw_finding {
    const char *id;    /* "binary-value", for scripts */
    const char *title; /* "a value that is no UTF-8 text, in value_b64" */
    enum lw_finding_result result;
    uint64_t took_ns;
    char note[96]; /* with OK: what it answered, how fast */
    char why[256];
    const char *help; /* how to mend it; static */
    char sent[LW_TALK_SHOWN + 4];
    char got[LW_TALK_SHOWN + 4];
    char printed[LW_TALK_LAST_LINES *
                 (LW_TALK_SHOWN + 4)]; /* on standard error, the last lines */
};

struct lw_check {
    struct lw_cli *cli;
    struct lw_programs_command command;
    const char *protocol_name;
    const struct lw_programs_protocol *protocol; /* NULL: once */
    const char *name;                            /* of the handler, as the hello has it */
    int64_t timeout_ms;
    struct lw_bytes value; /* --value: what it must say ok to; null: not given */
    struct lw_samples *samples;
    struct lw_talk talk;
    bool has_talk; /* there is one to deinit */
    bool is_ready; /* its process said ready and has broken nothing */
    int64_t next_id;
    uint64_t answered; /* by the process that is there */
    bool is_late;      /* the fault of the step is that something did not come in time */
    uint64_t extended; /* no answer is late before, since it said that it still works */
    bool has_retired;  /* it ended with 0 between two messages, which it may */
    uint32_t retired;  /* so often in this step */
    bool is_concurrent;
    bool has_said_ok; /* to any message */
    uint32_t stray_count;
    char stray[LW_TALK_SHOWN + 4];
    bool uses_answers;
    struct lw_finding finding; /* of the step that runs */
    uint32_t counts[3];        /* by enum lw_finding_result */
};

/* -- handler_exchange.c -- */
/* Sets the finding; the first fault of a step stays. */
void lw_check_fault(struct lw_check *check, const char *help, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void lw_check_warn(struct lw_check *check, const char *help, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void lw_check_note(struct lw_check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A process that has said ready: the one that is there, or a fresh one. False: a fault is set. */
bool lw_check_start(struct lw_check *check);
/* Ends the process and gathers what it printed. */
void lw_check_end(struct lw_check *check);

/* What helps when it cannot be run. */
const char *lw_check_help_of_spawn(const struct lw_check *check, int failed);

/* A message on its way, and what came of it. */
struct lw_asked {
    const struct lw_sample *sample;
    struct lw_delivery *delivery;
    int64_t wanted_id; /* 0: the next one */
    int64_t id;
    enum lw_verdict verdict;
    bool is_answered;
};

/*
 * Hands all of them over at once and waits until each is answered. False: a fault is set, and the
 * process was ended. `hint` is what helps where the fault itself does not tell.
 */
bool
lw_check_ask(struct lw_check *check, struct lw_asked *asked, size_t count, const char *hint);
/* The two halves of it. */
bool lw_check_hand_over(struct lw_check *check, struct lw_asked *asked, size_t count);
bool lw_check_collect(struct lw_check *check, struct lw_asked *asked, size_t count,
                      const char *hint);
const char *lw_check_verdict_name(enum lw_verdict verdict);

/* -- handler_steps.c -- */
struct lw_check_step {
    const char *id;
    const char *title;
    void (*run)(struct lw_check *check);
    bool is_basic; /* when it fails, the others could not tell anything */
};
/* All of them in order; the last row has no id. */
extern const struct lw_check_step lw_check_steps[];

/* -- handler_once.c -- */
extern const struct lw_check_step lw_check_once_steps[];

/* -- handler_report.c -- */
struct lw_check_report {
    struct lw_check *check;
    struct lw_json json;
    bool is_live; /* a terminal: the step that runs is shown, too */
    bool is_coloured;
    unsigned columns;
};

void lw_check_report_begin(struct lw_check_report *report);
void lw_check_report_step(struct lw_check_report *report, const struct lw_check_step *step);
/* The step has ended: its finding is shown at once, unless it is JSON. */
void lw_check_report_finding(struct lw_check_report *report);
void lw_check_report_end(struct lw_check_report *report, bool is_whole);

#endif
