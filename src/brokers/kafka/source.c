/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One subscription at the broker: a topic read by a group, with its retry tiers. Sources of one
 * group share a client; everything that can be checked without the cluster is checked here.
 * Receiving takes the ready partitions in turn, each a quantum, so that none starves another.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/error.h"
#include "brokers/kafka/kafka.h"

static bool
is_topic(const char *name)
{
    size_t length = strlen(name);
    bool is_dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    return length > 0 && length <= 249 && !is_dots &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
               length;
}

static enum lw_status
check_topic(const char *name, struct lw_error *ret_error)
{
    if (is_topic(name)) {
        return LW_STATUS_OK;
    }
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, "E0117",
                                         "\"%s\" cannot be the name of a Kafka topic", name);
    lw_error_help(ret_error, "1 to 249 characters of A-Z a-z 0-9 . _ -");
    return status;
}

static enum lw_status
check_properties(const struct lw_source_options *options, struct lw_error *ret_error)
{
    for (size_t i = 0; i < options->property_count; i++) {
        const struct lw_property *property = &options->properties[i];
        const char *reason = lw_kafka_property_check(property->name, property->value);
        if (reason) {
            return lw_error_set(ret_error, LW_STATUS_CONFIG, "E0410",
                                "property \"%s\" of the subscription to \"%s\": %s",
                                property->name, options->topic, reason);
        }
    }
    return LW_STATUS_OK;
}

static struct lw_kafka_client *
find_client(struct lw_kafka_broker *broker, const char *group)
{
    for (struct lw_list *at = broker->clients.next; at != &broker->clients; at = at->next) {
        struct lw_kafka_client *client = LW_CONTAINER(at, struct lw_kafka_client, link);
        if (strcmp(client->group, group) == 0) {
            return client;
        }
    }
    return NULL;
}

static enum lw_status
no_memory(struct lw_error *ret_error)
{
    return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a subscription");
}

/* Joins the group's client: one consumer, so one set of properties. */
static enum lw_status
join_client(struct lw_kafka_broker *broker, struct lw_kafka_client *client,
            const struct lw_source_options *options, struct lw_error *ret_error)
{
    struct lw_properties own;
    if (!lw_properties_copy(&own, options->properties, options->property_count)) {
        return no_memory(ret_error);
    }
    bool is_equal = lw_properties_are_equal(&own, &client->properties);
    lw_properties_deinit(&own);
    if (!is_equal) {
        enum lw_status status = lw_error_set(
            ret_error, LW_STATUS_CONFIG, "E0306",
            "subscriptions of group \"%s\" at broker \"%s\" have different properties",
            client->group, broker->name);
        lw_error_help(ret_error, "one consumer reads all topics of a group: give each of its "
                                 "subscriptions the same consumer properties");
        return status;
    }
    if (lw_kafka_client_find(client, options->topic)) {
        return lw_error_set(ret_error, LW_STATUS_CONFIG, "E0301",
                            "group \"%s\" subscribes to \"%s\" twice", client->group,
                            options->topic);
    }
    return LW_STATUS_OK;
}

static enum lw_status
new_client(struct lw_kafka_broker *broker, const struct lw_source_options *options,
           struct lw_kafka_client **ret_client, struct lw_error *ret_error)
{
    struct lw_kafka_client *client = lw_kafka_client_create(broker, options->subscription);
    if (!client) {
        return no_memory(ret_error);
    }
    if (!lw_properties_copy(&client->properties, options->properties,
                            options->property_count)) {
        lw_kafka_client_destroy(client);
        return no_memory(ret_error);
    }
    rd_kafka_conf_t *conf = lw_kafka_settings_create(
        broker, LW_KAFKA_ROLE_CONSUMER, client->group, &client->properties, ret_error);
    if (!conf) {
        lw_kafka_client_destroy(client);
        return ret_error ? ret_error->status : LW_STATUS_CONFIG;
    }
    rd_kafka_conf_destroy(conf);
    *ret_client = client;
    return LW_STATUS_OK;
}

static bool
copy_tiers(struct lw_kafka_source *source, const struct lw_source_options *options)
{
    if (!options->retry_topic || options->tier_count == 0) {
        return true;
    }
    source->retry_topic = lw_copy_text(options->retry_topic);
    source->tiers = lw_alloc_array(options->tier_count, sizeof *source->tiers);
    if (!source->retry_topic || !source->tiers) {
        return false;
    }
    for (size_t i = 0; i < options->tier_count; i++) {
        struct lw_kafka_tier *tier = &source->tiers[source->tier_count++];
        tier->delay_ms = options->tiers_ms[i];
        tier->topic = lw_kafka_tier_name(options->retry_topic, options->tiers_ms[i]);
        if (!tier->topic) {
            return false;
        }
    }
    return true;
}

static enum lw_status
check_tiers(const struct lw_kafka_source *source, struct lw_error *ret_error)
{
    for (size_t i = 0; i < source->tier_count; i++) {
        enum lw_status status = check_topic(source->tiers[i].topic, ret_error);
        if (status != LW_STATUS_OK) {
            return status;
        }
    }
    return LW_STATUS_OK;
}

