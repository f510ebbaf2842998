/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making, starting and ending a dispatcher, and the warnings that its whole picture allows.
 * Brokers and engines are given by the service; a failed start undoes itself through deinit.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "dispatcher/receive.h"

#define DELIVERY_CHUNK 256
#define IN_FLIGHT_MAX 16777216U

static void
on_new_delivery(void *object, uint32_t index, void *user)
{
    struct lw_delivery *delivery = object;
    struct lw_dispatcher *dispatcher = user;
    (void)index;
    delivery->completions = &dispatcher->completions;
    lw_list_init(&delivery->held);
    lw_mail_init(&delivery->mail);
    lw_timer_init(&delivery->timer, lw_dispatcher_on_timer);
    delivery->state = LW_STATE_FREE;
}

static uint64_t
on_turn(struct lw_turn *turn, uint64_t now)
{
    return lw_dispatcher_step(LW_CONTAINER(turn, struct lw_dispatcher, turn), now);
}

enum lw_status
lw_dispatcher_init(struct lw_dispatcher *dispatcher, struct lw_host *host, int wake_fd,
                   const struct lw_dispatcher_options *options, struct lw_error *ret_error)
{
    memset(dispatcher, 0, sizeof(*dispatcher));
    if (options->concurrency == 0) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "E0105",
                            "concurrency is 0: at least one slot is needed");
    }
    dispatcher->host = host;
    dispatcher->options = *options;
    dispatcher->name = lw_copy_text(options->name ? options->name : "laneway");
    if (!dispatcher->name) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a dispatcher");
    }
    dispatcher->options.name = dispatcher->name;
    dispatcher->turn.fn = on_turn;
    lw_list_init(&dispatcher->turn.link);
    lw_list_init(&dispatcher->settling);
    lw_completions_init(&dispatcher->completions, host, wake_fd);
    dispatcher->drain_deadline = LW_NEVER;
    lw_shutdown_init(dispatcher);
    lw_assignment_init(dispatcher);
    return LW_STATUS_OK;
}

static void
destroy_parts(struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->engine_count; i++) {
        dispatcher->engines[i]->ops->destroy(dispatcher->engines[i]);
    }
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        lw_stream_destroy(dispatcher->streams[i]);
    }
    for (uint32_t i = 0; i < dispatcher->link_count; i++) {
        struct lw_link *link = dispatcher->links[i];
        lw_timers_disarm(&dispatcher->host->timers, &link->commit_timer);
        lw_timers_disarm(&dispatcher->host->timers, &link->revoke_timer);
        link->broker->ops->destroy(link->broker);
        lw_free(link->commit_items);
        lw_free(link);
    }
}

static void
destroy_outcomes(struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->deliveries.count; i++) {
        struct lw_delivery *delivery = lw_pool_at(&dispatcher->deliveries, i);
        lw_assert(delivery != NULL);
        lw_outcome_destroy(delivery->outcome);
    }
}

void
lw_dispatcher_deinit(struct lw_dispatcher *dispatcher)
{
    lw_assert(dispatcher->held_count == 0);
    lw_mailbox_retire(
        &dispatcher->completions.mailbox); /* handlers' own threads may be in it */
    lw_host_remove_turn(&dispatcher->turn);
    lw_timers_disarm(&dispatcher->host->timers, &dispatcher->drain_timer);
    lw_timers_disarm(&dispatcher->host->timers, &dispatcher->hurry_timer);
    lw_timers_disarm(&dispatcher->host->timers, &dispatcher->dead_letter_timer);
    lw_timers_disarm(&dispatcher->host->timers, &dispatcher->memory_timer);
    destroy_parts(dispatcher);
    if (dispatcher->deliveries.chunks) {
        destroy_outcomes(dispatcher);
        lw_pool_deinit(&dispatcher->deliveries);
        lw_scheduler_deinit(&dispatcher->scheduler);
        lw_ranks_deinit(&dispatcher->receivable);
    }
    lw_free(dispatcher->engines);
    lw_free(dispatcher->streams);
    lw_free(dispatcher->links);
    lw_free(dispatcher->name);
}

/* -- adding -------------------------------------------------------------------------------------- */

static bool
append(void **array, uint32_t *count, void *item)
{
    void **grown = lw_resize_array(*array, *count + 1, sizeof(void *));
    if (!grown) {
        return false;
    }
    grown[(*count)++] = item;
    *array = grown;
    return true;
}

