/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a right configuration becomes: structs that the dispatcher takes. Defaults, values of
 * topics over those of pipelines, names made from patterns, handlers of all kinds, error classes,
 * words of other systems.
 */
#include "tests/service/config_fixture.h"

#include <stdio.h>
#include <string.h>

/* One pipeline "p" with the given handler and keys. */
static void
open_pipeline(struct config_fixture *fixture, const char *handler, const char *keys)
{
    char text[3000];
    snprintf(text, sizeof(text),
             "version: 1\n"
             "brokers: { main: { url: 'kafka://localhost:9092' } }\n"
             "handlers: { h: { %s } }\n"
             "pipelines:\n"
             "  p:\n"
             "    broker: main\n"
             "    handler: h\n"
             "    consumer: { group: g }\n"
             "%s",
             handler, keys);
    config_open(fixture, text);
    if (!fixture->config) {
        fail_msg("%s", fixture->printed.data);
    }
}

static void
the_smallest_file_gets_the_safe_defaults(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open(&fixture, config_small);
    const struct lw_config_subscription *item = &fixture.config->subscriptions[0];
    assert_string_equal(item->options.topic, "greetings");
    assert_string_equal(item->options.broker, "main");
    assert_string_equal(item->options.subscription, "hello");
    assert_string_equal(item->options.pipeline, "hello");
    assert_int_equal(item->options.priority, 100);
    assert_int_equal(item->options.engine, LW_ENGINE_PROGRAMS);
    assert_string_equal(item->options.program[0], "python3");
    assert_null(item->options.program[2]);
    assert_string_equal(item->options.directory, ".");
    assert_null(item->options.dead_letter.topic);
    assert_string_equal(item->dead_letter_topic, "greetings.dlq");
    assert_int_equal(lw_config_ordering(item), LW_ORDERING_KEY);
    assert_true(lw_config_is_in_place(item));
    config_close(&fixture);
}

static void
a_program_may_be_spoken_to_in_frames_or_run_once(void **state)
{
    struct config_fixture fixture;
    (void)state;
    open_pipeline(&fixture, "program: [x], protocol: frames, window: 4", "    topics: [ t ]\n");
    assert_int_equal(fixture.config->handlers[0].run.protocol, LW_PROTOCOL_FRAMES);
    assert_int_equal(fixture.config->handlers[0].run.window, 4);
    config_close(&fixture);
    open_pipeline(&fixture,
                  "program: [x], protocol: once, exit_codes: { 10-19: dead, 12: broken }",
                  "    topics: [ t ]\n");
    const struct lw_subscription_options *run = &fixture.config->handlers[0].run;
    assert_int_equal(run->protocol, LW_PROTOCOL_ONCE);
    assert_int_equal(run->exit_code_count, 2);
    assert_int_equal(run->exit_codes[0].from, 12); /* the exception goes first */
    assert_true(run->exit_codes[0].is_broken);
    assert_int_equal(run->exit_codes[1].to, 19);
    assert_int_equal(run->exit_codes[1].verdict, LW_DEAD);
    config_close(&fixture);
}

static void
fields_that_no_row_binds_are_as_the_init_left_them(void **state)
{
    (void)state;
    struct config_fixture fixture;
    struct lw_subscription_options wanted;
    config_open(&fixture, config_small);
    struct lw_subscription_options got = fixture.config->subscriptions[0].options;
    lw_subscription_options_init(&wanted);
    wanted.broker = got.broker;
    wanted.topic = got.topic;
    wanted.subscription = got.subscription;
    wanted.pipeline = got.pipeline;
    wanted.engine = got.engine;
    wanted.program = got.program;
    wanted.directory = got.directory;
    wanted.reply.key = got.reply.key;
    assert_memory_equal(&got, &wanted, sizeof(wanted));
    config_close(&fixture);
}

static void
the_backoff_of_the_only_way_is_called_backoff(void **state)
{
    (void)state;
    struct config_fixture fixture;
    open_pipeline(&fixture, "builtin: echo",
                  "    topics: [a]\n    retry: { backoff: { initial: 2s } }\n");
    const struct lw_retry_options *retry = &fixture.config->subscriptions[0].options.retry;
    assert_int_equal(retry->in_place_backoff.initial_ms, 2000);
    assert_int_equal(retry->in_place_backoff.max_ms, 30000);
    assert_int_equal(retry->in_place_backoff.jitter_ms, 200);
    config_close(&fixture);
    open_pipeline(&fixture, "builtin: echo",
                  "    topics: [a]\n    ordering: none\n"
                  "    retry: { topic: r, in_place: true, backoff: { initial: 2s } }\n");
    retry = &fixture.config->subscriptions[0].options.retry;
    assert_int_equal(retry->backoff.initial_ms, 2000);
    assert_int_equal(retry->backoff.max_ms, 300000);
    assert_int_equal(retry->in_place_backoff.initial_ms, 1000);
    config_close(&fixture);
}

