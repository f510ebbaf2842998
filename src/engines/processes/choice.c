/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which worker gets which message. Workers share all messages: the one that holds least gets the
 * next; or lanes are pinned: a key always meets the same worker, and waits for it. How much one may
 * hold follows what a message takes: about a millisecond of work, two messages at least (the next
 * is there when one is done), the window at most; so what runs next is decided late, and no worker
 * hoards while another stands idle. Nothing is put behind a message that takes long while more
 * workers can be forked.
 */
#include <inttypes.h>

#include "base/hash.h"
#include "core/partition.h"
#include "engines/processes/processes.h"

#define RESIDENCE_NS (1 * LW_MS)
#define MEMORY_AFTER (100 * LW_MS)

/* A message that runs now has taken longer than others may wait behind it. */
static bool
runs_long(const struct lw_processes *processes)
{
    uint64_t now = processes->engine.host->now;
    for (uint32_t i = 0; i < processes->wanted; i++) {
        const struct lw_processes_worker *worker = &processes->workers[i];
        if (worker->state == LW_PROCESSES_TAKING && worker->first < worker->published_next &&
            now - worker->front_since > RESIDENCE_NS) {
            return true;
        }
    }
    return false;
}

static uint32_t
depth_of(const struct lw_processes *processes)
{
    uint32_t window = processes->options.window;
    uint64_t execution = processes->execution_ns;
    if (processes->wanted < processes->worker_count && runs_long(processes)) {
        return 1; /* the next one is for another worker, which can be forked */
    }
    uint64_t fit = execution > 0 ? RESIDENCE_NS / execution : 2;
    fit = fit < 2 ? 2 : fit;
    return fit < window ? (uint32_t)fit : window;
}

static uint32_t
room_of(const struct lw_processes_worker *worker, uint32_t depth)
{
    uint32_t open = lw_processes_open_count(worker);
    if (worker->state != LW_PROCESSES_TAKING || worker->is_alone || worker->is_over ||
        open >= depth) {
        return 0;
    }
    uint64_t left = worker->given_max - worker->given;
    return left < depth - open ? (uint32_t)left : depth - open;
}

void
lw_processes_update_room(struct lw_processes *processes)
{
    uint32_t depth = depth_of(processes);
    uint64_t room = 0;
    bool has_worker = false;
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        room += room_of(&processes->workers[i], depth);
        has_worker = has_worker || processes->workers[i].state == LW_PROCESSES_TAKING;
    }
    uint64_t waiting = processes->waiting_count;
    room = room > waiting ? room - waiting : 0;
    if (processes->is_stopping || lw_timer_is_armed(&processes->memory_timer)) {
        room = 0;
    }
    bool is_lost = processes->zygote_state == LW_PROCESSES_LOST;
    bool is_down = (processes->engine.is_down || is_lost) && !has_worker;
    if (processes->engine.room != room || processes->engine.is_down != is_down) {
        processes->engine.room = (uint32_t)room;
        processes->engine.is_down = is_down;
        processes->engine.has_changed = true;
    }
}

/* -- Choosing -------------------------------------------------------------------------------------- */

static struct lw_processes_worker *
least_loaded(struct lw_processes *processes)
{
    uint32_t depth = depth_of(processes);
    struct lw_processes_worker *best = NULL;
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        struct lw_processes_worker *worker = &processes->workers[i];
        if (room_of(worker, depth) > 0 &&
            (!best || lw_processes_open_count(worker) < lw_processes_open_count(best))) {
            best = worker;
        }
    }
    return best;
}

/* One that can take messages, or will be able to: without a zygote none is replaced. */
static bool
has_future(const struct lw_processes_worker *worker)
{
    return worker->owner->zygote_state != LW_PROCESSES_LOST ||
           (worker->state == LW_PROCESSES_TAKING && !worker->is_over);
}

/*
 * The worker of the message's lane: by its key, or by its partition when it has none; the next one
 * where that is gone for good. A lane has one message here at a time, so its order holds.
 */
static struct lw_processes_worker *
pinned_to(struct lw_processes *processes, const struct lw_delivery *delivery)
{
    struct lw_bytes key = lw_delivery_ordering_key(delivery);
    uint64_t partition = (uint64_t)(uint32_t)delivery->partition->number;
    uint64_t hash = key.data ? lw_hash_bytes(key.data, key.size, 0) : lw_hash_u64(partition, 0);
    uint32_t index = (uint32_t)(hash % processes->worker_count);
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        uint32_t next = (index + i) % processes->worker_count;
        if (has_future(&processes->workers[next])) {
            return &processes->workers[next];
        }
    }
    return &processes->workers[index];
}

static void
wait_for_memory(struct lw_processes *processes)
{
    struct lw_host *host = processes->engine.host;
    lw_timers_arm(&host->timers, &processes->memory_timer, host->now + MEMORY_AFTER);
}

/* Hands it over, or ends it; false: it must wait. */
static bool
give(struct lw_processes *processes, struct lw_processes_worker *worker,
     struct lw_delivery *delivery)
{
    if (lw_processes_is_cancelled(delivery)) {
        lw_processes_give_back(processes, delivery, "cancelled before it ran");
        return true;
    }
    switch (lw_processes_worker_give(worker, delivery)) {
    case LW_PROCESSES_GIVEN:
        return true;
    case LW_PROCESSES_FULL:
        return false;
    case LW_PROCESSES_TOO_LARGE:
        lw_processes_refuse_large(processes, delivery);
        lw_processes_update_room(processes); /* it took none, and nothing else may end */
        return true;
    case LW_PROCESSES_NO_MEMORY:
        wait_for_memory(processes);
        return false;
    }
    return false;
}

