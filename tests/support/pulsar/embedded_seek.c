/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Positions: SEEK (which closes every consumer of the subscription first, then succeeds), the id
 * of the last message, CONSUMER_STATS, and what tests ask about subscriptions and consumers.
 */
#include "tests/support/pulsar/embedded_state.h"

static uint64_t
first_since(const struct embedded_topic *topic, uint64_t publish_ms)
{
    uint64_t i = 0;
    while (i < topic->count && (uint64_t)embedded_entry_at(topic, i)->publish_ms < publish_ms) {
        i++;
    }
    return i;
}

void
embedded_on_seek(struct embedded_session *session, const struct lw_pulsar_seek *seek)
{
    struct embedded_consumer *consumer = embedded_consumer_find(session, seek->consumer_id);
    bool has_id = (seek->has & LW_PULSAR_SEEK_HAS_MESSAGE_ID) != 0;
    bool has_time = (seek->has & LW_PULSAR_SEEK_HAS_PUBLISH_TIME) != 0;
    if (consumer == NULL || (!has_id && !has_time)) {
        embedded_fail(session, seek->request_id, LW_PULSAR_METADATA_ERROR,
                      consumer == NULL
                          ? "Consumer not found"
                          : "Message id and message publish time were not present");
        return;
    }
    struct embedded_subscription *subscription = consumer->subscription;
    const struct embedded_topic *topic = subscription->topic;
    if (!topic->is_persistent) {
        embedded_succeed(session, seek->request_id);
        return;
    }
    uint64_t to = has_id ? embedded_position_of(topic, seek->message_id.ledger,
                                                seek->message_id.entry)
                         : first_since(topic, seek->message_publish_time);
    if (session->broker->settings.succeeds_before_seek) {
        embedded_succeed(session, seek->request_id);
    }
    embedded_consumers_close(subscription, NULL, NULL);
    embedded_cells_reset(subscription, to);
    if (has_id && seek->message_id.ack_set.count > 0 && to < topic->count) {
        (void)embedded_cell_keep(subscription, to, &seek->message_id.ack_set);
    }
    if (!session->broker->settings.succeeds_before_seek) {
        embedded_succeed(session, seek->request_id);
    }
}

void
embedded_on_last_id(struct embedded_session *session,
                    const struct lw_pulsar_get_last_message_id *command)
{
    const struct embedded_consumer *consumer = embedded_consumer_find(session,
                                                                      command->consumer_id);
    if (consumer == NULL) {
        embedded_fail(session, command->request_id, LW_PULSAR_METADATA_ERROR,
                      "Consumer not found");
        return;
    }
    const struct embedded_topic *topic = consumer->subscription->topic;
    if (!topic->is_persistent) {
        embedded_fail(session, command->request_id, LW_PULSAR_UNKNOWN_ERROR,
                      "Failed to recover Transaction Buffer.");
        return;
    }
    struct lw_pulsar_command answer = lw_pulsar_command_of(
        LW_PULSAR_GET_LAST_MESSAGE_ID_RESPONSE);
    struct lw_pulsar_get_last_message_id_response *it = &answer.get_last_message_id_response;
    it->request_id = command->request_id;
    it->has = LW_PULSAR_LAST_ID_HAS_MARK_DELETE;
    it->last_message_id = lw_pulsar_message_id_of(UINT64_MAX, UINT64_MAX);
    it->last_message_id.has |= LW_PULSAR_ID_HAS_PARTITION | LW_PULSAR_ID_HAS_BATCH_INDEX;
    it->last_message_id.partition = topic->partition;
    it->last_message_id.batch_index = -1;
    if (topic->count > 0) {
        const struct embedded_entry *last = embedded_entry_at(topic, topic->count - 1);
        embedded_id_of(topic, topic->count - 1, &it->last_message_id.ledger,
                       &it->last_message_id.entry);
        it->last_message_id.batch_index = last->messages > 1 ? last->messages - 1 : -1;
    }
    uint64_t mark = consumer->subscription->mark;
    it->consumer_mark_delete_position = lw_pulsar_message_id_of(topic->ledgers[0].id,
                                                                UINT64_MAX);
    if (mark > 0) {
        embedded_id_of(topic, mark - 1, &it->consumer_mark_delete_position.ledger,
                       &it->consumer_mark_delete_position.entry);
    }
    embedded_reply(session, &answer);
}

void
embedded_on_stats(struct embedded_session *session,
                  const struct lw_pulsar_consumer_stats *command)
{
    static const char *const types[] = { "Exclusive", "Shared", "Failover", "Key_Shared" };
    const struct embedded_consumer *consumer = embedded_consumer_find(session,
                                                                      command->consumer_id);
    if (consumer == NULL) {
        embedded_protest(session, "CONSUMER_STATS of a consumer that is not there");
        return;
    }
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_CONSUMER_STATS_RESPONSE);
    struct lw_pulsar_consumer_stats_response *it = &answer.consumer_stats_response;
    it->request_id = command->request_id;
    it->consumer_name = embedded_bytes(consumer->name);
    it->available_permits = (uint64_t)consumer->permits;
    it->unacked_messages = consumer->unacked;
    it->blocked_consumer_on_unacked_msgs = consumer->is_blocked;
    it->type = embedded_bytes(types[consumer->subscription->type & 3]);
    it->msg_backlog = embedded_backlog(consumer->subscription);
    embedded_reply(session, &answer);
}

