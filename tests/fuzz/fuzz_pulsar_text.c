/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text where a person may write one for Pulsar: service URLs, the admin address, names of
 * topics, ids, hash ranges, params of credentials, options by name. Holds that what was parsed
 * parses again from its own form, and that nothing leaks.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "brokers/pulsar/address.h"
#include "brokers/pulsar/auth_settings.h"
#include "brokers/pulsar/names.h"
#include "brokers/pulsar/options.h"
#include "brokers/pulsar/wire/message_id.h"
#include "service/address_help.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check_address(const char *text)
{
    char help[256];
    bool is_tls = false;
    struct lw_error error;
    struct lw_pulsar_host host;
    struct lw_pulsar_address address = { 0 };
    struct lw_pulsar_address again = { 0 };
    struct lw_text canonical;
    lw_text_init(&canonical);
    lw_address_help(text, help, sizeof help);
    (void)lw_pulsar_address_parse_broker(text, &host, &is_tls);
    if (lw_pulsar_address_parse(text, &address, &error) == LW_STATUS_OK) {
        lw_pulsar_address_format(&address, &canonical);
        lw_assert(lw_pulsar_address_parse(canonical.data, &again, &error) == LW_STATUS_OK);
        lw_assert(again.count == address.count && again.is_tls == address.is_tls);
        lw_text_clear(&canonical);
        (void)lw_pulsar_address_admin(&address, text, &canonical, &error);
        lw_pulsar_address_deinit(&again);
        lw_pulsar_address_deinit(&address);
    }
    lw_text_deinit(&canonical);
}

static void
check_name(const char *text)
{
    char other[LW_PULSAR_NAME_BYTES];
    struct lw_error error;
    struct lw_pulsar_name name;
    struct lw_pulsar_name again;
    struct lw_text path;
    if (lw_pulsar_name_parse(text, &name, &error) != LW_STATUS_OK) {
        return;
    }
    lw_assert(lw_pulsar_name_parse(name.text, &again, &error) == LW_STATUS_OK);
    lw_assert(strcmp(name.text, again.text) == 0 && name.partition == again.partition);
    lw_assert(lw_pulsar_name_is_same(text, name.text));
    lw_text_init(&path);
    lw_pulsar_name_rest_path(&name, &path);
    lw_assert(path.is_failed || strpbrk(path.data, " ?#") == NULL);
    lw_text_deinit(&path);
    (void)lw_pulsar_name_namespace(&name, other, sizeof other);
    (void)lw_pulsar_name_default_topic(LW_TOPIC_DEAD_LETTER, text, "s", other, sizeof other);
    (void)lw_pulsar_name_is_system(&name);
    lw_pulsar_name_to_base(&name);
    lw_assert(name.partition == -1 || name.text[0] == '\0');
}

static void
check_id_and_ranges(const char *text)
{
    struct lw_pulsar_message_id id;
    struct lw_pulsar_sticky_range ranges[LW_PULSAR_STICKY_RANGES_MAX];
    size_t count = 0;
    (void)lw_pulsar_message_id_parse(text, &id);
    (void)lw_pulsar_token_expiry(text);
    if (lw_pulsar_sticky_ranges_parse(text, ranges, &count)) {
        lw_assert(count > 0 && count <= LW_PULSAR_STICKY_RANGES_MAX);
        for (size_t i = 0; i < count; i++) {
            lw_assert(ranges[i].start <= ranges[i].end && ranges[i].end <= 65535);
        }
    }
}

static void
check_credentials(const char *text)
{
    static const char *const plugins[] = { "token", "basic", "tls", "oauth2" };
    for (size_t i = 0; i < sizeof plugins / sizeof plugins[0]; i++) {
        struct lw_error error;
        struct lw_pulsar_auth_settings settings;
        struct lw_pulsar_auth_options options = { .plugin = plugins[i], .params = text };
        if (lw_pulsar_auth_settings_init(&settings, &options, &error) == LW_STATUS_OK) {
            lw_pulsar_auth_settings_deinit(&settings);
        }
    }
}

/* "name=value"; without a sign the text is the value of a few options. */
static void
check_options(char *text)
{
    struct lw_error error;
    struct lw_pulsar_options options;
    struct lw_property items[] = { { "consumer_type", text },
                                   { "operation_timeout_seconds", text },
                                   { "negative_ack_redelivery_backoff.multiplier", text },
                                   { "compression_type", text } };
    char *equals = strchr(text, '=');
    if (equals) {
        *equals = '\0';
        items[0] = (struct lw_property){ text, equals + 1 };
    }
    for (size_t i = 0; i < (equals ? 1 : sizeof items / sizeof items[0]); i++) {
        lw_pulsar_options_init(&options);
        (void)lw_pulsar_options_read_broker(&options, &items[i], 1, &error);
        lw_pulsar_options_init(&options);
        (void)lw_pulsar_options_read_consumer(&options.consumer, &items[i], 1, &error);
        (void)lw_pulsar_options_check_consumer(&options.consumer, &error);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    uint64_t live = lw_alloc_live();
    char *text = malloc(size + 1);
    if (size > 0) {
        memcpy(text, bytes, size);
    }
    text[size] = '\0';
    check_address(text);
    check_name(text);
    check_id_and_ranges(text);
    check_credentials(text);
    check_options(text);
    free(text);
    lw_assert(lw_alloc_live() == live);
    return 0;
}
