/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning of a message's path: how much a subscription may ask for, one batch from its
 * broker, and each message of it admitted: held by its partition, opened in the ledger, put into
 * its lane, or run at once (direct.h). Pull, not push: no room, no asking, and that is the whole
 * backpressure. When to receive relative to choosing is dispatcher.c's.
 *
 * Limits, counts and clocks are paid once a batch. Spares are deliveries without a message,
 * kept at hand so that receiving takes none from the pool one by one.
 */
#include "dispatcher/receive.h"

#include <string.h>

#include "base/assert.h"
#include "dispatcher/direct.h"
#include "dispatcher/pace.h"
#include "dispatcher/pinned.h"
#include "dispatcher/starved.h"

#define BATCH_TIME_NS (LW_MS / 2) /* a batch that runs on the loop delays better ones so long */
#define FEW 16

/* -- how much may come --------------------------------------------------------------------- */

static bool
has_free_slot(const struct lw_stream *stream)
{
    const struct lw_scheduler *scheduler = &stream->dispatcher->scheduler;
    return scheduler->busy_slots < scheduler->slots;
}

/* What waits here waits for its keys, a slot is idle: that is no reason to go on waiting. */
static uint32_t
room_while_stopped(const struct lw_stream *stream)
{
    bool is_idle = stream->subscription.queued > 0 && has_free_slot(stream) &&
                   lw_receive_is_dry(stream);
    return is_idle ? lw_limits_room_idle(&stream->subscription.limits) : 0;
}

static uint32_t
room_of(const struct lw_stream *stream)
{
    const struct lw_subscription *subscription = &stream->subscription;
    uint32_t waiting = lw_receive_is_dry(stream) || lw_starved_is(stream)
                           ? 0
                           : subscription->queued;
    if (subscription->is_paused || subscription->is_publish_blocked ||
        subscription->is_failed || subscription->is_engine_down || stream->is_blind ||
        waiting >= subscription->window.size) {
        return 0;
    }
    uint32_t room = subscription->limits.is_stopped ? room_while_stopped(stream)
                                                    : lw_limits_room(&subscription->limits);
    uint32_t window = subscription->window.size - waiting;
    return room < window ? room : window;
}

/* Tells the broker how much may be outstanding; brokers that grant (Pulsar) follow it. */
static void
update_demand(struct lw_dispatcher *dispatcher, struct lw_stream *stream, uint64_t now)
{
    uint32_t room = dispatcher->phase == LW_PHASE_RUNNING ? room_of(stream) : 0;
    lw_starved_update(stream, room, now);
    if (room == stream->demanded) {
        return;
    }
    const struct lw_limits *limits = &stream->subscription.limits;
    uint64_t bytes = limits->bytes < limits->bytes_max ? limits->bytes_max - limits->bytes : 0;
    if (stream->demanded_at == 0 && room > 0) {
        stream->demanded_at = now;
    }
    stream->demanded = room;
    stream->link->broker->ops->demand(stream->source, room, bytes);
}

void
lw_receive_update(struct lw_dispatcher *dispatcher, struct lw_stream *stream)
{
    bool may = dispatcher->phase == LW_PHASE_RUNNING;
    uint32_t room = may ? room_of(stream) : 0;
    bool is_worth = room * 4 >= stream->subscription.window.size || lw_receive_is_dry(stream);
    if (room > 0 && is_worth && stream->has_more) {
        lw_ranks_add(&dispatcher->receivable, &stream->subscription.receive);
    } else {
        lw_ranks_remove(&dispatcher->receivable, &stream->subscription.receive);
    }
}

/* -- admit --------------------------------------------------------------------------------- */

void
lw_receive_begin(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
                 struct lw_partition *partition, struct lw_delivery *delivery)
{
    delivery->subscription = &stream->subscription;
    delivery->partition = partition;
    delivery->attempt = 0;
    delivery->is_detached = false;
    delivery->received_at = dispatcher->host->now;
    delivery->held_bytes = (uint32_t)(delivery->message.key.size +
                                      delivery->message.value.size);
    partition->received_bytes += delivery->held_bytes;
    delivery->pinned_mark = partition->received_bytes;
    lw_delivery_move(delivery, LW_STATE_FREE, LW_STATE_QUEUED);
    lw_list_push(&partition->held, &delivery->held);
    partition->held_count++;
    if (!partition->oldest_pinned) {
        partition->oldest_pinned = delivery;
    } else if (delivery->pinned_mark - partition->oldest_pinned->pinned_mark >
               LW_PINNED_SPAN_BYTES) {
        lw_pinned_pass(partition);
    }
}

