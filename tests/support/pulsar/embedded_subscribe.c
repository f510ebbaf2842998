/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumers of the embedded broker come and go. A subscription keeps its type while somebody is
 * connected; what a leaving consumer had goes to the others at once, and when the last one leaves
 * the subscription reads again from its mark and forgets its redelivery counts.
 */
#include "tests/support/pulsar/embedded_state.h"

struct embedded_consumer *
embedded_consumer_find(const struct embedded_session *session, uint64_t id)
{
    for (struct lw_list *node = session->consumers.next; node != &session->consumers;
         node = node->next) {
        struct embedded_consumer *consumer = LW_CONTAINER(node, struct embedded_consumer, link);
        if (consumer->id == id) {
            return consumer;
        }
    }
    return NULL;
}

struct embedded_consumer *
embedded_consumer_of(const struct embedded_subscription *subscription, uint32_t serial)
{
    if (serial == 0) {
        return NULL;
    }
    for (struct lw_list *node = subscription->consumers.next; node != &subscription->consumers;
         node = node->next) {
        struct embedded_consumer *consumer = LW_CONTAINER(node, struct embedded_consumer,
                                                          in_subscription);
        if (consumer->serial == serial) {
            return consumer;
        }
    }
    return NULL;
}

/* -- Subscriptions ----------------------------------------------------------------------------------- */

struct embedded_subscription *
embedded_subscription_find(const struct embedded_topic *topic, struct lw_bytes name)
{
    for (struct lw_list *node = topic->subscriptions.next; node != &topic->subscriptions;
         node = node->next) {
        struct embedded_subscription *it = LW_CONTAINER(node, struct embedded_subscription,
                                                        link);
        if (lw_text_is_equal(name, it->name)) {
            return it;
        }
    }
    return NULL;
}

static void
set_type(struct embedded_subscription *subscription, int32_t type)
{
    subscription->type = type;
    if (type == LW_PULSAR_SUB_KEY_SHARED && subscription->slots == NULL) {
        subscription->slots = embedded_new((EMBEDDED_SLOTS + 1) * sizeof *subscription->slots);
    } else if (type != LW_PULSAR_SUB_KEY_SHARED) {
        free(subscription->slots);
        subscription->slots = NULL;
    }
}

struct embedded_subscription *
embedded_subscription_new(struct embedded_topic *topic, struct lw_bytes name, int32_t type)
{
    struct embedded_subscription *subscription = embedded_new(sizeof *subscription);
    subscription->topic = topic;
    subscription->is_durable = true;
    embedded_text(subscription->name, sizeof subscription->name, name);
    lw_list_init(&subscription->ready);
    lw_list_init(&subscription->consumers);
    lw_list_init(&subscription->chunked);
    embedded_alarm_init(&subscription->delay_alarm, embedded_on_delay_alarm);
    embedded_alarm_init(&subscription->failover_alarm, embedded_on_failover_alarm);
    set_type(subscription, type);
    lw_list_push(&topic->subscriptions, &subscription->link);
    return subscription;
}

static void
drop_chunked(struct embedded_subscription *subscription)
{
    struct lw_list *node;
    while ((node = lw_list_pop(&subscription->chunked)) != NULL) {
        free(LW_CONTAINER(node, struct embedded_chunked, link));
    }
}

void
embedded_subscription_free(struct embedded_subscription *subscription)
{
    lw_list_remove(&subscription->link);
    lw_list_remove(&subscription->ready);
    subscription->is_durable = true; /* its last consumer does not free it again */
    struct lw_list *node;
    while ((node = lw_list_first(&subscription->consumers)) != NULL) {
        embedded_consumer_free(LW_CONTAINER(node, struct embedded_consumer, in_subscription));
    }
    lw_list_remove(&subscription->ready);
    embedded_disarm(&subscription->delay_alarm);
    embedded_disarm(&subscription->failover_alarm);
    drop_chunked(subscription);
    for (uint64_t i = 0; i < subscription->capacity; i++) {
        free(subscription->cells[i].set);
    }
    free(subscription->cells);
    free(subscription->slots);
    free(subscription->ring);
    free(subscription);
}

/* -- Leaving ------------------------------------------------------------------------------------------ */

