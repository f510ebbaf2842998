/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options that contradict each other, and the page that lists them all. What one option alone may
 * be is in the table.
 */
#include <string.h>

#include "base/error.h"
#include "brokers/pulsar/address.h"
#include "brokers/pulsar/options.h"
#include "brokers/pulsar/wire/command.h"

#define CODE "E0419"
#define WRONG "E0416"

enum { ACK_TIMEOUT_MS_MIN = 10000, HASH_MAX = 65535, DESCRIPTION_BYTES_MAX = 64 };

static enum lw_status
refuse(struct lw_error *ret_error, const char *code, const char *what, const char *help)
{
    enum lw_status status = lw_error_set(ret_error, LW_STATUS_CONFIG, code, "%s", what);
    lw_error_help(ret_error, "%s", help);
    return status;
}

/* -- Sticky ranges ------------------------------------------------------------------------------------ */

static bool
parse_hash(const char **at, uint32_t *ret_value)
{
    uint32_t value = 0;
    size_t digits = strspn(*at, "0123456789");
    if (digits == 0 || digits > 5) {
        return false;
    }
    for (size_t i = 0; i < digits; i++) {
        value = value * 10 + (uint32_t)((*at)[i] - '0');
    }
    *at += digits;
    *ret_value = value;
    return value <= HASH_MAX;
}

static bool
overlaps(const struct lw_pulsar_sticky_range *ranges, size_t count,
         struct lw_pulsar_sticky_range range)
{
    for (size_t i = 0; i < count; i++) {
        if (range.start <= ranges[i].end && ranges[i].start <= range.end) {
            return true;
        }
    }
    return false;
}

bool
lw_pulsar_sticky_ranges_parse(const char *text, struct lw_pulsar_sticky_range out[],
                              size_t *ret_count)
{
    size_t count = 0;
    for (const char *at = text;;) {
        struct lw_pulsar_sticky_range range;
        at += strspn(at, " ");
        bool is_range = parse_hash(&at, &range.start) && *at++ == '-' &&
                        parse_hash(&at, &range.end) && range.start <= range.end;
        if (!is_range || count == LW_PULSAR_STICKY_RANGES_MAX || overlaps(out, count, range)) {
            return false;
        }
        out[count++] = range;
        at += strspn(at, " ");
        if (*at == '\0') {
            *ret_count = count;
            return true;
        }
        if (*at++ != ',') {
            return false;
        }
    }
}

/* -- Contradictions ------------------------------------------------------------------------------------ */

static enum lw_status
check_key_shared(const struct lw_pulsar_consumer_options *options, struct lw_error *ret_error)
{
    struct lw_pulsar_sticky_range ranges[LW_PULSAR_STICKY_RANGES_MAX];
    size_t count = 0;
    bool is_key_shared = options->consumer_type == LW_PULSAR_SUB_KEY_SHARED;
    bool is_sticky = options->key_shared_mode == LW_PULSAR_KEY_SHARED_STICKY;
    if (!is_key_shared &&
        (is_sticky || options->sticky_ranges || options->allow_out_of_order_delivery)) {
        return refuse(ret_error, CODE,
                      "key_shared_policy is given, but the subscription is not key_shared",
                      "say type: key_shared, or leave the policy out");
    }
    if (is_sticky != (options->sticky_ranges != NULL)) {
        return refuse(ret_error, CODE,
                      is_sticky ? "key_shared_mode sticky needs sticky_ranges"
                                : "sticky_ranges are for key_shared_mode sticky",
                      "say key_shared_policy.key_shared_mode: sticky and "
                      "key_shared_policy.sticky_ranges: 0-32767");
    }
    if (is_sticky && !lw_pulsar_sticky_ranges_parse(options->sticky_ranges, ranges, &count)) {
        return refuse(ret_error, WRONG,
                      "key_shared_policy.sticky_ranges is no list of separate ranges",
                      "write it as in 0-32767,40000-65535");
    }
    return LW_STATUS_OK;
}

static enum lw_status
check_delivery(const struct lw_pulsar_consumer_options *options, struct lw_error *ret_error)
{
    bool is_shared = options->consumer_type == LW_PULSAR_SUB_SHARED ||
                     options->consumer_type == LW_PULSAR_SUB_KEY_SHARED;
    if (options->is_read_compacted && is_shared) {
        return refuse(ret_error, CODE,
                      "is_read_compacted needs a subscription of one reader at a time",
                      "say type: exclusive or failover");
    }
    if (options->max_redeliver_count > 0 && !is_shared) {
        return refuse(ret_error, CODE,
                      "dead_letter_policy counts redeliveries, and those are counted for "
                      "shared and key_shared subscriptions only",
                      "say type: shared, or use the pipeline's dead_letter");
    }
    if (options->max_redeliver_count == 0 &&
        (options->dead_letter_topic || options->initial_subscription_name)) {
        return refuse(ret_error, CODE, "dead_letter_policy has no max_redeliver_count",
                      "say dead_letter_policy.max_redeliver_count: 5");
    }
    return LW_STATUS_OK;
}

static enum lw_status
check_times(const struct lw_pulsar_consumer_options *options, struct lw_error *ret_error)
{
    int64_t timeout_ms = options->unacked_messages_timeout_ms;
    if (timeout_ms != 0 && timeout_ms < ACK_TIMEOUT_MS_MIN) {
        return refuse(ret_error, WRONG,
                      "unacked_messages_timeout_ms is 0 or at least 10000, as in the clients",
                      "a shorter one redelivers messages that are being handled");
    }
    if (options->negative_ack_max_delay_ms != 0 &&
        options->negative_ack_max_delay_ms < options->negative_ack_redelivery_delay_ms) {
        return refuse(ret_error, CODE,
                      "negative_ack_redelivery_backoff.max_ms is below "
                      "negative_ack_redelivery_delay_ms, at which it begins",
                      "raise the one or lower the other");
    }
    return LW_STATUS_OK;
}

