/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_handler_log.c: what a program prints is passed on up to a bound for each second, and what
 * is above it is counted and said, also when the program then keeps silent or its log ends.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "engines/common/handler_log.h"
#include "tests/support/virtual_host.h"

enum { LINES_A_SECOND = 200 };

struct stage {
    struct virtual_host virtual_host;
    struct lw_handler_log log;
    size_t passed;
    size_t said;
    char fields[64]; /* of the last count that was said */
};

static void
keep(enum lw_log_level level, const char *event, const char *text, const char *fields,
     void *user)
{
    struct stage *stage = user;
    (void)text;
    if (strcmp(event, "handler.output") == 0) {
        stage->passed++;
        return;
    }
    assert_string_equal(event, "handler.output_dropped");
    assert_int_equal(level, LW_LOG_WARN);
    stage->said++;
    (void)snprintf(stage->fields, sizeof stage->fields, "%s", fields);
}

static void
begin(struct stage *stage)
{
    *stage = (struct stage){ .passed = 0 };
    virtual_host_init(&stage->virtual_host, 1);
    stage->virtual_host.host.log = keep;
    stage->virtual_host.host.log_user = stage;
    stage->virtual_host.host.log_level = LW_LOG_DEBUG;
    lw_handler_log_init(&stage->log, &stage->virtual_host.host, "noisy");
}

static void
print(struct stage *stage, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        lw_handler_log_line(&stage->log, lw_bytes_of("words"), "stderr");
    }
}

static void
what_is_above_the_bound_is_said_though_the_program_then_keeps_silent(void **state)
{
    struct stage stage;
    (void)state;
    begin(&stage);
    print(&stage, LINES_A_SECOND + 50);
    assert_int_equal(stage.passed, LINES_A_SECOND);
    assert_int_equal(stage.said, 0);
    virtual_host_pass(&stage.virtual_host, 1100 * LW_MS);
    assert_int_equal(stage.said, 1);
    assert_string_equal(stage.fields, "handler=noisy lines=50");
    virtual_host_pass(&stage.virtual_host, 5000 * LW_MS);
    assert_int_equal(stage.said, 1);
    lw_handler_log_deinit(&stage.log);
    assert_int_equal(stage.said, 1);
}

static void
what_is_above_the_bound_is_said_once_for_each_second_of_a_storm(void **state)
{
    struct stage stage;
    (void)state;
    begin(&stage);
    for (int second = 0; second < 3; second++) {
        print(&stage, LINES_A_SECOND + 7);
        virtual_host_pass(&stage.virtual_host, 1100 * LW_MS);
        assert_string_equal(stage.fields, "handler=noisy lines=7");
    }
    assert_int_equal(stage.passed, 3 * LINES_A_SECOND);
    assert_int_equal(stage.said, 3);
    lw_handler_log_deinit(&stage.log);
}

static void
what_is_above_the_bound_is_said_at_the_end_of_the_log(void **state)
{
    struct stage stage;
    (void)state;
    begin(&stage);
    print(&stage, LINES_A_SECOND + 1);
    lw_handler_log_deinit(&stage.log);
    assert_int_equal(stage.said, 1);
    assert_string_equal(stage.fields, "handler=noisy lines=1");
    assert_int_equal(stage.virtual_host.host.timers.count, 0);
}

static void
a_log_that_drops_nothing_arms_no_timer(void **state)
{
    struct stage stage;
    (void)state;
    begin(&stage);
    print(&stage, LINES_A_SECOND);
    assert_int_equal(stage.virtual_host.host.timers.count, 0);
    lw_handler_log_deinit(&stage.log);
    assert_int_equal(stage.said, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_above_the_bound_is_said_though_the_program_then_keeps_silent),
        cmocka_unit_test(what_is_above_the_bound_is_said_once_for_each_second_of_a_storm),
        cmocka_unit_test(what_is_above_the_bound_is_said_at_the_end_of_the_log),
        cmocka_unit_test(a_log_that_drops_nothing_arms_no_timer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
