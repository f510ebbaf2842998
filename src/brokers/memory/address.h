/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses (`memory:NAME` and properties), conventional topic names, topic administration. */
#ifndef LW_BROKERS_MEMORY_ADDRESS_H
#define LW_BROKERS_MEMORY_ADDRESS_H

#include "brokers/memory/data.h"

/* Opens the hub that the URL names; INVALID for a bad URL or property. */
enum lw_status lw_memory_address_open(const char *url, const struct lw_property *properties,
                                      size_t property_count, struct lw_memory_hub **ret_hub,
                                      struct lw_error *ret_error);
/* Kafka's convention: "{topic}.retry" and "{topic}.dlq". */
bool lw_memory_address_position_topic(enum lw_topic_kind kind, const char *topic,
                                      const char *subscription, char *out, size_t size);
/* Pulsar's convention: "<topic>-<subscription>-RETRY" and "-DLQ". */
bool lw_memory_address_individual_topic(enum lw_topic_kind kind, const char *topic,
                                        const char *subscription, char *out, size_t size);
/* As the table says; they answer at once. */
enum lw_status
lw_memory_address_describe(struct lw_broker *broker, struct lw_topic_info *topics, size_t n,
                           int64_t timeout_ms, struct lw_error *ret_error);
enum lw_status
lw_memory_address_create(struct lw_broker *broker, struct lw_topic_info *topics, size_t n,
                         int64_t timeout_ms, struct lw_error *ret_error);

#endif
