/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop's side of a spool:
 *
 *   broker -> sources -> slots (a partition each) -> chunks of messages that were read ahead
 *          -> the commands that are being filled (publications, verdicts), and spare ones
 *
 * A slot has one fetch at most at the worker; its chunks are given from and then released. Verdicts
 * and publications gather until the next turn, and go as few commands.
 */
#ifndef LW_BROKERS_SPOOL_SPOOL_H
#define LW_BROKERS_SPOOL_SPOOL_H

#include "brokers/common/events.h"
#include "brokers/common/turns.h"
#include "brokers/spool/options.h"
#include "brokers/spool/worker.h"

struct lw_spool_slot {
    struct lw_list turn; /* of the source, while it has chunks */
    struct lw_spool_source *source;
    struct lw_spool_asking asking;
    struct lw_spool_counting counting;
    bool is_asking;   /* it is at the worker */
    bool is_counting; /* alike */
    uint32_t number;
    int32_t partition;
    uint64_t generation; /* 0: it is not assigned */
    bool is_revoking;
    struct lw_list chunks;
    uint32_t held; /* messages in them */
    uint64_t held_bytes;
    int64_t seen;     /* all fresh ones below were received */
    uint64_t waiting; /* at the file, as the last fetch or count said */
};

/* The dispatcher's struct lw_source. */
struct lw_spool_source {
    struct lw_list link;
    struct lw_spool_broker *broker;
    char *topic;
    char *group;
    struct lw_spool_reader_options options;
    uint32_t queue_size;
    uint64_t queue_bytes_max;
    struct lw_spool_slot *slots;
    uint32_t slot_count;
    struct lw_turns turns;
    uint32_t *rooms; /* by slot; NULL: no bound */
    bool is_wanted;  /* there is demand */
    bool is_stopped;
};

enum lw_spool_state {
    LW_SPOOL_NEW,     /* next: UP by start, CLOSED */
    LW_SPOOL_UP,      /* the worker works; next: CLOSING */
    LW_SPOOL_CLOSING, /* the last command is on its way; next: CLOSED */
    LW_SPOOL_CLOSED   /* end */
};

struct lw_spool_broker {
    struct lw_broker base;
    char *name;
    const char *path; /* in `url` */
    char *url;
    struct lw_spool_options options;
    enum lw_spool_state state;
    struct lw_events events;
    struct lw_list sources;
    struct lw_spool_worker *worker;
    struct lw_spool_publishing *publishing; /* being filled */
    struct lw_spool_settling *settling;
    struct lw_list spare_publishing;
    struct lw_list spare_settling;
    struct lw_spool_command closing;
    struct lw_deferred flush;
    uint32_t publications; /* without a receipt */
    uint64_t publication_bytes;
    bool owes_room; /* said no: PUBLISH_ROOM must follow */
    uint64_t held;  /* messages received and not released */
    uint64_t commits;
};

static inline struct lw_spool_broker *
lw_spool_broker_of(struct lw_broker *broker)
{
    return LW_CONTAINER(broker, struct lw_spool_broker, base);
}

/* -- Sources (source.c) -------------------------------------------------------------------------- */

enum lw_status
lw_spool_source_create(struct lw_spool_broker *broker, const struct lw_source_options *options,
                       struct lw_spool_source **ret_source, struct lw_error *ret_error);
void lw_spool_source_destroy(struct lw_spool_source *source);
/* Finds topic and positions in the file, which the loop still owns. */
enum lw_status lw_spool_source_open(struct lw_spool_source *source,
                                    struct lw_spool_store *store, struct lw_error *ret_error);
/* Says that its slots are assigned. */
void lw_spool_source_assign(struct lw_spool_source *source);
void lw_spool_source_stop(struct lw_spool_source *source);
bool lw_spool_source_end(struct lw_spool_source *source, uint64_t generation);
void lw_spool_source_demand(struct lw_spool_source *source, uint32_t messages, uint64_t bytes);
size_t lw_spool_source_receive(struct lw_spool_source *source, struct lw_message *const out[],
                               size_t n, uint64_t bytes_max, bool *ret_has_more);
/* Asks for what the next call tells, since nobody fetches while there is no demand. */
bool lw_spool_source_lag(struct lw_spool_source *source, struct lw_lag *ret_lag);
void lw_spool_source_settle(struct lw_spool_source *source, const struct lw_settle_item *items,
                            size_t n);

/* -- Commands (producer.c) ------------------------------------------------------------------------ */

size_t lw_spool_publish(struct lw_spool_broker *broker, struct lw_publication *const items[],
                        size_t n);
void
lw_spool_add_verdict(struct lw_spool_broker *broker, const struct lw_spool_verdict *verdict);
/* Sends what gathered. */
void lw_spool_flush(struct lw_spool_broker *broker);
void lw_spool_free_commands(struct lw_spool_broker *broker);

/* -- Administration (admin.c) -------------------------------------------------------------------- */

enum lw_status lw_spool_describe(struct lw_broker *broker, struct lw_topic_info *topics,
                                 size_t n, int64_t timeout_ms, struct lw_error *ret_error);
enum lw_status lw_spool_create(struct lw_broker *broker, struct lw_topic_info *topics, size_t n,
                               int64_t timeout_ms, struct lw_error *ret_error);

#endif
