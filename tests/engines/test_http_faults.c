/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http_faults.c: the http engine with a service that is down, slow, wrong or somebody else:
 * who is charged, what people are told, and that it goes on by itself.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engines/http/http.h"
#include "tests/engines/http_world.h"

static struct http_server server;

static void
assert_charged(const struct lw_delivery *delivery, const char *reason)
{
    assert_int_equal(delivery->verdict, LW_ERROR);
    assert_false(delivery->outcome->is_uncharged);
    if (!strstr(lw_delivery_reason(delivery), reason)) {
        fail_msg("\"%s\" does not say \"%s\"", lw_delivery_reason(delivery), reason);
    }
}

/* The numbers of the server. */
static int64_t
count_of(struct world *world, const char *name)
{
    json_t *root = json_loads(http_reply(http_ask(world, "stats")), 0, NULL);
    int64_t count = json_integer_value(json_object_get(root, name));
    json_decref(root);
    return count;
}

/* -- Down ------------------------------------------------------------------------------------------ */

static void
a_service_that_is_down_charges_nobody_and_is_found_again(void **state)
{
    char url[64];
    struct http_server late;
    int port = http_free_port();
    (void)state;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    struct world *world = http_open_at(url, 10000);
    for (int i = 0; i < 4; i++) {
        assert_true(world_submit(world, world_delivery(world, "ok")));
    }
    world_wait_results(world, 4);
    for (int i = 0; i < 4; i++) {
        http_assert_down(world, &world->deliveries[i], "E0620");
    }
    http_server_start(&late, port, NULL);
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    assert_false(world->engine->is_down);
    assert_true(world_has_logged(world, "handler.up"));
    http_server_stop(&late);
    world_destroy(world);
}

static bool
has_probed_twice(struct world *world)
{
    const char *first = strstr(world->log, "Next try in 1s");
    return first && strstr(first, "Next try in 2s");
}

static void
a_service_that_stays_down_is_tried_with_growing_pauses_without_a_message(void **state)
{
    char url[64];
    (void)state;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", http_free_port());
    struct world *world = http_open_at(url, 10000);
    http_ask(world, "ok");
    world_wait(world, has_probed_twice);
    assert_int_equal(world->result_count, 1);
    assert_true(world->engine->is_down);
    world_destroy(world);
}

static void
a_service_that_goes_and_comes_back_loses_nothing(void **state)
{
    struct http_server mortal;
    (void)state;
    http_server_start(&mortal, http_free_port(), NULL);
    struct world *world = http_open_at(mortal.url, 10000);
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    struct lw_delivery *held = world_run(world, "hold");
    http_ask(world, "ok"); /* sent after it, and answered: it is there, too */
    http_server_stop(&mortal);
    world_wait_results(world, 3);
    http_assert_down(world, held,
                     "E0620"); /* sent again on a fresh connection, which there is not */
    http_server_start(&mortal, mortal.port, NULL);
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    http_server_stop(&mortal);
    world_destroy(world);
}

static void
a_name_that_does_not_exist_is_a_service_that_is_down(void **state)
{
    (void)state;
    struct world *world = http_open_at("http://laneway-test.invalid/", 30000);
    http_assert_down(world, http_ask(world, "ok"), "E0620");
    world_destroy(world);
}

static void
descriptors_that_ran_out_charge_nobody_and_are_named(void **state)
{
    struct rlimit limit;
    struct rlimit none;
    (void)state;
    struct world *world = http_open_at(server.url, 10000);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)dup(0); /* the next one is one too many */
    assert_int_equal(close((int)none.rlim_cur), 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct lw_delivery *delivery = http_ask(world, "ok");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    http_assert_down(world, delivery, "E0620");
    assert_non_null(strstr(world->engine->down_error.message, "Too many open files"));
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    world_destroy(world);
}

static void
a_connection_that_takes_too_long_charges_nobody(void **state)
{
    char url[64];
    int port = 0;
    int fd = http_listen_silently(&port);
    (void)state;
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%d/", port);
    struct lw_http_options options = http_options(url);
    struct world *world = world_create();
    options.connect_timeout_ms = 200;
    http_create(world, &options, 4, 10000);
    http_assert_down(world, http_ask(world, "ok"), "E0620");
    assert_non_null(strstr(world->engine->down_error.message, "no connection within 200ms"));
    (void)close(fd);
    world_destroy(world);
}

