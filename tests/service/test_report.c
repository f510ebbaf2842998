/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status and explain: the words for what a topic does, and the one reason why a message waits,
 * with handlers that the test holds and lets go.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/alloc.h"
#include "service/report.h"
#include "service/service.h"
#include "tests/service/service_fixture.h"

enum { HELD = 8 };

/* A handler that keeps its deliveries until the test finishes them. */
struct report_fixture {
    struct service_fixture *service;
    struct lw_dispatcher *dispatcher;
    struct lw_report report;
    struct lw_delivery *held[HELD];
    unsigned count;
    bool is_ending; /* keeps nothing more */
    struct lw_text text;
};

static void
hold(struct lw_delivery *delivery, void *user)
{
    struct report_fixture *fixture = user;
    if (fixture->is_ending) {
        (void)lw_delivery_finish(delivery, LW_OK);
        return;
    }
    assert_true(fixture->count < HELD);
    fixture->held[fixture->count++] = delivery;
}

static void
turn(struct report_fixture *fixture)
{
    for (int i = 0; i < 4; i++) {
        assert_int_equal(lw_dispatcher_poll(fixture->dispatcher, NULL), LW_STATUS_OK);
    }
}

static void
subscribe(struct report_fixture *fixture, const char *topic, int32_t priority)
{
    struct lw_subscription_options *options = &fixture->service->options;
    options->topic = topic;
    options->priority = priority;
    options->pipeline = "orders";
    options->ordering = LW_ORDERING_KEY;
    options->engine = LW_ENGINE_LOOP;
    options->handler_async = hold;
    options->user = fixture;
    options->retry.in_place = LW_YES;
    options->retry.in_place_backoff.initial_ms = 60000;
    options->retry.in_place_backoff.max_ms = 60000;
    assert_int_equal(lw_dispatcher_subscribe(fixture->dispatcher, options, NULL), LW_STATUS_OK);
}

static int
setup(void **state)
{
    struct report_fixture *fixture = lw_alloc(sizeof *fixture);
    struct lw_dispatcher_options options;
    assert_int_equal(service_setup((void **)&fixture->service), 0);
    lw_dispatcher_options_init(&options);
    options.concurrency = 2;
    options.name = "orders";
    fixture->dispatcher = service_create(fixture->service, &options);
    subscribe(fixture, "low", 200);
    subscribe(fixture, "high", 100);
    assert_int_equal(lw_report_init(&fixture->report, fixture->dispatcher), LW_STATUS_OK);
    lw_text_init(&fixture->text);
    *state = fixture;
    return 0;
}

static int
teardown(void **state)
{
    struct report_fixture *fixture = *state;
    lw_text_deinit(&fixture->text);
    lw_report_deinit(&fixture->report);
    fixture->is_ending = true;
    lw_dispatcher_request_abort(fixture->dispatcher);
    for (unsigned i = 0; i < fixture->count; i++) {
        (void)lw_delivery_finish(fixture->held[i], LW_OK);
    }
    lw_dispatcher_destroy(fixture->dispatcher);
    assert_int_equal(service_teardown((void **)&fixture->service), 0);
    lw_free(fixture);
    return 0;
}

static struct lw_report_lane
lane(struct report_fixture *fixture, uint32_t index)
{
    struct lw_report_lane lane;
    lw_report_lane(&fixture->report, index, &lane);
    return lane;
}

static const char *
explain(struct report_fixture *fixture, const char *topic)
{
    lw_text_clear(&fixture->text);
    lw_report_explain_text(&fixture->report, topic, 100, &fixture->text);
    return fixture->text.data;
}

static void
topics_stand_in_serving_order(void **state)
{
    struct report_fixture *fixture = *state;
    assert_string_equal(lane(fixture, 0).stream->topic, "high");
    assert_string_equal(lane(fixture, 1).stream->topic, "low");
    assert_int_equal(lane(fixture, 0).served, 1);
    assert_int_equal(lane(fixture, 1).served, 2);
}

