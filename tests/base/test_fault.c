/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fault points: rules by passage and by probability, counting without rules, what is refused,
 * killing for real (in a child), passages from several threads, lack of memory.
 */
#include "tests/support/test.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"

static struct lw_faults *
create(const char *rules, uint64_t seed)
{
    struct lw_faults *faults = NULL;
    assert_int_equal(lw_faults_create(rules, seed, &faults, NULL), LW_STATUS_OK);
    return faults;
}

static void
point_without_a_table_never_fails(void **state)
{
    (void)state;
    assert_false(lw_fault_point(NULL, "a"));
}

static void
rule_strikes_at_its_passage_only(void **state)
{
    (void)state;
    struct lw_faults *faults = create("settle.after:3:fail,settle.after:5:fail,b:1:fail", 1);
    for (int passage = 1; passage <= 6; passage++) {
        assert_int_equal(lw_fault_point(faults, "settle.after"), passage == 3 || passage == 5);
    }
    assert_true(lw_fault_point(faults, "b"));
    assert_false(lw_fault_point(faults, "b"));
    lw_faults_destroy(faults);
}

static void
passages_are_counted_with_and_without_rules(void **state)
{
    (void)state;
    struct lw_faults *faults = create("a:9:fail", 1);
    lw_fault_point(faults, "a");
    lw_fault_point(faults, "c");
    lw_fault_point(faults, "c");
    assert_int_equal(lw_faults_count(faults, "a"), 1);
    assert_int_equal(lw_faults_count(faults, "c"), 2);
    assert_int_equal(lw_faults_count(faults, "never"), 0);
    lw_faults_destroy(faults);
}

static void
add_count(const char *name, uint64_t count, void *user)
{
    assert_true(strcmp(name, "passed") == 0 || strcmp(name, "ruled") == 0);
    *(uint64_t *)user += count;
}

static void
each_passed_point_is_listed_and_no_other(void **state)
{
    (void)state;
    uint64_t total = 0;
    struct lw_faults *faults = create("ruled:1:fail,unpassed:1:fail", 1);
    lw_fault_point(faults, "passed");
    lw_fault_point(faults, "passed");
    lw_fault_point(faults, "ruled");
    lw_faults_each(faults, add_count, &total);
    assert_int_equal(total, 3);
    lw_faults_destroy(faults);
}

static unsigned
hits_in(const char *rules, uint64_t seed, unsigned passages)
{
    unsigned hits = 0;
    struct lw_faults *faults = create(rules, seed);
    for (unsigned i = 0; i < passages; i++) {
        hits += lw_fault_point(faults, "a");
    }
    lw_faults_destroy(faults);
    return hits;
}

static void
probability_is_kept_and_repeats_with_its_seed(void **state)
{
    (void)state;
    assert_int_equal(hits_in("a:p100:fail", 1, 1000), 1000);
    unsigned hits = hits_in("a:p10:fail", 7, 10000);
    assert_in_range(hits, 850, 1150);
    assert_int_equal(hits_in("a:p10:fail", 7, 10000), hits);
    assert_int_not_equal(hits_in("a:p10:fail", 8, 10000), hits);
}

static void
wrong_rules_are_refused_with_their_text(void **state)
{
    (void)state;
    static const char *const rules[] = { "a",        "a:1",      "a:0:fail",     "a:-1:fail",
                                         ":1:fail",  "a:x:fail", "a:p0:fail",    "a:p101:fail",
                                         "a:1:burn", "a:p:fail", "b:1:fail,a:1", "::" };
    uint64_t live = lw_alloc_live();
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct lw_faults *faults = NULL;
        struct lw_error error;
        assert_int_equal(lw_faults_create(rules[i], 1, &faults, &error), LW_STATUS_INVALID);
        assert_null(faults);
        assert_non_null(strstr(error.message, "NAME:N:ACTION"));
    }
    assert_int_equal(lw_alloc_live(), live);
}

static void
name_may_hold_colons_and_no_rules_are_fine(void **state)
{
    (void)state;
    struct lw_faults *faults = create("topic:orders:2:fail", 1);
    assert_false(lw_fault_point(faults, "topic:orders"));
    assert_true(lw_fault_point(faults, "topic:orders"));
    lw_faults_destroy(faults);
    lw_faults_destroy(create("", 1));
    lw_faults_destroy(NULL);
}

static void
kill_ends_the_process_at_the_point(void **state)
{
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct lw_faults *faults = create("a:2:kill", 1);
        lw_fault_point(faults, "a");
        lw_fault_point(faults, "a");
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void *
pass_many(void *faults)
{
    for (int i = 0; i < 10000; i++) {
        lw_fault_point(faults, i % 2 ? "odd" : "even");
    }
    return NULL;
}

static void
points_are_passed_from_several_threads(void **state)
{
    (void)state;
    struct lw_faults *faults = create("odd:100:fail", 1);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, pass_many, faults), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(lw_faults_count(faults, "odd"), 20000);
    assert_int_equal(lw_faults_count(faults, "even"), 20000);
    lw_faults_destroy(faults);
}

static void
lack_of_memory_is_told_and_nothing_leaks(void **state)
{
    (void)state;
    uint64_t live = lw_alloc_live();
    enum lw_status status = LW_STATUS_NO_MEMORY;
    for (uint64_t nth = 1; status != LW_STATUS_OK && nth < 20; nth++) {
        struct lw_faults *faults = NULL;
        lw_alloc_fail_at(nth);
        status = lw_faults_create("a:1:fail,b:2:fail", 1, &faults, NULL);
        assert_true(status == LW_STATUS_OK || status == LW_STATUS_NO_MEMORY);
        lw_faults_destroy(faults);
        assert_int_equal(lw_alloc_live(), live);
    }
    lw_alloc_fail_at(0);
    assert_int_equal(status, LW_STATUS_OK);
}

static void
passage_without_memory_is_no_failure(void **state)
{
    (void)state;
    struct lw_faults *faults = create("a:1:fail", 1);
    lw_alloc_fail_at(1);
    assert_false(lw_fault_point(faults, "new"));
    lw_alloc_fail_at(2);
    assert_false(lw_fault_point(faults, "new"));
    lw_alloc_fail_at(0);
    assert_int_equal(lw_faults_count(faults, "new"), 0);
    lw_faults_destroy(faults);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(point_without_a_table_never_fails),
        cmocka_unit_test(rule_strikes_at_its_passage_only),
        cmocka_unit_test(passages_are_counted_with_and_without_rules),
        cmocka_unit_test(each_passed_point_is_listed_and_no_other),
        cmocka_unit_test(probability_is_kept_and_repeats_with_its_seed),
        cmocka_unit_test(wrong_rules_are_refused_with_their_text),
        cmocka_unit_test(name_may_hold_colons_and_no_rules_are_fine),
        cmocka_unit_test(kill_ends_the_process_at_the_point),
        cmocka_unit_test(points_are_passed_from_several_threads),
        cmocka_unit_test(lack_of_memory_is_told_and_nothing_leaks),
        cmocka_unit_test(passage_without_memory_is_no_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
