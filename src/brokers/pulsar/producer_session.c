/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of a producer: one successful PRODUCER each. It is made when there is something to send
 * and tried again for ever: the dispatcher decides how long a message is worth it. A generated name
 * is kept and given back with a higher epoch. A PRODUCER without an answer is taken back by
 * CLOSE_PRODUCER, or a late success would leave a ghost that holds the name.
 *
 * What the broker says about the topic (no right, no such topic, terminated, fenced, a schema that
 * is not ours) is told to whoever waits at once, and tried again when something comes. What may
 * pass (not ready, taken by another producer, over quota, not reachable) keeps what waits until its
 * send time-out. A fenced producer comes back with its old topic epoch, which the broker refuses
 * while the other one has the topic, so two never fight.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "brokers/pulsar/producer_state.h"

static void attempt(struct lw_pulsar_producer *producer);

static bool
is_idle(const struct lw_pulsar_producer *producer)
{
    return producer->messages == 0;
}

/* -- Ending ---------------------------------------------------------------------------------------- */

/* All that is pending has to be sent again. */
static void
rewind_pending(struct lw_pulsar_producer *producer)
{
    for (struct lw_list *at = producer->pending.next; at != &producer->pending; at = at->next) {
        struct lw_pulsar_op *op = LW_CONTAINER(at, struct lw_pulsar_op, link);
        op->frames_sent = 0;
        op->receipts = 0;
    }
    producer->unsent = lw_pulsar_producer_head(producer);
}

void
lw_pulsar_producer_detach(struct lw_pulsar_producer *producer)
{
    lw_pulsar_request_cancel(&producer->create);
    lw_pulsar_request_cancel(&producer->ask_schema);
    lw_pulsar_connection_detach(&producer->user);
    producer->connection = NULL;
    rewind_pending(producer);
}

void
lw_pulsar_producer_end(struct lw_pulsar_producer *producer)
{
    struct lw_pulsar_publisher *publisher = lw_pulsar_publisher_of(producer);
    lw_pulsar_producer_destroy(producer);
    lw_pulsar_publisher_free_room(publisher); /* goes on with a close, too */
}

static void
on_closed_unasked(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
                  const struct lw_pulsar_failure *failure)
{
    (void)request, (void)answer, (void)failure;
}

static void
send_close(struct lw_pulsar_producer *producer, lw_pulsar_request_fn fn)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_CLOSE_PRODUCER);
    lw_pulsar_request_cancel(&producer->close);
    command.close_producer.id = producer->user.id;
    command.close_producer.request_id = lw_pulsar_request_begin(
        producer->connection, &producer->close, fn, "close a producer",
        lw_pulsar_publisher_of(producer)->client->options.operation_timeout_ns);
    (void)lw_pulsar_connection_send(producer->connection, &command);
}

void
lw_pulsar_producer_take_back(struct lw_pulsar_producer *producer)
{
    if (producer->connection &&
        lw_pulsar_connection_state(producer->connection) != LW_PULSAR_CLOSED) {
        send_close(producer, on_closed_unasked);
    }
}

static void
on_close_answered(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
                  const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_producer *producer = LW_CONTAINER(request, struct lw_pulsar_producer,
                                                       close);
    (void)answer, (void)failure;
    lw_pulsar_producer_detach(producer);
    if (is_idle(producer)) {
        lw_pulsar_producer_end(producer);
        return;
    }
    lw_pulsar_publisher_of(producer)->producer_count++;
    lw_pulsar_producer_set_state(producer, LW_PULSAR_PRODUCER_WAITING);
    producer->epoch++;
    lw_pulsar_producer_wake(producer); /* it was asked for meanwhile */
}

void
lw_pulsar_producer_close(struct lw_pulsar_producer *producer)
{
    if (producer->state == LW_PULSAR_PRODUCER_CLOSING) {
        return;
    }
    if (producer->state != LW_PULSAR_PRODUCER_READY) {
        lw_pulsar_producer_take_back(producer);
        lw_pulsar_producer_end(producer);
        return;
    }
    lw_pulsar_publisher_of(producer)->producer_count--;
    lw_pulsar_producer_set_state(producer, LW_PULSAR_PRODUCER_CLOSING);
    send_close(producer, on_close_answered);
}

