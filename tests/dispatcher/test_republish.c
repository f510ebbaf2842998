/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retry topics: by native delay on brokers that settle individually, by tiers on logs. What the
 * copies carry, how often they are made, and where the last one ends.
 */
#include "tests/support/test.h"

#include "tests/dispatcher/world.h"

#include <stdio.h>
#include <string.h>

static enum lw_verdict
fail_always(struct lw_delivery *delivery, void *user)
{
    (void)user;
    return lw_delivery_retry(delivery, "no luck", -1);
}

/* Options of a stream of `topic` with the retry topic "orders-RETRY". */
static struct lw_subscription_options
with_retry(const char *topic, int64_t max_retries)
{
    struct lw_subscription_options options = world_options(topic, 1);
    options.retry.topic = "orders-RETRY";
    options.retry.max_retries = max_retries;
    options.retry.backoff = (struct lw_backoff_options){ 1000, 2, 300000, 0 };
    options.dead_letter.topic = "orders-DLQ";
    return options;
}

/* A shared subscription on the topic and on its retry topic. */
static void
begin_individual(struct world *world, int64_t max_retries)
{
    struct lw_memory_options hub;
    lw_memory_options_init(&hub);
    hub.mode = LW_MEMORY_INDIVIDUAL;
    world_init(world, 1, &hub);
    struct lw_subscription_options source = with_retry("orders", max_retries);
    struct lw_subscription_options retry = with_retry("orders-RETRY", max_retries);
    world_topic(world, "orders", 1);
    world_topic(world, "orders-RETRY", 1);
    world_add(world, &source);
    world_add(world, &retry);
    world_start(world);
    world_send(world, "orders", 0, "k", 1);
    world_turn(world);
}

/* A position hub with the tiers 1s and 2s of "orders-RETRY", one message sent. */
static void
begin_tiers(struct world *world, int64_t max_retries)
{
    static const int64_t tiers_ms[] = { 1000, 2000 };
    world_init(world, 1, NULL);
    struct lw_subscription_options options = with_retry("orders", max_retries);
    options.retry.tiers_ms = tiers_ms;
    options.retry.tier_count = 2;
    options.retry.allow_overtaking = true;
    world_topic(world, "orders", 1);
    world_add(world, &options);
    world_start(world);
    world_send(world, "orders", 0, "k", 1);
    world_turn(world);
}

/* -- native delay --------------------------------------------------------------------------- */

static void
a_copy_carries_its_origin_and_counts_up(void **state)
{
    static const char *const delays[] = { "1000", "2000", "4000" };
    struct world world;
    (void)state;
    begin_individual(&world, -1);
    for (size_t i = 0; i < 3; i++) {
        char count[8];
        snprintf(count, sizeof(count), "%zu", i + 1);
        world_finish(&world, 0, LW_RETRY);
        world_pass(&world, 1);
        assert_string_equal(world_stored_header(&world, "orders-RETRY", i, "REAL_TOPIC"),
                            "orders");
        assert_string_equal(world_stored_header(&world, "orders-RETRY", i, "ORIGIN_MESSAGE_ID"),
                            "main/orders/0/0");
        assert_string_equal(world_stored_header(&world, "orders-RETRY", i, "RECONSUMETIMES"),
                            count);
        assert_string_equal(world_stored_header(&world, "orders-RETRY", i, "DELAY_TIME"),
                            delays[i]);
        assert_string_equal(world_stored_header(&world, "orders-RETRY", i, "DEAD_LETTER_TOPIC"),
                            "orders-DLQ");
        world_pass(&world, 1000 << i);
        assert_int_equal(world.running_count, 1);
    }
    assert_int_equal(lw_delivery_retries(world.running[0]), 3);
    world_deinit(&world);
}

static void
the_identity_and_the_attempt_are_those_of_the_message_and_the_run(void **state)
{
    struct world world;
    char id[64];
    (void)state;
    begin_individual(&world, -1);
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, 1001);
    (void)lw_delivery_message_id(world.running[0], id, sizeof(id));
    assert_string_equal(id, "main/orders/0/0");
    assert_string_equal(lw_delivery_topic(world.running[0]), "orders-RETRY");
    assert_int_equal(lw_delivery_attempt(world.running[0]), 1);
    world_deinit(&world);
}