/* The ledger opens the position, the key chooses the lane. */
static void
admit(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
      struct lw_partition *partition, struct lw_delivery *delivery)
{
    lw_receive_begin(dispatcher, stream, partition, delivery);
    lw_history_note(dispatcher, LW_HISTORY_RECEIVED, delivery, 0, 0);
    if (__builtin_expect(stream->subscription.is_batched, 0)) {
        delivery->is_alone = lw_policy_is_spent(&stream->policy,
                                                delivery->message.redeliveries);
    }
    if (partition->has_ledger && !lw_assignment_open(delivery)) {
        return;
    }
    if (lw_scheduler_admit(&dispatcher->scheduler, delivery) != LW_STATUS_OK) {
        lw_assignment_stash(delivery, true);
    }
}

/* No handler can be given it: the policy says what becomes of it. Its key, too, may be damaged,
 * so it is in no lane. */
static void
admit_fault(struct lw_direct *direct, struct lw_partition *partition,
            struct lw_delivery *delivery)
{
    struct lw_dispatcher *dispatcher = direct->dispatcher;
    lw_direct_leave_out(direct, delivery);
    lw_receive_begin(dispatcher, direct->stream, partition, delivery);
    lw_history_note(dispatcher, LW_HISTORY_RECEIVED, delivery, 0, 0);
    if (!partition->has_ledger || lw_assignment_open(delivery)) {
        lw_dispatcher_judge_fault(dispatcher, delivery);
    }
    if (dispatcher->phase != LW_PHASE_RUNNING) {
        direct->handler = NULL;
    }
}

/* No other subscription could be received and chosen before this one. */
static bool
may_start_directly(const struct lw_dispatcher *dispatcher, const struct lw_stream *stream)
{
    const struct lw_rank_node *own = &stream->subscription.receive;
    if (dispatcher->phase != LW_PHASE_RUNNING || stream->subscription.engine->room == 0) {
        return false;
    }
    const struct lw_rank_node *first = lw_ranks_first(&dispatcher->receivable);
    return !first || first->rank > own->rank ||
           (first->rank == own->rank && own->is_in && own->link.next == own->link.prev);
}

/*
 * Admits a batch in order; limits and counts are charged once for all of it. What would be
 * chosen at once, by a handler that answers at once, takes the short way (direct.h).
 */
static void
admit_batch(struct lw_dispatcher *dispatcher, struct lw_stream *stream,
            struct lw_message *const messages[], uint32_t count)
{
    struct lw_direct direct;
    bool has_faults = stream->link->broker->caps.has_faults;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += messages[i]->key.size + messages[i]->value.size;
    }
    lw_direct_begin(&direct, dispatcher, stream, bytes, may_start_directly(dispatcher, stream));
    stream->counters.received_bytes += bytes;
    dispatcher->held_count += count;
    lw_limits_charge(&stream->subscription.limits, count, bytes);
    if (stream->subscription.queued == 0) {
        stream->subscription.waiting_since = dispatcher->host->now;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct lw_delivery *delivery = LW_CONTAINER(messages[i], struct lw_delivery, message);
        uint32_t slot = delivery->message.slot;
        lw_assert(slot < stream->slot_count && stream->slots[slot] != NULL);
        struct lw_partition *partition = stream->slots[slot];
        if (__builtin_expect(has_faults && delivery->message.fault != NULL, 0)) {
            admit_fault(&direct, partition, delivery);
        } else if (!lw_direct_try(&direct, partition, delivery)) {
            admit(dispatcher, stream, partition, delivery);
        }
    }
    lw_direct_end(&direct);
    lw_pinned_note(dispatcher, bytes);
}

/* -- one batch ----------------------------------------------------------------------------- */

