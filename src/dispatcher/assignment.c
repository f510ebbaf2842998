/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions that come and go, and the other events of brokers. A revoke has two phases: what is
 * safe is committed and awaited (5 s at most, through events), then the partitions end and the
 * broker is answered, without waiting for handlers; their late results are dropped (P6). Owns
 * the stash of positions that do not fit the offsets window yet.
 */
#include "dispatcher/receive.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "dispatcher/task.h"

#define MEMORY_RETRY_NS (100 * LW_MS)
#define REVOKE_RETRY_NS (100 * LW_MS) /* of the last commit; doubles up to its eightfold */

struct lw_revoke {
    struct lw_list link;
    uint64_t generation;
};

void
lw_history_note_partition(struct lw_dispatcher *dispatcher, enum lw_history_kind kind,
                          const struct lw_partition *partition, int64_t position)
{
    if (dispatcher->history) {
        struct lw_history_event event = {
            .kind = kind,
            .now = dispatcher->host->now,
            .partition = partition,
            .position = position,
        };
        dispatcher->history->record(&event, dispatcher->history->user);
    }
}

/* -- the offsets window ---------------------------------------------------------------------- */

/* No more of it can come before something ends, so nothing waits for company. */
static void
hurry(struct lw_partition *partition)
{
    struct lw_stream *stream = LW_CONTAINER(partition->subscription, struct lw_stream,
                                            subscription);
    if (stream->subscription.is_batched) {
        lw_scheduler_hurry_gather(&stream->dispatcher->scheduler, &stream->subscription);
    }
}

void
lw_assignment_stash(struct lw_delivery *delivery, bool is_opened)
{
    struct lw_partition *partition = delivery->partition;
    delivery->lane = NULL;
    delivery->is_opened = is_opened;
    lw_queue_push(&partition->stash, &delivery->link);
    partition->stash_count++;
    partition->is_window_full = true;
    lw_partition_update(partition);
    hurry(partition);
    if (is_opened) {
        lw_assignment_wait_for_memory(lw_stream_of(delivery)->dispatcher);
    }
}

/* A position that this ownership saw before: the client gave it twice. Nothing is owed. */
static void
drop_duplicate(struct lw_delivery *delivery)
{
    struct lw_stream *stream = lw_stream_of(delivery);
    stream->counters.duplicates++;
    delivery->lane = NULL;
    lw_host_log(stream->dispatcher->host, LW_LOG_WARN, "message.duplicate",
                "the client delivered a position twice; ignored",
                "topic=%s partition=%d id=%lld", delivery->partition->topic,
                delivery->partition->number, (long long)delivery->message.position);
    lw_settle_drop(stream->dispatcher, delivery);
}

/* Behind what waits already; what is not behind it came before, and is there. */
static void
stash_next(struct lw_partition *partition, struct lw_delivery *delivery)
{
    const struct lw_delivery *last = LW_CONTAINER(partition->stash.last, struct lw_delivery,
                                                  link);
    if (delivery->message.position <= last->message.position) {
        drop_duplicate(delivery);
    } else {
        lw_assignment_stash(delivery, false);
    }
}

bool
lw_assignment_open(struct lw_delivery *delivery)
{
    struct lw_partition *partition = delivery->partition;
    if (__builtin_expect(partition->stash.first != NULL, 0)) {
        stash_next(partition, delivery);
        return false;
    }
    enum lw_status status = lw_offsets_open(&partition->offsets, delivery->message.position);
    if (__builtin_expect(status == LW_STATUS_OK, 1)) {
        return true;
    }
    if (status == LW_STATUS_ALREADY) {
        drop_duplicate(delivery);
        return false;
    }
    lw_assignment_stash(delivery, false);
    if (status == LW_STATUS_NO_MEMORY) {
        lw_assignment_wait_for_memory(lw_stream_of(delivery)->dispatcher);
    }
    return false;
}

void
lw_assignment_close_tail(struct lw_partition *partition)
{
    if (partition->tail < partition->offsets.next) {
        partition->tail = -1; /* a message came behind it */
    }
    if (partition->tail < 0 || partition->stash.first ||
        lw_offsets_advance_to(&partition->offsets, partition->tail) != LW_STATUS_OK) {
        return;
    }
    partition->tail = -1;
    if (!partition->is_dirty) {
        lw_settle_mark_dirty(partition);
    }
}

