/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Pulsar client as the reader of configurations sees it: addresses, names of topics, options
 * by the names of the official clients. Nothing here connects; everything is asked of the pure
 * parts of brokers/pulsar.
 */
#include "service/registry_pulsar.h"

#if LW_WITH_PULSAR

#include <string.h>

#include "brokers/pulsar/address.h"
#include "brokers/pulsar/auth_settings.h"
#include "brokers/pulsar/options.h"
#include "brokers/pulsar/pattern.h"
#include "brokers/pulsar/pulsar.h"
#include "brokers/pulsar/wire/command.h"

static enum lw_status
check_url(const char *url, struct lw_error *ret_error)
{
    struct lw_pulsar_address address = { 0 };
    enum lw_status status = lw_pulsar_address_parse(url, &address, ret_error);
    if (status == LW_STATUS_OK) {
        lw_pulsar_address_deinit(&address);
    }
    return status;
}

static enum lw_status
check_property(bool is_consumer, const struct lw_property *property, struct lw_error *ret_error)
{
    struct lw_pulsar_options options;
    lw_pulsar_options_init(&options);
    if (is_consumer) {
        return lw_pulsar_options_read_consumer(&options.consumer, property, 1, ret_error);
    }
    return lw_pulsar_options_read_broker(&options, property, 1, ret_error);
}

/* What can be said of credentials without reading files or the environment. */
static enum lw_status
check_auth(const struct lw_pulsar_client_options *options, struct lw_error *ret_error)
{
    struct lw_pulsar_auth_options auth;
    struct lw_pulsar_auth_settings settings;
    lw_pulsar_settings_auth(options, &auth);
    enum lw_status status = lw_pulsar_auth_settings_init(&settings, &auth, ret_error);
    if (status == LW_STATUS_OK) {
        lw_pulsar_auth_settings_deinit(&settings);
    }
    return status;
}

static enum lw_status
check_admin(const struct lw_pulsar_client_options *options, struct lw_error *ret_error)
{
    struct lw_text url;
    struct lw_pulsar_host host = { .name = "localhost" };
    struct lw_pulsar_address address = { .hosts = &host, .count = 1 };
    lw_text_init(&url);
    enum lw_status status = lw_pulsar_address_admin(&address, options->admin_url, &url,
                                                    ret_error);
    lw_text_deinit(&url);
    return status;
}

static enum lw_status
check_broker(const struct lw_property *properties, size_t count, struct lw_error *ret_error)
{
    struct lw_pulsar_options options;
    lw_pulsar_options_init(&options);
    enum lw_status status = lw_pulsar_options_read_broker(&options, properties, count,
                                                          ret_error);
    if (status == LW_STATUS_OK) {
        status = check_auth(&options.client, ret_error);
    }
    return status == LW_STATUS_OK ? check_admin(&options.client, ret_error) : status;
}

static const char *
type_name(int32_t type)
{
    switch (type) {
    case LW_PULSAR_SUB_EXCLUSIVE:
        return "exclusive";
    case LW_PULSAR_SUB_FAILOVER:
        return "failover";
    case LW_PULSAR_SUB_KEY_SHARED:
        return "key_shared";
    default: /* it is a number of the wire */
        return "shared";
    }
}

static bool
has_queue_size(const struct lw_property *properties, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = properties[i].name;
        name += strncmp(name, "consumer.", 9) == 0 ? 9 : 0;
        if (strcmp(name, "receiver_queue_size") == 0) {
            return true;
        }
    }
    return false;
}

static enum lw_status
read_consumer(const struct lw_config_broker *broker, const struct lw_property *properties,
              size_t count, struct lw_config_consumer *ret_consumer, struct lw_error *ret_error)
{
    struct lw_pulsar_options options;
    struct lw_pulsar_consumer_options *consumer = &options.consumer;
    lw_pulsar_options_init(&options);
    enum lw_status status = lw_pulsar_options_read_broker(&options, broker->properties,
                                                          broker->property_count, NULL);
    if (status != LW_STATUS_OK) {
        lw_pulsar_options_init(&options); /* it is said at the broker */
    }
    bool has_queue = has_queue_size(broker->properties, broker->property_count) ||
                     has_queue_size(properties, count);
    status = lw_pulsar_options_read_consumer(consumer, properties, count, ret_error);
    if (status == LW_STATUS_OK) {
        status = lw_pulsar_options_check_consumer(consumer, ret_error);
    }
    int32_t type = consumer->consumer_type;
    *ret_consumer = (struct lw_config_consumer){
        .is_shared = type == LW_PULSAR_SUB_SHARED || type == LW_PULSAR_SUB_KEY_SHARED,
        .keeps_keys = type != LW_PULSAR_SUB_SHARED,
        .keeps_all = type == LW_PULSAR_SUB_EXCLUSIVE || type == LW_PULSAR_SUB_FAILOVER,
        .type = type_name(type),
        .has_policy = consumer->max_redeliver_count > 0,
        .policy_topic = consumer->dead_letter_topic,
        .queue_size = has_queue ? (uint32_t)consumer->receiver_queue_size : 0,
    };
    return status;
}

static enum lw_status
read_topic(const char *topic, char *out, size_t size, struct lw_error *ret_error)
{
    struct lw_pulsar_name name;
    enum lw_status status = lw_pulsar_name_parse(topic, &name, ret_error);
    if (status == LW_STATUS_OK) {
        lw_text_copy(out, size, name.text);
    }
    return status;
}

/* As the broker's own source decides. */
static bool
is_pattern(const char *topic)
{
    return strpbrk(topic, "*+?[](){}|^$\\") != NULL;
}

static enum lw_status
check_pattern(const char *text, struct lw_error *ret_error)
{
    struct lw_pulsar_pattern pattern;
    enum lw_status status = lw_pulsar_pattern_init(&pattern, text, LW_PULSAR_REGEX_ALL,
                                                   ret_error);
    if (status == LW_STATUS_OK) {
        lw_pulsar_pattern_deinit(&pattern);
    }
    return status;
}

static bool
has_topic(const char *text, const char *topic)
{
    struct lw_pulsar_pattern pattern;
    if (lw_pulsar_pattern_init(&pattern, text, LW_PULSAR_REGEX_ALL, NULL) != LW_STATUS_OK) {
        return false;
    }
    bool has = lw_pulsar_pattern_has(&pattern, topic);
    lw_pulsar_pattern_deinit(&pattern);
    return has;
}

static bool
default_topic(bool is_retry, const char *topic, const char *subscription, char *out,
              size_t size)
{
    return lw_pulsar_name_default_topic(is_retry ? LW_TOPIC_RETRY : LW_TOPIC_DEAD_LETTER, topic,
                                        subscription, out, size);
}

const struct lw_config_client *
lw_registry_pulsar(void)
{
    static const struct lw_config_client client = {
        .client_name = "Pulsar",
        .check_url = check_url,
        .check_property = check_property,
        .check_broker = check_broker,
        .read_consumer = read_consumer,
        .read_topic = read_topic,
        .is_pattern = is_pattern,
        .check_pattern = check_pattern,
        .has_topic = has_topic,
        .default_topic = default_topic,
    };
    return &client;
}

#endif
