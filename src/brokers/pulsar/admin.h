/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topics through the broker's admin API (HTTP), for the command: these two block up to the
 * time-out, as describe_topics and create_topics of the broker's table say. libcurl is loaded on
 * first use.
 */
#ifndef LW_BROKERS_PULSAR_ADMIN_H
#define LW_BROKERS_PULSAR_ADMIN_H

#include <laneway/plugin.h>

#include "base/fetch.h"
#include "brokers/pulsar/client.h"

/* What is used of an answer; exposed for tests. */
struct lw_pulsar_admin_answer {
    int32_t partitions; /* -1: it does not say */
    char reason[160];
};

void
lw_pulsar_admin_read(const struct lw_fetch_answer *answer, struct lw_pulsar_admin_answer *ret);

/* `url`: the option admin_url, or NULL: made from the service's address. */
enum lw_status lw_pulsar_admin_describe(struct lw_pulsar_client *client, const char *url,
                                        struct lw_topic_info *topics, size_t n,
                                        int64_t timeout_ms, struct lw_error *ret_error);
enum lw_status lw_pulsar_admin_create(struct lw_pulsar_client *client, const char *url,
                                      struct lw_topic_info *topics, size_t n,
                                      int64_t timeout_ms, struct lw_error *ret_error);

/* Appends the header of a request as the broker's client; nothing where there are no credentials. */
void
lw_pulsar_admin_authorize(const struct lw_pulsar_client *client,
                          const struct lw_pulsar_credentials *credentials, struct lw_text *out);
/* Whom to trust and which certificate to show, as the connections do. */
void
lw_pulsar_admin_trust(const struct lw_pulsar_client *client, struct lw_fetch_request *request);

#endif
