/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of a connection: from the command to its answer, its deadline, or the end of the
 * connection, whichever comes first. A late answer finds nobody and is ignored.
 */
#include "base/assert.h"
#include "base/error.h"
#include "brokers/pulsar/connection_state.h"

#define REJECTED_WINDOW_NS (60000 * LW_MS)

static bool
is_lookup(const struct lw_pulsar_request *request)
{
    return request->answer == LW_PULSAR_LOOKUP_RESPONSE ||
           request->answer == LW_PULSAR_PARTITIONED_METADATA_RESPONSE;
}

static void
leave(struct lw_pulsar_request *request)
{
    struct lw_pulsar_connection *connection = request->connection;
    lw_timers_disarm(&connection->client->host->timers, &request->timer);
    lw_pulsar_ids_remove(&connection->requests_by_id, request->id);
    lw_list_remove(&request->link);
    request->connection = NULL;
}

/*
 * The one answer that another may follow: the request stays in the table during the call, and is
 * looked up there afterwards, since its owner may have cancelled it and be gone.
 */
static void
finish_or_keep(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer)
{
    struct lw_pulsar_connection *connection = request->connection;
    uint64_t id = request->id;
    lw_timers_disarm(&connection->client->host->timers, &request->timer);
    request->fn(request, answer, NULL);
    request = lw_pulsar_ids_get(&connection->requests_by_id, id);
    if (request && !request->keeps) {
        leave(request);
    } else if (request) {
        request->keeps = false;
    }
}

void
lw_pulsar_request_finish(struct lw_pulsar_request *request,
                         const struct lw_pulsar_command *answer,
                         const struct lw_pulsar_failure *failure)
{
    request->keeps = false;
    if (answer && answer->type == LW_PULSAR_PRODUCER_SUCCESS &&
        !answer->producer_success.producer_ready) {
        finish_or_keep(request, answer);
        return;
    }
    leave(request);
    request->fn(request, answer, failure);
}

static void
on_deadline(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_request *request = LW_CONTAINER(timer, struct lw_pulsar_request, timer);
    struct lw_pulsar_connection *connection = request->connection;
    struct lw_pulsar_failure failure;
    (void)now;
    bool counts = is_lookup(request);
    lw_pulsar_failure_timeout(connection->client, request->what, &failure);
    lw_pulsar_request_finish(request, NULL, &failure);
    if (counts) {
        lw_pulsar_connection_count_rejected(connection);
    }
}

uint64_t
lw_pulsar_request_begin(struct lw_pulsar_connection *connection,
                        struct lw_pulsar_request *request, lw_pulsar_request_fn fn,
                        const char *what, uint64_t timeout_ns)
{
    struct lw_pulsar_client *client = connection->client;
    struct lw_error error;
    lw_assert(!request->connection);
    request->connection = connection;
    request->fn = fn;
    request->what = what;
    request->id = client->next_request_id++;
    request->answer = 0;
    request->keeps = false;
    lw_timer_init(&request->timer, on_deadline);
    lw_list_push(&connection->requests, &request->link);
    if (connection->state == LW_PULSAR_CLOSED) {
        lw_host_defer(client->host, &connection->tell);
        return request->id;
    }
    if (!lw_pulsar_ids_set(&connection->requests_by_id, request->id, request)) {
        (void)lw_error_set(&error, LW_STATUS_NO_MEMORY, "", "no memory for a request");
        lw_pulsar_connection_end(connection, -1, &error);
        return request->id;
    }
    lw_timers_arm(&client->host->timers, &request->timer, client->host->now + timeout_ns);
    return request->id;
}

void
lw_pulsar_request_cancel(struct lw_pulsar_request *request)
{
    if (request->connection) {
        leave(request);
    }
}

/* -- What a command asks for ------------------------------------------------------------------------- */

