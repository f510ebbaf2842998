/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions that come and go. The client asks by an event and waits for the answer, during which
 * every partition of the consumer stands still; so an assignment is answered at once, and a
 * revoke as soon as the dispatcher has said revoke_done for each partition and no commit is out
 * (5 s at most: an eager member that is late is expelled without being told). Each partition has
 * a generation of its own, so that a cooperative rebalance can take any of them.
 *
 * Companions (retry tiers) are in no event of the client: they are added to what is assigned and
 * taken away with their source's partition.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "brokers/kafka/kafka.h"

static void on_revoke_due(struct lw_timer *timer, uint64_t now);

void
lw_kafka_assignment_init(struct lw_kafka_client *client)
{
    lw_timer_init(&client->revoke_timer, on_revoke_due);
}

struct named {
    int32_t number;
    lw_kafka_partition_fn fn;
    void *user;
};

static void
call_named(struct lw_kafka_partition *partition, void *user)
{
    const struct named *named = user;
    if (partition->number == named->number) {
        named->fn(partition, named->user);
    }
}

/* The partitions of the list and their companions, which have the same number. */
static void
each_named(struct lw_kafka_client *client, const rd_kafka_topic_partition_list_t *list,
           lw_kafka_partition_fn fn, void *user)
{
    for (int i = 0; i < list->cnt; i++) {
        struct lw_kafka_source *source = lw_kafka_client_find(client, list->elems[i].topic);
        struct named named = { list->elems[i].partition, fn, user };
        if (source) {
            lw_kafka_source_each(source, call_named, &named);
        }
    }
}

/* -- Assigning -------------------------------------------------------------------------------------- */

/* Opens what the event names; leaves out what cannot be opened. Companions follow. */
static rd_kafka_topic_partition_list_t *
open_all(struct lw_kafka_client *client, const rd_kafka_topic_partition_list_t *named)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(named->cnt);
    for (int i = 0; i < named->cnt; i++) {
        const rd_kafka_topic_partition_t *item = &named->elems[i];
        struct lw_kafka_source *source = lw_kafka_client_find(client, item->topic);
        if (!source || !lw_kafka_partition_open(source, source->topic, -1, item->partition)) {
            lw_host_log(client->broker->base.host, LW_LOG_ERROR, "kafka.not_opened",
                        "a partition could not be opened and is not consumed",
                        "topic=%s partition=%d", item->topic, (int)item->partition);
            continue;
        }
        source->is_missing = false;
        rd_kafka_topic_partition_list_add(list, source->topic, item->partition);
        lw_kafka_companions_add(source, item->partition, list);
    }
    return list;
}

static void
begin_all(struct lw_kafka_client *client, const rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; i < list->cnt; i++) {
        struct lw_kafka_partition *partition = lw_kafka_client_find_partition(
            client, list->elems[i].topic, list->elems[i].partition);
        if (partition && !partition->generation) {
            lw_kafka_partition_begin(partition);
        }
    }
}

static void
log_answer(struct lw_kafka_client *client, const char *what, const char *reason)
{
    char quoted[512];
    lw_host_log(client->broker->base.host, LW_LOG_ERROR, "kafka.assignment_failed",
                "the client refused an assignment; the group will be joined again",
                "broker=%s group=%s action=%s reason=%s", client->broker->name, client->group,
                what, lw_log_quote(reason, quoted, sizeof quoted));
}

