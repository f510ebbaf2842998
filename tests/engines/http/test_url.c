/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_url.c: addresses that are taken, and the place of the mistake in those that are not;
 * headers that people may write.
 */
#include "tests/support/test.h"

#include <string.h>

#include "engines/http/url.h"

static void
addresses_are_taken(void **state)
{
    static const char *const urls[] = {
        "http://host",          "https://host/",
        "HTTP://Host:80/a?b=c", "http://127.0.0.1:8080/in",
        "http://[::1]:8080/",   "https://a.b-c.example:65535/x%20y",
        "http://host?q",        "http://h/a@b"
    };
    char why[160];
    size_t at = 0;
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        if (!lw_http_url_check(urls[i], &at, why, sizeof why)) {
            fail_msg("%s: %s", urls[i], why);
        }
    }
}

static void
only_its_beginning_is_shown(void **state)
{
    (void)state;
    assert_int_equal(lw_http_url_origin("http://host"), 11);
    assert_int_equal(lw_http_url_origin("https://h:8080/hook/SECRET"), 14);
    assert_int_equal(lw_http_url_origin("http://[::1]:80?key=SECRET"), 15);
}

static void
a_mistake_has_its_place(void **state)
{
    static const struct {
        const char *url;
        size_t at;
        const char *why;
    } cases[] = {
        { "", 0, "neither http:// nor https://" },
        { "host:8080/x", 0, "neither http:// nor https://" },
        { "ftp://host/", 0, "neither http:// nor https://" },
        { "http://", 7, "no host" },
        { "http:///x", 7, "no host" },
        { "https://:80/", 8, "no host" },
        { "http://ho st/", 9, "percent-encoded" },
        { "http://host/\x01", 12, "percent-encoded" },
        { "http://host/\xc3\xa4", 12, "percent-encoded" },
        { "http://me:pw@host/", 7, "credentials" },
        { "http://ho$t/", 9, "ends here" },
        { "http://[::1/", 7, "ends here" },
        { "http://[]/", 7, "ends here" },
        { "http://host:/", 12, "port" },
        { "http://host:0/", 12, "port" },
        { "http://host:65536/", 12, "port" },
        { "http://host:8o/", 12, "port" },
        { "http://host:999999999999/", 12, "port" },
        { "http://host/a#b", 13, "never sent" },
    };
    char why[160];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t at = 99;
        assert_false(lw_http_url_check(cases[i].url, &at, why, sizeof why));
        if (at != cases[i].at || !strstr(why, cases[i].why)) {
            fail_msg("%s: at %zu: %s", cases[i].url, at, why);
        }
    }
}

static void
headers_are_tokens_and_one_line(void **state)
{
    (void)state;
    assert_null(lw_http_header_fault("x-tenant", "7", false));
    assert_null(lw_http_header_fault("Authorization", "Basic abc==", false));
    assert_non_null(lw_http_header_fault("Authorization", "Basic abc==", true));
    assert_null(lw_http_header_fault("x", "", true));
    assert_non_null(lw_http_header_fault("", "x", false));
    assert_non_null(lw_http_header_fault("a b", "x", false));
    assert_non_null(lw_http_header_fault("a:", "x", false));
    assert_non_null(lw_http_header_fault("a", "x\ny", false));
    assert_non_null(lw_http_header_fault("a", "x\x7f", false));
    assert_non_null(lw_http_header_fault("Transfer-Encoding", "chunked", false));
    assert_non_null(lw_http_header_fault("CE-id", "1", false));
    assert_non_null(lw_http_header_fault("X-Laneway-Attempt", "1", false));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_taken),
        cmocka_unit_test(only_its_beginning_is_shown),
        cmocka_unit_test(a_mistake_has_its_place),
        cmocka_unit_test(headers_are_tokens_and_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
