/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits at the broker for a slot, as CONSUMER_STATS tells it: for status, and to find slots
 * that fell asleep. It is asked at a calm pace, in turns that happen anyway, and nothing waits for
 * the answer. A slot is asleep when permits are out, nothing came for the stall time-out, and the
 * broker counts more entries than are here: said once, and mended by another subscription. That
 * gives what is held here to other members, so it waits until nothing is, but where the
 * subscription is exclusive. The broker counts delayed entries and those of other members, too: a
 * retry topic is given the longest delay of its copies in addition, and what mending does not help
 * is mended less and less often. A question that crosses the broker's
 * CLOSE_CONSUMER costs the connection, which is one more reason for the calm pace. Loop thread.
 */
#include "brokers/pulsar/pulsar.h"

#define LOOK_NS (1000 * LW_MS)
#define BUSY_NS (UINT64_C(10000) * LW_MS) /* between questions while messages come */
#define IDLE_NS (UINT64_C(60000) * LW_MS)
#define PAUSE_MAX_NS (UINT64_C(3600000) * LW_MS)

static struct lw_host *
host_of(const struct lw_pulsar_slot *slot)
{
    return slot->source->broker->base.host;
}

static bool
is_live(const struct lw_pulsar_slot *slot)
{
    return slot->generation && slot->is_begun && !slot->is_revoking;
}

/* -- Asleep ------------------------------------------------------------------------------------------ */

/* What can come comes: the clock of the stall begins anew. */
static void
note_life(struct lw_pulsar_slot *slot, const struct lw_pulsar_consumer_figures *figures)
{
    struct lw_pulsar_backlog *backlog = &slot->backlog;
    bool has_moved = figures->entries != backlog->seen_entries;
    if (has_moved) {
        backlog->seen_entries = figures->entries;
        backlog->pause = 0;
        backlog->is_said = false;
    }
    if (has_moved || figures->permits_out == 0 || figures->queued > 0) {
        backlog->active_at = host_of(slot)->now;
    }
}

/* From then on it counts as asleep, if the broker has something. */
static uint64_t
quiet_at(const struct lw_pulsar_slot *slot)
{
    const struct lw_pulsar_backlog *backlog = &slot->backlog;
    uint64_t limit = slot->source->stall_ns;
    uint64_t by_life = backlog->active_at + limit + slot->source->delay_ns;
    uint64_t by_mending = backlog->mended_at + backlog->pause;
    if (limit == 0) {
        return LW_NEVER;
    }
    return by_life > by_mending ? by_life : by_mending;
}

static void
mend(struct lw_pulsar_slot *slot, const struct lw_pulsar_consumer_figures *figures,
     uint64_t entries)
{
    struct lw_pulsar_backlog *backlog = &slot->backlog;
    struct lw_host *host = host_of(slot);
    bool is_exclusive = slot->source->settings.type == LW_PULSAR_SUB_EXCLUSIVE;
    if (!backlog->is_said) {
        backlog->is_said = true;
        lw_host_log(
            host, LW_LOG_WARN, "pulsar.stalled",
            "nothing came for long though the broker counts a backlog (delayed messages "
            "and those of other members are in it); subscribing again",
            "topic=%s backlog=%llu permits=%u idle_ms=%llu", slot->topic,
            (unsigned long long)entries, (unsigned)figures->permits_out,
            (unsigned long long)((host->now - backlog->active_at) / LW_MS));
    }
    if (figures->held > 0 && !is_exclusive) {
        return;
    }
    uint64_t pause = backlog->pause > 0 ? backlog->pause * 2 : slot->source->stall_ns;
    backlog->pause = pause < PAUSE_MAX_NS ? pause : PAUSE_MAX_NS;
    backlog->mended_at = host->now;
    lw_pulsar_consumer_resubscribe(slot->consumer);
}

/* -- Asking ------------------------------------------------------------------------------------------ */

