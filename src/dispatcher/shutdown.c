/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a dispatcher: RUNNING -> DRAINING -> LEAVING -> CLOSING -> CLOSED.
 *
 * Draining receives nothing more; what is here runs, retries that are due before the deadline
 * run, publications are confirmed. It ends when nothing is held, or at the deadline; what then
 * is unfinished is given back (a nack where there is one, nothing on a log). Publications get
 * at most 5 s once they are all that is left. Engines that can end a handler early are stopped
 * a moment before the deadline, so that a program gets a TERM and some time. Leaving awaits the
 * last commits and gives the sources up; the group membership is kept until then. Closing waits
 * for handlers that cannot be ended. An abort goes to LEAVING at once. Entered from the step
 * only, so callers never recurse.
 */
#include "base/assert.h"
#include "dispatcher/receive.h"
#include "dispatcher/task.h"

static void
set_phase(struct lw_dispatcher *dispatcher, enum lw_phase phase)
{
    lw_assert(phase > dispatcher->phase);
    dispatcher->phase = phase;
}

/* -- walking over what is held ---------------------------------------------------------------- */

typedef void (*delivery_fn)(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery);

/* Backwards: giving one back takes later ones of its lane along, never earlier ones. */
static void
each_of_partition(struct lw_dispatcher *dispatcher, struct lw_partition *partition,
                  delivery_fn fn)
{
    partition->held_count++; /* keeps it alive over the walk */
    struct lw_list *node = partition->held.prev;
    while (node != &partition->held) {
        struct lw_list *before = node->prev;
        fn(dispatcher, LW_CONTAINER(node, struct lw_delivery, held));
        node = before;
    }
    partition->held_count--;
    lw_assignment_release(partition);
}

static void
each_held(struct lw_dispatcher *dispatcher, delivery_fn fn)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        struct lw_list *head = &dispatcher->streams[i]->subscription.partitions;
        for (struct lw_list *node = head->next; node != head;) {
            struct lw_partition *partition = LW_CONTAINER(node, struct lw_partition, link);
            node = node->next;
            each_of_partition(dispatcher, partition, fn);
        }
    }
    lw_settle_flush(dispatcher);
}

/* -- giving back --------------------------------------------------------------------------------- */

static void
unstash(struct lw_delivery *delivery)
{
    struct lw_partition *partition = delivery->partition;
    for (struct lw_queue_node *node = partition->stash.first; node; node = node->next) {
        if (node == &delivery->link) {
            lw_queue_remove(&partition->stash, node);
            partition->stash_count--;
            return;
        }
    }
}

static bool
is_stashed(const struct lw_delivery *delivery)
{
    const struct lw_queue *stash = &delivery->partition->stash;
    for (const struct lw_queue_node *node = stash->first; node; node = node->next) {
        if (node == &delivery->link) {
            return true;
        }
    }
    return false;
}

static void
give_back(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    dispatcher->given_back++;
    lw_settle(dispatcher, delivery, LW_SETTLED_GIVEN_BACK, 0);
}

static void
unpark(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    lw_timers_disarm(&dispatcher->host->timers, &delivery->timer);
    delivery->subscription->parked--;
}

/* It ran in company, and one of the same key behind it is to run again. */
static void
give_back_company(struct lw_dispatcher *dispatcher, const struct lw_delivery *delivery)
{
    struct lw_list *head = &delivery->partition->held;
    for (struct lw_list *node = delivery->held.next; node != head;) {
        struct lw_delivery *later = LW_CONTAINER(node, struct lw_delivery, held);
        node = node->next;
        if (later->lane == delivery->lane && later->state == LW_STATE_PARKED) {
            unpark(dispatcher, later);
            give_back(dispatcher, later);
        }
    }
}

/* What waits behind it for the same key goes too: it must not overtake. */
void
lw_shutdown_give_back(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    struct lw_lane *lane = delivery->lane;
    while (lane && lane->waiting.first) {
        struct lw_delivery *later = LW_CONTAINER(lane->waiting.first, struct lw_delivery, link);
        lw_scheduler_remove(&dispatcher->scheduler, later);
        give_back(dispatcher, later);
    }
    if (lane && lane->others > 0) {
        give_back_company(dispatcher, delivery);
    }
    give_back(dispatcher, delivery);
}

static void
give_back_parked(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    unpark(dispatcher, delivery);
    lw_shutdown_give_back(dispatcher, delivery);
}