static void
give_back(struct embedded_subscription *subscription, uint32_t serial)
{
    for (uint64_t i = subscription->mark; i < subscription->read; i++) {
        const struct embedded_cell *cell = &subscription->cells[i];
        if (i < subscription->capacity && (cell->flags & CELL_PENDING) != 0 &&
            cell->owner == serial) {
            embedded_cell_unpend(subscription, i);
            embedded_cell_replay(subscription, i);
        }
    }
    struct lw_list *next;
    for (struct lw_list *node = subscription->chunked.next; node != &subscription->chunked;
         node = next) {
        next = node->next;
        struct embedded_chunked *chunked = LW_CONTAINER(node, struct embedded_chunked, link);
        if (chunked->serial == serial) {
            lw_list_remove(&chunked->link);
            free(chunked);
        }
    }
}

static bool
is_by_entry(const struct embedded_subscription *subscription)
{
    return subscription->type == LW_PULSAR_SUB_SHARED ||
           subscription->type == LW_PULSAR_SUB_KEY_SHARED;
}

void
embedded_consumer_free(struct embedded_consumer *consumer)
{
    struct embedded_subscription *subscription = consumer->subscription;
    uint32_t serial = consumer->serial;
    lw_list_remove(&consumer->link);
    lw_list_remove(&consumer->in_subscription);
    free(consumer->ranges);
    free(consumer);
    bool is_last = lw_list_is_empty(&subscription->consumers);
    if (is_last && !subscription->is_durable) {
        embedded_subscription_free(subscription);
        return;
    }
    if (is_last) {
        drop_chunked(subscription);
        embedded_cells_rewind(subscription, true);
    } else if (is_by_entry(subscription)) {
        give_back(subscription, serial);
    }
    if (subscription->type == LW_PULSAR_SUB_KEY_SHARED) {
        embedded_ring_make(subscription);
    }
    if (subscription->type == LW_PULSAR_SUB_FAILOVER) {
        embedded_failover_changed(subscription);
    }
    embedded_want_dispatch(subscription);
}

static void
close_consumer(struct embedded_consumer *consumer, const char *url, const char *tls_url)
{
    struct embedded_session *session = consumer->session;
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_CLOSE_CONSUMER);
    command.close_consumer.id = consumer->id;
    command.close_consumer.request_id = LW_PULSAR_NO_REQUEST;
    command.close_consumer.assigned_broker_service_url = embedded_bytes(url);
    command.close_consumer.assigned_broker_service_url_tls = embedded_bytes(tls_url);
    embedded_consumer_free(consumer);
    embedded_reply(session, &command);
}

void
embedded_consumers_close(struct embedded_subscription *subscription, const char *url,
                         const char *tls_url)
{
    bool was_durable = subscription->is_durable;
    struct lw_list *first;
    subscription->is_durable = true; /* it must outlive this loop */
    while ((first = lw_list_first(&subscription->consumers)) != NULL) {
        close_consumer(LW_CONTAINER(first, struct embedded_consumer, in_subscription), url,
                       tls_url);
    }
    subscription->is_durable = was_durable;
}

void
embedded_on_close_consumer(struct embedded_session *session,
                           const struct lw_pulsar_close *command)
{
    struct embedded_consumer *consumer = embedded_consumer_find(session, command->id);
    if (consumer != NULL) {
        embedded_consumer_free(consumer);
    }
    embedded_succeed(session, command->request_id);
}

void
embedded_on_unsubscribe(struct embedded_session *session,
                        const struct lw_pulsar_unsubscribe *command)
{
    struct embedded_consumer *consumer = embedded_consumer_find(session, command->consumer_id);
    if (consumer == NULL) {
        embedded_fail(session, command->request_id, LW_PULSAR_METADATA_ERROR,
                      "Consumer not found");
        return;
    }
    struct embedded_subscription *subscription = consumer->subscription;
    bool is_alone = subscription->consumers.next == subscription->consumers.prev;
    if (!is_alone && !command->force) {
        embedded_fail(session, command->request_id, LW_PULSAR_METADATA_ERROR,
                      "Unconnected or shared consumer attempting to unsubscribe");
        return;
    }
    subscription->is_durable = true;
    embedded_consumer_free(consumer);
    embedded_consumers_close(subscription, NULL, NULL);
    embedded_subscription_free(subscription);
    embedded_succeed(session, command->request_id);
}

