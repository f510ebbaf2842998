/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions: find the owner, attach, SUBSCRIBE, and again when one ends. What is queued is given
 * back at its end (the broker sends it again, maybe to another), what the dispatcher holds and what
 * is acknowledged stays known. A SUBSCRIBE without an answer is taken back by CLOSE_CONSUMER, or a
 * late success would leave a ghost. Everything is tried for ever, but what can never work before it
 * worked once; each reason is said once per outage.
 */
#include <stdio.h>
#include <string.h>

#include "brokers/pulsar/consumer_state.h"

#define SLOW_RETRY_NS (UINT64_C(10000) * LW_MS)

/* -- Ending ---------------------------------------------------------------------------------------- */

void
lw_pulsar_consumer_clear_queue(struct lw_pulsar_consumer *consumer)
{
    for (struct lw_queue_node *node; (node = lw_queue_pop(&consumer->queue)) != NULL;) {
        struct lw_pulsar_received *member = LW_CONTAINER(node, struct lw_pulsar_received, node);
        lw_pulsar_permits_unqueue(&consumer->permits, 1, member->key.size + member->value.size);
        lw_pulsar_received_end(member);
    }
}

static void
fence_one(struct lw_pulsar_entry *entry, void *user)
{
    struct lw_pulsar_consumer *consumer = user;
    lw_pulsar_nacks_remove(&consumer->nacks, entry);
    lw_pulsar_entry_fence(entry);
}

void
lw_pulsar_consumer_fence(struct lw_pulsar_consumer *consumer)
{
    lw_pulsar_consumer_clear_queue(consumer);
    lw_pulsar_chunks_clear(&consumer->chunks);
    lw_pulsar_held_each(&consumer->entries.held, fence_one, consumer);
}

static void
detach(struct lw_pulsar_consumer *consumer)
{
    lw_pulsar_request_cancel(&consumer->subscribe);
    lw_pulsar_connection_detach(&consumer->user);
    consumer->connection = NULL;
}

static void
wait_and_retry(struct lw_pulsar_consumer *consumer, uint64_t pause_min_ns)
{
    struct lw_host *host = consumer->client->host;
    uint64_t pause = lw_pulsar_backoff_next(&consumer->backoff, consumer->client);
    consumer->state = LW_PULSAR_CONSUMER_WAITING;
    lw_timers_arm(&host->timers, &consumer->retry_timer,
                  host->now + (pause > pause_min_ns ? pause : pause_min_ns));
}

/* Stopping goes on without a session only while there are acks that another one could send. */
static bool
is_stop_over(const struct lw_pulsar_consumer *consumer)
{
    return consumer->is_stopping && (consumer->acks.pending_count == 0 ||
                                     consumer->client->host->now >= consumer->stop_deadline);
}

static void
expect_copy(struct lw_pulsar_entry *entry, void *user)
{
    (void)user;
    entry->is_copy_due = true;
}

void
lw_pulsar_consumer_expect_copies(struct lw_pulsar_consumer *consumer)
{
    lw_pulsar_held_each(&consumer->entries.held, expect_copy, NULL);
}

void
lw_pulsar_consumer_end_session(struct lw_pulsar_consumer *consumer, bool at_once)
{
    detach(consumer);
    lw_pulsar_consumer_return_acks(consumer);
    lw_pulsar_consumer_clear_queue(consumer);
    lw_pulsar_chunks_clear(&consumer->chunks);
    lw_pulsar_consumer_expect_copies(consumer);
    consumer->is_seeking = false;
    if (is_stop_over(consumer)) {
        lw_pulsar_consumer_finish_stop(consumer);
    } else if (at_once) {
        lw_pulsar_consumer_attempt(consumer);
    } else {
        wait_and_retry(consumer, 0);
    }
}

static void
on_close_answered(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
                  const struct lw_pulsar_failure *failure)
{
    (void)request;
    (void)answer;
    (void)failure;
}

void
lw_pulsar_consumer_send_close(struct lw_pulsar_consumer *consumer, lw_pulsar_request_fn fn,
                              uint64_t timeout_ns)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_CLOSE_CONSUMER);
    lw_pulsar_request_cancel(&consumer->close);
    command.close_consumer.id = consumer->user.id;
    command.close_consumer.request_id = lw_pulsar_request_begin(
        consumer->connection, &consumer->close, fn ? fn : on_close_answered, "close a consumer",
        timeout_ns);
    (void)lw_pulsar_connection_send(consumer->connection, &command);
}

