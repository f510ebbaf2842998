/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Service URLs and their canonical form, what is said about wrong ones (and never shown of them),
 * the address of the admin API, and the rotation over several hosts.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/address.h"

static void
expect_address(const char *url, const char *canonical)
{
    struct lw_pulsar_address address;
    struct lw_error error;
    struct lw_text text;
    if (lw_pulsar_address_parse(url, &address, &error) != LW_STATUS_OK) {
        fail_msg("%s: %s", url, error.message);
    }
    lw_text_init(&text);
    lw_pulsar_address_format(&address, &text);
    assert_string_equal(text.data, canonical);
    lw_text_deinit(&text);
    lw_pulsar_address_deinit(&address);
}

static void
addresses_get_their_default_ports(void **state)
{
    (void)state;
    expect_address("pulsar://localhost", "pulsar://localhost:6650");
    expect_address("pulsar://localhost:1234/", "pulsar://localhost:1234");
    expect_address("pulsar+ssl://a.b-c.example", "pulsar+ssl://a.b-c.example:6651");
    expect_address("pulsar://h1,h2:6660;h3", "pulsar://h1:6650,h2:6660,h3:6650");
    expect_address("pulsar://h1, h2 ,h3", "pulsar://h1:6650,h2:6650,h3:6650");
    expect_address("pulsar://10.0.0.1", "pulsar://10.0.0.1:6650");
    expect_address("pulsar://[::1]", "pulsar://[::1]:6650");
    expect_address("pulsar+ssl://[fe80::1]:7000,[::2]",
                   "pulsar+ssl://[fe80::1]:7000,[::2]:6651");
}

static void
literals_are_told_from_names(void **state)
{
    (void)state;
    struct lw_pulsar_address address;
    assert_int_equal(lw_pulsar_address_parse("pulsar://a,1.2.3.4,[::1]", &address, NULL),
                     LW_STATUS_OK);
    assert_false(address.hosts[0].is_ip);
    assert_true(address.hosts[1].is_ip && !address.hosts[1].is_ip6);
    assert_true(address.hosts[2].is_ip && address.hosts[2].is_ip6);
    assert_string_equal(address.hosts[2].name, "::1");
    lw_pulsar_address_deinit(&address);
}

struct wrong {
    const char *url;
    const char *in_message;
    const char *in_help;
};

static const struct wrong wrongs[] = {
    { "http://localhost:8080", "admin API", "admin_url" },
    { "https://localhost", "admin API", "pulsar://" },
    { "localhost:6650", "does not begin with pulsar://", "pulsar://HOST:PORT" },
    { "kafka://localhost", "the scheme is", "pulsar" },
    { "pulsar://", "a host is missing", "6650" },
    { "pulsar://h1,,h2", "a host is missing", "6650" },
    { "pulsar://h1,", "a host is missing", "6650" },
    { "pulsar://:6650", "a host is missing", "6650" },
    { "pulsar://h:0", "1 to 65535", "6650" },
    { "pulsar://h:65536", "1 to 65535", "6650" },
    { "pulsar://h:", "1 to 65535", "6650" },
    { "pulsar://h:66x", "1 to 65535", "6650" },
    { "pulsar://h:-1", "1 to 65535", "6650" },
    { "pulsar://h/topic", "a path", "6650" },
    { "pulsar://::1", "brackets", "6650" },
    { "pulsar://[::1", "not closed", "6650" },
    { "pulsar://[::x]", "no IPv6", "6650" },
    { "pulsar://[::1]6650", "only a port", "6650" },
    { "pulsar://h_1 h2", "letters", "6650" },
};

static void
wrong_addresses_are_explained(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        struct lw_pulsar_address address;
        struct lw_error error;
        if (lw_pulsar_address_parse(wrongs[i].url, &address, &error) == LW_STATUS_OK) {
            fail_msg("accepted: %s", wrongs[i].url);
        }
        assert_string_equal(error.code, "E0122");
        assert_non_null(strstr(error.message, wrongs[i].in_message));
        assert_non_null(strstr(error.help, wrongs[i].in_help));
    }
}

static void
credentials_in_an_address_are_refused_and_never_shown(void **state)
{
    (void)state;
    static const char *const urls[] = { "pulsar://me:s3cret@host", "http://me:s3cret@host",
                                        "me:s3cret@host", "pulsar://a@s3cret@host" };
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        struct lw_pulsar_address address;
        struct lw_error error;
        assert_int_not_equal(lw_pulsar_address_parse(urls[i], &address, &error), LW_STATUS_OK);
        assert_null(strstr(error.message, "s3cret"));
        assert_non_null(strstr(error.message, "***@host"));
    }
}

