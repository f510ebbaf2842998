/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The face of publishing: accepting, receipts, room, and the end. Receipts are collected and told
 * by deferred work, so none comes from in a call; their places exist before a publication is
 * accepted. What failures mean, for topics and producers alike, is in the table of codes
 * (wire/server_error.c):
 *
 *   no right, terminated, fenced, schema   DENIED     the target's: the dispatcher stops and retries
 *   no such topic                          NOT_FOUND  the same
 *   no name of a topic                     INVALID    the message's own fault
 *   everything else                        kept; UNAVAILABLE at its send time-out, or UNKNOWN if
 *                                          it was ever sent
 */
#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/names.h"
#include "brokers/pulsar/producer_state.h"

#define REFUSED_PAUSE_MAX_NS (UINT64_C(5000) * LW_MS)

enum { OPS_MAX = 1 << 20, FIRST_RECEIPTS = 64, SAID_AFTER = 3 };

static void on_deferred(struct lw_deferred *deferred);
static void on_idle(struct lw_timer *timer, uint64_t now);
static void on_close_due(struct lw_timer *timer, uint64_t now);

/* -- Life ------------------------------------------------------------------------------------------ */

struct lw_pulsar_publisher *
lw_pulsar_publisher_create(struct lw_pulsar_client *client,
                           const struct lw_pulsar_producer_settings *options,
                           const struct lw_pulsar_publisher_ops *ops, void *user)
{
    struct lw_pulsar_publisher *publisher = lw_alloc(sizeof *publisher);
    if (!publisher) {
        return NULL;
    }
    publisher->client = client;
    publisher->settings = *options;
    publisher->options = &publisher->settings;
    publisher->ops = ops;
    publisher->user = user;
    lw_list_init(&publisher->topics);
    lw_list_init(&publisher->producers);
    lw_map_init(&publisher->topics_by_name, lw_host_random(client->host));
    lw_deferred_init(&publisher->deferred, on_deferred);
    lw_timer_init(&publisher->idle_timer, on_idle);
    lw_timer_init(&publisher->close_timer, on_close_due);
    if (lw_pulsar_ops_init(&publisher->entries, OPS_MAX) != LW_STATUS_OK) {
        lw_pulsar_publisher_destroy(publisher);
        return NULL;
    }
    return publisher;
}

static struct lw_pulsar_producer *
producer_at(struct lw_list *node)
{
    return LW_CONTAINER(node, struct lw_pulsar_producer, link);
}

static struct lw_pulsar_topic *
topic_at(struct lw_list *node)
{
    return LW_CONTAINER(node, struct lw_pulsar_topic, link);
}

void
lw_pulsar_publisher_destroy(struct lw_pulsar_publisher *publisher)
{
    struct lw_timers *timers = &publisher->client->host->timers;
    for (struct lw_list *node; (node = lw_list_first(&publisher->producers)) != NULL;) {
        lw_pulsar_producer_destroy(producer_at(node));
    }
    for (struct lw_list *node; (node = lw_list_first(&publisher->topics)) != NULL;) {
        lw_pulsar_topic_destroy(topic_at(node));
    }
    lw_timers_disarm(timers, &publisher->idle_timer);
    lw_timers_disarm(timers, &publisher->close_timer);
    lw_deferred_cancel(&publisher->deferred);
    lw_map_deinit(&publisher->topics_by_name);
    lw_pulsar_ops_deinit(&publisher->entries);
    lw_free(publisher->receipts);
    lw_free(publisher);
}

void
lw_pulsar_publisher_read(const struct lw_pulsar_publisher *publisher,
                         struct lw_pulsar_publisher_figures *ret_figures)
{
    *ret_figures = publisher->figures;
    ret_figures->copies = publisher->entries.copies;
}

/* -- Receipts and room ------------------------------------------------------------------------------ */

size_t
lw_pulsar_publication_bytes(const struct lw_publication *publication)
{
    return publication->value.size + publication->key.size;
}

