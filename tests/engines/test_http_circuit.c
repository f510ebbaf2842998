/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http_circuit.c: the circuit of the http engine when older requests are under way, proxies
 * that know no way, and requests and answers that are larger than libcurl takes.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engines/http/http.h"
#include "tests/engines/http_world.h"

static struct http_server server;

/* -- The circuit ------------------------------------------------------------------------------------- */

/* Of a request that was under way before: its connection failed. */
static void
fail_an_older_one(struct world *world)
{
    lw_http_circuit_on_failure(lw_http_of(world->engine), "E0620", "by a test");
}

static bool
is_half_open(struct world *world)
{
    return lw_http_of(world->engine)->circuit == LW_HTTP_HALF_OPEN;
}

static bool
is_probing(struct world *world)
{
    return lw_http_of(world->engine)->circuit == LW_HTTP_PROBING;
}

static void
one_message_is_tried_though_an_older_one_never_ends(void **state)
{
    (void)state;
    struct world *world = http_open_at(server.url, 0);
    world_run(world, "hold");
    http_ask(world, "ok"); /* sent after it, and answered: it is there, too */
    fail_an_older_one(world);
    world_wait(world, is_half_open);
    assert_int_equal(world->engine->room, 1);
    struct lw_delivery *second = world_run(world, "wait 50 ok");
    assert_int_equal(world->engine->room, 0);
    world_wait_results(world, 2);
    assert_int_equal(second->verdict, LW_OK);
    assert_int_equal(world->engine->room, 3);
    world_destroy(world);
}

static void
failures_of_older_ones_do_not_touch_the_probe_and_their_answers_end_it(void **state)
{
    char url[64];
    int port = 0;
    int fd = http_listen_silently(&port);
    (void)state;
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%d/", port);
    struct world *world = http_open_at(url, 10000);
    struct lw_http *http = lw_http_of(world->engine);
    fail_an_older_one(world);
    world_wait(world, is_probing);
    fail_an_older_one(world);
    assert_int_equal(http->circuit, LW_HTTP_PROBING);
    assert_false(lw_timer_is_armed(&http->circuit_timer));
    lw_http_circuit_on_answer(http);
    assert_int_equal(http->circuit, LW_HTTP_CLOSED);
    assert_null(http->probe.easy);
    assert_false(lw_timer_is_armed(&http->probe.timer));
    assert_int_equal(world->engine->room, 4);
    (void)close(fd);
    world_destroy(world);
}

static void
a_pause_is_told_of_again_once_the_service_can_be_reached(void **state)
{
    (void)state;
    struct world *world = http_open_at(server.url, 10000);
    http_ask(world, "raw HTTP/1.1 503 No\r\nretry-after: 600\r\ncontent-length: 0\r\n\r\n");
    assert_string_equal(world->engine->down_error.code, "E0622");
    fail_an_older_one(world);
    assert_string_equal(world->engine->down_error.code, "E0620");
    world_wait(world, is_half_open);
    assert_true(world->engine->is_down);
    assert_string_equal(world->engine->down_error.code, "E0622");
    world_destroy(world);
}

static void
what_may_be_secret_of_an_address_is_not_shown(void **state)
{
    char url[96];
    (void)state;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/hook/s3cr3t?key=s3cr3t",
                   http_free_port());
    struct world *world = http_open_at(url, 10000);
    http_assert_down(world, http_ask(world, "ok"), "E0620");
    assert_non_null(strstr(world->engine->down_error.message, "http://127.0.0.1:"));
    assert_null(strstr(world->engine->down_error.message, "s3cr3t"));
    assert_null(strstr(world->log, "s3cr3t"));
    world_destroy(world);
}

/* -- Proxies ----------------------------------------------------------------------------------------- */

/* What a message comes to whose service is behind this server as a proxy. */
static void
assert_no_way(const char *url, const char *status, const char *text, const char *words,
              int64_t connect_timeout_ms)
{
    char proxy[64];
    struct http_server way;
    const char *const arguments[] = { "--connect", status, NULL };
    http_server_start(&way, 0, arguments);
    (void)snprintf(proxy, sizeof proxy, "http://127.0.0.1:%d", way.port);
    struct lw_http_options options = http_options(url);
    options.proxy = proxy;
    options.connect_timeout_ms = connect_timeout_ms;
    struct world *world = http_open_world(&way, &options, 10000);
    http_assert_down(world, http_ask(world, text), "E0620");
    assert_non_null(strstr(world->engine->down_error.message, words));
    http_server_stop(&way);
    world_destroy(world);
}

