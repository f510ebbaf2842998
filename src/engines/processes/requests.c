/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handing over: records are written behind the published part of the ring, where the worker does
 * not look yet, and published in batches: one exchange, and at most one wake-up, for all of them.
 * What is too large for the ring's share goes in sealed memory over the socket, announced by a
 * record, so that the order stays that of the ring.
 */
#include "engines/processes/processes.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "core/partition.h"
#include "core/subscription.h"
#include "engines/processes/request.h"

static struct lw_host *
host_of(const struct lw_processes_worker *worker)
{
    return worker->owner->engine.host;
}

/* -- Room in the ring ------------------------------------------------------------------------------ */

/* Where the worker is; it may claim anything, only what can be is taken. */
static bool
look_at_tail(struct lw_processes_worker *worker)
{
    uint64_t tail = atomic_load_explicit(&worker->shared.words->request_tail,
                                         memory_order_acquire);
    if (tail - worker->request_tail > worker->published - worker->request_tail) {
        lw_processes_worker_breach(worker, "its place among the requests is impossible");
        return false;
    }
    worker->request_tail = tail;
    return true;
}

static bool
has_room(struct lw_processes_worker *worker, size_t size)
{
    size_t bytes = worker->shared.request_bytes;
    if (worker->request_head + size - worker->request_tail <= bytes) {
        return true;
    }
    return look_at_tail(worker) && worker->request_head + size - worker->request_tail <= bytes;
}

static unsigned char *
place_of(const struct lw_processes_worker *worker)
{
    const struct lw_processes_shared *shared = &worker->shared;
    return shared->requests + (worker->request_head & (shared->request_bytes - 1));
}

/* -- Contexts -------------------------------------------------------------------------------------- */

static uint16_t
slot_of(const struct lw_partition *partition)
{
    uint64_t hash = (uint64_t)(uintptr_t)partition * UINT64_C(0x9E3779B97F4A7C15);
    return (uint16_t)(hash >> 58); /* LW_PROCESSES_CONTEXTS of them */
}

/*
 * Makes sure that the worker knows the message's context; false without room for it and for the
 * `size` of what follows it now: contexts alone are never published, and would fill the ring.
 */
static bool
send_context(struct lw_processes_worker *worker, const struct lw_processes_facts *facts,
             uint16_t slot, size_t size)
{
    const struct lw_delivery *delivery = facts->delivery;
    const struct lw_partition *partition = delivery->partition;
    struct lw_processes_known *known = &worker->known[slot];
    bool is_known = known->partition == partition &&
                    known->generation == partition->generation &&
                    (known->has_prefix || facts->identity_size > 0);
    if (is_known) {
        return has_room(worker, size);
    }
    struct lw_processes_texts texts;
    lw_processes_context_measure(delivery, &texts);
    if (!has_room(worker, texts.size + size)) {
        return false;
    }
    lw_processes_context_write(&texts, partition->number, slot, place_of(worker));
    worker->request_head += texts.size;
    *known = (struct lw_processes_known){ partition, partition->generation,
                                          texts.prefix_size > 0 };
    return true;
}

/* -- Large ones ------------------------------------------------------------------------------------ */

/* Sends `record`, which is as large as `size`, apart, and marks its place in the ring. */
static enum lw_processes_given
send_item(struct lw_processes_worker *worker, const unsigned char *record, size_t size)
{
    struct lw_processes_note note = { .kind = LW_PROCESSES_ITEM, .serial = worker->next };
    struct lw_processes_request mark = { .size = sizeof mark,
                                         .kind = LW_PROCESSES_EXTERNAL,
                                         .seq = worker->next };
    int fd = lw_processes_item_create(record, size);
    int failed = fd < 0 ? errno : lw_processes_send(worker->socket, &note, sizeof note, &fd, 1);
    if (fd >= 0) {
        (void)close(fd);
    }
    if (failed) {
        return failed == EAGAIN ? LW_PROCESSES_FULL : LW_PROCESSES_NO_MEMORY;
    }
    memcpy(place_of(worker), &mark, sizeof mark);
    worker->request_head += sizeof mark;
    worker->owner->figures.items++;
    return LW_PROCESSES_GIVEN;
}

