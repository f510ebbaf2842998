/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http.c: the http engine with a service that behaves: the conformance suite, what a service
 * sees, every row of the table of answers, HTTP/2 over TLS.
 */
#include "tests/support/test.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engines/conformance.h"
#include "tests/engines/http_world.h"

static struct http_server server;
static struct http_server h2_server;

static void
create_plain(struct world *world, int64_t timeout_ms)
{
    struct lw_http_options options = http_options(server.url);
    http_create(world, &options, 2, timeout_ms);
}

static void
create_h2(struct world *world, int64_t timeout_ms)
{
    struct lw_http_options options = http_options(h2_server.url);
    options.trust_file = http_certificate();
    http_create(world, &options, 2, timeout_ms);
}

/* -- The table ------------------------------------------------------------------------------------- */

static struct lw_delivery *
answered(struct world *world, int status, const char *headers, const char *body)
{
    char raw[1024];
    (void)snprintf(raw, sizeof raw,
                   "raw HTTP/1.1 %d Whatever\r\n%scontent-length: %zu\r\n\r\n%s", status,
                   headers, strlen(body), body);
    return http_ask(world, raw);
}

static size_t
reply_count(const struct lw_delivery *delivery)
{
    return delivery->outcome->output_count;
}

static void
statuses_200_and_201_with_a_body_are_ok_with_a_reply(void **state)
{
    struct world *world = http_open_world(&server, NULL, 10000);
    (void)state;
    for (int status = 200; status <= 201; status++) {
        struct lw_delivery *delivery = answered(world, status, "", "confirmed");
        assert_int_equal(delivery->verdict, LW_OK);
        assert_string_equal(http_reply(delivery), "confirmed");
    }
    assert_int_equal(reply_count(answered(world, 200, "", "")), 0);
    world_destroy(world);
}

static void
other_2xx_are_ok_without_a_reply(void **state)
{
    static const int statuses[] = { 202, 203, 206, 226, 299 };
    struct world *world = http_open_world(&server, NULL, 10000);
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        struct lw_delivery *delivery = answered(world, statuses[i], "", "ignored");
        assert_int_equal(delivery->verdict, LW_OK);
        assert_int_equal(reply_count(delivery), 0);
    }
    struct lw_delivery *empty = http_ask(world, "raw HTTP/1.1 204 No Content\r\n\r\n");
    assert_int_equal(empty->verdict, LW_OK);
    assert_int_equal(reply_count(empty), 0);
    world_destroy(world);
}

static void
statuses_404_408_409_425_and_5xx_are_retries(void **state)
{
    static const int statuses[] = { 404, 408, 409, 425, 500, 501, 502, 504, 599 };
    struct world *world = http_open_world(&server, NULL, 10000);
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        struct lw_delivery *delivery = answered(world, statuses[i], "", "not yet");
        assert_int_equal(delivery->verdict, LW_RETRY);
        assert_false(delivery->outcome->is_uncharged);
        assert_int_equal(delivery->outcome->delay_ms, -1);
        assert_string_equal(lw_delivery_reason(delivery), "not yet");
    }
    world_destroy(world);
}

static void
statuses_429_and_503_are_retries_that_nobody_is_charged_for(void **state)
{
    static const int statuses[] = { 429, 503 };
    struct world *world = http_open_world(&server, NULL, 10000);
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct lw_delivery *delivery = answered(world, statuses[i], "", "");
        assert_int_equal(delivery->verdict, LW_RETRY);
        assert_true(delivery->outcome->is_uncharged);
        assert_in_range(delivery->outcome->delay_ms, 1000, 30000);
        assert_false(world->engine->is_down);
    }
    assert_true(world_has_logged(world, "handler.busy"));
    world_destroy(world);
}

static void
retry_after_pauses_the_whole_handler(void **state)
{
    struct world *world = http_open_world(&server, NULL, 10000);
    (void)state;
    uint64_t began = world->host->ops->refresh(world->host);
    struct lw_delivery *delivery = answered(world, 503, "Retry-After: 1\r\n", "");
    assert_int_equal(delivery->outcome->delay_ms, 1000);
    assert_true(world->engine->is_down);
    assert_int_equal(world->engine->room, 0);
    assert_string_equal(world->engine->down_error.code, "E0622");
    assert_true(world->engine->up_at > world->host->now);
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK); /* waits for room */
    assert_true(world->host->ops->refresh(world->host) - began >= 1000 * LW_MS);
    assert_false(world->engine->is_down);
    assert_int_equal(world->engine->up_at, 0);
    world_destroy(world);
}