/* Lets the first stashed one go on; false when it has to wait. */
static bool
unstash_first(struct lw_dispatcher *dispatcher, struct lw_partition *partition)
{
    struct lw_delivery *delivery = LW_CONTAINER(partition->stash.first, struct lw_delivery,
                                                link);
    enum lw_status status = LW_STATUS_OK;
    if (partition->has_ledger && !delivery->is_opened) {
        (void)lw_offsets_safe(&partition->offsets);
        status = lw_offsets_open(&partition->offsets, delivery->message.position);
    }
    if (status == LW_STATUS_NO_MEMORY) {
        lw_assignment_wait_for_memory(dispatcher);
    }
    if (status != LW_STATUS_OK && status != LW_STATUS_ALREADY) {
        return false;
    }
    delivery->is_opened = true;
    lw_queue_pop(&partition->stash);
    partition->stash_count--;
    if (status == LW_STATUS_ALREADY) {
        drop_duplicate(delivery);
    } else if (lw_scheduler_admit(&dispatcher->scheduler, delivery) != LW_STATUS_OK) {
        lw_queue_push_front(&partition->stash, &delivery->link);
        partition->stash_count++;
        lw_assignment_wait_for_memory(dispatcher);
        return false;
    }
    return true;
}

void
lw_assignment_unstash(struct lw_dispatcher *dispatcher, struct lw_partition *partition)
{
    if (partition->is_unstashing) {
        return;
    }
    partition->is_unstashing = true;
    while (partition->stash.first && unstash_first(dispatcher, partition)) {
        continue;
    }
    partition->is_unstashing = false;
    if (partition->stash.first) {
        hurry(partition);
        return;
    }
    partition->is_window_full = false;
    lw_partition_update(partition);
}

/* -- lack of memory ---------------------------------------------------------------------------- */

void
lw_assignment_wait_for_memory(struct lw_dispatcher *dispatcher)
{
    if (!lw_timer_is_armed(&dispatcher->memory_timer)) {
        lw_timers_arm(&dispatcher->host->timers, &dispatcher->memory_timer,
                      dispatcher->host->now + MEMORY_RETRY_NS);
    }
}

static void
unstash_stream(struct lw_dispatcher *dispatcher, struct lw_stream *stream)
{
    struct lw_list *head = &stream->subscription.partitions;
    for (struct lw_list *node = head->next; node != head;) {
        struct lw_partition *partition = LW_CONTAINER(node, struct lw_partition, link);
        node = node->next;
        if (partition->stash.first) {
            lw_assignment_unstash(dispatcher, partition);
        }
    }
}

/* -- partitions come ------------------------------------------------------------------------- */

static void
begin_partition(struct lw_stream *stream, const struct lw_partition *partition)
{
    struct lw_dispatcher *dispatcher = stream->dispatcher;
    stream->received_at = dispatcher->host->now;
    stream->awaited_until = LW_NEVER;
    lw_history_note_partition(dispatcher, LW_HISTORY_ASSIGNED, partition, partition->committed);
    lw_receive_update(dispatcher, stream);
}

/* Its messages stay at the broker until there is memory; too many such partitions are the end. */
static void
put_off(struct lw_stream *stream, const struct lw_event *event)
{
    struct lw_dispatcher *dispatcher = stream->dispatcher;
    if (lw_stream_put_off(stream, event)) {
        lw_host_log(dispatcher->host, LW_LOG_ERROR, "assignment.no_memory",
                    "no memory for a partition; it waits and is tried again",
                    "topic=%s partition=%d", event->topic, event->partition);
        lw_receive_update(dispatcher, stream);
        lw_assignment_wait_for_memory(dispatcher);
        return;
    }
    stream->subscription.is_failed = true; /* its messages have no place to go */
    lw_receive_update(dispatcher, stream);
    struct lw_error error = { .status = LW_STATUS_NO_MEMORY };
    lw_error_set(&error, LW_STATUS_NO_MEMORY, "E0701", "no memory for partition %d of %s",
                 event->partition, event->topic);
    lw_dispatcher_fail(dispatcher, LW_STATUS_NO_MEMORY, &error);
}

static void
on_assigned(struct lw_link *link, const struct lw_event *event)
{
    struct lw_dispatcher *dispatcher = link->dispatcher;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        struct lw_stream *stream = dispatcher->streams[i];
        if (stream->source != event->source) {
            continue;
        }
        const struct lw_partition *partition = lw_stream_assign(stream, event);
        if (partition) {
            begin_partition(stream, partition);
        } else {
            put_off(stream, event);
        }
    }
}

