/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every error code of the protocol at every command that can be refused, through the broker's
 * table: what becomes of the subscription and of what is published follows the one table of codes,
 * nothing is lost, and people read what was refused, why in the broker's words, and what to do.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "tests/brokers/pulsar/dealing.h"

enum { REFUSALS = 2 };

/* By their numbers, as the protocol names them. */
static const char *const names[] = {
    "UnknownError",
    "MetadataError",
    "PersistenceError",
    "AuthenticationError",
    "AuthorizationError",
    "ConsumerBusy",
    "ServiceNotReady",
    "ProducerBlockedQuotaExceededError",
    "ProducerBlockedQuotaExceededException",
    "ChecksumError",
    "UnsupportedVersionError",
    "TopicNotFound",
    "SubscriptionNotFound",
    "ConsumerNotFound",
    "TooManyRequests",
    "TopicTerminatedError",
    "ProducerBusy",
    "InvalidTopicName",
    "IncompatibleSchema",
    "ConsumerAssignError",
    "TransactionCoordinatorNotFound",
    "InvalidTxnStatus",
    "NotAllowedError",
    "TransactionConflict",
    "TransactionNotFound",
    "ProducerFenced",
};
enum { CODES = sizeof names / sizeof names[0] };

static struct dealing dealing;

static void
every_code_has_its_row(void **state)
{
    (void)state;
    assert_int_equal(CODES, LW_PULSAR_SERVER_ERROR_COUNT);
    for (int32_t code = 0; code < CODES; code++) {
        const struct lw_pulsar_server_error_info *info = lw_pulsar_server_error_of(code);
        assert_non_null(info->name);
        assert_string_equal(info->name, names[code]);
        assert_non_null(info->meaning);
        assert_non_null(info->code);
        assert_int_not_equal(info->status, LW_STATUS_OK);
        /* What is refused for good is never said to pass, and the other way round. */
        bool is_final = info->subscribe == LW_PULSAR_NEVER || info->publish != LW_STATUS_OK;
        assert_false(is_final && info->fate == LW_PULSAR_FATE_RETRY);
    }
    assert_ptr_equal(lw_pulsar_server_error_of(CODES), lw_pulsar_server_error_of(0));
    assert_ptr_equal(lw_pulsar_server_error_of(-1), lw_pulsar_server_error_of(0));
}

/* -- A round --------------------------------------------------------------------------------------- */

static void
serve(void)
{
    dealing_init(&dealing);
    dealing_serve(&dealing);
    embedded_create_topic(dealing.broker, "t");
    dealing_open(&dealing);
}

static void
finish(void)
{
    dealing_close(&dealing);
    dealing_deinit(&dealing);
}

static void
refuse(enum lw_pulsar_command_type type, int32_t code, const char *text)
{
    struct embedded_fault fault = { .kind = EMBEDDED_REFUSE,
                                    .direction = EMBEDDED_IN,
                                    .type = (int32_t)type,
                                    .times = REFUSALS,
                                    .error = code,
                                    .text = text };
    embedded_add_fault(dealing.broker, &fault);
}

static void
fill(int count)
{
    struct embedded_publish message = { .value = { "x", 1 } };
    for (int i = 0; i < count; i++) {
        (void)embedded_publish(dealing.broker, "t", &message);
    }
}

static void
subscribe(const char *type)
{
    const struct lw_property properties[] = { { "consumer_type", type },
                                              { "initial_position", "Earliest" },
                                              { "ack_receipt_enabled", "true" } };
    struct lw_source_options options = client_options("t", "s");
    options.properties = properties;
    options.property_count = 3;
    (void)client_subscribe_with(dealing.client, &options);
}

static void
start(void)
{
    client_start(dealing.client);
}

static void
handle_all(size_t count)
{
    struct embedded_subscription_info info;
    dealing_until_messages(&dealing, count);
    for (size_t i = 0; i < count; i++) {
        client_ack(dealing.client, i);
    }
    dealing_pass_ms(&dealing, 2000);
    (void)dealing_receive(&dealing);
    assert_int_equal(dealing.client->message_count, count);
    assert_true(embedded_subscription(dealing.broker, "t", "s", &info));
    assert_int_equal(info.backlog, 0);
}

