/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Acknowledgements in groups. An entry is pending until the next group takes it, then sent until
 * its receipt, then forgotten; what a lost connection or a missing receipt leaves goes back to
 * pending, for the next session. While one is sent, further acks of its members wait, so that no
 * id is under way twice. Ids of a group ascend; a batch that is not yet whole carries the set of
 * what is left. Bytes only, no sockets, no time.
 */
#ifndef LW_BROKERS_PULSAR_ACKS_H
#define LW_BROKERS_PULSAR_ACKS_H

#include "brokers/pulsar/entry.h"

enum { LW_PULSAR_ACK_IDS_MAX = 1000, LW_PULSAR_ACK_BYTES_MAX = 256 * 1024 };

struct lw_pulsar_acks {
    struct lw_list pending;
    uint32_t pending_count;
    uint32_t sent_count;
    bool is_sorted; /* pending ascends */
    uint64_t last_ledger;
    uint64_t last_id;
    uint8_t *buffer; /* LW_PULSAR_ACK_BYTES_MAX; made on first use */
};

void lw_pulsar_acks_init(struct lw_pulsar_acks *acks);
/* The entries are the caller's. */
void lw_pulsar_acks_deinit(struct lw_pulsar_acks *acks);
/* For one whose ack is under way: another one follows it. */
static inline void
lw_pulsar_acks_add(struct lw_pulsar_acks *acks, struct lw_pulsar_entry *entry);
/*
 * Moves the next ones to `group` (initialised, empty) and gives their ids, which live until the
 * next call. One that carries a validation error goes alone. False: none are pending, or no memory.
 */
bool lw_pulsar_acks_take(struct lw_pulsar_acks *acks, struct lw_list *group,
                         struct lw_pulsar_list *ret_ids, int32_t *ret_validation);
/* So many at least lie before `end`. */
bool lw_pulsar_acks_are_before(const struct lw_pulsar_acks *acks, struct lw_pulsar_place end,
                               uint32_t least);
/*
 * Moves all that lie before `end`, of which there is one, to `group` (initialised, empty) and gives
 * the last one's id, in `buffer`: everything before it is acknowledged by it.
 */
enum { LW_PULSAR_ACK_ID_BYTES = 64 };
void lw_pulsar_acks_take_before(struct lw_pulsar_acks *acks, struct lw_pulsar_place end,
                                struct lw_list *group, uint8_t *buffer,
                                struct lw_pulsar_list *ret_id);
/* The receipt came, or none is wanted: entries may be freed by this. */
void lw_pulsar_acks_confirm(struct lw_pulsar_acks *acks, struct lw_list *group);
/* It will not come any more: all of the group is pending again. */
void lw_pulsar_acks_return(struct lw_pulsar_acks *acks, struct lw_list *group);

/* The entry, which is in no list, becomes pending. */
static inline void
lw_pulsar_acks_push(struct lw_pulsar_acks *acks, struct lw_pulsar_entry *entry)
{
    entry->ack_state = LW_PULSAR_ACK_PENDING;
    lw_list_push(&acks->pending, &entry->ack_link);
    if (__builtin_expect(entry->ledger != acks->last_ledger || entry->id <= acks->last_id, 0)) {
        acks->is_sorted &= entry->ledger > acks->last_ledger || acks->pending_count == 0;
        acks->last_ledger = entry->ledger;
    }
    acks->last_id = entry->id;
    acks->pending_count++;
}

static inline void
lw_pulsar_acks_add(struct lw_pulsar_acks *acks, struct lw_pulsar_entry *entry)
{
    if (__builtin_expect(entry->ack_state == LW_PULSAR_ACK_NONE, 1)) {
        lw_pulsar_entry_forget(entry);
        lw_pulsar_acks_push(acks, entry);
    } else if (entry->ack_state == LW_PULSAR_ACK_SENT) {
        entry->is_ack_again = true;
    }
}

#endif
