/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of what came. An entry that is not known any more was given back or fenced, so it is not
 * finished: it comes again, after a rewind or in a new session, either of which resets the ring.
 */
#include "brokers/pulsar/compacted.h"

#include "base/alloc.h"

enum { FIRST_CAPACITY = 64 };

void
lw_pulsar_compacted_deinit(struct lw_pulsar_compacted *compacted)
{
    lw_free(compacted->ids);
    *compacted = (struct lw_pulsar_compacted){ .ids = NULL };
}

void
lw_pulsar_compacted_reset(struct lw_pulsar_compacted *compacted)
{
    compacted->first = 0;
    compacted->count = 0;
    compacted->has_mark = false;
}

static bool
grow(struct lw_pulsar_compacted *compacted)
{
    uint32_t capacity = compacted->capacity ? compacted->capacity * 2 : FIRST_CAPACITY;
    struct lw_pulsar_chunk_id *ids = lw_alloc_array(capacity, sizeof *ids);
    if (!ids) {
        return false;
    }
    for (uint32_t i = 0; i < compacted->count; i++) {
        ids[i] = compacted->ids[(compacted->first + i) % compacted->capacity];
    }
    lw_free(compacted->ids);
    compacted->ids = ids;
    compacted->capacity = capacity;
    compacted->first = 0;
    return true;
}

bool
lw_pulsar_compacted_note(struct lw_pulsar_compacted *compacted, struct lw_pulsar_chunk_id id)
{
    if (compacted->count == compacted->capacity && !grow(compacted)) {
        return false;
    }
    compacted->ids[(compacted->first + compacted->count) % compacted->capacity] = id;
    compacted->count++;
    return true;
}

static bool
is_finished(struct lw_pulsar_held *held, struct lw_pulsar_chunk_id id)
{
    const struct lw_pulsar_entry *entry = lw_pulsar_held_find(held, id.ledger, id.entry);
    return entry && !lw_pulsar_entry_has_unacked(entry);
}

bool
lw_pulsar_compacted_take(struct lw_pulsar_compacted *compacted, struct lw_pulsar_held *held,
                         struct lw_pulsar_chunk_id *ret_mark)
{
    while (compacted->count > 0 && is_finished(held, compacted->ids[compacted->first])) {
        compacted->mark = compacted->ids[compacted->first];
        compacted->has_mark = true;
        compacted->first = (compacted->first + 1) % compacted->capacity;
        compacted->count--;
    }
    bool has_moved = compacted->has_mark;
    if (has_moved) {
        *ret_mark = compacted->mark;
    }
    compacted->has_mark = false;
    return has_moved;
}
