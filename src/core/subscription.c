/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What forbids or allows a subscription to run, and how its ordering chooses lanes.
 *
 * Owns no list: the scheduler moves lanes and deliveries, the dispatcher moves the counts. Pure;
 * loop thread only.
 */
#include "core/subscription.h"

#include <string.h>

void
lw_subscription_init(struct lw_subscription *subscription, uint32_t index)
{
    memset(subscription, 0, sizeof(*subscription));
    subscription->index = index;
    lw_list_init(&subscription->ready);
    lw_list_init(&subscription->urgent);
    lw_list_init(&subscription->partitions);
    lw_gather_init(&subscription->gather);
}

void
lw_subscription_set_ordering(struct lw_subscription *subscription, enum lw_ordering ordering,
                             enum lw_keyless keyless)
{
    subscription->ordering = ordering;
    subscription->keyless = keyless;
    if (ordering == LW_ORDERING_NONE) {
        subscription->lanes = LW_LANES_NONE;
    } else if (ordering == LW_ORDERING_PARTITION) {
        subscription->lanes = LW_LANES_PARTITION;
    } else {
        subscription->lanes = keyless == LW_KEYLESS_ROTATE ? LW_LANES_KEYED : LW_LANES_KEY;
    }
}

bool
lw_subscription_is_eligible(const struct lw_subscription *subscription)
{
    return lw_subscription_has_ready(subscription) && lw_subscription_may_run(subscription);
}
