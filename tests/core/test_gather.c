/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waiting for company as transcripts: what comes in, how time goes, which tasks are chosen. A task
 * is written as its messages' positions, such as "0,1,2"; "-" is none.
 */
#include "tests/support/test.h"

#include "tests/core/stage.h"

#include <stdio.h>
#include <string.h>

#define WAIT_NS UINT64_C(10)

struct scene {
    struct lw_scheduler scheduler;
    struct stage_topic topic;
    uint64_t now;
    struct lw_delivery *chosen; /* by the last expect_task */
};

static void
begin(struct scene *scene, enum lw_ordering ordering, bool has_many, uint32_t size)
{
    memset(scene, 0, sizeof(*scene));
    assert_int_equal(lw_scheduler_init(&scene->scheduler, 8, 1, 100000, 7), LW_STATUS_OK);
    scene->now = 1000;
    scene->scheduler.now = &scene->now;
    stage_topic_init(&scene->topic, 0, 0, ordering, LW_KEYLESS_ROTATE, true);
    struct lw_subscription *subscription = &scene->topic.subscription;
    lw_limits_init(&subscription->limits, 1000, 1000000);
    subscription->is_batched = true;
    subscription->gather.size = size;
    subscription->gather.bytes = 1000;
    subscription->gather.wait_ns = WAIT_NS;
    subscription->gather.has_many = has_many;
}

static void
end(struct scene *scene)
{
    lw_scheduler_deinit(&scene->scheduler);
}

static struct lw_delivery *
make(struct scene *scene, const char *key, uint32_t bytes)
{
    struct lw_delivery *delivery = stage_make(&scene->topic, key);
    delivery->received_at = scene->now;
    delivery->held_bytes = bytes;
    return delivery;
}

static void
admit(struct scene *scene, const char *key)
{
    assert_int_equal(lw_scheduler_admit(&scene->scheduler, make(scene, key, 1)), LW_STATUS_OK);
}

/* One message for each letter, whose key it is; '-' is none. */
static void
admit_all(struct scene *scene, const char *keys)
{
    for (; *keys; keys++) {
        const char key[2] = { *keys, '\0' };
        static const char *const letters[] = { "a", "b", "c", "d" };
        admit(scene, key[0] == '-' ? NULL : letters[key[0] - 'a']);
    }
}

static void
pass(struct scene *scene, uint64_t ns)
{
    scene->now += ns;
    lw_scheduler_expire(&scene->scheduler, &scene->topic.subscription);
}

static void
write_task(const struct lw_delivery *first, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "%s", first ? "" : "-");
    for (const struct lw_delivery *at = first; at; at = at->task_next) {
        used += (size_t)snprintf(out + used, size - used, "%s%lld", at == first ? "" : ",",
                                 (long long)at->message.position);
    }
}

/* The members are RUNNING then. */
static void
expect_task(struct scene *scene, const char *expected)
{
    char text[256];
    scene->chosen = lw_scheduler_choose(&scene->scheduler);
    write_task(scene->chosen, text, sizeof(text));
    assert_string_equal(text, expected);
    for (struct lw_delivery *at = scene->chosen; at; at = at->task_next) {
        lw_delivery_set_state(at, LW_STATE_RUNNING);
    }
}

/* The whole task is over. */
static void
finish(struct scene *scene, struct lw_delivery *first)
{
    lw_scheduler_free_slot(&scene->scheduler, &scene->topic.subscription);
    while (first) {
        struct lw_delivery *next = first->task_next;
        lw_scheduler_release(&scene->scheduler, first);
        stage_free(first);
        first = next;
    }
}

static void
put_back(struct scene *scene, struct lw_delivery *member)
{
    lw_delivery_set_state(member, LW_STATE_QUEUED);
    lw_scheduler_requeue(&scene->scheduler, member);
}

static void
expect_all_over(struct scene *scene)
{
    const struct lw_subscription *subscription = &scene->topic.subscription;
    expect_task(scene, "-");
    assert_int_equal(subscription->queued, 0);
    assert_int_equal(subscription->gather.count, 0);
    assert_int_equal(subscription->gather.pool_bytes, 0);
    assert_true(lw_gather_next(subscription) == LW_NEVER);
    end(scene);
}

