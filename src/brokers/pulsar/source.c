/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One subscription: a topic, its partitions, or all topics of a pattern; each concrete topic has a
 * slot with a consumer. Partitions that come later and topics that begin to match are looked for
 * once a minute, and topics at once where a broker tells of them; a topic that vanishes from a
 * pattern is closed, never unsubscribed, since its cursor must survive, and its slot is used again
 * when nothing of it is held. A slot's end is reserved among the events when its begin is said, so
 * that neither is lost. Loop thread.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "brokers/pulsar/pulsar.h"

#define WATCHED_PERIOD_NS (UINT64_C(600000) * LW_MS)
#define WATCHED_PAUSE_NS (100 * LW_MS)

static void look(struct lw_pulsar_source *source);
static void on_topics_changed(struct lw_pulsar_watcher *watcher);

/* -- Slots: announced and ended ----------------------------------------------------------------------- */

static void
announce(struct lw_pulsar_slot *slot)
{
    struct lw_pulsar_source *source = slot->source;
    struct lw_pulsar_broker *broker = source->broker;
    if (!lw_events_reserve(&broker->events, 2)) {
        struct lw_host *host = broker->base.host;
        lw_timers_arm(&host->timers, &source->announce_timer, host->now + 1000 * LW_MS);
        return;
    }
    slot->generation = lw_broker_next_generation();
    lw_pulsar_backlog_begin(slot);
    struct lw_event event = {
        .kind = LW_EVENT_ASSIGNED,
        .source = lw_pulsar_source_face(source),
        .slot = slot->number,
        .generation = slot->generation,
        .topic = slot->topic,
        .partition = slot->partition,
        .position = -1,
    };
    lw_events_push_reserved(&broker->events, &event);
    if (lw_pulsar_consumer_is_ready(slot->consumer)) {
        lw_pulsar_slot_mark_ready(slot);
    }
}

static void
on_announce_due(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_source *source = LW_CONTAINER(timer, struct lw_pulsar_source,
                                                   announce_timer);
    (void)now;
    for (uint32_t i = 0; i < source->slot_count; i++) {
        if (source->slots[i]->is_begun && !source->slots[i]->generation) {
            announce(source->slots[i]);
        }
    }
}

/* Uses the place that was reserved with the begin. */
static void
say_end(struct lw_pulsar_slot *slot, enum lw_event_kind kind)
{
    struct lw_pulsar_broker *broker = slot->source->broker;
    struct lw_event event = {
        .kind = kind,
        .source = lw_pulsar_source_face(slot->source),
        .slot = slot->number,
        .generation = slot->generation,
        .topic = slot->topic,
        .partition = slot->partition,
        .deadline = broker->base.host->now + LW_PULSAR_WAIT_NS,
    };
    lw_events_push_reserved(&broker->events, &event);
}

static void
on_begun(struct lw_pulsar_consumer *consumer)
{
    struct lw_pulsar_slot *slot = lw_pulsar_consumer_user(consumer);
    if (slot->is_revoking || slot->is_gone || slot->source->is_stopping) {
        return; /* active once more while it is given up: nobody would give it up again */
    }
    slot->is_begun = true;
    slot->source->is_failure_said = false;
    announce(slot);
    lw_pulsar_source_share(slot->source);
}

static void
on_lost(struct lw_pulsar_consumer *consumer)
{
    struct lw_pulsar_slot *slot = lw_pulsar_consumer_user(consumer);
    lw_pulsar_slot_unready(slot);
    slot->is_begun = false;
    if (slot->generation && !slot->is_revoking) {
        say_end(slot, LW_EVENT_LOST);
        slot->generation = 0;
    }
    lw_pulsar_source_share(slot->source);
}

static void
on_ready(struct lw_pulsar_consumer *consumer)
{
    lw_pulsar_slot_mark_ready(lw_pulsar_consumer_user(consumer));
}

static void
say_error(struct lw_pulsar_source *source, const struct lw_error *error)
{
    struct lw_event event = { .kind = LW_EVENT_SOURCE_ERROR,
                              .source = lw_pulsar_source_face(source),
                              .status = error->status };
    lw_events_push_error(&source->broker->events, &event, error);
}

