/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lanes and their table: what is not on the shortest path of a message. Finding (hash, one
 * probe, compare) is inline in the header, since a call costs as much as half of it.
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
#define KEPT_MAX 16384
#define HAND_STEPS 16

enum lw_status
lw_lanes_init(struct lw_lanes *lanes, uint32_t lanes_max, uint64_t seed)
{
    memset(lanes, 0, sizeof(*lanes));
    lanes->seed = seed;
    lanes->kept_max = KEPT_MAX;
    lanes->mask = LANES_START - 1;
    lanes->slots = lw_alloc_array(LANES_START, sizeof(*lanes->slots));
    if (!lanes->slots) {
        return LW_STATUS_NO_MEMORY;
    }
    uint32_t bound = lanes_max < UINT32_MAX - KEPT_MAX ? lanes_max + KEPT_MAX : UINT32_MAX;
    enum lw_status status = lw_pool_init(&lanes->pool, sizeof(struct lw_lane), bound,
                                         LANES_CHUNK, NULL, NULL);
    if (status != LW_STATUS_OK) {
        lw_free(lanes->slots);
        lanes->slots = NULL;
    }
    return status;
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

uint64_t
lw_lane_place(const struct lw_subscription *subscription, int32_t partition)
{
    return (uint64_t)subscription->index << 32 | (uint32_t)partition;
}

/* Into the first empty slot from its home on. */
static void
place_slot(struct lw_lane_slot *slots, uint64_t mask, struct lw_lane_slot slot)
{
    uint64_t at = slot.hash & mask;
    while (slots[at].lane) {
        at = (at + 1) & mask;
    }
    slots[at] = slot;
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
        if (lanes->slots[i].lane) {
            place_slot(slots, mask, lanes->slots[i]);
        }
    }
    lw_free(lanes->slots);
    lanes->slots = slots;
    lanes->mask = mask;
    lanes->hand = 0;
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

/* Frees the lane in this slot if it is idle; the slot may hold another lane afterwards. */
static bool
free_idle(struct lw_lanes *lanes, uint64_t at)
{
    struct lw_lane *lane = lanes->slots[at].lane;
    if (!lane || lane->place != LW_LANE_IDLE) {
        return false;
    }
    remove_slot(lanes, lane);
    free_key(lane);
    lw_pool_give(&lanes->pool, lane);
    return true;
}

static void
move_hand(struct lw_lanes *lanes, uint64_t steps)
{
    while (steps > 0) {
        if (!free_idle(lanes, lanes->hand)) {
            lanes->hand = (lanes->hand + 1) & lanes->mask;
        }
        steps--;
    }
}

void
lw_lanes_trim(struct lw_lanes *lanes)
{
    for (uint64_t at = 0; at <= lanes->mask;) {
        at += free_idle(lanes, at) ? 0 : 1;
    }
}

static bool
copy_key(struct lw_lane *lane, const void *key, uint32_t size)
{
    lane->key = lane->inline_key;
    lane->key_size = size;
    if (size == LW_LANE_NULL_KEY || size == 0) {
        return true;
    }
    if (size <= LW_LANE_KEY_INLINE) {
        memcpy(lane->inline_key, key, size);
        return true;
    }
    lane->key = lw_copy_bytes(key, size);
    return lane->key != NULL;
}

/* NOLINTBEGIN(readability-function-size): what the lookup knows already: six facts */
struct lw_lane *
lw_lanes_insert(struct lw_lanes *lanes, struct lw_subscription *subscription, uint64_t place,
                const void *key, uint32_t size, uint64_t hash)
{
    if (lanes->count >= lanes->kept_max) {
        move_hand(lanes, HAND_STEPS);
    }
    if ((uint64_t)lanes->count * 2 > lanes->mask && !grow(lanes)) {
        return NULL;
    }
    struct lw_lane *lane = lw_pool_take(&lanes->pool);
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
    lane->place_id = place;
    lane->hash = hash;
    lane->place = LW_LANE_IDLE;
    lane->count = 0;
    lane->others = 0;
    lane->bytes = 0;
    lane->runs_again = false;
    lw_list_init(&lane->link);
    place_slot(lanes->slots, lanes->mask, (struct lw_lane_slot){ hash, lane });
    lanes->count++;
    return lane;
}
/* NOLINTEND(readability-function-size) */

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

static inline void
enter_ready(struct lw_lane *lane)
{
    bool is_urgent = lw_lane_is_blocking(lane);
    lane->place = is_urgent ? LW_LANE_URGENT : LW_LANE_READY;
    lw_list_push(is_urgent ? &lane->subscription->urgent : &lane->subscription->ready,
                 &lane->link);
}

void
lw_lane_enter_ready(struct lw_lane *lane)
{
    enter_ready(lane);
}

void
lw_lane_push(struct lw_lane *lane, struct lw_delivery *delivery)
{
    lw_queue_push(&lane->waiting, &delivery->link);
    if (lane->place == LW_LANE_IDLE) {
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
    return delivery;
}

void
lw_lane_put_back(struct lw_lane *lane, struct lw_delivery *delivery)
{
    lw_assert(lane->place == LW_LANE_BUSY);
    lw_queue_push_front(&lane->waiting, &delivery->link);
    enter_ready(lane);
}

bool
lw_lane_release(struct lw_lane *lane)
{
    if (lane->waiting.first) {
        enter_ready(lane);
        return true;
    }
    lane->place = LW_LANE_IDLE;
    return false;
}

void
lw_lane_remove(struct lw_lane *lane, struct lw_delivery *delivery)
{
    lw_queue_remove(&lane->waiting, &delivery->link);
    if (lane->place != LW_LANE_BUSY) {
        lw_list_remove(&lane->link);
        (void)lw_lane_release(lane);
    }
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