static void
expect_error(const char *what, int32_t code, const char *reason)
{
    const struct lw_pulsar_server_error_info *info = lw_pulsar_server_error_of(code);
    char text[512];
    (void)snprintf(text, sizeof text,
                   "broker \"client\" could not %s persistent://public/default/t: %s (%s: %s)",
                   what,
                   code == LW_PULSAR_TOPIC_NOT_FOUND ? "there is no such topic" : info->meaning,
                   info->name, reason);
    assert_string_equal(dealing.client->last_error.message, text);
    assert_string_equal(dealing.client->last_error.code, info->code);
    assert_int_equal(dealing.client->last_error.status, info->status);
}

static bool
has_receipts(struct dealing *it, void *user)
{
    size_t count = 0;
    (void)user;
    for (size_t i = 0; i < it->client->sent_count; i++) {
        count += it->client->sent[i].receipts > 0;
    }
    return count == it->client->sent_count;
}

static enum lw_status
publish(const char *value)
{
    size_t index = client_publish(dealing.client, "t", "key", value);
    assert_int_not_equal(index, SIZE_MAX);
    dealing_until(&dealing, has_receipts, NULL, 60000);
    return dealing.client->sent[index].status;
}

/* -- Codes ----------------------------------------------------------------------------------------- */

static void
a_refused_subscribe_is_tried_again_unless_it_can_never_work(void **state)
{
    (void)state;
    for (int32_t code = 0; code < CODES; code++) {
        enum lw_pulsar_again again = lw_pulsar_server_error_of(code)->subscribe;
        serve();
        fill(3);
        subscribe("Shared");
        refuse(LW_PULSAR_SUBSCRIBE, code, "that is why");
        start();
        dealing_pass_ms(&dealing, 5000);
        expect_error("subscribe to", code, "that is why");
        assert_true(dealing.client->last_error.is_fatal == (again == LW_PULSAR_NEVER));
        assert_int_equal(dealing_live(&dealing), again == LW_PULSAR_AGAIN ? 1 : 0);
        if (again != LW_PULSAR_NEVER) {
            handle_all(3);
        }
        finish();
    }
}

static void
what_worked_once_is_tried_again_whatever_is_said(void **state)
{
    (void)state;
    for (int32_t code = 0; code < CODES; code++) {
        serve();
        fill(1);
        subscribe("Shared");
        start();
        dealing_until_messages(&dealing, 1);
        refuse(LW_PULSAR_SUBSCRIBE, code, "for now");
        embedded_drop_all(dealing.broker);
        fill(2);
        handle_all(3);
        assert_false(dealing.client->last_error.is_fatal);
        finish();
    }
}

/* An owner that cannot be found, and partitions that cannot be counted. */
static void
a_refused_question_is_asked_again(void **state)
{
    (void)state;
    for (int32_t code = 0; code < CODES; code++) {
        bool ends = lw_pulsar_server_error_of(code)->subscribe == LW_PULSAR_NEVER;
        serve();
        fill(3);
        subscribe("Shared");
        refuse(LW_PULSAR_PARTITIONED_METADATA, code, "that is why");
        if (!ends) {
            refuse(LW_PULSAR_LOOKUP, code, "that is why");
        }
        start();
        handle_all(3);
        assert_non_null(strstr(dealing.client->last_error.message, names[code]));
        finish();
    }
}

static void
a_refused_producer_tells_those_who_wait_or_keeps_what_they_gave(void **state)
{
    (void)state;
    for (int32_t code = 0; code < CODES; code++) {
        enum lw_status status = lw_pulsar_server_error_of(code)->publish;
        serve();
        start();
        refuse(LW_PULSAR_PRODUCER, code, "that is why");
        assert_int_equal(publish("a"), status);
        bool is_said = dealing_logged(&dealing, names[code]) > 0;
        /* What passes by itself is said when it lasts, but for a full quota. */
        bool is_passing = lw_pulsar_server_error_of(code)->fate != LW_PULSAR_FATE_FATAL &&
                          code != LW_PULSAR_TOPIC_NOT_FOUND &&
                          code != LW_PULSAR_QUOTA_EXCEEDED_ERROR &&
                          code != LW_PULSAR_QUOTA_EXCEEDED_EXCEPTION;
        if (is_said == is_passing) {
            fail_msg("%s: %s", names[code], dealing.log);
        }
        while (dealing.client->sent[dealing.client->sent_count - 1].status != LW_STATUS_OK) {
            dealing_pass_ms(&dealing, 1000);
            (void)publish("a");
        }
        assert_int_equal(embedded_entry_count(dealing.broker, "t"), 1);
        finish();
    }
}

