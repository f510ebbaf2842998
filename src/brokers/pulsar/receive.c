/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subscription's slots as one stream: each ready one gives a share before the next has its turn,
 * so that none starves another; what may be outstanding is divided among them; settlements go to
 * the consumer that the message came from. Allocates nothing. Loop thread.
 */
#include "brokers/pulsar/pulsar.h"

void
lw_pulsar_slot_mark_ready(struct lw_pulsar_slot *slot)
{
    if (slot->generation && !slot->is_revoking) {
        lw_turns_add(&slot->source->ready, &slot->ready);
    }
}

void
lw_pulsar_slot_unready(struct lw_pulsar_slot *slot)
{
    lw_turns_remove(&slot->source->ready, &slot->ready);
}

/* -- Demand ---------------------------------------------------------------------------------------- */

static uint32_t
count_live(const struct lw_pulsar_source *source)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < source->slot_count; i++) {
        count += source->slots[i]->is_begun && !source->slots[i]->is_revoking;
    }
    return count;
}

/* Each may have one at least, or a slot whose turn never comes would stand still. */
void
lw_pulsar_source_share(struct lw_pulsar_source *source)
{
    uint32_t live = count_live(source);
    if (live == 0 || source->is_stopping) {
        return;
    }
    uint32_t share = source->demand_messages / live;
    uint32_t rest = source->demand_messages % live;
    uint64_t bytes = source->demand_bytes / live;
    for (uint32_t i = 0; i < source->slot_count; i++) {
        struct lw_pulsar_slot *slot = source->slots[i];
        if (!slot->is_begun || slot->is_revoking) {
            continue;
        }
        uint32_t own = share + (rest > 0 ? 1 : 0);
        rest -= rest > 0 ? 1 : 0;
        own = own == 0 && source->demand_messages > 0 ? 1 : own;
        lw_pulsar_consumer_demand(slot->consumer, own, bytes);
    }
}

void
lw_pulsar_source_demand(struct lw_pulsar_source *source, uint32_t messages, uint64_t bytes)
{
    if (messages > source->settings.queue_total_max) {
        messages = source->settings.queue_total_max;
    }
    if (messages != source->demand_messages || bytes != source->demand_bytes) {
        source->demand_messages = messages;
        source->demand_bytes = bytes;
        lw_pulsar_source_share(source);
    }
}

/* -- Receiving --------------------------------------------------------------------------------------- */

size_t
lw_pulsar_source_receive(struct lw_pulsar_source *source, struct lw_message *const out[],
                         size_t n, uint64_t bytes_max, bool *ret_has_more)
{
    uint64_t bytes = bytes_max ? bytes_max : 1;
    size_t given = 0;
    uint32_t turns = source->ready.count; /* each slot once, or a dry one would spin */
    while (turns > 0 && given < n && bytes > 0 && source->ready.count > 0) {
        size_t wanted = lw_turns_share(&source->ready, n - given);
        struct lw_pulsar_slot *slot = LW_CONTAINER(lw_turns_next(&source->ready),
                                                   struct lw_pulsar_slot, ready);
        given += lw_pulsar_consumer_receive(slot->consumer, out + given, wanted, &bytes);
        if (lw_pulsar_consumer_is_ready(slot->consumer)) {
            lw_pulsar_slot_mark_ready(slot);
        }
        turns--;
    }
    /* What was taken is not outstanding any more, there and here alike. */
    source->demand_messages -= given < source->demand_messages ? (uint32_t)given
                                                               : source->demand_messages;
    *ret_has_more = source->ready.count > 0;
    return given;
}

void
lw_pulsar_source_settle(struct lw_pulsar_source *source, const struct lw_settle_item *items,
                        size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct lw_message *message = items[i].message;
        struct lw_pulsar_consumer *consumer = source->slots[message->slot]->consumer;
        if (items[i].is_ack) {
            lw_pulsar_consumer_ack(consumer, message);
        } else {
            uint64_t delay = items[i].delay_ms < 0 ? UINT64_MAX
                                                   : (uint64_t)items[i].delay_ms * LW_MS;
            lw_pulsar_consumer_nack(consumer, message, delay);
        }
    }
}