static void
place_unplaced(struct lw_stream *stream)
{
    while (stream->unplaced_count > 0) {
        const struct lw_partition *partition = lw_stream_assign_again(stream, 0);
        if (!partition) {
            lw_assignment_wait_for_memory(stream->dispatcher);
            return;
        }
        begin_partition(stream, partition);
    }
}

static void
on_memory_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_dispatcher *dispatcher = LW_CONTAINER(timer, struct lw_dispatcher, memory_timer);
    (void)now;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        place_unplaced(dispatcher->streams[i]);
        unstash_stream(dispatcher, dispatcher->streams[i]);
    }
}

void
lw_assignment_init(struct lw_dispatcher *dispatcher)
{
    lw_timer_init(&dispatcher->memory_timer, on_memory_timer);
}

/* -- partitions go --------------------------------------------------------------------------- */

void
lw_assignment_release(struct lw_partition *partition)
{
    if (!partition->is_ended || partition->held_count > 0) {
        return;
    }
    lw_list_remove(&partition->link);
    lw_list_remove(&partition->dirty);
    if (partition->has_ledger) {
        lw_offsets_deinit(&partition->offsets);
    }
    lw_free(partition);
}

static void
unstash_ended(struct lw_dispatcher *dispatcher, struct lw_partition *partition)
{
    struct lw_queue_node *node;
    while ((node = lw_queue_pop(&partition->stash)) != NULL) {
        partition->stash_count--;
        lw_settle_drop(dispatcher, LW_CONTAINER(node, struct lw_delivery, link));
    }
}

/* Lets one held delivery of an ended partition go, if it can go now. */
static void
end_delivery(struct lw_dispatcher *dispatcher, struct lw_delivery *delivery)
{
    switch ((enum lw_state)delivery->state) {
    case LW_STATE_QUEUED:
        lw_scheduler_remove(&dispatcher->scheduler, delivery);
        lw_settle_drop(dispatcher, delivery);
        return;
    case LW_STATE_RUNNING:
        lw_task_cancel(delivery);
        return;
    case LW_STATE_PARKED:
        lw_timers_disarm(&dispatcher->host->timers, &delivery->timer);
        delivery->subscription->parked--;
        lw_settle_drop(dispatcher, delivery);
        return;
    case LW_STATE_JUDGED:
    case LW_STATE_PUBLISHING:
        lw_timers_disarm(&dispatcher->host->timers, &delivery->timer);
        if (!delivery->publishing || lw_publish_abandon(dispatcher, delivery)) {
            lw_settle_drop(dispatcher, delivery);
        }
        return;
    case LW_STATE_FREE:
    case LW_STATE_SETTLED:
    case LW_STATE_DROPPED:
        lw_assert_failed("held in a final state", __FILE__, __LINE__);
    }
}

static void
end_partition(struct lw_dispatcher *dispatcher, struct lw_partition *partition)
{
    struct lw_stream *stream = LW_CONTAINER(partition->subscription, struct lw_stream,
                                            subscription);
    if (stream->slots[partition->slot] == partition) {
        stream->slots[partition->slot] = NULL;
    }
    lw_list_remove(&partition->dirty);
    lw_history_note_partition(dispatcher, LW_HISTORY_REVOKED, partition, partition->committed);
    partition->held_count++; /* keeps it alive over the walk */
    partition->is_ended = true;
    partition->is_dirty = false;
    partition->oldest_pinned = NULL;
    lw_partition_update(partition);
    unstash_ended(dispatcher, partition);
    struct lw_list *node = partition->held.next;
    while (node != &partition->held) {
        struct lw_list *next = node->next;
        end_delivery(dispatcher, LW_CONTAINER(node, struct lw_delivery, held));
        node = next;
    }
    partition->held_count--;
    lw_assignment_release(partition);
}

typedef void (*partition_fn)(struct lw_dispatcher *dispatcher, struct lw_partition *partition);

static void
each_of_stream(struct lw_stream *stream, uint64_t generation, partition_fn fn)
{
    struct lw_list *head = &stream->subscription.partitions;
    for (struct lw_list *node = head->next; node != head;) {
        struct lw_partition *partition = LW_CONTAINER(node, struct lw_partition, link);
        node = node->next;
        if (partition->generation == generation && !partition->is_ended) {
            fn(stream->dispatcher, partition);
        }
    }
}

static void
each_of_generation(struct lw_link *link, uint64_t generation, partition_fn fn)
{
    struct lw_dispatcher *dispatcher = link->dispatcher;
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        if (dispatcher->streams[i]->link == link) {
            each_of_stream(dispatcher->streams[i], generation, fn);
        }
    }
}

