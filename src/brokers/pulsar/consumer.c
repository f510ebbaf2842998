/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer's life and the calls of its source. What is told to the source in answer to a call is
 * deferred, so that no callback runs inside one. Stopping sends the last acks, waits for their
 * receipts, closes in order; without a session it goes on trying while acks are left, until its
 * deadline.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "brokers/pulsar/consumer_state.h"

/* -- Telling the source ---------------------------------------------------------------------------- */

static void
tell(struct lw_deferred *deferred)
{
    struct lw_pulsar_consumer *consumer = LW_CONTAINER(deferred, struct lw_pulsar_consumer,
                                                       deferred);
    if (consumer->is_lost_due) {
        consumer->is_lost_due = false;
        consumer->ops->on_lost(consumer);
    }
    if (consumer->is_begin_due) {
        consumer->is_begin_due = false;
        consumer->ops->on_begun(consumer);
        if (consumer->queue.first && !consumer->is_paused) {
            consumer->ops->on_ready(consumer);
        }
    }
    if (consumer->state == LW_PULSAR_CONSUMER_STOPPED && !consumer->is_stop_told) {
        consumer->is_stop_told = true;
        consumer->ops->on_stopped(consumer); /* may destroy it */
    }
}

void
lw_pulsar_consumer_begin(struct lw_pulsar_consumer *consumer)
{
    consumer->is_begun = true;
    lw_pulsar_consumer_read_anew(consumer);
    if (consumer->is_lost_due) {
        consumer->is_begin_due = true; /* after the end of the one before */
    } else {
        consumer->ops->on_begun(consumer);
    }
}

void
lw_pulsar_consumer_lose(struct lw_pulsar_consumer *consumer)
{
    consumer->has_horizon = false;
    lw_pulsar_consumer_fence(consumer);
    consumer->is_begun = false;
    if (consumer->is_begin_due) {
        consumer->is_begin_due = false; /* never heard of */
    } else {
        consumer->ops->on_lost(consumer);
    }
}

/* -- Making ---------------------------------------------------------------------------------------- */

/* The same for all consumers of a subscription, whose settings they share, and no other's. */
static void
make_name(struct lw_pulsar_consumer *consumer)
{
    uint64_t place = (uint64_t)(uintptr_t)consumer->options;
    uint64_t number = lw_hash_u64(place, (uint64_t)getpid());
    (void)snprintf(consumer->name, sizeof consumer->name, "laneway-%010llx",
                   (unsigned long long)(number & 0xffffffffffULL));
}

static void
init_timers(struct lw_pulsar_consumer *consumer)
{
    lw_timer_init(&consumer->retry_timer, lw_pulsar_consumer_on_retry);
    lw_timer_init(&consumer->ack_timer, lw_pulsar_consumer_on_ack_timer);
    lw_timer_init(&consumer->nack_timer, lw_pulsar_consumer_on_nack_timer);
    lw_timer_init(&consumer->timeout_timer, lw_pulsar_consumer_on_timeout_timer);
    lw_deferred_init(&consumer->deferred, tell);
    lw_deferred_init(&consumer->ack_flush, lw_pulsar_consumer_on_ack_deferred);
}

static void
on_chunk_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_consumer *consumer = LW_CONTAINER(timer, struct lw_pulsar_consumer,
                                                       chunk_timer);
    uint64_t next = lw_pulsar_chunks_expire(&consumer->chunks, now);
    lw_timers_arm(&consumer->client->host->timers, timer, next);
}

static void
on_stop_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_consumer *consumer = LW_CONTAINER(timer, struct lw_pulsar_consumer,
                                                       stop_timer);
    (void)now;
    lw_pulsar_consumer_finish_stop(consumer);
}