/* -- Failing --------------------------------------------------------------------------------------- */

static void
enter_waiting(struct lw_pulsar_producer *producer, uint64_t pause)
{
    struct lw_host *host = lw_pulsar_producer_host(producer);
    lw_pulsar_producer_unbatch(producer);
    if (producer->state == LW_PULSAR_PRODUCER_CLOSING) {
        lw_pulsar_publisher_of(producer)->producer_count++;
    }
    lw_pulsar_producer_set_state(producer, LW_PULSAR_PRODUCER_WAITING);
    producer->retry_at = host->now + pause;
    lw_pulsar_producer_defer_pump(producer); /* from which it goes on, or ends in a close */
}

static bool
needs_schema(struct lw_pulsar_producer *producer, const struct lw_pulsar_failure *failure)
{
    return failure->code == LW_PULSAR_INCOMPATIBLE_SCHEMA && !producer->has_schema;
}

static void
note_refusal(struct lw_pulsar_producer *producer, const struct lw_pulsar_failure *failure)
{
    bool is_exclusive = lw_pulsar_publisher_of(producer)->options->access_mode !=
                        LW_PULSAR_ACCESS_EXCLUSIVE_WITH_FENCING;
    if (failure->code == LW_PULSAR_PRODUCER_FENCED && is_exclusive) {
        producer->has_topic_epoch =
            false; /* it may have the topic when the other one is gone */
    }
    if (failure->code == LW_PULSAR_INCOMPATIBLE_SCHEMA) {
        producer->has_schema = false; /* it may have changed meanwhile */
    }
}

void
lw_pulsar_producer_fail(struct lw_pulsar_producer *producer,
                        const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_publisher *publisher = lw_pulsar_publisher_of(producer);
    enum lw_status verdict = lw_pulsar_publisher_verdict(failure);
    lw_pulsar_producer_detach(producer);
    if (needs_schema(producer, failure)) {
        producer->wants_schema = true;
        enter_waiting(producer, 0);
        return;
    }
    note_refusal(producer, failure);
    if (lw_pulsar_publisher_is_worth_saying(&producer->backoff, failure)) {
        lw_pulsar_publisher_say_blocked(publisher, producer->name, &failure->error,
                                        &producer->is_blocked);
    }
    if (verdict != LW_STATUS_OK) {
        lw_pulsar_producer_refuse_all(producer, verdict);
    }
    enter_waiting(producer, lw_pulsar_publisher_pause(publisher, &producer->backoff, failure));
}

/* -- Schemas ---------------------------------------------------------------------------------------- */

static struct lw_bytes
keep(uint8_t **at, struct lw_bytes from)
{
    struct lw_bytes kept = { *at, from.size };
    if (from.size > 0) {
        memcpy(*at, from.data, from.size);
        *at += from.size;
    }
    return kept;
}

static bool
keep_schema(struct lw_pulsar_producer *producer, const struct lw_pulsar_schema *schema)
{
    size_t properties = schema->properties.count > 0 ? schema->properties.size : 0;
    uint8_t *at = lw_alloc(schema->name.size + schema->schema_data.size + properties + 1);
    if (!at) {
        return false;
    }
    lw_free(producer->schema_memory);
    producer->schema_memory = at;
    producer->schema_type = schema->type;
    producer->schema_name = keep(&at, schema->name);
    producer->schema_data = keep(&at, schema->schema_data);
    producer->schema_properties = schema->properties;
    producer->schema_properties.at = at;
    (void)keep(&at, (struct lw_bytes){ schema->properties.at, properties });
    producer->has_schema = true;
    return true;
}

static void send_producer(struct lw_pulsar_producer *producer);

static void
on_schema(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
          const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_producer *producer = LW_CONTAINER(request, struct lw_pulsar_producer,
                                                       ask_schema);
    const struct lw_pulsar_get_schema_response *response = answer ? &answer->get_schema_response
                                                                  : NULL;
    producer->wants_schema = false;
    if (failure && failure->code == -1) {
        lw_pulsar_producer_fail(producer, failure);
        return;
    }
    if (response && (response->has & LW_PULSAR_GET_SCHEMA_RESPONSE_HAS_SCHEMA)) {
        (void)keep_schema(producer, &response->schema);
    }
    if (producer->has_schema) {
        send_producer(producer);
        return;
    }
    struct lw_pulsar_failure refused;
    lw_pulsar_failure_server(lw_pulsar_publisher_of(producer)->client, producer->what,
                             LW_PULSAR_INCOMPATIBLE_SCHEMA,
                             lw_bytes_of("the topic's schema could not be read"), &refused);
    producer->has_schema = true; /* asked for: this is not asked again before the pause */
    lw_pulsar_producer_fail(producer, &refused);
}