static void
a_topic_without_work_is_idle_and_one_with_a_handler_runs(void **state)
{
    struct report_fixture *fixture = *state;
    service_publish(fixture->service, "high", "a", 1);
    turn(fixture);
    assert_string_equal(lane(fixture, 0).state, "running");
    assert_string_equal(lane(fixture, 1).state, "idle");
    assert_true(lane(fixture, 0).oldest_ms >= 0);
    assert_int_equal(lane(fixture, 1).oldest_ms, -1);
}

static void
a_topic_whose_betters_take_all_slots_is_starved(void **state)
{
    struct report_fixture *fixture = *state;
    service_publish(fixture->service, "high", "a", 1);
    service_publish(fixture->service, "high", "b", 1);
    turn(fixture);
    service_publish(fixture->service, "low", "c", 1);
    turn(fixture);
    assert_string_equal(lane(fixture, 1).state, "starved");
    assert_non_null(strstr(explain(fixture, "low"), "all 2 slots are taken"));
}

static void
a_paused_topic_says_who_and_why(void **state)
{
    struct report_fixture *fixture = *state;
    struct lw_stream *stream = fixture->dispatcher->streams[0];
    turn(fixture);
    lw_text_copy(fixture->report.pauses[0].who, 64, "ana");
    lw_text_copy(fixture->report.pauses[0].why, 160, "db migration");
    fixture->report.pauses[0].since_ms = 1000;
    lw_dispatcher_pause(fixture->dispatcher, stream, true);
    assert_string_equal(lane(fixture, 1).state, "paused");
    assert_non_null(strstr(lane(fixture, 1).reason, "by ana \"db migration\" since"));
}

static void
health_names_what_is_not_ready(void **state)
{
    struct report_fixture *fixture = *state;
    char health[128];
    lw_report_health(&fixture->report, health, sizeof health);
    assert_string_equal(health, "starting");
    turn(fixture);
    lw_report_health(&fixture->report, health, sizeof health);
    assert_string_equal(health, "ready");
    lw_memory_hub_set_down(fixture->service->hub, 3600 * 1000 * LW_MS);
    turn(fixture);
    lw_report_health(&fixture->report, health, sizeof health);
    assert_string_equal(health, "not ready: broker main down");
    assert_string_equal(lane(fixture, 0).state, "broker down");
    lw_memory_hub_set_down(fixture->service->hub, 0);
}

static void
explain_says_that_a_key_is_busy(void **state)
{
    struct report_fixture *fixture = *state;
    service_publish(fixture->service, "high", "a", 2);
    turn(fixture);
    const char *text = explain(fixture, NULL);
    assert_non_null(strstr(text, "its handler runs for"));
    assert_non_null(strstr(text, "1 before it with the same key"));
}

static size_t
take_all(struct lw_delivery *const deliveries[], size_t count, enum lw_verdict verdicts[],
         void *user)
{
    (void)deliveries;
    (void)user;
    for (size_t i = 0; i < count; i++) {
        verdicts[i] = LW_OK;
    }
    return count;
}

static void
what_waits_for_company_says_so(void **state)
{
    struct report_fixture *fixture = *state;
    struct lw_subscription_options *options = &fixture->service->options;
    lw_report_deinit(&fixture->report);
    options->topic = "bulk";
    options->priority = 300;
    options->handler = NULL;
    options->handler_async = NULL;
    options->handler_batch = take_all;
    options->batch.size = 3;
    options->batch.wait_ms = 3600000;
    assert_int_equal(lw_dispatcher_subscribe(fixture->dispatcher, options, NULL), LW_STATUS_OK);
    assert_int_equal(lw_report_init(&fixture->report, fixture->dispatcher), LW_STATUS_OK);
    service_publish(fixture->service, "bulk", "a", 2);
    turn(fixture);
    const char *text = explain(fixture, "bulk");
    assert_non_null(strstr(text, "it waits for company: 2 of 3 are here, at most for "));
    assert_null(strstr(text, "before it"));
    assert_string_equal(lane(fixture, 2).state, "gathering");
    assert_string_equal(lane(fixture, 2).reason,
                        "2 messages wait for company, up to 3 go together");
}

