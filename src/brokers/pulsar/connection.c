/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's life as its users see it: it is made, they attach, it ends, they are told. The
 * end is told by deferred work in a fixed order: requests fail, those who wait for the connection
 * hear of it (or go on to the service's next host), then the users. Whoever comes meanwhile is
 * told in the next round; the memory goes when nobody is left.
 */
#include "brokers/pulsar/connection.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "brokers/pulsar/connection_state.h"

/* -- Telling --------------------------------------------------------------------------------------- */

static void
tell_requests(struct lw_pulsar_connection *connection)
{
    struct lw_list batch;
    struct lw_pulsar_failure failure;
    lw_list_init(&batch);
    for (struct lw_list *node; (node = lw_list_pop(&connection->requests)) != NULL;) {
        lw_list_push(&batch, node);
    }
    /* Each stays in a list until its turn, so that one may cancel another. */
    for (struct lw_list *node; (node = lw_list_first(&batch)) != NULL;) {
        struct lw_pulsar_request *request = LW_CONTAINER(node, struct lw_pulsar_request, link);
        lw_pulsar_failure_disconnected(connection->client, request->what,
                                       &connection->failure.error, &failure);
        lw_pulsar_request_finish(request, NULL, &failure);
    }
}

static void
tell_users(struct lw_pulsar_connection *connection)
{
    struct lw_list batch;
    lw_list_init(&batch);
    for (struct lw_list *node; (node = lw_list_pop(&connection->users)) != NULL;) {
        lw_list_push(&batch, node);
    }
    for (struct lw_list *node; (node = lw_list_first(&batch)) != NULL;) {
        struct lw_pulsar_user *user = LW_CONTAINER(node, struct lw_pulsar_user, link);
        lw_pulsar_connection_detach(user);
        user->ops->on_closed(user, connection, &connection->failure);
    }
}

static void
tell_dials(struct lw_pulsar_connection *connection)
{
    struct lw_list batch;
    lw_list_init(&batch);
    for (struct lw_list *node; (node = lw_list_pop(&connection->dials)) != NULL;) {
        lw_list_push(&batch, node);
    }
    for (struct lw_list *node; (node = lw_list_pop(&batch)) != NULL;) {
        struct lw_pulsar_dial *dial = LW_CONTAINER(node, struct lw_pulsar_dial, link);
        if (connection->state == LW_PULSAR_READY) {
            dial->connection = NULL;
            dial->fn(dial, connection, NULL);
        } else {
            lw_pulsar_dial_fail(dial, connection);
        }
    }
}

static void
on_tell(struct lw_deferred *deferred)
{
    struct lw_pulsar_connection *connection = LW_CONTAINER(deferred,
                                                           struct lw_pulsar_connection, tell);
    if (connection->state != LW_PULSAR_CLOSED) {
        tell_dials(connection);
        return; /* if it was closed in there, this is called again */
    }
    tell_requests(connection);
    tell_dials(connection);
    tell_users(connection);
    if (lw_list_is_empty(&connection->requests) && lw_list_is_empty(&connection->dials) &&
        lw_list_is_empty(&connection->users)) {
        lw_pulsar_connection_drop(connection);
    } else {
        lw_host_defer(connection->client->host, &connection->tell);
    }
}

/* -- Life -------------------------------------------------------------------------------------------- */

static void
write_name(struct lw_pulsar_connection *connection)
{
    struct lw_text text;
    lw_text_init(&text);
    lw_pulsar_host_format(&connection->target.physical, &text);
    lw_text_copy(connection->name, sizeof connection->name,
                 text.data && !text.is_failed ? text.data : connection->target.physical.name);
    lw_text_deinit(&text);
}

static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_connection *connection = LW_CONTAINER(timer, struct lw_pulsar_connection,
                                                           timer);
    struct lw_error error;
    if (connection->state == LW_PULSAR_READY) {
        lw_pulsar_connection_on_tick(connection);
        return;
    }
    bool is_connecting = connection->state == LW_PULSAR_CONNECTING;
    (void)lw_error_set(&error, LW_STATUS_TIMEOUT, "E0501",
                       "broker \"%s\" at %s did not %s in time", connection->client->name,
                       connection->name, is_connecting ? "accept a connection" : "greet");
    lw_error_help(&error, "check address and network. Still trying; nothing is lost.");
    if (is_connecting && now < connection->deadline) {
        lw_pulsar_connection_try_next(connection, &error);
    } else {
        lw_pulsar_connection_end(connection, -1, &error);
    }
}

