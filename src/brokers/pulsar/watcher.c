/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The watch lives on a connection to the service, as a user of it. The pattern that is sent lets all
 * topics of the namespace through: a broker limits its length, and ours is judged here anyway.
 */
#include "brokers/pulsar/watcher.h"

static struct lw_pulsar_watcher *
watcher_of(struct lw_pulsar_user *user)
{
    return LW_CONTAINER(user, struct lw_pulsar_watcher, user);
}

static void
on_command(struct lw_pulsar_user *user, const struct lw_pulsar_command *command)
{
    struct lw_pulsar_watcher *watcher = watcher_of(user);
    if (command->type == LW_PULSAR_WATCH_TOPIC_UPDATE) {
        watcher->fn(watcher);
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
    (void)user; /* what a watcher sends is small */
}

/* Topics may have come meanwhile. */
static void
on_closed(struct lw_pulsar_user *user, struct lw_pulsar_connection *connection,
          const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_watcher *watcher = watcher_of(user);
    (void)connection, (void)failure;
    lw_pulsar_request_cancel(&watcher->request);
    watcher->state = LW_PULSAR_WATCHER_IDLE;
    watcher->fn(watcher);
}

static const struct lw_pulsar_user_ops user_ops = {
    .on_command = on_command,
    .on_message = on_message,
    .on_room = on_room,
    .on_closed = on_closed,
};

/* A topic that came between the last look and the watch rings no bell. */
static void
on_watching(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
            const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_watcher *watcher = LW_CONTAINER(request, struct lw_pulsar_watcher,
                                                     request);
    (void)failure; /* without a watch its owner asks in turns */
    if (!answer) {
        lw_pulsar_connection_detach(&watcher->user);
        watcher->state = LW_PULSAR_WATCHER_IDLE;
        return;
    }
    watcher->state = LW_PULSAR_WATCHER_WATCHING;
    watcher->fn(watcher);
}

static void
send_watch(struct lw_pulsar_watcher *watcher, struct lw_pulsar_connection *connection)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_WATCH_TOPIC_LIST);
    struct lw_pulsar_watch_topic_list *watch = &command.watch_topic_list;
    watcher->state = LW_PULSAR_WATCHER_ASKING;
    watch->watcher_id = watcher->user.id;
    watch->namespace_name = lw_bytes_of(watcher->namespace_name);
    watch->topics_pattern = lw_bytes_of(".*");
    watch->request_id = lw_pulsar_request_begin(connection, &watcher->request, on_watching,
                                                "watch topics",
                                                watcher->client->options.operation_timeout_ns);
    (void)lw_pulsar_connection_send(connection, &command);
}

static void
on_dialled(struct lw_pulsar_dial *dial, struct lw_pulsar_connection *connection,
           const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_watcher *watcher = LW_CONTAINER(dial, struct lw_pulsar_watcher, dial);
    (void)failure;
    if (connection && lw_pulsar_connection_has_topic_watchers(connection) &&
        lw_pulsar_connection_attach(connection, &watcher->user)) {
        send_watch(watcher, connection);
    } else {
        watcher->state = LW_PULSAR_WATCHER_IDLE;
    }
}

void
lw_pulsar_watcher_init(struct lw_pulsar_watcher *watcher, struct lw_pulsar_client *client,
                       const char *namespace_name, lw_pulsar_watcher_fn fn)
{
    *watcher = (struct lw_pulsar_watcher){ .client = client,
                                           .namespace_name = namespace_name,
                                           .fn = fn };
    watcher->user.ops = &user_ops;
    watcher->user.kind = LW_PULSAR_USER_WATCHER;
    watcher->user.id = client->next_watcher_id++;
}

void
lw_pulsar_watcher_ensure(struct lw_pulsar_watcher *watcher)
{
    if (watcher->state == LW_PULSAR_WATCHER_IDLE) {
        watcher->state = LW_PULSAR_WATCHER_DIALLING;
        lw_pulsar_dial_service(watcher->client, &watcher->dial, on_dialled);
    }
}

/* Its answer finds nobody and is ignored. */
static void
send_close(struct lw_pulsar_watcher *watcher)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_WATCH_TOPIC_LIST_CLOSE);
    command.watch_topic_list_close.watcher_id = watcher->user.id;
    command.watch_topic_list_close.request_id = watcher->client->next_request_id++;
    (void)lw_pulsar_connection_send(watcher->user.connection, &command);
}

void
lw_pulsar_watcher_stop(struct lw_pulsar_watcher *watcher)
{
    lw_pulsar_dial_cancel(&watcher->dial);
    lw_pulsar_request_cancel(&watcher->request);
    if (watcher->user.connection) {
        send_close(watcher);
        lw_pulsar_connection_detach(&watcher->user);
    }
    watcher->state = LW_PULSAR_WATCHER_IDLE;
}

bool
lw_pulsar_watcher_is_watching(const struct lw_pulsar_watcher *watcher)
{
    return watcher->state == LW_PULSAR_WATCHER_WATCHING;
}