static void
close_in_order(struct lw_pulsar_consumer *consumer)
{
    if (lw_pulsar_connection_state(consumer->connection) != LW_PULSAR_CLOSED) {
        lw_pulsar_consumer_send_close(consumer, NULL,
                                      consumer->client->options.operation_timeout_ns);
    }
}

void
lw_pulsar_consumer_restart(struct lw_pulsar_consumer *consumer, bool at_once)
{
    close_in_order(consumer);
    lw_pulsar_consumer_end_session(consumer, at_once);
}

/* -- Failing --------------------------------------------------------------------------------------- */

static enum lw_pulsar_again
again_of(const struct lw_pulsar_consumer *consumer, int32_t code)
{
    if (code < 0) {
        return LW_PULSAR_AGAIN; /* no answer */
    }
    enum lw_pulsar_again again = lw_pulsar_server_error_of(code)->subscribe;
    return again == LW_PULSAR_NEVER && consumer->was_ready ? LW_PULSAR_AGAIN : again;
}

static void
say(struct lw_pulsar_consumer *consumer, const struct lw_pulsar_failure *failure, bool is_final)
{
    if (consumer->has_said && consumer->said_code == failure->code) {
        return;
    }
    struct lw_pulsar_failure told = *failure;
    told.is_retried = !is_final;
    told.error.is_fatal = is_final;
    told.error.is_retriable = !is_final;
    consumer->has_said = true;
    consumer->said_code = failure->code;
    consumer->ops->on_failed(consumer, &told);
}

static void
fail_attempt(struct lw_pulsar_consumer *consumer, const struct lw_pulsar_failure *failure)
{
    enum lw_pulsar_again again = again_of(consumer, failure->code);
    bool is_fatal = again == LW_PULSAR_NEVER;
    if (is_stop_over(consumer)) {
        lw_pulsar_consumer_finish_stop(consumer);
        return;
    }
    if (is_fatal) {
        consumer->state = LW_PULSAR_CONSUMER_FAILED;
    } else {
        wait_and_retry(consumer, again == LW_PULSAR_AGAIN_SLOWLY ? SLOW_RETRY_NS : 0);
    }
    say(consumer, failure, is_fatal);
}

/* -- Subscribing ----------------------------------------------------------------------------------- */

static void
begin_session(struct lw_pulsar_consumer *consumer)
{
    struct lw_host *host = consumer->client->host;
    lw_pulsar_backoff_reset(&consumer->backoff);
    lw_pulsar_permits_begin(&consumer->permits);
    lw_pulsar_consumer_read_anew(consumer);
    consumer->has_rewound = false;
    consumer->state = LW_PULSAR_CONSUMER_READY;
    consumer->was_ready = true;
    consumer->has_said = false;
    consumer->figures.sessions++;
    if (consumer->is_stopping) {
        lw_pulsar_consumer_go_on_stopping(consumer);
        return;
    }
    lw_pulsar_consumer_flush_acks(consumer);
    lw_timers_arm(&host->timers, &consumer->nack_timer, lw_pulsar_nacks_next(&consumer->nacks));
    if (!consumer->is_begun && consumer->options->type != LW_PULSAR_SUB_FAILOVER) {
        lw_pulsar_consumer_begin(consumer);
    }
    if (consumer->wants_seek) {
        lw_pulsar_consumer_begin_seek(consumer);
    }
    lw_pulsar_consumer_flow(consumer);
}

static void
on_subscribed(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
              const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_consumer *consumer = LW_CONTAINER(request, struct lw_pulsar_consumer,
                                                       subscribe);
    if (answer) {
        begin_session(consumer);
        return;
    }
    if (failure->code == -1) {
        close_in_order(consumer); /* a late success must not stay */
    }
    detach(consumer);
    fail_attempt(consumer, failure);
}

static void
put_pairs(struct lw_proto_writer *writer, const struct lw_property *pairs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        lw_pulsar_list_put_pair(writer, lw_bytes_of(pairs[i].name),
                                lw_bytes_of(pairs[i].value));
    }
}

/* Lists of the command: of what fits, which is far more than anybody writes. */
struct lists {
    uint8_t metadata[4096];
    uint8_t properties[4096];
    uint8_t ranges[4096];
};