/* The deadline passed or an abort was asked: everything that is not running goes back. */
static void
give_back_now(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    switch ((enum lw_state)delivery->state) {
    case LW_STATE_QUEUED:
        if (is_stashed(delivery)) {
            unstash(delivery);
        } else {
            lw_scheduler_remove(&dispatcher->scheduler, delivery);
        }
        lw_shutdown_give_back(dispatcher, delivery);
        return;
    case LW_STATE_RUNNING:
        lw_task_cancel(delivery);
        return;
    case LW_STATE_PARKED:
        give_back_parked(dispatcher, delivery);
        return;
    case LW_STATE_JUDGED:
    case LW_STATE_PUBLISHING:
        lw_timers_disarm(&dispatcher->host->timers, &delivery->timer);
        if (!delivery->publishing || lw_publish_abandon(dispatcher, delivery)) {
            lw_shutdown_give_back(dispatcher, delivery);
        }
        return;
    case LW_STATE_FREE:
    case LW_STATE_SETTLED:
    case LW_STATE_DROPPED:
        return;
    }
}

/* It may run nothing: by an operator, or as its handler is down for longer than the drain may last. */
static bool
is_stopped(const struct lw_dispatcher *dispatcher, const struct lw_subscription *subscription)
{
    uint64_t up_at = subscription->engine->up_at;
    bool is_up_in_time = up_at > 0 && up_at < dispatcher->drain_deadline;
    return subscription->is_paused || (subscription->is_engine_down && !is_up_in_time);
}

/*
 * In a drain what cannot end before the deadline goes back at once: retries that are due later,
 * messages that are held for good, those of paused subscriptions and of handlers that are down.
 */
static void
give_back_hopeless(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    bool is_held = delivery->state == LW_STATE_JUDGED && !delivery->publishing &&
                   !lw_timer_is_armed(&delivery->timer);
    bool is_waiting = delivery->state == LW_STATE_QUEUED || delivery->state == LW_STATE_PARKED;
    bool is_paused = is_waiting && is_stopped(dispatcher, delivery->subscription);
    bool is_late = delivery->state == LW_STATE_PARKED &&
                   delivery->timer.due > dispatcher->drain_deadline;
    if (is_held || is_paused || is_late) {
        give_back_now(dispatcher, delivery);
    }
}

/* -- draining -------------------------------------------------------------------------------------- */

static void
arm_deadline(struct lw_dispatcher *dispatcher, uint64_t now)
{
    struct lw_timers *timers = &dispatcher->host->timers;
    uint64_t fifth = (dispatcher->drain_deadline - now) / 5;
    uint64_t before = fifth < LW_ENGINE_HURRY_NS ? fifth : LW_ENGINE_HURRY_NS;
    lw_timers_arm(timers, &dispatcher->drain_timer, dispatcher->drain_deadline);
    lw_timers_arm(timers, &dispatcher->hurry_timer, dispatcher->drain_deadline - before);
}

static void
enter_draining(struct lw_dispatcher *dispatcher)
{
    uint64_t now = dispatcher->host->now;
    set_phase(dispatcher, LW_PHASE_DRAINING);
    if (dispatcher->options.drain_timeout_ms > 0) {
        dispatcher->drain_deadline = now +
                                     (uint64_t)dispatcher->options.drain_timeout_ms * LW_MS;
        arm_deadline(dispatcher, now);
    }
    lw_host_log(dispatcher->host, LW_LOG_INFO, "service.draining",
                "draining: nothing more is received", "held=%u timeout_ms=%lld",
                dispatcher->held_count, (long long)dispatcher->options.drain_timeout_ms);
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        lw_receive_update(dispatcher, dispatcher->streams[i]);
    }
    lw_task_close(dispatcher);
    each_held(dispatcher, give_back_hopeless);
}

static void
say_given_back(struct lw_dispatcher *dispatcher)
{
    uint32_t running = dispatcher->scheduler.busy_slots;
    if (dispatcher->given_back > 0 || running > 0) {
        lw_host_log(dispatcher->host, LW_LOG_WARN, "service.given_back",
                    "unfinished messages were given back and will come again",
                    "given_back=%u still_running=%u publishing=%u", dispatcher->given_back,
                    running, dispatcher->publishing_count);
    }
}