static void
a_topic_lays_its_own_values_over_the_pipelines(void **state)
{
    (void)state;
    struct config_fixture fixture;
    open_pipeline(&fixture, "builtin: echo",
                  "    max_in_flight: 7\n"
                  "    profile: priority\n"
                  "    topics:\n"
                  "      - a\n"
                  "      - { name: b, priority: 0, max_in_flight: 9 }\n"
                  "      - { name: c, profile: throughput, receiver_queue_size: 5 }\n");
    const struct lw_config_subscription *items = fixture.config->subscriptions;
    assert_int_equal(items[0].options.max_in_flight, 7);
    assert_int_equal(items[0].options.receiver_queue_size, 1);
    assert_int_equal(items[1].options.max_in_flight, 9);
    assert_int_equal(items[1].options.priority, 0);
    assert_int_equal(items[1].rank, 1);
    assert_int_equal(items[2].options.receiver_queue_size, 5);
    assert_int_equal(items[2].options.max_in_flight, 2000);
    assert_int_equal(items[2].options.profile, LW_PROFILE_THROUGHPUT);
    config_close(&fixture);
}

static void
names_are_filled_from_their_patterns(void **state)
{
    (void)state;
    struct config_fixture fixture;
    open_pipeline(&fixture, "builtin: echo",
                  "    topics: [a]\n"
                  "    dead_letter: { topic: '{topic}-{group}-DLQ' }\n"
                  "    reply: { topic: 'answers.{topic}' }\n");
    const struct lw_config_subscription *item = &fixture.config->subscriptions[0];
    assert_string_equal(item->options.dead_letter.topic, "a-g-DLQ");
    assert_string_equal(item->dead_letter_topic, "a-g-DLQ");
    assert_string_equal(item->options.reply.topic, "answers.a");
    config_close(&fixture);
}

static void
error_classes_are_ordered_by_strength(void **state)
{
    (void)state;
    struct config_fixture fixture;
    open_pipeline(&fixture, "builtin: echo",
                  "    topics: [a]\n"
                  "    errors:\n"
                  "      - { codes: [1-99], verdict: error }\n"
                  "      - { codes: [2, 10-19], verdict: dead }\n"
                  "      - { codes: -5--1, verdict: retry }\n");
    const struct lw_subscription_options *options = &fixture.config->subscriptions[0].options;
    assert_int_equal(options->error_count, 4);
    assert_int_equal(options->errors[0].from, 2);
    assert_int_equal(options->errors[0].to, 2);
    assert_int_equal(options->errors[1].to, 19);
    assert_int_equal(options->errors[1].verdict, LW_DEAD);
    assert_int_equal(options->errors[2].from, -5);
    assert_int_equal(options->errors[2].to, -1);
    assert_int_equal(options->errors[2].verdict, LW_RETRY);
    assert_int_equal(options->errors[3].verdict, LW_ERROR);
    config_close(&fixture);
}

static void
bad_codes_are_refused(void **state)
{
    (void)state;
    config_mentions("pipelines: { p: { errors: [ { codes: [x], verdict: dead } ] } }\n",
                    "error[E0103]: \"x\" is not a code or a range of codes\n");
    config_mentions("pipelines: { p: { errors: [ { codes: [9-2], verdict: dead } ] } }\n",
                    "\"9-2\" is not a code or a range of codes\n");
    config_mentions(
        "pipelines: { p: { errors: [ { codes: [1], verdict: ok } ] } }\n",
        "error[E0106]: \"ok\" is not a value of pipelines.p.errors.0.verdict: dead | "
        "retry | error\n");
}