struct lw_queue *
lw_processes_queue_of(struct lw_processes *processes, const struct lw_delivery *delivery)
{
    return processes->options.tune.pins_lanes ? &pinned_to(processes, delivery)->backlog
                                              : &processes->waiting;
}

void
lw_processes_take(struct lw_processes *processes, struct lw_delivery *delivery)
{
    bool is_pinned = processes->options.tune.pins_lanes;
    struct lw_processes_worker *worker = is_pinned ? pinned_to(processes, delivery)
                                                   : least_loaded(processes);
    struct lw_queue *queue = is_pinned ? &worker->backlog : &processes->waiting;
    bool may_give = is_pinned ? room_of(worker, depth_of(processes)) > 0 && !queue->first
                              : worker != NULL;
    delivery->engine_data = NULL;
    if (!may_give || !give(processes, worker, delivery)) {
        lw_queue_push(queue, &delivery->link);
        processes->waiting_count++;
        lw_processes_update_room(processes);
    }
}

/* -- Going on -------------------------------------------------------------------------------------- */

/* It may run there: anywhere, or where its lane is pinned to. */
static bool
may_run_at(const struct lw_processes_worker *worker, const struct lw_delivery *suspect)
{
    struct lw_processes *processes = worker->owner;
    return !processes->options.tune.pins_lanes || pinned_to(processes, suspect) == worker;
}

static struct lw_processes_worker *
fresh_worker(struct lw_processes *processes, const struct lw_delivery *suspect)
{
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        struct lw_processes_worker *worker = &processes->workers[i];
        if (worker->state == LW_PROCESSES_TAKING && worker->given == 0 && !worker->is_over &&
            may_run_at(worker, suspect)) {
            return worker;
        }
    }
    return NULL;
}

/* A suspect waits for a fresh process: unless one is on its way, the idlest is replaced. */
static void
call_for_fresh_worker(struct lw_processes *processes, const struct lw_delivery *suspect)
{
    struct lw_processes_worker *idlest = NULL;
    for (uint32_t i = 0; i < processes->wanted; i++) {
        struct lw_processes_worker *worker = &processes->workers[i];
        if (!may_run_at(worker, suspect)) {
            continue;
        }
        if (worker->state != LW_PROCESSES_TAKING || worker->given_max == worker->given) {
            return;
        }
        if (!idlest || lw_processes_open_count(worker) < lw_processes_open_count(idlest)) {
            idlest = worker;
        }
    }
    if (idlest) {
        idlest->given_max = idlest->given;
        if (idlest->first == idlest->next) {
            lw_processes_worker_leave(idlest);
        }
    }
}

/* The next one that still is to run; those that are not go back on the way. */
static void
run_suspect(struct lw_processes *processes)
{
    struct lw_queue_node *node = NULL;
    while (!processes->alone && (node = processes->suspects.first) != NULL) {
        struct lw_delivery *suspect = lw_processes_delivery_in(node);
        struct lw_processes_worker *worker = fresh_worker(processes, suspect);
        if (!worker) {
            call_for_fresh_worker(processes, suspect);
            return;
        }
        (void)lw_queue_pop(&processes->suspects);
        if (!give(processes, worker, suspect)) {
            lw_queue_push_front(&processes->suspects, node);
            return;
        }
        worker->is_alone = worker->given > 0;
        processes->alone = worker->is_alone ? worker : NULL;
    }
}

/* Hands over what waits for that worker, or for any (NULL), as long as there is room. */
static void
run_queue(struct lw_processes *processes, struct lw_queue *queue,
          struct lw_processes_worker *only)
{
    struct lw_queue_node *node = NULL;
    while ((node = queue->first) != NULL) {
        struct lw_processes_worker *worker = only ? only : least_loaded(processes);
        if (!worker || room_of(worker, depth_of(processes)) == 0) {
            return;
        }
        (void)lw_queue_pop(queue);
        if (!give(processes, worker, lw_processes_delivery_in(node))) {
            lw_queue_push_front(queue, node);
            return;
        }
        processes->waiting_count--;
    }
}

void
lw_processes_go_on(struct lw_processes *processes)
{
    if (!processes->is_stopping) {
        run_suspect(processes);
        run_queue(processes, &processes->waiting, NULL);
        for (uint32_t i = 0; i < processes->worker_count; i++) {
            run_queue(processes, &processes->workers[i].backlog, &processes->workers[i]);
        }
    }
    lw_processes_update_room(processes);
}

void
lw_processes_move_on(struct lw_processes_worker *worker)
{
    struct lw_processes *processes = worker->owner;
    struct lw_queue backlog = worker->backlog;
    struct lw_queue_node *node = NULL;
    bool has_worker = false;
    for (uint32_t i = 0; i < processes->worker_count; i++) {
        has_worker = has_worker || has_future(&processes->workers[i]);
    }
    if (!has_worker) {
        lw_processes_give_back_all(processes, "its zygote was killed");
        return;
    }
    worker->backlog = (struct lw_queue){ NULL, NULL };
    while ((node = lw_queue_pop(&backlog)) != NULL) {
        processes->waiting_count--;
        lw_processes_take(processes, lw_processes_delivery_in(node));
    }
}

void
lw_processes_on_memory_timer(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    lw_processes_go_on(LW_CONTAINER(timer, struct lw_processes, memory_timer));
}