/* Passing, or the message's own fault, or the topic's. */
static void
a_refused_send_is_sent_again_unless_it_is_its_own_fault(void **state)
{
    (void)state;
    for (int32_t code = 0; code < CODES; code++) {
        serve();
        start();
        assert_int_equal(publish("first"), LW_STATUS_OK);
        refuse(LW_PULSAR_SEND, code, "that is why");
        enum lw_status status = publish("second");
        if (code == LW_PULSAR_NOT_ALLOWED) {
            assert_int_equal(status, LW_STATUS_INVALID);
        } else if (code == LW_PULSAR_TOPIC_TERMINATED || code == LW_PULSAR_PRODUCER_FENCED) {
            assert_int_equal(status, LW_STATUS_UNKNOWN); /* it was sent */
        } else {
            assert_int_equal(status, LW_STATUS_OK);
            assert_int_equal(embedded_entry_count(dealing.broker, "t"), 2);
        }
        finish();
    }
}

static void
a_refused_acknowledgement_goes_again(void **state)
{
    (void)state;
    for (int32_t code = 0; code < CODES; code++) {
        serve();
        fill(3);
        subscribe("Shared");
        refuse(LW_PULSAR_ACK, code, "that is why");
        start();
        handle_all(3);
        finish();
    }
}

/* -- What people read ------------------------------------------------------------------------------ */

static void
a_subscription_that_is_taken_is_waited_for(void **state)
{
    (void)state;
    serve();
    fill(1);
    subscribe("Exclusive");
    refuse(LW_PULSAR_SUBSCRIBE, LW_PULSAR_CONSUMER_BUSY,
           "Exclusive consumer is already connected");
    start();
    dealing_pass_ms(&dealing, 50);
    assert_string_equal(
        dealing.client->last_error.message,
        "broker \"client\" could not subscribe to "
        "persistent://public/default/t: the subscription is taken, or of another "
        "type (ConsumerBusy: Exclusive consumer is already connected)");
    assert_string_equal(dealing.client->last_error.help,
                        "It waits until the other consumer is gone; with the property "
                        "admin_url set, the log says who that is. Nothing is lost.");
    handle_all(1);
    finish();
}

static void
a_namespace_that_is_missing_is_waited_for(void **state)
{
    (void)state;
    serve();
    fill(1);
    subscribe("Shared");
    refuse(LW_PULSAR_PARTITIONED_METADATA, LW_PULSAR_TOPIC_NOT_FOUND, "Namespace not found");
    start();
    dealing_pass_ms(&dealing, 50);
    assert_string_equal(
        dealing.client->last_error.message,
        "broker \"client\" could not find the partitions of "
        "persistent://public/default/t: no such topic, or a broker that is still "
        "starting (TopicNotFound: Namespace not found)");
    assert_string_equal(dealing.client->last_error.help,
                        "create it (pulsar-admin namespaces create TENANT/NAMESPACE); or the "
                        "broker is still starting. Still trying; nothing is lost.");
    handle_all(1);
    finish();
}

static void
a_terminated_topic_is_named_where_it_is_published_to(void **state)
{
    (void)state;
    serve();
    start();
    assert_int_equal(publish("a"), LW_STATUS_OK);
    embedded_terminate(dealing.broker, "t");
    enum lw_status status = publish("b");
    assert_true(status == LW_STATUS_DENIED || status == LW_STATUS_UNKNOWN);
    dealing_pass_ms(&dealing, 1000);
    assert_int_equal(publish("c"), LW_STATUS_DENIED);
    assert_non_null(
        strstr(dealing.log, "the topic takes no more messages (TopicTerminatedError"));
    finish();
}

static void
a_full_quota_keeps_what_is_published(void **state)
{
    (void)state;
    for (int32_t code = LW_PULSAR_QUOTA_EXCEEDED_ERROR;
         code <= LW_PULSAR_QUOTA_EXCEEDED_EXCEPTION; code++) {
        serve();
        start();
        for (int i = 0; i < 5; i++) {
            refuse(LW_PULSAR_PRODUCER, code,
                   "Cannot create producer on topic with backlog quota");
        }
        assert_int_equal(publish("a"), LW_STATUS_OK);
        assert_int_equal(dealing_logged(&dealing, "pulsar.publish_blocked"), 1);
        assert_non_null(strstr(dealing.log, "backlog quota: producers are"));
        assert_int_equal(dealing_logged(&dealing, "pulsar.publish_again"), 1);
        finish();
    }
}

