/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A topic as callers name it. The first message asks how many partitions it has; until that is
 * known messages wait here. A partitioned topic is asked again while it is written to, at most once
 * a minute: new partitions are used from then on (which moves keys, as with every client of
 * Pulsar), and a smaller number is a hiccup and ignored. A name that names a partition itself is
 * taken as it is.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/consumer.h"
#include "brokers/pulsar/names.h"
#include "brokers/pulsar/producer_state.h"

#define ASK_AGAIN_NS (UINT64_C(60000) * LW_MS)
#define NO_MEMORY_NS (100 * LW_MS)

enum { PARTITIONS_MAX = 1 << 16 };

static void on_timer(struct lw_timer *timer, uint64_t now);

/* -- Life ------------------------------------------------------------------------------------------ */

static char *
what_of(const char *name)
{
    static const char format[] = "find the partitions of %s";
    size_t size = sizeof format + strlen(name);
    char *what = lw_alloc(size);
    if (what) {
        (void)snprintf(what, size, format, name);
    }
    return what;
}

static bool
put_names(struct lw_pulsar_topic *topic)
{
    struct lw_map *map = &topic->publisher->topics_by_name;
    return topic->name && topic->spelling && topic->what &&
           lw_map_set(map, lw_bytes_of(topic->name), topic) == LW_STATUS_OK &&
           lw_map_set(map, lw_bytes_of(topic->spelling), topic) == LW_STATUS_OK;
}

static void
remove_name(struct lw_pulsar_topic *topic, const char *name)
{
    struct lw_map *map = &topic->publisher->topics_by_name;
    if (name && lw_map_get(map, lw_bytes_of(name)) == topic) {
        (void)lw_map_remove(map, lw_bytes_of(name));
    }
}

void
lw_pulsar_topic_destroy(struct lw_pulsar_topic *topic)
{
    lw_pulsar_find_cancel(&topic->find);
    lw_timers_disarm(&topic->publisher->client->host->timers, &topic->timer);
    lw_list_remove(&topic->link);
    remove_name(topic, topic->name);
    remove_name(topic, topic->spelling);
    lw_pulsar_ring_deinit(&topic->ring);
    lw_free(topic->parts);
    lw_free(topic->what);
    lw_free(topic->spelling);
    lw_free(topic->name);
    lw_free(topic);
}

static struct lw_pulsar_topic *
create(struct lw_pulsar_publisher *publisher, const struct lw_pulsar_name *name,
       const char *spelling)
{
    struct lw_host *host = publisher->client->host;
    struct lw_pulsar_topic *topic = lw_alloc(sizeof *topic);
    if (!topic) {
        return NULL;
    }
    topic->publisher = publisher;
    lw_timer_init(&topic->timer, on_timer);
    lw_list_push_front(&publisher->topics, &topic->link);
    lw_pulsar_router_init(&topic->router, publisher->options, lw_host_random(host));
    topic->is_persistent = name->is_persistent;
    topic->is_part = name->partition >= 0;
    topic->is_known = topic->is_part;
    topic->used_at = host->now;
    topic->name = lw_copy_text(name->text);
    topic->spelling = lw_copy_text(spelling);
    topic->what = what_of(name->text);
    if (!put_names(topic)) {
        lw_pulsar_topic_destroy(topic);
        return NULL;
    }
    return topic;
}

struct lw_pulsar_topic *
lw_pulsar_topic_get(struct lw_pulsar_publisher *publisher, const char *text,
                    enum lw_status *ret_status)
{
    struct lw_map *map = &publisher->topics_by_name;
    struct lw_pulsar_topic *topic = lw_map_get(map, lw_bytes_of(text));
    if (topic) {
        return topic;
    }
    struct lw_pulsar_name name;
    if (lw_pulsar_name_parse(text, &name, NULL) != LW_STATUS_OK) {
        *ret_status = LW_STATUS_INVALID;
        return NULL;
    }
    topic = lw_map_get(map, lw_bytes_of(name.text));
    if (!topic) {
        topic = create(publisher, &name, text);
        *ret_status = LW_STATUS_NO_MEMORY;
    }
    return topic;
}

/* Only at the policy's own topic: a message may name another, which is somebody else's. */
void
lw_pulsar_topic_note_letter(struct lw_pulsar_topic *topic, const struct lw_message *of)
{
    const struct lw_pulsar_consumer *consumer = lw_pulsar_message_consumer(of);
    const struct lw_pulsar_consumer_settings *settings = consumer
                                                             ? lw_pulsar_consumer_settings_of(
                                                                   consumer)
                                                             : NULL;
    char own[LW_PULSAR_NAME_BYTES];
    if (!settings || !settings->initial_subscription_name || topic->initial_subscription) {
        return;
    }
    bool is_named = settings->dead_letter_topic != NULL;
    if (!is_named &&
        !lw_pulsar_name_default_topic(LW_TOPIC_DEAD_LETTER, lw_pulsar_consumer_topic(consumer),
                                      settings->subscription, own, sizeof own)) {
        return;
    }
    if (lw_pulsar_name_is_same(is_named ? settings->dead_letter_topic : own, topic->name)) {
        topic->initial_subscription = settings->initial_subscription_name;
    }
}

