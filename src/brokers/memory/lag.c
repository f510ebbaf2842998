/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much waits at the hub for a source: what its slots have not given out, of the subscribed
 * topic and of its retry tiers apart. Individually that includes what comes again, also when its
 * time has not come yet; a message that was acknowledged late and still stands in line to come
 * again is counted until its turn. Only counts, nothing is moved. Loop thread.
 */
#include "brokers/memory/source.h"

static uint64_t
waiting_of(const struct lw_memory_slot *slot)
{
    const struct lw_memory_log *log = &slot->partition->log;
    if (!slot->backlog) {
        return lw_memory_log_count_from(log, slot->cursor);
    }
    const struct lw_memory_backlog *backlog = slot->backlog;
    uint64_t waiting = lw_memory_log_count_from(log, backlog->cursor) + backlog->ready.count +
                       backlog->delayed.count + (backlog->keys ? backlog->keys->waiting : 0);
    const struct lw_list *head = &slot->sent;
    for (const struct lw_list *node = head->next; node != head; node = node->next) {
        waiting++;
    }
    return waiting;
}

bool
lw_memory_source_lag(const struct lw_memory_source *source, struct lw_lag *ret_lag)
{
    struct lw_lag lag = { 0, 0 };
    bool is_known = false;
    for (uint32_t i = 0; i < source->slot_count; i++) {
        const struct lw_memory_slot *slot = source->slots[i];
        if (slot->is_assigned) {
            uint64_t *sum = slot->is_companion ? &lag.companions : &lag.messages;
            *sum += waiting_of(slot);
            is_known = true;
        }
    }
    if (is_known) {
        *ret_lag = lag;
    }
    return is_known;
}