static void
init_parts(struct lw_pulsar_consumer *consumer)
{
    const struct lw_pulsar_consumer_settings *options = consumer->options;
    lw_pulsar_permits_init(&consumer->permits, options->type == LW_PULSAR_SUB_SHARED,
                           options->receiver_queue_size, options->queue_bytes_max);
    lw_pulsar_acks_init(&consumer->acks);
    lw_pulsar_nacks_init(&consumer->nacks);
    consumer->chunks = (struct lw_pulsar_chunks){
        .count_max = options->chunked_pending_max,
        .bytes_max = options->chunked_bytes_max,
        .expiry_ns = options->chunk_expiry_ns,
        .acks_oldest = options->acks_oldest_chunked,
        .give_up = lw_pulsar_consumer_give_up_chunk,
        .user = consumer,
    };
    lw_list_init(&consumer->chunks.pending);
    lw_list_init(&consumer->flights);
    lw_list_init(&consumer->spare_flights);
    lw_list_init(&consumer->timeouts);
    init_timers(consumer);
    lw_timer_init(&consumer->chunk_timer, on_chunk_timer);
    lw_timer_init(&consumer->stop_timer, on_stop_timer);
}

/* The seam has six. NOLINTBEGIN(readability-function-size) */
struct lw_pulsar_consumer *
lw_pulsar_consumer_create(struct lw_pulsar_client *client, const char *topic,
                          const struct lw_pulsar_consumer_settings *options, uint32_t slot,
                          const struct lw_pulsar_consumer_ops *ops, void *user)
{
    size_t size = strlen(topic) + 1;
    struct lw_pulsar_consumer *consumer = lw_alloc(sizeof *consumer + size);
    if (!consumer) {
        return NULL;
    }
    consumer->client = client;
    if (lw_pulsar_entries_init(&consumer->entries, &client->arrays,
                               lw_host_random(client->host)) != LW_STATUS_OK) {
        lw_free(consumer);
        return NULL;
    }
    memcpy(consumer->topic, topic, size);
    (void)snprintf(consumer->what, sizeof consumer->what, "subscribe to %s", topic);
    consumer->options = options;
    consumer->ops = ops;
    consumer->source = user;
    consumer->slot = slot;
    consumer->user.ops = &lw_pulsar_consumer_user_ops;
    consumer->user.kind = LW_PULSAR_USER_CONSUMER;
    consumer->user.id = client->next_consumer_id++;
    consumer->is_in_order = lw_pulsar_consumer_rewinds(consumer);
    init_parts(consumer);
    make_name(consumer);
    return consumer;
}
/* NOLINTEND(readability-function-size) */

static void
disarm_all(struct lw_pulsar_consumer *consumer)
{
    struct lw_timers *timers = &consumer->client->host->timers;
    lw_timers_disarm(timers, &consumer->retry_timer);
    lw_timers_disarm(timers, &consumer->ack_timer);
    lw_timers_disarm(timers, &consumer->nack_timer);
    lw_timers_disarm(timers, &consumer->timeout_timer);
    lw_timers_disarm(timers, &consumer->chunk_timer);
    lw_timers_disarm(timers, &consumer->stop_timer);
    lw_deferred_cancel(&consumer->ack_flush);
}

static void
leave(struct lw_pulsar_consumer *consumer)
{
    lw_pulsar_find_cancel(&consumer->find);
    lw_pulsar_request_cancel(&consumer->subscribe);
    lw_pulsar_request_cancel(&consumer->close);
    lw_pulsar_request_cancel(&consumer->seek);
    lw_pulsar_connection_detach(&consumer->user);
    consumer->connection = NULL;
}

void
lw_pulsar_consumer_destroy(struct lw_pulsar_consumer *consumer)
{
    if (!consumer) {
        return;
    }
    disarm_all(consumer);
    lw_deferred_cancel(&consumer->deferred);
    leave(consumer);
    lw_pulsar_consumer_clear_queue(consumer);
    lw_pulsar_chunks_clear(&consumer->chunks);
    lw_pulsar_consumer_free_flights(consumer);
    lw_pulsar_acks_deinit(&consumer->acks);
    lw_pulsar_nacks_deinit(&consumer->nacks);
    lw_pulsar_entries_deinit(&consumer->entries);
    lw_pulsar_codec_destroy(consumer->codec);
    lw_free(consumer->ids_buffer);
    lw_free(consumer);
}

static void
count_without_messages(struct lw_pulsar_entry *entry, void *user)
{
    *(uint32_t *)user += entry->left == 0;
}

