/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool: one connection per target (where commands are meant for, where TCP goes), made on
 * demand and shared while it is being made. A closed one has left it before anybody is told, so
 * whoever dials again gets another one. The service is its hosts in turn: one that cannot be
 * connected to is passed over for all who wait for it, each of them tries every host once.
 */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "brokers/pulsar/connection_state.h"

/* -- Up and down ------------------------------------------------------------------------------------- */

void
lw_pulsar_pool_on_ready(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_client *client = connection->client;
    bool is_new = !client->is_up;
    client->is_up = true;
    client->is_down = false;
    if (is_new && client->ops && client->ops->on_up && !client->is_closing) {
        client->ops->on_up(client);
    }
}

static void
note_down(struct lw_pulsar_client *client, const struct lw_error *error)
{
    bool is_new = !client->is_down;
    client->is_up = false;
    client->is_down = true;
    if (is_new && client->ops && client->ops->on_down && !client->is_closing) {
        client->ops->on_down(client, error);
    }
}

/* -- Connections --------------------------------------------------------------------------------------- */

static bool
is_target(const struct lw_pulsar_connection *connection, const struct lw_pulsar_target *target)
{
    return lw_pulsar_host_is_same(&connection->target.logical, &target->logical) &&
           lw_pulsar_host_is_same(&connection->target.physical, &target->physical);
}

static struct lw_pulsar_connection *
find(struct lw_pulsar_client *client, const struct lw_pulsar_target *target)
{
    struct lw_list *head = &client->connections;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_pulsar_connection *connection = LW_CONTAINER(
            node, struct lw_pulsar_connection, link);
        if (is_target(connection, target)) {
            return connection;
        }
    }
    return NULL;
}

/* A connection without memory for it: a closed one, which only tells. */
static void
refuse_dial(struct lw_pulsar_dial *dial)
{
    struct lw_pulsar_failure failure = { .code = -1, .is_retried = true };
    (void)lw_error_set(&failure.error, LW_STATUS_NO_MEMORY, "", "no memory for a connection");
    failure.error.is_retriable = true;
    dial->fn(dial, NULL, &failure);
}

static void
on_refuse(struct lw_deferred *deferred)
{
    refuse_dial(LW_CONTAINER(deferred, struct lw_pulsar_dial, refusal));
}

static void
wait_for(struct lw_pulsar_client *client, const struct lw_pulsar_target *target,
         struct lw_pulsar_dial *dial)
{
    struct lw_pulsar_connection *connection = find(client, target);
    if (!connection) {
        connection = lw_pulsar_connection_create(client, target);
    }
    if (!connection) {
        lw_deferred_init(&dial->refusal, on_refuse);
        lw_host_defer(client->host, &dial->refusal);
        return;
    }
    dial->connection = connection;
    lw_list_push(&connection->dials, &dial->link);
    if (connection->state >= LW_PULSAR_READY) {
        lw_host_defer(client->host, &connection->tell);
    }
}

static void
begin(struct lw_pulsar_dial *dial, lw_pulsar_dial_fn fn, size_t hosts_left)
{
    lw_assert(!dial->connection);
    lw_list_init(&dial->link);
    lw_deferred_init(&dial->refusal, on_refuse);
    dial->fn = fn;
    dial->hosts_left = hosts_left;
    dial->is_service = hosts_left > 0;
}

void
lw_pulsar_dial_target(struct lw_pulsar_client *client, const struct lw_pulsar_target *target,
                      struct lw_pulsar_dial *dial, lw_pulsar_dial_fn fn)
{
    begin(dial, fn, 0);
    wait_for(client, target, dial);
}

/* -- The service ----------------------------------------------------------------------------------------- */

static void
wait_for_service(struct lw_pulsar_client *client, struct lw_pulsar_dial *dial)
{
    const struct lw_pulsar_host *host = lw_pulsar_rotation_host(&client->rotation);
    struct lw_pulsar_target target = { .logical = *host, .physical = *host };
    dial->hosts_left--;
    wait_for(client, &target, dial);
}

void
lw_pulsar_dial_service(struct lw_pulsar_client *client, struct lw_pulsar_dial *dial,
                       lw_pulsar_dial_fn fn)
{
    begin(dial, fn, client->address.count);
    wait_for_service(client, dial);
}

/*
 * Everybody's next attempt goes to the next host when this one could not be connected to, or when
 * it said itself that it cannot serve; a connection that merely ended is tried there again.
 */
void
lw_pulsar_pool_on_ended(struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_client *client = connection->client;
    const struct lw_pulsar_host *host = &connection->target.physical;
    bool is_unfit = connection->state != LW_PULSAR_READY || connection->failure.code >= 0 ||
                    connection->rejected_count >= client->options.rejected_max;
    if (is_unfit && client->address.count > 0 &&
        lw_pulsar_host_is_same(host, lw_pulsar_rotation_host(&client->rotation)) &&
        lw_pulsar_host_is_same(host, &connection->target.logical)) {
        (void)lw_pulsar_rotation_fail(&client->rotation);
    }
}

void
lw_pulsar_dial_fail(struct lw_pulsar_dial *dial, struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_client *client = connection->client;
    dial->connection = NULL;
    if (dial->hosts_left > 0) {
        wait_for_service(client, dial);
        return;
    }
    if (dial->is_service) {
        note_down(client, &connection->failure.error);
    }
    dial->fn(dial, NULL, &connection->failure);
}

void
lw_pulsar_dial_cancel(struct lw_pulsar_dial *dial)
{
    if (dial->fn) {
        lw_list_remove(&dial->link);
        lw_deferred_cancel(&dial->refusal);
        dial->connection = NULL;
        dial->fn = NULL;
    }
}

static void
drop_all(struct lw_list *list)
{
    for (struct lw_list *node; (node = lw_list_first(list)) != NULL;) {
        lw_pulsar_connection_drop(LW_CONTAINER(node, struct lw_pulsar_connection, link));
    }
}

void
lw_pulsar_pool_drop_all(struct lw_pulsar_client *client)
{
    drop_all(&client->connections);
    drop_all(&client->ended);
}