static void
explain_says_when_a_parked_one_runs_again(void **state)
{
    struct report_fixture *fixture = *state;
    service_publish(fixture->service, "high", "a", 1);
    turn(fixture);
    assert_int_equal(fixture->count, 1);
    fixture->count = 0;
    (void)lw_delivery_retry(fixture->held[0], "database timeout", -1);
    assert_int_equal(lw_delivery_finish(fixture->held[0], LW_RETRY), LW_STATUS_OK);
    turn(fixture);
    const char *text = explain(fixture, "high");
    assert_non_null(strstr(text, "run 2 in "));
    assert_non_null(strstr(text, "database timeout"));
    assert_string_equal(lane(fixture, 0).state, "retrying");
}

static void
explain_of_nothing_says_so(void **state)
{
    struct report_fixture *fixture = *state;
    turn(fixture);
    assert_string_equal(explain(fixture, NULL), "no message is in hand\n");
}

static void
explain_shows_every_held_message_once(void **state)
{
    struct report_fixture *fixture = *state;
    struct lw_json json;
    service_publish(fixture->service, "high", "a", 2);
    turn(fixture);
    lw_text_clear(&fixture->text);
    lw_json_init(&json, &fixture->text);
    lw_report_explain_json(&fixture->report, NULL, 100, &json);
    assert_non_null(strstr(fixture->text.data, "{\"in_hand\":2,"));
    assert_non_null(strstr(fixture->text.data, "\"shown\":2}"));
    assert_non_null(
        strstr(fixture->text.data, "\"offset\":1,\"id\":\"1\",\"state\":\"queued\""));
}

static void
counts_add_up_in_the_status(void **state)
{
    struct report_fixture *fixture = *state;
    struct lw_json json;
    service_publish(fixture->service, "high", "a", 1);
    turn(fixture);
    fixture->count = 0;
    assert_int_equal(lw_delivery_finish(fixture->held[0], LW_OK), LW_STATUS_OK);
    turn(fixture);
    lw_text_clear(&fixture->text);
    lw_json_init(&json, &fixture->text);
    lw_report_status_json(&fixture->report, &json);
    assert_non_null(strstr(fixture->text.data, "\"attempts\":{\"ok\":1,\"retry\":0"));
    assert_non_null(strstr(fixture->text.data, "\"settled\":{\"acked\":1,"));
    assert_non_null(strstr(fixture->text.data, "\"slots\":2,\"slots_busy\":0,\"held\":0"));
    assert_int_equal(lane(fixture, 0).done, 1);
}

static const char *
status_text(struct report_fixture *fixture)
{
    lw_text_clear(&fixture->text);
    lw_report_status_text(&fixture->report, &fixture->text);
    return strchr(fixture->text.data, '\n') + 1; /* the first line tells how long it is up */
}

static const char *
status_json(struct report_fixture *fixture)
{
    struct lw_json json;
    lw_text_clear(&fixture->text);
    lw_json_init(&json, &fixture->text);
    lw_report_status_json(&fixture->report, &json);
    return fixture->text.data;
}

static void
the_table_has_dashes_for_what_is_not_known_and_zeros_for_nothing(void **state)
{
    struct report_fixture *fixture = *state;
    const char *json = status_json(fixture);
    assert_non_null(strstr(json, "\"lag\":null,\"retry_lag\":null,\"p50_ms\":null,"
                                 "\"p99_ms\":null,\"dead_last_hour\":0"));
    assert_non_null(strstr(status_text(fixture), "   0   --      --       0   --   --  "));
    turn(fixture);
    static const char expected[] =
        "SERVED  TOPIC  STATE  WAITING  RUNNING  LAG  OLDEST  RATE/s  P50  P99  RETRYING  "
        "DEAD/h\n"
        "1st     high   idle         0        0    0      --       0   --   --         0       "
        "0\n"
        "2nd     low    idle         0        0    0      --       0   --   --         0       "
        "0\n";
    assert_string_equal(status_text(fixture), expected);
}

