/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_config_http.c: handlers behind HTTP in a configuration: what is read, where a mistake is,
 * what does not go together, and that no secret is shown.
 */
#include "tests/service/config_fixture.h"

#include <stdio.h>
#include <string.h>

#include "service/config.h"
#include "service/config_plan.h"

static const char *
with_handler(const char *handler)
{
    static char text[2048];
    (void)snprintf(text, sizeof text,
                   "version: 1\n"
                   "brokers: { main: { url: 'kafka://localhost:9092' } }\n"
                   "handlers:\n"
                   "  charge:\n"
                   "%s"
                   "pipelines: { p: { broker: main, handler: charge, consumer: { group: g }, "
                   "topics: [t] } }\n",
                   handler);
    return text;
}

static void
an_address_is_enough(void **state)
{
    struct config_fixture fixture;
    (void)state;
    config_open(&fixture, with_handler("    http: http://127.0.0.1:8080/charge\n"));
    assert_string_equal(fixture.printed.data ? fixture.printed.data : "", "");
    const struct lw_config_handler *handler = lw_config_handler(fixture.config, "charge");
    assert_int_equal(handler->kind, LW_CONFIG_HTTP);
    assert_int_equal(handler->run.engine, LW_ENGINE_HTTP);
    assert_ptr_equal(handler->run.http, &handler->http);
    assert_string_equal(handler->http.url, "http://127.0.0.1:8080/charge");
    assert_int_equal(handler->http.max_hold_ms, 600000);
    assert_int_equal(handler->http.answer_bytes_max, 1 << 20);
    assert_true(handler->http.validates_hostname);
    config_close(&fixture);
}

static void
every_key_reaches_its_option(void **state)
{
    struct config_fixture fixture;
    (void)state;
    config_open(&fixture,
                with_handler("    http: https://charge.internal/in\n"
                             "    method: PUT\n"
                             "    headers: { x-tenant: '7' }\n"
                             "    connections: 64\n"
                             "    http_version: 1.1\n"
                             "    connect_timeout: 3s\n"
                             "    max_hold: 1m\n"
                             "    max_answer_bytes: 64KiB\n"
                             "    proxy: http://proxy:3128\n"
                             "    auth: { token: 'file:secrets/t' }\n"
                             "    tls: { trust_file: ca.pem, certificate_file: c.pem,\n"
                             "           key_file: /k.pem, validate_hostname: false }\n"));
    assert_non_null(fixture.config);
    const struct lw_http_options *http = &lw_config_handler(fixture.config, "charge")->http;
    assert_int_equal(http->method, LW_HTTP_METHOD_PUT);
    assert_int_equal(http->header_count, 1);
    assert_string_equal(http->headers[0].name, "x-tenant");
    assert_int_equal(http->connections, 64);
    assert_int_equal(http->version, LW_HTTP_VERSION_1_1);
    assert_int_equal(http->connect_timeout_ms, 3000);
    assert_int_equal(http->max_hold_ms, 60000);
    assert_int_equal(http->answer_bytes_max, 65536);
    assert_string_equal(http->proxy, "http://proxy:3128");
    assert_non_null(strstr(http->token, "secrets/t"));
    assert_memory_equal(http->token, "file:", 5);
    assert_non_null(strstr(http->trust_file, "ca.pem"));
    assert_string_equal(http->key_file, "/k.pem");
    assert_false(http->validates_hostname);
    config_close(&fixture);
}

static void
a_wrong_address_is_shown_where_it_is_wrong(void **state)
{
    (void)state;
    config_mentions(with_handler("    http: http://charge.internal:80800/in\n"),
                    "bad.yaml:5:34: error[E0125]: \"http://charge.internal:80800/in\" is no "
                    "address of a service: its port is no number from 1 to 65535\n"
                    "    5 |     http: http://charge.internal:80800/in\n"
                    "      |                                  ^^^^^^^^\n");
    config_mentions(with_handler("    http: charge.internal/in\n"),
                    "it begins with neither http:// nor https://");
    config_mentions(with_handler("    http: http://\n"), "it has no host");
    config_mentions(with_handler("    http: http://me:secret@host/\n"),
                    "credentials do not belong into an address");
    config_mentions(with_handler("    http: \"http://host/a b\"\n"),
                    "it holds a blank or another byte that must be percent-encoded");
    config_mentions(with_handler("    http: 'http://host/in#part'\n"),
                    "a part behind # is never sent");
}