/* -- TLS ------------------------------------------------------------------------------------------- */

static void
a_certificate_that_nobody_trusts_charges_nobody(void **state)
{
    struct http_server tls;
    const char *const arguments[] = { "--tls", http_certificate(), http_key(), NULL };
    (void)state;
    http_server_start(&tls, 0, arguments);
    struct world *world = http_open_at(tls.url, 10000);
    http_assert_down(world, http_ask(world, "ok"), "E0620");
    assert_non_null(strstr(world->engine->down_error.message, "certificate"));
    http_server_stop(&tls);
    world_destroy(world);
}

static void
tls_and_plaintext_that_meet_charge_nobody(void **state)
{
    char url[64];
    struct http_server tls;
    const char *const arguments[] = { "--tls", http_certificate(), http_key(), NULL };
    (void)state;
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%d/", server.port);
    struct lw_http_options options = http_options(url);
    options.connect_timeout_ms = 300; /* that server waits for the end of a line */
    struct world *world = http_open_world(&server, &options, 10000);
    http_assert_down(world, http_ask(world, "ok"), "E0620");
    world_destroy(world);
    http_server_start(&tls, 0, arguments);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d/", tls.port);
    world = http_open_at(url, 10000);
    http_assert_down(world, http_ask(world, "ok"), "E0621");
    http_server_stop(&tls);
    world_destroy(world);
}

static void
a_service_that_wants_our_certificate_gets_it(void **state)
{
    struct http_server tls;
    const char *const arguments[] = { "--tls",       http_certificate(), http_key(),
                                      "--client-ca", http_certificate(), NULL };
    (void)state;
    http_server_start(&tls, 0, arguments);
    struct lw_http_options options = http_options(tls.url);
    options.trust_file = http_certificate();
    struct world *world = http_open_world(&tls, &options, 10000);
    struct lw_delivery *refused = http_ask(world, "ok");
    http_assert_down(world, refused,
                     world->engine->down_error.code); /* by TLS, or by a silent end */
    world_destroy(world);
    options.certificate_file = http_certificate();
    options.key_file = http_key();
    world = http_open_world(&tls, &options, 10000);
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    http_server_stop(&tls);
    world_destroy(world);
}

/* -- Wrong answers ----------------------------------------------------------------------------------- */

static void
garbage_charges_nobody_while_the_service_never_answered(void **state)
{
    (void)state;
    struct world *world = http_open_at(server.url, 10000);
    http_assert_down(world, http_ask(world, "rawclose SSH-2.0-OpenSSH_9.2\r\n"), "E0621");
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK); /* tried again by itself */
    assert_false(world->engine->is_down);
    world_destroy(world);
}

/* As after a restart of ours: nothing tells a service that dies of it from a wrong address. */
static void
a_message_that_ends_a_service_that_never_answered_is_charged_after_max_hold(void **state)
{
    struct lw_http_options options = http_options(server.url);
    struct world *world = world_create();
    (void)state;
    options.max_hold_ms = 500;
    http_create(world, &options, 4, 10000);
    struct lw_delivery *poison = http_ask(world, "crash");
    http_assert_down(world, poison, "E0621");
    world_wait(world, world_engine_has_room); /* after a second */
    poison->attempt--;
    assert_true(world_submit(world, poison));
    world_wait_results(world, 2);
    assert_charged(poison, "the service gave no usable answer");
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    world_destroy(world);
}

static void
garbage_of_a_service_that_answers_is_the_messages_fault(void **state)
{
    static const char *const answers[] = {
        "rawclose SSH-2.0-OpenSSH_9.2\r\n",
        "rawclose HTTP/9.9 abc\r\n\r\n",
        "rawclose HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
        "crash",
        "rawreset x",
        "rawclose \x16\x03\x01\x02",
    };
    (void)state;
    struct world *world = http_open_at(server.url, 10000);
    http_ask(world, "ok");
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        assert_charged(http_ask(world, answers[i]), "the service gave no usable answer");
        assert_false(world->engine->is_down);
    }
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    world_destroy(world);
}