static void
set_lists(const struct lw_pulsar_consumer_settings *options, struct lists *lists,
          struct lw_pulsar_subscribe *subscribe)
{
    struct lw_proto_writer metadata = lw_proto_writer_of(lists->metadata,
                                                         sizeof lists->metadata);
    struct lw_proto_writer properties = lw_proto_writer_of(lists->properties,
                                                           sizeof lists->properties);
    struct lw_proto_writer ranges = lw_proto_writer_of(lists->ranges, sizeof lists->ranges);
    put_pairs(&metadata, options->properties, options->property_count);
    put_pairs(&properties, options->subscription_properties,
              options->subscription_property_count);
    subscribe->metadata = lw_pulsar_list_of(&metadata);
    subscribe->subscription_properties = lw_pulsar_list_of(&properties);
    if (options->type != LW_PULSAR_SUB_KEY_SHARED) {
        return;
    }
    for (size_t i = 0; i < options->range_count; i++) {
        lw_pulsar_list_put_range(&ranges, options->ranges[i]);
    }
    subscribe->has |= LW_PULSAR_SUBSCRIBE_HAS_KEY_SHARED_META;
    subscribe->key_shared_meta.mode = options->key_shared_mode;
    subscribe->key_shared_meta.ranges = lw_pulsar_list_of(&ranges);
    subscribe->key_shared_meta.allow_out_of_order_delivery = options->allows_out_of_order;
}

static void
set_reader(const struct lw_pulsar_consumer_settings *options,
           struct lw_pulsar_subscribe *subscribe)
{
    if (!options->is_reader) {
        return;
    }
    subscribe->durable = false;
    subscribe->force_topic_creation = false;
    subscribe->start_message_rollback_duration_sec = options->start_seconds_ago;
    if (options->has_start_id) {
        subscribe->start_message_id = options->start_id;
        subscribe->has |= LW_PULSAR_SUBSCRIBE_HAS_START_MESSAGE_ID;
    }
}

static void
send_subscribe(struct lw_pulsar_consumer *consumer)
{
    const struct lw_pulsar_consumer_settings *options = consumer->options;
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_SUBSCRIBE);
    struct lw_pulsar_subscribe *subscribe = &command.subscribe;
    struct lists lists;
    subscribe->topic = lw_bytes_of(consumer->topic);
    subscribe->subscription = lw_bytes_of(options->subscription);
    subscribe->sub_type = options->type;
    subscribe->consumer_id = consumer->user.id;
    subscribe->consumer_name = lw_bytes_of(options->consumer_name ? options->consumer_name
                                                                  : consumer->name);
    subscribe->priority_level = options->priority_level;
    subscribe->has |= LW_PULSAR_SUBSCRIBE_HAS_PRIORITY_LEVEL;
    subscribe->read_compacted = options->reads_compacted;
    subscribe->initial_position = options->initial_position;
    subscribe->replicate_subscription_state = options->replicates_state;
    subscribe->force_topic_creation = !options->only_existing;
    set_reader(options, subscribe);
    if (lw_pulsar_consumer_rewinds(consumer)) {
        subscribe->has |= LW_PULSAR_SUBSCRIBE_HAS_CONSUMER_EPOCH;
        subscribe->consumer_epoch = consumer->epoch;
    }
    set_lists(options, &lists, subscribe);
    subscribe->request_id = lw_pulsar_request_begin(
        consumer->connection, &consumer->subscribe, on_subscribed, consumer->what,
        consumer->client->options.operation_timeout_ns);
    (void)lw_pulsar_connection_send(consumer->connection, &command);
}

static void
on_found(struct lw_pulsar_find *find, const struct lw_pulsar_find_result *result)
{
    struct lw_pulsar_consumer *consumer = LW_CONTAINER(find, struct lw_pulsar_consumer, find);
    struct lw_pulsar_failure failure;
    if (result->failure) {
        consumer->moved_to[0] = '\0'; /* ours knows whether that still holds */
        fail_attempt(consumer, result->failure);
        return;
    }
    if (!lw_pulsar_connection_attach(result->owner, &consumer->user)) {
        lw_pulsar_failure_disconnected(consumer->client, consumer->what, NULL, &failure);
        fail_attempt(consumer, &failure);
        return;
    }
    consumer->connection = result->owner;
    send_subscribe(consumer);
}

void
lw_pulsar_consumer_attempt(struct lw_pulsar_consumer *consumer)
{
    consumer->state = LW_PULSAR_CONSUMER_SUBSCRIBING;
    struct lw_bytes assigned = { NULL, 0 };
    if (consumer->moved_to[0] != '\0') {
        lw_pulsar_find_owner_at(consumer->client, &consumer->find, consumer->topic,
                                consumer->moved_to, on_found);
        return;
    }
    if (consumer->assigned[0] != '\0') {
        assigned = lw_bytes_of(consumer->assigned);
    }
    lw_pulsar_find_owner(consumer->client, &consumer->find, consumer->topic, assigned,
                         on_found);
    consumer->assigned[0] = '\0'; /* once */
}