static void
the_original_is_acked_only_after_the_copy_is_confirmed(void **state)
{
    struct world world;
    (void)state;
    begin_individual(&world, -1);
    lw_memory_hub_options(world.hub)->publish_latency_ns = 500 * LW_MS;
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, 499);
    assert_int_equal(lw_memory_hub_stats(world.hub).acks, 0);
    world_pass(&world, 2);
    assert_int_equal(lw_memory_hub_stats(world.hub).acks, 1);
    assert_true(world_told(&world, "publish:orders/0/0=2 settle:orders/0/0=1 "));
    world_deinit(&world);
}

/* Fails for ever; counts the runs until it rests in the dead-letter topic. */
static void
expect_runs(int64_t max_retries, uint32_t runs)
{
    struct world world;
    char retries[8];
    begin_individual(&world, max_retries);
    world.answer = fail_always;
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, 3600 * 1000);
    snprintf(retries, sizeof(retries), "%d", (int)max_retries);
    assert_int_equal(world.started_count, runs);
    assert_int_equal(world_count(&world, "orders-DLQ"), 1);
    assert_string_equal(world_stored_header(&world, "orders-DLQ", 0, "RECONSUMETIMES"),
                        retries);
    assert_string_equal(world_stored_header(&world, "orders-DLQ", 0, "x-error-reason"),
                        runs > 1 ? "no luck" : "");
    assert_int_equal(lw_memory_hub_backlog(world.hub, "group", "orders"), 0);
    assert_int_equal(lw_memory_hub_backlog(world.hub, "group", "orders-RETRY"), 0);
    world_deinit(&world);
}

static void
no_retries_is_straight_to_the_dead_letter_topic(void **state)
{
    (void)state;
    expect_runs(0, 1);
}

static void
one_retry_runs_twice(void **state)
{
    (void)state;
    expect_runs(1, 2);
}

static void
five_retries_run_six_times(void **state)
{
    (void)state;
    expect_runs(5, 6);
}

static void
unlimited_retries_never_end(void **state)
{
    struct world world;
    (void)state;
    begin_individual(&world, -1);
    world.answer = fail_always;
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, INT64_C(24) * 3600 * 1000);
    /* 511 s up to the cap of 300 s, then one every 300 s */
    assert_in_range(world.started_count, 280, 300);
    assert_int_equal(world_count(&world, "orders-DLQ"), 0);
    assert_int_equal(lw_memory_hub_backlog(world.hub, "group", "orders-RETRY"), 1);
    world_deinit(&world);
}

static void
a_delay_of_the_handler_is_that_of_the_copy(void **state)
{
    struct world world;
    (void)state;
    begin_individual(&world, -1);
    enum lw_verdict verdict = lw_delivery_retry(world.running[0], "busy", 7000);
    world_finish(&world, 0, verdict);
    world_pass(&world, 6999);
    assert_int_equal(world.running_count, 0);
    world_pass(&world, 2);
    assert_int_equal(world.running_count, 1);
    world_deinit(&world);
}

static void
headers_do_not_pile_up_and_duplicates_stay(void **state)
{
    struct world world;
    char first[1024];
    (void)state;
    begin_individual(&world, 20);
    world_finish(&world, 0, LW_OK);
    struct lw_header headers[] = { { lw_bytes_of("h"), lw_bytes_of("1") },
                                   { lw_bytes_of("h"), lw_bytes_of("2") } };
    struct lw_memory_item item = lw_memory_item_of("orders", "k", "v");
    item.headers = headers;
    item.header_count = 2;
    world.answer = fail_always;
    assert_int_equal(lw_memory_hub_publish(world.hub, &item, NULL, NULL), LW_STATUS_OK);
    world_pass(&world, 3600 * 1000 * 2);
    assert_int_equal(world_count(&world, "orders-RETRY"), 20);
    snprintf(first, sizeof(first), "%s", world_stored(&world, "orders-RETRY", 0));
    assert_memory_equal(first, "k|v|h=1,h=2,", 12);
    const char *last = world_stored(&world, "orders-RETRY", 19);
    assert_memory_equal(last, "k|v|h=1,h=2,", 12);
    assert_in_range(strlen(last), strlen(first), strlen(first) + 4); /* more digits only */
    world_deinit(&world);
}