static void
retry_after_may_be_a_date_and_is_followed_at_most_for_max_hold(void **state)
{
    struct lw_http_options options = http_options(NULL);
    options.max_hold_ms = 300;
    struct world *world = http_open_world(&server, &options, 10000);
    (void)state;
    struct lw_delivery *delivery = answered(
        world, 429, "Retry-After: Fri, 31 Dec 2199 23:59:59 GMT\r\n", "");
    assert_int_equal(delivery->outcome->delay_ms, 300);
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    world_destroy(world);
}

static void
a_message_that_is_put_off_for_max_hold_is_charged(void **state)
{
    struct lw_http_options options = http_options(NULL);
    options.max_hold_ms = 200;
    struct world *world = http_open_world(&server, &options, 10000);
    (void)state;
    struct lw_delivery *delivery = answered(world, 503, "", "");
    assert_true(delivery->outcome->is_uncharged);
    world_spend(world, 250);
    delivery->attempt--;
    assert_true(world_submit(world, delivery));
    world_wait_results(world, 2);
    assert_int_equal(delivery->verdict, LW_RETRY);
    assert_false(delivery->outcome->is_uncharged);
    assert_string_equal(lw_delivery_reason(delivery), "the service answered 503");
    struct lw_delivery *other = answered(world, 503, "", "");
    assert_true(other->outcome->is_uncharged);
    world_destroy(world);
}

static void
other_4xx_are_dead_with_the_first_500_bytes_of_the_body(void **state)
{
    static const int statuses[] = { 400, 401, 403, 405, 410, 413, 415, 422, 431, 451, 499 };
    struct world *world = http_open_world(&server, NULL, 10000);
    char body[801];
    (void)state;
    memset(body, 'b', sizeof body);
    body[800] = '\0';
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        struct lw_delivery *delivery = answered(world, statuses[i], "", body);
        assert_int_equal(delivery->verdict, LW_DEAD);
        assert_int_equal(strlen(lw_delivery_reason(delivery)), 500);
    }
    assert_string_equal(lw_delivery_reason(answered(world, 422, "", "bad order\r\n")),
                        "bad order");
    world_destroy(world);
}

static void
redirects_are_errors_that_say_so(void **state)
{
    static const int statuses[] = { 300, 301, 302, 303, 304, 307, 308 };
    struct world *world = http_open_world(&server, NULL, 10000);
    (void)state;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        struct lw_delivery *delivery = answered(world, statuses[i],
                                                "Location: http://other/\r\n", "");
        assert_int_equal(delivery->verdict, LW_ERROR);
        assert_non_null(strstr(lw_delivery_reason(delivery),
                               "to http://other/: redirects are not followed"));
        assert_int_equal(delivery->outcome->code, statuses[i]);
    }
    world_destroy(world);
}

static void
a_header_overrides_the_status(void **state)
{
    static const struct {
        int status;
        const char *word;
        enum lw_verdict verdict;
    } cases[] = { { 200, "retry", LW_RETRY }, { 200, "dead", LW_DEAD },
                  { 200, "drop", LW_DROP },   { 404, "drop", LW_DROP },
                  { 503, "dead", LW_DEAD },   { 400, "retry", LW_RETRY },
                  { 500, "ok", LW_OK },       { 302, "OK", LW_OK },
                  { 200, "maybe", LW_ERROR } };
    struct world *world = http_open_world(&server, NULL, 10000);
    char header[64];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(header, sizeof header, "X-Laneway-Result: %s\r\n", cases[i].word);
        struct lw_delivery *delivery = answered(world, cases[i].status, header, "");
        assert_int_equal(delivery->verdict, cases[i].verdict);
        assert_false(delivery->outcome->is_uncharged);
    }
    world_destroy(world);
}