/* -- Coming ------------------------------------------------------------------------------------------- */

static uint64_t
start_of(const struct embedded_topic *topic, const struct lw_pulsar_subscribe *command)
{
    if (command->start_message_rollback_duration_sec > 0) {
        int64_t since = embedded_now_ms(topic->broker) -
                        (int64_t)command->start_message_rollback_duration_sec * 1000;
        uint64_t i = 0;
        while (i < topic->count && embedded_entry_at(topic, i)->publish_ms < since) {
            i++;
        }
        return i;
    }
    if ((command->has & LW_PULSAR_SUBSCRIBE_HAS_START_MESSAGE_ID) != 0) {
        return embedded_position_of(topic, command->start_message_id.ledger,
                                    command->start_message_id.entry);
    }
    bool is_earliest = command->durable &&
                       command->initial_position == LW_PULSAR_INITIAL_EARLIEST;
    return is_earliest ? 0 : topic->count;
}

struct refusal {
    int32_t error; /* 0: none */
    const char *text;
};

static struct refusal
judge_mode(const struct embedded_subscription *subscription,
           const struct lw_pulsar_subscribe *command, const struct lw_pulsar_range *ranges,
           uint32_t count)
{
    const struct lw_pulsar_key_shared_meta *meta = &command->key_shared_meta;
    bool is_sticky = meta->mode == LW_PULSAR_KEY_SHARED_STICKY;
    if (is_sticky && count == 0) {
        return (struct refusal){ LW_PULSAR_CONSUMER_ASSIGN_ERROR,
                                 "Ranges for KeyShared policy must not be empty." };
    }
    if (lw_list_is_empty(&subscription->consumers)) {
        return (struct refusal){ 0, NULL };
    }
    if (is_sticky != subscription->is_sticky ||
        meta->allow_out_of_order_delivery != subscription->is_unordered) {
        return (struct refusal){ LW_PULSAR_CONSUMER_BUSY,
                                 "Subscription is of different key shared policy" };
    }
    if (is_sticky && embedded_ranges_meet(subscription, ranges, count)) {
        return (struct refusal){ LW_PULSAR_CONSUMER_ASSIGN_ERROR,
                                 "Range conflict with another consumer" };
    }
    return (struct refusal){ 0, NULL };
}

static struct refusal
judge(const struct embedded_subscription *subscription,
      const struct lw_pulsar_subscribe *command, const struct lw_pulsar_range *ranges,
      uint32_t count)
{
    bool is_used = !lw_list_is_empty(&subscription->consumers);
    if (is_used && subscription->type != command->sub_type) {
        return (struct refusal){ LW_PULSAR_CONSUMER_BUSY,
                                 "Subscription is of different type." };
    }
    if (command->sub_type == LW_PULSAR_SUB_KEY_SHARED) {
        return judge_mode(subscription, command, ranges, count);
    }
    return (struct refusal){ 0, NULL };
}

static struct lw_pulsar_range *
read_ranges(const struct lw_pulsar_subscribe *command, uint32_t *ret_count)
{
    const struct lw_pulsar_list *list = &command->key_shared_meta.ranges;
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(list);
    struct lw_pulsar_range *ranges = embedded_new((list->count + 1) * sizeof *ranges);
    uint32_t count = 0;
    while (count < list->count && lw_pulsar_walk_range(&walk, &ranges[count])) {
        count++;
    }
    *ret_count = count;
    return ranges;
}

/* The lowest index that no equal name has. */
static uint32_t
index_for(const struct embedded_subscription *subscription, const char *name)
{
    uint32_t index = 0;
    for (struct lw_list *node = subscription->consumers.next; node != &subscription->consumers;
         node = node->next) {
        const struct embedded_consumer *it = LW_CONTAINER_CONST(node, struct embedded_consumer,
                                                                in_subscription);
        if (strcmp(it->name, name) == 0 && it->index >= index) {
            index = it->index + 1;
        }
    }
    return index;
}