/* The topic's own schema is what we show it: our copies and replies are bytes that fit. */
static void
ask_schema(struct lw_pulsar_producer *producer)
{
    struct lw_pulsar_client *client = lw_pulsar_publisher_of(producer)->client;
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_GET_SCHEMA);
    command.get_schema.topic = lw_bytes_of(producer->topic->name);
    command.get_schema.request_id = lw_pulsar_request_begin(
        producer->connection, &producer->ask_schema, on_schema, producer->what,
        client->options.operation_timeout_ns);
    (void)lw_pulsar_connection_send(producer->connection, &command);
}

/* -- Creating --------------------------------------------------------------------------------------- */

static void
keep_version(struct lw_pulsar_producer *producer, struct lw_bytes version)
{
    producer->schema_version_size = 0;
    if (version.size > 0 && version.size <= sizeof producer->schema_version) {
        memcpy(producer->schema_version, version.data, version.size);
        producer->schema_version_size = version.size;
    }
}

/* False without memory. */
static bool
begin_first(struct lw_pulsar_producer *producer,
            const struct lw_pulsar_producer_success *success)
{
    if (producer->was_ready) {
        return true;
    }
    if (!producer->is_name_ours) {
        lw_free(producer->producer_name);
        producer->producer_name = lw_copy_text_n(success->producer_name.data,
                                                 success->producer_name.size);
    }
    producer->was_ready = producer->producer_name != NULL;
    /* Never below the broker's: with deduplication it would drop them and say it took them. */
    uint64_t first = lw_pulsar_publisher_of(producer)->options->first_sequence_id;
    uint64_t next = (uint64_t)(success->last_sequence_id + 1);
    producer->next_id = next > first ? next : first;
    return producer->was_ready;
}

static void
begin_session(struct lw_pulsar_producer *producer,
              const struct lw_pulsar_producer_success *success)
{
    struct lw_pulsar_publisher *publisher = lw_pulsar_publisher_of(producer);
    struct lw_pulsar_failure failure;
    if (!begin_first(producer, success)) {
        lw_pulsar_producer_take_back(producer);
        lw_pulsar_failure_disconnected(publisher->client, producer->what, NULL, &failure);
        lw_pulsar_producer_fail(producer, &failure);
        return;
    }
    keep_version(producer, success->schema_version);
    if (success->has & LW_PULSAR_PRODUCER_SUCCESS_HAS_TOPIC_EPOCH) {
        producer->has_topic_epoch = true;
        producer->topic_epoch = success->topic_epoch;
    }
    lw_pulsar_producer_set_state(producer, LW_PULSAR_PRODUCER_READY);
    lw_pulsar_publisher_say_blocked(publisher, producer->name, NULL, &producer->is_blocked);
    lw_pulsar_publisher_free_room(publisher);
    lw_pulsar_producer_pump(producer);
}

static void
enter_queued(struct lw_pulsar_producer *producer)
{
    struct lw_error error;
    if (producer->state == LW_PULSAR_PRODUCER_QUEUED) {
        return;
    }
    lw_pulsar_producer_set_state(producer, LW_PULSAR_PRODUCER_QUEUED);
    (void)lw_error_set(&error, LW_STATUS_UNAVAILABLE, "E0505",
                       "another producer has %s for itself; waiting until it goes",
                       producer->name);
    lw_pulsar_publisher_say_blocked(lw_pulsar_publisher_of(producer), producer->name, &error,
                                    &producer->is_blocked);
}

static void
on_created(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
           const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_producer *producer = LW_CONTAINER(request, struct lw_pulsar_producer,
                                                       create);
    if (answer && !answer->producer_success.producer_ready) {
        request->keeps = true;
        enter_queued(producer);
    } else if (answer) {
        begin_session(producer, &answer->producer_success);
    } else {
        if (failure->code == -1) {
            lw_pulsar_producer_take_back(producer); /* a late success must not stay */
        }
        lw_pulsar_producer_fail(producer, failure);
    }
}