enum lw_status
lw_pulsar_options_check_consumer(const struct lw_pulsar_consumer_options *options,
                                 struct lw_error *ret_error)
{
    enum lw_status status = check_key_shared(options, ret_error);
    if (status == LW_STATUS_OK) {
        status = check_delivery(options, ret_error);
    }
    return status == LW_STATUS_OK ? check_times(options, ret_error) : status;
}

static enum lw_status
check_client(const struct lw_pulsar_client_options *client, struct lw_error *ret_error)
{
    struct lw_pulsar_host host;
    bool is_tls = false;
    if (client->initial_backoff_interval_ms > client->max_backoff_interval_ms) {
        return refuse(ret_error, CODE,
                      "initial_backoff_interval_ms is above max_backoff_interval_ms",
                      "raise the one or lower the other");
    }
    if (client->proxy_service_url &&
        (!lw_pulsar_address_parse_broker(client->proxy_service_url, &host, &is_tls) ||
         !is_tls)) {
        return refuse(ret_error, WRONG, "proxy_service_url is not one address with TLS",
                      "write it as pulsar+ssl://proxy.example.com:4443");
    }
    if (client->description && strlen(client->description) > DESCRIPTION_BYTES_MAX) {
        return refuse(ret_error, WRONG, "description has more than 64 bytes", "shorten it");
    }
    return LW_STATUS_OK;
}

enum lw_status
lw_pulsar_options_check_broker(const struct lw_pulsar_options *options,
                               struct lw_error *ret_error)
{
    enum lw_status status = check_client(&options->client, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    if (options->producer.chunking_enabled && options->producer.batching_enabled) {
        return refuse(ret_error, CODE,
                      "chunking_enabled and batching_enabled exclude each other",
                      "leave batching_enabled out: chunking switches it off");
    }
    return LW_STATUS_OK;
}

/* -- The page -------------------------------------------------------------------------------------------- */

static void
append_cell(struct lw_text *out, const char *text)
{
    for (; *text; text++) {
        lw_text_append(out, *text == '|' ? "\\" : "");
        lw_text_append_char(out, *text);
    }
}

static void
append_row(const struct lw_option *row, struct lw_text *out)
{
    struct lw_text type;
    lw_text_init(&type);
    lw_option_type_name(row, &type);
    lw_text_format(out, "| `%s`%s%s%s | ", row->name, row->alias ? " (`" : "",
                   row->alias ? row->alias : "", row->alias ? "`)" : "");
    append_cell(out, type.data ? type.data : "");
    lw_text_format(out, " | %s | ", row->initial ? row->initial : "");
    if (row->min < row->max) {
        lw_text_format(out, "%.0f to %.0f", row->min, row->max);
    }
    lw_text_append(out, " | ");
    append_cell(out, row->doc);
    lw_text_append(out, row->is_secret ? " Never shown. |\n" : " |\n");
    lw_text_deinit(&type);
}

static void
append_refused(const struct lw_option *row, struct lw_text *out)
{
    lw_text_format(out, "| `%s` | %s | ", row->name, row->initial ? row->initial : "");
    append_cell(out, row->doc);
    lw_text_append(out, " |\n");
}

static void
append_table(enum lw_pulsar_scope scope, enum lw_pulsar_fate_of_option fate,
             struct lw_text *out)
{
    bool is_refused = fate == LW_PULSAR_OPTION_REFUSED;
    lw_text_append(out, is_refused ? "| option | accepted value | why |\n|---|---|---|\n"
                                   : "| option | type | default | range | meaning |\n"
                                     "|---|---|---|---|---|\n");
    for (const struct lw_option *row = lw_pulsar_option_rows(scope); row->name; row++) {
        if (lw_pulsar_option_fate(row) == fate) {
            (is_refused ? append_refused : append_row)(row, out);
        }
    }
    lw_text_append(out, "\n");
}

static void
append_scope(enum lw_pulsar_scope scope, const char *title, struct lw_text *out)
{
    lw_text_format(out, "## %s\n\n", title);
    append_table(scope, LW_PULSAR_OPTION_SERVED, out);
    lw_text_append(out, "Accepted, but there is nothing to set:\n\n");
    append_table(scope, LW_PULSAR_OPTION_EMPTY, out);
    lw_text_append(out, "Refused (E0415), except with the accepted value:\n\n");
    append_table(scope, LW_PULSAR_OPTION_REFUSED, out);
}

void
lw_pulsar_options_reference(struct lw_text *out)
{
    lw_text_append(
        out,
        "# Options of Pulsar\n\n"
        "Made from the table in src/brokers/pulsar/option_rows.c; do not edit.\n\n"
        "The options of the official clients are properties here, by the names of the "
        "Python\nclient. Those of the broker's `properties` may be of all three kinds; "
        "consumer options there\nare the defaults of its subscriptions. Those of "
        "`consumer.properties` are consumer options.\nA prefix `client.`, `consumer.` or "
        "`producer.` may be written; `properties.NAME` without one\nis the consumer's.\n\n");
    append_scope(LW_PULSAR_SCOPE_CLIENT, "Client", out);
    append_scope(LW_PULSAR_SCOPE_CONSUMER, "Consumer", out);
    append_scope(LW_PULSAR_SCOPE_PRODUCER, "Producer", out);
}