enum lw_status
lw_dispatcher_add_broker(struct lw_dispatcher *dispatcher, struct lw_broker *broker,
                         struct lw_link **ret_link)
{
    struct lw_link *link = lw_alloc(sizeof(*link));
    void *links = dispatcher->links;
    if (!link || !append(&links, &dispatcher->link_count, link)) {
        lw_free(link);
        return LW_STATUS_NO_MEMORY;
    }
    dispatcher->links = links;
    link->broker = broker;
    link->dispatcher = dispatcher;
    lw_settle_init_link(link);
    lw_assignment_init_link(link);
    if (ret_link) {
        *ret_link = link;
    }
    return LW_STATUS_OK;
}

enum lw_status
lw_dispatcher_add_engine(struct lw_dispatcher *dispatcher, struct lw_engine *engine)
{
    void *engines = dispatcher->engines;
    if (!append(&engines, &dispatcher->engine_count, engine)) {
        return LW_STATUS_NO_MEMORY;
    }
    dispatcher->engines = engines;
    return LW_STATUS_OK;
}

struct lw_link *
lw_dispatcher_find_link(struct lw_dispatcher *dispatcher, const char *name)
{
    for (uint32_t i = 0; i < dispatcher->link_count; i++) {
        if (strcmp(dispatcher->links[i]->broker->name, name) == 0) {
            return dispatcher->links[i];
        }
    }
    return NULL;
}

enum lw_status
lw_dispatcher_add_stream(struct lw_dispatcher *dispatcher,
                         const struct lw_subscription_options *options,
                         struct lw_engine *engine, struct lw_error *ret_error)
{
    if (dispatcher->phase != LW_PHASE_NEW) {
        return lw_error_set(ret_error, LW_STATUS_STATE, "E0702",
                            "subscriptions can only be added before run");
    }
    struct lw_link *link = options->broker
                               ? lw_dispatcher_find_link(dispatcher, options->broker)
                               : NULL;
    if (!link) {
        return lw_error_set(ret_error, LW_STATUS_NOT_FOUND, "E0201",
                            "no broker is called \"%s\"",
                            options->broker ? options->broker : "");
    }
    struct lw_stream *stream = NULL;
    enum lw_status status = lw_stream_create(dispatcher, options, link, engine, &stream,
                                             ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    status = lw_stream_open(stream, options, ret_error);
    void *streams = dispatcher->streams;
    if (status == LW_STATUS_OK && !append(&streams, &dispatcher->stream_count, stream)) {
        status = lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory");
    }
    if (status != LW_STATUS_OK) {
        lw_stream_close(stream);
        return status;
    }
    dispatcher->streams = streams;
    return LW_STATUS_OK;
}

void
lw_dispatcher_drop_last_stream(struct lw_dispatcher *dispatcher)
{
    lw_assert(dispatcher->phase == LW_PHASE_NEW && dispatcher->stream_count > 0);
    lw_stream_close(dispatcher->streams[--dispatcher->stream_count]);
}

/* -- starting -------------------------------------------------------------------------------------- */

/* The smallest priority above `previous`, INT64_MAX when there is none. */
static int64_t
next_priority(const struct lw_dispatcher *dispatcher, int64_t previous)
{
    int64_t next = INT64_MAX;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        int64_t priority = dispatcher->streams[i]->subscription.priority;
        if (priority > previous && priority < next) {
            next = priority;
        }
    }
    return next;
}

static void
set_rank(struct lw_dispatcher *dispatcher, int64_t priority, uint32_t rank)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        struct lw_subscription *subscription = &dispatcher->streams[i]->subscription;
        if (subscription->priority == priority) {
            lw_rank_node_init(&subscription->choose, rank);
            lw_rank_node_init(&subscription->receive, rank);
        }
    }
}

/* Dense ranks in order of priority; returns how many there are. */
static uint32_t
rank_streams(struct lw_dispatcher *dispatcher)
{
    uint32_t rank = 0;
    int64_t priority = next_priority(dispatcher, INT64_MIN);
    while (priority != INT64_MAX) {
        set_rank(dispatcher, priority, rank++);
        priority = next_priority(dispatcher, priority);
    }
    return rank;
}

static uint64_t
in_flight_max(const struct lw_dispatcher *dispatcher)
{
    uint64_t sum = LW_RECEIVE_BATCH + LW_FINISHED_BATCH * dispatcher->link_count;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        sum += (uint64_t)dispatcher->streams[i]->subscription.limits.count_max +
               LW_RECEIVE_BATCH;
    }
    return sum < IN_FLIGHT_MAX ? sum : IN_FLIGHT_MAX;
}

