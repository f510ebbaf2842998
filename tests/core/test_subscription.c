/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a subscription may be chosen: something is ready, and nothing of its own forbids it. And
 * which lane its ordering means.
 */
#include "tests/support/test.h"

#include "core/subscription.h"

/* One with a loose delivery's node in its queue. */
static void
init_ready(struct lw_subscription *subscription, struct lw_queue_node *node)
{
    lw_subscription_init(subscription, 3);
    lw_queue_push(&subscription->loose, node);
}

static void
an_empty_one_is_not_eligible(void **state)
{
    struct lw_subscription subscription;
    (void)state;
    lw_subscription_init(&subscription, 3);
    assert_int_equal(subscription.index, 3);
    assert_false(lw_subscription_has_ready(&subscription));
    assert_false(lw_subscription_is_eligible(&subscription));
}

static void
each_kind_of_work_makes_it_eligible(void **state)
{
    struct lw_subscription subscription;
    struct lw_queue_node node = { NULL };
    struct lw_list lane;
    struct lw_list *const rings[] = { &subscription.ready, &subscription.urgent };
    (void)state;
    init_ready(&subscription, &node);
    assert_true(lw_subscription_is_eligible(&subscription));
    for (int i = 0; i < 2; i++) {
        lw_subscription_init(&subscription, 0);
        lw_list_init(&lane);
        lw_list_push(rings[i], &lane);
        assert_true(lw_subscription_is_eligible(&subscription));
    }
}

static void
each_of_its_reasons_forbids_it(void **state)
{
    struct lw_subscription subscription;
    struct lw_queue_node node = { NULL };
    bool *const reasons[] = { &subscription.is_paused, &subscription.is_engine_full,
                              &subscription.is_engine_down };
    (void)state;
    init_ready(&subscription, &node);
    for (int i = 0; i < 3; i++) {
        *reasons[i] = true;
        assert_false(lw_subscription_is_eligible(&subscription));
        assert_true(lw_subscription_has_ready(&subscription));
        *reasons[i] = false;
        assert_true(lw_subscription_is_eligible(&subscription));
    }
}

static void
blocked_publishing_stops_intake_and_not_what_is_here(void **state)
{
    struct lw_subscription subscription;
    struct lw_queue_node node = { NULL };
    (void)state;
    init_ready(&subscription, &node);
    subscription.is_publish_blocked = true;
    assert_true(lw_subscription_is_eligible(&subscription));
}

static void
its_own_concurrency_is_a_bound_and_none_is_none(void **state)
{
    struct lw_subscription subscription;
    struct lw_queue_node node = { NULL };
    (void)state;
    init_ready(&subscription, &node);
    subscription.running = 1000;
    assert_true(lw_subscription_may_run(&subscription));
    subscription.concurrency = 1001;
    assert_true(lw_subscription_may_run(&subscription));
    subscription.concurrency = 1000;
    assert_false(lw_subscription_may_run(&subscription));
}

static void
ordering_and_keyless_say_which_lane(void **state)
{
    struct lw_subscription subscription;
    (void)state;
    lw_subscription_init(&subscription, 0);
    lw_subscription_set_ordering(&subscription, LW_ORDERING_NONE, LW_KEYLESS_SHARED);
    assert_int_equal(subscription.lanes, LW_LANES_NONE);
    lw_subscription_set_ordering(&subscription, LW_ORDERING_KEY, LW_KEYLESS_SHARED);
    assert_int_equal(subscription.lanes, LW_LANES_KEY);
    lw_subscription_set_ordering(&subscription, LW_ORDERING_KEY, LW_KEYLESS_ROTATE);
    assert_int_equal(subscription.lanes, LW_LANES_KEYED);
    lw_subscription_set_ordering(&subscription, LW_ORDERING_PARTITION, LW_KEYLESS_ROTATE);
    assert_int_equal(subscription.lanes, LW_LANES_PARTITION);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_is_not_eligible),
        cmocka_unit_test(each_kind_of_work_makes_it_eligible),
        cmocka_unit_test(each_of_its_reasons_forbids_it),
        cmocka_unit_test(blocked_publishing_stops_intake_and_not_what_is_here),
        cmocka_unit_test(its_own_concurrency_is_a_bound_and_none_is_none),
        cmocka_unit_test(ordering_and_keyless_say_which_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