static void
a_full_task_is_taken_and_one_below_waits(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_NONE, true, 3);
    admit_all(&scene, "--");
    expect_task(&scene, "-");
    assert_false(lw_subscription_has_ready(&scene.topic.subscription));
    admit_all(&scene, "--");
    expect_task(&scene, "0,1,2");
    finish(&scene, scene.chosen);
    expect_task(&scene, "-");
    pass(&scene, WAIT_NS);
    expect_task(&scene, "3");
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

static void
what_waits_is_taken_when_the_first_has_waited(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_KEY, true, 3);
    admit_all(&scene, "a");
    assert_int_equal(lw_gather_next(&scene.topic.subscription), scene.now + WAIT_NS);
    pass(&scene, WAIT_NS - 1);
    admit_all(&scene, "b");
    expect_task(&scene, "-");
    pass(&scene, 1);
    expect_task(&scene, "0,1");
    assert_int_equal(scene.topic.subscription.gather.reasons[LW_GATHER_WAIT], 1);
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

static void
those_of_a_key_lie_together_and_in_order(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_KEY, true, 5);
    admit_all(&scene, "abacb");
    expect_task(&scene, "0,2,1,4,3");
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

static void
a_key_in_hand_is_in_no_second_task(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_KEY, true, 2);
    admit_all(&scene, "aa");
    expect_task(&scene, "0,1");
    struct lw_delivery *first = scene.chosen;
    admit_all(&scene, "aabb");
    expect_task(&scene, "4,5");
    finish(&scene, scene.chosen);
    expect_task(&scene, "-");
    finish(&scene, first);
    expect_task(&scene, "2,3");
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

static void
of_one_key_each_lane_waits_for_itself(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_KEY, false, 2);
    admit_all(&scene, "abc");
    expect_task(&scene, "-");
    pass(&scene, WAIT_NS / 2);
    admit_all(&scene, "b-");
    expect_task(&scene, "1,3");
    finish(&scene, scene.chosen);
    expect_task(&scene, "-");
    pass(&scene, WAIT_NS / 2);
    expect_task(&scene, "0");
    finish(&scene, scene.chosen);
    expect_task(&scene, "2");
    finish(&scene, scene.chosen);
    expect_task(&scene, "-");
    pass(&scene, WAIT_NS / 2);
    expect_task(&scene, "4");
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

static void
what_waited_for_its_key_does_not_wait_again(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_KEY, false, 2);
    admit_all(&scene, "aaa");
    expect_task(&scene, "0,1");
    pass(&scene, WAIT_NS);
    finish(&scene, scene.chosen);
    expect_task(&scene, "2");
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

static void
a_task_ends_with_the_message_that_makes_it_large(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_NONE, true, 100);
    for (int i = 0; i < 3; i++) {
        struct lw_delivery *delivery = make(&scene, NULL, 600);
        assert_int_equal(lw_scheduler_admit(&scene.scheduler, delivery), LW_STATUS_OK);
    }
    expect_task(&scene, "0,1");
    assert_int_equal(scene.topic.subscription.gather.reasons[LW_GATHER_BYTES], 1);
    finish(&scene, scene.chosen);
    pass(&scene, WAIT_NS);
    expect_task(&scene, "2");
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

static void
at_the_limits_nothing_waits(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_KEY, false, 5);
    admit_all(&scene, "ab");
    expect_task(&scene, "-");
    scene.topic.subscription.limits.is_stopped = true;
    admit_all(&scene, "b");
    expect_task(&scene, "0");
    assert_int_equal(scene.topic.subscription.gather.reasons[LW_GATHER_LIMIT], 1);
    finish(&scene, scene.chosen);
    expect_task(&scene, "1,2");
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

static void
once_closed_nothing_waits_any_more(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_KEY, true, 5);
    admit_all(&scene, "ab");
    lw_scheduler_close_gather(&scene.scheduler, &scene.topic.subscription);
    expect_task(&scene, "0,1");
    assert_int_equal(scene.topic.subscription.gather.reasons[LW_GATHER_CLOSE], 1);
    finish(&scene, scene.chosen);
    admit_all(&scene, "c");
    expect_task(&scene, "2");
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

