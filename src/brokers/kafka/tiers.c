/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delayed retries without a broker that can delay: one topic per delay, named
 * `<retry topic>.<delay>`, each in order of publication, so that its first message is the next
 * one due and a long delay never blocks a short one. The due time is in the header
 * x-laneway-not-before (ms since 1970); a forged or foreign one holds a tier for the tier's own
 * delay at most. Pure.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "brokers/kafka/kafka.h"

char *
lw_kafka_tier_name(const char *retry_topic, int64_t delay_ms)
{
    char delay[64];
    lw_text_from_duration_ms(delay_ms, delay, sizeof delay);
    struct lw_text name;
    lw_text_init(&name);
    lw_text_format(&name, "%s.%s", retry_topic, delay);
    return lw_text_take(&name);
}

const struct lw_kafka_tier *
lw_kafka_tier_choose(const struct lw_kafka_source *source, int64_t delay_ms)
{
    if (source->tier_count == 0) {
        return NULL;
    }
    for (size_t i = 0; i < source->tier_count; i++) {
        if (source->tiers[i].delay_ms >= delay_ms) {
            return &source->tiers[i];
        }
    }
    return &source->tiers[source->tier_count - 1];
}

int64_t
lw_kafka_tier_due_ms(const rd_kafka_message_t *message, int64_t tier_ms, int64_t wall_ms)
{
    rd_kafka_headers_t *headers = NULL;
    const void *value = NULL;
    size_t size = 0;
    int64_t due_ms = 0;
    if (rd_kafka_message_headers(message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
        rd_kafka_header_get_last(headers, "x-laneway-not-before", &value, &size) !=
            RD_KAFKA_RESP_ERR_NO_ERROR ||
        !lw_bytes_to_int((struct lw_bytes){ value, size }, &due_ms)) {
        return wall_ms;
    }
    return due_ms < wall_ms + tier_ms ? due_ms : wall_ms + tier_ms;
}