static void
on_stats(struct lw_pulsar_request *request, const struct lw_pulsar_command *answer,
         const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_slot *slot = LW_CONTAINER(request, struct lw_pulsar_slot, backlog.request);
    struct lw_pulsar_backlog *backlog = &slot->backlog;
    struct lw_pulsar_consumer_figures figures;
    (void)failure; /* the session ends or goes on without us */
    bool has_count = answer && (answer->consumer_stats_response.has &
                                LW_PULSAR_CONSUMER_STATS_HAS_MSG_BACKLOG) != 0;
    if (!has_count || !is_live(slot)) {
        return;
    }
    lw_pulsar_consumer_read(slot->consumer, &figures);
    note_life(slot, &figures);
    uint64_t entries = answer->consumer_stats_response.msg_backlog;
    backlog->is_known = true;
    backlog->entries = entries > figures.held ? entries - figures.held : 0;
    backlog->told_entries = figures.entries;
    if (backlog->entries > 0 && host_of(slot)->now >= quiet_at(slot)) {
        mend(slot, &figures, entries);
    }
}

static void
ask(struct lw_pulsar_slot *slot)
{
    struct lw_pulsar_backlog *backlog = &slot->backlog;
    if (!backlog->request.connection &&
        lw_pulsar_consumer_ask_stats(slot->consumer, &backlog->request, on_stats)) {
        backlog->asked_at = host_of(slot)->now;
    }
}

static void
look(struct lw_pulsar_slot *slot)
{
    struct lw_pulsar_backlog *backlog = &slot->backlog;
    struct lw_pulsar_consumer_figures figures;
    uint64_t now = host_of(slot)->now;
    lw_pulsar_consumer_read(slot->consumer, &figures);
    note_life(slot, &figures);
    uint64_t since = backlog->asked_at ? now - backlog->asked_at : UINT64_MAX;
    bool is_new = now >= quiet_at(slot) && backlog->asked_at < quiet_at(slot);
    uint64_t pace = figures.entries == backlog->told_entries ? IDLE_NS : BUSY_NS;
    if (since >= pace || is_new) {
        ask(slot);
    }
}

static void
look_at_all(struct lw_pulsar_source *source)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        if (is_live(source->slots[i])) {
            look(source->slots[i]);
        }
    }
}

void
lw_pulsar_backlog_expect_delay(struct lw_pulsar_source *source, int64_t delay_ms)
{
    uint64_t delay_ns = delay_ms > 0 ? (uint64_t)delay_ms * LW_MS : 0;
    source->delay_ns = delay_ns > source->delay_ns ? delay_ns : source->delay_ns;
}

void
lw_pulsar_backlog_look(struct lw_pulsar_broker *broker)
{
    uint64_t now = broker->base.host->now;
    if (now - broker->looked_at < LOOK_NS || broker->phase != LW_PULSAR_RUNNING) {
        return;
    }
    broker->looked_at = now;
    for (struct lw_list *at = broker->sources.next; at != &broker->sources; at = at->next) {
        look_at_all(LW_CONTAINER(at, struct lw_pulsar_source, link));
    }
}

void
lw_pulsar_backlog_begin(struct lw_pulsar_slot *slot)
{
    lw_pulsar_request_cancel(&slot->backlog.request);
    slot->backlog = (struct lw_pulsar_backlog){ .active_at = host_of(slot)->now };
}

/* -- Lag --------------------------------------------------------------------------------------------- */

/* The broker counts entries: a batch is as many messages as those that came had in the mean. */
static uint64_t
messages_of(const struct lw_pulsar_slot *slot)
{
    const struct lw_pulsar_backlog *backlog = &slot->backlog;
    struct lw_pulsar_consumer_figures figures;
    lw_pulsar_consumer_read(slot->consumer, &figures);
    uint64_t came = figures.entries - backlog->told_entries;
    uint64_t entries = backlog->entries > came ? backlog->entries - came : 0;
    uint64_t share = figures.entries > 0 ? figures.messages / figures.entries : 1;
    return entries * (share > 0 ? share : 1) + figures.queued;
}

bool
lw_pulsar_source_lag(struct lw_pulsar_source *source, struct lw_lag *ret_lag)
{
    struct lw_lag lag = { 0, 0 };
    bool is_known = false;
    for (uint32_t i = 0; i < source->slot_count; i++) {
        struct lw_pulsar_slot *slot = source->slots[i];
        if (!is_live(slot)) {
            continue;
        }
        if (slot->backlog.is_known) {
            lag.messages += messages_of(slot);
            is_known = true;
        }
        if (host_of(slot)->now - slot->backlog.asked_at >= LOOK_NS) {
            ask(slot); /* for the next time */
        }
    }
    if (is_known) {
        *ret_lag = lag;
    }
    return is_known;
}