static void
a_forged_count_counts_as_none_and_is_said(void **state)
{
    static const char *const counts[] = { "abc", "-5", "99999999999999999999", "2147483647" };
    (void)state;
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        struct world world;
        begin_individual(&world, 5);
        world_finish(&world, 0, LW_OK);
        struct lw_header header = { lw_bytes_of("RECONSUMETIMES"), lw_bytes_of(counts[i]) };
        struct lw_memory_item item = lw_memory_item_of("orders", "k", "v");
        item.headers = &header;
        item.header_count = 1;
        assert_int_equal(lw_memory_hub_publish(world.hub, &item, NULL, NULL), LW_STATUS_OK);
        world_turn(&world);
        world_finish(&world, 0, LW_RETRY);
        world_turn(&world);
        assert_string_equal(world_stored_header(&world, "orders-RETRY", 0, "RECONSUMETIMES"),
                            "1");
        assert_true(world_logged(&world, "retries.malformed"));
        world_deinit(&world);
    }
}

/* -- tiers ------------------------------------------------------------------------------------ */

static void
a_copy_waits_in_the_tier_that_fits(void **state)
{
    struct world world;
    (void)state;
    begin_tiers(&world, -1);
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, 10);
    assert_int_equal(world_count(&world, "orders-RETRY.1s"), 1);
    assert_string_equal(world_stored_header(&world, "orders-RETRY.1s", 0, "x-laneway-retries"),
                        "1");
    assert_string_equal(
        world_stored_header(&world, "orders-RETRY.1s", 0, "x-laneway-not-before"),
        "1700000001000");
    assert_int_equal(world.running_count, 0);
    world_pass(&world, 980);
    assert_int_equal(world.running_count, 0);
    world_pass(&world, 20);
    assert_string_equal(world_name(&world, 0), "orders-RETRY.1s/0/0");
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, 1);
    assert_int_equal(world_count(&world, "orders-RETRY.2s"), 1);
    world_deinit(&world);
}

static void
a_delay_above_the_longest_tier_is_cut_to_it_and_said(void **state)
{
    struct world world;
    (void)state;
    begin_tiers(&world, -1);
    enum lw_verdict verdict = lw_delivery_retry(world.running[0], "tomorrow", 86400000);
    world_finish(&world, 0, verdict);
    world_pass(&world, 10);
    assert_int_equal(world_count(&world, "orders-RETRY.2s"), 1);
    assert_string_equal(
        world_stored_header(&world, "orders-RETRY.2s", 0, "x-laneway-not-before"),
        "1700000002000");
    assert_non_null(strstr(world.log.data, "retry.shortened"));
    world_deinit(&world);
}

static void
tiers_are_committed_like_their_topic(void **state)
{
    struct world world;
    (void)state;
    begin_tiers(&world, -1);
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders", 0), 1);
    world_pass(&world, 1000);
    world_finish(&world, 0, LW_OK);
    world_pass(&world, 200);
    assert_int_equal(world_committed(&world, "orders-RETRY.1s", 0), 1);
    world_deinit(&world);
}

static void
a_long_delay_does_not_hold_a_short_one(void **state)
{
    struct world world;
    (void)state;
    begin_tiers(&world, -1);
    enum lw_verdict verdict = lw_delivery_retry(world.running[0], "long", 2000);
    world_finish(&world, 0, verdict);
    world_send(&world, "orders", 0, "j", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, 1001);
    assert_string_equal(world_name(&world, 0), "orders-RETRY.1s/0/0");
    world_deinit(&world);
}

static void
the_last_tier_copy_ends_in_the_dead_letter_topic(void **state)
{
    struct world world;
    (void)state;
    begin_tiers(&world, 3);
    world.answer = fail_always;
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, 60 * 1000);
    assert_int_equal(world.started_count, 4);
    assert_int_equal(world_count(&world, "orders-DLQ"), 1);
    assert_string_equal(world_stored_header(&world, "orders-DLQ", 0, "x-laneway-retries"), "3");
    assert_string_equal(world_stored_header(&world, "orders-DLQ", 0, "source-topic"), "orders");
    assert_string_equal(world_stored_header(&world, "orders-DLQ", 0, "x-laneway-id"),
                        "main/orders/0/0");
    assert_string_equal(world_stored_header(&world, "orders-DLQ", 0, "x-laneway-not-before"),
                        "");
    world_deinit(&world);
}

static void
a_copy_to_an_external_retry_topic_is_not_read_here(void **state)
{
    static const int64_t tiers_ms[] = { 1000 };
    struct world world;
    (void)state;
    world_init(&world, 1, NULL);
    struct lw_subscription_options options = with_retry("orders", -1);
    options.retry.tiers_ms = tiers_ms;
    options.retry.tier_count = 1;
    options.retry.is_external = true;
    options.retry.allow_overtaking = true;
    world_topic(&world, "orders", 1);
    world_add(&world, &options);
    world_start(&world);
    world_send(&world, "orders", 0, "k", 1);
    world_turn(&world);
    world_finish(&world, 0, LW_RETRY);
    world_pass(&world, 10000);
    assert_int_equal(world_count(&world, "orders-RETRY.1s"), 1);
    assert_int_equal(world.started_count, 1);
    world_deinit(&world);
}

