/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain: every message in hand, the oldest of each partition first, and the one reason why it
 * waits (P8): who must do what before it goes on. Payloads and keys are not shown. Loop thread.
 */
#include <stdio.h>
#include <string.h>

#include "service/report.h"
#include "service/table.h"

struct item {
    const struct lw_delivery *delivery;
    const char *state;
    char reason[640];
    int64_t held_ms;
};

typedef void (*item_fn)(const struct item *item, void *user);

/* -- Reasons ----------------------------------------------------------------------------------- */

static int64_t
ms_until(const struct lw_host *host, uint64_t due)
{
    return due > host->now ? (int64_t)((due - host->now) / LW_MS) : 0;
}

static int64_t
ms_since(const struct lw_host *host, uint64_t then)
{
    return host->now > then ? (int64_t)((host->now - then) / LW_MS) : 0;
}

/* Something of its whole subscription holds it up; false when nothing does. */
static bool
explain_subscription(const struct lw_report *report, const struct lw_stream *stream, char *out,
                     size_t size)
{
    const struct lw_subscription *subscription = &stream->subscription;
    const struct lw_pause_note *note = &report->pauses[subscription->index];
    if (subscription->is_paused) {
        (void)snprintf(out, size, "the topic is paused by %s%s%s",
                       note->who[0] ? note->who : "somebody", note->why[0] ? ": " : "",
                       note->why);
    } else if (subscription->is_failed) {
        (void)snprintf(out, size, "the subscription failed: %s",
                       stream->link->last_error.message);
    } else if (subscription->is_engine_down) {
        (void)snprintf(out, size, "its handler is down: %s",
                       subscription->engine->down_error.message);
    } else if (subscription->is_engine_full) {
        (void)snprintf(out, size, "handler %s takes no more now", subscription->engine->name);
    } else if (subscription->concurrency > 0 &&
               subscription->running >= subscription->concurrency) {
        (void)snprintf(out, size, "its topic runs %u at once, the most that it may",
                       subscription->concurrency);
    } else {
        return false;
    }
    return true;
}

/* The place in its lane of a queued one: how many are before it. */
static uint32_t
count_before(const struct lw_delivery *delivery)
{
    uint32_t count = delivery->lane->place == LW_LANE_BUSY;
    const struct lw_queue_node *node = delivery->lane->waiting.first;
    for (; node && node != &delivery->link; node = node->next) {
        count++;
    }
    return count;
}

/* It could run, and its handler takes several messages at once. */
static void
explain_company(const struct lw_dispatcher *dispatcher, const struct lw_delivery *delivery,
                const struct lw_company *company, char *out, size_t size)
{
    char left[32];
    lw_table_duration(ms_until(dispatcher->host, company->due), left);
    (void)snprintf(out, size, "it waits for company: %u of %u are here, at most for %s more",
                   company->count, delivery->subscription->gather.size, left);
}

static void
explain_queued(const struct lw_report *report, const struct lw_delivery *delivery, char *out,
               size_t size)
{
    const struct lw_dispatcher *dispatcher = report->dispatcher;
    const struct lw_scheduler *scheduler = &dispatcher->scheduler;
    struct lw_company company = { 0 };
    bool is_gathering = lw_gather_find(delivery, &company);
    uint32_t before = delivery->lane && !is_gathering ? count_before(delivery) : 0;
    if (delivery->partition->is_window_full) {
        lw_text_copy(out, size, "too much is done beyond the oldest (max_uncommitted)");
    } else if (before > 0) {
        (void)snprintf(out, size, "%u before it %s", before,
                       delivery->subscription->ordering == LW_ORDERING_PARTITION
                           ? "in its partition"
                           : "with the same key");
    } else if (explain_subscription(report, lw_stream_of(delivery), out, size)) {
        return;
    } else if (is_gathering) {
        explain_company(dispatcher, delivery, &company, out, size);
    } else if (scheduler->busy_slots >= scheduler->slots) {
        (void)snprintf(out, size, "all %u slots are taken", scheduler->slots);
    } else {
        lw_text_copy(out, size, "it is next");
    }
}