void
lw_pulsar_consumer_on_retry(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    lw_pulsar_consumer_attempt(LW_CONTAINER(timer, struct lw_pulsar_consumer, retry_timer));
}

/* -- Seeking --------------------------------------------------------------------------------------- */

/* CLOSE_CONSUMER came before this, and a new session is on its way; non-persistent topics have
 * none. */
static void
on_sought(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
          const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_consumer *consumer = LW_CONTAINER(request, struct lw_pulsar_consumer,
                                                       seek);
    bool has_session = lw_pulsar_consumer_has_session(consumer) && consumer->is_seeking;
    consumer->is_seeking = false;
    if (failure && failure->code == -1) {
        consumer->wants_seek =
            true; /* nobody knows whether it was done: the next session asks */
    } else if (failure) {
        consumer->has_said = false;
        say(consumer, failure, false);
    }
    if (has_session && !answer) {
        lw_pulsar_consumer_restart(consumer, true); /* what was given up here comes again */
    } else if (has_session) {
        if (consumer->options->type != LW_PULSAR_SUB_FAILOVER) {
            lw_pulsar_consumer_begin(consumer);
        }
        lw_pulsar_consumer_flow(consumer);
    }
}

/* The members from the index on are set: only they come again. */
static void
set_target(struct lw_pulsar_seek *seek, const struct lw_pulsar_seek_target *target,
           uint8_t *buffer, size_t size)
{
    struct lw_proto_writer writer = lw_proto_writer_of(buffer, size);
    if (target->is_time) {
        seek->message_publish_time = target->publish_time_ms;
        seek->has |= LW_PULSAR_SEEK_HAS_PUBLISH_TIME;
        return;
    }
    seek->has |= LW_PULSAR_SEEK_HAS_MESSAGE_ID;
    seek->message_id = lw_pulsar_message_id_of(target->id.ledger, target->id.entry);
    int32_t from = target->id.batch_index;
    for (int32_t i = 0; from > 0 && i < target->id.batch_size; i += 64) {
        uint64_t word = from <= i ? UINT64_MAX : from - i >= 64 ? 0 : UINT64_MAX << (from - i);
        int32_t left = target->id.batch_size - i;
        word &= left >= 64 ? UINT64_MAX : (UINT64_C(1) << left) - 1;
        lw_pulsar_list_put_number(&writer, word);
    }
    seek->message_id.ack_set = lw_pulsar_list_of(&writer);
}

void
lw_pulsar_consumer_begin_seek(struct lw_pulsar_consumer *consumer)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_SEEK);
    uint8_t buffer[4096];
    consumer->wants_seek = false;
    lw_pulsar_consumer_flush_acks(consumer);
    consumer->has_horizon = false;
    lw_pulsar_consumer_fence(consumer);
    consumer->is_seeking = true;
    if (consumer->is_begun) {
        consumer->is_begun = false;
        consumer->is_lost_due = true;
        lw_host_defer(consumer->client->host, &consumer->deferred);
    }
    lw_pulsar_request_cancel(&consumer->seek);
    command.seek.consumer_id = consumer->user.id;
    set_target(&command.seek, &consumer->seek_target, buffer, sizeof buffer);
    command.seek.request_id = lw_pulsar_request_begin(
        consumer->connection, &consumer->seek, on_sought, "seek",
        consumer->client->options.operation_timeout_ns);
    (void)lw_pulsar_connection_send(consumer->connection, &command);
}

bool
lw_pulsar_consumer_ask_last(struct lw_pulsar_consumer *consumer,
                            struct lw_pulsar_request *request, lw_pulsar_request_fn fn)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_GET_LAST_MESSAGE_ID);
    if (!lw_pulsar_consumer_has_session(consumer)) {
        return false;
    }
    lw_pulsar_request_cancel(request);
    command.get_last_message_id.consumer_id = consumer->user.id;
    command.get_last_message_id.request_id = lw_pulsar_request_begin(
        consumer->connection, request, fn, "ask for the last message",
        consumer->client->options.operation_timeout_ns);
    return lw_pulsar_connection_send(consumer->connection, &command);
}

