/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of topics: every spelling of one topic becomes one text, which is what goes onto the wire,
 * keys tables and stands in identities (without the partition). `orders` is
 * persistent://public/default/orders; tenant/namespace/topic and full names of both domains are
 * taken, and so is the old form with a cluster (current brokers refuse it themselves). A local
 * name is free text and stays as it is, a percent sign included: it is encoded where a URL needs
 * it and never decoded. Pure, no allocation.
 */
#ifndef LW_BROKERS_PULSAR_NAMES_H
#define LW_BROKERS_PULSAR_NAMES_H

#include <laneway/plugin.h>

#include "base/text.h"

enum { LW_PULSAR_NAME_BYTES = 1024 }; /* of a canonical name, with its zero */

struct lw_pulsar_name {
    char text[LW_PULSAR_NAME_BYTES]; /* canonical, with the partition */
    size_t size;
    size_t base_size;       /* of the part without "-partition-N" */
    size_t namespace_start; /* "tenant/namespace", or "tenant/cluster/namespace" */
    size_t namespace_size;
    size_t local_start;
    int32_t partition; /* -1: not one */
    bool is_persistent;
    bool has_cluster; /* the old form */
};

/*
 * Parses any spelling. INVALID with E0123 and a help otherwise. A control character or invalid
 * UTF-8 is refused everywhere.
 */
enum lw_status lw_pulsar_name_parse(const char *text, struct lw_pulsar_name *ret_name,
                                    struct lw_error *ret_error);
/* True when both spell the same topic; false when one of them is no name. */
bool lw_pulsar_name_is_same(const char *a, const char *b);
/* Drops the partition. */
void lw_pulsar_name_to_base(struct lw_pulsar_name *name);
/* Writes the name of a partition of name's base; false when it does not fit. */
bool lw_pulsar_name_partition(const struct lw_pulsar_name *name, int32_t partition, char *out,
                              size_t size);
/* The namespace as GET_TOPICS_OF_NAMESPACE wants it; false when it does not fit. */
bool lw_pulsar_name_namespace(const struct lw_pulsar_name *name, char *out, size_t size);
/* True for the broker's own topics: local names that begin with __ and all of pulsar/system. */
bool lw_pulsar_name_is_system(const struct lw_pulsar_name *name);
/*
 * The conventional topic, as lw_broker_ops.default_topic wants it: "BASE-SUBSCRIPTION-RETRY" or
 * "-DLQ" on the base topic in canonical form.
 */
bool lw_pulsar_name_default_topic(enum lw_topic_kind kind, const char *topic,
                                  const char *subscription, char *out, size_t size);
/* Appends "persistent/tenant/namespace/local" for the admin API: the local name percent-encoded. */
void lw_pulsar_name_rest_path(const struct lw_pulsar_name *name, struct lw_text *out);

#endif
