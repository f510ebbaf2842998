/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which topics are there, asked of the embedded broker by the address and credentials of a run:
 * topics with and without partitions, absent ones, namespaces that are not there, and who cannot
 * be asked at all. The admin API is asked by nobody here: there is none.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/loop.h"
#include "brokers/pulsar/broker.h"
#include "tests/support/pulsar/embedded.h"

enum { TOPICS_MAX = 4, TIMEOUT_MS = 20000 };

struct asking {
    struct lw_loop *loop;
    struct embedded *embedded;
    struct lw_broker *broker;
    struct lw_topic_info infos[TOPICS_MAX];
    struct lw_error error;
    uint64_t live;
};

static struct asking asking;

static struct embedded_settings
settings(void)
{
    struct embedded_settings some;
    embedded_settings_init(&some);
    return some;
}

static void
begin(const struct embedded_settings *some)
{
    memset(&asking, 0, sizeof asking);
    asking.live = lw_alloc_live();
    assert_int_equal(lw_loop_create(1, &asking.loop), LW_STATUS_OK);
    asking.embedded = embedded_create(lw_loop_host(asking.loop), some);
}

static void
end(void)
{
    if (asking.broker) {
        asking.broker->ops->destroy(asking.broker);
    }
    embedded_destroy(asking.embedded);
    lw_loop_destroy(asking.loop);
    assert_int_equal(lw_alloc_live(), asking.live);
}

static void
open_broker(const char *url, const struct lw_property *properties, size_t count)
{
    const struct lw_broker_ops *ops = lw_pulsar_broker_ops();
    assert_int_equal(ops->create(lw_loop_host(asking.loop), "main", url, properties, count,
                                 &asking.broker, &asking.error),
                     LW_STATUS_OK);
}

static enum lw_status
ask(const char *first, const char *second, int64_t timeout_ms)
{
    memset(asking.infos, 0, sizeof asking.infos);
    asking.infos[0].name = first;
    asking.infos[1].name = second;
    return asking.broker->ops->describe_topics(asking.broker, asking.infos, second ? 2 : 1,
                                               timeout_ms, &asking.error);
}

static void
topics_that_are_there_tell_their_partitions(void **state)
{
    (void)state;
    struct embedded_settings some = settings();
    begin(&some);
    embedded_set_partitions(asking.embedded, "parted", 3);
    embedded_create_topic(asking.embedded, "plain");
    open_broker(embedded_url(asking.embedded, 0), NULL, 0);
    assert_int_equal(ask("parted", "public/default/plain", TIMEOUT_MS), LW_STATUS_OK);
    assert_int_equal(asking.infos[0].partitions, 3);
    assert_int_equal(asking.infos[1].partitions, 1);
    assert_string_equal(asking.infos[0].reason, "");
    end();
}

static void
an_absent_topic_has_no_partitions_and_is_not_made(void **state)
{
    (void)state;
    struct embedded_settings some = settings();
    begin(&some);
    open_broker(embedded_url(asking.embedded, 0), NULL, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ask("nothing", NULL, TIMEOUT_MS), LW_STATUS_OK);
        assert_int_equal(asking.infos[0].status, LW_STATUS_OK);
        assert_int_equal(asking.infos[0].partitions, 0);
    }
    end();
}

static void
an_absent_namespace_is_named(void **state)
{
    (void)state;
    struct embedded_settings some = settings();
    begin(&some);
    embedded_add_fault(asking.embedded,
                       &(struct embedded_fault){ .kind = EMBEDDED_REFUSE,
                                                 .type = LW_PULSAR_LOOKUP,
                                                 .times = 1,
                                                 .error = LW_PULSAR_TOPIC_NOT_FOUND,
                                                 .text = "Namespace not found" });
    open_broker(embedded_url(asking.embedded, 0), NULL, 0);
    assert_int_equal(ask("a/b/c", NULL, TIMEOUT_MS), LW_STATUS_OK);
    assert_int_equal(asking.infos[0].status, LW_STATUS_NOT_FOUND);
    assert_string_equal(asking.infos[0].reason, "there is no namespace a/b");
    end();
}

