/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets which entry when. Shared: one entry at a time, round robin over those of the best
 * priority who have permits, so that it oversteps by less than one batch. The other types read
 * min(permits, 100) entries and charge afterwards, whatever these hold. What comes again goes
 * before what is new. Key_Shared keeps a slot with the consumer that has something of it pending,
 * and passes over what is blocked, within a limit.
 */
#include "tests/support/pulsar/embedded_state.h"

enum { VERSION_OF_CHECKSUMS = 11, VERSION_OF_ENTRY_METADATA = 18, CHECKSUM_PART_BYTES = 6 };

/* -- Sending one entry -------------------------------------------------------------------------------- */

static struct lw_bytes
rest_for(const struct embedded_session *session, const struct embedded_entry *entry)
{
    struct lw_bytes rest = { entry->rest, entry->rest_size };
    if (session->version < VERSION_OF_CHECKSUMS && entry->rest_size >= CHECKSUM_PART_BYTES &&
        entry->rest[0] == 0x0e && entry->rest[1] == 0x01) {
        rest.data = entry->rest + CHECKSUM_PART_BYTES;
        rest.size -= CHECKSUM_PART_BYTES;
    }
    return rest;
}

/* The block 0x0e02 with time and index; returns its size, 0 for none. */
static size_t
entry_metadata(const struct embedded_session *session, uint64_t index, uint8_t *out,
               size_t size)
{
    bool wants = session->broker->settings.has_entry_metadata &&
                 session->version >= VERSION_OF_ENTRY_METADATA &&
                 session->flags.supports_broker_entry_metadata;
    if (!wants) {
        return 0;
    }
    uint8_t scratch[64];
    struct lw_pulsar_entry_metadata metadata = {
        .has = LW_PULSAR_ENTRY_HAS_TIMESTAMP | LW_PULSAR_ENTRY_HAS_INDEX,
        .broker_timestamp = (uint64_t)embedded_now_ms(session->broker),
        .index = index,
    };
    struct lw_proto_writer inner = lw_proto_writer_of(scratch, sizeof scratch);
    lw_pulsar_entry_metadata_encode(&metadata, &inner);
    struct lw_proto_writer writer = lw_proto_writer_of(out, size);
    lw_proto_put_be16(&writer, 0x0e02);
    lw_proto_put_be32(&writer, (uint32_t)inner.size);
    lw_proto_put_raw(&writer, scratch, inner.size);
    return writer.size;
}

static void
write_message(struct embedded_session *session, const struct lw_pulsar_command *command,
              const struct embedded_entry *entry, uint64_t index)
{
    uint8_t block[96];
    struct lw_bytes rest = rest_for(session, entry);
    size_t block_size = entry_metadata(session, index, block, sizeof block);
    size_t head = lw_pulsar_command_frame_size(command);
    size_t size = head + block_size + rest.size;
    uint8_t *at = embedded_output_begin(session, size);
    struct lw_proto_writer writer = lw_proto_writer_of(at, size);
    lw_proto_put_be32(&writer, (uint32_t)(size - 4));
    lw_proto_put_be32(&writer, (uint32_t)(head - LW_PULSAR_HEAD_BYTES));
    lw_pulsar_command_encode(command, &writer);
    lw_proto_put_raw(&writer, block, block_size);
    lw_proto_put_raw(&writer, rest.data, rest.size);
    embedded_output_end(session, LW_PULSAR_MESSAGE, size);
}

static bool
is_by_entry(const struct embedded_subscription *subscription)
{
    return subscription->type == LW_PULSAR_SUB_SHARED ||
           subscription->type == LW_PULSAR_SUB_KEY_SHARED;
}

static void
charge(struct embedded_consumer *consumer, int32_t messages)
{
    struct embedded_counts *counts = &consumer->session->broker->counts;
    consumer->permits -= messages;
    consumer->messages_sent += (uint64_t)messages;
    consumer->entries_sent++;
    counts->messages_sent += (uint64_t)messages;
    if (consumer->permits < counts->overdrawn_min) {
        counts->overdrawn_min = consumer->permits;
    }
}