static bool
is_for_ring(const struct lw_processes_worker *worker, size_t size)
{
    return size <= worker->shared.request_bytes / LW_PROCESSES_RING_SHARE;
}

/* -- Giving ---------------------------------------------------------------------------------------- */

static void
note_given(struct lw_processes_worker *worker, struct lw_delivery *delivery)
{
    uint64_t now = host_of(worker)->now;
    int64_t timeout_ms = worker->owner->options.timeout_ms;
    if (worker->next == worker->published_next) {
        worker->unflushed_since = now;
    }
    *lw_processes_open_at(worker, worker->next++) = delivery;
    delivery->engine_data = worker;
    delivery->deadline = timeout_ms > 0 ? now + (uint64_t)timeout_ms * LW_MS : LW_NEVER;
    worker->given++;
}

/* One that has answered everything has at most its last record not given back yet. */
static enum lw_processes_given
find_no_room(struct lw_processes_worker *worker)
{
    if (worker->first == worker->next && worker->state == LW_PROCESSES_TAKING) {
        lw_processes_worker_breach(worker, "it gives no room back among the requests");
    }
    return LW_PROCESSES_FULL;
}

static enum lw_processes_given
write_item(struct lw_processes_worker *worker, const struct lw_processes_facts *facts,
           uint16_t slot)
{
    unsigned char *record = lw_alloc(facts->size);
    if (!record) {
        return LW_PROCESSES_NO_MEMORY;
    }
    lw_processes_request_write(facts, worker->next, slot, record);
    enum lw_processes_given given = send_item(worker, record, facts->size);
    lw_free(record);
    return given;
}

static enum lw_processes_given
write_request(struct lw_processes_worker *worker, const struct lw_processes_facts *facts)
{
    bool is_item = !is_for_ring(worker, facts->size);
    uint16_t slot = slot_of(facts->delivery->partition);
    size_t size = is_item ? sizeof(struct lw_processes_request) : facts->size;
    if (!send_context(worker, facts, slot, size)) {
        return find_no_room(worker);
    }
    if (is_item) {
        return write_item(worker, facts, slot);
    }
    lw_processes_request_write(facts, worker->next, slot, place_of(worker));
    worker->request_head += facts->size;
    return LW_PROCESSES_GIVEN;
}

static enum lw_processes_given
write_batch(struct lw_processes_worker *worker, const struct lw_delivery *first, size_t size)
{
    bool is_item = !is_for_ring(worker, size);
    if (!has_room(worker, is_item ? sizeof(struct lw_processes_request) : size)) {
        return find_no_room(worker);
    }
    if (!is_item) {
        lw_processes_batch_write(first, worker->next, size, place_of(worker));
        worker->request_head += size;
        return LW_PROCESSES_GIVEN;
    }
    unsigned char *record = lw_alloc(size);
    if (!record) {
        return LW_PROCESSES_NO_MEMORY;
    }
    lw_processes_batch_write(first, worker->next, size, record);
    enum lw_processes_given given = send_item(worker, record, size);
    lw_free(record);
    return given;
}

static enum lw_processes_given
give_batch(struct lw_processes_worker *worker, const struct lw_delivery *first)
{
    size_t size = 0;
    return lw_processes_batch_measure(first, worker->owner->options.tune.item_bytes_max, &size)
               ? write_batch(worker, first, size)
               : LW_PROCESSES_TOO_LARGE;
}

static enum lw_processes_given
give_one(struct lw_processes_worker *worker, const struct lw_delivery *delivery)
{
    struct lw_processes_facts facts; /* large, and filled only as far as it is used */
    lw_processes_request_measure(delivery, &facts);
    return facts.size <= worker->owner->options.tune.item_bytes_max
               ? write_request(worker, &facts)
               : LW_PROCESSES_TOO_LARGE;
}

