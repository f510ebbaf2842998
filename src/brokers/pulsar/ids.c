/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The changing side of the table of ids. It doubles when it would be more than half full and
 * never shrinks; it is freed with its connection.
 */
#include "brokers/pulsar/ids.h"

#include "base/alloc.h"

enum { FIRST_CAPACITY = 16 };

static struct lw_pulsar_id_slot *
find(struct lw_pulsar_id_slot *slots, size_t capacity, uint64_t id)
{
    size_t at = lw_pulsar_ids_place(id, capacity);
    while (slots[at].value && slots[at].id != id) {
        at = (at + 1) & (capacity - 1);
    }
    return &slots[at];
}

static bool
grow(struct lw_pulsar_ids *ids)
{
    size_t capacity = ids->capacity ? ids->capacity * 2 : FIRST_CAPACITY;
    struct lw_pulsar_id_slot *slots = lw_alloc_array(capacity, sizeof *slots);
    if (!slots) {
        return false;
    }
    for (size_t i = 0; i < ids->capacity; i++) {
        if (ids->slots[i].value) {
            *find(slots, capacity, ids->slots[i].id) = ids->slots[i];
        }
    }
    lw_free(ids->slots);
    ids->slots = slots;
    ids->capacity = capacity;
    return true;
}

bool
lw_pulsar_ids_set(struct lw_pulsar_ids *ids, uint64_t id, void *value)
{
    if ((ids->count + 1) * 2 > ids->capacity && !grow(ids)) {
        return false;
    }
    struct lw_pulsar_id_slot *slot = find(ids->slots, ids->capacity, id);
    ids->count += slot->value ? 0 : 1;
    *slot = (struct lw_pulsar_id_slot){ .id = id, .value = value };
    return true;
}

/* Moves those behind the hole back whose own place is not between the hole and them. */
static void
close_hole(struct lw_pulsar_ids *ids, size_t hole)
{
    size_t mask = ids->capacity - 1;
    for (size_t at = (hole + 1) & mask; ids->slots[at].value; at = (at + 1) & mask) {
        size_t home = lw_pulsar_ids_place(ids->slots[at].id, ids->capacity);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            ids->slots[hole] = ids->slots[at];
            hole = at;
        }
    }
    ids->slots[hole].value = NULL;
}

void
lw_pulsar_ids_remove(struct lw_pulsar_ids *ids, uint64_t id)
{
    if (!lw_pulsar_ids_get(ids, id)) {
        return;
    }
    struct lw_pulsar_id_slot *slot = find(ids->slots, ids->capacity, id);
    close_hole(ids, (size_t)(slot - ids->slots));
    ids->count--;
}

void
lw_pulsar_ids_deinit(struct lw_pulsar_ids *ids)
{
    lw_free(ids->slots);
    *ids = (struct lw_pulsar_ids){ .slots = NULL };
}