static void
set_schema(const struct lw_pulsar_producer *producer,
           struct lw_pulsar_producer_command *command)
{
    if (producer->has_schema && producer->schema_memory) {
        command->has |= LW_PULSAR_PRODUCER_HAS_SCHEMA;
        command->schema.name = producer->schema_name;
        command->schema.schema_data = producer->schema_data;
        command->schema.type = producer->schema_type;
        command->schema.properties = producer->schema_properties;
    }
}

static void
set_identity(struct lw_pulsar_producer *producer, struct lw_pulsar_producer_command *command)
{
    command->topic = lw_bytes_of(producer->name);
    command->producer_id = producer->user.id;
    command->producer_name = lw_bytes_of(producer->producer_name);
    command->user_provided_producer_name = producer->is_name_ours;
    command->epoch = producer->epoch;
    command->initial_subscription_name = lw_bytes_of(producer->topic->initial_subscription);
    command->producer_access_mode = lw_pulsar_publisher_of(producer)->options->access_mode;
    if (producer->has_topic_epoch) {
        command->has |= LW_PULSAR_PRODUCER_HAS_TOPIC_EPOCH;
        command->topic_epoch = producer->topic_epoch;
    }
}

static void
send_producer(struct lw_pulsar_producer *producer)
{
    struct lw_pulsar_publisher *publisher = lw_pulsar_publisher_of(producer);
    const struct lw_pulsar_producer_settings *options = publisher->options;
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_PRODUCER);
    uint8_t pairs[4096];
    struct lw_proto_writer writer = lw_proto_writer_of(pairs, sizeof pairs);
    for (size_t i = 0; i < options->property_count; i++) {
        lw_pulsar_list_put_pair(&writer, lw_bytes_of(options->properties[i].name),
                                lw_bytes_of(options->properties[i].value));
    }
    command.producer.metadata = lw_pulsar_list_of(&writer);
    set_identity(producer, &command.producer);
    set_schema(producer, &command.producer);
    producer->epoch++; /* of the next attempt */
    command.producer.request_id = lw_pulsar_request_begin(
        producer->connection, &producer->create, on_created, producer->what,
        publisher->client->options.operation_timeout_ns);
    (void)lw_pulsar_connection_send(producer->connection, &command);
}

static void
on_found(struct lw_pulsar_find *find, const struct lw_pulsar_find_result *result)
{
    struct lw_pulsar_producer *producer = LW_CONTAINER(find, struct lw_pulsar_producer, find);
    struct lw_pulsar_failure failure;
    if (result->failure) {
        producer->moved_to[0] = '\0'; /* ours knows whether that still holds */
        lw_pulsar_producer_fail(producer, result->failure);
        return;
    }
    if (!lw_pulsar_connection_attach(result->owner, &producer->user)) {
        lw_pulsar_failure_disconnected(lw_pulsar_publisher_of(producer)->client, producer->what,
                                       NULL, &failure);
        lw_pulsar_producer_fail(producer, &failure);
        return;
    }
    producer->connection = result->owner;
    lw_pulsar_producer_set_state(producer, LW_PULSAR_PRODUCER_CREATING);
    if (producer->wants_schema) {
        ask_schema(producer);
    } else {
        send_producer(producer);
    }
}

static void
attempt(struct lw_pulsar_producer *producer)
{
    struct lw_bytes assigned = { NULL, 0 };
    if (producer->assigned[0] != '\0') {
        assigned = lw_bytes_of(producer->assigned);
    }
    struct lw_pulsar_client *client = lw_pulsar_publisher_of(producer)->client;
    lw_pulsar_producer_set_state(producer, LW_PULSAR_PRODUCER_FINDING);
    if (producer->moved_to[0] != '\0') {
        lw_pulsar_find_owner_at(client, &producer->find, producer->name, producer->moved_to,
                                on_found);
    } else {
        lw_pulsar_find_owner(client, &producer->find, producer->name, assigned, on_found);
    }
    producer->assigned[0] = '\0'; /* once */
}