/* -- Partitions -------------------------------------------------------------------------------------- */

static void
watch(struct lw_pulsar_topic *topic)
{
    struct lw_timers *timers = &topic->publisher->client->host->timers;
    uint64_t due = LW_NEVER;
    if (topic->ring.count > 0) {
        due = lw_pulsar_ring_first(&topic->ring)->deadline;
        if (!topic->find.is_asked && topic->retry_at < due) {
            due = topic->retry_at;
        }
    }
    lw_timers_arm(timers, &topic->timer, due);
}

void
lw_pulsar_topic_refuse_waiting(struct lw_pulsar_topic *topic, enum lw_status status)
{
    while (topic->ring.count > 0) {
        struct lw_pulsar_waiting item = lw_pulsar_ring_pop(&topic->ring);
        lw_pulsar_publisher_receipt(topic->publisher, item.publication, status);
    }
    watch(topic);
}

static void
fail(struct lw_pulsar_topic *topic, const struct lw_pulsar_failure *failure)
{
    struct lw_pulsar_publisher *publisher = topic->publisher;
    struct lw_host *host = publisher->client->host;
    enum lw_status verdict = lw_pulsar_publisher_verdict(failure);
    if (topic->is_known) {
        return; /* the number that is known goes on to hold */
    }
    if (lw_pulsar_publisher_is_worth_saying(&topic->backoff, failure)) {
        lw_pulsar_publisher_say_blocked(publisher, topic->name, &failure->error,
                                        &topic->is_blocked);
    }
    topic->retry_at = host->now +
                      lw_pulsar_publisher_pause(publisher, &topic->backoff, failure);
    if (verdict != LW_STATUS_OK) {
        lw_pulsar_topic_refuse_waiting(topic, verdict);
    }
    watch(topic);
}

static void
on_found(struct lw_pulsar_find *find, const struct lw_pulsar_find_result *result)
{
    struct lw_pulsar_topic *topic = LW_CONTAINER(find, struct lw_pulsar_topic, find);
    if (result->failure) {
        fail(topic, result->failure);
        return;
    }
    lw_pulsar_backoff_reset(&topic->backoff);
    topic->is_known = true;
    if (result->partitions > topic->partitions && result->partitions <= PARTITIONS_MAX) {
        topic->partitions = result->partitions;
    }
    lw_pulsar_publisher_say_blocked(topic->publisher, topic->name, NULL, &topic->is_blocked);
    lw_pulsar_topic_go_on(topic);
}

static void
ask(struct lw_pulsar_topic *topic)
{
    struct lw_pulsar_client *client = topic->publisher->client;
    if (!topic->find.is_asked) {
        topic->asked_at = client->host->now;
        lw_pulsar_find_partitions(client, &topic->find, topic->name, true, on_found);
    }
}

static void
expire(struct lw_pulsar_topic *topic, uint64_t now)
{
    while (topic->ring.count > 0 && lw_pulsar_ring_first(&topic->ring)->deadline <= now) {
        struct lw_pulsar_waiting item = lw_pulsar_ring_pop(&topic->ring);
        lw_pulsar_publisher_receipt(topic->publisher, item.publication, LW_STATUS_UNAVAILABLE);
    }
}

static void
on_timer(struct lw_timer *timer, uint64_t now)
{
    struct lw_pulsar_topic *topic = LW_CONTAINER(timer, struct lw_pulsar_topic, timer);
    expire(topic, now);
    if (topic->ring.count > 0 && topic->is_known) {
        lw_pulsar_topic_go_on(topic);
        return;
    }
    if (topic->ring.count > 0 && topic->retry_at <= now) {
        ask(topic);
    }
    watch(topic);
}

/* -- Producers --------------------------------------------------------------------------------------- */

/* Before a producer exists, its place may move with the array. */
static bool
reserve_parts(struct lw_pulsar_topic *topic)
{
    if (topic->partitions <= topic->parts_capacity) {
        return true;
    }
    struct lw_pulsar_producer **parts = lw_alloc_array(topic->partitions,
                                                       sizeof(struct lw_pulsar_producer *));
    if (!parts) {
        return false;
    }
    for (uint32_t i = 0; i < topic->parts_capacity; i++) {
        parts[i] = topic->parts[i];
        if (parts[i]) {
            parts[i]->place = &parts[i];
        }
    }
    lw_free(topic->parts);
    topic->parts = parts;
    topic->parts_capacity = topic->partitions;
    return true;
}

static bool
name_of(const struct lw_pulsar_topic *topic, uint32_t part, char *out, size_t size)
{
    int length = topic->partitions == 0
                     ? snprintf(out, size, "%s", topic->name)
                     : snprintf(out, size, "%s-partition-%u", topic->name, part);
    return length >= 0 && (size_t)length < size;
}