static void
a_status_word_in_json_overrides_as_dapr_does(void **state)
{
    struct world *world = http_open_world(&server, NULL, 10000);
    (void)state;
    assert_int_equal(answered(world, 200, "", "{\"status\":\"RETRY\"}")->verdict, LW_RETRY);
    assert_int_equal(answered(world, 200, "", "{\"status\": \"DROP\"}")->verdict, LW_DROP);
    struct lw_delivery *success = answered(world, 200, "", "{\"status\":\"SUCCESS\"}");
    assert_int_equal(success->verdict, LW_OK);
    assert_int_equal(reply_count(success), 0);
    struct lw_delivery *reply = answered(world, 200, "", "{\"status\":\"shipped\"}");
    assert_int_equal(reply->verdict, LW_OK);
    assert_string_equal(http_reply(reply), "{\"status\":\"shipped\"}");
    assert_int_equal(answered(world, 400, "", "{\"status\":\"RETRY\"}")->verdict, LW_DEAD);
    world_destroy(world);
}

/* -- What a service sees --------------------------------------------------------------------------- */

static json_t *
shown(struct world *world)
{
    struct lw_delivery *delivery = http_ask(world, "show");
    json_t *root = json_loads(http_reply(delivery), 0, NULL);
    assert_non_null(root);
    return root;
}

/* The value of the only header of that name, or NULL. */
static const char *
header_of(json_t *root, const char *name)
{
    const char *found = NULL;
    size_t i = 0;
    json_t *pair = NULL;
    json_array_foreach(json_object_get(root, "headers"), i, pair)
    {
        if (strcasecmp(json_string_value(json_array_get(pair, 0)), name) == 0) {
            assert_null(found);
            found = json_string_value(json_array_get(pair, 1));
        }
    }
    return found;
}

static void
a_service_sees_what_every_handler_sees(void **state)
{
    struct world *world = http_open_world(&server, NULL, 20000);
    (void)state;
    world->times = (struct lw_message_times){ 1764511339123, 1764511339000 };
    json_t *root = shown(world);
    assert_string_equal(json_string_value(json_object_get(root, "line")), "POST /in HTTP/1.1");
    assert_string_equal(header_of(root, "content-type"), "application/octet-stream");
    assert_string_equal(header_of(root, "ce-id"), "main/orders/3/0");
    assert_string_equal(header_of(root, "ce-source"), "/orders");
    assert_string_equal(header_of(root, "ce-specversion"), "1.0");
    assert_string_equal(header_of(root, "ce-type"), "laneway.message");
    assert_string_equal(header_of(root, "ce-time"), "2025-11-30T14:02:19.123Z");
    assert_string_equal(header_of(root, "ce-partitionkey"), "k");
    assert_string_equal(header_of(root, "x-laneway-message-id"), "main/orders/3/0");
    assert_string_equal(header_of(root, "x-laneway-topic"), "orders");
    assert_string_equal(header_of(root, "x-laneway-partition"), "3");
    assert_string_equal(header_of(root, "x-laneway-offset"), "0");
    assert_string_equal(header_of(root, "x-laneway-subscription"), "group");
    assert_string_equal(header_of(root, "x-laneway-pipeline"), "pipe");
    assert_string_equal(header_of(root, "x-laneway-key"), "k");
    assert_string_equal(header_of(root, "x-laneway-timestamp"), "2025-11-30T14:02:19.123Z");
    assert_string_equal(header_of(root, "x-laneway-event-time"), "2025-11-30T14:02:19.000Z");
    assert_string_equal(header_of(root, "x-laneway-attempt"), "1");
    assert_string_equal(header_of(root, "x-laneway-deadline"), "20000");
    assert_string_equal(header_of(root, "user-agent"), "laneway/" LW_VERSION_STRING);
    assert_null(header_of(root, "expect"));
    json_decref(root);
    world_destroy(world);
}

static void
headers_of_a_message_reach_the_service_and_nothing_is_injected(void **state)
{
    struct world *world = http_open_world(&server, NULL, 20000);
    struct lw_header headers[] = {
        { lw_bytes_of("content-type"), lw_bytes_of("text/plain; charset=utf-8") },
        { lw_bytes_of("traceparent"),
          lw_bytes_of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b71692"
                      "03331-01") },
        { lw_bytes_of("colour"), lw_bytes_of("light blue") },
        { lw_bytes_of("evil"), lw_bytes_of("a\r\nx-injected: 1\r\n\r\nGET / HTTP/1.1") },
        { lw_bytes_of("two words: x"), lw_bytes_of("50%") },
        { lw_bytes_of("none"), { NULL, 0 } },
        { lw_bytes_of("utf8"), lw_bytes_of("\xc3\xa4") },
    };
    (void)state;
    world->headers = headers;
    world->header_count = sizeof headers / sizeof headers[0];
    json_t *root = shown(world);
    assert_string_equal(header_of(root, "content-type"), "text/plain; charset=utf-8");
    assert_string_equal(header_of(root, "traceparent"), headers[1].value.data);
    assert_null(header_of(root, "x-msg-traceparent"));
    assert_string_equal(header_of(root, "x-msg-colour"), "light blue");
    assert_string_equal(header_of(root, "x-msg-evil"),
                        "a%0D%0Ax-injected: 1%0D%0A%0D%0AGET / HTTP/1.1");
    assert_null(header_of(root, "x-injected"));
    assert_string_equal(header_of(root, "x-msg-two%20words%3A%20x"), "50%25");
    assert_string_equal(header_of(root, "x-msg-none"), "");
    assert_string_equal(header_of(root, "x-msg-utf8"), "%C3%A4");
    json_decref(root);
    world_destroy(world);
}