static void
more_hosts_than_the_bound_are_refused(void **state)
{
    (void)state;
    struct lw_text url;
    struct lw_pulsar_address address;
    lw_text_init(&url);
    lw_text_append(&url, "pulsar://h");
    for (int i = 1; i < LW_PULSAR_HOSTS_MAX; i++) {
        lw_text_append(&url, ",h");
    }
    uint64_t live = lw_alloc_live();
    assert_int_equal(lw_pulsar_address_parse(url.data, &address, NULL), LW_STATUS_OK);
    assert_int_equal(address.count, LW_PULSAR_HOSTS_MAX);
    lw_pulsar_address_deinit(&address);
    lw_text_append(&url, ",h");
    live = lw_alloc_live();
    assert_int_equal(lw_pulsar_address_parse(url.data, &address, NULL), LW_STATUS_INVALID);
    assert_int_equal(lw_alloc_live(), live);
    lw_text_deinit(&url);
}

static void
a_brokers_url_is_exactly_one_host(void **state)
{
    (void)state;
    bool is_tls = false;
    struct lw_pulsar_host host;
    assert_true(lw_pulsar_address_parse_broker("pulsar+ssl://b:7", &host, &is_tls));
    assert_true(is_tls);
    assert_string_equal(host.name, "b");
    assert_int_equal(host.port, 7);
    assert_false(lw_pulsar_address_parse_broker("pulsar://a,b", &host, &is_tls));
    assert_false(lw_pulsar_address_parse_broker("", &host, &is_tls));
}

static void
expect_admin(const char *url, const char *option, const char *wanted)
{
    struct lw_pulsar_address address;
    struct lw_text text;
    lw_text_init(&text);
    assert_int_equal(lw_pulsar_address_parse(url, &address, NULL), LW_STATUS_OK);
    enum lw_status status = lw_pulsar_address_admin(&address, option, &text, NULL);
    assert_int_equal(status, wanted ? LW_STATUS_OK : LW_STATUS_INVALID);
    if (wanted) {
        assert_string_equal(text.data, wanted);
    }
    lw_text_deinit(&text);
    lw_pulsar_address_deinit(&address);
}

static void
the_admin_address_is_given_or_derived(void **state)
{
    (void)state;
    expect_admin("pulsar://a:1,b", NULL, "http://a:8080");
    expect_admin("pulsar+ssl://[::1]", "", "https://[::1]:8443");
    expect_admin("pulsar://a", "https://admin:9/", "https://admin:9");
    expect_admin("pulsar://a", "pulsar://a", NULL);
    expect_admin("pulsar://a", "http://", NULL);
    expect_admin("pulsar://a", "http://u:p@a", NULL);
}

static void
a_dead_host_is_passed_at_once_and_a_round_ends_in_a_pause(void **state)
{
    (void)state;
    struct lw_pulsar_address address;
    struct lw_pulsar_rotation rotation;
    assert_int_equal(lw_pulsar_address_parse("pulsar://a,b,c", &address, NULL), LW_STATUS_OK);
    lw_pulsar_rotation_init(&rotation, &address, 4); /* 4 mod 3: b */
    assert_string_equal(lw_pulsar_rotation_host(&rotation)->name, "b");
    assert_false(lw_pulsar_rotation_fail(&rotation));
    assert_string_equal(lw_pulsar_rotation_host(&rotation)->name, "c");
    assert_false(lw_pulsar_rotation_fail(&rotation));
    assert_string_equal(lw_pulsar_rotation_host(&rotation)->name, "a");
    assert_true(lw_pulsar_rotation_fail(&rotation));
    assert_string_equal(lw_pulsar_rotation_host(&rotation)->name, "b");
    assert_false(lw_pulsar_rotation_fail(&rotation));
    lw_pulsar_address_deinit(&address);
}

static void
a_host_that_works_is_kept_and_begins_a_new_round(void **state)
{
    (void)state;
    struct lw_pulsar_address address;
    struct lw_pulsar_rotation rotation;
    assert_int_equal(lw_pulsar_address_parse("pulsar://a,b", &address, NULL), LW_STATUS_OK);
    lw_pulsar_rotation_init(&rotation, &address, 0);
    assert_false(lw_pulsar_rotation_fail(&rotation));
    lw_pulsar_rotation_succeed(&rotation);
    assert_string_equal(lw_pulsar_rotation_host(&rotation)->name, "b");
    assert_false(lw_pulsar_rotation_fail(&rotation));
    assert_true(lw_pulsar_rotation_fail(&rotation));
    lw_pulsar_address_deinit(&address);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_get_their_default_ports),
        cmocka_unit_test(literals_are_told_from_names),
        cmocka_unit_test(wrong_addresses_are_explained),
        cmocka_unit_test(credentials_in_an_address_are_refused_and_never_shown),
        cmocka_unit_test(more_hosts_than_the_bound_are_refused),
        cmocka_unit_test(a_brokers_url_is_exactly_one_host),
        cmocka_unit_test(the_admin_address_is_given_or_derived),
        cmocka_unit_test(a_dead_host_is_passed_at_once_and_a_round_ends_in_a_pause),
        cmocka_unit_test(a_host_that_works_is_kept_and_begins_a_new_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