/* Puts the members that are still open into the command. */
static void
put_ack_set(const struct embedded_subscription *subscription, uint64_t number,
            struct lw_proto_writer *writer, struct lw_pulsar_message *message)
{
    const struct embedded_cell *cell = &subscription->cells[number];
    int32_t messages = embedded_entry_at(subscription->topic, number)->messages;
    if (number >= subscription->capacity || cell->set == NULL) {
        return;
    }
    int32_t count = (messages + 63) / 64;
    while (count > 0 && cell->set[count - 1] == 0) {
        count--;
    }
    for (int32_t i = 0; i < count; i++) {
        lw_pulsar_list_put_number(writer, cell->set[i]);
    }
    message->ack_set = lw_pulsar_list_of(writer);
}

static void
send_entry(struct embedded_consumer *consumer, uint64_t number)
{
    struct embedded_subscription *subscription = consumer->subscription;
    struct embedded_topic *topic = subscription->topic;
    uint8_t scratch[4096];
    struct lw_proto_writer writer = lw_proto_writer_of(scratch, sizeof scratch);
    embedded_cells_cover(subscription, number + 1);
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_MESSAGE);
    struct lw_pulsar_message *message = &command.message;
    message->consumer_id = consumer->id;
    message->message_id = lw_pulsar_message_id_of(0, 0);
    embedded_id_of(topic, number, &message->message_id.ledger, &message->message_id.entry);
    message->message_id.has |= LW_PULSAR_ID_HAS_PARTITION;
    message->message_id.partition = topic->partition;
    put_ack_set(subscription, number, &writer, message);
    if (is_by_entry(subscription)) {
        message->redelivery_count = subscription->cells[number].redeliveries;
    } else if (consumer->has_epoch) {
        message->has |= LW_PULSAR_MESSAGE_HAS_CONSUMER_EPOCH;
        message->consumer_epoch = consumer->epoch;
    }
    int32_t left = embedded_cell_left(subscription, number);
    embedded_cell_pend(consumer, number);
    charge(consumer, left);
    uint32_t limit = topic->broker->settings.unacked_max;
    consumer->is_blocked = is_by_entry(subscription) && limit > 0 && consumer->unacked >= limit;
    write_message(consumer->session, &command, embedded_entry_at(topic, number), number);
}

/* -- What comes next ---------------------------------------------------------------------------------- */

void
embedded_on_delay_alarm(struct embedded_alarm *alarm)
{
    struct embedded_subscription *subscription = LW_CONTAINER(
        alarm, struct embedded_subscription, delay_alarm);
    struct embedded *broker = subscription->topic->broker;
    int64_t now_ms = embedded_now_ms(broker);
    int64_t next_ms = INT64_MAX;
    for (uint64_t i = subscription->mark; i < subscription->read; i++) {
        struct embedded_cell *cell = &subscription->cells[i];
        if ((cell->flags & CELL_DELAYED) == 0) {
            continue;
        }
        int64_t tick = broker->settings.delay_tick_ms;
        int64_t due_ms = embedded_entry_at(subscription->topic, i)->deliver_at_ms;
        due_ms -= tick > 0 ? due_ms % tick : 0;
        if (due_ms <= now_ms) {
            cell->flags &= (uint8_t)~CELL_DELAYED;
            subscription->delayed--;
            embedded_cell_replay(subscription, i);
        } else if (due_ms < next_ms) {
            next_ms = due_ms;
        }
    }
    if (next_ms != INT64_MAX) {
        embedded_arm(broker, alarm, next_ms);
    }
    embedded_want_dispatch(subscription);
}