/* The type of the answer, or 0; *ret_id is the request's. */
static int32_t
asked_for(const struct lw_pulsar_command *command, uint64_t *ret_id)
{
    switch (command->type) {
    case LW_PULSAR_SUBSCRIBE:
        *ret_id = command->subscribe.request_id;
        return LW_PULSAR_SUCCESS;
    case LW_PULSAR_PRODUCER:
        *ret_id = command->producer.request_id;
        return LW_PULSAR_PRODUCER_SUCCESS;
    case LW_PULSAR_UNSUBSCRIBE:
        *ret_id = command->unsubscribe.request_id;
        return LW_PULSAR_SUCCESS;
    case LW_PULSAR_CLOSE_PRODUCER:
    case LW_PULSAR_CLOSE_CONSUMER:
        *ret_id = command->close_producer.request_id;
        return LW_PULSAR_SUCCESS;
    case LW_PULSAR_SEEK:
        *ret_id = command->seek.request_id;
        return LW_PULSAR_SUCCESS;
    case LW_PULSAR_ACK:
        *ret_id = command->ack.request_id;
        return command->ack.has & LW_PULSAR_ACK_HAS_REQUEST_ID ? LW_PULSAR_ACK_RESPONSE : 0;
    case LW_PULSAR_PARTITIONED_METADATA:
        *ret_id = command->partitioned_metadata.request_id;
        return LW_PULSAR_PARTITIONED_METADATA_RESPONSE;
    case LW_PULSAR_LOOKUP:
        *ret_id = command->lookup.request_id;
        return LW_PULSAR_LOOKUP_RESPONSE;
    case LW_PULSAR_GET_TOPICS_OF_NAMESPACE:
        *ret_id = command->get_topics.request_id;
        return LW_PULSAR_GET_TOPICS_OF_NAMESPACE_RESPONSE;
    case LW_PULSAR_WATCH_TOPIC_LIST:
        *ret_id = command->watch_topic_list.request_id;
        return LW_PULSAR_WATCH_TOPIC_LIST_SUCCESS;
    case LW_PULSAR_GET_LAST_MESSAGE_ID:
        *ret_id = command->get_last_message_id.request_id;
        return LW_PULSAR_GET_LAST_MESSAGE_ID_RESPONSE;
    case LW_PULSAR_CONSUMER_STATS:
        *ret_id = command->consumer_stats.request_id;
        return LW_PULSAR_CONSUMER_STATS_RESPONSE;
    case LW_PULSAR_GET_SCHEMA:
        *ret_id = command->get_schema.request_id;
        return LW_PULSAR_GET_SCHEMA_RESPONSE;
    case LW_PULSAR_GET_OR_CREATE_SCHEMA:
        *ret_id = command->get_or_create_schema.request_id;
        return LW_PULSAR_GET_OR_CREATE_SCHEMA_RESPONSE;
    default: /* FLOW and others without an answer */
        return 0;
    }
}

void
lw_pulsar_request_note(struct lw_pulsar_connection *connection,
                       const struct lw_pulsar_command *command)
{
    uint64_t id = LW_PULSAR_NO_REQUEST;
    int32_t answer = asked_for(command, &id);
    struct lw_pulsar_request *request = answer
                                            ? lw_pulsar_ids_get(&connection->requests_by_id, id)
                                            : NULL;
    if (request) {
        request->answer = answer;
    }
}

/* -- Refusals ------------------------------------------------------------------------------------------ */

void
lw_pulsar_connection_count_rejected(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_client *client = connection->client;
    struct lw_error error;
    if (connection->state != LW_PULSAR_READY) {
        return;
    }
    if (connection->rejected_count == 0 ||
        client->host->now - connection->rejected_since > REJECTED_WINDOW_NS) {
        connection->rejected_since = client->host->now;
        connection->rejected_count = 0;
    }
    connection->rejected_count++;
    if (connection->rejected_count >= client->options.rejected_max) {
        (void)lw_error_set(&error, LW_STATUS_UNAVAILABLE, "E0501",
                           "broker \"%s\" at %s refused or left unanswered %u lookups within a "
                           "minute",
                           client->name, connection->name, connection->rejected_count);
        lw_error_help(&error, "it limits lookups, or it is overloaded. Still trying.");
        lw_pulsar_connection_end(connection, -1, &error);
    }
}