static void
an_answer_that_ends_in_the_middle_is_an_error(void **state)
{
    (void)state;
    struct world *world = http_open_at(server.url, 10000);
    struct lw_delivery *cut = http_ask(
        world, "rawclose HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this");
    assert_charged(cut, "the service answered 200 and ended the connection in the middle");
    struct lw_delivery *chunk = http_ask(
        world, "rawclose HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nonly this");
    assert_charged(chunk, "in the middle");
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    world_destroy(world);
}

static void
an_answer_that_stops_in_the_middle_times_out(void **state)
{
    (void)state;
    struct world *world = http_open_at(server.url, 300);
    struct lw_delivery *slow = http_ask(
        world, "raw HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this");
    assert_charged(slow, "timed out after 300ms");
    world_destroy(world);
}

static void
a_huge_answer_is_an_error_and_its_connection_is_closed_early(void **state)
{
    (void)state;
    struct world *world = http_open_at(server.url, 60000);
    assert_charged(http_ask(world, "big 209715200"),
                   "larger than 1MiB (max_answer_bytes); the connection was closed");
    assert_in_range(count_of(world, "big_sent"), 0, 100 << 20);
    assert_charged(http_ask(world, "raw HTTP/1.1 200 OK\r\ncontent-length: 10485760\r\n\r\n"),
                   "larger than 1MiB");
    struct lw_delivery *dead = http_ask(
        world, "raw HTTP/1.1 400 No\r\ncontent-length: 10485760\r\n\r\nbad order");
    assert_int_equal(dead->verdict, LW_DEAD);
    assert_string_equal(lw_delivery_reason(dead), "bad order");
    world_destroy(world);
}

static void
interim_answers_and_trailers_mean_nothing(void **state)
{
    (void)state;
    struct world *world = http_open_at(server.url, 10000);
    struct lw_delivery *delivery = http_ask(
        world, "raw HTTP/1.1 103 Early Hints\r\nx-laneway-result: dead\r\n\r\n"
               "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
               "2\r\nhi\r\n0\r\nx-laneway-result: drop\r\n\r\n");
    assert_int_equal(delivery->verdict, LW_OK);
    assert_string_equal(http_reply(delivery), "hi");
    world_destroy(world);
}

static void
words_that_mean_nothing_are_named(void **state)
{
    (void)state;
    struct world *world = http_open_at(server.url, 10000);
    assert_charged(http_ask(world, "raw HTTP/1.1 200 OK\r\nx-laneway-delay: soon\r\n"
                                   "content-length: 0\r\n\r\n"),
                   "its header x-laneway-delay is no duration such as 5s");
    assert_charged(http_ask(world, "raw HTTP/1.1 200 OK\r\ncontent-type: "
                                   "application/vnd.laneway.answer+json\r\n"
                                   "content-length: 2\r\n\r\n[]"),
                   "is not a JSON object");
    struct lw_delivery *busy = http_ask(
        world, "raw HTTP/1.1 503 No\r\nretry-after: soon\r\ncontent-length: 0\r\n\r\n");
    assert_true(busy->outcome->is_uncharged);
    assert_false(world->engine->is_down);
    struct lw_delivery *hasty = http_ask(
        world, "raw HTTP/1.1 503 No\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n");
    assert_true(hasty->outcome->is_uncharged);
    assert_in_range(hasty->outcome->delay_ms, 1000, 30000);
    world_destroy(world);
}

/* -- Ends and tokens --------------------------------------------------------------------------------- */

static void
a_cancelled_request_ends_at_once(void **state)
{
    (void)state;
    struct world *world = http_open_at(server.url, 0);
    struct lw_delivery *held = world_run(world, "hold");
    http_ask(world, "ok"); /* sent after it, and answered: it is there, too */
    world->engine->ops->cancel(world->engine, held);
    world_wait_results(world, 2);
    assert_true(held->outcome->is_uncharged);
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    world_destroy(world);
}