static void
lag_is_what_is_in_hand_and_what_waits_at_the_broker(void **state)
{
    struct report_fixture *fixture = *state;
    service_publish(fixture->service, "high", "a", 3);
    turn(fixture);
    assert_int_equal(lane(fixture, 0).figures.lag, 3);
    assert_int_equal(lane(fixture, 0).figures.retry_lag, 0);
    lw_dispatcher_pause(fixture->dispatcher, fixture->report.served[0], true);
    service_publish(fixture->service, "high", "a", 40);
    turn(fixture);
    assert_int_equal(lane(fixture, 0).figures.lag, 43);
    assert_non_null(strstr(status_text(fixture), "high   paused        2        1   43"));
    assert_non_null(strstr(status_json(fixture), "\"lag\":43,\"retry_lag\":0,"));
}

static void
a_settled_message_is_no_lag_though_a_gap_is_below_it(void **state)
{
    struct report_fixture *fixture = *state;
    service_publish(fixture->service, "high", "a", 1);
    service_publish(fixture->service, "high", "b", 1);
    turn(fixture);
    assert_int_equal(fixture->count, 2);
    assert_int_equal(lw_delivery_finish(fixture->held[1], LW_OK), LW_STATUS_OK);
    fixture->count = 1;
    turn(fixture);
    assert_int_equal(lane(fixture, 0).figures.lag, 1);
}

static void
a_handler_that_answered_has_a_time(void **state)
{
    struct report_fixture *fixture = *state;
    service_publish(fixture->service, "high", "a", 1);
    turn(fixture);
    assert_int_equal(lane(fixture, 0).figures.p50_ns, -1);
    fixture->count = 0;
    assert_int_equal(lw_delivery_finish(fixture->held[0], LW_OK), LW_STATUS_OK);
    turn(fixture);
    struct lw_report_lane high = lane(fixture, 0);
    assert_true(high.figures.p50_ns > 0 && high.figures.p50_ns < 60 * 1000 * (int64_t)LW_MS);
    assert_int_equal(high.figures.p99_ns, high.figures.p50_ns);
    const char *first = strstr(status_json(fixture), "\"p50_ms\":");
    assert_true(first != NULL && strncmp(first, "\"p50_ms\":null", 13) != 0);
    assert_int_equal(lane(fixture, 1).figures.p50_ns, -1);
}

static void
dead_letters_are_counted_by_the_hour(void **state)
{
    struct report_fixture *fixture = *state;
    service_publish(fixture->service, "high", "a", 1);
    turn(fixture);
    fixture->count = 0;
    assert_int_equal(lw_delivery_finish(fixture->held[0], LW_DEAD), LW_STATUS_OK);
    turn(fixture);
    assert_int_equal(lane(fixture, 0).figures.dead_last_hour, 1);
    assert_non_null(strstr(status_json(fixture), "\"dead_last_hour\":1"));
}

static void
times_have_the_unit_that_fits(void **state)
{
    (void)state;
    static const struct {
        int64_t ns;
        const char *text;
    } rows[] = { { -1, "--" },         { 512, "1us" },       { 340 * 1000, "340us" },
                 { 1500000, "1.5ms" }, { 12000000, "12ms" }, { 3100000000, "3.1s" },
                 { 999999, "1000us" }, { 9990000, "9.9ms" } };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[32];
        lw_report_format_ns(rows[i].ns, out);
        assert_string_equal(out, rows[i].text);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(topics_stand_in_serving_order),
        TEST(a_topic_without_work_is_idle_and_one_with_a_handler_runs),
        TEST(a_topic_whose_betters_take_all_slots_is_starved),
        TEST(a_paused_topic_says_who_and_why),
        TEST(health_names_what_is_not_ready),
        TEST(explain_says_that_a_key_is_busy),
        TEST(what_waits_for_company_says_so),
        TEST(explain_says_when_a_parked_one_runs_again),
        TEST(explain_of_nothing_says_so),
        TEST(explain_shows_every_held_message_once),
        TEST(counts_add_up_in_the_status),
        TEST(the_table_has_dashes_for_what_is_not_known_and_zeros_for_nothing),
        TEST(lag_is_what_is_in_hand_and_what_waits_at_the_broker),
        TEST(a_settled_message_is_no_lag_though_a_gap_is_below_it),
        TEST(a_handler_that_answered_has_a_time),
        TEST(dead_letters_are_counted_by_the_hour),
        cmocka_unit_test(times_have_the_unit_that_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