static enum lw_status
make_tables(struct lw_dispatcher *dispatcher)
{
    uint32_t ranks = rank_streams(dispatcher);
    uint32_t bound = (uint32_t)in_flight_max(dispatcher);
    if (ranks > LW_RANKS_MAX) {
        return LW_STATUS_TOO_LARGE;
    }
    enum lw_status status = lw_scheduler_init(
        &dispatcher->scheduler, dispatcher->options.concurrency, ranks ? ranks : 1, bound,
        lw_host_random(dispatcher->host));
    if (status != LW_STATUS_OK) {
        return status;
    }
    dispatcher->scheduler.now = &dispatcher->host->now;
    status = lw_ranks_init(&dispatcher->receivable, ranks ? ranks : 1);
    if (status != LW_STATUS_OK) {
        lw_scheduler_deinit(&dispatcher->scheduler);
        return status;
    }
    status = lw_pool_init(&dispatcher->deliveries, sizeof(struct lw_delivery), bound,
                          DELIVERY_CHUNK, on_new_delivery, dispatcher);
    if (status != LW_STATUS_OK) {
        lw_scheduler_deinit(&dispatcher->scheduler);
        lw_ranks_deinit(&dispatcher->receivable);
        dispatcher->deliveries.chunks = NULL;
    }
    return status;
}

static bool
does_read(const struct lw_stream *stream, const char *topic)
{
    const struct lw_broker_ops *ops = stream->link->broker->ops;
    return ops->reads ? ops->reads(stream->source, topic) : strcmp(stream->topic, topic) == 0;
}

static const struct lw_stream *
find_consumer(const struct lw_dispatcher *dispatcher, const struct lw_link *link,
              const char *topic)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        const struct lw_stream *stream = dispatcher->streams[i];
        if (stream->link == link && does_read(stream, topic)) {
            return stream;
        }
    }
    return NULL;
}

/* Said, or an error; `why` goes on where the name of the topic ended. */
static enum lw_status
warn_retry(const struct lw_stream *stream, const char *code, const char *event, const char *why,
           struct lw_error *ret_error)
{
    struct lw_dispatcher *dispatcher = stream->dispatcher;
    if (dispatcher->options.retry_warnings == LW_WARNINGS_ERROR) {
        return lw_error_set(ret_error, LW_STATUS_CONFIG, "E0309",
                            "the retry topic \"%s\" of %s %s", stream->retry_topic,
                            stream->topic, why);
    }
    char text[160];
    (void)snprintf(text, sizeof(text), "a retry topic %s", why);
    lw_host_log(dispatcher->host, LW_LOG_WARN, event, text, "code=%s topic=%s retry_topic=%s",
                code, stream->topic, stream->retry_topic);
    return LW_STATUS_OK;
}

/*
 * A retry topic that nobody here consumes, unless its tiers are read or it is marked external; and
 * one whose consumer is given its copies at once, whatever their delay.
 */
static enum lw_status
warn_retry_topics(struct lw_dispatcher *dispatcher, struct lw_error *ret_error)
{
    enum lw_status status = LW_STATUS_OK;
    if (dispatcher->options.retry_warnings == LW_WARNINGS_SILENT) {
        return LW_STATUS_OK;
    }
    for (uint32_t i = 0; i < dispatcher->stream_count && status == LW_STATUS_OK; i++) {
        const struct lw_stream *stream = dispatcher->streams[i];
        if (!stream->retry_topic || stream->reads_tiers) {
            continue;
        }
        const struct lw_stream *reader = find_consumer(dispatcher, stream->link,
                                                       stream->retry_topic);
        if (!reader && !stream->is_retry_external) {
            status = warn_retry(stream, "W0301", "retry.unconsumed",
                                "is consumed by nobody here; mark it external if somebody else "
                                "does",
                                ret_error);
        } else if (reader && reader->ignores_delays) {
            status = warn_retry(stream, "W0316", "retry.undelayed",
                                "is consumed by a subscription that is neither shared nor "
                                "key_shared: the broker delays nothing for it",
                                ret_error);
        }
    }
    return status;
}