static uint32_t
take_spares(struct lw_dispatcher *dispatcher, uint32_t wanted)
{
    while (dispatcher->spare_count < wanted) {
        struct lw_delivery *delivery = lw_pool_take(&dispatcher->deliveries);
        if (!delivery) {
            return dispatcher->spare_count;
        }
        dispatcher->spare[dispatcher->spare_count++] = &delivery->message;
    }
    return wanted;
}

static void
give_spares(struct lw_dispatcher *dispatcher, struct lw_message *const messages[],
            uint32_t count)
{
    if (count > 0) {
        memcpy(&dispatcher->spare[dispatcher->spare_count], messages,
               count * sizeof(struct lw_message *));
        dispatcher->spare_count += count;
    }
}

static void
note_received(struct lw_stream *stream, uint32_t count, uint64_t now)
{
    if (stream->demanded_at != 0) {
        lw_window_on_round_trip(&stream->subscription.window, now - stream->demanded_at);
        stream->demanded_at = 0;
    }
    if (stream->starved_at != 0) {
        lw_starved_end(stream, count, now);
    }
    stream->demanded -= count < stream->demanded ? count : stream->demanded;
    stream->counters.received += count;
    stream->received_at = now;
}

/* Of a few handlers on the loop thread, the time must not be that of what was before them. */
static inline uint64_t
begin_batch(struct lw_dispatcher *dispatcher, const struct lw_stream *stream, uint32_t count)
{
    if (count < FEW && stream->subscription.engine->direct) {
        return dispatcher->host->ops->refresh(dispatcher->host);
    }
    return dispatcher->host->now;
}

/*
 * Handlers on the loop thread ran inside the batch: the next one is as large as fits the time,
 * since a better message is only seen between batches. Others do not run here: full batches.
 */
static void
adapt_batch(struct lw_dispatcher *dispatcher, struct lw_stream *stream, uint32_t count,
            uint64_t began, uint64_t started)
{
    if (!stream->subscription.engine->direct) {
        stream->batch_max = LW_RECEIVE_BATCH;
        return;
    }
    uint64_t took = dispatcher->host->ops->refresh(dispatcher->host) - began;
    lw_pace_on_batch(stream, began, took, (uint32_t)(stream->counters.started - started));
    uint64_t fits = took > 0 ? BATCH_TIME_NS * count / took : LW_RECEIVE_BATCH;
    uint64_t most = (uint64_t)stream->batch_max * 2;
    fits = fits < most ? fits : most;
    fits = fits < LW_RECEIVE_BATCH ? fits : LW_RECEIVE_BATCH;
    stream->batch_max = fits > 0 ? (uint32_t)fits : 1;
}

/* How many messages fit the limits, at the size of those in hand. */
static uint32_t
fitting(const struct lw_limits *limits)
{
    if (limits->bytes == 0 || limits->bytes / limits->count == 0) {
        return limits->count_max;
    }
    uint64_t count = limits->bytes_max / (limits->bytes / limits->count);
    return count < limits->count_max ? (uint32_t)count : limits->count_max;
}

/* A quarter of the limit is in hand: from here on partitions could be in each other's way. */
static inline bool
is_tight(const struct lw_limits *limits)
{
    return limits->count > limits->count_max / 4 || limits->bytes > limits->bytes_max / 4;
}

/* What each slot may still give of its share of the limit; false: it is not shared. */
static bool
fill_rooms(struct lw_stream *stream)
{
    const struct lw_limits *limits = &stream->subscription.limits;
    uint32_t assigned = 0;
    if (!stream->link->broker->ops->limit_slots) {
        return false;
    }
    for (uint32_t i = 0; i < stream->slot_count; i++) {
        assigned += stream->slots[i] != NULL;
    }
    if (assigned < 2) {
        return false;
    }
    uint32_t most = fitting(limits);
    uint32_t share = (most - most / 16) / assigned; /* all together do not stop receiving */
    share = share > 0 ? share : 1;
    for (uint32_t i = 0; i < stream->slot_count; i++) {
        uint32_t held = stream->slots[i] ? stream->slots[i]->held_count : share;
        stream->rooms[i] = held < share ? share - held : 0;
    }
    return true;
}

