/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timer wheel. A timer's tick is its due time rounded up. It lies in level L, slot
 * (tick >> 8L) & 255, where L is the highest byte in which its tick differs from the wheel's own:
 * so within a level only slots after the current one are in use, a lower level always comes
 * before a higher one, and the first set bit of the first non-empty level is the next thing to
 * do. When the wheel's tick enters a slot of a higher level, that slot is spread over the lower
 * ones; a timer is moved at most four times in its life.
 *
 * Ticks have 48 bits (2^64 ns), the levels 32 (78 hours); the rest waits in `overflow`, which is
 * spread when the upper bits change. Loop thread only; no clock, no allocation.
 */
#include "base/timers.h"

#include "base/assert.h"

enum {
    TICK_BITS = 16,
    LEVEL_BITS = 8,
    LEVEL_COUNT = 4,
    SLOT_COUNT = 1 << LEVEL_BITS,
    SCAN_MAX = 8 /* timers of a far slot that lw_timers_next looks at */
};
#define TICK_MAX (UINT64_MAX >> TICK_BITS)

void
lw_timers_init(struct lw_timers *timers, uint64_t now)
{
    *timers = (struct lw_timers){ .tick = (now >> TICK_BITS) + 1 };
    for (int level = 0; level < LEVEL_COUNT; level++) {
        for (int slot = 0; slot < SLOT_COUNT; slot++) {
            lw_list_init(&timers->slots[level][slot]);
        }
    }
    lw_list_init(&timers->overflow);
    lw_list_init(&timers->expired);
}

void
lw_timer_init(struct lw_timer *timer, lw_timer_fn fn)
{
    lw_list_init(&timer->link);
    timer->due = LW_NEVER;
    timer->fn = fn;
}

bool
lw_timer_is_armed(const struct lw_timer *timer)
{
    return timer->due != LW_NEVER;
}

static uint64_t
tick_of(uint64_t due)
{
    uint64_t tick = (due >> TICK_BITS) + ((due & ((1u << TICK_BITS) - 1)) != 0);
    return tick < TICK_MAX ? tick : TICK_MAX;
}

/* Files an armed timer by its due time; the one function that chooses a place. */
static inline void
place(struct lw_timers *timers, struct lw_timer *timer)
{
    uint64_t tick = tick_of(timer->due);
    uint64_t difference = tick ^ timers->tick;
    if (tick < timers->tick) {
        lw_list_push(&timers->expired, &timer->link);
    } else if (difference >> (LEVEL_BITS * LEVEL_COUNT)) {
        lw_list_push(&timers->overflow, &timer->link);
    } else {
        unsigned level = difference ? (63u - (unsigned)__builtin_clzll(difference)) / 8 : 0;
        unsigned slot = (tick >> (LEVEL_BITS * level)) & (SLOT_COUNT - 1);
        lw_list_push(&timers->slots[level][slot], &timer->link);
        timers->occupied[level][slot / 64] |= UINT64_C(1) << (slot % 64);
    }
}

/*
 * Takes a timer out of its list. A neighbour on both sides that is the same node is the head of
 * a list that is empty now; if that head is a slot, the slot's bit goes. Nothing has to remember
 * where a timer lies.
 */
static inline void
unplace(struct lw_timers *timers, struct lw_timer *timer)
{
    struct lw_list *next = timer->link.next;
    bool is_last = next == timer->link.prev;
    lw_list_remove(&timer->link);
    if (is_last) {
        uintptr_t offset = (uintptr_t)next - (uintptr_t)timers->slots;
        if (offset < sizeof timers->slots) {
            unsigned index = (unsigned)(offset / sizeof(struct lw_list));
            unsigned slot = index % SLOT_COUNT;
            timers->occupied[index / SLOT_COUNT][slot / 64] &= ~(UINT64_C(1) << (slot % 64));
        }
    }
}

void
lw_timers_arm(struct lw_timers *timers, struct lw_timer *timer, uint64_t due)
{
    lw_timers_disarm(timers, timer);
    if (due == LW_NEVER) {
        return;
    }
    timer->due = due;
    timers->count++;
    place(timers, timer);
}

void
lw_timers_disarm(struct lw_timers *timers, struct lw_timer *timer)
{
    if (timer->due == LW_NEVER) {
        return;
    }
    unplace(timers, timer);
    timer->due = LW_NEVER;
    timers->count--;
}

/* Moves everything from a list to another, empty one. */
static void
move_all(struct lw_list *from, struct lw_list *to)
{
    lw_list_init(to);
    if (!lw_list_is_empty(from)) {
        *to = *from;
        to->next->prev = to;
        to->prev->next = to;
        lw_list_init(from);
    }
}