static void
in_place_attempts_come_before_republication(void **state)
{
    struct world world;
    (void)state;
    world_init(&world, 1, NULL);
    struct lw_subscription_options options = with_retry("orders", 1);
    options.retry.in_place = LW_YES;
    options.retry.max_attempts = 2;
    options.retry.in_place_backoff = (struct lw_backoff_options){ 100, 1, 100, 0 };
    options.retry.allow_overtaking = true;
    world.answer = fail_always;
    world_topic(&world, "orders", 1);
    world_add(&world, &options);
    world_start(&world);
    world_send(&world, "orders", 0, "k", 1);
    world_pass(&world, 60000);
    assert_int_equal(world.started_count, 4); /* 2 runs, a copy, 2 runs, the dead letter */
    assert_int_equal(world_count(&world, "orders-RETRY.1s"), 1);
    assert_string_equal(world_stored_header(&world, "orders-DLQ", 0, "x-retry-attempt"), "2");
    world_deinit(&world);
}

/* -- warnings and refusals ----------------------------------------------------------------------- */

static void
expect_start(enum lw_warnings mode, enum lw_status status, bool is_logged)
{
    struct world world;
    struct lw_error error = { 0 };
    struct lw_memory_options hub;
    lw_memory_options_init(&hub);
    hub.mode = LW_MEMORY_INDIVIDUAL;
    world_init(&world, 1, &hub);
    world.dispatcher.options.retry_warnings = mode;
    struct lw_subscription_options options = with_retry("orders", -1);
    world_add(&world, &options);
    assert_int_equal(lw_dispatcher_start(&world.dispatcher, &error), status);
    world.is_started = status == LW_STATUS_OK;
    assert_int_equal(world_logged(&world, "retry.unconsumed"), is_logged);
    world_deinit(&world);
}

static void
a_retry_topic_that_nobody_reads_is_said_as_configured(void **state)
{
    (void)state;
    expect_start(LW_WARNINGS_PRINT, LW_STATUS_OK, true);
    expect_start(LW_WARNINGS_SILENT, LW_STATUS_OK, false);
    expect_start(LW_WARNINGS_ERROR, LW_STATUS_CONFIG, false);
}

static void
a_retry_topic_with_key_order_is_refused(void **state)
{
    struct world world;
    struct lw_error error = { 0 };
    (void)state;
    world_init(&world, 1, NULL);
    struct lw_subscription_options options = with_retry("orders", -1);
    assert_int_equal(
        lw_dispatcher_add_stream(&world.dispatcher, &options, world.engine, &error),
        LW_STATUS_INVALID);
    assert_string_equal(error.code, "E0307");
    world_deinit(&world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_carries_its_origin_and_counts_up),
        cmocka_unit_test(the_identity_and_the_attempt_are_those_of_the_message_and_the_run),
        cmocka_unit_test(the_original_is_acked_only_after_the_copy_is_confirmed),
        cmocka_unit_test(no_retries_is_straight_to_the_dead_letter_topic),
        cmocka_unit_test(one_retry_runs_twice),
        cmocka_unit_test(five_retries_run_six_times),
        cmocka_unit_test(unlimited_retries_never_end),
        cmocka_unit_test(a_delay_of_the_handler_is_that_of_the_copy),
        cmocka_unit_test(headers_do_not_pile_up_and_duplicates_stay),
        cmocka_unit_test(a_forged_count_counts_as_none_and_is_said),
        cmocka_unit_test(a_copy_waits_in_the_tier_that_fits),
        cmocka_unit_test(a_delay_above_the_longest_tier_is_cut_to_it_and_said),
        cmocka_unit_test(tiers_are_committed_like_their_topic),
        cmocka_unit_test(a_long_delay_does_not_hold_a_short_one),
        cmocka_unit_test(the_last_tier_copy_ends_in_the_dead_letter_topic),
        cmocka_unit_test(a_copy_to_an_external_retry_topic_is_not_read_here),
        cmocka_unit_test(in_place_attempts_come_before_republication),
        cmocka_unit_test(a_retry_topic_that_nobody_reads_is_said_as_configured),
        cmocka_unit_test(a_retry_topic_with_key_order_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
