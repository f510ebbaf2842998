/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commits: explicit lists by rd_kafka_commit_queue, never blocking, answered by an event. One
 * commit of the dispatcher is in flight at a time; it is split over the groups it touches and ends
 * when all of them answered.
 *
 * Nobody else guards ownership: the cluster accepts a position for a partition that another
 * member owns. So an item whose ownership is over is left out here. One bad item puts its error
 * on the whole list though the others were committed; such a list goes again item by item. Under
 * the cooperative protocol a commit that meets a JoinGroup loses the whole assignment (librdkafka
 * before 2.10), so it waits from the JoinGroup to the next rebalance event.
 */
#include "base/alloc.h"
#include "brokers/kafka/kafka.h"

static struct lw_kafka_partition *
owned_partition(const struct lw_commit_item *item)
{
    struct lw_kafka_source *source = lw_kafka_source_of(item->source);
    if (item->slot >= source->slot_count) {
        return NULL;
    }
    struct lw_kafka_partition *partition = source->slots[item->slot];
    bool is_owned = partition->generation && !partition->is_given_up;
    return is_owned && source->client->state != LW_KAFKA_CLIENT_GONE ? partition : NULL;
}

static void
finish(struct lw_kafka_client *client, enum lw_status status)
{
    struct lw_kafka_broker *broker = client->broker;
    rd_kafka_topic_partition_list_destroy(client->commit);
    client->commit = NULL;
    client->commit_index = -1;
    client->is_commit_sent = false;
    client->commit_repeats = 0;
    lw_timers_disarm(&broker->base.host->timers, &client->commit_timer);
    if (status != LW_STATUS_OK && broker->commit_status == LW_STATUS_OK) {
        broker->commit_status = status;
    }
    broker->committing--;
    if (broker->committing == 0) {
        struct lw_event event = { .kind = LW_EVENT_COMMITTED, .status = broker->commit_status };
        broker->is_committing = false;
        lw_events_push_reserved(&broker->events, &event);
    }
    lw_kafka_assignment_continue(client);
}

static void
send_list(struct lw_kafka_client *client, const rd_kafka_topic_partition_list_t *list)
{
    client->is_commit_sent = true;
    client->commit_serial++; /* never 0: that is the companions' refresh */
    rd_kafka_resp_err_t code = rd_kafka_commit_queue(client->rk, list, client->queue, NULL,
                                                     (void *)client->commit_serial);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        finish(client, lw_kafka_error_status(code));
    }
}

static void
send_item(struct lw_kafka_client *client)
{
    const rd_kafka_topic_partition_t *item = &client->commit->elems[client->commit_index];
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, item->topic, item->partition)->offset =
        item->offset;
    send_list(client, list);
    rd_kafka_topic_partition_list_destroy(list);
}

void
lw_kafka_commit_continue(struct lw_kafka_client *client)
{
    bool is_held = (client->is_cooperative && atomic_load(&client->is_joining)) ||
                   lw_timer_is_armed(&client->commit_timer);
    if (!client->commit || client->is_commit_sent || client->is_refreshing || is_held) {
        return;
    }
    if (client->broker->is_down_said) {
        finish(client,
               LW_STATUS_UNAVAILABLE); /* else it would hang in the client, and a close */
        return;
    }
    if (client->commit_index >= 0) {
        send_item(client);
    } else {
        send_list(client, client->commit);
    }
}

/* Adds the item to its client's list; what is no longer ours is left out. */
static void
add_item(struct lw_kafka_broker *broker, const struct lw_commit_item *item)
{
    struct lw_kafka_partition *partition = owned_partition(item);
    if (!partition) {
        return;
    }
    struct lw_kafka_client *client = partition->source->client;
    if (!client->commit) {
        client->commit = rd_kafka_topic_partition_list_new(16);
        client->commit_status = LW_STATUS_OK;
        broker->committing++;
    }
    rd_kafka_topic_partition_list_add(client->commit, partition->topic, partition->number)
        ->offset = item->position;
}

static void
start_all(struct lw_kafka_broker *broker)
{
    struct lw_list *next = NULL;
    for (struct lw_list *at = broker->clients.next; at != &broker->clients; at = next) {
        next = at->next;
        lw_kafka_commit_continue(LW_CONTAINER(at, struct lw_kafka_client, link));
    }
}

enum lw_status
lw_kafka_commit(struct lw_kafka_broker *broker, const struct lw_commit_item *items, size_t n)
{
    if (broker->is_committing) {
        return LW_STATUS_AGAIN;
    }
    if (!lw_events_reserve(&broker->events, 1)) {
        return LW_STATUS_NO_MEMORY;
    }
    broker->is_committing = true;
    broker->commit_status = LW_STATUS_OK;
    broker->committing = 1; /* ours, until all parts are under way */
    for (size_t i = 0; i < n; i++) {
        add_item(broker, &items[i]);
    }
    start_all(broker);
    broker->committing--;
    if (broker->committing == 0) {
        struct lw_event event = { .kind = LW_EVENT_COMMITTED, .status = broker->commit_status };
        broker->is_committing = false;
        lw_events_push_reserved(&broker->events, &event);
    }
    return LW_STATUS_OK;
}

