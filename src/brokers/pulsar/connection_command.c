/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a received command goes: answers to the request with their id, the rest to the consumer or
 * producer with theirs. ERROR is matched against every request. Ids that nobody has any more are
 * late answers and ignored, and so are types that we do not know, or each new command of a broker
 * would end all its connections.
 */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "brokers/pulsar/connection_state.h"

void
lw_pulsar_connection_break(struct lw_pulsar_connection *connection, const char *why)
{
    struct lw_error error;
    (void)lw_error_set(&error, LW_STATUS_UNAVAILABLE, "E0501",
                       "what broker \"%s\" at %s sent cannot be understood: %s",
                       connection->client->name, connection->name, why);
    lw_error_help(&error, "check that a broker of Pulsar listens there. Connecting again; "
                          "nothing is lost.");
    lw_pulsar_connection_end(connection, -1, &error);
}

/* -- Answers ------------------------------------------------------------------------------------------- */

/* These are about one topic: the broker itself is well. */
static bool
is_about_topic(struct lw_bytes message)
{
    static const char *const texts[] = { "Failed to acquire ownership", "KeeperException",
                                         "is being unloaded",
                                         "the broker do not have test listener" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (message.data && memmem(message.data, message.size, texts[i], strlen(texts[i]))) {
            return true;
        }
    }
    return false;
}

/* What a refused lookup says about the broker that refused it. */
static void
judge_refusal(struct lw_pulsar_connection *connection, int32_t code, bool is_topic)
{
    struct lw_pulsar_client *client = connection->client;
    struct lw_error error;
    if (connection->state != LW_PULSAR_READY) {
        return;
    }
    if (code == LW_PULSAR_TOO_MANY_REQUESTS) {
        lw_pulsar_connection_count_rejected(connection);
    } else if (code == LW_PULSAR_SERVICE_NOT_READY && !is_topic) {
        (void)lw_error_set(&error, LW_STATUS_UNAVAILABLE, "E0501",
                           "broker \"%s\" at %s is not ready to look up topics", client->name,
                           connection->name);
        lw_error_help(&error, "Asking the next one; nothing is lost.");
        lw_pulsar_connection_end(connection, code, &error);
    }
}

struct refusal {
    bool is_refused;
    int32_t code;
    struct lw_bytes message;
};

static struct refusal
refusal_of(const struct lw_pulsar_command *command)
{
    const struct lw_pulsar_lookup_response *lookup = &command->lookup_response;
    const struct lw_pulsar_partitioned_metadata_response *partitioned =
        &command->partitioned_metadata_response;
    if (command->type == LW_PULSAR_LOOKUP_RESPONSE) {
        return (struct refusal){ lookup->response == LW_PULSAR_LOOKUP_FAILED, lookup->error,
                                 lookup->message };
    }
    if (command->type == LW_PULSAR_PARTITIONED_METADATA_RESPONSE) {
        return (struct refusal){ partitioned->response == LW_PULSAR_PARTITIONED_FAILED,
                                 partitioned->error, partitioned->message };
    }
    return (struct refusal){ false, 0, { NULL, 0 } };
}

/* A request got an answer that its command cannot have. */
static void
finish_wrong(struct lw_pulsar_connection *connection, struct lw_pulsar_request *request,
             const struct lw_pulsar_command *answer)
{
    struct lw_pulsar_failure failure = { .code = -1, .is_retried = true };
    (void)lw_error_set(&failure.error, LW_STATUS_UNAVAILABLE, "E0514",
                       "broker \"%s\" answered %s where it was asked to %s",
                       connection->client->name, lw_pulsar_command_name(answer->type),
                       request->what);
    failure.error.is_retriable = true;
    lw_pulsar_request_finish(request, NULL, &failure);
}

/* False: no request has this id. */
static bool
answer_request(struct lw_pulsar_connection *connection, uint64_t id,
               const struct lw_pulsar_command *command)
{
    struct lw_pulsar_request *request = lw_pulsar_ids_get(&connection->requests_by_id, id);
    if (!request) {
        return false;
    }
    struct refusal refusal = refusal_of(command);
    if (request->answer != 0 && request->answer != command->type) {
        finish_wrong(connection, request, command);
    } else {
        lw_pulsar_request_finish(request, command, NULL);
    }
    if (refusal.is_refused) {
        judge_refusal(connection, refusal.code, is_about_topic(refusal.message));
    }
    return true;
}

