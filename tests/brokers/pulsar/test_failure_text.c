/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refusals of a broker in words: what it says is shown, the classes of its exceptions are not, and
 * nothing of it breaks a line.
 */
#include "tests/support/test.h"

#include <string.h>

#include "brokers/pulsar/client.h"

static const char *
shown(int32_t code, const char *text)
{
    static struct lw_pulsar_failure failure;
    static struct lw_pulsar_client client;
    client.name = "main";
    lw_pulsar_failure_server(&client, "publish", code, lw_bytes_of(text), &failure);
    const char *begin = strchr(failure.error.message, '(');
    assert_non_null(begin);
    return begin;
}

static void
a_refusal_shows_what_the_broker_says(void **state)
{
    (void)state;
    assert_string_equal(shown(LW_PULSAR_TOPIC_NOT_FOUND, "Namespace not found"),
                        "(TopicNotFound: Namespace not found)");
    assert_string_equal(shown(LW_PULSAR_TOPIC_NOT_FOUND, ""), "(TopicNotFound)");
    assert_string_equal(shown(LW_PULSAR_TOPIC_NOT_FOUND, "a\001b\nat org.x.Y(Y.java:1)"),
                        "(TopicNotFound: a?b)");
}

static void
classes_of_exceptions_are_left_out(void **state)
{
    (void)state;
    assert_string_equal(shown(LW_PULSAR_TOPIC_TERMINATED,
                              "org.x.Broker$TopicTerminatedException: Topic was terminated"),
                        "(TopicTerminatedError: Topic was terminated)");
    assert_string_equal(shown(LW_PULSAR_TOPIC_TERMINATED,
                              "java.util.CompletionException: org.x.YException: gone"),
                        "(TopicTerminatedError: gone)");
    assert_string_equal(shown(LW_PULSAR_TOPIC_TERMINATED, "Exception: x"),
                        "(TopicTerminatedError: x)");
}

static void
texts_that_only_look_like_classes_stay(void **state)
{
    (void)state;
    assert_string_equal(shown(LW_PULSAR_TOPIC_TERMINATED, "127.0.0.1: gone"),
                        "(TopicTerminatedError: 127.0.0.1: gone)");
    assert_string_equal(shown(LW_PULSAR_TOPIC_TERMINATED, "org.x.YException"),
                        "(TopicTerminatedError: org.x.YException)");
    assert_string_equal(shown(LW_PULSAR_TOPIC_TERMINATED, "an Exception: x"),
                        "(TopicTerminatedError: an Exception: x)");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_shows_what_the_broker_says),
        cmocka_unit_test(classes_of_exceptions_are_left_out),
        cmocka_unit_test(texts_that_only_look_like_classes_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