static void
on_resume(struct lw_deferred *deferred)
{
    lw_pulsar_connection_scan(LW_CONTAINER(deferred, struct lw_pulsar_connection, resume));
}

static void
init_lists(struct lw_pulsar_connection *connection)
{
    lw_list_init(&connection->link);
    lw_list_init(&connection->dirty);
    lw_list_init(&connection->dials);
    lw_list_init(&connection->requests);
    lw_list_init(&connection->users);
    lw_list_init(&connection->out.outputs);
    lw_list_init(&connection->out.sent);
    lw_deferred_init(&connection->tell, on_tell);
    lw_deferred_init(&connection->resume, on_resume);
    lw_timer_init(&connection->timer, on_timer);
}

struct lw_pulsar_connection *
lw_pulsar_connection_create(struct lw_pulsar_client *client,
                            const struct lw_pulsar_target *target)
{
    struct lw_pulsar_connection *connection = lw_alloc(sizeof *connection);
    if (!connection) {
        return NULL;
    }
    connection->client = client;
    connection->target = *target;
    connection->fd = -1;
    connection->message_bytes_max = LW_PULSAR_MESSAGE_BYTES_DEFAULT;
    connection->frame_bytes_max = lw_pulsar_frame_bytes_accepted(
        LW_PULSAR_MESSAGE_BYTES_DEFAULT);
    init_lists(connection);
    write_name(connection);
    lw_list_push(&client->connections, &connection->link);
    lw_pulsar_connection_open(connection);
    return connection;
}

static void
note_end(struct lw_pulsar_connection *connection, int32_t code, const struct lw_error *error)
{
    struct lw_pulsar_failure *failure = &connection->failure;
    failure->code = code;
    failure->is_retried = true;
    if (error) {
        failure->error = *error;
    } else {
        (void)lw_error_set(&failure->error, LW_STATUS_CLOSED, "E0501",
                           "the connection to %s was closed", connection->name);
    }
    failure->error.is_retriable = true;
    if (error) {
        lw_host_log(connection->client->host, LW_LOG_WARN, "pulsar.connection_ended",
                    failure->error.message, "broker=%s address=%s code=%s",
                    connection->client->name, connection->name, failure->error.code);
    }
}

void
lw_pulsar_connection_end(struct lw_pulsar_connection *connection, int32_t code,
                         const struct lw_error *error)
{
    struct lw_pulsar_client *client = connection->client;
    if (connection->state == LW_PULSAR_CLOSED) {
        return;
    }
    note_end(connection, code, error);
    lw_list_remove(&connection->link);
    lw_list_push(&client->ended, &connection->link);
    lw_pulsar_pool_on_ended(connection);
    connection->state = LW_PULSAR_CLOSED;
    lw_timers_disarm(&client->host->timers, &connection->timer);
    lw_host_resolve_cancel(client->host, &connection->resolve);
    lw_pulsar_auth_cancel(&connection->auth);
    lw_deferred_cancel(&connection->resume);
    lw_pulsar_connection_drop_output(connection);
    lw_pulsar_connection_close_socket(connection);
    lw_host_defer(client->host, &connection->tell);
}

/* What was queued (such as CLOSE_CONSUMER) still goes out, as far as the socket takes it now. */
void
lw_pulsar_connection_close(struct lw_pulsar_connection *connection,
                           const struct lw_error *error)
{
    if (!error && connection->state == LW_PULSAR_READY) {
        lw_pulsar_connection_flush(connection);
    }
    lw_pulsar_connection_end(connection, -1, error);
}