static void
a_lane_is_busy_until_the_last_of_its_members_is_over(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_KEY, false, 3);
    admit_all(&scene, "aaaa");
    expect_task(&scene, "0,1,2");
    struct lw_delivery *first = scene.chosen;
    struct lw_delivery *second = first->task_next;
    put_back(&scene, second->task_next);
    lw_scheduler_free_slot(&scene.scheduler, &scene.topic.subscription);
    expect_task(&scene, "-");
    put_back(&scene, second); /* its retry is due while the first is still published */
    expect_task(&scene, "-");
    lw_scheduler_release(&scene.scheduler, first);
    stage_free(first);
    expect_task(&scene, "1,2,3");
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

static void
what_ran_before_does_not_wait_for_company_again(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_KEY, true, 3);
    admit_all(&scene, "abc");
    expect_task(&scene, "0,1,2");
    struct lw_delivery *first = scene.chosen;
    struct lw_delivery *rest = first->task_next;
    lw_scheduler_free_slot(&scene.scheduler, &scene.topic.subscription);
    put_back(&scene, first);
    expect_task(&scene, "0");
    finish(&scene, scene.chosen);
    lw_scheduler_take_slot(&scene.scheduler, &scene.topic.subscription);
    finish(&scene, rest);
    expect_all_over(&scene);
}

/* Its retry was due before the first of its lane was over. */
static void
what_runs_again_waits_for_nobody_once_its_lane_is_free(void **state)
{
    struct scene scene;
    (void)state;
    for (int has_many = 0; has_many <= 1; has_many++) {
        begin(&scene, LW_ORDERING_KEY, has_many, 3);
        admit_all(&scene, "aaa");
        expect_task(&scene, "0,1,2");
        struct lw_delivery *first = scene.chosen;
        struct lw_delivery *last = first->task_next->task_next;
        put_back(&scene, first->task_next);
        lw_scheduler_release(&scene.scheduler, last);
        stage_free(last);
        expect_task(&scene, "-");
        first->task_next = NULL;
        finish(&scene, first);
        expect_task(&scene, "1");
        finish(&scene, scene.chosen);
        admit_all(&scene, "a"); /* that is over: this one waits */
        expect_task(&scene, "-");
        pass(&scene, WAIT_NS);
        expect_task(&scene, "3");
        finish(&scene, scene.chosen);
        expect_all_over(&scene);
    }
}

/* It has waited for its key as long as for company, and others filled the task. */
static void
what_is_due_stays_so_when_it_is_not_in_the_next_task(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_KEY, true, 2);
    admit_all(&scene, "a");
    pass(&scene, WAIT_NS);
    expect_task(&scene, "0");
    struct lw_delivery *first = scene.chosen;
    admit_all(&scene, "a");
    pass(&scene, WAIT_NS);
    admit_all(&scene, "bc");
    finish(&scene, first);
    expect_task(&scene, "2,3");
    struct lw_delivery *others = scene.chosen;
    expect_task(&scene, "1");
    finish(&scene, scene.chosen);
    finish(&scene, others);
    admit_all(&scene, "d");
    expect_task(&scene, "-");
    pass(&scene, WAIT_NS);
    expect_task(&scene, "4");
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

static void
when_no_more_can_come_what_waits_goes_now(void **state)
{
    struct scene scene;
    (void)state;
    for (int has_many = 0; has_many <= 1; has_many++) {
        begin(&scene, LW_ORDERING_KEY, has_many, 3);
        lw_scheduler_hurry_gather(&scene.scheduler, &scene.topic.subscription);
        admit_all(&scene, "a-");
        expect_task(&scene, "-");
        lw_scheduler_hurry_gather(&scene.scheduler, &scene.topic.subscription);
        expect_task(&scene, has_many ? "0,1" : "0");
        finish(&scene, scene.chosen);
        expect_task(&scene, has_many ? "-" : "1");
        if (scene.chosen) {
            finish(&scene, scene.chosen);
        }
        admit_all(&scene, "a"); /* not from now on */
        expect_task(&scene, "-");
        pass(&scene, WAIT_NS);
        expect_task(&scene, "2");
        finish(&scene, scene.chosen);
        expect_all_over(&scene);
    }
}

