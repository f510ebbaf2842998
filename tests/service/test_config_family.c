/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Priority families: the table of six topics, and what makes a matrix invalid. An invalid one
 * leaves no subscription at all, and a mistake that shows in every topic of a family is told
 * once.
 */
#include "tests/service/config_fixture.h"

#include <stdio.h>
#include <string.h>

/* A pipeline around a matrix (and, behind it, further keys). */
static const char *
family(char *out, size_t size, const char *matrix, const char *more)
{
    snprintf(out, size,
             "version: 1\n"
             "brokers: { main: { url: 'memory:' } }\n"
             "handlers: { h: { builtin: echo } }\n"
             "pipelines:\n"
             "  p:\n"
             "    broker: main\n"
             "    handler: h\n"
             "    consumer: { group: g }\n"
             "    ordering: none\n"
             "    topics: { matrix: %s }\n"
             "%s",
             matrix, more);
    return out;
}

static void
six_topics_get_names_priorities_and_retry_links(void **state)
{
    (void)state;
    static const struct {
        const char *topic;
        int priority;
        const char *retry;
    } wanted[] = {
        { "orders_live_high", 110, "orders_live_retry" },
        { "orders_live_low", 120, "orders_live_retry" },
        { "orders_live_retry", 150, "orders_live_retry" },
        { "orders_batch_high", 210, "orders_batch_retry" },
        { "orders_batch_low", 220, "orders_batch_retry" },
        { "orders_batch_retry", 250, "orders_batch_retry" },
    };
    char text[2000];
    struct config_fixture fixture;
    config_open(&fixture,
                family(text, sizeof(text),
                       "{ name: \"orders_{level}_{lane}\", level: { LIVE: 100, Batch: "
                       "200 }, lane: { high: 10, low: 20, retry: 50 } }",
                       "    retry: { topic: \"orders_{level}_retry\" }\n"));
    assert_int_equal(fixture.printed.size, 0);
    assert_int_equal(fixture.config->subscription_count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        const struct lw_config_subscription *item = &fixture.config->subscriptions[i];
        assert_string_equal(item->options.topic, wanted[i].topic);
        assert_int_equal(item->options.priority, wanted[i].priority);
        assert_string_equal(item->options.retry.topic, wanted[i].retry);
        assert_int_equal(item->rank, i + 1);
    }
    config_close(&fixture);
}

static void
one_map_gives_one_topic_a_level(void **state)
{
    (void)state;
    char text[2000];
    struct config_fixture fixture;
    config_open(&fixture, family(text, sizeof(text),
                                 "{ name: 'o.{level}', level: { a: 5, b: 5, c: 4 } }", ""));
    assert_int_equal(fixture.config->subscription_count, 3);
    assert_string_equal(fixture.config->subscriptions[1].options.topic, "o.b");
    assert_int_equal(fixture.config->subscriptions[2].rank, 1);
    assert_int_equal(fixture.config->subscriptions[0].rank, 2);
    assert_true(fixture.config->subscriptions[1].is_rank_shared);
    config_close(&fixture);
}

static void
overlapping_levels_are_computed_for_the_reader(void **state)
{
    (void)state;
    char text[2000];
    config_mentions(
        family(text, sizeof(text),
               "{ name: 'o_{level}_{lane}', level: { a: 1, b: 2, c: 100 }, lane: { "
               "x: 0, y: 1 } }",
               ""),
        "error[E0305]: priorities of \"a\" and \"b\" overlap: a+y = 2 is not before "
        "b+x = 2\n");
    config_mentions(text,
                    "help: the largest lane (1) must be smaller than the gap between levels "
                    "(2 - 1 = 1); use b: 10\n");
}

static void
a_gap_that_is_only_just_too_small_is_told_too(void **state)
{
    (void)state;
    char text[2000];
    config_mentions(
        family(text, sizeof(text),
               "{ name: 'o_{level}_{lane}', level: { a: 100, b: 145 }, lane: { x: 10, "
               "y: 50 } }",
               ""),
        "error[E0305]: priorities of \"a\" and \"b\" may overlap: y = 50 is not "
        "smaller than the gap between them\n");
}

