/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a wrong address of a broker was meant to be: schemes that are misspelt, in capitals or
 * missing, web addresses; and what must not be repeated.
 */
#include "tests/support/test.h"

#include <string.h>

#include "service/address_help.h"

static void
expect(const char *url, const char *text)
{
    char help[256];
    lw_address_help(url, help, sizeof help);
    if (!strstr(help, text)) {
        fail_msg("\"%s\": \"%s\" is not in \"%s\"", url ? url : "", text, help);
    }
}

static void
a_misspelt_scheme_is_corrected(void **state)
{
    (void)state;
    expect("pulsr://a:1", "did you mean \"pulsar://a:1\"?");
    expect("kakfa://a,b", "did you mean \"kafka://a,b\"?");
    expect("PULSAR://a", "did you mean \"pulsar://a\"?");
    expect("PULSAR+SSL://a", "did you mean \"pulsar+ssl://a\"?");
    expect("pulsar+tls://a:6651", "did you mean \"pulsar+ssl://a:6651\"?");
    expect("pulsars://a", "did you mean \"pulsar+ssl://a\"?");
    expect("pulsar:/a:1", "did you mean \"pulsar://a:1\"?");
    expect("pulsar:a", "did you mean \"pulsar://a\"?");
}

static void
a_port_tells_the_scheme_that_is_missing(void **state)
{
    (void)state;
    expect("localhost:6650", "did you mean \"pulsar://localhost:6650\"?");
    expect("a.example:6651", "did you mean \"pulsar+ssl://a.example:6651\"?");
    expect("a:9092,b:9092", "did you mean \"kafka://a:9092,b:9092\"?");
    expect("pulsar:6650", "did you mean \"pulsar://pulsar:6650\"?");
    expect("localhost:1", "write kafka://");
}

static void
a_web_address_is_sent_to_its_option(void **state)
{
    (void)state;
    expect("http://localhost:8080", "admin_url");
    expect("HTTPS://a", "admin_url");
}

static void
what_tells_nothing_gets_the_usual_help(void **state)
{
    (void)state;
    expect("", "pulsar+ssl://HOST:PORT");
    expect(NULL, "pulsar+ssl://HOST:PORT");
    expect("pulsr://", "write kafka://");
    expect("://", "write kafka://");
    expect("amqp://a", "write kafka://");
}

static void
a_password_is_never_repeated(void **state)
{
    char help[256];
    (void)state;
    lw_address_help("pulsr://me:secret@a:6650", help, sizeof help);
    assert_null(strstr(help, "secret"));
}

static void
a_long_text_is_not_repeated(void **state)
{
    char url[2048];
    (void)state;
    memset(url, 'x', sizeof url - 1);
    url[sizeof url - 1] = '\0';
    expect(url, "write kafka://");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_misspelt_scheme_is_corrected),
        cmocka_unit_test(a_port_tells_the_scheme_that_is_missing),
        cmocka_unit_test(a_web_address_is_sent_to_its_option),
        cmocka_unit_test(what_tells_nothing_gets_the_usual_help),
        cmocka_unit_test(a_password_is_never_repeated),
        cmocka_unit_test(a_long_text_is_not_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