static void
headers_of_the_configuration_come_with_every_request(void **state)
{
    struct lw_property headers[] = { { "x-tenant", "7" },
                                     { "Content-Type", "text/csv" },
                                     { "User-Agent", "ours" } };
    struct lw_http_options options = http_options(NULL);
    options.headers = headers;
    options.header_count = 3;
    options.method = LW_HTTP_METHOD_PUT;
    struct world *world = http_open_world(&server, &options, 20000);
    (void)state;
    json_t *root = shown(world);
    assert_string_equal(json_string_value(json_object_get(root, "line")), "PUT /in HTTP/1.1");
    assert_string_equal(header_of(root, "x-tenant"), "7");
    assert_string_equal(header_of(root, "user-agent"), "ours");
    assert_string_equal(header_of(root, "content-type"), "text/csv");
    json_decref(root);
    world_destroy(world);
}

static void
connections_are_kept_and_used_again(void **state)
{
    struct world *world = http_open_world(&server, NULL, 20000);
    (void)state;
    json_t *before = json_loads(http_reply(http_ask(world, "stats")), 0, NULL);
    for (size_t i = 0; i < 50; i++) {
        http_ask(world, "ok");
    }
    json_t *after = json_loads(http_reply(http_ask(world, "stats")), 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(before, "connections")),
                     json_integer_value(json_object_get(after, "connections")));
    json_decref(before);
    json_decref(after);
    world_destroy(world);
}

int
main(void)
{
    const char *const h2[] = { "--tls", http_certificate(), http_key(), "--h2", NULL };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_200_and_201_with_a_body_are_ok_with_a_reply),
        cmocka_unit_test(other_2xx_are_ok_without_a_reply),
        cmocka_unit_test(statuses_404_408_409_425_and_5xx_are_retries),
        cmocka_unit_test(statuses_429_and_503_are_retries_that_nobody_is_charged_for),
        cmocka_unit_test(retry_after_pauses_the_whole_handler),
        cmocka_unit_test(retry_after_may_be_a_date_and_is_followed_at_most_for_max_hold),
        cmocka_unit_test(a_message_that_is_put_off_for_max_hold_is_charged),
        cmocka_unit_test(other_4xx_are_dead_with_the_first_500_bytes_of_the_body),
        cmocka_unit_test(redirects_are_errors_that_say_so),
        cmocka_unit_test(a_header_overrides_the_status),
        cmocka_unit_test(a_status_word_in_json_overrides_as_dapr_does),
        cmocka_unit_test(a_service_sees_what_every_handler_sees),
        cmocka_unit_test(headers_of_a_message_reach_the_service_and_nothing_is_injected),
        cmocka_unit_test(headers_of_the_configuration_come_with_every_request),
        cmocka_unit_test(connections_are_kept_and_used_again),
    };
    struct engine_kit plain = { "http", create_plain, .room = 2, .can_wait = true,
                                .can_end_early = true };
    struct engine_kit over_h2 = { "http over TLS, version 2", create_h2, .room = 2,
                                  .can_wait = true, .can_end_early = true };
    http_server_start(&server, 0, NULL);
    http_server_start(&h2_server, 0, h2);
    int failed = conformance_run(&plain);
    if (h2_server.port) {
        failed += conformance_run(&over_h2);
    } else {
        printf("skipped: HTTP/2 (python3-h2 is not installed)\n");
        failed += getenv("LANEWAY_TEST_STRICT") ? 1 : 0;
    }
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    http_server_stop(&server);
    http_server_stop(&h2_server);
    return failed;
}
