/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person reads when the cluster cannot be used, and how the client's codes are sorted:
 * into statuses of publications, into errors with a code and a help. The client's texts are those
 * of librdkafka 2.0.2, as it wrote them against a TLS listener, a wrong password, a closed port.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/loop.h"
#include "brokers/kafka/kafka.h"

static struct lw_property tls[] = { { "security.protocol", "sasl_ssl" } };
static struct lw_kafka_broker broker;
static struct lw_loop *loop;
static struct lw_kafka_failure failure = { .topic = "orders", .group = "g", .reason = "" };

static int
setup(void **state)
{
    (void)state;
    memset(&broker, 0, sizeof broker);
    broker.name = (char *)(uintptr_t) "main";
    broker.url = (char *)(uintptr_t) "kafka://localhost:9092";
    return 0;
}

static void
a_closed_first_request_points_to_tls(void **state)
{
    (void)state;
    struct lw_error error;
    lw_kafka_error_unreachable(
        &broker, RD_KAFKA_RESP_ERR__TRANSPORT,
        "localhost:9092/bootstrap: Disconnected while requesting ApiVersion: might be caused "
        "by "
        "incorrect security.protocol configuration (connecting to a SSL listener?)",
        &error);
    assert_string_equal(error.code, "E0501");
    assert_string_equal(error.message,
                        "cannot use broker \"main\" (kafka://localhost:9092): it "
                        "closed the connection during the first request");
    assert_non_null(strstr(error.help, "try ssl or sasl_ssl"));
    assert_true(error.is_retriable);
    assert_false(error.is_fatal);
}

static void
newer_clients_that_only_say_when_point_to_the_same(void **state)
{
    (void)state;
    struct lw_error error;
    lw_kafka_error_on_log(&broker, "[thrd:main]: h:9092/bootstrap: Disconnected: connection "
                                   "closed by peer: receive 0 after POLLIN (after 1ms in state "
                                   "APIVERSION_QUERY)");
    lw_kafka_error_unreachable(&broker, broker.failure_code, broker.failure, &error);
    assert_non_null(strstr(error.help, "try ssl or sasl_ssl"));
    lw_kafka_error_unreachable(&broker, RD_KAFKA_RESP_ERR__TRANSPORT,
                               "h:9092/1: Disconnected: connection closed by peer: receive 0 "
                               "after POLLIN (after 1ms in state UP)",
                               &error);
    assert_non_null(strstr(error.help, "sasl_plaintext"));
    broker.was_up = true;
    lw_kafka_error_unreachable(&broker, broker.failure_code, broker.failure, &error);
    assert_non_null(strstr(error.help, "check the address"));
}

static void
with_tls_already_on_the_hint_is_another(void **state)
{
    (void)state;
    struct lw_error error;
    broker.properties = (struct lw_properties){ tls, 1 };
    lw_kafka_error_unreachable(&broker, RD_KAFKA_RESP_ERR__TRANSPORT,
                               "x: Disconnected while requesting ApiVersion", &error);
    assert_null(strstr(error.help, "try ssl"));
    assert_non_null(strstr(error.help, "sasl_ssl"));
}

static void
a_refused_password_is_denied(void **state)
{
    (void)state;
    struct lw_error error;
    lw_kafka_error_unreachable(&broker, RD_KAFKA_RESP_ERR__AUTHENTICATION,
                               "sasl_plaintext://h:1/bootstrap: SASL authentication error: "
                               "Authentication failed",
                               &error);
    assert_string_equal(error.code, "E0502");
    assert_int_equal(error.status, LW_STATUS_DENIED);
    assert_non_null(strstr(error.message, ": SASL authentication error"));
    assert_null(strstr(error.message, "sasl_plaintext://h:1"));
}

static void
a_hang_up_points_to_a_login_only_if_it_never_worked(void **state)
{
    (void)state;
    struct lw_error error;
    static const char reason[] =
        "h:1/1: Disconnected: verify that security.protocol is correctly "
        "configured, broker might require SASL authentication (after "
        "233ms in state UP)";
    lw_kafka_error_unreachable(&broker, RD_KAFKA_RESP_ERR__TRANSPORT, reason, &error);
    assert_non_null(strstr(error.help, "wants a login"));
    broker.was_up = true;
    lw_kafka_error_unreachable(&broker, RD_KAFKA_RESP_ERR__TRANSPORT, reason, &error);
    assert_string_equal(error.message,
                        "cannot use broker \"main\" (kafka://localhost:9092): Disconnected");
    assert_null(strstr(error.help, "login"));
}

static void
a_refused_connection_keeps_the_clients_reason(void **state)
{
    (void)state;
    struct lw_error error;
    lw_kafka_error_unreachable(&broker, RD_KAFKA_RESP_ERR__TRANSPORT,
                               "localhost:9092/bootstrap: Connect failed: Connection refused "
                               "(after 0ms in state CONNECT)",
                               &error);
    assert_string_equal(error.code, "E0501");
    assert_string_equal(error.message, "cannot use broker \"main\" (kafka://localhost:9092): "
                                       "Connect failed: Connection refused");
}

static void
a_missing_topic_says_how_to_make_it(void **state)
{
    (void)state;
    struct lw_error error;
    failure.code = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
    lw_kafka_error_topic(&broker, &failure, &error);
    assert_string_equal(error.code, "E0503");
    assert_string_equal(error.message, "broker \"main\" has no topic \"orders\"");
    assert_non_null(strstr(error.help, "laneway topics create"));
}

