/* SPDX-License-Identifier: Apache-2.0 */
/* See subscription.h. */
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
}

bool
lw_subscription_is_eligible(const struct lw_subscription *subscription)
{
    if (lw_list_is_empty(&subscription->ready) && lw_list_is_empty(&subscription->urgent) &&
        subscription->loose.first == NULL) {
        return false;
    }
    if (subscription->concurrency != 0 && subscription->running >= subscription->concurrency) {
        return false;
    }
    return !subscription->is_paused && !subscription->is_engine_full &&
           !subscription->is_engine_down;
}