static void
on_failed(struct lw_pulsar_consumer *consumer, const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_slot *slot = lw_pulsar_consumer_user(consumer);
    struct lw_pulsar_source *source = slot->source;
    if (source->pattern && failure->code == LW_PULSAR_TOPIC_NOT_FOUND) {
        on_topics_changed(&source->watcher); /* it is gone, and no error */
        return;
    }
    say_error(source, &failure->error);
    if (failure->code == LW_PULSAR_CONSUMER_BUSY) {
        lw_pulsar_holder_ask(&source->broker->holder, slot->topic, source->subscription);
    }
}

static void
on_end_of_topic(struct lw_pulsar_consumer *consumer)
{
    struct lw_pulsar_slot *slot = lw_pulsar_consumer_user(consumer);
    lw_host_log(slot->source->broker->base.host, LW_LOG_INFO, "pulsar.end_of_topic",
                "the topic was terminated and everything in it is acknowledged", "topic=%s",
                slot->topic);
}

static void
on_stopped(struct lw_pulsar_consumer *consumer)
{
    struct lw_pulsar_slot *slot = lw_pulsar_consumer_user(consumer);
    slot->is_stopped = true;
    slot->is_begun = false;
    lw_pulsar_broker_continue_close(slot->source->broker);
}

static const struct lw_pulsar_consumer_ops consumer_ops = {
    .on_begun = on_begun,
    .on_lost = on_lost,
    .on_ready = on_ready,
    .on_failed = on_failed,
    .on_end_of_topic = on_end_of_topic,
    .on_stopped = on_stopped,
};

/* -- Slots: made and given up --------------------------------------------------------------------------- */

static struct lw_pulsar_slot *
find_slot(const struct lw_pulsar_source *source, const char *topic)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        if (!source->slots[i]->is_gone && strcmp(source->slots[i]->topic, topic) == 0) {
            return source->slots[i];
        }
    }
    return NULL;
}

static struct lw_pulsar_slot *
make_slot(struct lw_pulsar_source *source, const char *topic, int32_t partition,
          uint32_t number)
{
    size_t size = strlen(topic) + 1;
    struct lw_pulsar_slot *slot = lw_alloc(sizeof *slot + size);
    if (!slot) {
        return NULL;
    }
    slot->source = source;
    slot->number = number;
    slot->partition = partition;
    lw_list_init(&slot->ready);
    memcpy(slot->topic, topic, size);
    slot->consumer = lw_pulsar_consumer_create(&source->broker->client, slot->topic,
                                               &source->settings, slot->number, &consumer_ops,
                                               slot);
    if (!slot->consumer) {
        lw_free(slot);
        return NULL;
    }
    return slot;
}

static void
destroy_slot(struct lw_pulsar_slot *slot)
{
    lw_pulsar_request_cancel(&slot->backlog.request);
    lw_pulsar_consumer_destroy(slot->consumer);
    lw_free(slot);
}

static bool
is_free(const struct lw_pulsar_slot *slot)
{
    return slot->is_gone && slot->is_stopped && !slot->generation &&
           lw_pulsar_consumer_is_empty(slot->consumer);
}

/* The place of a topic that vanished, or a new one at the end; UINT32_MAX: no memory. */
static uint32_t
free_place(struct lw_pulsar_source *source)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        if (is_free(source->slots[i])) {
            return i;
        }
    }
    struct lw_pulsar_slot **slots = lw_resize_array(source->slots, source->slot_count + 1,
                                                    sizeof(struct lw_pulsar_slot *));
    if (!slots) {
        return UINT32_MAX;
    }
    source->slots = slots;
    return source->slot_count;
}

/* False without memory; it is tried again with the next look. */
static bool
add_topic(struct lw_pulsar_source *source, const char *topic, int32_t partition)
{
    if (find_slot(source, topic)) {
        return true;
    }
    uint32_t number = free_place(source);
    struct lw_pulsar_slot *slot = number == UINT32_MAX
                                      ? NULL
                                      : make_slot(source, topic, partition, number);
    if (!slot) {
        return false;
    }
    if (number < source->slot_count) {
        destroy_slot(source->slots[number]);
    } else {
        source->slot_count++;
    }
    source->slots[number] = slot;
    lw_pulsar_consumer_start(slot->consumer);
    return true;
}