static void
what_may_not_be_looked_at_concerns_that_topic_only(void **state)
{
    (void)state;
    struct embedded_settings some = settings();
    begin(&some);
    embedded_create_topic(asking.embedded, "plain");
    embedded_add_fault(asking.embedded,
                       &(struct embedded_fault){ .kind = EMBEDDED_REFUSE,
                                                 .type = LW_PULSAR_PARTITIONED_METADATA,
                                                 .times = 1,
                                                 .error = LW_PULSAR_AUTHORIZATION_ERROR,
                                                 .text = "no" });
    open_broker(embedded_url(asking.embedded, 0), NULL, 0);
    assert_int_equal(ask("secret", "plain", TIMEOUT_MS), LW_STATUS_OK);
    assert_int_equal(asking.infos[0].status, LW_STATUS_DENIED);
    assert_string_equal(asking.infos[0].reason, "no permission to look at it");
    assert_int_equal(asking.infos[1].partitions, 1);
    end();
}

static void
a_name_that_is_none_concerns_that_topic_only(void **state)
{
    (void)state;
    struct embedded_settings some = settings();
    begin(&some);
    embedded_create_topic(asking.embedded, "plain");
    open_broker(embedded_url(asking.embedded, 0), NULL, 0);
    assert_int_equal(ask("a/b", "plain", TIMEOUT_MS), LW_STATUS_OK);
    assert_int_equal(asking.infos[0].status, LW_STATUS_INVALID);
    assert_int_equal(asking.infos[1].partitions, 1);
    end();
}

static void
refused_credentials_are_said_for_the_broker(void **state)
{
    static const struct lw_property wrong = { "token", "wrong" };
    (void)state;
    struct embedded_settings some = settings();
    some.auth_method = "token";
    some.auth_data = "right";
    begin(&some);
    open_broker(embedded_url(asking.embedded, 0), &wrong, 1);
    assert_int_equal(ask("t", NULL, TIMEOUT_MS), LW_STATUS_DENIED);
    assert_string_equal(asking.error.code, "E0502");
    end();
}

static void
of_two_hosts_the_one_that_lives_answers(void **state)
{
    char url[128];
    (void)state;
    struct embedded_settings some = settings();
    begin(&some);
    embedded_create_topic(asking.embedded, "plain");
    (void)snprintf(url, sizeof url, "pulsar://127.0.0.1:1,%s",
                   embedded_url(asking.embedded, 0) + strlen("pulsar://"));
    open_broker(url, NULL, 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ask("plain", NULL, TIMEOUT_MS), LW_STATUS_OK);
        assert_int_equal(asking.infos[0].partitions, 1);
    }
    end();
}

static void
nobody_there_is_said_with_the_address(void **state)
{
    (void)state;
    struct embedded_settings some = settings();
    begin(&some);
    open_broker("pulsar://127.0.0.1:1", NULL, 0);
    assert_int_equal(ask("t", NULL, TIMEOUT_MS), LW_STATUS_UNAVAILABLE);
    assert_string_equal(asking.error.code, "E0501");
    assert_non_null(strstr(asking.error.message, "127.0.0.1:1"));
    end();
}

static void
a_broker_that_is_silent_is_given_up_at_the_time_out(void **state)
{
    (void)state;
    struct embedded_settings some = settings();
    begin(&some);
    embedded_add_fault(asking.embedded, &(struct embedded_fault){ .kind = EMBEDDED_SILENCE });
    open_broker(embedded_url(asking.embedded, 0), NULL, 0);
    assert_int_equal(ask("t", NULL, 300), LW_STATUS_UNAVAILABLE);
    assert_string_equal(asking.error.code, "E0501");
    end();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(topics_that_are_there_tell_their_partitions),
        cmocka_unit_test(an_absent_topic_has_no_partitions_and_is_not_made),
        cmocka_unit_test(an_absent_namespace_is_named),
        cmocka_unit_test(what_may_not_be_looked_at_concerns_that_topic_only),
        cmocka_unit_test(a_name_that_is_none_concerns_that_topic_only),
        cmocka_unit_test(refused_credentials_are_said_for_the_broker),
        cmocka_unit_test(of_two_hosts_the_one_that_lives_answers),
        cmocka_unit_test(nobody_there_is_said_with_the_address),
        cmocka_unit_test(a_broker_that_is_silent_is_given_up_at_the_time_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