/* Entries are kept for their messages, or for acks, which nobody sends any more. */
bool
lw_pulsar_consumer_is_empty(struct lw_pulsar_consumer *consumer)
{
    uint32_t count = 0;
    if (consumer->state != LW_PULSAR_CONSUMER_STOPPED || !consumer->is_stop_told) {
        return false;
    }
    lw_pulsar_consumer_drop_acks(consumer);
    lw_pulsar_held_each(&consumer->entries.held, count_without_messages, &count);
    return consumer->entries.taken_count == count;
}

void *
lw_pulsar_consumer_user(const struct lw_pulsar_consumer *consumer)
{
    return consumer->source;
}

const char *
lw_pulsar_consumer_topic(const struct lw_pulsar_consumer *consumer)
{
    return consumer->topic;
}

const struct lw_pulsar_consumer_settings *
lw_pulsar_consumer_settings_of(const struct lw_pulsar_consumer *consumer)
{
    return consumer->options;
}

/* -- Starting and stopping ------------------------------------------------------------------------- */

void
lw_pulsar_consumer_start(struct lw_pulsar_consumer *consumer)
{
    if (consumer->state == LW_PULSAR_CONSUMER_PENDING) {
        lw_pulsar_consumer_attempt(consumer);
    }
}

void
lw_pulsar_consumer_pause(struct lw_pulsar_consumer *consumer)
{
    consumer->is_paused = true;
}

void
lw_pulsar_consumer_finish_stop(struct lw_pulsar_consumer *consumer)
{
    struct lw_pulsar_connection *connection = consumer->connection;
    if (consumer->state == LW_PULSAR_CONSUMER_STOPPED) {
        return;
    }
    bool is_closed = !connection || lw_pulsar_connection_state(connection) == LW_PULSAR_CLOSED;
    if (!is_closed && !consumer->is_close_answered) {
        lw_pulsar_consumer_send_close(consumer, NULL, LW_MS);
    }
    disarm_all(consumer);
    lw_pulsar_consumer_return_acks(consumer);
    leave(consumer);
    lw_pulsar_consumer_clear_queue(consumer);
    lw_pulsar_chunks_clear(&consumer->chunks);
    consumer->state = LW_PULSAR_CONSUMER_STOPPED;
    lw_host_defer(consumer->client->host, &consumer->deferred);
}

static void
on_stop_closed(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
               const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_consumer *consumer = LW_CONTAINER(request, struct lw_pulsar_consumer,
                                                       close);
    (void)answer;
    (void)failure;
    consumer->is_close_answered = true;
    lw_pulsar_consumer_finish_stop(consumer);
}

void
lw_pulsar_consumer_go_on_stopping(struct lw_pulsar_consumer *consumer)
{
    consumer->state = LW_PULSAR_CONSUMER_STOPPING;
    if (consumer->is_closing) {
        return;
    }
    lw_pulsar_consumer_flush_acks(consumer);
    /* What is behind an unfinished one of the compacted view cannot be acknowledged. */
    bool has_pending = consumer->acks.pending_count > 0 && !consumer->options->reads_compacted;
    if (consumer->is_closing || !consumer->connection || has_pending ||
        consumer->acks.sent_count > 0) {
        return;
    }
    consumer->is_closing = true;
    lw_pulsar_consumer_send_close(consumer, on_stop_closed,
                                  consumer->client->options.operation_timeout_ns);
}

void
lw_pulsar_consumer_stop(struct lw_pulsar_consumer *consumer, uint64_t deadline)
{
    struct lw_host *host = consumer->client->host;
    bool is_trying = consumer->state == LW_PULSAR_CONSUMER_SUBSCRIBING ||
                     consumer->state == LW_PULSAR_CONSUMER_WAITING;
    if (consumer->is_stopping || consumer->state == LW_PULSAR_CONSUMER_STOPPED) {
        return;
    }
    consumer->is_stopping = true;
    consumer->is_paused = true;
    consumer->stop_deadline = deadline;
    lw_pulsar_consumer_ack_parts(consumer);
    bool has_acks = consumer->acks.pending_count > 0;
    lw_timers_arm(&host->timers, &consumer->stop_timer, deadline);
    if (consumer->state == LW_PULSAR_CONSUMER_READY) {
        lw_pulsar_consumer_go_on_stopping(consumer);
    } else if (!is_trying || !has_acks) {
        lw_pulsar_consumer_finish_stop(consumer);
    }
}

/* -- Receiving ------------------------------------------------------------------------------------- */