static void
explain_running(const struct lw_host *host, const struct lw_delivery *delivery, char *out,
                size_t size)
{
    char since[32];
    char left[32];
    lw_table_duration(ms_since(host, delivery->started_at), since);
    lw_table_duration(ms_until(host, delivery->deadline), left);
    if (delivery->is_late) {
        (void)snprintf(out, size, "its handler runs for %s, beyond its time", since);
    } else if (delivery->deadline == LW_NEVER) {
        (void)snprintf(out, size, "its handler runs for %s", since);
    } else {
        (void)snprintf(out, size, "its handler runs for %s, time left %s", since, left);
    }
}

static void
explain_judged(const struct lw_host *host, const struct lw_delivery *delivery, char *out,
               size_t size)
{
    char left[32];
    if (lw_timer_is_armed(&delivery->timer)) {
        lw_table_duration(ms_until(host, delivery->timer.due), left);
        (void)snprintf(out, size, "published again in %s", left);
    } else if (delivery->publishing) {
        lw_text_copy(out, size, "the broker has no room for what is to be published");
    } else if (delivery->attempt == 0) {
        (void)snprintf(out, size, "held: it cannot be read: %s", lw_delivery_reason(delivery));
    } else {
        lw_text_copy(out, size, "held: it failed for good and on_exhausted is hold");
    }
}

static void
explain_parked(const struct lw_host *host, const struct lw_delivery *delivery, char *out,
               size_t size)
{
    char left[32];
    lw_table_duration(ms_until(host, delivery->timer.due), left);
    const char *reason = lw_delivery_reason(delivery);
    (void)snprintf(out, size, "run %u in %s%s%s", delivery->attempt + 1, left,
                   reason[0] ? ", after: " : "", reason);
}

/* False for a delivery that is no longer in hand. */
static bool
fill(const struct lw_report *report, const struct lw_delivery *delivery, struct item *item)
{
    const struct lw_host *host = report->dispatcher->host;
    item->delivery = delivery;
    item->state = lw_state_name((enum lw_state)delivery->state);
    item->held_ms = ms_since(host, delivery->received_at);
    item->reason[0] = '\0';
    switch ((enum lw_state)delivery->state) {
    case LW_STATE_QUEUED:
        explain_queued(report, delivery, item->reason, sizeof item->reason);
        return true;
    case LW_STATE_RUNNING:
        explain_running(host, delivery, item->reason, sizeof item->reason);
        return true;
    case LW_STATE_JUDGED:
        explain_judged(host, delivery, item->reason, sizeof item->reason);
        return true;
    case LW_STATE_PARKED:
        explain_parked(host, delivery, item->reason, sizeof item->reason);
        return true;
    case LW_STATE_PUBLISHING:
        lw_text_copy(item->reason, sizeof item->reason,
                     "the broker has not confirmed what was published");
        return true;
    case LW_STATE_FREE:
    case LW_STATE_SETTLED:
    case LW_STATE_DROPPED:
        break;
    }
    return false;
}

/* -- The walk ---------------------------------------------------------------------------------- */

/* Shows up to `max` of a partition; returns how many were shown. */
static uint32_t
each_of_partition(const struct lw_report *report, const struct lw_partition *partition,
                  uint32_t max, item_fn fn, void *user)
{
    uint32_t count = 0;
    const struct lw_list *node = partition->held.next;
    for (; node != &partition->held && count < max; node = node->next) {
        struct item item;
        if (fill(report, LW_CONTAINER_CONST(node, struct lw_delivery, held), &item)) {
            fn(&item, user);
            count++;
        }
    }
    return count;
}