uint64_t
lw_pulsar_publisher_deadline(const struct lw_pulsar_publisher *publisher)
{
    uint64_t timeout = publisher->options->send_timeout_ns;
    return timeout > 0 ? publisher->client->host->now + timeout : LW_NEVER;
}

void
lw_pulsar_publisher_receipt(struct lw_pulsar_publisher *publisher,
                            struct lw_publication *publication, enum lw_status status)
{
    lw_assert(publisher->receipt_count < publisher->receipt_capacity);
    publisher->receipts[publisher->receipt_count++] = (struct lw_pulsar_receipt_due){
        publication, status
    };
    lw_pulsar_publisher_free_room(publisher);
}

void
lw_pulsar_publisher_free_room(struct lw_pulsar_publisher *publisher)
{
    publisher->has_room = true;
    lw_host_defer(publisher->client->host, &publisher->deferred);
}

static bool
reserve_receipt(struct lw_pulsar_publisher *publisher)
{
    if (publisher->outstanding < publisher->receipt_capacity) {
        return true;
    }
    size_t capacity = publisher->receipt_capacity ? publisher->receipt_capacity * 2
                                                  : FIRST_RECEIPTS;
    void *receipts = lw_resize_array(publisher->receipts, capacity,
                                     sizeof *publisher->receipts);
    if (receipts) {
        publisher->receipts = receipts;
        publisher->receipt_capacity = capacity;
    }
    return receipts != NULL;
}

/* Callbacks may publish again, which adds behind what is being told. */
static void
tell_receipts(struct lw_pulsar_publisher *publisher)
{
    size_t count = publisher->receipt_count;
    for (size_t i = 0; i < count; i++) {
        struct lw_pulsar_receipt_due due = publisher->receipts[i];
        publisher->ops->on_receipt(publisher->user, due.publication, due.status);
    }
    publisher->outstanding -= count;
    publisher->receipt_count -= count;
    memmove(publisher->receipts, publisher->receipts + count,
            publisher->receipt_count * sizeof *publisher->receipts);
}

/* Those that were accepted before they could be given to a producer come first. */
static void
serve_waiting(struct lw_pulsar_publisher *publisher)
{
    publisher->has_waiting = false;
    for (struct lw_list *at = publisher->topics.next; at != &publisher->topics; at = at->next) {
        struct lw_pulsar_topic *topic = LW_CONTAINER(at, struct lw_pulsar_topic, link);
        if (topic->is_known && topic->ring.count > 0) {
            lw_pulsar_topic_go_on(topic);
        }
    }
}

static void
on_deferred(struct lw_deferred *deferred)
{
    struct lw_pulsar_publisher *publisher = LW_CONTAINER(deferred, struct lw_pulsar_publisher,
                                                         deferred);
    if (publisher->receipt_count > 0) {
        tell_receipts(publisher);
        publisher->has_room = true;
    }
    if (publisher->has_waiting) {
        serve_waiting(publisher);
    }
    if (publisher->wants_room && publisher->has_room && !publisher->is_closing) {
        publisher->wants_room = false;
        publisher->ops->on_room(publisher->user);
    }
    lw_pulsar_publisher_continue_close(publisher);
}

/* -- Publishing ------------------------------------------------------------------------------------- */

/* False: no room. What cannot be sent at all is accepted and refused by its receipt. */
static bool
accept_one(struct lw_pulsar_publisher *publisher, struct lw_publication *publication)
{
    enum lw_status status = LW_STATUS_OK;
    if (!reserve_receipt(publisher)) {
        return false;
    }
    struct lw_pulsar_topic *topic = lw_pulsar_topic_get(publisher, publication->topic, &status);
    if (!topic && status != LW_STATUS_INVALID) {
        return false;
    }
    enum lw_pulsar_accepted accepted = LW_PULSAR_REFUSED;
    if (topic && publication->kind == LW_PUBLISH_DEAD_LETTER && publication->base) {
        lw_pulsar_topic_note_letter(topic, publication->base);
    }
    if (topic) {
        accepted = lw_pulsar_topic_take(topic, publication, &status);
    }
    if (accepted == LW_PULSAR_NO_ROOM) {
        return false;
    }
    publisher->outstanding++;
    if (accepted == LW_PULSAR_REFUSED) {
        lw_pulsar_publisher_receipt(publisher, publication, status);
    }
    return true;
}