static void
take_error(struct lw_pulsar_connection *connection, const struct lw_pulsar_error *error)
{
    struct lw_pulsar_failure failure;
    if (error->request_id == LW_PULSAR_NO_REQUEST) {
        lw_pulsar_connection_on_refused(connection, error->error, error->message);
        return;
    }
    struct lw_pulsar_request *request = lw_pulsar_ids_get(&connection->requests_by_id,
                                                          error->request_id);
    if (!request) {
        return;
    }
    bool is_lookup = request->answer == LW_PULSAR_LOOKUP_RESPONSE ||
                     request->answer == LW_PULSAR_PARTITIONED_METADATA_RESPONSE;
    lw_pulsar_failure_server(connection->client, request->what, error->error, error->message,
                             &failure);
    lw_pulsar_request_finish(request, NULL, &failure);
    if (is_lookup) {
        judge_refusal(connection, error->error, is_about_topic(error->message));
    }
}

/* -- Users ------------------------------------------------------------------------------------------------ */

static void
give(const struct lw_pulsar_ids *ids, uint64_t id, const struct lw_pulsar_command *command)
{
    struct lw_pulsar_user *user = lw_pulsar_ids_get(ids, id);
    if (user) {
        user->ops->on_command(user, command);
    }
}

LW_INLINE void
give_message(struct lw_pulsar_connection *connection, const struct lw_pulsar_message *message,
             struct lw_bytes rest)
{
    struct lw_pulsar_user *user = lw_pulsar_ids_get(&connection->consumers_by_id,
                                                    message->consumer_id);
    if (user) {
        user->ops->on_message(user, message, rest, connection->block);
    }
}

static void
tell_unknown(struct lw_pulsar_connection *connection, int32_t type)
{
    if (!connection->has_told_unknown) {
        connection->has_told_unknown = true;
        lw_host_log(connection->client->host, LW_LOG_INFO, "pulsar.unknown_command",
                    "the broker sent a command that is not known here; it is ignored",
                    "broker=%s type=%d", connection->client->name, (int)type);
    }
}

/* -- By state --------------------------------------------------------------------------------------------- */

/* The id of the request that a typed answer is for; false when the command is no such answer. */
static bool
answered_id(const struct lw_pulsar_command *command, uint64_t *ret_id)
{
    switch (command->type) {
    case LW_PULSAR_SUCCESS:
        *ret_id = command->success.request_id;
        return true;
    case LW_PULSAR_PRODUCER_SUCCESS:
        *ret_id = command->producer_success.request_id;
        return true;
    case LW_PULSAR_PARTITIONED_METADATA_RESPONSE:
        *ret_id = command->partitioned_metadata_response.request_id;
        return true;
    case LW_PULSAR_LOOKUP_RESPONSE:
        *ret_id = command->lookup_response.request_id;
        return true;
    case LW_PULSAR_CONSUMER_STATS_RESPONSE:
        *ret_id = command->consumer_stats_response.request_id;
        return true;
    case LW_PULSAR_GET_LAST_MESSAGE_ID_RESPONSE:
        *ret_id = command->get_last_message_id_response.request_id;
        return true;
    case LW_PULSAR_GET_TOPICS_OF_NAMESPACE_RESPONSE:
        *ret_id = command->get_topics_response.request_id;
        return true;
    case LW_PULSAR_GET_SCHEMA_RESPONSE:
        *ret_id = command->get_schema_response.request_id;
        return true;
    case LW_PULSAR_GET_OR_CREATE_SCHEMA_RESPONSE:
        *ret_id = command->get_or_create_schema_response.request_id;
        return true;
    case LW_PULSAR_WATCH_TOPIC_LIST_SUCCESS:
        *ret_id = command->watch_topic_list_success.request_id;
        return true;
    default: /* the broker's numbers, not ours */
        return false;
    }
}

static void
take_ack_response(struct lw_pulsar_connection *connection,
                  const struct lw_pulsar_command *command)
{
    const struct lw_pulsar_ack_response *response = &command->ack_response;
    bool has_id = response->has & LW_PULSAR_ACK_RESPONSE_HAS_REQUEST_ID;
    if (!has_id || !answer_request(connection, response->request_id, command)) {
        give(&connection->consumers_by_id, response->consumer_id, command);
    }
}