static void
give_up(struct lw_pulsar_slot *slot)
{
    struct lw_pulsar_broker *broker = slot->source->broker;
    if (slot->is_stopped || slot->is_revoking) {
        return;
    }
    lw_pulsar_slot_unready(slot);
    lw_pulsar_consumer_pause(slot->consumer);
    if (slot->generation) {
        slot->is_revoking = true;
        say_end(slot, LW_EVENT_REVOKING);
    } else {
        lw_pulsar_consumer_stop(slot->consumer, broker->base.host->now + LW_PULSAR_WAIT_NS);
    }
}

/* -- Which topics there are ------------------------------------------------------------------------------- */

static void
look_later(struct lw_pulsar_source *source, uint64_t delay)
{
    struct lw_host *host = source->broker->base.host;
    lw_timers_arm(&host->timers, &source->find_timer, host->now + delay);
}

static uint64_t
period(const struct lw_pulsar_source *source)
{
    if (!source->pattern) {
        return source->broker->client.options.partitions_every_ns;
    }
    uint64_t ns = source->settings.discovery_ns;
    bool is_told = lw_pulsar_watcher_is_watching(&source->watcher) &&
                   source->pattern->mode == LW_PULSAR_REGEX_PERSISTENT;
    return is_told && ns < WATCHED_PERIOD_NS ? WATCHED_PERIOD_NS : ns;
}

/* Many topics often come together: one look for all of them. */
static void
on_topics_changed(struct lw_pulsar_watcher *watcher)
{
    struct lw_pulsar_source *source = LW_CONTAINER(watcher, struct lw_pulsar_source, watcher);
    if (source->find.is_asked) {
        source->looks_again = true;
    } else if (!source->is_stopping) {
        look_later(source, WATCHED_PAUSE_NS);
    }
}

static void
on_look_failed(struct lw_pulsar_source *source, const struct lw_pulsar_failure *failure)
{
    if (!source->is_failure_said && source->slot_count == 0) {
        source->is_failure_said = true;
        say_error(source, &failure->error);
    }
    if (!failure->error.is_fatal) {
        look_later(source, lw_pulsar_backoff_next(&source->backoff, &source->broker->client));
    }
}

static bool
add_partitions(struct lw_pulsar_source *source, uint32_t partitions)
{
    char topic[LW_PULSAR_NAME_BYTES];
    if (partitions == 0) {
        return source->slot_count > 0 || add_topic(source, source->name.text, 0);
    }
    for (uint32_t i = 0; i < partitions; i++) {
        if (!lw_pulsar_name_partition(&source->name, (int32_t)i, topic, sizeof topic) ||
            !add_topic(source, topic, (int32_t)i)) {
            return false;
        }
    }
    return true;
}

static void
on_partitions(struct lw_pulsar_find *find, const struct lw_pulsar_find_result *result)
{
    struct lw_pulsar_source *source = LW_CONTAINER(find, struct lw_pulsar_source, find);
    if (result->failure) {
        on_look_failed(source, result->failure);
        return;
    }
    uint32_t before = source->slot_count;
    bool is_complete = add_partitions(source, result->partitions);
    lw_pulsar_backoff_reset(&source->backoff);
    if (before > 0 && source->slot_count > before) {
        lw_host_log(source->broker->base.host, LW_LOG_INFO, "pulsar.partitions_grown",
                    "the topic has more partitions", "topic=%s partitions=%u",
                    source->name.text, (unsigned)source->slot_count);
    }
    look_later(source, is_complete ? period(source) : 1000 * LW_MS);
}

static bool
add_matching(struct lw_pulsar_source *source, const struct lw_pulsar_topics *topics)
{
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(&topics->names);
    struct lw_bytes bytes;
    bool is_complete = true;
    while (lw_pulsar_walk_bytes(&walk, &bytes)) {
        char text[LW_PULSAR_NAME_BYTES];
        struct lw_pulsar_name name;
        if (bytes.size >= sizeof text) {
            continue;
        }
        memcpy(text, bytes.data, bytes.size);
        text[bytes.size] = '\0';
        if (lw_pulsar_name_parse(text, &name, NULL) == LW_STATUS_OK &&
            lw_pulsar_pattern_has(source->pattern, name.text)) {
            int32_t partition = name.partition < 0 ? 0 : name.partition;
            is_complete = add_topic(source, name.text, partition) && is_complete;
        }
    }
    return is_complete;
}

