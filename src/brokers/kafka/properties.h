/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties of librdkafka as users write them: which exist, which are ours and why, which were
 * probably meant. Any property can be given except those that would break a promise. Besides the
 * client's own names there is `prefetch_bytes`, the memory that one group's prefetch may use, and
 * `auto.offset.reset` also takes Java's `none`.
 */
#ifndef LW_BROKERS_KAFKA_PROPERTIES_H
#define LW_BROKERS_KAFKA_PROPERTIES_H

#include <stdbool.h>
#include <stddef.h>

#include <laneway/laneway.h>

/*
 * Returns NULL when the property may be given with that value, else the reason in a sentence.
 * The text lives until the next call. For the thread that reads the configuration.
 */
const char *lw_kafka_property_check(const char *name, const char *value);
/* Returns why this property is ours (or is nothing for a file), NULL when it may be given. */
const char *lw_kafka_property_owned(const char *name, const char *value);
/* Writes the name that was probably meant into `out`; false when nothing is near. */
bool lw_kafka_property_suggest(const char *name, char *out, size_t size);
/* Calls `fn` with every property that the client knows; `is_owned`: it would be refused. */
void
lw_kafka_property_each(void (*fn)(const char *name, bool is_owned, void *user), void *user);

enum lw_kafka_scope {
    LW_KAFKA_SCOPE_NONE,
    LW_KAFKA_SCOPE_BOTH,
    LW_KAFKA_SCOPE_CONSUMER,
    LW_KAFKA_SCOPE_PRODUCER
};

/* The client's own list, read from the client once. */
struct lw_kafka_property_table;
struct lw_kafka_property_table *lw_kafka_property_table_create(void);
void lw_kafka_property_table_destroy(struct lw_kafka_property_table *table);
enum lw_kafka_scope
lw_kafka_property_scope(const struct lw_kafka_property_table *table, const char *name);
/* Properties of OAUTHBEARER's client credentials, which our own token fetcher serves. */
bool lw_kafka_property_is_token(const char *name);

#endif
