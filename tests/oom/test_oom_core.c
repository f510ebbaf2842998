/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The n-th allocation fails inside core: what failed changed nothing, the same call works later,
 * and nothing is left behind.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "core/partition.h"
#include "core/scheduler.h"

enum { KEYS = 3000, SHORT_KEY = 12, LONG_KEY = 90 };

struct stage {
    struct lw_subscription subscription;
    struct lw_partition partition;
    struct lw_delivery deliveries[KEYS];
    char keys[KEYS][LONG_KEY + 1];
};

static void
set_stage(struct stage *stage)
{
    memset(stage, 0, sizeof(*stage));
    lw_subscription_init(&stage->subscription, 0);
    lw_subscription_set_ordering(&stage->subscription, LW_ORDERING_KEY, LW_KEYLESS_SHARED);
    lw_rank_node_init(&stage->subscription.choose, 0);
    lw_list_init(&stage->partition.held);
    stage->partition.subscription = &stage->subscription;
    for (int i = 0; i < KEYS; i++) {
        struct lw_delivery *delivery = &stage->deliveries[i];
        int size = i % 3 ? SHORT_KEY : LONG_KEY;
        snprintf(stage->keys[i], sizeof(stage->keys[i]), "%0*d", size, i / 2);
        delivery->message.key = lw_bytes_of(stage->keys[i]);
        delivery->message.position = i;
        delivery->subscription = &stage->subscription;
        delivery->partition = &stage->partition;
        lw_delivery_set_state(delivery, LW_STATE_QUEUED);
        lw_list_push(&stage->partition.held, &delivery->held);
    }
}

/* Admits all, each again until it is taken. */
static void
admit_all(struct lw_scheduler *scheduler, struct stage *stage)
{
    for (int i = 0; i < KEYS; i++) {
        while (lw_scheduler_admit(scheduler, &stage->deliveries[i]) != LW_STATUS_OK) {
            assert_int_equal(stage->subscription.queued, i);
        }
    }
}

static void
end_all(struct lw_scheduler *scheduler, struct stage *stage)
{
    for (int i = 0; i < KEYS; i++) {
        struct lw_delivery *chosen = lw_scheduler_choose(scheduler);
        assert_non_null(chosen);
        lw_list_remove(&chosen->held);
        lw_scheduler_free_slot(scheduler, &stage->subscription);
        lw_scheduler_release(scheduler, chosen);
    }
    assert_null(lw_scheduler_choose(scheduler));
}

static void
a_scheduler_takes_everything_whatever_allocation_fails(void **state)
{
    static struct stage stage;
    (void)state;
    for (uint64_t n = 1;; n += 1 + n / 20) {
        struct lw_scheduler scheduler;
        uint64_t live = lw_alloc_live();
        uint64_t before = lw_alloc_count();
        set_stage(&stage);
        lw_alloc_fail_at(n);
        while (lw_scheduler_init(&scheduler, 1, 1, KEYS, 5) != LW_STATUS_OK) {
            assert_int_equal(lw_alloc_live(), live);
        }
        admit_all(&scheduler, &stage);
        end_all(&scheduler, &stage);
        lw_alloc_fail_at(0);
        lw_scheduler_deinit(&scheduler);
        assert_int_equal(lw_alloc_live(), live);
        if (lw_alloc_count() - before < n) {
            assert_true(n > 10);
            return;
        }
    }
}

static void
a_ledger_refuses_and_stays_as_it_was(void **state)
{
    (void)state;
    for (uint64_t n = 1; n <= 6; n++) {
        struct lw_offsets offsets;
        uint64_t live = lw_alloc_live();
        lw_offsets_init(&offsets, 0, 1 << 20);
        lw_alloc_fail_at(n);
        for (int64_t i = 0; i < 300000; i++) {
            struct lw_offsets before = offsets;
            enum lw_status status = lw_offsets_open(&offsets, i);
            if (status == LW_STATUS_NO_MEMORY) {
                assert_memory_equal(&offsets, &before, sizeof(offsets));
                status = lw_offsets_open(&offsets, i);
            }
            assert_int_equal(status, LW_STATUS_OK);
            assert_true(i == 0 || lw_offsets_done(&offsets, i)); /* the first stays open */
        }
        lw_alloc_fail_at(0);
        assert_int_equal(lw_offsets_safe(&offsets), 0);
        assert_true(lw_offsets_done(&offsets, 0));
        assert_int_equal(lw_offsets_safe(&offsets), 300000);
        lw_offsets_deinit(&offsets);
        assert_int_equal(lw_alloc_live(), live);
    }
}

static void
a_tail_that_lacks_memory_is_closed_later(void **state)
{
    struct lw_offsets offsets;
    (void)state;
    lw_offsets_init(&offsets, 0, 1 << 20);
    lw_alloc_fail_at(1);
    assert_int_equal(lw_offsets_open(&offsets, 0), LW_STATUS_NO_MEMORY);
    assert_int_equal(lw_offsets_open(&offsets, 0), LW_STATUS_OK);
    lw_alloc_fail_at(1);
    assert_int_equal(lw_offsets_advance_to(&offsets, 200000), LW_STATUS_NO_MEMORY);
    assert_int_equal(lw_offsets_safe(&offsets), 0);
    assert_int_equal(lw_offsets_advance_to(&offsets, 200000), LW_STATUS_OK);
    assert_true(lw_offsets_done(&offsets, 0));
    assert_int_equal(lw_offsets_safe(&offsets), 200000);
    lw_offsets_deinit(&offsets);
}

static void
outputs_are_whole_or_not_there(void **state)
{
    static const char value[3000];
    (void)state;
    for (uint64_t n = 1; n <= 30; n++) {
        struct lw_delivery delivery = { 0 };
        uint64_t live = lw_alloc_live();
        uint32_t kept = 0;
        lw_alloc_fail_at(n);
        for (int i = 0; i < 40; i++) {
            struct lw_output output = { .topic = "t", .value = { value, sizeof(value) } };
            kept += lw_delivery_publish(&delivery, &output) == LW_STATUS_OK;
        }
        lw_alloc_fail_at(0);
        assert_int_equal(delivery.outcome->output_count, kept);
        for (uint32_t i = 0; i < kept; i++) {
            struct lw_output view;
            lw_outcome_view(delivery.outcome, i, &view, NULL);
            assert_int_equal(view.value.size, sizeof(value));
            assert_memory_equal(view.value.data, value, sizeof(value));
        }
        lw_outcome_destroy(delivery.outcome);
        assert_int_equal(lw_alloc_live(), live);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scheduler_takes_everything_whatever_allocation_fails),
        cmocka_unit_test(a_ledger_refuses_and_stays_as_it_was),
        cmocka_unit_test(a_tail_that_lacks_memory_is_closed_later),
        cmocka_unit_test(outputs_are_whole_or_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
