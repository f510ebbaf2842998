/* SPDX-License-Identifier: Apache-2.0 */
/* Topic names made from templates: `{topic}` stands for the source; `<retry.topic>.<delay>`. */
#ifndef LW_POLICY_TOPIC_NAMES_H
#define LW_POLICY_TOPIC_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* false when it does not fit or is empty. */
bool lw_topic_expand(const char *pattern, const char *topic, char *out, size_t size);
/* "orders.retry" + 30000 -> "orders.retry.30s". */
bool lw_topic_tier(const char *retry_topic, int64_t delay_ms, char *out, size_t size);
/* A legal Kafka topic name: 1..249 of [A-Za-z0-9._-], not "." or "..". */
bool lw_topic_is_valid_kafka(const char *topic);

#endif