/* True: it has to wait for its time, and does so now. */
static bool
delays(struct embedded_subscription *subscription, uint64_t number)
{
    struct embedded *broker = subscription->topic->broker;
    const struct embedded_entry *entry = embedded_entry_at(subscription->topic, number);
    int64_t tick = broker->settings.delay_tick_ms;
    int64_t due_ms = entry->deliver_at_ms;
    if (due_ms == 0 || due_ms <= embedded_now_ms(broker) + tick) {
        return false;
    }
    due_ms -= tick > 0 ? due_ms % tick : 0;
    embedded_cells_cover(subscription, number + 1);
    subscription->cells[number].flags |= CELL_DELAYED;
    subscription->delayed++;
    if (lw_list_is_empty(&subscription->delay_alarm.link) ||
        due_ms < subscription->delay_alarm.due_ms) {
        embedded_arm(broker, &subscription->delay_alarm, due_ms);
    }
    return true;
}

/* The lowest replay from `from` on; false: none. */
static bool
next_replay(struct embedded_subscription *subscription, uint64_t from, uint64_t *ret_number)
{
    uint64_t start = from > subscription->replay_low ? from : subscription->replay_low;
    if (subscription->replay == 0) {
        return false;
    }
    for (uint64_t i = start; i < subscription->read && i < subscription->capacity; i++) {
        if ((subscription->cells[i].flags & CELL_REPLAY) != 0) {
            subscription->replay_low = from <= subscription->replay_low
                                           ? i
                                           : subscription->replay_low;
            *ret_number = i;
            return true;
        }
    }
    return false;
}

/* The next entry that was never read, acknowledged and unreadable ones passed over. */
static bool
next_new(struct embedded_subscription *subscription, uint64_t *ret_number)
{
    while (subscription->read < subscription->topic->count) {
        uint64_t number = subscription->read++;
        if (embedded_cell_is_acked(subscription, number)) {
            continue;
        }
        if (!embedded_entry_at(subscription->topic, number)->is_readable) {
            embedded_cell_ack(subscription, number);
            continue;
        }
        if (is_by_entry(subscription) && delays(subscription, number)) {
            continue;
        }
        *ret_number = number;
        return true;
    }
    return false;
}

static bool
may_get(struct embedded_consumer *consumer)
{
    if (consumer->permits <= 0 || consumer->is_blocked || consumer->session->is_doomed) {
        return false;
    }
    if (!embedded_has_room(consumer->session)) {
        consumer->session->is_full = true;
        return false;
    }
    return true;
}

/* -- Shared -------------------------------------------------------------------------------------------- */

static struct embedded_consumer *
next_consumer(struct embedded_subscription *subscription)
{
    struct embedded_consumer *best = NULL;
    struct embedded_consumer *last = embedded_consumer_of(subscription, subscription->turn);
    struct lw_list *head = &subscription->consumers;
    struct lw_list *start = last == NULL ? head : &last->in_subscription;
    struct lw_list *node = start;
    do {
        node = node->next;
        if (node == head) {
            continue;
        }
        struct embedded_consumer *consumer = LW_CONTAINER(node, struct embedded_consumer,
                                                          in_subscription);
        if (may_get(consumer) && (best == NULL || consumer->priority < best->priority)) {
            best = consumer;
        }
    } while (node != start);
    return best;
}

/* All chunks of a message go to one consumer; NULL: whoever is next. */
static struct embedded_chunked *
chunked_of(struct embedded_subscription *subscription, const char *uuid)
{
    for (struct lw_list *node = subscription->chunked.next; node != &subscription->chunked;
         node = node->next) {
        struct embedded_chunked *it = LW_CONTAINER(node, struct embedded_chunked, link);
        if (strcmp(it->uuid, uuid) == 0) {
            return it;
        }
    }
    return NULL;
}

static struct embedded_consumer *
consumer_for(struct embedded_subscription *subscription, struct embedded_consumer *next,
             const struct embedded_entry *entry)
{
    if (!entry->is_chunk) {
        return next;
    }
    struct embedded_chunked *chunked = chunked_of(subscription, entry->uuid);
    if (chunked == NULL) {
        chunked = embedded_new(sizeof *chunked);
        memcpy(chunked->uuid, entry->uuid, sizeof chunked->uuid);
        chunked->serial = next->serial;
        lw_list_push(&subscription->chunked, &chunked->link);
    }
    struct embedded_consumer *owner = embedded_consumer_of(subscription, chunked->serial);
    return owner != NULL && may_get(owner) ? owner : NULL;
}