static struct lw_pulsar_producer *
producer_of(struct lw_pulsar_topic *topic, uint32_t part)
{
    char name[LW_PULSAR_NAME_BYTES + 32];
    if (topic->partitions > 0 && !reserve_parts(topic)) {
        return NULL;
    }
    struct lw_pulsar_producer **place = topic->partitions > 0 ? &topic->parts[part]
                                                              : &topic->whole;
    struct lw_pulsar_producer *producer = *place;
    if (!producer && lw_pulsar_publisher_admit(topic->publisher) &&
        name_of(topic, part, name, sizeof name)) {
        producer = lw_pulsar_producer_create(topic, name, place);
    }
    return producer;
}

/* False: there is no such partition. */
static bool
choose(struct lw_pulsar_topic *topic, const struct lw_publication *publication,
       uint32_t *ret_part)
{
    struct lw_pulsar_publisher *publisher = topic->publisher;
    bool is_bytes = false;
    *ret_part = 0;
    if (topic->partitions == 0) {
        return publication->partition <= 0; /* itself is its only one */
    }
    if (publication->partition >= 0) {
        *ret_part = (uint32_t)publication->partition;
        return *ret_part < topic->partitions;
    }
    struct lw_bytes key = lw_pulsar_encode_key(&publisher->entries, publication, &is_bytes);
    *ret_part = lw_pulsar_router_choose(&topic->router, key,
                                        lw_pulsar_publication_bytes(publication),
                                        topic->partitions, publisher->client->host->now);
    return true;
}

static enum lw_pulsar_accepted
give(struct lw_pulsar_topic *topic, struct lw_pulsar_waiting item, enum lw_status *ret_status)
{
    uint32_t part = 0;
    if (!choose(topic, item.publication, &part)) {
        *ret_status = LW_STATUS_NOT_FOUND;
        return LW_PULSAR_REFUSED;
    }
    struct lw_pulsar_producer *producer = producer_of(topic, part);
    if (!producer) {
        return LW_PULSAR_NO_ROOM;
    }
    *ret_status = LW_STATUS_UNAVAILABLE;
    return lw_pulsar_producer_take(producer, item);
}

/* Room is told by an event, memory is not. */
static void
wait_for_room(struct lw_pulsar_topic *topic, struct lw_pulsar_waiting item)
{
    struct lw_pulsar_publisher *publisher = topic->publisher;
    lw_pulsar_ring_push_front(&topic->ring, item);
    topic->retry_at = publisher->client->host->now + NO_MEMORY_NS;
    publisher->has_waiting = true;
}

void
lw_pulsar_topic_go_on(struct lw_pulsar_topic *topic)
{
    enum lw_pulsar_accepted accepted = LW_PULSAR_ACCEPTED;
    while (topic->ring.count > 0 && accepted != LW_PULSAR_NO_ROOM) {
        struct lw_pulsar_waiting item = lw_pulsar_ring_pop(&topic->ring);
        enum lw_status status = LW_STATUS_UNAVAILABLE;
        accepted = give(topic, item, &status);
        if (accepted == LW_PULSAR_REFUSED) {
            lw_pulsar_publisher_receipt(topic->publisher, item.publication, status);
        } else if (accepted == LW_PULSAR_NO_ROOM) {
            wait_for_room(topic, item);
        }
    }
    watch(topic);
}

static enum lw_pulsar_accepted
keep(struct lw_pulsar_topic *topic, struct lw_pulsar_waiting item)
{
    struct lw_pulsar_publisher *publisher = topic->publisher;
    if (topic->ring.count >= publisher->options->pending_max) {
        return topic->is_blocked ? LW_PULSAR_REFUSED : LW_PULSAR_NO_ROOM;
    }
    if (!lw_pulsar_ring_reserve(&topic->ring, topic->ring.count + 1)) {
        return LW_PULSAR_NO_ROOM;
    }
    lw_pulsar_ring_push(&topic->ring, item);
    if (!topic->is_known && topic->retry_at <= publisher->client->host->now) {
        ask(topic);
    }
    watch(topic);
    return LW_PULSAR_ACCEPTED;
}

static void
note_use(struct lw_pulsar_topic *topic)
{
    struct lw_pulsar_publisher *publisher = topic->publisher;
    topic->used_at = publisher->client->host->now;
    if (publisher->topics.next != &topic->link) {
        lw_list_remove(&topic->link);
        lw_list_push_front(&publisher->topics, &topic->link);
    }
    if (topic->partitions > 0 && topic->used_at - topic->asked_at >= ASK_AGAIN_NS) {
        ask(topic);
    }
}

enum lw_pulsar_accepted
lw_pulsar_topic_take(struct lw_pulsar_topic *topic, struct lw_publication *publication,
                     enum lw_status *ret_status)
{
    struct lw_pulsar_waiting item = {
        .publication = publication,
        .deadline = lw_pulsar_publisher_deadline(topic->publisher),
    };
    note_use(topic);
    *ret_status = LW_STATUS_UNAVAILABLE;
    bool is_next = topic->is_known && topic->ring.count == 0;
    return is_next ? give(topic, item, ret_status) : keep(topic, item);
}