static void
watch_idle(struct lw_pulsar_publisher *publisher)
{
    struct lw_host *host = publisher->client->host;
    if (!lw_timer_is_armed(&publisher->idle_timer) && publisher->options->idle_ns > 0) {
        lw_timers_arm(&host->timers, &publisher->idle_timer,
                      host->now + publisher->options->idle_ns);
    }
}

size_t
lw_pulsar_publisher_publish(struct lw_pulsar_publisher *publisher,
                            struct lw_publication *const items[], size_t n)
{
    size_t accepted = 0;
    if (publisher->is_closing) {
        return 0;
    }
    publisher->has_room = false;
    while (accepted < n && accept_one(publisher, items[accepted])) {
        accepted++;
    }
    publisher->wants_room |= accepted < n;
    if (accepted < n && publisher->outstanding == 0) {
        lw_pulsar_publisher_free_room(publisher); /* nothing else would say so */
    }
    watch_idle(publisher);
    return accepted;
}

/* -- Failures --------------------------------------------------------------------------------------- */

enum lw_status
lw_pulsar_publisher_verdict(const struct lw_pulsar_failure *failure)
{
    if (failure->code < 0 ||
        (failure->code == LW_PULSAR_TOPIC_NOT_FOUND && failure->is_retried)) {
        return LW_STATUS_OK;
    }
    return lw_pulsar_server_error_of(failure->code)->publish;
}

/* The broker is there and says no: it is asked again soon, since somebody may be mending it. */
uint64_t
lw_pulsar_publisher_pause(struct lw_pulsar_publisher *publisher,
                          struct lw_pulsar_backoff *backoff,
                          const struct lw_pulsar_failure *failure)
{
    uint64_t pause = lw_pulsar_backoff_next(backoff, publisher->client);
    bool is_answer = failure->code >= 0;
    return is_answer && pause > REFUSED_PAUSE_MAX_NS ? REFUSED_PAUSE_MAX_NS : pause;
}

bool
lw_pulsar_publisher_is_worth_saying(const struct lw_pulsar_backoff *backoff,
                                    const struct lw_pulsar_failure *failure)
{
    bool is_verdict = lw_pulsar_publisher_verdict(failure) != LW_STATUS_OK;
    bool is_quota = failure->code == LW_PULSAR_QUOTA_EXCEEDED_ERROR ||
                    failure->code == LW_PULSAR_QUOTA_EXCEEDED_EXCEPTION;
    return is_verdict || is_quota || !failure->is_retried || backoff->failures >= SAID_AFTER;
}

void
lw_pulsar_publisher_say_blocked(struct lw_pulsar_publisher *publisher, const char *topic,
                                const struct lw_error *error, bool *is_blocked)
{
    bool is_now = error != NULL;
    if (*is_blocked != is_now) {
        *is_blocked = is_now;
        lw_pulsar_publisher_free_room(publisher); /* what has none is refused from now on */
        publisher->ops->on_blocked(publisher->user, topic, error);
    }
}

/* -- The idle --------------------------------------------------------------------------------------- */

static bool
is_closable(const struct lw_pulsar_producer *producer)
{
    return producer->messages == 0 && producer->state != LW_PULSAR_PRODUCER_CLOSING;
}

bool
lw_pulsar_publisher_admit(struct lw_pulsar_publisher *publisher)
{
    if (publisher->producer_count < publisher->options->producers_max) {
        return true;
    }
    for (struct lw_list *at = publisher->producers.prev; at != &publisher->producers;
         at = at->prev) {
        struct lw_pulsar_producer *producer = producer_at(at);
        if (is_closable(producer)) {
            lw_pulsar_producer_close(producer);
            return true;
        }
    }
    return false;
}

