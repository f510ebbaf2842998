/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one thread that works on the file. Commands come through a mailbox and go back, with their
 * answers in them, as letters to the loop: a command belongs to one side at a time, and nothing
 * else is shared. A turn takes everything that has come, writes it in one transaction (so the
 * commit is shared by all that gathered during the last one), then reads for those who wait.
 */
#ifndef LW_BROKERS_SPOOL_WORKER_H
#define LW_BROKERS_SPOOL_WORKER_H

#include "base/host.h"
#include "brokers/spool/fetch.h"
#include "brokers/spool/request.h"

enum { LW_SPOOL_BATCH = 256 };

enum lw_spool_command_kind {
    LW_SPOOL_COMMAND_PUBLISH, /* comes back after the commit */
    LW_SPOOL_COMMAND_SETTLE,  /* comes back at once */
    LW_SPOOL_COMMAND_FETCH,   /* comes back when there is something, or at the end */
    LW_SPOOL_COMMAND_COUNT,   /* comes back at once */
    LW_SPOOL_COMMAND_CLOSE    /* comes back last */
};

struct lw_spool_command {
    struct lw_mail mail;     /* to the worker */
    struct lw_letter letter; /* to the loop */
    struct lw_list link;     /* whoever has it */
    enum lw_spool_command_kind kind;
    uint32_t count;
};

struct lw_spool_broker;

struct lw_spool_publishing {
    struct lw_spool_command command;
    struct lw_spool_broker *broker; /* the loop's */
    struct lw_spool_batch batch;
    struct lw_spool_item items[LW_SPOOL_BATCH];
};

struct lw_spool_verdict {
    struct lw_spool_out *out;
    int64_t delay_ms; /* of a nack; -1: the usual */
    bool is_ack;
};

struct lw_spool_settling {
    struct lw_spool_command command;
    struct lw_spool_broker *broker; /* the loop's */
    struct lw_spool_verdict items[LW_SPOOL_BATCH];
};

struct lw_spool_asking {
    struct lw_spool_command command;
    struct lw_spool_position *position;
    int64_t seen; /* all fresh ones below were received */
    struct lw_spool_fetch fetch;
};

/* How much waits, for a slot that does not fetch. */
struct lw_spool_counting {
    struct lw_spool_command command;
    const struct lw_spool_position *position;
    uint64_t waiting;
};

/* The file fails, or works again; made by the worker, freed by the loop. */
struct lw_spool_notice {
    struct lw_letter letter;
    void *user;
    bool is_down;
    struct lw_error error;
};

struct lw_spool_worker;

struct lw_spool_worker_options {
    struct lw_host *host;
    struct lw_spool_store *store; /* taken; NULL: through the owner's socket */
    const char *path;             /* lives as long as the worker */
    const struct lw_spool_options *file_options;
    long owner_pid;
    bool is_serving; /* others may come through the socket */
    bool is_reader;  /* else it leaves the file to one who is */
    void (*on_notice)(struct lw_letter *letter);
    void *user; /* of notices */
};

enum lw_status
lw_spool_worker_create(const struct lw_spool_worker_options *options,
                       struct lw_spool_worker **ret_worker, struct lw_error *ret_error);
/* CLOSE is the last; an owner that does not answer is not waited for then. Loop thread. */
void lw_spool_worker_post(struct lw_spool_worker *worker, struct lw_spool_command *command);
/* After CLOSE came back: waits for the thread, which ends then; returns its transactions. */
uint64_t lw_spool_worker_destroy(struct lw_spool_worker *worker);
void lw_spool_command_init(struct lw_spool_command *command, enum lw_spool_command_kind kind,
                           void (*on_return)(struct lw_letter *letter));

#endif
