/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and dead letters on Pulsar: the whole dispatcher with the Pulsar client against the
 * embedded broker, all on one moved clock. What a copy says, when the client's dead-letter policy
 * ends redelivery, where it goes, and that options which ask something of the dispatcher get it.
 */
#include "tests/support/test.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "brokers/pulsar/broker.h"
#include "brokers/pulsar/pulsar.h"
#include "dispatcher/dispatcher.h"
#include "engines/loop.h"
#include "tests/support/pulsar/embedded.h"
#include "tests/support/virtual_host.h"

#define TOPIC "persistent://public/default/t"
#define LETTERS "persistent://public/default/t-s-DLQ"
#define IDENTITY "main/persistent%%3A%%2F%%2Fpublic%%2Fdefault%%2Ft/0/"

enum { RUNNING_MAX = 64, PATIENCE = 3000 };

struct stage {
    struct virtual_host clock;
    struct embedded *broker;
    struct lw_dispatcher dispatcher;
    struct lw_engine *engine;
    struct lw_delivery *running[RUNNING_MAX];
    uint32_t running_count;
    uint32_t runs;
    char identity[256]; /* of the message that ran last */
    char log[8192];
};

static struct stage stage;

/* -- The stage ---------------------------------------------------------------------------------- */

static void
on_message(struct lw_delivery *delivery, void *user)
{
    (void)user;
    assert_true(stage.running_count < RUNNING_MAX);
    stage.running[stage.running_count++] = delivery;
    stage.runs++;
    (void)lw_delivery_message_id(delivery, stage.identity, sizeof stage.identity);
}

static void
on_log(enum lw_log_level level, const char *event, const char *text, const char *fields,
       void *user)
{
    size_t used = strlen(stage.log);
    (void)level, (void)user;
    (void)snprintf(stage.log + used, sizeof stage.log - used, "%s: %s %s\n", event, text,
                   fields);
}

static int
set_up(void **state)
{
    struct embedded_settings settings;
    struct lw_dispatcher_options options;
    struct lw_handler_options handler = { .handler_async = on_message };
    struct lw_error error = { 0 };
    (void)state;
    memset(&stage, 0, sizeof stage);
    virtual_host_init(&stage.clock, 1);
    stage.clock.host.log = on_log;
    embedded_settings_init(&settings);
    stage.broker = embedded_create(&stage.clock.host, &settings);
    embedded_create_topic(stage.broker, TOPIC);
    embedded_create_subscription(stage.broker, TOPIC, "s", LW_PULSAR_SUB_SHARED, false);
    lw_dispatcher_options_init(&options);
    options.concurrency = 16;
    assert_int_equal(
        lw_dispatcher_init(&stage.dispatcher, &stage.clock.host, -1, &options, &error),
        LW_STATUS_OK);
    assert_int_equal(lw_loop_engine_create(&stage.clock.host, &stage.dispatcher.completions,
                                           "test", &handler, &stage.engine),
                     LW_STATUS_OK);
    assert_int_equal(lw_dispatcher_add_engine(&stage.dispatcher, stage.engine), LW_STATUS_OK);
    struct lw_broker *broker = NULL;
    assert_int_equal(lw_pulsar_broker_ops()->create(&stage.clock.host, "main",
                                                    embedded_url(stage.broker, 0), NULL, 0,
                                                    &broker, &error),
                     LW_STATUS_OK);
    assert_int_equal(lw_dispatcher_add_broker(&stage.dispatcher, broker, NULL), LW_STATUS_OK);
    return 0;
}

static void
turn(void)
{
    virtual_host_settle(&stage.clock);
    (void)poll(NULL, 0, 1);
}

/* A millisecond passes with each turn: batches wait so long for others. */
static void
until(bool (*is_so)(void))
{
    for (int i = 0; i < PATIENCE && !is_so(); i++) {
        turn();
        virtual_host_pass(&stage.clock, LW_MS);
    }
    if (!is_so()) {
        fail_msg("what is waited for does not happen: %u runs, %u running, %llu redelivered",
                 stage.runs, stage.running_count,
                 (unsigned long long)embedded_counts(stage.broker)->redelivered);
    }
}

static void
rest(void)
{
    for (int i = 0; i < 12; i++) {
        turn();
    }
}