/* As many as there are of every slot but those that have no partition yet. */
static void
close_unplaced(struct lw_stream *stream)
{
    for (uint32_t i = 0; i < stream->slot_count; i++) {
        stream->rooms[i] = stream->slots[i] ? UINT32_MAX : 0;
    }
}

static void
limit_slots(struct lw_stream *stream, bool is_sharing)
{
    if (is_sharing || stream->is_sharing) {
        stream->is_sharing = is_sharing;
        stream->link->broker->ops->limit_slots(stream->source,
                                               is_sharing ? stream->rooms : NULL);
    }
}

static bool
has_silent_slot(const struct lw_stream *stream)
{
    for (uint32_t i = 0; i < stream->slot_count; i++) {
        if (stream->slots[i] && stream->slots[i]->received_bytes == 0) {
            return true;
        }
    }
    return false;
}

/*
 * Partitions were assigned and some have not delivered yet: they are waited for, a moment, or those
 * that were quicker would fill their room with a backlog that takes long to work off.
 */
static bool
is_room_awaited(struct lw_stream *stream)
{
    struct lw_host *host = stream->dispatcher->host;
    if (stream->awaited_until == 0) {
        return false;
    }
    if (stream->awaited_until == LW_NEVER) {
        stream->awaited_until = host->now + LW_LATE_NS;
        lw_timers_arm(&host->timers, &stream->awaited_timer, stream->awaited_until);
    }
    if (host->now >= stream->awaited_until || !has_silent_slot(stream)) {
        stream->awaited_until = 0;
    }
    return stream->awaited_until != 0;
}

/*
 * Partitions that hold less than their share of the limit come first: one with few keys, which is
 * slow, would else fill with its backlog the room that others need for messages that could run.
 * When those have nothing, the room is anybody's, but for an eighth: at the limit, receiving
 * would stop for those below their share as well.
 */
static uint32_t
room_of_anybody(struct lw_stream *stream, uint32_t wanted)
{
    const struct lw_limits *limits = &stream->subscription.limits;
    if (is_room_awaited(stream)) {
        return 0;
    }
    uint32_t most = fitting(limits);
    most -= most / 8;
    uint32_t room = limits->count < most ? most - limits->count : 0;
    return room < wanted ? room : wanted;
}

static uint32_t
ask(struct lw_stream *stream, struct lw_message *const messages[], uint32_t wanted)
{
    const struct lw_broker_ops *ops = stream->link->broker->ops;
    const struct lw_limits *limits = &stream->subscription.limits;
    uint64_t bytes = limits->bytes_max > limits->bytes ? limits->bytes_max - limits->bytes : 1;
    if (__builtin_expect(stream->unplaced_count > 0, 0)) {
        close_unplaced(stream);
        limit_slots(stream, true);
    } else if (__builtin_expect(is_tight(limits) || stream->is_sharing, 0)) {
        limit_slots(stream, is_tight(limits) && fill_rooms(stream));
    }
    stream->is_held_back = false;
    size_t count = ops->receive(stream->source, messages, wanted, bytes, &stream->has_more);
    if (count == 0 && stream->has_more && stream->is_sharing && stream->unplaced_count == 0) {
        wanted = room_of_anybody(stream, wanted);
        stream->is_held_back = wanted == 0;
        stream->held_back_at = limits->count;
        if (wanted > 0) {
            limit_slots(stream, false);
            count = ops->receive(stream->source, messages, wanted, bytes, &stream->has_more);
        }
    }
    return (uint32_t)count;
}

/*
 * The stream is not asked again in this step, or the step would not end. What the broker has not
 * given yet comes in another turn; what lack of memory held up, after a while; what was held back
 * for those below their share, when something in hand ended.
 */
static uint32_t
receive_nothing(struct lw_dispatcher *dispatcher, struct lw_stream *stream)
{
    if (stream->unplaced_count > 0 || (room_of(stream) > 0 && dispatcher->spare_count == 0)) {
        lw_assignment_wait_for_memory(dispatcher);
    } else if (stream->has_more && !stream->is_held_back) {
        lw_host_want_turn(dispatcher->host);
    }
    stream->has_more = false;
    lw_receive_update(dispatcher, stream);
    if (stream->is_held_back && stream->awaited_until == 0 && stream->subscription.is_batched) {
        lw_scheduler_hurry_gather(&dispatcher->scheduler, &stream->subscription);
    }
    return 0;
}