static struct embedded_consumer *
make_consumer(struct embedded_session *session, struct embedded_subscription *subscription,
              const struct lw_pulsar_subscribe *command)
{
    struct embedded *broker = session->broker;
    struct embedded_consumer *consumer = embedded_new(sizeof *consumer);
    consumer->session = session;
    consumer->subscription = subscription;
    consumer->id = command->consumer_id;
    consumer->serial = broker->next_serial++;
    consumer->scope = broker->next_scope++;
    consumer->priority = command->priority_level;
    consumer->has_epoch = (command->has & LW_PULSAR_SUBSCRIBE_HAS_CONSUMER_EPOCH) != 0;
    consumer->epoch = command->consumer_epoch;
    embedded_text(consumer->name, sizeof consumer->name, command->consumer_name);
    if (consumer->name[0] == '\0') {
        snprintf(consumer->name, sizeof consumer->name, "consumer-%u", consumer->serial);
    }
    consumer->index = index_for(subscription, consumer->name);
    return consumer;
}

static void
join(struct embedded_session *session, struct embedded_subscription *subscription,
     const struct lw_pulsar_subscribe *command, struct lw_pulsar_range *ranges, uint32_t count)
{
    if (lw_list_is_empty(&subscription->consumers)) {
        set_type(subscription, command->sub_type);
        subscription->is_sticky = command->sub_type == LW_PULSAR_SUB_KEY_SHARED &&
                                  command->key_shared_meta.mode == LW_PULSAR_KEY_SHARED_STICKY;
        subscription->is_unordered = command->key_shared_meta.allow_out_of_order_delivery;
    }
    struct embedded_consumer *consumer = make_consumer(session, subscription, command);
    consumer->ranges = ranges;
    consumer->range_count = count;
    lw_list_push(&session->consumers, &consumer->link);
    lw_list_push(&subscription->consumers, &consumer->in_subscription);
    if (subscription->type == LW_PULSAR_SUB_KEY_SHARED) {
        embedded_ring_make(subscription);
    }
    if (subscription->type == LW_PULSAR_SUB_FAILOVER) {
        embedded_failover_joined(consumer);
    }
    embedded_succeed(session, command->request_id);
    if (subscription->type == LW_PULSAR_SUB_FAILOVER) {
        embedded_failover_changed(subscription);
    }
}

/* The subscription that is wanted, made if it is not there; NULL: refused. */
static struct embedded_subscription *
find_or_make(struct embedded_session *session, struct embedded_topic *topic,
             const struct lw_pulsar_subscribe *command)
{
    if (command->subscription.size == 0) {
        embedded_fail(session, command->request_id, LW_PULSAR_PRODUCER_BUSY,
                      "Empty subscription name");
        return NULL;
    }
    struct embedded_subscription *found = embedded_subscription_find(topic,
                                                                     command->subscription);
    if (found == NULL) {
        found = embedded_subscription_new(topic, command->subscription, command->sub_type);
        found->is_durable = command->durable;
        embedded_cells_reset(found, start_of(topic, command));
    }
    return found;
}

void
embedded_on_subscribe(struct embedded_session *session, const struct lw_pulsar_command *whole)
{
    const struct lw_pulsar_subscribe *command = &whole->subscribe;
    if (embedded_consumer_find(session, command->consumer_id) != NULL) {
        embedded_succeed(session, command->request_id);
        return;
    }
    struct embedded_topic *topic = embedded_admit(
        session, whole, command->topic, command->request_id, command->force_topic_creation);
    struct embedded_subscription *subscription = topic == NULL
                                                     ? NULL
                                                     : find_or_make(session, topic, command);
    if (subscription == NULL) {
        return;
    }
    uint32_t count;
    struct lw_pulsar_range *ranges = read_ranges(command, &count);
    struct refusal refusal = judge(subscription, command, ranges, count);
    struct lw_list *first = lw_list_first(&subscription->consumers);
    bool is_taken = first != NULL && command->sub_type == LW_PULSAR_SUB_EXCLUSIVE;
    if (refusal.error == 0 && !is_taken) {
        join(session, subscription, command, ranges, count);
        return;
    }
    free(ranges);
    if (refusal.error != 0) {
        embedded_fail(session, command->request_id, refusal.error, refusal.text);
    } else {
        embedded_contest_begin(
            session, LW_CONTAINER(first, struct embedded_consumer, in_subscription)->session,
            whole, command->request_id, LW_PULSAR_CONSUMER_BUSY,
            "Exclusive consumer is already connected");
    }
}
