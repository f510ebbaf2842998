/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding things at the service: how many partitions a topic has, which broker owns a topic (and
 * the connection to it, through redirects and proxies), which topics a namespace holds. Each is
 * one attempt within the operation time-out; who asks decides about another. Equal attempts under
 * way share one request; at most options.lookups_max are in flight. Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_LOOKUP_H
#define LW_BROKERS_PULSAR_LOOKUP_H

#include "brokers/pulsar/connection.h"

struct lw_pulsar_topics {
    struct lw_pulsar_list names; /* texts; lives during the call */
    struct lw_bytes hash;
    bool is_filtered; /* by our pattern, at the broker */
    bool is_changed;  /* false: as the hash given, names are empty */
};

/* Owned by who asks; begins as zeros; one attempt at a time. */
struct lw_pulsar_find;
struct lw_pulsar_find_result {
    const struct lw_pulsar_failure *failure; /* NULL: found */
    struct lw_pulsar_connection *owner;      /* lw_pulsar_find_owner */
    uint32_t partitions;                     /* lw_pulsar_find_partitions; 0: not partitioned */
    bool is_exact; /* of partitions: an absent topic would have failed; old brokers say 0 */
    const struct lw_pulsar_topics *topics; /* lw_pulsar_find_topics */
};
typedef void (*lw_pulsar_find_fn)(struct lw_pulsar_find *find,
                                  const struct lw_pulsar_find_result *result);
struct lw_pulsar_find {
    struct lw_list link;
    lw_pulsar_find_fn fn;
    struct lw_pulsar_search *search; /* the shared attempt */
    bool is_asked;                   /* from the call until the answer */
};

/* `topic` is canonical and is copied. fn is called later, once. */
void lw_pulsar_find_partitions(struct lw_pulsar_client *client, struct lw_pulsar_find *find,
                               const char *topic, bool creates, lw_pulsar_find_fn fn);
/*
 * A concrete topic (a partition by its own name). `assigned` (a URL from CLOSE_*: with TLS the one
 * for TLS; or null) is tried before asking; if it cannot be reached the service is asked.
 */
void lw_pulsar_find_owner(struct lw_pulsar_client *client, struct lw_pulsar_find *find,
                          const char *topic, struct lw_bytes assigned, lw_pulsar_find_fn fn);
/* The same at another cluster, to which the topic has moved: `service` is its URL, of one host. */
void lw_pulsar_find_owner_at(struct lw_pulsar_client *client, struct lw_pulsar_find *find,
                             const char *topic, const char *service, lw_pulsar_find_fn fn);
/*
 * TOPIC_MIGRATED: writes the first host's URL of the cluster to which `topic` has moved, and says
 * so if it is new. "" when there is none that this client may use.
 */
void lw_pulsar_topic_moved(struct lw_pulsar_client *client, const char *topic,
                           const struct lw_pulsar_topic_migrated *to, char *out, size_t size);
void lw_pulsar_find_topics(struct lw_pulsar_client *client, struct lw_pulsar_find *find,
                           const char *namespace_name, int32_t mode, const char *pattern,
                           struct lw_bytes hash, lw_pulsar_find_fn fn);
void lw_pulsar_find_cancel(struct lw_pulsar_find *find); /* harmless if idle */

#endif