/* The guard comes before the socket. */
static void
of_a_message_that_is_too_large_nothing_is_written(void **state)
{
    static char large[6 * 1024 * 1024];
    struct lw_publication publication = {
        .topic = "t", .partition = -1, .value = { large, sizeof large }, .event_time_ms = -1
    };
    (void)state;
    serve();
    start();
    assert_int_not_equal(client_offer(dealing.client, &publication), SIZE_MAX);
    dealing_until(&dealing, has_receipts, NULL, 60000);
    assert_int_equal(dealing.client->sent[0].status, LW_STATUS_TOO_LARGE);
    assert_int_equal(embedded_counts(dealing.broker)->in[LW_PULSAR_SEND], 0);
    assert_true(embedded_counts(dealing.broker)->bytes_in < 1000);
    finish();
}

/* -- Faults on the way ----------------------------------------------------------------------------- */

static void
closed_by_the_broker_all_goes_on_and_nothing_is_said(void **state)
{
    (void)state;
    serve();
    fill(5);
    subscribe("Shared");
    start();
    assert_int_equal(publish("a"), LW_STATUS_OK);
    dealing_until_messages(&dealing, 6);
    dealing_pass_ms(&dealing, 2000); /* it asks for its backlog first */
    embedded_close_consumers(dealing.broker, "t");
    embedded_close_producers(dealing.broker, "t");
    assert_int_equal(publish("b"), LW_STATUS_OK);
    handle_all(7);
    assert_string_equal(dealing.client->last_error.message, "");
    finish();
}

static void
a_broker_that_falls_silent_is_left_after_two_intervals(void **state)
{
    struct embedded_fault silence = { .kind = EMBEDDED_SILENCE,
                                      .direction = EMBEDDED_IN,
                                      .type = LW_PULSAR_FLOW };
    (void)state;
    serve();
    fill(3);
    subscribe("Shared");
    embedded_add_fault(dealing.broker, &silence);
    start();
    dealing_pass_ms(&dealing, 59000);
    (void)dealing_receive(&dealing);
    assert_int_equal(dealing.client->message_count, 0);
    handle_all(3);
    assert_non_null(strstr(dealing.log, "does not answer any more"));
    assert_int_equal(embedded_counts(dealing.broker)->connections, 2);
    finish();
}

static void
what_comes_twice_is_handled_once(void **state)
{
    struct embedded_fault twice = { .kind = EMBEDDED_DUPLICATE,
                                    .direction = EMBEDDED_OUT,
                                    .type = LW_PULSAR_MESSAGE,
                                    .times = UINT32_MAX };
    (void)state;
    serve();
    fill(20);
    subscribe("Shared");
    embedded_add_fault(dealing.broker, &twice);
    start();
    handle_all(20);
    finish();
}

static void
what_overtakes_is_handled_like_the_rest(void **state)
{
    struct embedded_fault late = { .kind = EMBEDDED_DELAY,
                                   .direction = EMBEDDED_OUT,
                                   .type = LW_PULSAR_MESSAGE,
                                   .times = 5,
                                   .ms = 300 };
    (void)state;
    serve();
    fill(20);
    subscribe("Shared");
    embedded_add_fault(dealing.broker, &late);
    start();
    handle_all(20);
    finish();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_row),
        cmocka_unit_test(a_refused_subscribe_is_tried_again_unless_it_can_never_work),
        cmocka_unit_test(what_worked_once_is_tried_again_whatever_is_said),
        cmocka_unit_test(a_refused_question_is_asked_again),
        cmocka_unit_test(a_refused_producer_tells_those_who_wait_or_keeps_what_they_gave),
        cmocka_unit_test(a_refused_send_is_sent_again_unless_it_is_its_own_fault),
        cmocka_unit_test(a_refused_acknowledgement_goes_again),
        cmocka_unit_test(a_subscription_that_is_taken_is_waited_for),
        cmocka_unit_test(a_namespace_that_is_missing_is_waited_for),
        cmocka_unit_test(a_terminated_topic_is_named_where_it_is_published_to),
        cmocka_unit_test(a_full_quota_keeps_what_is_published),
        cmocka_unit_test(of_a_message_that_is_too_large_nothing_is_written),
        cmocka_unit_test(closed_by_the_broker_all_goes_on_and_nothing_is_said),
        cmocka_unit_test(a_broker_that_falls_silent_is_left_after_two_intervals),
        cmocka_unit_test(what_comes_twice_is_handled_once),
        cmocka_unit_test(what_overtakes_is_handled_like_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