/* -- What tests ask -------------------------------------------------------------------------------------- */

static const struct embedded_subscription *
subscription_of(const struct embedded *broker, const char *topic, const char *name)
{
    const struct embedded_topic *it = embedded_topic_find(broker, topic);
    return it == NULL ? NULL : embedded_subscription_find(it, embedded_bytes(name));
}

bool
embedded_subscription(const struct embedded *broker, const char *topic, const char *name,
                      struct embedded_subscription_info *ret_info)
{
    const struct embedded_subscription *it = subscription_of(broker, topic, name);
    if (it == NULL) {
        return false;
    }
    *ret_info = (struct embedded_subscription_info){
        .mark = it->mark,
        .backlog = embedded_backlog(it),
        .pending = it->pending,
        .waiting = it->replay,
        .delayed = it->delayed,
    };
    for (struct lw_list *node = it->consumers.next; node != &it->consumers; node = node->next) {
        const struct embedded_consumer *consumer = LW_CONTAINER_CONST(
            node, struct embedded_consumer, in_subscription);
        ret_info->consumers++;
        ret_info->permits += consumer->permits;
        ret_info->unacked_messages += consumer->unacked;
        if (consumer->serial == it->active) {
            snprintf(ret_info->active, sizeof ret_info->active, "%.127s", consumer->name);
        }
    }
    return true;
}

bool
embedded_id_is_acked(const struct embedded *broker, const char *topic, const char *name,
                     uint64_t ledger, uint64_t entry)
{
    const struct embedded_subscription *it = subscription_of(broker, topic, name);
    uint64_t number;
    return it == NULL || !embedded_number_of(it->topic, ledger, entry, &number) ||
           embedded_cell_is_acked(it, number);
}

bool
embedded_is_acked(const struct embedded *broker, const char *topic, const char *name,
                  uint64_t entry)
{
    const struct embedded_subscription *it = subscription_of(broker, topic, name);
    return it != NULL && embedded_cell_is_acked(it, entry);
}

static const struct embedded_consumer *
named_consumer(const struct embedded_topic *topic, const char *name)
{
    for (struct lw_list *node = topic->subscriptions.next; node != &topic->subscriptions;
         node = node->next) {
        const struct embedded_subscription *it = LW_CONTAINER_CONST(
            node, struct embedded_subscription, link);
        for (struct lw_list *at = it->consumers.next; at != &it->consumers; at = at->next) {
            const struct embedded_consumer *consumer = LW_CONTAINER_CONST(
                at, struct embedded_consumer, in_subscription);
            if (strcmp(consumer->name, name) == 0) {
                return consumer;
            }
        }
    }
    return NULL;
}

bool
embedded_consumer(const struct embedded *broker, const char *topic, const char *name,
                  struct embedded_consumer_info *ret_info)
{
    const struct embedded_topic *it = embedded_topic_find(broker, topic);
    const struct embedded_consumer *consumer = it == NULL ? NULL : named_consumer(it, name);
    if (consumer == NULL) {
        return false;
    }
    *ret_info = (struct embedded_consumer_info){
        .id = consumer->id,
        .permits = consumer->permits,
        .permits_granted = consumer->granted,
        .messages_sent = consumer->messages_sent,
        .entries_sent = consumer->entries_sent,
        .unacked_messages = consumer->unacked,
        .epoch = consumer->epoch,
        .is_active = consumer->serial == consumer->subscription->active,
    };
    return true;
}

static uint32_t
length(const struct lw_list *list)
{
    uint32_t count = 0;
    for (struct lw_list *node = list->next; node != list; node = node->next) {
        count++;
    }
    return count;
}

uint32_t
embedded_connections(const struct embedded *broker)
{
    return length(&broker->sessions);
}

uint32_t
embedded_producers(const struct embedded *broker, const char *topic)
{
    uint32_t count = 0;
    if (topic != NULL) {
        const struct embedded_topic *it = embedded_topic_find(broker, topic);
        return it == NULL ? 0 : length(&it->producers);
    }
    for (struct lw_list *node = broker->sessions.next; node != &broker->sessions;
         node = node->next) {
        count += length(&LW_CONTAINER_CONST(node, struct embedded_session, link)->producers);
    }
    return count;
}

uint32_t
embedded_consumers(const struct embedded *broker, const char *topic)
{
    uint32_t count = 0;
    const struct embedded_topic *it = topic == NULL ? NULL : embedded_topic_find(broker, topic);
    for (struct lw_list *node = broker->sessions.next; node != &broker->sessions;
         node = node->next) {
        const struct embedded_session *session = LW_CONTAINER_CONST(
            node, struct embedded_session, link);
        for (struct lw_list *at = session->consumers.next; at != &session->consumers;
             at = at->next) {
            const struct embedded_consumer *consumer = LW_CONTAINER_CONST(
                at, struct embedded_consumer, link);
            count += topic == NULL || consumer->subscription->topic == it ? 1 : 0;
        }
    }
    return count;
}
