/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations with a spool: where its file lies, its properties and those of its readers, and what
 * is taken for granted where nothing is said (order by key, retries in place, `.dlq`).
 */
#include "tests/service/config_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *
whole(const char *url, const char *broker, const char *consumer)
{
    static char text[2048];
    snprintf(text, sizeof text,
             "version: 1\n"
             "brokers: { main: { url: '%s'%s } }\n"
             "handlers: { h: { builtin: echo } }\n"
             "pipelines:\n"
             "  p: { broker: main, handler: h, consumer: { group: g%s }, topics: [orders] }\n",
             url, broker, consumer);
    return text;
}

static const char *
property(const char *name_and_value)
{
    char broker[256];
    snprintf(broker, sizeof broker, ", properties: { %s }", name_and_value);
    return whole("spool:a.db", broker, "");
}

static void
its_file_begins_at_the_folder_of_the_configuration(void **state)
{
    (void)state;
    struct config_fixture fixture;
    const char *text = whole("spool:data/a.db", "", "");
    const struct lw_config_text file = { "conf/shop.yaml", text, strlen(text) };
    config_open_source(&fixture, (struct lw_config_source){ .texts = &file, .text_count = 1 });
    assert_non_null(fixture.config);
    assert_int_equal(fixture.config->brokers[0].kind, LW_CONFIG_SPOOL);
    assert_string_equal(fixture.config->brokers[0].url, "spool:conf/data/a.db");
    config_close(&fixture);
}

static void
an_absolute_path_stays(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open(&fixture, whole("spool:/var/lib/a.db", "", ""));
    assert_string_equal(fixture.config->brokers[0].url, "spool:/var/lib/a.db");
    config_close(&fixture);
}

static void
what_is_usual_needs_no_words(void **state)
{
    (void)state;
    struct config_fixture fixture;
    config_open(&fixture, whole("spool:a.db", "", ""));
    const struct lw_config_subscription *subscription = &fixture.config->subscriptions[0];
    assert_int_equal(lw_config_ordering(subscription), LW_ORDERING_KEY);
    assert_true(lw_config_is_in_place(subscription));
    assert_string_equal(subscription->dead_letter_topic, "orders.dlq");
    config_close(&fixture);
}

static void
a_spool_without_a_file_is_refused(void **state)
{
    (void)state;
    config_mentions(whole("spool:", "", ""), "error[E0122]: \"spool:\" does not name");
    config_mentions(whole("spool:data/", "", ""), "error[E0122]");
}

static void
its_properties_are_checked(void **state)
{
    (void)state;
    config_is_fine(property("synchronous: normal, partitions: 8, keep: 1h, retention: 7d, "
                            "retention_bytes: 1GiB, file_bytes_max: 2GiB, "
                            "redelivery_delay: 5s"));
    config_mentions(property("synchronus: full"), "did you mean \"synchronous\"?");
    config_mentions(property("synchronous: half"), "error[E0422]");
    config_mentions(property("partitions: 0"), "it takes a whole number from 1 to 1024");
    config_mentions(property("keep: 5"), "error[E0422]");
    config_mentions(property("linger.ms: 5"), "error[E0421]");
}

static void
a_reader_has_one_property(void **state)
{
    (void)state;
    config_is_fine(whole("spool:a.db", "", ", properties: { initial_position: latest }"));
    config_mentions(whole("spool:a.db", "", ", properties: { initial_position: middle }"),
                    "error[E0422]");
    config_mentions(whole("spool:a.db", "", ", properties: { auto.offset.reset: latest }"),
                    "error[E0421]");
}

static void
words_of_other_brokers_are_refused(void **state)
{
    (void)state;
    config_mentions(whole("spool:a.db", ", auth: { token: t }", ""), "error[E0420]");
}

static const char *
two_brokers(const char *first, const char *second)
{
    static char text[2048];
    snprintf(text, sizeof text,
             "version: 1\n"
             "brokers: { main: { url: '%s' }, other: { url: '%s' } }\n"
             "handlers: { h: { builtin: echo } }\n"
             "pipelines:\n"
             "  p: { broker: main, handler: h, consumer: { group: g }, topics: [orders] }\n"
             "  q: { broker: other, handler: h, consumer: { group: g }, topics: [others] }\n",
             first, second);
    return text;
}

static void
one_file_is_one_broker(void **state)
{
    (void)state;
    char folder[] = "/tmp/laneway-config-XXXXXX";
    char first[64];
    char second[64];
    config_mentions(two_brokers("spool:a.db", "spool:./a.db"),
                    "error[E0315]: the brokers \"main\" and \"other\" are one file");
    config_mentions(two_brokers("spool:/nowhere/a.db", "spool:/nowhere/a.db"), "error[E0315]");
    config_is_fine(two_brokers("spool:a.db", "spool:b.db"));
    config_is_fine(two_brokers("spool:/nowhere/a.db", "spool:a.db"));
    assert_non_null(mkdtemp(folder));
    snprintf(first, sizeof first, "%s/a.db", folder);
    snprintf(second, sizeof second, "%s/b.db", folder);
    close(open(first, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(symlink(first, second), 0);
    snprintf(first, sizeof first, "spool:%s/a.db", folder);
    snprintf(second, sizeof second, "spool:%s/b.db", folder);
    config_mentions(two_brokers(first, second), "error[E0315]");
    unlink(first + 6);
    unlink(second + 6);
    rmdir(folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(its_file_begins_at_the_folder_of_the_configuration),
        cmocka_unit_test(an_absolute_path_stays),
        cmocka_unit_test(what_is_usual_needs_no_words),
        cmocka_unit_test(a_spool_without_a_file_is_refused),
        cmocka_unit_test(its_properties_are_checked),
        cmocka_unit_test(a_reader_has_one_property),
        cmocka_unit_test(words_of_other_brokers_are_refused),
        cmocka_unit_test(one_file_is_one_broker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
