/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deliveries made by hand: the messages point to the test's own keys, so nothing is copied and
 * nothing but the delivery itself is freed. See stage.h.
 */
#include "tests/support/test.h"

#include "tests/core/stage.h"

#include <string.h>

#include "base/alloc.h"

void
stage_topic_init(struct stage_topic *topic, uint32_t index, uint32_t rank,
                 enum lw_ordering ordering, enum lw_keyless keyless, bool has_ledger)
{
    memset(topic, 0, sizeof(*topic));
    lw_subscription_init(&topic->subscription, index);
    lw_subscription_set_ordering(&topic->subscription, ordering, keyless);
    lw_rank_node_init(&topic->subscription.choose, rank);
    lw_list_init(&topic->partition.held);
    topic->partition.subscription = &topic->subscription;
    topic->partition.place = lw_lane_place(&topic->subscription, 0);
    topic->partition.has_ledger = has_ledger;
}

struct lw_delivery *
stage_make(struct stage_topic *topic, const char *key)
{
    struct lw_delivery *delivery = lw_alloc(sizeof(*delivery));
    assert_non_null(delivery);
    delivery->message.key = key ? lw_bytes_of(key) : (struct lw_bytes){ NULL, 0 };
    delivery->message.position = topic->next++;
    delivery->subscription = &topic->subscription;
    delivery->partition = &topic->partition;
    lw_delivery_set_state(delivery, LW_STATE_QUEUED);
    lw_list_push(&topic->partition.held, &delivery->held);
    return delivery;
}

struct lw_delivery *
stage_admit(struct lw_scheduler *scheduler, struct stage_topic *topic, const char *key)
{
    struct lw_delivery *delivery = stage_make(topic, key);
    assert_int_equal(lw_scheduler_admit(scheduler, delivery), LW_STATUS_OK);
    return delivery;
}

void
stage_end(struct lw_scheduler *scheduler, struct lw_delivery *delivery)
{
    lw_scheduler_free_slot(scheduler, delivery->subscription);
    lw_scheduler_release(scheduler, delivery);
    stage_free(delivery);
}

void
stage_park(struct lw_scheduler *scheduler, struct lw_delivery *delivery)
{
    lw_scheduler_free_slot(scheduler, delivery->subscription);
}

void
stage_free(struct lw_delivery *delivery)
{
    struct lw_partition *partition = delivery->partition;
    lw_list_remove(&delivery->held);
    struct lw_list *node = lw_list_first(&partition->held);
    if (node && partition->has_ledger) {
        struct lw_delivery *first = LW_CONTAINER(node, struct lw_delivery, held);
        if (first->state == LW_STATE_QUEUED && first->lane) {
            lw_lane_promote(first->lane);
        }
    }
    lw_free(delivery);
}