/* A broker closes the connection over one that it does not know. */
bool
lw_pulsar_consumer_ask_stats(struct lw_pulsar_consumer *consumer,
                             struct lw_pulsar_request *request, lw_pulsar_request_fn fn)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_CONSUMER_STATS);
    if (consumer->state != LW_PULSAR_CONSUMER_READY || consumer->is_seeking) {
        return false;
    }
    lw_pulsar_request_cancel(request);
    command.consumer_stats.consumer_id = consumer->user.id;
    command.consumer_stats.request_id = lw_pulsar_request_begin(
        consumer->connection, request, fn, "ask for the backlog",
        consumer->client->options.operation_timeout_ns);
    return lw_pulsar_connection_send(consumer->connection, &command);
}

/* -- What the broker says -------------------------------------------------------------------------- */

static void
on_active(struct lw_pulsar_consumer *consumer, bool is_active)
{
    if (is_active && !consumer->is_begun && !consumer->is_seeking) {
        lw_pulsar_consumer_begin(consumer);
    } else if (!is_active && consumer->is_begun) {
        lw_pulsar_consumer_ack_parts(consumer);
        lw_pulsar_consumer_flush_acks(consumer); /* the next one waits a moment for them */
        lw_pulsar_consumer_lose(consumer);
    }
}

static void
on_close(struct lw_pulsar_consumer *consumer, const struct lw_pulsar_close *close)
{
    struct lw_bytes url = consumer->client->address.is_tls
                              ? close->assigned_broker_service_url_tls
                              : close->assigned_broker_service_url;
    bool is_named = url.data && url.size > 0 && url.size < sizeof consumer->assigned;
    if (is_named) {
        memcpy(consumer->assigned, url.data, url.size);
        consumer->assigned[url.size] = '\0';
    }
    if (consumer->state == LW_PULSAR_CONSUMER_SUBSCRIBING) {
        close_in_order(consumer); /* it may be about the one before: ours must not stay */
    }
    lw_pulsar_consumer_end_session(consumer, is_named);
}

/* Ids are those of the old cluster: what is held here, and not acknowledged there, stays there. */
static void
on_migrated(struct lw_pulsar_consumer *consumer, const struct lw_pulsar_topic_migrated *to)
{
    lw_pulsar_topic_moved(consumer->client, consumer->topic, to, consumer->moved_to,
                          sizeof consumer->moved_to);
    lw_pulsar_consumer_flush_acks(consumer);
    if (consumer->is_begun) {
        lw_pulsar_consumer_lose(consumer);
    }
    lw_pulsar_consumer_fence(consumer);
    lw_pulsar_consumer_drop_acks(consumer);
    lw_pulsar_consumer_end_session(consumer, false);
}

static void
on_end_of_topic(struct lw_pulsar_consumer *consumer)
{
    if (!consumer->is_end_told) {
        consumer->is_end_told = true;
        consumer->ops->on_end_of_topic(consumer);
    }
}

static void
on_command(struct lw_pulsar_user *user, const struct lw_pulsar_command *command)
{
    struct lw_pulsar_consumer *consumer = LW_CONTAINER(user, struct lw_pulsar_consumer, user);
    switch (command->type) {
    case LW_PULSAR_ACTIVE_CONSUMER_CHANGE:
        on_active(consumer, command->active_consumer_change.is_active);
        break;
    case LW_PULSAR_CLOSE_CONSUMER:
        on_close(consumer, &command->close_consumer);
        break;
    case LW_PULSAR_REACHED_END_OF_TOPIC:
        on_end_of_topic(consumer);
        break;
    case LW_PULSAR_TOPIC_MIGRATED:
        on_migrated(consumer, &command->topic_migrated);
        break;
    case LW_PULSAR_ACK_RESPONSE:
        (void)lw_pulsar_consumer_on_ack_response(consumer, command);
        break;
    default: /* the broker's numbers, not ours */
        break;
    }
}

static void
on_room(struct lw_pulsar_user *user)
{
    (void)user; /* what a consumer sends is small */
}

static void
on_closed(struct lw_pulsar_user *user, struct lw_pulsar_connection *connection,
          const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_consumer *consumer = LW_CONTAINER(user, struct lw_pulsar_consumer, user);
    (void)failure; /* said if the next attempt fails as well */
    if (connection == consumer->connection) {
        lw_pulsar_consumer_end_session(consumer, false);
    }
}

const struct lw_pulsar_user_ops lw_pulsar_consumer_user_ops = {
    .on_command = on_command,
    .on_message = lw_pulsar_consumer_on_message,
    .on_room = on_room,
    .on_closed = on_closed,
};
