/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has a subscription that is taken: the broker's refusal does not tell, its admin API does. It
 * is asked only where admin_url says where that is, without blocking, and the answer is one line of
 * the log, again when it is another one. Loop thread.
 */
#ifndef LW_BROKERS_PULSAR_HOLDER_H
#define LW_BROKERS_PULSAR_HOLDER_H

#include "base/fetch.h"
#include "brokers/pulsar/client.h"

struct lw_pulsar_holder {
    struct lw_pulsar_client *client;
    const char *base; /* admin_url, borrowed; NULL: nothing is asked */
    struct lw_fetch fetch;
    struct lw_pulsar_auth_request ask;
    char *topic; /* of the question under way, or NULL */
    char *subscription;
    struct lw_text said; /* what was logged last */
};

void lw_pulsar_holder_init(struct lw_pulsar_holder *holder, struct lw_pulsar_client *client,
                           const char *base);
/* A question under way is given up. */
void lw_pulsar_holder_deinit(struct lw_pulsar_holder *holder);
/* Texts are copied. Nothing happens while another question is under way. */
void lw_pulsar_holder_ask(struct lw_pulsar_holder *holder, const char *topic,
                          const char *subscription);

#endif