enum lw_processes_given
lw_processes_worker_give(struct lw_processes_worker *worker, struct lw_delivery *delivery)
{
    enum lw_processes_given given = delivery->is_batch ? give_batch(worker, delivery)
                                                       : give_one(worker, delivery);
    if (given == LW_PROCESSES_GIVEN) {
        note_given(worker, delivery);
        if (worker->next - worker->published_next >= worker->owner->options.tune.batch_size) {
            lw_processes_worker_publish(worker, LW_PROCESSES_BY_SIZE);
        }
    }
    return given;
}

/* -- Publishing ------------------------------------------------------------------------------------ */

static void
count_batch(struct lw_processes_worker *worker, enum lw_processes_flush reason, uint64_t now)
{
    struct lw_processes_figures *figures = &worker->owner->figures;
    uint64_t size = worker->next - worker->published_next;
    figures->flushes[reason]++;
    figures->messages += size;
    figures->last_size = size;
    figures->last_wait_ns = now - worker->unflushed_since;
    if (worker->probe == 0) {
        worker->probe = worker->published_next;
        worker->probe_published_at = now;
    }
}

static void
wake(struct lw_processes_worker *worker)
{
    struct lw_processes_words *words = worker->shared.words;
    if (atomic_load_explicit(&words->worker_sleeps, memory_order_seq_cst) != 0 &&
        atomic_exchange_explicit(&words->worker_sleeps, 0, memory_order_seq_cst) != 0) {
        (void)lw_processes_wake(worker->wake); /* its end is told by others */
        worker->owner->figures.worker_wakes++;
    }
}

void
lw_processes_worker_publish(struct lw_processes_worker *worker, enum lw_processes_flush reason)
{
    if (worker->next == worker->published_next) {
        return;
    }
    uint64_t now = host_of(worker)->ops->refresh(host_of(worker));
    count_batch(worker, reason, now);
    if (worker->first == worker->published_next) {
        worker->front_since = now;
    }
    worker->published_next = worker->next;
    worker->published = worker->request_head;
    (void)atomic_exchange_explicit(&worker->shared.words->request_head, worker->published,
                                   memory_order_seq_cst);
    wake(worker);
    lw_processes_worker_watch_clock(worker);
}

/* The worker has nothing else to do. */
static bool
is_hungry(const struct lw_processes_worker *worker)
{
    return worker->first == worker->published_next;
}

uint64_t
lw_processes_worker_flush(struct lw_processes_worker *worker)
{
    const struct lw_processes_tuning *tune = &worker->owner->options.tune;
    uint64_t now = host_of(worker)->now;
    if (worker->next == worker->published_next) {
        return LW_NEVER;
    }
    uint64_t residence = tune->handover == LW_HANDOVER_MIN_RESIDENCE
                             ? (uint64_t)tune->batch_min_residence_ms * LW_MS
                             : 0;
    uint64_t due = worker->unflushed_since + (uint64_t)tune->batch_wait_ms * LW_MS;
    bool may_demand = tune->handover != LW_HANDOVER_TIMER && is_hungry(worker);
    if (worker->owner->is_stopping) {
        lw_processes_worker_publish(worker, LW_PROCESSES_BY_CLOSE);
    } else if (tune->batch_wait_ms == 0 || (may_demand && residence == 0)) {
        lw_processes_worker_publish(worker, LW_PROCESSES_BY_DEMAND);
    } else if (may_demand && now >= worker->unflushed_since + residence) {
        lw_processes_worker_publish(worker, LW_PROCESSES_BY_RESIDENCE);
    } else if (now >= due) {
        lw_processes_worker_publish(worker, LW_PROCESSES_BY_TIMER);
    } else {
        uint64_t early = worker->unflushed_since + residence;
        return may_demand && early < due ? early : due;
    }
    return LW_NEVER;
}