static void
what_waits_for_company_says_with_whom_and_how_long(void **state)
{
    struct scene scene;
    struct lw_company company = { 0 };
    (void)state;
    for (int has_many = 0; has_many <= 1; has_many++) {
        begin(&scene, LW_ORDERING_KEY, has_many, 3);
        uint64_t began = scene.now;
        struct lw_delivery *first = make(&scene, "a", 1);
        assert_int_equal(lw_scheduler_admit(&scene.scheduler, first), LW_STATUS_OK);
        assert_true(lw_gather_find(first, &company));
        assert_int_equal(company.count, 1);
        pass(&scene, 1);
        struct lw_delivery *other = make(&scene, "b", 1);
        assert_int_equal(lw_scheduler_admit(&scene.scheduler, other), LW_STATUS_OK);
        assert_true(lw_gather_find(other, &company));
        assert_int_equal(company.count, has_many ? 2 : 1);
        assert_true(company.due == began + WAIT_NS + (has_many ? 0 : 1));
        pass(&scene, WAIT_NS);
        assert_false(lw_gather_find(other, &company));
        expect_task(&scene, has_many ? "0,1" : "0");
        finish(&scene, scene.chosen);
        expect_task(&scene, has_many ? "-" : "1");
        if (scene.chosen) {
            finish(&scene, scene.chosen);
        }
        expect_all_over(&scene);
    }
}

static void
one_that_is_alone_has_no_company(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_KEY, true, 3);
    admit_all(&scene, "aa");
    struct lw_delivery *alone = make(&scene, "a", 1);
    alone->is_alone = true;
    assert_int_equal(lw_scheduler_admit(&scene.scheduler, alone), LW_STATUS_OK);
    admit_all(&scene, "a");
    expect_task(&scene, "0,1");
    finish(&scene, scene.chosen);
    expect_task(&scene, "2");
    assert_int_equal(scene.topic.subscription.gather.reasons[LW_GATHER_ALONE], 1);
    finish(&scene, scene.chosen);
    pass(&scene, WAIT_NS);
    expect_task(&scene, "3");
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

static void
what_is_removed_while_it_waits_leaves_the_others_whole(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_KEY, true, 5);
    admit_all(&scene, "ab");
    struct lw_delivery *gone = stage_admit(&scene.scheduler, &scene.topic, "a");
    struct lw_delivery *loose = stage_admit(&scene.scheduler, &scene.topic, NULL);
    lw_scheduler_remove(&scene.scheduler, gone);
    lw_scheduler_remove(&scene.scheduler, loose);
    stage_free(gone);
    stage_free(loose);
    pass(&scene, WAIT_NS);
    expect_task(&scene, "0,1");
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

static void
without_a_wait_what_is_here_is_taken(void **state)
{
    struct scene scene;
    (void)state;
    begin(&scene, LW_ORDERING_KEY, true, 5);
    scene.topic.subscription.gather.wait_ns = 0;
    admit_all(&scene, "ab-");
    expect_task(&scene, "0,1,2");
    finish(&scene, scene.chosen);
    expect_all_over(&scene);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_task_is_taken_and_one_below_waits),
        cmocka_unit_test(what_waits_is_taken_when_the_first_has_waited),
        cmocka_unit_test(those_of_a_key_lie_together_and_in_order),
        cmocka_unit_test(a_key_in_hand_is_in_no_second_task),
        cmocka_unit_test(of_one_key_each_lane_waits_for_itself),
        cmocka_unit_test(what_waited_for_its_key_does_not_wait_again),
        cmocka_unit_test(a_task_ends_with_the_message_that_makes_it_large),
        cmocka_unit_test(at_the_limits_nothing_waits),
        cmocka_unit_test(once_closed_nothing_waits_any_more),
        cmocka_unit_test(a_lane_is_busy_until_the_last_of_its_members_is_over),
        cmocka_unit_test(what_ran_before_does_not_wait_for_company_again),
        cmocka_unit_test(what_runs_again_waits_for_nobody_once_its_lane_is_free),
        cmocka_unit_test(what_is_due_stays_so_when_it_is_not_in_the_next_task),
        cmocka_unit_test(when_no_more_can_come_what_waits_goes_now),
        cmocka_unit_test(what_waits_for_company_says_with_whom_and_how_long),
        cmocka_unit_test(one_that_is_alone_has_no_company),
        cmocka_unit_test(what_is_removed_while_it_waits_leaves_the_others_whole),
        cmocka_unit_test(without_a_wait_what_is_here_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