static void
dispatch_shared(struct embedded_subscription *subscription)
{
    uint64_t from = 0;
    struct embedded_consumer *next;
    while ((next = next_consumer(subscription)) != NULL) {
        uint64_t number;
        bool is_replay = next_replay(subscription, from, &number);
        if (!is_replay && !next_new(subscription, &number)) {
            return;
        }
        const struct embedded_entry *entry = embedded_entry_at(subscription->topic, number);
        struct embedded_consumer *consumer = consumer_for(subscription, next, entry);
        if (consumer == NULL) {
            embedded_cell_replay(subscription, number);
            from = number + 1;
            continue;
        }
        subscription->turn = consumer->serial;
        send_entry(consumer, number);
    }
}

/* -- Exclusive, Failover --------------------------------------------------------------------------------- */

static void
dispatch_single(struct embedded_subscription *subscription)
{
    struct lw_list *first = lw_list_first(&subscription->consumers);
    struct embedded_consumer *consumer = subscription->type == LW_PULSAR_SUB_FAILOVER
                                             ? embedded_consumer_of(subscription,
                                                                    subscription->active)
                                         : first == NULL
                                             ? NULL
                                             : LW_CONTAINER(first, struct embedded_consumer,
                                                            in_subscription);
    while (consumer != NULL && may_get(consumer)) {
        int64_t quota = subscription->topic->broker->settings.read_batch;
        quota = consumer->permits < quota ? consumer->permits : quota;
        uint64_t number;
        for (; quota > 0; quota--) {
            if (!next_new(subscription, &number)) {
                return;
            }
            send_entry(consumer, number);
        }
    }
}

/* -- Key_Shared ------------------------------------------------------------------------------------------- */

static bool
start_round(struct embedded_subscription *subscription)
{
    int64_t batch = subscription->topic->broker->settings.read_batch;
    bool is_any = false;
    for (struct lw_list *node = subscription->consumers.next; node != &subscription->consumers;
         node = node->next) {
        struct embedded_consumer *consumer = LW_CONTAINER(node, struct embedded_consumer,
                                                          in_subscription);
        consumer->quota = !may_get(consumer)          ? 0
                          : consumer->permits < batch ? consumer->permits
                                                      : batch;
        is_any = is_any || consumer->quota > 0;
    }
    subscription->pass++;
    return is_any;
}

/* Sends it to the owner of its slot, or keeps it for later; true: sent. */
static bool
send_by_key(struct embedded_subscription *subscription, uint64_t number)
{
    const struct embedded_entry *entry = embedded_entry_at(subscription->topic, number);
    struct embedded_slot *slot = &subscription->slots[embedded_entry_slot(subscription, entry)];
    struct embedded_consumer *owner = embedded_slot_owner(
        subscription, embedded_entry_slot(subscription, entry));
    bool drains = owner != NULL && slot->pending > 0 && slot->owner != owner->serial &&
                  !subscription->is_unordered;
    bool is_blocked = slot->blocked == subscription->pass || owner == NULL || drains ||
                      owner->quota <= 0 || owner->is_blocked;
    if (is_blocked) {
        slot->blocked = subscription->pass;
        embedded_cell_replay(subscription, number);
        return false;
    }
    owner->quota--;
    send_entry(owner, number);
    return true;
}

static bool
has_quota(const struct embedded_subscription *subscription)
{
    for (struct lw_list *node = subscription->consumers.next; node != &subscription->consumers;
         node = node->next) {
        if (LW_CONTAINER_CONST(node, struct embedded_consumer, in_subscription)->quota > 0) {
            return true;
        }
    }
    return false;
}