static void
built_in_handlers_are_read_with_their_value(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum lw_config_builtin builtin;
        int64_t value;
        enum lw_engine_kind engine;
    } wanted[] = {
        { "echo", LW_BUILTIN_ECHO, 0, LW_ENGINE_LOOP },
        { "noop", LW_BUILTIN_NOOP, 0, LW_ENGINE_LOOP },
        { "sleep:5ms", LW_BUILTIN_SLEEP, 5, LW_ENGINE_THREADS },
        { "io:1s", LW_BUILTIN_IO, 1000, LW_ENGINE_LOOP },
        { "cpu:500", LW_BUILTIN_CPU, 500, LW_ENGINE_THREADS },
        { "fail-n:3", LW_BUILTIN_FAIL_N, 3, LW_ENGINE_LOOP },
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        char handler[64];
        struct config_fixture fixture;
        snprintf(handler, sizeof(handler), "builtin: '%s'", wanted[i].text);
        open_pipeline(&fixture, handler, "    topics: [a]\n");
        const struct lw_config_handler *found = lw_config_handler(fixture.config, "h");
        assert_int_equal(found->kind, LW_CONFIG_BUILTIN);
        assert_int_equal(found->builtin, wanted[i].builtin);
        assert_int_equal(found->builtin_value, wanted[i].value);
        assert_int_equal(found->run.engine, wanted[i].engine);
        config_close(&fixture);
    }
}

static void
a_program_gets_its_environment_and_directory(void **state)
{
    (void)state;
    struct config_fixture fixture;
    open_pipeline(
        &fixture,
        "program: [./x], directory: sub, env: { A: 1, B: two }, workers: 3, timeout: 0",
        "    topics: [a]\n");
    const struct lw_config_handler *handler = lw_config_handler(fixture.config, "h");
    assert_int_equal(handler->env_count, 2);
    assert_string_equal(handler->env[1].value, "two");
    assert_string_equal(handler->run.directory, "sub");
    assert_int_equal(fixture.config->subscriptions[0].options.workers, 3);
    assert_int_equal(fixture.config->subscriptions[0].options.timeout_ms, 0);
    config_close(&fixture);
}

static void
words_of_other_systems_are_understood(void **state)
{
    (void)state;
    struct config_fixture fixture;
    open_pipeline(&fixture, "function: on_order",
                  "    topics: [a]\n"
                  "    ordering: key_hash\n"
                  "    dead_letter: { payload: metadata_only }\n");
    const struct lw_subscription_options *options = &fixture.config->subscriptions[0].options;
    assert_int_equal(options->ordering, LW_ORDERING_KEY);
    assert_int_equal(options->dead_letter.payload, LW_PAYLOAD_HEADERS_ONLY);
    assert_int_equal(fixture.config->handlers[0].kind, LW_CONFIG_FUNCTION);
    config_close(&fixture);
    open_pipeline(&fixture, "builtin: echo", "    topics: [a]\n    ordering: unordered\n");
    assert_int_equal(fixture.config->subscriptions[0].options.ordering, LW_ORDERING_NONE);
    config_close(&fixture);
}

static void
a_group_may_be_called_subscription(void **state)
{
    (void)state;
    config_mentions("pipelines: { p: { consumer: { group: a, subscription: b } } }\n",
                    "error[E0108]: \"subscription\" and \"group\" mean the same; keep one of "
                    "them\n");
    config_is_fine("version: 1\n"
                   "brokers: { main: { url: 'memory:' } }\n"
                   "handlers: { h: { builtin: echo } }\n"
                   "pipelines: { p: { broker: main, handler: h, consumer: { subscription: s }, "
                   "topics: [a] } }\n");
}

static void
empty_properties_are_left_out(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open(
        &fixture,
        "version: 1\n"
        "brokers: { main: { url: 'kafka://h:1',\n"
        "  properties: { client.id: \"${NONE:-}\", sasl.username: , sasl.password: ' x ' "
        "} } }\n"
        "handlers: { h: { builtin: echo } }\n"
        "pipelines: { p: { broker: main, handler: h, consumer: { group: g }, topics: [a] "
        "} }\n");
    assert_int_equal(fixture.config->brokers[0].property_count, 1);
    assert_string_equal(fixture.config->brokers[0].properties[0].value, " x ");
    config_close(&fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest_file_gets_the_safe_defaults),
        cmocka_unit_test(a_program_may_be_spoken_to_in_frames_or_run_once),
        cmocka_unit_test(fields_that_no_row_binds_are_as_the_init_left_them),
        cmocka_unit_test(the_backoff_of_the_only_way_is_called_backoff),
        cmocka_unit_test(a_topic_lays_its_own_values_over_the_pipelines),
        cmocka_unit_test(names_are_filled_from_their_patterns),
        cmocka_unit_test(error_classes_are_ordered_by_strength),
        cmocka_unit_test(bad_codes_are_refused),
        cmocka_unit_test(built_in_handlers_are_read_with_their_value),
        cmocka_unit_test(a_program_gets_its_environment_and_directory),
        cmocka_unit_test(words_of_other_systems_are_understood),
        cmocka_unit_test(a_group_may_be_called_subscription),
        cmocka_unit_test(empty_properties_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