void
lw_kafka_commit_abandon(struct lw_kafka_client *client, enum lw_status status)
{
    if (client->commit) {
        client->commit_serial++; /* its answer is too late from now on */
        finish(client, status);
    }
}

/* -- Answers --------------------------------------------------------------------------------------- */

/* Errors of one partition; those of the group would meet every item alike. */
static bool
is_of_item(rd_kafka_resp_err_t code)
{
    enum lw_status status = lw_kafka_error_status(code);
    return status == LW_STATUS_TOO_LARGE || status == LW_STATUS_NOT_FOUND ||
           code == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ||
           code == RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE;
}

static rd_kafka_resp_err_t
first_error(rd_kafka_event_t *event, const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    if (code == RD_KAFKA_RESP_ERR__NO_OFFSET) {
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    for (int i = 0; list && i < list->cnt && !code; i++) {
        code = list->elems[i].err;
    }
    return code;
}

static void
log_failure(struct lw_kafka_client *client, rd_kafka_resp_err_t code,
            const rd_kafka_topic_partition_list_t *list)
{
    const rd_kafka_topic_partition_t *item = list && list->cnt > 0 ? &list->elems[0] : NULL;
    lw_host_log(client->broker->base.host, LW_LOG_WARN, "kafka.commit_failed",
                "positions could not be committed; they will be committed again",
                "broker=%s group=%s code=%s partitions=%d topic=%s partition=%d",
                client->broker->name, client->group, rd_kafka_err2name(code),
                list ? list->cnt : 0, item ? item->topic : "-",
                item ? (int)item->partition : -1);
}

static void
note_committed(struct lw_kafka_client *client, const rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; list && i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *item = &list->elems[i];
        struct lw_kafka_partition *partition = lw_kafka_client_find_partition(
            client, item->topic, item->partition);
        if (partition) {
            partition->committed = item->offset;
        }
    }
}

/* One item of a list that goes item by item was answered. */
static void
next_item(struct lw_kafka_client *client, rd_kafka_resp_err_t code)
{
    if (code && client->commit_status == LW_STATUS_OK) {
        client->commit_status = lw_kafka_error_status(code);
    }
    client->commit_index++;
    if (client->commit_index == client->commit->cnt) {
        finish(client, client->commit_status);
    } else {
        lw_kafka_commit_continue(client);
    }
}

/* The coordinator moved or is only just back: it will take the same list in a moment. */
static bool
is_passing(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR_NOT_COORDINATOR ||
           code == RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE ||
           code == RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS;
}

static void
on_commit_due(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    lw_kafka_commit_continue(LW_CONTAINER(timer, struct lw_kafka_client, commit_timer));
}

void
lw_kafka_commit_init(struct lw_kafka_client *client)
{
    lw_timer_init(&client->commit_timer, on_commit_due);
}

static void
repeat(struct lw_kafka_client *client)
{
    struct lw_host *host = client->broker->base.host;
    client->commit_repeats++;
    lw_timers_arm(&host->timers, &client->commit_timer, host->now + LW_KAFKA_COMMIT_AGAIN_NS);
}

static void
on_answer(struct lw_kafka_client *client, rd_kafka_resp_err_t code)
{
    client->is_commit_sent = false;
    if (is_passing(code) && client->commit_repeats < LW_KAFKA_COMMIT_REPEATS_MAX) {
        repeat(client);
    } else if (client->commit_index >= 0) {
        next_item(client, code);
    } else if (code && client->commit->cnt > 1 && is_of_item(code)) {
        client->commit_index = 0;
        lw_kafka_commit_continue(client);
    } else {
        finish(client, lw_kafka_error_status(code));
    }
}

void
lw_kafka_commit_on_event(struct lw_kafka_client *client, rd_kafka_event_t *event)
{
    const rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(event);
    rd_kafka_resp_err_t code = first_error(event, list);
    if (code && !is_passing(code)) {
        log_failure(client, code, list);
    }
    uintptr_t serial = (uintptr_t)rd_kafka_event_opaque(event);
    if (serial == 0) {
        client->is_refreshing = false;
        lw_kafka_commit_continue(client);
        lw_kafka_assignment_continue(client);
        return;
    }
    if (!code) {
        note_committed(client, list);
    }
    if (client->commit && client->is_commit_sent && serial == client->commit_serial) {
        on_answer(client, code);
    }
}