static void
dispatch_by_key(struct embedded_subscription *subscription)
{
    bool is_moving = true;
    while (is_moving && start_round(subscription)) {
        uint64_t number;
        is_moving = false;
        for (uint64_t from = 0; next_replay(subscription, from, &number); from = number + 1) {
            is_moving = send_by_key(subscription, number) || is_moving;
        }
        while (has_quota(subscription) && subscription->replay < EMBEDDED_AHEAD_MAX &&
               next_new(subscription, &number)) {
            is_moving = send_by_key(subscription, number) || is_moving;
        }
    }
}

/* -- The end of a topic ------------------------------------------------------------------------------------- */

static void
tell_end(struct embedded_subscription *subscription)
{
    const struct embedded_topic *topic = subscription->topic;
    if (!topic->is_terminated || !topic->broker->settings.tells_end ||
        embedded_backlog(subscription) > 0) {
        return;
    }
    for (struct lw_list *node = subscription->consumers.next; node != &subscription->consumers;
         node = node->next) {
        struct embedded_consumer *consumer = LW_CONTAINER(node, struct embedded_consumer,
                                                          in_subscription);
        if (consumer->has_flowed && !consumer->was_told_end) {
            struct lw_pulsar_command command = lw_pulsar_command_of(
                LW_PULSAR_REACHED_END_OF_TOPIC);
            command.reached_end_of_topic.consumer_id = consumer->id;
            consumer->was_told_end = true;
            embedded_reply(consumer->session, &command);
        }
    }
}

void
embedded_dispatch(struct embedded_subscription *subscription)
{
    embedded_cells_cover(subscription, subscription->topic->count);
    if (subscription->type == LW_PULSAR_SUB_SHARED) {
        dispatch_shared(subscription);
    } else if (subscription->type == LW_PULSAR_SUB_KEY_SHARED) {
        dispatch_by_key(subscription);
    } else {
        dispatch_single(subscription);
    }
    tell_end(subscription);
}

/* -- Permits ---------------------------------------------------------------------------------------------- */

void
embedded_on_flow(struct embedded_session *session, const struct lw_pulsar_flow *flow)
{
    struct embedded_counts *counts = &session->broker->counts;
    struct embedded_consumer *consumer = embedded_consumer_find(session, flow->consumer_id);
    if (flow->message_permits == 0 || flow->message_permits > INT32_MAX) {
        embedded_protest(session, "FLOW of 0 or more than 2^31-1");
        return;
    }
    counts->permits_granted += flow->message_permits;
    if (consumer == NULL) {
        return;
    }
    /* the real one counts in 32 bits, and is stuck for ever after a wrap */
    consumer->permits = (int32_t)(uint32_t)(consumer->permits + flow->message_permits);
    consumer->granted += flow->message_permits;
    consumer->has_flowed = true;
    if (consumer->permits > counts->permits_max) {
        counts->permits_max = consumer->permits;
    }
    embedded_want_dispatch(consumer->subscription);
}

/* -- Topics that keep nothing -------------------------------------------------------------------------------- */

void
embedded_pass_on(struct embedded_topic *topic, struct embedded_entry *entry)
{
    for (struct lw_list *node = topic->subscriptions.next; node != &topic->subscriptions;
         node = node->next) {
        struct embedded_subscription *subscription = LW_CONTAINER(
            node, struct embedded_subscription, link);
        struct embedded_consumer *consumer = next_consumer(subscription);
        if (consumer == NULL || !entry->is_readable) {
            continue;
        }
        struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_MESSAGE);
        command.message.consumer_id = consumer->id;
        command.message.message_id = lw_pulsar_message_id_of(0, 0);
        command.message.message_id.has |= LW_PULSAR_ID_HAS_PARTITION;
        command.message.message_id.partition = topic->partition;
        subscription->turn = consumer->serial;
        charge(consumer, entry->messages);
        write_message(consumer->session, &command, entry, 0);
    }
}