static void
a_proxy_that_knows_no_way_charges_nobody(void **state)
{
    (void)state;
    assert_no_way("https://laneway-test.invalid/", "503", "ok", "503", 60000);
    assert_no_way("https://laneway-test.invalid/", "407", "ok", "407", 60000);
    /* It says yes, and nothing comes through. */
    assert_no_way("https://laneway-test.invalid/", "200", "ok", "cannot reach", 500);
    assert_no_way("http://laneway-test.invalid/", "200",
                  "raw HTTP/1.1 407 Who\r\ncontent-length: 0\r\n\r\n",
                  "the proxy wants credentials", 60000);
}

/* -- What is too large ------------------------------------------------------------------------------- */

static void
a_message_whose_key_makes_too_large_headers_is_dead_and_harms_no_other(void **state)
{
    struct lw_http_options options = http_options(server.url);
    struct world *world = world_create();
    char *key = calloc(1, 400 << 10);
    (void)state;
    http_create(world, &options, 1, 10000);
    assert_non_null(key);
    struct lw_delivery *large = world_delivery(world, "ok");
    large->message.key = (struct lw_bytes){ key, 400 << 10 };
    assert_true(world_submit(world, large));
    assert_int_equal(world->engine->room, 1);
    world_wait_results(world, 1);
    assert_int_equal(large->verdict, LW_DEAD);
    assert_false(large->outcome->is_uncharged);
    assert_non_null(strstr(lw_delivery_reason(large), "768 KiB is the most"));
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    world_destroy(world);
    free(key);
}

static void
a_message_with_large_headers_is_sent(void **state)
{
    static char text[600 << 10];
    struct http_server h2;
    struct lw_header header = { lw_bytes_of("large"), { text, sizeof text } };
    const char *const arguments[] = { "--tls", http_certificate(), http_key(), "--h2", NULL };
    (void)state;
    memset(text, 'x', sizeof text);
    http_server_start(&h2, 0, arguments);
    struct lw_http_options options = http_options(h2.url);
    options.trust_file = http_certificate();
    struct world *world = http_open_world(h2.port ? &h2 : &server, h2.port ? &options : NULL,
                                          10000);
    world->headers = &header;
    world->header_count = 1;
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    header.value.size = 30 << 10; /* by HTTP/2, and again by 1.1 */
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    header.value.size = 60 << 10;
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    http_server_stop(&h2);
    world_destroy(world);
}

/* libcurl calls that "out of memory": taken so, the message would be sent for ever. */
static void
a_header_of_an_answer_that_is_too_large_is_an_error(void **state)
{
    enum { BYTES = 150 << 10 };
    static char text[BYTES + 256];
    (void)state;
    struct world *world = http_open_at(server.url, 10000);
    int size = snprintf(text, sizeof text, "raw HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: ");
    memset(text + size, 'x', BYTES);
    memcpy(text + size + BYTES, "\r\n\r\n", 5);
    struct lw_delivery *delivery = http_ask(world, text);
    assert_int_equal(delivery->verdict, LW_ERROR);
    assert_false(delivery->outcome->is_uncharged);
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    world_destroy(world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_message_is_tried_though_an_older_one_never_ends),
        cmocka_unit_test(
            failures_of_older_ones_do_not_touch_the_probe_and_their_answers_end_it),
        cmocka_unit_test(a_pause_is_told_of_again_once_the_service_can_be_reached),
        cmocka_unit_test(what_may_be_secret_of_an_address_is_not_shown),
        cmocka_unit_test(a_proxy_that_knows_no_way_charges_nobody),
        cmocka_unit_test(
            a_message_whose_key_makes_too_large_headers_is_dead_and_harms_no_other),
        cmocka_unit_test(a_message_with_large_headers_is_sent),
        cmocka_unit_test(a_header_of_an_answer_that_is_too_large_is_an_error),
    };
    http_server_start(&server, 0, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    http_server_stop(&server);
    return failed;
}