static bool
is_listed(const struct lw_pulsar_topics *topics, const char *topic)
{
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(&topics->names);
    struct lw_bytes bytes;
    size_t size = strlen(topic);
    while (lw_pulsar_walk_bytes(&walk, &bytes)) {
        if (bytes.size == size && memcmp(bytes.data, topic, size) == 0) {
            return true;
        }
    }
    return false;
}

static void
close_vanished(struct lw_pulsar_source *source, const struct lw_pulsar_topics *topics)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        struct lw_pulsar_slot *slot = source->slots[i];
        if (!slot->is_gone && !is_listed(topics, slot->topic)) {
            slot->is_gone = true;
            give_up(slot);
        }
    }
}

static void
on_topics(struct lw_pulsar_find *find, const struct lw_pulsar_find_result *result)
{
    struct lw_pulsar_source *source = LW_CONTAINER(find, struct lw_pulsar_source, find);
    if (result->failure) {
        on_look_failed(source, result->failure);
        return;
    }
    lw_pulsar_backoff_reset(&source->backoff);
    const struct lw_pulsar_topics *topics = result->topics;
    bool is_complete = true;
    if (topics->is_changed) {
        is_complete = add_matching(source, topics);
        close_vanished(source, topics);
        size_t size = is_complete && topics->hash.size < sizeof source->topics_hash
                          ? topics->hash.size
                          : 0;
        memcpy(source->topics_hash, topics->hash.data ? topics->hash.data : "", size);
        source->topics_hash[size] = '\0';
    }
    look_later(source, source->looks_again ? WATCHED_PAUSE_NS
                       : is_complete       ? period(source)
                                           : 1000 * LW_MS);
    source->looks_again = false;
    if (source->pattern->mode != LW_PULSAR_REGEX_NON_PERSISTENT) {
        lw_pulsar_watcher_ensure(&source->watcher);
    }
}

static void
look(struct lw_pulsar_source *source)
{
    struct lw_pulsar_client *client = &source->broker->client;
    const struct lw_pulsar_pattern *pattern = source->pattern;
    if (pattern) {
        lw_pulsar_find_topics(
            client, &source->find, pattern->namespace_name, (int32_t)pattern->mode, NULL,
            (struct lw_bytes){ source->topics_hash, strlen(source->topics_hash) }, on_topics);
    } else if (source->name.partition >= 0) {
        if (!add_topic(source, source->name.text, source->name.partition)) {
            look_later(source, 1000 * LW_MS);
        }
    } else {
        lw_pulsar_find_partitions(client, &source->find, source->name.text, true,
                                  on_partitions);
    }
}

static void
on_find_due(struct lw_timer *timer, uint64_t now)
{
    (void)now;
    look(LW_CONTAINER(timer, struct lw_pulsar_source, find_timer));
}

/* -- Life ----------------------------------------------------------------------------------------------- */

static bool
is_pattern(const char *topic)
{
    return strpbrk(topic, "*+?[](){}|^$\\") != NULL;
}

static enum lw_status
read_topic(struct lw_pulsar_source *source, const char *topic, struct lw_error *ret_error)
{
    if (!is_pattern(topic)) {
        return lw_pulsar_name_parse(topic, &source->name, ret_error);
    }
    source->pattern = lw_alloc(sizeof *source->pattern);
    if (!source->pattern) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a pattern");
    }
    enum lw_status status = lw_pulsar_pattern_init(
        source->pattern, topic, (enum lw_pulsar_regex_mode)source->settings.regex_mode,
        ret_error);
    if (status != LW_STATUS_OK) {
        lw_free(source->pattern);
        source->pattern = NULL;
        return status;
    }
    lw_pulsar_watcher_init(&source->watcher, &source->broker->client,
                           source->pattern->namespace_name, on_topics_changed);
    source->settings.only_existing = true;
    return LW_STATUS_OK;
}

