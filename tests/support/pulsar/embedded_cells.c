/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What became of each entry of a subscription: one cell per entry number with its state, who has
 * it, how often it came back, and which members of a batch are still open. Every change of a
 * state goes through here, so that the sums (pending, replay, acknowledged) always agree.
 */
#include "tests/support/pulsar/embedded_state.h"

void
embedded_cells_cover(struct embedded_subscription *subscription, uint64_t count)
{
    if (count <= subscription->capacity) {
        return;
    }
    uint64_t capacity = subscription->capacity < 64 ? 64 : subscription->capacity;
    while (capacity < count) {
        capacity *= 2;
    }
    subscription->cells = embedded_bigger(subscription->cells, capacity,
                                          sizeof *subscription->cells);
    memset(subscription->cells + subscription->capacity, 0,
           (size_t)(capacity - subscription->capacity) * sizeof *subscription->cells);
    subscription->capacity = capacity;
}

static struct embedded_cell *
cell_at(struct embedded_subscription *subscription, uint64_t number)
{
    embedded_cells_cover(subscription, number + 1);
    return &subscription->cells[number];
}

bool
embedded_cell_is_acked(const struct embedded_subscription *subscription, uint64_t number)
{
    return number < subscription->mark ||
           (number < subscription->capacity &&
            (subscription->cells[number].flags & CELL_ACKED) != 0);
}

static int32_t
words_of(int32_t messages)
{
    return (messages + 63) / 64;
}

int32_t
embedded_cell_left(const struct embedded_subscription *subscription, uint64_t number)
{
    int32_t messages = embedded_entry_at(subscription->topic, number)->messages;
    const uint64_t *set = number < subscription->capacity ? subscription->cells[number].set
                                                          : NULL;
    if (set == NULL) {
        return messages;
    }
    int32_t left = 0;
    for (int32_t i = 0; i < words_of(messages); i++) {
        left += __builtin_popcountll(set[i]);
    }
    return left;
}

/* -- Pending ----------------------------------------------------------------------------------------- */

void
embedded_cell_pend(struct embedded_consumer *consumer, uint64_t number)
{
    struct embedded_subscription *subscription = consumer->subscription;
    struct embedded_cell *cell = cell_at(subscription, number);
    embedded_cell_unreplay(subscription, number);
    embedded_cell_unpend(subscription, number);
    cell->flags |= CELL_PENDING;
    cell->owner = consumer->serial;
    subscription->pending++;
    consumer->unacked += (uint64_t)embedded_cell_left(subscription, number);
    if (subscription->slots != NULL) {
        const struct embedded_entry *entry = embedded_entry_at(subscription->topic, number);
        struct embedded_slot *slot =
            &subscription->slots[embedded_entry_slot(subscription, entry)];
        slot->owner = consumer->serial;
        slot->pending++;
    }
}

void
embedded_cell_unpend(struct embedded_subscription *subscription, uint64_t number)
{
    struct embedded_cell *cell = cell_at(subscription, number);
    if ((cell->flags & CELL_PENDING) == 0) {
        return;
    }
    struct embedded_consumer *consumer = embedded_consumer_of(subscription, cell->owner);
    uint64_t left = (uint64_t)embedded_cell_left(subscription, number);
    if (consumer != NULL) {
        consumer->unacked -= left < consumer->unacked ? left : consumer->unacked;
        uint32_t limit = subscription->topic->broker->settings.unacked_max;
        if (consumer->unacked <= limit / 2) {
            consumer->is_blocked = false;
        }
    }
    cell->flags &= (uint8_t)~CELL_PENDING;
    cell->owner = 0;
    subscription->pending--;
    if (subscription->slots != NULL) {
        const struct embedded_entry *entry = embedded_entry_at(subscription->topic, number);
        subscription->slots[embedded_entry_slot(subscription, entry)].pending--;
    }
}

void
embedded_cell_replay(struct embedded_subscription *subscription, uint64_t number)
{
    struct embedded_cell *cell = cell_at(subscription, number);
    if ((cell->flags & CELL_REPLAY) == 0) {
        cell->flags |= CELL_REPLAY;
        bool is_lower = subscription->replay == 0 || number < subscription->replay_low;
        subscription->replay_low = is_lower ? number : subscription->replay_low;
        subscription->replay++;
    }
}