static void
pass_ms(int64_t ms)
{
    virtual_host_pass(&stage.clock, (uint64_t)ms * LW_MS);
    rest();
}

static bool
is_closed(void)
{
    return stage.dispatcher.phase == LW_PHASE_CLOSED;
}

static void
finish(enum lw_verdict verdict)
{
    assert_true(stage.running_count > 0);
    struct lw_delivery *delivery = stage.running[--stage.running_count];
    assert_int_equal(lw_delivery_finish(delivery, verdict), LW_STATUS_OK);
    rest();
}

static int
tear_down(void **state)
{
    (void)state;
    if (stage.dispatcher.phase != LW_PHASE_NEW) {
        lw_shutdown_begin(&stage.dispatcher, true);
        while (stage.running_count > 0) {
            finish(LW_OK);
        }
        until(is_closed);
    }
    const struct embedded_counts *counts = embedded_counts(stage.broker);
    if (counts->violations > 0 || counts->protocol_errors > 0) {
        fail_msg("%s %s", counts->first_violation, counts->last_error);
    }
    lw_dispatcher_deinit(&stage.dispatcher);
    embedded_destroy(stage.broker);
    return 0;
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct lw_subscription_options
wanted(const struct lw_property *properties, size_t count)
{
    struct lw_subscription_options options;
    lw_subscription_options_init(&options);
    options.broker = "main";
    options.topic = TOPIC;
    options.subscription = "s";
    options.properties = properties;
    options.property_count = count;
    return options;
}

static void
start(const struct lw_subscription_options *options)
{
    struct lw_error error = { 0 };
    enum lw_status status = lw_dispatcher_add_stream(&stage.dispatcher, options, stage.engine,
                                                     &error);
    if (status != LW_STATUS_OK) {
        fail_msg("%s", error.message);
    }
    assert_int_equal(lw_dispatcher_start(&stage.dispatcher, &error), LW_STATUS_OK);
    rest();
}

static void
publish(const char *value, int32_t batch)
{
    struct embedded_publish message = { .value = lw_bytes_of(value), .batch = batch };
    (void)embedded_publish(stage.broker, TOPIC, &message);
}

static bool
is_running(void)
{
    return stage.running_count > 0;
}

static bool
has_letter(void)
{
    return embedded_entry_count(stage.broker, LETTERS) > 0;
}

/* -- What is stored ------------------------------------------------------------------------------- */

/* A property of the first message of a topic; "" without it. */
static const char *
property_of(const char *topic, const char *name)
{
    static char value[512];
    struct lw_pulsar_metadata metadata;
    struct lw_bytes body;
    struct lw_pulsar_pair pair;
    assert_true(embedded_entry(stage.broker, topic, 0, &metadata, &body));
    const struct lw_pulsar_list *list = &metadata.properties;
    struct lw_pulsar_batch batch;
    struct lw_pulsar_member member;
    if (lw_pulsar_metadata_is_batch(&metadata)) {
        assert_int_equal(lw_pulsar_batch_open(&metadata, body, &batch), LW_PULSAR_OK);
        assert_true(lw_pulsar_batch_next(&batch, &member));
        list = &member.metadata.properties;
    }
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(list);
    while (lw_pulsar_walk_pair(&walk, &pair)) {
        if (lw_text_is_equal(pair.key, name)) {
            (void)snprintf(value, sizeof value, "%.*s", (int)pair.value.size,
                           (const char *)pair.value.data);
            return value;
        }
    }
    return "";
}

static uint64_t
backlog(void)
{
    struct embedded_subscription_info info;
    assert_true(embedded_subscription(stage.broker, TOPIC, "s", &info));
    return info.backlog;
}

/* The id that the embedded broker gave, as official clients write it. */
static void
expect_official_ids(const char *topic)
{
    unsigned long long ledger = 0;
    unsigned long long entry = 0;
    char expected[64];
    assert_int_equal(sscanf(stage.identity, IDENTITY "%llu:%llu", &ledger, &entry), 2);
    (void)snprintf(expected, sizeof expected, "(%llu,%llu,-1,-1)", ledger, entry);
    assert_string_equal(property_of(topic, "ORIGIN_MESSAGE_ID"), expected);
    (void)snprintf(expected, sizeof expected, "%llu:%llu:-1", ledger, entry);
    assert_string_equal(property_of(topic, "ORIGIN_MESSAGE_IDY_TIME"), expected);
    assert_string_equal(property_of(topic, "x-laneway-id"), stage.identity);
    assert_string_equal(property_of(topic, "REAL_TOPIC"), TOPIC);
    assert_string_equal(property_of(topic, "REAL_SUBSCRIPTION"), "s");
}

/* -- The policy of the client ------------------------------------------------------------------------ */

static const struct lw_property twice[] = {
    { "dead_letter_policy.max_redeliver_count", "2" },
    { "negative_ack_redelivery_delay_ms", "100" },
};

static void
two_redeliveries_are_three_runs_and_then_a_dead_letter(void **state)
{
    (void)state;
    struct lw_subscription_options options = wanted(twice, COUNT(twice));
    publish("v", 0);
    start(&options);
    for (int i = 0; i < 3; i++) {
        until(is_running);
        assert_false(has_letter());
        finish(LW_ERROR);
        pass_ms(200);
    }
    until(has_letter);
    pass_ms(1000);
    assert_int_equal(stage.runs, 3);
    assert_int_equal(embedded_entry_count(stage.broker, LETTERS), 1);
    assert_int_equal(backlog(), 0);
    expect_official_ids(LETTERS);
}

static void
a_message_that_succeeds_at_its_last_run_is_no_dead_letter(void **state)
{
    (void)state;
    struct lw_subscription_options options = wanted(twice, COUNT(twice));
    publish("v", 0);
    start(&options);
    for (int i = 0; i < 3; i++) {
        until(is_running);
        finish(i < 2 ? LW_ERROR : LW_OK);
        pass_ms(200);
    }
    pass_ms(1000);
    assert_int_equal(stage.runs, 3);
    assert_false(has_letter());
    assert_int_equal(backlog(), 0);
}

/* The broker counts for the whole entry; what was acknowledged of it stays so. */
static void
of_a_batch_only_the_member_that_fails_becomes_a_dead_letter(void **state)
{
    (void)state;
    struct lw_subscription_options options = wanted(twice, COUNT(twice));
    publish("v", 3);
    start(&options);
    until(is_running);
    assert_int_equal(stage.running_count, 3);
    finish(LW_OK);
    finish(LW_OK);
    finish(LW_ERROR);
    for (int i = 0; i < 2; i++) {
        pass_ms(200);
        until(is_running);
        assert_int_equal(stage.running_count, 1);
        finish(LW_ERROR);
    }
    until(has_letter);
    pass_ms(1000);
    assert_int_equal(stage.runs, 5);
    assert_int_equal(embedded_message_count(stage.broker, LETTERS), 1);
    assert_int_equal(backlog(), 0);
}

static void
the_policys_own_topic_gets_its_first_subscription(void **state)
{
    (void)state;
    static const struct lw_property properties[] = {
        { "dead_letter_policy.max_redeliver_count", "1" },
        { "dead_letter_policy.dead_letter_topic", "grave" },
        { "dead_letter_policy.initial_subscription_name", "keep" },
        { "negative_ack_redelivery_delay_ms", "100" },
    };
    struct lw_subscription_options options = wanted(properties, COUNT(properties));
    struct embedded_subscription_info info;
    publish("v", 0);
    start(&options);
    for (int i = 0; i < 2; i++) {
        until(is_running);
        finish(LW_ERROR);
        pass_ms(200);
    }
    pass_ms(1000);
    assert_false(has_letter());
    assert_true(embedded_subscription(stage.broker, "grave", "keep", &info));
    assert_int_equal(info.backlog, 1);
}

/* Its handler never answers: each time the broker takes it back, and it is not given back. */
static void
what_was_redelivered_beyond_the_count_does_not_run_again(void **state)
{
    (void)state;
    static const struct lw_property properties[] = {
        { "dead_letter_policy.max_redeliver_count", "1" },
        { "unacked_messages_timeout_ms", "10000" },
    };
    struct lw_subscription_options options = wanted(properties, COUNT(properties));
    publish("v", 0);
    start(&options);
    until(is_running);
    pass_ms(11000);
    assert_int_equal(stage.runs, 2);
    pass_ms(11000);
    until(has_letter);
    pass_ms(1000);
    assert_int_equal(stage.runs, 2);
    assert_string_equal(property_of(LETTERS, "x-error-reason"),
                        "redelivered 2 times without a result");
    assert_int_equal(backlog(), 0);
}

static void
without_a_policy_redelivery_does_not_end(void **state)
{
    (void)state;
    struct lw_subscription_options options = wanted(&twice[1], 1);
    publish("v", 0);
    start(&options);
    for (int i = 0; i < 20; i++) {
        until(is_running);
        finish(LW_ERROR);
        pass_ms(200);
    }
    assert_int_equal(stage.runs, 21);
    assert_false(has_letter());
}

/* -- Copies ------------------------------------------------------------------------------------------ */

static void
a_retry_copy_says_where_it_came_from_and_keeps_its_identity(void **state)
{
    (void)state;
    struct lw_subscription_options options = wanted(NULL, 0);
    struct lw_subscription_options again = wanted(NULL, 0);
    struct lw_error error = { 0 };
    char first[256];
    options.retry.topic = "{topic}-again";
    again.topic = TOPIC "-again";
    again.retry.topic = TOPIC "-again";
    embedded_create_topic(stage.broker, TOPIC "-again");
    embedded_create_subscription(stage.broker, TOPIC "-again", "s", LW_PULSAR_SUB_SHARED,
                                 false);
    publish("v", 0);
    assert_int_equal(lw_dispatcher_add_stream(&stage.dispatcher, &again, stage.engine, &error),
                     LW_STATUS_OK);
    start(&options);
    until(is_running);
    (void)snprintf(first, sizeof first, "%s", stage.identity);
    for (int i = 0; i < 3; i++) {
        finish(LW_RETRY);
        pass_ms(10000);
        until(is_running);
        assert_string_equal(stage.identity, first);
    }
    assert_int_equal(embedded_entry_count(stage.broker, TOPIC "-again"), 3);
    expect_official_ids(TOPIC "-again");
    assert_string_equal(property_of(TOPIC "-again", "RECONSUMETIMES"), "1");
    assert_string_equal(property_of(TOPIC "-again", "DELAY_TIME"), "1000");
    assert_string_equal(property_of(TOPIC "-again", "DEAD_LETTER_TOPIC"), LETTERS);
}

/* -- Warnings ------------------------------------------------------------------------------------------ */

/* Starts a subscription with that retry topic, and perhaps one that reads "again". */
static enum lw_status
start_with_retries(const char *retry_topic, const struct lw_property *reader)
{
    struct lw_subscription_options options = wanted(NULL, 0);
    struct lw_error error = { 0 };
    options.retry.topic = retry_topic;
    assert_int_equal(
        lw_dispatcher_add_stream(&stage.dispatcher, &options, stage.engine, &error),
        LW_STATUS_OK);
    if (reader) {
        options = wanted(reader, 1);
        options.topic = "again";
        assert_int_equal(
            lw_dispatcher_add_stream(&stage.dispatcher, &options, stage.engine, &error),
            LW_STATUS_OK);
    }
    enum lw_status status = lw_dispatcher_start(&stage.dispatcher, &error);
    (void)snprintf(stage.log + strlen(stage.log), 64, "%s", error.code);
    rest();
    return status;
}

static const struct lw_property shared = { "consumer_type", "shared" };
static const struct lw_property failover = { "consumer_type", "failover" };

static void
a_retry_topic_that_is_read_by_another_spelling_is_no_warning(void **state)
{
    (void)state;
    assert_int_equal(start_with_retries("persistent://public/default/again", &shared),
                     LW_STATUS_OK);
    assert_null(strstr(stage.log, "retry."));
}

static void
a_retry_topic_that_nobody_reads_is_a_warning(void **state)
{
    (void)state;
    assert_int_equal(start_with_retries("persistent://public/other/again", &shared),
                     LW_STATUS_OK);
    assert_non_null(strstr(stage.log, "retry.unconsumed"));
    assert_non_null(strstr(stage.log, "code=W0301"));
}

static void
a_retry_topic_whose_delays_are_not_kept_is_a_warning(void **state)
{
    (void)state;
    assert_int_equal(start_with_retries("again", &failover), LW_STATUS_OK);
    assert_non_null(strstr(stage.log, "retry.undelayed"));
    assert_non_null(strstr(stage.log, "code=W0316"));
}

static void
who_reads_a_retry_topic_is_told_how_long_its_copies_may_wait(void **state)
{
    (void)state;
    assert_int_equal(start_with_retries("again", &shared), LW_STATUS_OK);
    const struct lw_stream *writer = stage.dispatcher.streams[0];
    const struct lw_stream *reader = stage.dispatcher.streams[1];
    const struct lw_backoff *backoff = &writer->policy.backoff;
    uint64_t longest_ms = (uint64_t)(backoff->max_ms + backoff->jitter_ms);
    assert_true(longest_ms > 1000);
    assert_true(((const struct lw_pulsar_source *)reader->source)->delay_ns ==
                longest_ms * LW_MS);
    assert_true(((const struct lw_pulsar_source *)writer->source)->delay_ns == 0);
}

static void
warnings_about_retries_can_be_silenced(void **state)
{
    (void)state;
    stage.dispatcher.options.retry_warnings = LW_WARNINGS_SILENT;
    assert_int_equal(start_with_retries("again", &failover), LW_STATUS_OK);
    assert_null(strstr(stage.log, "retry."));
}

static void
warnings_about_retries_can_be_errors(void **state)
{
    (void)state;
    stage.dispatcher.options.retry_warnings = LW_WARNINGS_ERROR;
    assert_int_equal(start_with_retries("again", &failover), LW_STATUS_CONFIG);
    assert_non_null(strstr(stage.log, "E0309"));
}

/* -- What may be asked for in advance ------------------------------------------------------------------ */

static int64_t
most_permits(const struct lw_property *properties, size_t count)
{
    struct lw_subscription_options options = wanted(properties, count);
    options.profile = LW_PROFILE_THROUGHPUT;
    start(&options);
    return embedded_counts(stage.broker)->permits_max;
}

static void
without_a_bound_over_all_partitions_the_queue_size_is_asked_for(void **state)
{
    (void)state;
    assert_int_equal(most_permits(NULL, 0), 1000);
}

static void
no_more_is_asked_for_than_the_bound_over_all_partitions(void **state)
{
    (void)state;
    static const struct lw_property properties[] = {
        { "max_total_receiver_queue_size_across_partitions", "3" }
    };
    assert_int_equal(most_permits(properties, COUNT(properties)), 3);
}

/* -- A paused start ------------------------------------------------------------------------------------ */

static void
what_starts_paused_receives_nothing_until_it_is_resumed(void **state)
{
    (void)state;
    static const struct lw_property properties[] = { { "start_paused", "true" } };
    struct lw_subscription_options options = wanted(properties, COUNT(properties));
    publish("v", 0);
    start(&options);
    pass_ms(5000);
    assert_int_equal(stage.runs, 0);
    assert_int_equal(embedded_counts(stage.broker)->messages_sent, 0);
    lw_dispatcher_pause(&stage.dispatcher, stage.dispatcher.streams[0], false);
    until(is_running);
    finish(LW_OK);
    pass_ms(1000);
    assert_int_equal(backlog(), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_redeliveries_are_three_runs_and_then_a_dead_letter),
        TEST(a_message_that_succeeds_at_its_last_run_is_no_dead_letter),
        TEST(of_a_batch_only_the_member_that_fails_becomes_a_dead_letter),
        TEST(the_policys_own_topic_gets_its_first_subscription),
        TEST(what_was_redelivered_beyond_the_count_does_not_run_again),
        TEST(without_a_policy_redelivery_does_not_end),
        TEST(a_retry_copy_says_where_it_came_from_and_keeps_its_identity),
        TEST(a_retry_topic_that_is_read_by_another_spelling_is_no_warning),
        TEST(a_retry_topic_that_nobody_reads_is_a_warning),
        TEST(a_retry_topic_whose_delays_are_not_kept_is_a_warning),
        TEST(who_reads_a_retry_topic_is_told_how_long_its_copies_may_wait),
        TEST(warnings_about_retries_can_be_silenced),
        TEST(warnings_about_retries_can_be_errors),
        TEST(without_a_bound_over_all_partitions_the_queue_size_is_asked_for),
        TEST(no_more_is_asked_for_than_the_bound_over_all_partitions),
        TEST(what_starts_paused_receives_nothing_until_it_is_resumed),
    };
    return cmocka_run_group_tests_name("dispatcher.pulsar_letters", tests, NULL, NULL);
}