static void
headers_that_cannot_be_sent_are_refused(void **state)
{
    (void)state;
    config_mentions(
        with_handler("    http: http://h/\n    headers: { 'two words': x }\n"),
        "error[E0126]: the header \"two words\" has a name that is no token of HTTP");
    config_mentions(with_handler("    http: http://h/\n    headers: { x: \"a\\r\\nb: c\" }\n"),
                    "error[E0126]: the header \"x\" has a value with a control character");
    config_mentions(with_handler("    http: http://h/\n    headers: { Content-Length: 5 }\n"),
                    "error[E0126]: the header \"Content-Length\" is set by Laneway");
    config_mentions(with_handler("    http: http://127.0.0.1/\n    auth: { token: abc }\n"
                                 "    headers: { Authorization: 'Basic YTpi' }\n"),
                    "error[E0126]: the header \"Authorization\" is set by auth.token; keep one "
                    "of the two");
    config_mentions(with_handler("    http: http://h/\n    headers: { x-msg-a: b }\n"),
                    "error[E0126]: the header \"x-msg-a\" is set by Laneway");
}

static void
what_does_not_go_together_is_said(void **state)
{
    (void)state;
    config_mentions(with_handler("    http: http://h/\n    program: [cat]\n"),
                    "error[E0311]: handlers.charge has both");
    config_mentions(with_handler("    http: http://h/\n    engine: threads\n"),
                    "help: a service behind HTTP runs on engine http");
    config_mentions(with_handler("    builtin: noop\n    engine: http\n"),
                    "help: a function that returns its verdict runs on engine loop or threads");
    config_mentions(with_handler("    http: http://h/\n    tls: { trust_file: ca.pem }\n"),
                    "error[E0314]: handlers.charge has \"tls\", but its address begins with");
    config_mentions(with_handler("    http: https://h/\n    tls: { key_file: k.pem }\n"),
                    "error[E0107]: handlers.charge.tls needs \"certificate_file\", too");
    config_mentions(with_handler("    http: http://h/\n    workers: 3\n"),
                    "warning[W0308]: \"workers\" has no effect");
    config_mentions(with_handler("    builtin: noop\n    connections: 3\n"),
                    "warning[W0308]: \"connections\" has no effect: handlers.charge is not "
                    "behind HTTP");
}

static void
a_token_in_the_clear_is_warned_about_but_not_on_this_computer(void **state)
{
    (void)state;
    config_mentions(
        with_handler("    http: http://charge.internal/\n    auth: { token: abc }\n"),
        "warning[W0318]: the token of handlers.charge goes over the network");
    config_mentions(
        with_handler("    http: http://localhost.evil/\n    auth: { token: abc }\n"),
        "warning[W0318]");
    config_mentions(
        with_handler("    http: http://127.0.0.1.evil/\n    auth: { token: abc }\n"),
        "warning[W0318]");
    config_is_fine(
        with_handler("    http: http://localhost:8080/\n    auth: { token: abc }\n"));
    config_is_fine(
        with_handler("    http: https://charge.internal/\n    auth: { token: abc }\n"));
}

static void
the_plan_shows_the_address_and_no_secret(void **state)
{
    struct config_fixture fixture;
    struct lw_text out;
    (void)state;
    config_open(&fixture, with_handler("    http: https://charge.internal/in\n"
                                       "    auth: { token: s3cr3t }\n"
                                       "    connections: 7\n"));
    lw_text_init(&out);
    lw_config_plan_print(fixture.config, &out);
    assert_non_null(strstr(out.data, "handler charge: POST https://charge.internal/in, 7 "
                                     "connections"));
    assert_null(strstr(out.data, "s3cr3t"));
    lw_text_deinit(&out);
    config_close(&fixture);
}

static void
no_value_of_the_plan_shows_a_secret(void **state)
{
    struct config_fixture fixture;
    struct lw_plan_values values;
    size_t masked = 0;
    (void)state;
    config_open(&fixture,
                with_handler("    http: https://charge.internal/in\n"
                             "    headers: { Authorization: 's3cr3t', cookie: 's3cr3t',\n"
                             "               X-Api-Key: 's3cr3t', x-tenant: '7' }\n"
                             "    proxy: http://me:s3cr3t@proxy:3128\n"));
    assert_non_null(fixture.config);
    assert_true(lw_plan_values_list(fixture.config, &values));
    for (size_t i = 0; i < values.count; i++) {
        assert_null(strstr(values.items[i].value, "s3cr3t"));
        masked += strcmp(values.items[i].value, "***") == 0;
    }
    assert_int_equal(masked, 4);
    lw_config_arena_deinit(&values.arena);
    config_close(&fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_enough),
        cmocka_unit_test(every_key_reaches_its_option),
        cmocka_unit_test(a_wrong_address_is_shown_where_it_is_wrong),
        cmocka_unit_test(headers_that_cannot_be_sent_are_refused),
        cmocka_unit_test(what_does_not_go_together_is_said),
        cmocka_unit_test(a_token_in_the_clear_is_warned_about_but_not_on_this_computer),
        cmocka_unit_test(the_plan_shows_the_address_and_no_secret),
        cmocka_unit_test(no_value_of_the_plan_shows_a_secret),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