/* Who reads a retry topic waits for as long as its copies are delayed. */
static void
expect_delays(const struct lw_dispatcher *dispatcher, const struct lw_stream *writer)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        const struct lw_stream *reader = dispatcher->streams[i];
        const struct lw_broker_ops *ops = reader->link->broker->ops;
        if (ops->expect_delay && reader->link == writer->link &&
            does_read(reader, writer->retry_topic)) {
            const struct lw_backoff *backoff = &writer->policy.backoff;
            ops->expect_delay(reader->source, backoff->max_ms + backoff->jitter_ms);
        }
    }
}

static void
expect_all_delays(const struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        const struct lw_stream *stream = dispatcher->streams[i];
        if (stream->retry_topic) {
            expect_delays(dispatcher, stream);
        }
    }
}

/* Follows dead letters from consumer to consumer; true when they come back to `first`. */
static bool
comes_back(const struct lw_dispatcher *dispatcher, const struct lw_stream *first)
{
    const struct lw_stream *stream = first;
    for (uint32_t i = 0; stream && stream->dead_letter_topic && i < dispatcher->stream_count;
         i++) {
        stream = find_consumer(dispatcher, stream->dead_letter_link, stream->dead_letter_topic);
        if (stream == first) {
            return true;
        }
    }
    return false;
}

/* A message that can never work would go round for ever. */
static enum lw_status
refuse_loops(const struct lw_dispatcher *dispatcher, struct lw_error *ret_error)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        const struct lw_stream *stream = dispatcher->streams[i];
        if (comes_back(dispatcher, stream)) {
            lw_error_set(ret_error, LW_STATUS_CONFIG, "E0302",
                         "dead letters of \"%s\" go to \"%s\" and come back: a loop",
                         stream->topic, stream->dead_letter_topic);
            lw_error_help(ret_error, "choose a dead-letter topic that nobody here reads");
            return LW_STATUS_CONFIG;
        }
    }
    return LW_STATUS_OK;
}

static enum lw_status
start_parts(struct lw_dispatcher *dispatcher, struct lw_error *ret_error)
{
    for (uint32_t i = 0; i < dispatcher->engine_count; i++) {
        struct lw_engine *engine = dispatcher->engines[i];
        enum lw_status status = engine->ops->start(engine, ret_error);
        if (status != LW_STATUS_OK) {
            return status;
        }
        engine->has_changed = true;
    }
    for (uint32_t i = 0; i < dispatcher->link_count; i++) {
        struct lw_link *link = dispatcher->links[i];
        enum lw_status status = link->broker->ops->start(link->broker, ret_error);
        if (status != LW_STATUS_OK) {
            return status;
        }
        link->is_started = true;
    }
    return LW_STATUS_OK;
}

enum lw_status
lw_dispatcher_start(struct lw_dispatcher *dispatcher, struct lw_error *ret_error)
{
    if (dispatcher->phase != LW_PHASE_NEW) {
        return lw_error_set(ret_error, LW_STATUS_STATE, "E0702", "it was started before");
    }
    enum lw_status status = refuse_loops(dispatcher, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    status = warn_retry_topics(dispatcher, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    status = make_tables(dispatcher);
    if (status != LW_STATUS_OK) {
        return lw_error_set(ret_error, status, "",
                            "no memory for the tables of the dispatcher");
    }
    expect_all_delays(dispatcher);
    dispatcher->phase = LW_PHASE_RUNNING;
    dispatcher->started_at = dispatcher->host->now;
    lw_host_add_turn(dispatcher->host, &dispatcher->turn);
    status = start_parts(dispatcher, ret_error);
    if (status != LW_STATUS_OK) {
        dispatcher->end_status = status;
        lw_shutdown_begin(dispatcher, true);
    }
    return status;
}

/* -- while running ---------------------------------------------------------------------------------- */

void
lw_dispatcher_pause(struct lw_dispatcher *dispatcher, struct lw_stream *stream, bool is_paused)
{
    stream->subscription.is_paused = is_paused;
    lw_scheduler_update(&dispatcher->scheduler, &stream->subscription);
    lw_receive_update(dispatcher, stream);
}

void
lw_dispatcher_fail(struct lw_dispatcher *dispatcher, enum lw_status status,
                   const struct lw_error *error)
{
    if (dispatcher->end_status == LW_STATUS_OK) {
        dispatcher->end_status = status;
        dispatcher->end_error = *error;
        lw_host_log(dispatcher->host, LW_LOG_ERROR, "service.failed", error->message,
                    "code=%s help=%s", error->code, error->help);
    }
    lw_shutdown_begin(dispatcher, false);
}
