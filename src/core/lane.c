/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes and their table. The hot path is find (hash, one probe, compare), push, take, release;
 * the comparison of short keys is inlined since a call to memcmp costs as much as the rest.
 */
#include "core/lane.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "core/partition.h"
#include "core/subscription.h"

#define LANES_START 1024
#define LANES_CHUNK 256
#define IDLE_MAX 1024
#define NULL_KEY UINT32_MAX

enum lw_status
lw_lanes_init(struct lw_lanes *lanes, uint32_t lanes_max, uint64_t seed)
{
    memset(lanes, 0, sizeof(*lanes));
    lw_list_init(&lanes->idle);
    lanes->seed = seed;
    lanes->idle_max = IDLE_MAX;
    lanes->mask = LANES_START - 1;
    lanes->slots = lw_alloc_array(LANES_START, sizeof(*lanes->slots));
    if (!lanes->slots) {
        return LW_STATUS_NO_MEMORY;
    }
    uint32_t bound = lanes_max < UINT32_MAX - IDLE_MAX ? lanes_max + IDLE_MAX : UINT32_MAX;
    return lw_pool_init(&lanes->pool, sizeof(struct lw_lane), bound, LANES_CHUNK, NULL, NULL);
}

static void
free_key(struct lw_lane *lane)
{
    if (lane->key != lane->inline_key) {
        lw_free((void *)(uintptr_t)lane->key);
        lane->key = lane->inline_key;
    }
}

void
lw_lanes_deinit(struct lw_lanes *lanes)
{
    for (uint64_t i = 0; lanes->slots && i <= lanes->mask; i++) {
        if (lanes->slots[i].lane) {
            free_key(lanes->slots[i].lane);
        }
    }
    lw_free(lanes->slots);
    lanes->slots = NULL;
    lw_pool_deinit(&lanes->pool);
}