/* Drained in time: programs see the end of their input and may close what they opened. */
static uint64_t
engines_deadline(const struct lw_dispatcher *dispatcher)
{
    uint64_t now = dispatcher->host->now;
    if (dispatcher->is_deadline_passed || dispatcher->is_abort_wanted) {
        return now;
    }
    uint64_t end = now + LW_ENGINE_END_NS;
    return end < dispatcher->drain_deadline ? end : dispatcher->drain_deadline;
}

static void
stop_engines(struct lw_dispatcher *dispatcher, uint64_t deadline)
{
    for (uint32_t i = 0; i < dispatcher->engine_count; i++) {
        dispatcher->engines[i]->ops->stop(dispatcher->engines[i], deadline);
    }
}

/* What still runs in programs is asked to end while there is time to; what waits stays here. */
static void
hurry_engines(struct lw_dispatcher *dispatcher)
{
    dispatcher->is_hurry_due = false;
    for (uint32_t i = 0; i < dispatcher->engine_count; i++) {
        struct lw_engine *engine = dispatcher->engines[i];
        if (engine->ops->can_end_early) {
            engine->ops->stop(engine, dispatcher->drain_deadline);
        }
    }
}

static void
enter_leaving(struct lw_dispatcher *dispatcher)
{
    set_phase(dispatcher, LW_PHASE_LEAVING);
    lw_timers_disarm(&dispatcher->host->timers, &dispatcher->drain_timer);
    lw_timers_disarm(&dispatcher->host->timers, &dispatcher->hurry_timer);
    lw_timers_disarm(&dispatcher->host->timers, &dispatcher->dead_letter_timer);
    each_held(dispatcher, give_back_now);
    say_given_back(dispatcher);
    stop_engines(dispatcher, engines_deadline(dispatcher));
    for (uint32_t i = 0; i < dispatcher->link_count; i++) {
        struct lw_link *link = dispatcher->links[i];
        if (link->is_started) {
            link->broker->ops->stop_sources(link->broker);
        }
    }
}

/* Nothing runs or waits for a handler: only publications are left. */
static bool
is_only_publishing(const struct lw_dispatcher *dispatcher)
{
    return dispatcher->publishing_count > 0 &&
           dispatcher->held_count == dispatcher->publishing_count;
}

/* Something waits for an operator, or for a handler that went down since the drain began. */
static bool
has_hopeless(const struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        const struct lw_subscription *subscription = &dispatcher->streams[i]->subscription;
        if (is_stopped(dispatcher, subscription) &&
            subscription->queued + subscription->parked > 0) {
            return true;
        }
    }
    return false;
}

static void
continue_draining(struct lw_dispatcher *dispatcher)
{
    struct lw_timers *timers = &dispatcher->host->timers;
    if (has_hopeless(dispatcher)) {
        each_held(dispatcher, give_back_hopeless);
    }
    if (dispatcher->held_count == 0) {
        enter_leaving(dispatcher);
        return;
    }
    if (dispatcher->is_deadline_passed) {
        enter_leaving(dispatcher);
        return;
    }
    if (dispatcher->is_hurry_due) {
        hurry_engines(dispatcher);
    }
    if (is_only_publishing(dispatcher)) {
        if (!lw_timer_is_armed(&dispatcher->dead_letter_timer)) {
            lw_timers_arm(timers, &dispatcher->dead_letter_timer,
                          dispatcher->host->now + LW_DEAD_LETTER_DRAIN_NS);
        }
    } else {
        lw_timers_disarm(timers, &dispatcher->dead_letter_timer);
    }
}

static void
on_deadline(struct lw_dispatcher *dispatcher)
{
    dispatcher->is_deadline_passed = true;
    if (dispatcher->phase == LW_PHASE_DRAINING) {
        lw_host_log(dispatcher->host, LW_LOG_WARN, "service.deadline",
                    "the drain deadline passed", "held=%u running=%u publishing=%u",
                    dispatcher->held_count, dispatcher->scheduler.busy_slots,
                    dispatcher->publishing_count);
    }
}

static void
on_drain_timer(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    on_deadline(LW_CONTAINER(timer, struct lw_dispatcher, drain_timer));
}

static void
on_hurry_timer(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    LW_CONTAINER(timer, struct lw_dispatcher, hurry_timer)->is_hurry_due = true;
}

static void
on_dead_letter_timer(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    on_deadline(LW_CONTAINER(timer, struct lw_dispatcher, dead_letter_timer));
}