static void
missing_rights_name_the_right_and_its_object(void **state)
{
    (void)state;
    struct lw_error error;
    failure.code = RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
    lw_kafka_error_topic(&broker, &failure, &error);
    assert_string_equal(error.code, "E0504");
    assert_non_null(strstr(error.help, "READ and DESCRIBE on \"orders\""));
    failure.code = RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED;
    lw_kafka_error_topic(&broker, &failure, &error);
    assert_string_equal(error.code, "E0504");
    assert_non_null(strstr(error.help, "READ on the group \"g\""));
}

static void
a_report_says_refused_unknown_or_confirmed(void **state)
{
    (void)state;
    const rd_kafka_msg_status_t refused = RD_KAFKA_MSG_STATUS_NOT_PERSISTED;
    const rd_kafka_msg_status_t maybe = RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED;
    const rd_kafka_msg_status_t done = RD_KAFKA_MSG_STATUS_PERSISTED;
    const struct {
        rd_kafka_resp_err_t code;
        rd_kafka_msg_status_t status;
        enum lw_status wanted;
    } cases[] = {
        { RD_KAFKA_RESP_ERR_NO_ERROR, done, LW_STATUS_OK },
        { RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, maybe, LW_STATUS_UNKNOWN },
        { RD_KAFKA_RESP_ERR__MSG_TIMED_OUT, refused, LW_STATUS_UNAVAILABLE },
        { RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT, refused, LW_STATUS_UNAVAILABLE },
        { RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, maybe, LW_STATUS_UNKNOWN },
        { RD_KAFKA_RESP_ERR__PURGE_QUEUE, refused, LW_STATUS_UNAVAILABLE },
        { RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, refused, LW_STATUS_TOO_LARGE },
        { RD_KAFKA_RESP_ERR_INVALID_RECORD, refused, LW_STATUS_INVALID },
        { RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, refused, LW_STATUS_DENIED },
        { RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, refused, LW_STATUS_NOT_FOUND },
        { RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, refused, LW_STATUS_UNAVAILABLE },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(lw_kafka_producer_status(cases[i].code, cases[i].status),
                         cases[i].wanted);
    }
}

/* -- Up and down ------------------------------------------------------------------------------ */

static enum lw_event_kind
next_event(void)
{
    struct lw_event event = { .kind = LW_EVENT_CLOSED };
    return lw_events_take(&broker.events, &event, 1) == 1 ? event.kind : LW_EVENT_CLOSED;
}

static void
never_due(struct lw_timer *timer, uint64_t now)
{
    (void)timer, (void)now;
    fail();
}

static int
setup_running(void **state)
{
    (void)setup(state);
    assert_int_equal(lw_loop_create(1, &loop), LW_STATUS_OK);
    broker.base.host = lw_loop_host(loop);
    lw_events_init(&broker.events, broker.base.host);
    broker.phase = LW_KAFKA_RUNNING;
    lw_timer_init(&broker.reach_timer, never_due);
    return 0;
}

static int
teardown_running(void **state)
{
    (void)state;
    lw_timers_disarm(&broker.base.host->timers, &broker.reach_timer);
    lw_events_deinit(&broker.events);
    lw_loop_destroy(loop);
    return 0;
}

static void
say_all_down(void)
{
    broker.base.host->ops->refresh(broker.base.host);
    lw_kafka_error_on_event(&broker, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "1/1 down", true);
    assert_int_equal(next_event(), LW_EVENT_BROKER_DOWN);
}

static void
an_answer_to_what_was_sent_after_the_outage_is_the_cluster_back(void **state)
{
    (void)state;
    say_all_down();
    lw_kafka_error_note_answer(&broker, 0);
    lw_kafka_error_check_reached(&broker);
    assert_int_equal(next_event(), LW_EVENT_BROKER_UP);
    assert_false(broker.is_down_said);
}

static void
an_answer_to_what_was_sent_before_the_outage_is_not(void **state)
{
    (void)state;
    say_all_down();
    lw_kafka_error_note_answer(&broker, 60000000);
    lw_kafka_error_check_reached(&broker);
    assert_int_equal(next_event(), LW_EVENT_CLOSED);
    assert_true(broker.is_down_said);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_closed_first_request_points_to_tls, setup),
        cmocka_unit_test_setup(newer_clients_that_only_say_when_point_to_the_same, setup),
        cmocka_unit_test_setup(with_tls_already_on_the_hint_is_another, setup),
        cmocka_unit_test_setup(a_refused_password_is_denied, setup),
        cmocka_unit_test_setup(a_hang_up_points_to_a_login_only_if_it_never_worked, setup),
        cmocka_unit_test_setup(a_refused_connection_keeps_the_clients_reason, setup),
        cmocka_unit_test_setup(a_missing_topic_says_how_to_make_it, setup),
        cmocka_unit_test_setup(missing_rights_name_the_right_and_its_object, setup),
        cmocka_unit_test(a_report_says_refused_unknown_or_confirmed),
        cmocka_unit_test_setup_teardown(
            an_answer_to_what_was_sent_after_the_outage_is_the_cluster_back, setup_running,
            teardown_running),
        cmocka_unit_test_setup_teardown(an_answer_to_what_was_sent_before_the_outage_is_not,
                                        setup_running, teardown_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