static inline bool
is_same_bytes(const unsigned char *a, const unsigned char *b, uint32_t size)
{
    if (size >= 8) {
        if (size > 16) {
            return memcmp(a, b, size) == 0;
        }
        return ((lw_hash_load8(a) ^ lw_hash_load8(b)) |
                (lw_hash_load8(a + size - 8) ^ lw_hash_load8(b + size - 8))) == 0;
    }
    if (size >= 4) {
        return ((lw_hash_load4(a) ^ lw_hash_load4(b)) |
                (lw_hash_load4(a + size - 4) ^ lw_hash_load4(b + size - 4))) == 0;
    }
    for (uint32_t i = 0; i < size; i++) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

static inline uint64_t
hash_of(const struct lw_lanes *lanes, const struct lw_subscription *subscription,
        int32_t partition, const void *key, uint32_t size)
{
    uint64_t place = (uint64_t)subscription->index << 32 | (uint32_t)partition;
    if (size == NULL_KEY) {
        return lw_hash_u64(place, ~lanes->seed);
    }
    return lw_hash_bytes(key, size, lanes->seed + place * LW_HASH_P1);
}

static bool
grow(struct lw_lanes *lanes)
{
    uint64_t mask = lanes->mask * 2 + 1;
    struct lw_lane_slot *slots = lw_alloc_array(mask + 1, sizeof(*slots));
    if (!slots) {
        return false;
    }
    for (uint64_t i = 0; i <= lanes->mask; i++) {
        struct lw_lane_slot slot = lanes->slots[i];
        if (slot.lane) {
            uint64_t at = slot.hash & mask;
            while (slots[at].lane) {
                at = (at + 1) & mask;
            }
            slots[at] = slot;
        }
    }
    lw_free(lanes->slots);
    lanes->slots = slots;
    lanes->mask = mask;
    return true;
}

/* Backward-shift delete: the run behind the hole moves up, so no tombstones are left. */
static void
remove_slot(struct lw_lanes *lanes, const struct lw_lane *lane)
{
    uint64_t hole = lane->hash & lanes->mask;
    while (lanes->slots[hole].lane != lane) {
        hole = (hole + 1) & lanes->mask;
    }
    uint64_t next = hole;
    for (;;) {
        next = (next + 1) & lanes->mask;
        struct lw_lane_slot *slot = &lanes->slots[next];
        if (!slot->lane) {
            break;
        }
        uint64_t home = slot->hash & lanes->mask;
        if (((next - home) & lanes->mask) >= ((next - hole) & lanes->mask)) {
            lanes->slots[hole] = *slot;
            hole = next;
        }
    }
    lanes->slots[hole].lane = NULL;
    lanes->count--;
}

static void
free_idle(struct lw_lanes *lanes, struct lw_lane *lane)
{
    lw_list_remove(&lane->link);
    lanes->idle_count--;
    remove_slot(lanes, lane);
    free_key(lane);
    lw_pool_give(&lanes->pool, lane);
}

void
lw_lanes_trim(struct lw_lanes *lanes, bool all)
{
    while (lanes->idle_count > (all ? 0 : lanes->idle_max)) {
        free_idle(lanes, LW_CONTAINER(lw_list_first(&lanes->idle), struct lw_lane, link));
    }
}

static bool
copy_key(struct lw_lane *lane, const void *key, uint32_t size)
{
    lane->key = lane->inline_key;
    lane->key_size = size;
    if (size == NULL_KEY || size == 0) {
        return true;
    }
    if (size <= LW_LANE_KEY_INLINE) {
        memcpy(lane->inline_key, key, size);
        return true;
    }
    lane->key = lw_copy_bytes(key, size);
    return lane->key != NULL;
}

static struct lw_lane *
take_new(struct lw_lanes *lanes)
{
    struct lw_lane *lane = lw_pool_take(&lanes->pool);
    if (!lane && lanes->idle_count > 0) {
        free_idle(lanes, LW_CONTAINER(lw_list_first(&lanes->idle), struct lw_lane, link));
        lane = lw_pool_take(&lanes->pool);
    }
    return lane;
}

static struct lw_lane *
insert(struct lw_lanes *lanes, struct lw_subscription *subscription, int32_t partition,
       const void *key, uint32_t size, uint64_t hash)
{
    if ((uint64_t)lanes->count * 2 > lanes->mask && !grow(lanes)) {
        return NULL;
    }
    struct lw_lane *lane = take_new(lanes);
    if (!lane) {
        return NULL;
    }
    if (!copy_key(lane, key, size)) {
        lane->key = lane->inline_key;
        lw_pool_give(&lanes->pool, lane);
        return NULL;
    }
    lane->waiting.first = NULL;
    lane->waiting.last = NULL;
    lane->subscription = subscription;
    lane->partition = partition;
    lane->hash = hash;
    lane->busy = NULL;
    lane->place = LW_LANE_IDLE;
    lw_list_init(&lane->link);
    lw_list_push(&lanes->idle, &lane->link);
    lanes->idle_count++;
    uint64_t at = hash & lanes->mask;
    while (lanes->slots[at].lane) {
        at = (at + 1) & lanes->mask;
    }
    lanes->slots[at] = (struct lw_lane_slot){hash, lane};
    lanes->count++;
    return lane;
}

struct lw_lane *
lw_lanes_find(struct lw_lanes *lanes, struct lw_subscription *subscription, int32_t partition,
              struct lw_bytes key)
{
    uint32_t size = key.data ? (uint32_t)key.size : NULL_KEY;
    uint64_t hash = hash_of(lanes, subscription, partition, key.data, size);
    uint64_t at = hash & lanes->mask;
    struct lw_lane *lane;
    while ((lane = lanes->slots[at].lane) != NULL) {
        if (lanes->slots[at].hash == hash && lane->subscription == subscription &&
            lane->partition == partition && lane->key_size == size &&
            (size == NULL_KEY || is_same_bytes(lane->key, key.data, size))) {
            return lane;
        }
        at = (at + 1) & lanes->mask;
    }
    return insert(lanes, subscription, partition, key.data, size, hash);
}

static inline struct lw_delivery *
head_of(const struct lw_lane *lane)
{
    return LW_CONTAINER(lane->waiting.first, struct lw_delivery, link);
}

bool
lw_lane_is_blocking(const struct lw_lane *lane)
{
    const struct lw_delivery *head = head_of(lane);
    const struct lw_partition *partition = head->partition;
    return partition->has_ledger && partition->held.next == &head->held;
}

/* Something waits and nothing runs: into the ring that fits its head. */
static inline void
enter_ready(struct lw_lane *lane)
{
    bool is_urgent = lw_lane_is_blocking(lane);
    lane->place = is_urgent ? LW_LANE_URGENT : LW_LANE_READY;
    lw_list_push(is_urgent ? &lane->subscription->urgent : &lane->subscription->ready,
                 &lane->link);
}

static void
enter_idle(struct lw_lanes *lanes, struct lw_lane *lane)
{
    lane->place = LW_LANE_IDLE;
    lw_list_push(&lanes->idle, &lane->link);
    if (++lanes->idle_count > lanes->idle_max) {
        lw_lanes_trim(lanes, false);
    }
}

void
lw_lane_push(struct lw_lanes *lanes, struct lw_lane *lane, struct lw_delivery *delivery)
{
    lw_queue_push(&lane->waiting, &delivery->link);
    if (lane->place == LW_LANE_IDLE) {
        lw_list_remove(&lane->link);
        lanes->idle_count--;
        enter_ready(lane);
    }
}

struct lw_delivery *
lw_lane_take(struct lw_lane *lane)
{
    struct lw_delivery *delivery = head_of(lane);
    lw_queue_pop(&lane->waiting);
    lw_list_remove(&lane->link);
    lane->place = LW_LANE_BUSY;
    lane->busy = delivery;
    return delivery;
}

void
lw_lane_put_back(struct lw_lane *lane, struct lw_delivery *delivery)
{
    lw_assert(lane->busy == delivery);
    lane->busy = NULL;
    lw_queue_push_front(&lane->waiting, &delivery->link);
    enter_ready(lane);
}

void
lw_lane_release(struct lw_lanes *lanes, struct lw_lane *lane)
{
    lane->busy = NULL;
    if (lane->waiting.first) {
        enter_ready(lane);
    } else {
        enter_idle(lanes, lane);
    }
}

void
lw_lane_remove(struct lw_lanes *lanes, struct lw_lane *lane, struct lw_delivery *delivery)
{
    lw_queue_remove(&lane->waiting, &delivery->link);
    if (lane->place == LW_LANE_BUSY) {
        return;
    }
    lw_list_remove(&lane->link);
    lw_lane_release(lanes, lane);
}

void
lw_lane_promote(struct lw_lane *lane)
{
    if (lane->place == LW_LANE_READY && lw_lane_is_blocking(lane)) {
        lw_list_remove(&lane->link);
        lane->place = LW_LANE_URGENT;
        lw_list_push(&lane->subscription->urgent, &lane->link);
    }
}