/* -- leaving and closing ----------------------------------------------------------------------------- */

static bool
owns_something(const struct lw_stream *stream)
{
    const struct lw_list *head = &stream->subscription.partitions;
    for (const struct lw_list *node = head->next; node != head; node = node->next) {
        if (!LW_CONTAINER_CONST(node, struct lw_partition, link)->is_ended) {
            return true;
        }
    }
    return false;
}

static bool
has_partitions(const struct lw_dispatcher *dispatcher, const struct lw_link *link)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        const struct lw_stream *stream = dispatcher->streams[i];
        if (stream->link == link && owns_something(stream)) {
            return true;
        }
    }
    return false;
}

/* The last commits are no longer awaited once their partitions were given up. */
static bool
is_left(const struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->link_count; i++) {
        const struct lw_link *link = dispatcher->links[i];
        if (link->is_started &&
            (!lw_list_is_empty(&link->revoking) || has_partitions(dispatcher, link))) {
            return false;
        }
    }
    return true;
}

static bool
are_engines_stopped(const struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->engine_count; i++) {
        if (!dispatcher->engines[i]->ops->is_stopped(dispatcher->engines[i])) {
            return false;
        }
    }
    return true;
}

static void
close_brokers(struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->link_count; i++) {
        struct lw_link *link = dispatcher->links[i];
        if (link->is_started && !link->is_close_asked) {
            link->is_close_asked = true;
            link->broker->ops->close(link->broker);
        }
    }
}

static bool
are_brokers_closed(const struct lw_dispatcher *dispatcher)
{
    for (uint32_t i = 0; i < dispatcher->link_count; i++) {
        if (dispatcher->links[i]->is_started && !dispatcher->links[i]->is_closed) {
            return false;
        }
    }
    return true;
}

static void
give_spares_back(struct lw_dispatcher *dispatcher)
{
    while (dispatcher->spare_count > 0) {
        struct lw_message *message = dispatcher->spare[--dispatcher->spare_count];
        lw_pool_give(&dispatcher->deliveries,
                     LW_CONTAINER(message, struct lw_delivery, message));
    }
}

static void
continue_closing(struct lw_dispatcher *dispatcher)
{
    /* Receipts that are still missing come from the close: at the latest as unknown. */
    if (dispatcher->held_count > dispatcher->publishing_count ||
        !are_engines_stopped(dispatcher)) {
        return;
    }
    close_brokers(dispatcher);
    if (dispatcher->held_count > 0 || !are_brokers_closed(dispatcher)) {
        return;
    }
    give_spares_back(dispatcher);
    if (dispatcher->end_status == LW_STATUS_OK && dispatcher->given_back > 0) {
        dispatcher->end_status = LW_STATUS_UNFINISHED;
    }
    set_phase(dispatcher, LW_PHASE_CLOSED);
    lw_host_log(dispatcher->host, LW_LOG_INFO, "service.closed", "closed",
                "status=%s given_back=%u", lw_status_name(dispatcher->end_status),
                dispatcher->given_back);
}

/* -- what others call ------------------------------------------------------------------------------------ */

void
lw_shutdown_init(struct lw_dispatcher *dispatcher)
{
    lw_timer_init(&dispatcher->drain_timer, on_drain_timer);
    lw_timer_init(&dispatcher->hurry_timer, on_hurry_timer);
    lw_timer_init(&dispatcher->dead_letter_timer, on_dead_letter_timer);
}

void
lw_shutdown_begin(struct lw_dispatcher *dispatcher, bool is_abort)
{
    dispatcher->is_close_wanted = true;
    dispatcher->is_abort_wanted |= is_abort || dispatcher->options.is_abort;
}

void
lw_shutdown_step(struct lw_dispatcher *dispatcher)
{
    if (dispatcher->phase == LW_PHASE_RUNNING && dispatcher->is_close_wanted) {
        enter_draining(dispatcher);
    }
    if (dispatcher->phase == LW_PHASE_DRAINING) {
        if (dispatcher->is_abort_wanted) {
            enter_leaving(dispatcher);
        } else {
            continue_draining(dispatcher);
        }
    }
    if (dispatcher->phase == LW_PHASE_LEAVING && is_left(dispatcher)) {
        set_phase(dispatcher, LW_PHASE_CLOSING);
    }
    if (dispatcher->phase == LW_PHASE_CLOSING) {
        continue_closing(dispatcher);
    }
}