/* Gives the list to the client; false when it was refused. */
static bool
assign(struct lw_kafka_client *client, const rd_kafka_topic_partition_list_t *list)
{
    if (client->is_cooperative) {
        rd_kafka_error_t *error = rd_kafka_incremental_assign(client->rk, list);
        if (error) {
            log_answer(client, "incremental_assign", rd_kafka_error_string(error));
            rd_kafka_error_destroy(error);
            return false;
        }
        return true;
    }
    rd_kafka_resp_err_t code = rd_kafka_assign(client->rk, list);
    if (code) {
        log_answer(client, "assign", rd_kafka_err2str(code));
    }
    return code == RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void
on_assign(struct lw_kafka_client *client, rd_kafka_event_t *event)
{
    const rd_kafka_topic_partition_list_t *named = rd_kafka_event_topic_partition_list(event);
    client->was_assigned = true;
    rd_kafka_topic_partition_list_t *list = open_all(client, named);
    lw_host_log(client->broker->base.host, LW_LOG_INFO, "kafka.assigned",
                "the group gave us partitions",
                "broker=%s group=%s partitions=%d companions=%d", client->broker->name,
                client->group, named->cnt, list->cnt - named->cnt);
    /* An event at the beginning and one at the end of each ownership must find a place. */
    size_t places = (size_t)list->cnt * 2;
    if (!lw_events_reserve(&client->broker->events, places)) {
        log_answer(client, "reserve", "no memory");
        lw_kafka_client_rejoin(client);
    } else if (assign(client, list)) {
        begin_all(client, list);
    } else {
        lw_events_unreserve(&client->broker->events, places);
        lw_kafka_client_rejoin(client);
    }
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_event_destroy(event);
}

/* -- Revoking ---------------------------------------------------------------------------------------- */

static void
add_to_list(struct lw_kafka_partition *partition, void *user)
{
    rd_kafka_topic_partition_list_add(user, partition->topic, partition->number);
}

/* Takes away what is being revoked: all, or under the cooperative protocol what is named. */
static void
unassign(struct lw_kafka_client *client, const rd_kafka_topic_partition_list_t *named)
{
    if (!client->is_cooperative) {
        rd_kafka_resp_err_t code = rd_kafka_assign(client->rk, NULL);
        if (code) {
            log_answer(client, "unassign", rd_kafka_err2str(code));
        }
        return;
    }
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(8);
    each_named(client, named, add_to_list, list);
    rd_kafka_error_t *error = rd_kafka_incremental_unassign(client->rk, list);
    if (error) {
        log_answer(client, "incremental_unassign", rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
    }
    rd_kafka_topic_partition_list_destroy(list);
}

static void
end_partition(struct lw_kafka_partition *partition, void *user)
{
    (void)user;
    lw_kafka_partition_end(partition);
}

static struct lw_event
slot_event(enum lw_event_kind kind, const struct lw_kafka_partition *partition)
{
    return (struct lw_event){ .kind = kind,
                              .source = lw_kafka_source_face(partition->source),
                              .slot = partition->slot,
                              .generation = partition->generation,
                              .topic = partition->topic,
                              .partition = partition->number,
                              .is_companion = partition->tier_ms >= 0,
                              .position = -1 };
}

static void
say_lost(struct lw_kafka_partition *partition, void *user)
{
    (void)user;
    struct lw_event event = slot_event(LW_EVENT_LOST, partition);
    lw_events_push_reserved(&partition->source->broker->events, &event);
}

static void
say_revoking(struct lw_kafka_partition *partition, void *user)
{
    (void)user;
    struct lw_kafka_client *client = partition->source->client;
    struct lw_event event = slot_event(LW_EVENT_REVOKING, partition);
    event.deadline = client->revoke_deadline;
    lw_events_push_reserved(&client->broker->events, &event);
    partition->is_revoking = true;
    client->revoking_count++;
}

static void
each_affected(struct lw_kafka_client *client, rd_kafka_event_t *event, lw_kafka_partition_fn fn)
{
    if (client->is_cooperative) {
        each_named(client, rd_kafka_event_topic_partition_list(event), fn, NULL);
    } else {
        lw_kafka_client_each(client, fn, NULL);
    }
}

static void
answer(struct lw_kafka_client *client, rd_kafka_event_t *event)
{
    unassign(client, rd_kafka_event_topic_partition_list(event));
    each_affected(client, event, end_partition);
    rd_kafka_event_destroy(event);
}

static uint64_t
revoke_deadline(const struct lw_kafka_client *client)
{
    uint64_t half = (uint64_t)client->max_poll_interval_ms / 2 * LW_MS;
    return client->broker->base.host->now + (half < LW_KAFKA_WAIT_NS ? half : LW_KAFKA_WAIT_NS);
}

/* A loop that was stuck longer than the interval was expelled, whatever the event says. */
static bool
is_lost_by_us(const struct lw_kafka_client *client)
{
    uint64_t idle_ns = client->broker->base.host->now - client->served_at;
    return idle_ns > (uint64_t)client->max_poll_interval_ms * LW_MS;
}

static void
on_revoke(struct lw_kafka_client *client, rd_kafka_event_t *event)
{
    bool is_lost = is_lost_by_us(client) || rd_kafka_assignment_lost(client->rk);
    lw_host_log(client->broker->base.host, is_lost ? LW_LOG_WARN : LW_LOG_INFO,
                is_lost ? "kafka.lost" : "kafka.revoking",
                is_lost ? "the assignment was lost: others may own the partitions already"
                        : "the group takes partitions back",
                "broker=%s group=%s partitions=%d", client->broker->name, client->group,
                rd_kafka_event_topic_partition_list(event)->cnt);
    if (is_lost) {
        each_affected(client, event, say_lost);
        lw_kafka_commit_abandon(client, LW_STATUS_CLOSED);
        answer(client, event);
        return;
    }
    client->revoke = event;
    client->revoking_count = 0;
    client->revoke_deadline = revoke_deadline(client);
    each_affected(client, event, say_revoking);
    lw_timers_arm(&client->broker->base.host->timers, &client->revoke_timer,
                  client->revoke_deadline);
    lw_kafka_assignment_continue(client);
}

void
lw_kafka_assignment_on_event(struct lw_kafka_client *client, rd_kafka_event_t *event)
{
    client->is_cooperative = strcmp(rd_kafka_rebalance_protocol(client->rk), "COOPERATIVE") ==
                             0;
    atomic_store(&client->is_joining, false);
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        on_assign(client, event);
    } else {
        if (client->revoke) {
            lw_kafka_assignment_force(client); /* a close does not wait for an open answer */
        }
        on_revoke(client, event);
    }
    lw_kafka_commit_continue(client);
}

/* -- Answering --------------------------------------------------------------------------------------- */

static void
give_up_if_named(struct lw_kafka_partition *partition, void *user)
{
    const uint64_t *generation = user;
    if (partition->generation == *generation && partition->is_revoking &&
        !partition->is_given_up) {
        partition->is_given_up = true;
        partition->source->client->revoking_count--;
    }
}

void
lw_kafka_assignment_done(struct lw_kafka_client *client, uint64_t generation)
{
    uint32_t before = client->revoking_count;
    lw_kafka_client_each(client, give_up_if_named, &generation);
    if (client->revoking_count < before) {
        lw_kafka_assignment_continue(client);
    }
}

void
lw_kafka_assignment_continue(struct lw_kafka_client *client)
{
    bool is_waiting = client->revoking_count > 0 || client->commit || client->is_refreshing;
    if (client->revoke && !is_waiting) {
        lw_kafka_assignment_force(client);
    }
}

void
lw_kafka_assignment_force(struct lw_kafka_client *client)
{
    rd_kafka_event_t *event = client->revoke;
    if (!event) {
        return;
    }
    client->revoke = NULL;
    client->revoking_count = 0;
    lw_timers_disarm(&client->broker->base.host->timers, &client->revoke_timer);
    answer(client, event);
    if (client->is_stop_wanted) {
        lw_kafka_client_continue_stop(client);
    }
}

static void
on_revoke_due(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    struct lw_kafka_client *client = LW_CONTAINER(timer, struct lw_kafka_client, revoke_timer);
    lw_host_log(client->broker->base.host, LW_LOG_WARN, "kafka.revoke_late",
                "partitions are given up before their last commit was confirmed",
                "broker=%s group=%s unanswered=%u", client->broker->name, client->group,
                (unsigned)client->revoking_count);
    lw_kafka_commit_abandon(client, LW_STATUS_TIMEOUT);
    lw_kafka_assignment_force(client);
}