static void
invalid_families_leave_no_subscription(void **state)
{
    (void)state;
    static const struct {
        const char *matrix;
        const char *said;
    } invalid[] = {
        { "{ name: 'o_{level}' }", "a matrix needs one or two maps of levels" },
        { "{ name: 'o_{a}', a: { x: 1 }, b: { y: 1 } }", "the name does not use \"b\"" },
        { "{ name: 'o_{a}_{b}', a: { x: 1 } }", "\"{b}\" stands for nothing here" },
        { "{ name: 'o_{a}', a: { x: 1, X: 2 } }", "the level \"x\" is there twice" },
        { "{ name: 'o_{a}_{b}', a: { x: 1 }, b: { y: -1 } }",
          "\"y\" is -1: the numbers of \"b\" must be 0 or more" },
        { "{ name: 'o_{a}', a: {} }", "\"a\" has no levels" },
        { "{ name: 'o_{a}', a: { x: many } }", "\"many\" is not a whole number" },
        { "{ name: 'o_{a}_{b}_{c}', a: { x: 1 }, b: { y: 1 }, c: { z: 1 } }",
          "a matrix has at most two maps of levels" },
        { "{ a: { x: 1 } }", "needs \"name\"" },
        { "{ name: 'o {a}', a: { x: 1 } }", "\"o x\" is not a topic name" },
        { "{ name: 'o_{a}', a: { x: 99999999999 } }", "is out of range" },
        { "{ name: 'o_{a', a: { x: 1 } }", "the name does not use \"a\"" },
    };
    for (size_t i = 0; i < sizeof(invalid) / sizeof(invalid[0]); i++) {
        char text[2000];
        config_mentions(family(text, sizeof(text), invalid[i].matrix, ""), invalid[i].said);
    }
}

static void
a_retry_topic_with_an_unknown_placeholder_is_told_once(void **state)
{
    (void)state;
    char text[2000];
    config_says(family(text, sizeof(text), "{ name: 'o_{level}', level: { a: 1, b: 2 } }",
                       "    retry: { topic: \"o_{lane}_retry\" }\n"),
                "bad.yaml:11:21: error[E0206]: \"{lane}\" stands for nothing here\n"
                "   11 |     retry: { topic: \"o_{lane}_retry\" }\n"
                "      |                     ^^^^^^^^^^^^^^^^\n"
                "help: known here: {topic}, {group}, {level}\n"
                "1 error\n");
}

static void
a_family_larger_than_the_limit_is_refused(void **state)
{
    (void)state;
    struct lw_text matrix;
    lw_text_init(&matrix);
    lw_text_append(&matrix, "{ name: 'o_{a}_{b}', a: {");
    for (int i = 0; i < 200; i++) {
        lw_text_format(&matrix, " a%d: %d,", i, i * 1000);
    }
    lw_text_append(&matrix, " }, b: {");
    for (int i = 0; i < 51; i++) {
        lw_text_format(&matrix, " b%d: %d,", i, i);
    }
    lw_text_append(&matrix, " } }");
    char *whole = test_malloc(matrix.size + 1000);
    config_mentions(family(whole, matrix.size + 1000, matrix.data, ""),
                    "this matrix makes more than 10,000 topics");
    test_free(whole);
    lw_text_deinit(&matrix);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(six_topics_get_names_priorities_and_retry_links),
        cmocka_unit_test(one_map_gives_one_topic_a_level),
        cmocka_unit_test(overlapping_levels_are_computed_for_the_reader),
        cmocka_unit_test(a_gap_that_is_only_just_too_small_is_told_too),
        cmocka_unit_test(invalid_families_leave_no_subscription),
        cmocka_unit_test(a_retry_topic_with_an_unknown_placeholder_is_told_once),
        cmocka_unit_test(a_family_larger_than_the_limit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