void
lw_pulsar_consumer_flow(struct lw_pulsar_consumer *consumer)
{
    struct lw_pulsar_command command;
    if (consumer->is_paused || consumer->is_seeking ||
        consumer->state != LW_PULSAR_CONSUMER_READY) {
        return;
    }
    uint32_t permits = lw_pulsar_permits_grant(&consumer->permits);
    if (permits > 0) {
        command = lw_pulsar_command_of(LW_PULSAR_FLOW);
        command.flow.consumer_id = consumer->user.id;
        command.flow.message_permits = permits;
        (void)lw_pulsar_connection_send(consumer->connection, &command);
    }
}

void
lw_pulsar_consumer_demand(struct lw_pulsar_consumer *consumer, uint32_t messages,
                          uint64_t bytes)
{
    lw_pulsar_permits_demand(&consumer->permits, messages, bytes);
    lw_pulsar_consumer_flow(consumer);
}

bool
lw_pulsar_consumer_is_ready(const struct lw_pulsar_consumer *consumer)
{
    return consumer->queue.first != NULL && !consumer->is_paused;
}

/* The next one that is still ours; NULL: none. */
LW_INLINE struct lw_pulsar_received *
take_next(struct lw_pulsar_consumer *consumer)
{
    struct lw_queue_node *node;
    while ((node = lw_queue_pop(&consumer->queue)) != NULL) {
        struct lw_pulsar_received *member = LW_CONTAINER(node, struct lw_pulsar_received, node);
        if (__builtin_expect(!member->arrival->entry->is_fenced, 1)) {
            return member;
        }
        lw_pulsar_permits_unqueue(&consumer->permits, 1, member->key.size + member->value.size);
        lw_pulsar_received_end(member); /* its entry was timed out: it comes again */
    }
    return NULL;
}

size_t
lw_pulsar_consumer_receive(struct lw_pulsar_consumer *consumer, struct lw_message *const out[],
                           size_t n, uint64_t *bytes)
{
    bool is_watched = consumer->options->ack_timeout_ns > 0;
    uint32_t slot = consumer->slot;
    size_t count = 0;
    uint64_t size = 0;
    if (consumer->is_paused) {
        return 0;
    }
    while (count < n && (count == 0 || size < *bytes)) {
        struct lw_pulsar_received *member = take_next(consumer);
        if (!member) {
            break;
        }
        size += member->key.size + member->value.size;
        lw_pulsar_received_fill(member, slot, out[count++]);
        if (is_watched) {
            lw_pulsar_consumer_watch(consumer, member->arrival->entry);
        }
    }
    *bytes -= size < *bytes ? size : *bytes;
    lw_pulsar_permits_take(&consumer->permits, (uint32_t)count, size);
    return count;
}

/* -- The rest -------------------------------------------------------------------------------------- */

void
lw_pulsar_consumer_seek(struct lw_pulsar_consumer *consumer,
                        const struct lw_pulsar_seek_target *target)
{
    consumer->seek_target = *target;
    consumer->seek_target.id.first_chunk = (struct lw_bytes){ NULL, 0 };
    consumer->wants_seek = true;
    if (consumer->state == LW_PULSAR_CONSUMER_READY) {
        lw_pulsar_consumer_begin_seek(consumer);
    }
}

void
lw_pulsar_consumer_resubscribe(struct lw_pulsar_consumer *consumer)
{
    if (consumer->state == LW_PULSAR_CONSUMER_READY) {
        lw_pulsar_consumer_restart(consumer, true);
    }
}

void
lw_pulsar_consumer_read(const struct lw_pulsar_consumer *consumer,
                        struct lw_pulsar_consumer_figures *ret_figures)
{
    *ret_figures = consumer->figures;
    ret_figures->permits_granted = consumer->permits.granted;
    ret_figures->permits_out = consumer->permits.out > 0 ? (uint32_t)consumer->permits.out : 0;
    ret_figures->queued = consumer->permits.queued;
    ret_figures->held = (uint32_t)consumer->entries.held.count -
                        consumer->entries.remembered_count;
    ret_figures->acks_unconfirmed = consumer->acks.pending_count + consumer->acks.sent_count;
    ret_figures->chunked_pending = consumer->chunks.count;
}
