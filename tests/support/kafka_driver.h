/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives the Kafka broker's table directly, in place of a dispatcher: a loop of its own, events
 * and messages counted, every message done as soon as it was received. Used against the mock
 * cluster (a process of its own) and against a real broker. Every wait has a deadline and fails
 * the test that runs into it.
 */
#ifndef TESTS_SUPPORT_KAFKA_DRIVER_H
#define TESTS_SUPPORT_KAFKA_DRIVER_H

#include <laneway/plugin.h>

#include "base/loop.h"

#define DRIVER_SLOTS_MAX 256
#define DRIVER_BATCH 256

/*
 * Every wait is for an event and ends with it; this only ends a test that would hang, so it is far
 * above what a machine with other work needs.
 */
#define DRIVER_PATIENCE_MS 100000

struct driver_slot {
    struct lw_source *source;
    uint32_t slot;
    uint64_t generation; /* 0: free */
    char topic[256];
    int32_t partition;
    bool is_companion;
    bool is_revoking;
    int64_t next;      /* after the last one received or the end, -1 none */
    int64_t committed; /* last confirmed, -1 none */
};

struct driver {
    struct lw_loop *loop;
    struct lw_host *host;
    struct lw_broker *broker;
    struct lw_turn turn;
    struct lw_source *sources[8];
    size_t source_count;
    struct driver_slot slots[DRIVER_SLOTS_MAX];
    size_t slot_count;   /* used entries, free ones included */
    bool is_paused;      /* receives nothing */
    bool is_revoke_sent; /* the commit before an answer */
    bool keeps_revoke;   /* does not answer REVOKING */
    uint64_t bytes_max;
    size_t batch_max;

    uint64_t received;
    uint64_t jumps; /* positions that did not ascend in an ownership */
    uint64_t receives;
    int64_t longest_gap_ns;
    uint64_t received_at;
    uint64_t assigned;
    uint64_t revoked;
    uint64_t lost;
    uint64_t positions;
    int64_t last_position;
    uint64_t commits;
    uint64_t commits_failed;
    enum lw_status commit_status;
    bool is_committing;
    uint64_t receipts[LW_STATUS_INTERNAL + 1]; /* by status */
    uint64_t receipt_count;
    struct lw_publication *last_receipt;
    uint64_t rooms;
    uint64_t ups;
    uint64_t downs;
    uint64_t source_errors;
    struct lw_error last_error;
    bool is_closed;
    uint64_t warnings; /* log lines at WARN or worse */
    char last_warning[128];

    /* Called for every message before it is released; may be NULL. true: the test keeps it. */
    bool (*on_message)(struct driver *driver, struct lw_source *source,
                       struct lw_message *message, void *user);
    void *user;
};

/* Makes the loop and the broker; `properties` end with a NULL name and may be NULL. */
void
driver_open(struct driver *driver, const char *address, const struct lw_property *properties);
struct lw_source *driver_subscribe(struct driver *driver, const char *topic, const char *group,
                                   const struct lw_property *properties);
struct lw_source *
driver_subscribe_with(struct driver *driver, const struct lw_source_options *options);
void driver_start(struct driver *driver);
/* Turns until `is_done` says so; fails after timeout_ms. */
void driver_run(struct driver *driver, bool (*is_done)(struct driver *driver, void *user),
                void *user, int64_t timeout_ms);
/* Turns for that long: to see that nothing comes, never to wait for something. */
void driver_pass(struct driver *driver, int64_t ms);
/* Receives again after is_paused. */
void driver_resume(struct driver *driver);
void driver_run_received(struct driver *driver, uint64_t count, int64_t timeout_ms);
/* Until BROKER_DOWN or BROKER_UP was said at least that often. */
void driver_run_downs(struct driver *driver, uint64_t count, int64_t timeout_ms);
void driver_run_ups(struct driver *driver, uint64_t count, int64_t timeout_ms);
void driver_run_receipts(struct driver *driver, uint64_t count, int64_t timeout_ms);
void driver_run_assigned(struct driver *driver, size_t slots, int64_t timeout_ms);
/* Commits the position of every owned slot and waits for the answer. */
void driver_commit(struct driver *driver);
/* The same without waiting. */
enum lw_status driver_commit_begin(struct driver *driver);
size_t driver_owned(const struct driver *driver);
struct driver_slot *driver_find(struct driver *driver, const char *topic, int32_t partition);
/* Publishes one; the publication must live until its receipt. */
void driver_publish(struct driver *driver, struct lw_publication *publication);
/* Gives up the sources, closes, waits for CLOSED, destroys all. */
void driver_close(struct driver *driver);

/* -- The mock cluster, a process of its own ------------------------------------------------------ */

struct mock {
    int pid;
    int in;  /* its stdin */
    int out; /* its stdout */
    char address[64];
};

/* `topics` as NAME:PARTITIONS,...; more arguments may be NULL. */
void mock_open(struct mock *mock, const char *topics);
/* Sends one command and fails the test unless the answer is "ok". */
void mock_command(struct mock *mock, const char *command);
void mock_close(struct mock *mock);

#endif