static uint64_t
sweep_producers(struct lw_pulsar_publisher *publisher, uint64_t now, uint64_t next)
{
    uint64_t idle = publisher->options->idle_ns;
    struct lw_list *before = NULL;
    for (struct lw_list *at = publisher->producers.prev; at != &publisher->producers;
         at = before) {
        struct lw_pulsar_producer *producer = producer_at(at);
        before = at->prev;
        if (!is_closable(producer)) {
            next = next < now + idle ? next : now + idle;
        } else if (producer->used_at + idle <= now) {
            lw_pulsar_producer_close(producer);
        } else {
            next = next < producer->used_at + idle ? next : producer->used_at + idle;
        }
    }
    return next;
}

static uint64_t
sweep_topics(struct lw_pulsar_publisher *publisher, uint64_t now, uint64_t next)
{
    uint64_t idle = publisher->options->idle_ns;
    struct lw_list *before = NULL;
    for (struct lw_list *at = publisher->topics.prev; at != &publisher->topics; at = before) {
        struct lw_pulsar_topic *topic = topic_at(at);
        before = at->prev;
        bool is_used = topic->producer_count > 0 || topic->ring.count > 0;
        if (!is_used && topic->used_at + idle <= now) {
            lw_pulsar_topic_destroy(topic);
            continue;
        }
        uint64_t due = is_used ? now + idle : topic->used_at + idle;
        next = next < due ? next : due;
    }
    return next;
}

static void
on_idle(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_publisher *publisher = LW_CONTAINER(timer, struct lw_pulsar_publisher,
                                                         idle_timer);
    uint64_t next = sweep_producers(publisher, now, LW_NEVER);
    next = sweep_topics(publisher, now, next);
    lw_timers_arm(&publisher->client->host->timers, timer, next);
}

/* -- Closing ---------------------------------------------------------------------------------------- */

void
lw_pulsar_publisher_continue_close(struct lw_pulsar_publisher *publisher)
{
    if (!publisher->is_closing || publisher->is_closed_said ||
        !lw_list_is_empty(&publisher->producers) || publisher->outstanding > 0) {
        return;
    }
    publisher->is_closed_said = true;
    lw_timers_disarm(&publisher->client->host->timers, &publisher->close_timer);
    lw_timers_disarm(&publisher->client->host->timers, &publisher->idle_timer);
    publisher->ops->on_closed(publisher->user);
}

void
lw_pulsar_publisher_close(struct lw_pulsar_publisher *publisher, uint64_t deadline)
{
    struct lw_host *host = publisher->client->host;
    if (publisher->is_closing) {
        return;
    }
    publisher->is_closing = true;
    publisher->wants_room = false;
    for (struct lw_list *at = publisher->producers.next; at != &publisher->producers;
         at = at->next) {
        lw_pulsar_producer_defer_pump(producer_at(at));
    }
    lw_timers_arm(&host->timers, &publisher->close_timer, deadline);
    lw_host_defer(host, &publisher->deferred);
}

static void
on_close_due(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_publisher *publisher = LW_CONTAINER(timer, struct lw_pulsar_publisher,
                                                         close_timer);
    (void)now;
    for (struct lw_list *at = publisher->topics.next; at != &publisher->topics; at = at->next) {
        lw_pulsar_topic_refuse_waiting(topic_at(at), LW_STATUS_UNAVAILABLE);
    }
    for (struct lw_list *node; (node = lw_list_first(&publisher->producers)) != NULL;) {
        struct lw_pulsar_producer *producer = producer_at(node);
        lw_pulsar_producer_refuse_all(producer, LW_STATUS_UNAVAILABLE);
        lw_pulsar_producer_take_back(producer);
        lw_pulsar_producer_destroy(producer);
    }
    /* Receipts are told at the next turn, and CLOSED behind them. */
    lw_host_defer(publisher->client->host, &publisher->deferred);
}