void
lw_pulsar_producer_wake(struct lw_pulsar_producer *producer)
{
    struct lw_host *host = lw_pulsar_producer_host(producer);
    if (producer->state != LW_PULSAR_PRODUCER_WAITING || is_idle(producer)) {
        return;
    }
    if (producer->retry_at <= host->now) {
        lw_timers_disarm(&host->timers, &producer->retry_timer);
        attempt(producer);
    } else if (!lw_timer_is_armed(&producer->retry_timer)) {
        lw_timers_arm(&host->timers, &producer->retry_timer, producer->retry_at);
    }
}

void
lw_pulsar_producer_on_retry(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_producer *producer = LW_CONTAINER(timer, struct lw_pulsar_producer,
                                                       retry_timer);
    producer->retry_at = now;
    lw_pulsar_producer_wake(producer);
}

/* -- What the broker says --------------------------------------------------------------------------- */

static void
take_assigned(struct lw_pulsar_producer *producer, const struct lw_pulsar_close *close)
{
    struct lw_bytes url = lw_pulsar_publisher_of(producer)->client->address.is_tls
                              ? close->assigned_broker_service_url_tls
                              : close->assigned_broker_service_url;
    if (url.size > 0 && url.size < sizeof producer->assigned) {
        memcpy(producer->assigned, url.data, url.size);
        producer->assigned[url.size] = '\0';
    }
}

/* The topic was unloaded, terminated, deleted, or is over its quota: asking again tells. */
static void
on_closed_by_broker(struct lw_pulsar_producer *producer, const struct lw_pulsar_close *close)
{
    struct lw_pulsar_client *client = lw_pulsar_publisher_of(producer)->client;
    take_assigned(producer, close);
    bool is_known = producer->assigned[0] != '\0';
    if (producer->state == LW_PULSAR_PRODUCER_CLOSING) {
        return; /* its answer follows */
    }
    if (producer->state == LW_PULSAR_PRODUCER_CREATING) {
        lw_pulsar_producer_take_back(producer); /* it may be about the one before */
    }
    lw_pulsar_producer_detach(producer);
    enter_waiting(producer, is_known ? 0 : lw_pulsar_backoff_next(&producer->backoff, client));
}

static void
on_command(struct lw_pulsar_user *user, const struct lw_pulsar_command *command)
{
    struct lw_pulsar_producer *producer = LW_CONTAINER(user, struct lw_pulsar_producer, user);
    switch (command->type) {
    case LW_PULSAR_SEND_RECEIPT:
        lw_pulsar_producer_on_receipt(producer, &command->send_receipt);
        break;
    case LW_PULSAR_SEND_ERROR:
        lw_pulsar_producer_on_send_error(producer, &command->send_error);
        break;
    case LW_PULSAR_CLOSE_PRODUCER:
        on_closed_by_broker(producer, &command->close_producer);
        break;
    case LW_PULSAR_TOPIC_MIGRATED:
        lw_pulsar_topic_moved(lw_pulsar_publisher_of(producer)->client, producer->name,
                              &command->topic_migrated, producer->moved_to,
                              sizeof producer->moved_to); /* CLOSE_PRODUCER follows */
        break;
    default: /* the broker's numbers, not ours */
        break;
    }
}

static void
on_message(struct lw_pulsar_user *user, const struct lw_pulsar_message *message,
           struct lw_bytes rest, struct lw_pulsar_block *block)
{
    (void)user, (void)message, (void)rest, (void)block; /* consumers only */
}

static void
on_room(struct lw_pulsar_user *user)
{
    lw_pulsar_producer_pump(LW_CONTAINER(user, struct lw_pulsar_producer, user));
}

static void
on_connection_closed(struct lw_pulsar_user *user, struct lw_pulsar_connection *connection,
                     const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_producer *producer = LW_CONTAINER(user, struct lw_pulsar_producer, user);
    struct lw_pulsar_failure lost;
    if (connection != producer->connection) {
        return;
    }
    lw_pulsar_failure_disconnected(lw_pulsar_publisher_of(producer)->client, producer->what,
                                   &failure->error, &lost);
    lw_pulsar_producer_fail(producer, &lost);
}

const struct lw_pulsar_user_ops lw_pulsar_producer_user_ops = {
    .on_command = on_command,
    .on_message = on_message,
    .on_room = on_room,
    .on_closed = on_connection_closed,
};