/* Every partition gets its share of what is left, so that none hides another. */
static uint32_t
each_item(const struct lw_report *report, const char *topic, uint32_t max, item_fn fn,
          void *user)
{
    uint32_t shown = 0;
    for (uint32_t i = 0; i < report->count; i++) {
        const struct lw_stream *stream = report->served[i];
        const struct lw_list *head = &stream->subscription.partitions;
        if (topic && strcmp(topic, stream->topic) != 0) {
            continue;
        }
        for (const struct lw_list *node = head->next; node != head; node = node->next) {
            uint32_t share = max - shown < max / 4 + 1 ? max - shown : max / 4 + 1;
            shown += each_of_partition(
                report, LW_CONTAINER_CONST(node, struct lw_partition, link), share, fn, user);
        }
    }
    return shown;
}

static uint64_t
count_held(const struct lw_report *report, const char *topic)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < report->count; i++) {
        const struct lw_stream *stream = report->served[i];
        if (!topic || strcmp(topic, stream->topic) == 0) {
            count += stream->subscription.limits.count;
        }
    }
    return count;
}

/* -- Output ------------------------------------------------------------------------------------ */

static void
put_item(const struct item *item, void *user)
{
    struct lw_json *json = user;
    const struct lw_delivery *delivery = item->delivery;
    char id[LW_PLACE_BYTES];
    lw_json_object(json);
    lw_json_key(json, "topic");
    lw_json_string(json, delivery->partition->topic);
    lw_json_key(json, "partition");
    lw_json_int(json, delivery->partition->number);
    lw_json_key(json, "offset");
    lw_json_int(json, delivery->message.position);
    lw_json_key(json, "id");
    lw_json_string(json, lw_stream_shown_id(delivery, id, sizeof id));
    lw_json_key(json, "state");
    lw_json_string(json, item->state);
    lw_json_key(json, "attempt");
    lw_json_int(json, delivery->attempt);
    lw_json_key(json, "held_ms");
    lw_json_int(json, item->held_ms);
    lw_json_key(json, "reason");
    lw_json_string(json, item->reason);
    lw_json_object_end(json);
}

void
lw_report_explain_json(const struct lw_report *report, const char *topic, uint32_t max,
                       struct lw_json *json)
{
    lw_json_object(json);
    lw_json_key(json, "in_hand");
    lw_json_int(json, (int64_t)count_held(report, topic));
    lw_json_key(json, "messages");
    lw_json_array(json);
    uint32_t shown = each_item(report, topic, max, put_item, json);
    lw_json_array_end(json);
    lw_json_key(json, "shown");
    lw_json_int(json, shown);
    lw_json_object_end(json);
}

static void
add_item(const struct item *item, void *user)
{
    struct lw_table *table = user;
    char held[32];
    char id[LW_PLACE_BYTES];
    lw_table_duration(item->held_ms, held);
    lw_table_add(table, "%s", item->delivery->partition->topic);
    lw_table_add(table, "%d", item->delivery->partition->number);
    lw_table_add(table, "%s", lw_stream_shown_id(item->delivery, id, sizeof id));
    lw_table_add(table, "%s", item->state);
    lw_table_add(table, "%u", item->delivery->attempt);
    lw_table_add(table, "%s", held);
    lw_table_add(table, "%s", item->reason);
}

void
lw_report_explain_text(const struct lw_report *report, const char *topic, uint32_t max,
                       struct lw_text *out)
{
    static const char *const names[] = { "TOPIC", "PARTITION", "ID",       "STATE",
                                         "RUN",   "HELD",      "WAITS FOR" };
    struct lw_table table;
    lw_table_init(&table, "lrrlrrl");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        lw_table_add(&table, "%s", names[i]);
    }
    uint32_t shown = each_item(report, topic, max, add_item, &table);
    uint64_t held = count_held(report, topic);
    if (held == 0) {
        lw_text_append(out, "no message is in hand\n");
    } else {
        lw_table_print(&table, "", out);
    }
    if (held > shown) {
        lw_text_format(out, "%llu more are in hand\n", (unsigned long long)(held - shown));
    }
    lw_table_deinit(&table);
}