static void
take_for_user(struct lw_pulsar_connection *connection, const struct lw_pulsar_command *command)
{
    const struct lw_pulsar_ids *producers = &connection->producers_by_id;
    const struct lw_pulsar_ids *consumers = &connection->consumers_by_id;
    const struct lw_pulsar_topic_migrated *migrated = &command->topic_migrated;
    switch (command->type) {
    case LW_PULSAR_SEND_RECEIPT:
        give(producers, command->send_receipt.producer_id, command);
        break;
    case LW_PULSAR_SEND_ERROR:
        give(producers, command->send_error.producer_id, command);
        break;
    case LW_PULSAR_CLOSE_PRODUCER:
        give(producers, command->close_producer.id, command);
        break;
    case LW_PULSAR_CLOSE_CONSUMER:
        give(consumers, command->close_consumer.id, command);
        break;
    case LW_PULSAR_REACHED_END_OF_TOPIC:
        give(consumers, command->reached_end_of_topic.consumer_id, command);
        break;
    case LW_PULSAR_ACTIVE_CONSUMER_CHANGE:
        give(consumers, command->active_consumer_change.consumer_id, command);
        break;
    case LW_PULSAR_WATCH_TOPIC_UPDATE:
        give(&connection->watchers_by_id, command->watch_topic_update.watcher_id, command);
        break;
    case LW_PULSAR_ACK_RESPONSE:
        take_ack_response(connection, command);
        break;
    case LW_PULSAR_TOPIC_MIGRATED:
        give(migrated->resource_type == LW_PULSAR_RESOURCE_PRODUCER ? producers : consumers,
             migrated->resource_id, command);
        break;
    default: /* a client's command, or a push that nobody asked for */
        tell_unknown(connection, command->type);
    }
}

static void
take_ready(struct lw_pulsar_connection *connection, const struct lw_pulsar_command *command)
{
    uint64_t id = 0;
    switch (command->type) {
    case LW_PULSAR_PONG:
        break;
    case LW_PULSAR_PING:
        lw_pulsar_connection_on_ping(connection);
        break;
    case LW_PULSAR_ERROR:
        take_error(connection, &command->error);
        break;
    case LW_PULSAR_AUTH_CHALLENGE:
        lw_pulsar_connection_on_challenge(connection);
        break;
    case LW_PULSAR_CONNECTED:
        lw_pulsar_connection_break(connection, "a second greeting");
        break;
    default: /* the broker's numbers, not ours */
        if (answered_id(command, &id)) {
            (void)answer_request(connection, id, command);
        } else {
            take_for_user(connection, command);
        }
    }
}

static void
take_greeting(struct lw_pulsar_connection *connection, const struct lw_pulsar_command *command)
{
    char why[128];
    switch (command->type) {
    case LW_PULSAR_CONNECTED:
        lw_pulsar_connection_on_connected(connection, &command->connected);
        break;
    case LW_PULSAR_AUTH_CHALLENGE:
        lw_pulsar_connection_on_challenge(connection);
        break;
    case LW_PULSAR_ERROR:
        lw_pulsar_connection_on_refused(connection, command->error.error,
                                        command->error.message);
        break;
    case LW_PULSAR_PING:
        lw_pulsar_connection_on_ping(connection);
        break;
    default: /* the broker's numbers, not ours */
        (void)snprintf(why, sizeof why, "%s instead of a greeting",
                       lw_pulsar_command_name(command->type));
        lw_pulsar_connection_break(connection, why);
    }
}

__attribute__((noinline)) static void
take_any(struct lw_pulsar_connection *connection, struct lw_bytes bytes, struct lw_bytes rest)
{
    struct lw_pulsar_command command;
    enum lw_pulsar_fault fault = lw_pulsar_command_decode(bytes, &command);
    if (fault != LW_PULSAR_OK) {
        lw_pulsar_connection_break(connection, lw_pulsar_fault_text(fault));
        return;
    }
    connection->has_heard |= command.type != LW_PULSAR_PING;
    if (command.type == LW_PULSAR_MESSAGE && connection->state == LW_PULSAR_READY) {
        give_message(connection, &command.message, rest);
    } else if (!command.is_known && connection->state != LW_PULSAR_CONNECTING) {
        tell_unknown(connection, command.type);
    } else if (connection->state == LW_PULSAR_READY) {
        take_ready(connection, &command);
    } else if (connection->state == LW_PULSAR_GREETING) {
        take_greeting(connection, &command);
    } else {
        lw_pulsar_connection_break(connection, "it spoke before it was greeted");
    }
}

void
lw_pulsar_connection_take(struct lw_pulsar_connection *connection, struct lw_bytes bytes,
                          struct lw_bytes rest)
{
    struct lw_pulsar_message message;
    if (connection->state == LW_PULSAR_READY &&
        lw_pulsar_message_decode_usual(bytes, &message)) {
        connection->has_heard = true;
        give_message(connection, &message, rest);
    } else {
        take_any(connection, bytes, rest);
    }
}