static void
spread(struct lw_timers *timers, struct lw_list *from)
{
    struct lw_list moving;
    move_all(from, &moving);
    for (struct lw_list *node = lw_list_pop(&moving); node; node = lw_list_pop(&moving)) {
        place(timers, LW_CONTAINER(node, struct lw_timer, link));
    }
}

static void
take_slot(struct lw_timers *timers, unsigned level, uint64_t tick, struct lw_list *ret_list)
{
    unsigned slot = (tick >> (LEVEL_BITS * level)) & (SLOT_COUNT - 1);
    move_all(&timers->slots[level][slot], ret_list);
    timers->occupied[level][slot / 64] &= ~(UINT64_C(1) << (slot % 64));
}

/* Moves the wheel on; the caller knows that no timer lies between. Upper levels spread first. */
static void
set_tick(struct lw_timers *timers, uint64_t tick)
{
    uint64_t changed = (timers->tick ^ tick) >> LEVEL_BITS;
    timers->tick = tick;
    if (!changed) {
        return;
    }
    if (changed >> (LEVEL_BITS * (LEVEL_COUNT - 1))) {
        spread(timers, &timers->overflow);
    }
    for (unsigned level = LEVEL_COUNT - 1; level > 0; level--) {
        if (changed >> (LEVEL_BITS * (level - 1))) {
            struct lw_list moving;
            take_slot(timers, level, tick, &moving);
            spread(timers, &moving);
        }
    }
}

/* Returns the first slot in use of a level, or -1. */
static int
first_slot(const struct lw_timers *timers, unsigned level)
{
    const uint64_t *words = timers->occupied[level];
    for (int i = 0; i < SLOT_COUNT / 64; i++) {
        if (words[i]) {
            return i * 64 + __builtin_ctzll(words[i]);
        }
    }
    return -1;
}

/*
 * Returns the tick at which the wheel has work (fire a slot of level 0, spread one of a higher
 * level), TICK_MAX + 1 without any; *ret_list is the list in question.
 */
static uint64_t
find_next(const struct lw_timers *timers, const struct lw_list **ret_list)
{
    for (unsigned level = 0; level < LEVEL_COUNT; level++) {
        int slot = first_slot(timers, level);
        if (slot >= 0) {
            unsigned shift = LEVEL_BITS * level;
            uint64_t above = timers->tick >> (shift + LEVEL_BITS) << (shift + LEVEL_BITS);
            *ret_list = &timers->slots[level][slot];
            return above | (uint64_t)slot << shift;
        }
    }
    *ret_list = &timers->overflow;
    if (lw_list_is_empty(&timers->overflow)) {
        return TICK_MAX + 1;
    }
    unsigned shift = LEVEL_BITS * LEVEL_COUNT;
    return ((timers->tick >> shift) + 1) << shift;
}

/*
 * Fires a list that is off the wheel. Callbacks may disarm any member, so it is popped; what they
 * arm for a tick that has passed goes to `expired` and waits for the next advance, so a timer
 * that arms itself for now cannot keep us here.
 */
static size_t
fire(struct lw_timers *timers, struct lw_list *due, uint64_t now)
{
    size_t count = 0;
    for (struct lw_list *node = lw_list_pop(due); node; node = lw_list_pop(due)) {
        struct lw_timer *timer = LW_CONTAINER(node, struct lw_timer, link);
        timer->due = LW_NEVER;
        timers->count--;
        count++;
        timer->fn(timer, now);
    }
    return count;
}

size_t
lw_timers_advance(struct lw_timers *timers, uint64_t now)
{
    uint64_t last = now >> TICK_BITS;
    struct lw_list due;
    move_all(&timers->expired, &due);
    size_t fired = fire(timers, &due, now);
    while (timers->tick <= last) {
        const struct lw_list *list = NULL;
        uint64_t tick = find_next(timers, &list);
        if (tick > last) {
            set_tick(timers, last + 1);
            break;
        }
        set_tick(timers, tick);
        take_slot(timers, 0, tick, &due);
        if (!lw_list_is_empty(&due)) {
            set_tick(timers, tick + 1);
            fired += fire(timers, &due, now);
        }
    }
    return fired;
}

uint64_t
lw_timers_next(const struct lw_timers *timers)
{
    if (!lw_list_is_empty(&timers->expired)) {
        return (timers->tick - 1) << TICK_BITS;
    }
    if (timers->count == 0) {
        return LW_NEVER;
    }
    const struct lw_list *list = NULL;
    uint64_t start = find_next(timers, &list);
    uint64_t exact = TICK_MAX;
    int scanned = 0;
    for (const struct lw_list *node = list->next; node != list && exact != start;
         node = node->next) {
        if (++scanned > SCAN_MAX) {
            return start << TICK_BITS;
        }
        uint64_t tick = tick_of(LW_CONTAINER_CONST(node, struct lw_timer, link)->due);
        exact = tick < exact ? tick : exact;
    }
    return exact << TICK_BITS;
}