static void
init(struct lw_pulsar_source *source, struct lw_pulsar_broker *broker)
{
    source->broker = broker;
    source->options = broker->options.consumer;
    lw_list_init(&source->link);
    lw_turns_init(&source->ready);
    lw_timer_init(&source->find_timer, on_find_due);
    lw_timer_init(&source->announce_timer, on_announce_due);
}

static enum lw_status
read_options(struct lw_pulsar_source *source, const struct lw_source_options *options,
             struct lw_error *ret_error)
{
    source->subscription = lw_copy_text(options->subscription);
    if (!source->subscription || !lw_properties_copy(&source->properties, options->properties,
                                                     options->property_count)) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a subscription");
    }
    source->options.receiver_queue_size = options->receiver_queue_size;
    enum lw_status status = lw_pulsar_options_read_consumer(
        &source->options, source->properties.items, source->properties.count, ret_error);
    if (status == LW_STATUS_OK) {
        status = lw_pulsar_options_check_consumer(&source->options, ret_error);
    }
    if (status != LW_STATUS_OK) {
        return status;
    }
    lw_pulsar_settings_consumer(&source->options, source->subscription, source->ranges,
                                &source->settings);
    source->settings.queue_bytes_max = options->queue_bytes_max;
    source->stall_ns = options->stall_timeout_ms > 0
                           ? (uint64_t)options->stall_timeout_ms * LW_MS
                           : 0;
    return read_topic(source, options->topic, ret_error);
}

enum lw_status
lw_pulsar_source_create(struct lw_pulsar_broker *broker,
                        const struct lw_source_options *options,
                        struct lw_pulsar_source **ret_source, struct lw_error *ret_error)
{
    struct lw_pulsar_source *source = lw_alloc(sizeof *source);
    if (!source) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a subscription");
    }
    init(source, broker);
    enum lw_status status = read_options(source, options, ret_error);
    if (status != LW_STATUS_OK) {
        lw_pulsar_source_destroy(source);
        return status;
    }
    lw_list_push(&broker->sources, &source->link);
    *ret_source = source;
    return LW_STATUS_OK;
}

void
lw_pulsar_source_destroy(struct lw_pulsar_source *source)
{
    struct lw_timers *timers = &source->broker->base.host->timers;
    lw_timers_disarm(timers, &source->find_timer);
    lw_timers_disarm(timers, &source->announce_timer);
    lw_pulsar_find_cancel(&source->find);
    lw_pulsar_watcher_stop(&source->watcher);
    for (uint32_t i = 0; i < source->slot_count; i++) {
        destroy_slot(source->slots[i]);
    }
    if (source->pattern) {
        lw_pulsar_pattern_deinit(source->pattern);
        lw_free(source->pattern);
    }
    lw_list_remove(&source->link);
    lw_properties_deinit(&source->properties);
    lw_free(source->slots);
    lw_free(source->subscription);
    lw_free(source);
}

void
lw_pulsar_source_start(struct lw_pulsar_source *source)
{
    look(source);
}

void
lw_pulsar_source_stop(struct lw_pulsar_source *source)
{
    struct lw_timers *timers = &source->broker->base.host->timers;
    source->is_stopping = true;
    lw_pulsar_find_cancel(&source->find);
    lw_pulsar_watcher_stop(&source->watcher);
    lw_timers_disarm(timers, &source->find_timer);
    lw_timers_disarm(timers, &source->announce_timer);
    for (uint32_t i = 0; i < source->slot_count; i++) {
        give_up(source->slots[i]);
    }
}

void
lw_pulsar_source_revoke_done(struct lw_pulsar_source *source, uint64_t generation)
{
    struct lw_host *host = source->broker->base.host;
    for (uint32_t i = 0; i < source->slot_count; i++) {
        struct lw_pulsar_slot *slot = source->slots[i];
        if (slot->generation == generation) {
            slot->generation = 0;
            lw_pulsar_consumer_stop(slot->consumer, host->now + LW_PULSAR_WAIT_NS);
        }
    }
}

bool
lw_pulsar_source_is_stopped(const struct lw_pulsar_source *source)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        if (!source->slots[i]->is_stopped) {
            return false;
        }
    }
    return true;
}