void
embedded_cell_unreplay(struct embedded_subscription *subscription, uint64_t number)
{
    struct embedded_cell *cell = cell_at(subscription, number);
    if ((cell->flags & CELL_REPLAY) != 0) {
        cell->flags &= (uint8_t)~CELL_REPLAY;
        subscription->replay--;
    }
}

/* -- Acknowledged -------------------------------------------------------------------------------------- */

static void
drop_set(struct embedded_cell *cell)
{
    free(cell->set);
    cell->set = NULL;
}

void
embedded_cell_ack(struct embedded_subscription *subscription, uint64_t number)
{
    if (embedded_cell_is_acked(subscription, number)) {
        return;
    }
    struct embedded_cell *cell = cell_at(subscription, number);
    embedded_cell_unpend(subscription, number);
    embedded_cell_unreplay(subscription, number);
    if ((cell->flags & CELL_DELAYED) != 0) {
        cell->flags &= (uint8_t)~CELL_DELAYED;
        subscription->delayed--;
    }
    drop_set(cell);
    cell->flags |= CELL_ACKED;
    subscription->acked_above++;
    while (subscription->acked_above > 0 && subscription->mark < subscription->topic->count &&
           (cell_at(subscription, subscription->mark)->flags & CELL_ACKED) != 0) {
        subscription->cells[subscription->mark++].flags = 0;
        subscription->acked_above--;
    }
    if (subscription->read < subscription->mark) {
        subscription->read = subscription->mark;
    }
}

bool
embedded_cell_keep(struct embedded_subscription *subscription, uint64_t number,
                   const struct lw_pulsar_list *list)
{
    const struct embedded_entry *entry = embedded_entry_at(subscription->topic, number);
    int32_t count = words_of(entry->messages);
    uint64_t *words = embedded_new((size_t)count * sizeof *words);
    (void)lw_pulsar_list_numbers(list, words, (size_t)count);
    struct embedded_cell *cell = cell_at(subscription, number);
    int32_t before = embedded_cell_left(subscription, number);
    if (cell->set == NULL) {
        cell->set = embedded_new((size_t)count * sizeof *cell->set);
        for (int32_t i = 0; i < entry->messages; i++) {
            cell->set[i / 64] |= UINT64_C(1) << (i % 64);
        }
    }
    for (int32_t i = 0; i < count; i++) {
        cell->set[i] &= words[i];
    }
    free(words);
    int32_t left = embedded_cell_left(subscription, number);
    struct embedded_consumer *consumer = embedded_consumer_of(subscription, cell->owner);
    if (consumer != NULL) {
        consumer->unacked -= (uint64_t)(before - left);
    }
    if (left == 0) {
        embedded_cell_ack(subscription, number);
    }
    return left < before;
}

/* -- Positions ----------------------------------------------------------------------------------------- */

static void
unpend_all(struct embedded_subscription *subscription)
{
    for (uint64_t i = subscription->mark; i < subscription->read && subscription->pending > 0;
         i++) {
        embedded_cell_unpend(subscription, i);
    }
}

void
embedded_cells_reset(struct embedded_subscription *subscription, uint64_t mark)
{
    unpend_all(subscription);
    for (uint64_t i = 0; i < subscription->capacity; i++) {
        drop_set(&subscription->cells[i]);
        subscription->cells[i] = (struct embedded_cell){ .flags = 0 };
    }
    subscription->acked_above = subscription->replay = subscription->delayed = 0;
    subscription->mark = subscription->read = mark;
    embedded_disarm(&subscription->delay_alarm);
}

void
embedded_cells_rewind(struct embedded_subscription *subscription, bool forgets)
{
    unpend_all(subscription);
    for (uint64_t i = subscription->mark; i < subscription->read; i++) {
        struct embedded_cell *cell = cell_at(subscription, i);
        cell->flags &= CELL_ACKED;
        cell->redeliveries = forgets ? 0 : cell->redeliveries;
    }
    subscription->replay = subscription->delayed = 0;
    subscription->read = subscription->mark;
    embedded_disarm(&subscription->delay_alarm);
}

uint64_t
embedded_backlog(const struct embedded_subscription *subscription)
{
    return subscription->topic->count - subscription->mark - subscription->acked_above;
}
