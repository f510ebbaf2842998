/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lanes of the oracle: which keys wait, run and are held, at each member, over all places that
 * share lanes; what P3 and P4 are judged by. A key's table index holds until the table grows. A
 * lane is fresh when something of it was received and never started and nothing has it.
 */
#include "tests/support/oracle_state.h"

#include <stdlib.h>

struct load *
oracle_load_of(struct oracle *oracle, const struct seat *seat)
{
    uint32_t subscription = oracle->places[seat->place].subscription;
    return &oracle->loads[seat->member * oracle->subscription_count + subscription];
}

static struct key *
probe(struct key *keys, uint32_t capacity, uint64_t hash)
{
    uint64_t mixed = hash * UINT64_C(0x9e3779b97f4a7c15);
    uint32_t at = (uint32_t)(mixed >> 32) & (capacity - 1);
    while (keys[at].lane && keys[at].hash != hash) {
        at = (at + 1) & (capacity - 1);
    }
    return &keys[at];
}

/* Keys never leave the table, so their indexes hold until it grows; runs are renamed then. */
static void
grow_keys(struct seat *seat)
{
    uint32_t capacity = seat->key_capacity ? seat->key_capacity * 2 : 32;
    struct key *keys = calloc(capacity, sizeof *keys);
    if (!keys) {
        abort();
    }
    for (uint32_t i = 0; i < seat->key_capacity; i++) {
        if (seat->keys[i].lane) {
            *probe(keys, capacity, seat->keys[i].hash) = seat->keys[i];
        }
    }
    for (struct ownership *at = seat->ownership; at; at = at->older) {
        for (int64_t i = 0; i < at->count; i++) {
            if (at->runs[i].key != NONE) {
                uint64_t hash = seat->keys[at->runs[i].key].hash;
                at->runs[i].key = (int32_t)(probe(keys, capacity, hash) - keys);
            }
        }
    }
    free(seat->keys);
    seat->keys = keys;
    seat->key_capacity = capacity;
}

static struct lane *
find_lane(struct oracle *oracle, const struct seat *seat, uint64_t hash)
{
    uint32_t group = oracle->places[seat->place].group;
    struct lane **first = &oracle->lanes[seat->member];
    for (struct lane *lane = *first; lane; lane = lane->next) {
        if (lane->hash == hash && lane->group == group) {
            return lane;
        }
    }
    struct lane *lane = calloc(1, sizeof *lane);
    if (!lane) {
        abort();
    }
    lane->hash = hash;
    lane->group = group;
    lane->next = *first;
    *first = lane;
    return lane;
}

int32_t
oracle_find_key(struct oracle *oracle, struct seat *seat, uint64_t hash)
{
    if (seat->key_count * 2 >= seat->key_capacity) {
        grow_keys(seat);
    }
    struct key *key = probe(seat->keys, seat->key_capacity, hash);
    if (!key->lane) {
        *key = (struct key){ .hash = hash, .head = NONE, .tail = NONE };
        key->lane = find_lane(oracle, seat, hash);
        seat->key_count++;
    }
    return (int32_t)(key - seat->keys);
}

static void
update_lane(struct load *load, struct lane *lane)
{
    bool is_fresh = lane->waiting > 0 && lane->held == 0;
    if (is_fresh != lane->is_fresh) {
        lane->is_fresh = is_fresh;
        load->fresh += is_fresh ? 1 : UINT32_MAX;
    }
}

/* Looks again whether the first of the key's queue waits for its first start. */
void
oracle_update_key(struct oracle *oracle, struct seat *seat, struct key *key)
{
    const struct ownership *ownership = seat->ownership;
    bool is_live = !ownership->is_ended && key->generation == ownership->generation;
    bool is_waiting = is_live && key->head != NONE && ownership->runs[key->head].attempt == 0 &&
                      ownership->runs[key->head].open > 0;
    if (is_waiting != key->is_waiting) {
        key->is_waiting = is_waiting;
        key->lane->waiting += is_waiting ? 1 : UINT32_MAX;
    }
    update_lane(oracle_load_of(oracle, seat), key->lane);
}

/* Without order each waits for itself. */
void
oracle_stale_fresh(struct oracle *oracle, struct seat *seat, struct run *run)
{
    if (run->flags & RUN_FRESH) {
        run->flags &= (uint16_t)~RUN_FRESH;
        oracle_load_of(oracle, seat)->fresh--;
    }
}

void
oracle_push_key(struct oracle *oracle, struct seat *seat, int32_t index, int32_t at)
{
    struct key *key = &seat->keys[index];
    struct ownership *ownership = seat->ownership;
    if (key->generation != ownership->generation) {
        key->generation = ownership->generation;
        key->head = key->tail = NONE;
    }
    ownership->runs[at].next = NONE;
    if (key->head == NONE) {
        key->head = at;
    } else {
        ownership->runs[key->tail].next = at;
    }
    key->tail = at;
    oracle_update_key(oracle, seat, key);
}

void
oracle_unlink_key(struct seat *seat, int32_t index, int32_t at)
{
    struct key *key = &seat->keys[index];
    struct run *runs = seat->ownership->runs;
    int32_t before = NONE;
    int32_t found = key->generation == seat->ownership->generation ? key->head : NONE;
    while (found != NONE && found != at) {
        before = found;
        found = runs[found].next;
    }
    if (found == NONE) {
        return;
    }
    if (before == NONE) {
        key->head = runs[at].next;
    } else {
        runs[before].next = runs[at].next;
    }
    key->tail = key->tail == at ? before : key->tail;
}

/* Takes what is over from the front; what was given back in the middle goes when it comes. */
void
oracle_trim_key(struct oracle *oracle, struct seat *seat, struct key *key)
{
    const struct ownership *ownership = seat->ownership;
    if (!ownership->is_ended && key->generation == ownership->generation) {
        while (key->head != NONE && ownership->runs[key->head].open == 0) {
            key->head = ownership->runs[key->head].next;
        }
    }
    oracle_update_key(oracle, seat, key);
}