static void
an_engine_may_be_destroyed_with_requests_under_way(void **state)
{
    (void)state;
    struct world *world = http_open_at(server.url, 0);
    world_run(world, "hold");
    world_run(world, "wait 60000 ok");
    http_ask(world, "ok"); /* sent after them, and answered: they are there, too */
    assert_int_equal(world->result_count, 1);
    world_destroy(world);
}

static void
write_file(const char *path, const char *text)
{
    char fresh[128];
    (void)snprintf(fresh, sizeof fresh, "%s.new", path);
    FILE *file = fopen(fresh, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(rename(fresh, path), 0);
}

static void
a_token_is_read_again_when_it_changes(void **state)
{
    struct http_server guarded;
    char ours[] = "/tmp/laneway-token-XXXXXX";
    char theirs[] = "/tmp/laneway-token-XXXXXX";
    char source[64];
    (void)state;
    (void)close(mkstemp(ours));
    (void)close(mkstemp(theirs));
    (void)snprintf(source, sizeof source, "file://%s", ours);
    write_file(ours, "one\n");
    write_file(theirs, "one");
    const char *const arguments[] = { "--token", theirs, NULL };
    http_server_start(&guarded, 0, arguments);
    struct lw_http_options options = http_options(guarded.url);
    options.token = source;
    struct world *world = http_open_world(&guarded, &options, 10000);
    assert_int_equal(http_ask(world, "token")->verdict, LW_OK);
    write_file(theirs, "two");
    struct lw_delivery *refused = http_ask(world, "token");
    assert_int_equal(refused->verdict, LW_DEAD);
    assert_string_equal(lw_delivery_reason(refused), "who are you");
    write_file(ours, "two\n");
    struct lw_delivery *again = http_ask(world, "token");
    if (again->verdict != LW_OK) { /* sent before the file was looked at again */
        assert_true(again->outcome->is_uncharged);
        assert_int_equal(http_ask(world, "token")->verdict, LW_OK);
    }
    write_file(ours, "\n");
    assert_int_equal(http_ask(world, "token")->verdict, LW_OK); /* the last good one */
    http_server_stop(&guarded);
    world_destroy(world);
    (void)unlink(ours);
    (void)unlink(theirs);
}

static void
what_cannot_be_used_is_refused_at_its_making(void **state)
{
    struct lw_error error;
    struct lw_property bad = { "x", "a\r\nb" };
    struct lw_http_options options[3] = { http_options("ftp://host/"),
                                          http_options("http://h/"),
                                          http_options("http://h/") };
    static const char *const codes[] = { "E0125", "E0126", "E0623" };
    (void)state;
    options[1].headers = &bad;
    options[1].header_count = 1;
    options[2].token = "file:/nowhere/token";
    struct world *world = world_create();
    for (size_t i = 0; i < 3; i++) {
        struct lw_http_engine_options run = { .name = "h",
                                              .http = &options[i],
                                              .connections = 1 };
        assert_int_equal(lw_http_engine_create(world->host, &world->completions, &run,
                                               &world->engine, &error),
                         LW_STATUS_CONFIG);
        assert_string_equal(error.code, codes[i]);
    }
    world_destroy(world);
}

/* How many descriptors are watched; fails when one of them is closed. */
static size_t
watched(struct world *world)
{
    const struct lw_http *http = lw_http_of(world->engine);
    size_t count = 0;
    for (size_t fd = 0; fd < http->socket_capacity; fd++) {
        if (http->sockets[fd]) {
            assert_true(fcntl((int)fd, F_GETFD) >= 0);
            assert_true(fcntl((int)fd, F_GETFD) & FD_CLOEXEC);
            count++;
        }
    }
    return count;
}

static void
no_descriptor_is_watched_after_its_end(void **state)
{
    char url[64];
    (void)state;
    (void)snprintf(url, sizeof url, "http://localhost:%d/", server.port);
    struct world *world = http_open_at(url, 2000);
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK); /* perhaps by way of ::1 */
    assert_int_equal(watched(world), 1);
    http_ask(world, "hold"); /* times out, and its connection is closed */
    assert_int_equal(watched(world), 0);
    http_ask(world, "rawclose HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
    world_spend(world, 50); /* the other side closes what rests in the pool */
    assert_in_range(watched(world), 0, 1);
    http_ask(world, "rawclose HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi");
    http_ask(world, "crash");
    assert_int_equal(watched(world), 0);
    world_destroy(world);
    (void)snprintf(url, sizeof url, "http://localhost:%d/", http_free_port());
    world = http_open_at(url, 2000);
    http_assert_down(world, http_ask(world, "ok"), "E0620");
    assert_int_equal(watched(world), 0);
    world_destroy(world);
}

static void
no_timer_is_armed_while_nothing_runs(void **state)
{
    (void)state;
    struct world *world = http_open_at(server.url, 10000);
    assert_int_equal(http_ask(world, "ok")->verdict, LW_OK);
    world_turn(world, 0);
    assert_int_equal(world->host->timers.count, 0);
    http_ask(world, "rawclose HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
    world_turn(world, 0);
    assert_int_equal(world->host->timers.count, 0);
    world_destroy(world);
}

static void
requests_of_version_2_share_a_connection(void **state)
{
    struct http_server h2;
    const char *const arguments[] = { "--tls", http_certificate(), http_key(), "--h2", NULL };
    (void)state;
    http_server_start(&h2, 0, arguments);
    if (!h2.port) {
        http_server_stop(&h2);
        skip();
    }
    struct lw_http_options options = http_options(h2.url);
    options.trust_file = http_certificate();
    struct world *world = http_open_world(&h2, &options, 10000);
    for (int i = 0; i < 40; i++) {
        world_run(world, "wait 5 ok");
    }
    world_wait_results(world, 40);
    for (size_t i = 0; i < 40; i++) {
        assert_int_equal(world->deliveries[i].verdict, LW_OK);
    }
    assert_int_equal(count_of(world, "connections"), 1);
    http_server_stop(&h2);
    world_destroy(world);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_service_that_is_down_charges_nobody_and_is_found_again),
        cmocka_unit_test(
            a_service_that_stays_down_is_tried_with_growing_pauses_without_a_message),
        cmocka_unit_test(a_service_that_goes_and_comes_back_loses_nothing),
        cmocka_unit_test(a_name_that_does_not_exist_is_a_service_that_is_down),
        cmocka_unit_test(descriptors_that_ran_out_charge_nobody_and_are_named),
        cmocka_unit_test(a_connection_that_takes_too_long_charges_nobody),
        cmocka_unit_test(a_certificate_that_nobody_trusts_charges_nobody),
        cmocka_unit_test(tls_and_plaintext_that_meet_charge_nobody),
        cmocka_unit_test(a_service_that_wants_our_certificate_gets_it),
        cmocka_unit_test(garbage_charges_nobody_while_the_service_never_answered),
        cmocka_unit_test(
            a_message_that_ends_a_service_that_never_answered_is_charged_after_max_hold),
        cmocka_unit_test(garbage_of_a_service_that_answers_is_the_messages_fault),
        cmocka_unit_test(an_answer_that_ends_in_the_middle_is_an_error),
        cmocka_unit_test(an_answer_that_stops_in_the_middle_times_out),
        cmocka_unit_test(a_huge_answer_is_an_error_and_its_connection_is_closed_early),
        cmocka_unit_test(interim_answers_and_trailers_mean_nothing),
        cmocka_unit_test(words_that_mean_nothing_are_named),
        cmocka_unit_test(a_cancelled_request_ends_at_once),
        cmocka_unit_test(an_engine_may_be_destroyed_with_requests_under_way),
        cmocka_unit_test(a_token_is_read_again_when_it_changes),
        cmocka_unit_test(what_cannot_be_used_is_refused_at_its_making),
        cmocka_unit_test(no_descriptor_is_watched_after_its_end),
        cmocka_unit_test(no_timer_is_armed_while_nothing_runs),
        cmocka_unit_test(requests_of_version_2_share_a_connection),
    };
    http_server_start(&server, 0, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    http_server_stop(&server);
    return failed;
}