static struct lw_kafka_source *
make(struct lw_kafka_broker *broker, const struct lw_source_options *options)
{
    struct lw_kafka_source *source = lw_alloc(sizeof *source);
    if (!source) {
        return NULL;
    }
    source->broker = broker;
    source->reads_tiers = options->reads_tiers;
    source->stall_ns = options->stall_timeout_ms > 0
                           ? (uint64_t)options->stall_timeout_ms * LW_MS
                           : 0;
    if (source->stall_ns > 0 && source->stall_ns < broker->stall_ns) {
        broker->stall_ns = source->stall_ns;
    }
    lw_list_init(&source->link);
    lw_list_init(&source->client_link);
    lw_turns_init(&source->ready);
    source->topic = lw_copy_text(options->topic);
    if (!source->topic || !copy_tiers(source, options)) {
        lw_kafka_source_destroy(source);
        return NULL;
    }
    return source;
}

enum lw_status
lw_kafka_source_create(struct lw_kafka_broker *broker, const struct lw_source_options *options,
                       struct lw_kafka_source **ret_source, struct lw_error *ret_error)
{
    if (broker->phase != LW_KAFKA_NEW) {
        return lw_error_set(ret_error, LW_STATUS_STATE, "",
                            "a subscription must be made before the broker starts");
    }
    enum lw_status status = check_topic(options->topic, ret_error);
    if (status == LW_STATUS_OK) {
        status = check_properties(options, ret_error);
    }
    struct lw_kafka_client *client = find_client(broker, options->subscription);
    if (status == LW_STATUS_OK) {
        status = client ? join_client(broker, client, options, ret_error)
                        : new_client(broker, options, &client, ret_error);
    }
    if (status != LW_STATUS_OK || !client) {
        return status;
    }
    struct lw_kafka_source *source = make(broker, options);
    if (!source) {
        return no_memory(ret_error);
    }
    status = check_tiers(source, ret_error);
    if (status != LW_STATUS_OK) {
        lw_kafka_source_destroy(source);
        return status;
    }
    source->client = client;
    lw_list_push(&broker->sources, &source->link);
    lw_list_push(&client->sources, &source->client_link);
    *ret_source = source;
    return LW_STATUS_OK;
}

void
lw_kafka_source_destroy(struct lw_kafka_source *source)
{
    if (!source) {
        return;
    }
    for (uint32_t i = 0; i < source->slot_count; i++) {
        lw_kafka_partition_destroy(source->slots[i]);
    }
    for (size_t i = 0; i < source->tier_count; i++) {
        lw_free(source->tiers[i].topic);
    }
    lw_list_remove(&source->link);
    lw_list_remove(&source->client_link);
    lw_free(source->slots);
    lw_free(source->tiers);
    lw_free(source->retry_topic);
    lw_free(source->topic);
    lw_free(source);
}

void
lw_kafka_source_each(struct lw_kafka_source *source, lw_kafka_partition_fn fn, void *user)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        if (source->slots[i]->generation) {
            fn(source->slots[i], user);
        }
    }
}

void
lw_kafka_source_forget_tiers(struct lw_kafka_source *source)
{
    for (size_t i = 0; i < source->tier_count; i++) {
        if (source->tiers[i].rkt) {
            rd_kafka_topic_destroy(source->tiers[i].rkt);
            source->tiers[i].rkt = NULL;
        }
    }
}

void
lw_kafka_source_fail(struct lw_kafka_source *source, const struct lw_error *error)
{
    struct lw_event event = { .kind = LW_EVENT_SOURCE_ERROR,
                              .source = lw_kafka_source_face(source),
                              .status = error->status };
    lw_events_push_error(&source->broker->events, &event, error);
}

/* The next partition's turn: it may give up to n, and no more than its room. */
static size_t
take_turn(struct lw_kafka_source *source, struct lw_message *const out[], size_t n,
          uint64_t *bytes)
{
    size_t wanted = lw_turns_share(&source->ready, n);
    struct lw_kafka_partition *partition = LW_CONTAINER(lw_turns_next(&source->ready),
                                                        struct lw_kafka_partition, ready);
    size_t given = 0;
    bool is_dry = false;
    if (source->rooms && source->rooms[partition->slot] < wanted) {
        wanted = source->rooms[partition->slot];
    }
    if (wanted > 0) {
        given = lw_kafka_partition_receive(partition, out, wanted, bytes, &is_dry);
    }
    if (source->rooms) {
        source->rooms[partition->slot] -= (uint32_t)given;
    }
    if (!is_dry) {
        lw_kafka_partition_mark_ready(partition);
    }
    return given;
}

size_t
lw_kafka_source_receive(struct lw_kafka_source *source, struct lw_message *const out[],
                        size_t n, uint64_t bytes_max, bool *ret_has_more)
{
    uint64_t bytes = bytes_max ? bytes_max : 1;
    size_t given = 0;
    uint32_t turns = source->ready.count; /* each partition once, or a waiting one would spin */
    while (turns > 0 && given < n && bytes > 0 && source->ready.count > 0) {
        given += take_turn(source, out + given, n - given, &bytes);
        turns--;
    }
    *ret_has_more = source->ready.count > 0;
    return given;
}