static void
forget_users(struct lw_pulsar_connection *connection)
{
    for (struct lw_list *node; (node = lw_list_first(&connection->requests)) != NULL;) {
        lw_pulsar_request_cancel(LW_CONTAINER(node, struct lw_pulsar_request, link));
    }
    for (struct lw_list *node; (node = lw_list_first(&connection->dials)) != NULL;) {
        lw_pulsar_dial_cancel(LW_CONTAINER(node, struct lw_pulsar_dial, link));
    }
    for (struct lw_list *node; (node = lw_list_first(&connection->users)) != NULL;) {
        lw_pulsar_connection_detach(LW_CONTAINER(node, struct lw_pulsar_user, link));
    }
}

void
lw_pulsar_connection_drop(struct lw_pulsar_connection *connection)
{
    struct lw_host *host = connection->client->host;
    forget_users(connection);
    connection->state = LW_PULSAR_CLOSED;
    lw_list_remove(&connection->link);
    lw_timers_disarm(&host->timers, &connection->timer);
    lw_host_resolve_cancel(host, &connection->resolve);
    lw_pulsar_auth_cancel(&connection->auth);
    lw_deferred_cancel(&connection->resume);
    lw_deferred_cancel(&connection->tell);
    lw_pulsar_connection_drop_output(connection);
    lw_pulsar_connection_close_socket(connection);
    lw_pulsar_ids_deinit(&connection->requests_by_id);
    lw_pulsar_ids_deinit(&connection->consumers_by_id);
    lw_pulsar_ids_deinit(&connection->producers_by_id);
    lw_pulsar_ids_deinit(&connection->watchers_by_id);
    if (connection->block) {
        lw_pulsar_block_drop(connection->block);
    }
    lw_free(connection->out.small);
    lw_free(connection);
}

/* -- What it is --------------------------------------------------------------------------------------- */

enum lw_pulsar_connection_state
lw_pulsar_connection_state(const struct lw_pulsar_connection *connection)
{
    return connection->state;
}

size_t
lw_pulsar_connection_message_bytes_max(const struct lw_pulsar_connection *connection)
{
    return connection->message_bytes_max;
}

int32_t
lw_pulsar_connection_protocol(const struct lw_pulsar_connection *connection)
{
    return connection->protocol;
}

bool
lw_pulsar_connection_has_topic_watchers(const struct lw_pulsar_connection *connection)
{
    return connection->has_topic_watchers;
}

const char *
lw_pulsar_connection_name(const struct lw_pulsar_connection *connection)
{
    return connection->name;
}

/* -- Users --------------------------------------------------------------------------------------------- */

static struct lw_pulsar_ids *
ids_of(struct lw_pulsar_connection *connection, enum lw_pulsar_user_kind kind)
{
    switch (kind) {
    case LW_PULSAR_USER_CONSUMER:
        return &connection->consumers_by_id;
    case LW_PULSAR_USER_PRODUCER:
        return &connection->producers_by_id;
    case LW_PULSAR_USER_WATCHER:
        break;
    }
    return &connection->watchers_by_id;
}

bool
lw_pulsar_connection_attach(struct lw_pulsar_connection *connection,
                            struct lw_pulsar_user *user)
{
    lw_assert(!user->connection);
    if (!lw_pulsar_ids_set(ids_of(connection, user->kind), user->id, user)) {
        return false;
    }
    user->connection = connection;
    lw_list_push(&connection->users, &user->link);
    return true;
}

void
lw_pulsar_connection_detach(struct lw_pulsar_user *user)
{
    struct lw_pulsar_connection *connection = user->connection;
    if (!connection) {
        return;
    }
    struct lw_pulsar_ids *ids = ids_of(connection, user->kind);
    if (lw_pulsar_ids_get(ids, user->id) == user) {
        lw_pulsar_ids_remove(ids, user->id);
    }
    lw_list_remove(&user->link);
    user->connection = NULL;
}