/*
 * Since when the oldest one here waits. Of those in lanes only the time is known when the queue was
 * empty last, which is earlier: that makes the window smaller, and costs little where a better
 * stream is received before a worse one is chosen.
 */
static uint64_t
waiting_since(const struct lw_stream *stream)
{
    const struct lw_queue_node *oldest = stream->subscription.loose.first;
    return stream->is_on_demand && oldest
               ? LW_CONTAINER_CONST(oldest, struct lw_delivery, link)->received_at
               : stream->subscription.waiting_since;
}

/* One batch of one stream. Returns how many came. */
uint32_t
lw_receive_batch(struct lw_dispatcher *dispatcher, struct lw_stream *stream)
{
    uint32_t wanted = room_of(stream);
    bool was_dry = lw_receive_is_dry(stream) && has_free_slot(stream);
    wanted = take_spares(dispatcher, wanted < stream->batch_max ? wanted : stream->batch_max);
    if (__builtin_expect(wanted == 0, 0)) {
        return receive_nothing(dispatcher, stream);
    }
    struct lw_message *messages[LW_RECEIVE_BATCH];
    dispatcher->spare_count -= wanted;
    memcpy(messages, &dispatcher->spare[dispatcher->spare_count],
           wanted * sizeof(struct lw_message *));
    uint32_t count = ask(stream, messages, wanted);
    give_spares(dispatcher, messages + count, wanted - count);
    if (count == 0) {
        return receive_nothing(dispatcher, stream);
    }
    uint64_t began = begin_batch(dispatcher, stream, count);
    uint64_t started = stream->counters.started;
    note_received(stream, count, began);
    admit_batch(dispatcher, stream, messages, count);
    lw_window_on_wait(&stream->subscription.window, waiting_since(stream),
                      dispatcher->host->now);
    adapt_batch(dispatcher, stream, count, began, started);
    if (was_dry && count == wanted && stream->has_more) {
        lw_window_on_dry(&stream->subscription.window, dispatcher->host->now);
    }
    lw_receive_update(dispatcher, stream);
    return count;
}

/* -- for the step -------------------------------------------------------------------------- */

/*
 * Slots were freed: whoever has only messages behind taken keys may receive, before a worse one
 * is chosen. While all slots were taken that could not be seen.
 */
bool
lw_receive_look_for_dry(struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        struct lw_stream *stream = dispatcher->streams[i];
        if (stream->has_more && !stream->subscription.receive.is_in) {
            lw_receive_update(dispatcher, stream);
        }
    }
    return dispatcher->receivable.top != 0;
}

/* Tops up what waits here while all slots are taken; the window decides how much. */
uint32_t
lw_receive_top_up(struct lw_dispatcher *dispatcher, uint32_t budget)
{
    uint32_t count = 0;
    struct lw_rank_node *node;
    while (count < budget && (node = lw_ranks_first(&dispatcher->receivable)) != NULL) {
        struct lw_stream *stream = LW_CONTAINER(node, struct lw_stream, subscription.receive);
        uint32_t received = lw_receive_batch(dispatcher, stream);
        if (received == 0 && node->is_in) {
            lw_ranks_remove(&dispatcher->receivable, node);
        }
        count += received;
    }
    return count;
}

void
lw_receive_look_at_sources(struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        struct lw_stream *stream = dispatcher->streams[i];
        stream->has_more = stream->has_more ||
                           stream->link->broker->ops->is_ready(stream->source);
        lw_receive_update(dispatcher, stream);
    }
}

/* What was held back may come, since something ended later in the same step. */
static void
look_at_held_back(struct lw_stream *stream)
{
    if (stream->is_held_back && stream->subscription.limits.count < stream->held_back_at) {
        stream->is_held_back = false;
        lw_host_want_turn(stream->dispatcher->host);
    }
}

void
lw_receive_tell_demand(struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        update_demand(dispatcher, dispatcher->streams[i], dispatcher->host->now);
        look_at_held_back(dispatcher->streams[i]);
    }
}