static void
end_generation(struct lw_link *link, uint64_t generation)
{
    for (uint32_t i = 0; i < link->dispatcher->stream_count; i++) {
        lw_stream_forget(link->dispatcher->streams[i], generation);
    }
    each_of_generation(link, generation, end_partition);
    lw_settle_flush(link->dispatcher);
}

static void
on_revoking(struct lw_link *link, const struct lw_event *event)
{
    struct lw_revoke *revoke = lw_alloc(sizeof(*revoke));
    if (!revoke) {
        /* Without memory to remember it: end it at once, the last commit stands. */
        end_generation(link, event->generation);
        link->broker->ops->revoke_done(link->broker, event->generation);
        return;
    }
    revoke->generation = event->generation;
    lw_list_push(&link->revoking, &revoke->link);
    link->is_revoke_commit_sent = false; /* it has something of its own to commit */
    link->revoke_commit_failures = 0;
    link->revoke_commit_at = 0;
    uint64_t deadline = link->dispatcher->host->now + LW_COMMIT_WAIT_NS;
    deadline = event->deadline < deadline ? event->deadline : deadline;
    link->revoke_deadline = deadline < link->revoke_deadline ? deadline : link->revoke_deadline;
}

/* Nothing is being revoked any more: ordinary commits go on. */
static void
end_revoking(struct lw_link *link)
{
    link->is_revoke_commit_sent = false;
    link->revoke_deadline = LW_NEVER;
    lw_timers_disarm(&link->dispatcher->host->timers, &link->revoke_timer);
}

static void
answer_revokes(struct lw_link *link)
{
    struct lw_list *node;
    while ((node = lw_list_pop(&link->revoking)) != NULL) {
        struct lw_revoke *revoke = LW_CONTAINER(node, struct lw_revoke, link);
        end_generation(link, revoke->generation);
        link->broker->ops->revoke_done(link->broker, revoke->generation);
        lw_free(revoke);
    }
    end_revoking(link);
}

/*
 * The last commit failed and may still succeed: it is to be sent again, after a while. For good
 * are STATE (the group does not know this member any more) and DENIED.
 */
static bool
is_last_commit_failed(struct lw_link *link)
{
    enum lw_status status = link->commit_status;
    if (status == LW_STATUS_OK || status == LW_STATUS_STATE || status == LW_STATUS_DENIED) {
        return false;
    }
    uint32_t shift = link->revoke_commit_failures < 3 ? link->revoke_commit_failures : 3;
    link->revoke_commit_failures++;
    link->revoke_commit_at = link->dispatcher->host->now + (REVOKE_RETRY_NS << shift);
    return true;
}

static void
send_last_commit(struct lw_link *link)
{
    link->is_revoke_commit_sent = false;
    lw_settle_commit(link);
    link->is_revoke_commit_sent = true; /* none follows by interval or count */
}

/* True when the last commit was confirmed, or there was none to make. */
static bool
is_last_commit_done(struct lw_link *link)
{
    if (link->is_committing || link->revoke_commit_at > link->dispatcher->host->now) {
        return false;
    }
    if (!link->is_revoke_commit_sent || link->revoke_commit_at > 0) {
        link->revoke_commit_at = 0;
        send_last_commit(link);
    }
    return !link->is_committing && !is_last_commit_failed(link);
}

static void
say_uncommitted(const struct lw_link *link)
{
    lw_host_log(link->dispatcher->host, LW_LOG_WARN, "revoke.uncommitted",
                "partitions were given up before the last commit was confirmed; some "
                "messages may run again elsewhere",
                "broker=%s", link->broker->name);
}

/*
 * A commit in flight is awaited, then the last one is sent and awaited, again and again when it
 * fails, then the answer; the deadline cuts the waiting short.
 */
void
lw_assignment_continue(struct lw_link *link)
{
    struct lw_dispatcher *dispatcher = link->dispatcher;
    if (lw_list_is_empty(&link->revoking)) {
        return;
    }
    if (dispatcher->host->now >= link->revoke_deadline) {
        say_uncommitted(link);
        answer_revokes(link);
        return;
    }
    if (is_last_commit_done(link)) {
        answer_revokes(link);
        return;
    }
    uint64_t due = link->is_committing ? LW_NEVER : link->revoke_commit_at;
    due = due < link->revoke_deadline ? due : link->revoke_deadline;
    lw_timers_arm(&dispatcher->host->timers, &link->revoke_timer, due);
}

static void
on_revoke_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_link *link = LW_CONTAINER(timer, struct lw_link, revoke_timer);
    (void)now;
    lw_assignment_continue(link);
}

