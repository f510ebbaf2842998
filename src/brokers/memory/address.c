/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a memory broker is found and named: the URL gives the hub, properties give the options of a
 * hub that is new (one that exists keeps its own; asking for something else is an error, since it
 * would be ignored). Topic administration answers at once; the time-outs mean nothing here.
 */
#include "brokers/memory/address.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "brokers/memory/broker.h"
#include "brokers/memory/topic.h"

#define SCHEME "memory:"

struct choice {
    const char *property;
    const char *values[2]; /* of the enum's 0 and 1 */
};

enum choice_index { CHOICE_MODE, CHOICE_SHARING, CHOICE_PROTOCOL, CHOICE_COUNT };

static const struct choice choices[CHOICE_COUNT] = {
    [CHOICE_MODE] = { "mode", { "position", "individual" } },
    [CHOICE_SHARING] = { "sharing", { "shared", "exclusive" } },
    [CHOICE_PROTOCOL] = { "protocol", { "eager", "cooperative" } },
};

static void
apply(struct lw_memory_options *options, enum choice_index index, int value)
{
    switch (index) {
    case CHOICE_MODE:
        options->mode = (enum lw_memory_mode)value;
        break;
    case CHOICE_SHARING:
        options->sharing = (enum lw_memory_sharing)value;
        break;
    case CHOICE_PROTOCOL:
        options->protocol = (enum lw_memory_protocol)value;
        break;
    case CHOICE_COUNT:
        break;
    }
}

static enum lw_status
read_choice(struct lw_memory_options *options, enum choice_index index,
            const struct lw_property *property, struct lw_error *ret_error)
{
    const struct choice *choice = &choices[index];
    for (int value = 0; value < 2; value++) {
        if (strcmp(property->value, choice->values[value]) == 0) {
            apply(options, index, value);
            return LW_STATUS_OK;
        }
    }
    return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                        "the memory broker's %s is '%s' or '%s', not '%s'", choice->property,
                        choice->values[0], choice->values[1], property->value);
}

static enum lw_status
read_property(struct lw_memory_options *options, const struct lw_property *property,
              struct lw_error *ret_error)
{
    for (int i = 0; i < CHOICE_COUNT; i++) {
        if (strcmp(property->name, choices[i].property) == 0) {
            return read_choice(options, (enum choice_index)i, property, ret_error);
        }
    }
    int64_t partitions = 0;
    if (strcmp(property->name, "partitions") != 0) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                            "the memory broker has no property '%s'", property->name);
    }
    if (!lw_text_to_int(property->value, &partitions) || partitions < 1 ||
        partitions > LW_MEMORY_PARTITIONS_MAX) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                            "the memory broker's partitions are 1 to %d, not '%s'",
                            LW_MEMORY_PARTITIONS_MAX, property->value);
    }
    options->default_partitions = (int32_t)partitions;
    return LW_STATUS_OK;
}

static bool
is_same(const struct lw_memory_options *a, const struct lw_memory_options *b)
{
    return a->mode == b->mode && a->sharing == b->sharing && a->protocol == b->protocol &&
           a->default_partitions == b->default_partitions;
}

enum lw_status
lw_memory_address_open(const char *url, const struct lw_property *properties,
                       size_t property_count, struct lw_memory_hub **ret_hub,
                       struct lw_error *ret_error)
{
    if (strncmp(url, SCHEME, strlen(SCHEME)) != 0) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                            "'%s' is not the address of a memory broker", url);
    }
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    for (size_t i = 0; i < property_count; i++) {
        enum lw_status status = read_property(&options, &properties[i], ret_error);
        if (status != LW_STATUS_OK) {
            return status;
        }
    }
    struct lw_memory_hub *hub = lw_memory_hub_open(url + strlen(SCHEME), &options);
    if (!hub) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a hub");
    }
    if (property_count > 0 && !is_same(&hub->options, &options)) {
        lw_memory_hub_close(hub);
        return lw_error_set(ret_error, LW_STATUS_INVALID, "",
                            "'%s' exists already with other properties", url);
    }
    *ret_hub = hub;
    return LW_STATUS_OK;
}

bool
lw_memory_address_position_topic(enum lw_topic_kind kind, const char *topic,
                                 const char *subscription, char *out, size_t size)
{
    (void)subscription;
    int length = snprintf(out, size, "%s.%s", topic, kind == LW_TOPIC_RETRY ? "retry" : "dlq");
    return length > 0 && (size_t)length < size;
}

bool
lw_memory_address_individual_topic(enum lw_topic_kind kind, const char *topic,
                                   const char *subscription, char *out, size_t size)
{
    int length = snprintf(out, size, "%s-%s-%s", topic, subscription,
                          kind == LW_TOPIC_RETRY ? "RETRY" : "DLQ");
    return length > 0 && (size_t)length < size;
}

enum lw_status
lw_memory_address_describe(struct lw_broker *broker, struct lw_topic_info *topics, size_t n,
                           int64_t timeout_ms, struct lw_error *ret_error)
{
    (void)timeout_ms;
    (void)ret_error;
    const struct lw_memory_hub *hub = lw_memory_broker_hub(broker);
    for (size_t i = 0; i < n; i++) {
        topics[i].partitions = lw_memory_hub_partitions(hub, topics[i].name);
        topics[i].status = LW_STATUS_OK;
        topics[i].reason[0] = '\0';
    }
    return LW_STATUS_OK;
}

enum lw_status
lw_memory_address_create(struct lw_broker *broker, struct lw_topic_info *topics, size_t n,
                         int64_t timeout_ms, struct lw_error *ret_error)
{
    (void)timeout_ms;
    (void)ret_error;
    struct lw_memory_hub *hub = lw_memory_broker_hub(broker);
    for (size_t i = 0; i < n; i++) {
        topics[i].status = lw_memory_hub_create_topic(hub, topics[i].name,
                                                      topics[i].partitions);
        lw_text_copy(topics[i].reason, sizeof topics[i].reason,
                     topics[i].status == LW_STATUS_OK ? "" : lw_status_name(topics[i].status));
    }
    return LW_STATUS_OK;
}