static void
on_lost(struct lw_link *link, const struct lw_event *event)
{
    lw_host_log(link->dispatcher->host, LW_LOG_WARN, "assignment.lost",
                "partitions were lost; messages that were not committed run again elsewhere",
                "broker=%s generation=%llu", link->broker->name,
                (unsigned long long)event->generation);
    end_generation(link, event->generation);
    struct lw_list *node = link->revoking.next;
    while (node != &link->revoking) {
        struct lw_revoke *revoke = LW_CONTAINER(node, struct lw_revoke, link);
        node = node->next;
        if (revoke->generation == event->generation) {
            lw_list_remove(&revoke->link);
            lw_free(revoke);
        }
    }
    if (lw_list_is_empty(&link->revoking)) {
        end_revoking(link);
    }
}

/* -- other events ---------------------------------------------------------------------------- */

static struct lw_stream *
stream_of_source(const struct lw_dispatcher *dispatcher, const struct lw_source *source)
{
    for (uint32_t i = 0; i < dispatcher->stream_count; i++) {
        if (dispatcher->streams[i]->source == source) {
            return dispatcher->streams[i];
        }
    }
    return NULL;
}

static void
on_position(struct lw_link *link, const struct lw_event *event)
{
    struct lw_stream *stream = stream_of_source(link->dispatcher, event->source);
    if (!stream || event->slot >= stream->slot_count || !stream->slots[event->slot]) {
        return;
    }
    struct lw_partition *partition = stream->slots[event->slot];
    if (partition->has_ledger && event->position > partition->offsets.next) {
        partition->tail = event->position;
        lw_assignment_close_tail(partition);
    }
}

static void
on_source_error(struct lw_link *link, const struct lw_event *event)
{
    struct lw_dispatcher *dispatcher = link->dispatcher;
    struct lw_stream *stream = stream_of_source(dispatcher, event->source);
    const char *topic = stream ? stream->topic : "";
    lw_host_log(dispatcher->host, LW_LOG_ERROR, "source.error", event->error->message,
                "code=%s broker=%s topic=%s help=%s", event->error->code, link->broker->name,
                topic, event->error->help);
    if (event->error->is_fatal) {
        if (stream) {
            stream->subscription.is_failed = true;
            lw_receive_update(dispatcher, stream);
        }
        lw_dispatcher_fail(dispatcher, event->error->status, event->error);
    }
}

static void
on_broker_state(struct lw_link *link, const struct lw_event *event)
{
    struct lw_host *host = link->dispatcher->host;
    bool is_up = event->kind == LW_EVENT_BROKER_UP;
    if (link->is_up == is_up && link->down_since != 0) {
        return;
    }
    link->is_up = is_up;
    link->down_since = host->now;
    if (is_up) {
        lw_host_log(host, LW_LOG_INFO, "broker.up", "broker connected", "broker=%s",
                    link->broker->name);
        return;
    }
    if (event->error) {
        link->last_error = *event->error;
    }
    lw_host_log(host, LW_LOG_ERROR, "broker.down",
                event->error ? event->error->message : "broker is not reachable",
                "code=%s broker=%s help=%s", link->last_error.code, link->broker->name,
                link->last_error.help);
}

void
lw_assignment_on_event(struct lw_link *link, const struct lw_event *event)
{
    switch (event->kind) {
    case LW_EVENT_ASSIGNED:
        on_assigned(link, event);
        return;
    case LW_EVENT_REVOKING:
        on_revoking(link, event);
        return;
    case LW_EVENT_LOST:
        on_lost(link, event);
        return;
    case LW_EVENT_POSITION:
        on_position(link, event);
        return;
    case LW_EVENT_PUBLISHED:
        lw_publish_on_receipt(link->dispatcher, event);
        return;
    case LW_EVENT_PUBLISH_ROOM:
        lw_publish_on_room(link);
        return;
    case LW_EVENT_COMMITTED:
        lw_settle_on_committed(link, event);
        return;
    case LW_EVENT_BROKER_UP:
    case LW_EVENT_BROKER_DOWN:
        on_broker_state(link, event);
        return;
    case LW_EVENT_SOURCE_ERROR:
        on_source_error(link, event);
        return;
    case LW_EVENT_CLOSED:
        link->is_closed = true;
        return;
    }
}

void
lw_assignment_init_link(struct lw_link *link)
{
    lw_list_init(&link->revoking);
    link->revoke_deadline = LW_NEVER;
    lw_timer_init(&link->revoke_timer, on_revoke_timer);
}
