/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way to a connection and what ends it: names and addresses, TLS, the greeting, challenges,
 * keep-alive, strangers on the port.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "brokers/pulsar/connection_state.h"
#include "tests/brokers/pulsar/certificates.h"
#include "tests/brokers/pulsar/peer.h"

static struct world world;
static struct peer_listener listener;
static struct peer peer;
static uint64_t live_before;

static int
setup(void **state)
{
    (void)state;
    live_before = lw_alloc_live();
    memset(&peer, 0, sizeof peer);
    peer_listen(&listener, "127.0.0.1", 0);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    peer_hang_up(&peer);
    peer_unlisten(&listener);
    world_deinit(&world);
    assert_int_equal(lw_alloc_live(), live_before);
    return 0;
}

static void
begin(void)
{
    world_init(&world, peer_url(&listener), NULL);
    world_dial(&world);
}

static void
expect_failure(const char *code, const char *text)
{
    world_until(&world, world_is_dialled, &world);
    assert_null(world.connection);
    assert_true(world.failure.is_retried);
    if (!strstr(world.failure.error.message, text)) {
        fail_msg("\"%s\" is not in \"%s\"", text, world.failure.error.message);
    }
    assert_string_equal(world.failure.error.code, code);
}

/* -- The greeting -------------------------------------------------------------------------------------- */

static void
connect_says_who_we_are_and_what_we_can(void **state)
{
    (void)state;
    begin();
    peer_accept(&peer, &listener, &world);
    const struct lw_pulsar_connect *connect =
        &peer_expect(&peer, &world, LW_PULSAR_CONNECT)->connect;
    assert_true(lw_text_is_equal(connect->client_version, "Laneway-test"));
    assert_true(lw_text_is_equal(connect->auth_method_name, "none"));
    assert_null(connect->auth_data.data);
    assert_int_equal(connect->protocol_version, 21);
    assert_true(connect->feature_flags.supports_auth_refresh);
    assert_true(connect->feature_flags.supports_broker_entry_metadata);
    assert_false(connect->feature_flags.supports_scalable_topics);
    assert_null(connect->proxy_to_broker_url.data);
}

static void
a_description_is_appended_to_our_version(void **state)
{
    (void)state;
    begin();
    world.client.options.description = "orders of shop 7";
    peer_accept(&peer, &listener, &world);
    assert_true(
        lw_text_is_equal(peer_expect(&peer, &world, LW_PULSAR_CONNECT)->connect.client_version,
                         "Laneway-test-orders of shop 7"));
}

static void
a_connection_is_ready_when_it_was_greeted(void **state)
{
    (void)state;
    begin();
    peer_serve(&peer, &listener, &world);
    assert_int_equal(lw_pulsar_connection_state(world.connection), LW_PULSAR_READY);
    assert_int_equal(lw_pulsar_connection_protocol(world.connection), 21);
    assert_true(lw_pulsar_connection_has_topic_watchers(world.connection));
    assert_int_equal(world.up_count, 1);
    assert_int_equal(world.down_count, 0);
}

static void
the_size_of_messages_belongs_to_the_connection(void **state)
{
    (void)state;
    struct lw_pulsar_command connected = lw_pulsar_command_of(LW_PULSAR_CONNECTED);
    begin();
    peer_accept(&peer, &listener, &world);
    peer_expect(&peer, &world, LW_PULSAR_CONNECT);
    connected.connected.server_version = lw_bytes_of("x");
    connected.connected.max_message_size = 1000;
    connected.connected.has |= LW_PULSAR_CONNECTED_HAS_MAX_MESSAGE_SIZE;
    peer_send(&peer, &connected);
    world_until(&world, world_is_dialled, &world);
    assert_int_equal(lw_pulsar_connection_message_bytes_max(world.connection), 1000);
}

static void
a_refusal_reaches_all_who_wait_word_for_word(void **state)
{
    (void)state;
    begin();
    peer_accept(&peer, &listener, &world);
    peer_expect(&peer, &world, LW_PULSAR_CONNECT);
    peer_send_error(&peer, LW_PULSAR_NO_REQUEST, LW_PULSAR_NOT_ALLOWED, "too many of you");
    peer_hang_up(&peer);
    expect_failure("E0501", "too many of you");
    assert_int_equal(world.failure.code, LW_PULSAR_NOT_ALLOWED);
    assert_int_equal(world.down_count, 1);
}

static void
wrong_credentials_are_told_as_such(void **state)
{
    (void)state;
    begin();
    struct lw_pulsar_auth_options options = { .token = "abc" };
    assert_int_equal(lw_pulsar_auth_create(world.host, &options, &world.client.auth, NULL),
                     LW_STATUS_OK);
    peer_accept(&peer, &listener, &world);
    const struct lw_pulsar_connect *connect =
        &peer_expect(&peer, &world, LW_PULSAR_CONNECT)->connect;
    assert_true(lw_text_is_equal(connect->auth_method_name, "token"));
    assert_true(lw_text_is_equal(connect->auth_data, "abc"));
    peer_send_error(&peer, LW_PULSAR_NO_REQUEST, LW_PULSAR_AUTHENTICATION_ERROR,
                    "Failed to authenticate");
    expect_failure("E0502", "Failed to authenticate");
}

static void
another_answer_than_a_greeting_ends_it(void **state)
{
    (void)state;
    begin();
    peer_accept(&peer, &listener, &world);
    peer_expect(&peer, &world, LW_PULSAR_CONNECT);
    peer_send_success(&peer, 1);
    expect_failure("E0501", "SUCCESS instead of a greeting");
    peer_expect_end(&peer, &world);
}

/* -- Challenges ------------------------------------------------------------------------------------------ */

static void
send_challenge(void)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_AUTH_CHALLENGE);
    command.auth_challenge.challenge.auth_method_name = lw_bytes_of("token");
    command.auth_challenge.challenge.auth_data = lw_bytes_of("PulsarAuthRefresh");
    command.auth_challenge.has |= LW_PULSAR_AUTH_HAS_DATA;
    peer_send(&peer, &command);
}

static void
a_challenge_before_the_greeting_is_answered(void **state)
{
    (void)state;
    begin();
    peer_accept(&peer, &listener, &world);
    peer_expect(&peer, &world, LW_PULSAR_CONNECT);
    send_challenge();
    const struct lw_pulsar_auth_response *response =
        &peer_expect(&peer, &world, LW_PULSAR_AUTH_RESPONSE)->auth_response;
    /* Data is present though empty, or a broker refuses the answer. */
    assert_non_null(response->response.auth_data.data);
    assert_int_equal(response->response.auth_data.size, 0);
    assert_true(lw_text_is_equal(response->response.auth_method_name, "none"));
    assert_int_equal(world.dialled_count, 0);
}

static void
a_challenge_later_is_answered_with_fresh_credentials(void **state)
{
    (void)state;
    begin();
    setenv("LW_TEST_TOKEN", "first", 1);
    struct lw_pulsar_auth_options options = { .token = "env:LW_TEST_TOKEN" };
    assert_int_equal(lw_pulsar_auth_create(world.host, &options, &world.client.auth, NULL),
                     LW_STATUS_OK);
    peer_serve(&peer, &listener, &world);
    setenv("LW_TEST_TOKEN", "second", 1);
    send_challenge();
    const struct lw_pulsar_auth_response *response =
        &peer_expect(&peer, &world, LW_PULSAR_AUTH_RESPONSE)->auth_response;
    assert_true(lw_text_is_equal(response->response.auth_data, "second"));
    assert_int_equal(lw_pulsar_connection_state(world.connection), LW_PULSAR_READY);
}

static void
without_fresh_credentials_the_connection_is_closed_by_us(void **state)
{
    (void)state;
    begin();
    setenv("LW_TEST_TOKEN", "first", 1);
    struct lw_pulsar_auth_options options = { .token = "env:LW_TEST_TOKEN" };
    assert_int_equal(lw_pulsar_auth_create(world.host, &options, &world.client.auth, NULL),
                     LW_STATUS_OK);
    peer_serve(&peer, &listener, &world);
    unsetenv("LW_TEST_TOKEN");
    send_challenge();
    peer_expect_end(&peer, &world);
}

/* -- Bytes that are something else --------------------------------------------------------------------------- */

static void
silence_ends_after_the_time_for_connecting(void **state)
{
    (void)state;
    begin();
    peer_accept(&peer, &listener, &world);
    peer_expect(&peer, &world, LW_PULSAR_CONNECT);
    virtual_host_pass(&world.virtual_host, 9900 * LW_MS);
    assert_int_equal(world.dialled_count, 0);
    virtual_host_pass(&world.virtual_host, 200 * LW_MS);
    expect_failure("E0501", "did not greet in time");
}

static void
garbage_is_not_buffered(void **state)
{
    (void)state;
    begin();
    peer_accept(&peer, &listener, &world);
    peer_expect(&peer, &world, LW_PULSAR_CONNECT);
    peer_send_bytes(&peer, "\x7f\xff\xff\xff", 4);
    expect_failure("E0501", "not the protocol of Pulsar");
}

static void
a_web_server_is_recognised(void **state)
{
    (void)state;
    begin();
    peer_accept(&peer, &listener, &world);
    peer_send_bytes(&peer, "HTTP/1.1 400 Bad Request\r\n\r\n", 28);
    expect_failure("E0501", "web server");
}

static void
a_listener_for_tls_is_recognised(void **state)
{
    (void)state;
    begin();
    peer_accept(&peer, &listener, &world);
    peer_expect(&peer, &world, LW_PULSAR_CONNECT);
    peer_send_bytes(&peer, "\x15\x03\x03\x00\x02\x02\x46", 7);
    expect_failure("E0509", "TLS");
}

static void
a_peer_that_hangs_up_without_a_word_is_explained(void **state)
{
    (void)state;
    begin();
    peer_accept(&peer, &listener, &world);
    peer_expect(&peer, &world, LW_PULSAR_CONNECT);
    peer_hang_up(&peer);
    expect_failure("E0501", "closed the connection before it greeted");
    assert_non_null(strstr(world.failure.error.help, "pulsar+ssl://"));
}

static void
a_greeting_may_come_byte_by_byte(void **state)
{
    (void)state;
    uint8_t frame[256];
    struct lw_pulsar_command connected = lw_pulsar_command_of(LW_PULSAR_CONNECTED);
    connected.connected.server_version = lw_bytes_of("Pulsar");
    size_t size = peer_frame(&connected, frame, sizeof frame);
    begin();
    peer_accept(&peer, &listener, &world);
    peer_expect(&peer, &world, LW_PULSAR_CONNECT);
    for (size_t i = 0; i < size; i++) {
        peer_send_bytes(&peer, frame + i, 1);
        virtual_host_settle(&world.virtual_host);
    }
    world_until(&world, world_is_dialled, &world);
    assert_non_null(world.connection);
}

static void
a_second_greeting_breaks_the_protocol(void **state)
{
    (void)state;
    begin();
    peer_serve(&peer, &listener, &world);
    struct lw_pulsar_command connected = lw_pulsar_command_of(LW_PULSAR_CONNECTED);
    connected.connected.server_version = lw_bytes_of("x");
    peer_send(&peer, &connected);
    peer_expect_end(&peer, &world);
}

static void
an_unknown_command_is_ignored(void **state)
{
    (void)state;
    begin();
    peer_serve(&peer, &listener, &world);
    peer_send_bytes(&peer, "\x00\x00\x00\x09\x00\x00\x00\x05\x08\x5a\xd2\x05\x00", 13);
    peer_send_simple(&peer, LW_PULSAR_PING);
    peer_expect(&peer, &world, LW_PULSAR_PONG);
    assert_int_equal(lw_pulsar_connection_state(world.connection), LW_PULSAR_READY);
}

static void
a_known_command_without_its_body_breaks_the_protocol(void **state)
{
    (void)state;
    begin();
    peer_serve(&peer, &listener, &world);
    peer_send_bytes(&peer, "\x00\x00\x00\x06\x00\x00\x00\x02\x08\x12", 10);
    peer_expect_end(&peer, &world);
}

/* -- Addresses --------------------------------------------------------------------------------------------- */

static const struct virtual_name two_addresses[] = {
    { "broker.test", { "127.0.0.2", "127.0.0.1" } },
    { "slow.test", { NULL } },
    { NULL, { NULL } },
};

static void
dial_name(const char *name)
{
    char url[64];
    snprintf(url, sizeof url, "pulsar://%s:%d", name, (int)listener.port);
    world_init(&world, url, NULL);
    world.virtual_host.names = two_addresses;
    world_dial(&world);
}

static void
a_refused_address_is_followed_by_the_next(void **state)
{
    (void)state;
    dial_name("broker.test");
    peer_serve(&peer, &listener, &world);
}

static void
an_address_that_does_not_answer_gets_its_share_of_the_time(void **state)
{
    (void)state;
    int fds[4];
    struct peer_listener dead;
    peer_listen_dead(&dead, "127.0.0.2", listener.port, fds);
    dial_name("broker.test");
    world_rest(&world);
    virtual_host_pass(&world.virtual_host, 4900 * LW_MS);
    assert_false(peer_is_called(&listener));
    virtual_host_pass(&world.virtual_host, 200 * LW_MS);
    peer_serve(&peer, &listener, &world);
    for (int i = 0; i < 4; i++) {
        close(fds[i]);
    }
    peer_unlisten(&dead);
}

static void
a_name_that_is_not_answered_ends_in_time(void **state)
{
    (void)state;
    dial_name("slow.test");
    virtual_host_pass(&world.virtual_host, 10100 * LW_MS);
    expect_failure("E0501", "did not accept a connection in time");
    assert_true(lw_list_is_empty(&world.virtual_host.lookups));
}

static void
an_unknown_name_says_so(void **state)
{
    (void)state;
    dial_name("nowhere.test");
    expect_failure("E0501", "unknown name");
}

static void
nobody_listening_says_so(void **state)
{
    (void)state;
    world_init(&world, "pulsar://127.0.0.1:1", NULL);
    world_dial(&world);
    expect_failure("E0501", "Connection refused");
    assert_int_equal(world.down_count, 1);
    world_dial(&world);
    expect_failure("E0501", "Connection refused");
    assert_int_equal(world.down_count, 1);
}

/* -- Keep-alive ---------------------------------------------------------------------------------------------- */

static void
a_ping_is_answered_at_once(void **state)
{
    (void)state;
    begin();
    peer_serve(&peer, &listener, &world);
    peer_send_simple(&peer, LW_PULSAR_PING);
    peer_expect(&peer, &world, LW_PULSAR_PONG);
}

static void
each_interval_asks_whether_the_peer_lives(void **state)
{
    (void)state;
    begin();
    peer_serve(&peer, &listener, &world);
    for (int i = 0; i < 3; i++) {
        virtual_host_pass(&world.virtual_host, 30001 * LW_MS);
        peer_expect(&peer, &world, LW_PULSAR_PING);
        peer_send_simple(&peer, LW_PULSAR_PONG);
        world_rest(&world);
    }
    assert_int_equal(lw_pulsar_connection_state(world.connection), LW_PULSAR_READY);
}

static void
a_peer_that_only_asks_is_dead(void **state)
{
    (void)state;
    begin();
    peer_serve(&peer, &listener, &world);
    virtual_host_pass(&world.virtual_host, 30001 * LW_MS);
    peer_expect(&peer, &world, LW_PULSAR_PING);
    peer_send_simple(&peer, LW_PULSAR_PING);
    peer_expect(&peer, &world, LW_PULSAR_PONG);
    virtual_host_pass(&world.virtual_host, 30001 * LW_MS);
    peer_expect_end(&peer, &world);
}

static void
a_peer_that_sends_without_answering_pings_lives(void **state)
{
    (void)state;
    begin();
    peer_serve(&peer, &listener, &world);
    for (int i = 0; i < 3; i++) {
        virtual_host_pass(&world.virtual_host, 30001 * LW_MS);
        peer_expect(&peer, &world, LW_PULSAR_PING);
        peer_send_success(&peer, 123456);
        world_rest(&world);
    }
    assert_int_equal(lw_pulsar_connection_state(world.connection), LW_PULSAR_READY);
}

/* -- TLS ------------------------------------------------------------------------------------------------------ */

static struct certificates certificates;

#define PATH(name) certificates_path(&certificates, (name))

static int
setup_tls(void **state)
{
    const struct certificate_wish wishes[] = {
        { .name = "ca", .is_authority = 1 },
        { .name = "server", .issuer = "ca", .hosts = "IP:127.0.0.1" },
        { .name = "other", .issuer = "ca", .hosts = "DNS:elsewhere.test" },
    };
    certificates_init(&certificates);
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        certificates_make(&certificates, &wishes[i]);
    }
    return setup(state);
}

static int
teardown_tls(void **state)
{
    certificates_deinit(&certificates);
    return teardown(state);
}

static void
begin_tls(void)
{
    char url[64];
    static char trust[128];
    struct lw_pulsar_client_settings settings = world_settings();
    snprintf(trust, sizeof trust, "%s", PATH("ca.pem"));
    settings.tls.trust_file = trust;
    snprintf(url, sizeof url, "pulsar+ssl://127.0.0.1:%d", (int)listener.port);
    world_init(&world, url, &settings);
    world_dial(&world);
}

static void
tls_carries_the_protocol(void **state)
{
    (void)state;
    begin_tls();
    peer_accept(&peer, &listener, &world);
    peer_start_tls(&peer, &world, PATH("server.pem"), PATH("server.key"));
    peer_greet(&peer, &world);
    world_until(&world, world_is_dialled, &world);
    assert_non_null(world.connection);
    peer_send_simple(&peer, LW_PULSAR_PING);
    peer_expect(&peer, &world, LW_PULSAR_PONG);
}

static bool
is_answered_in_tls(void *user)
{
    (void)user;
    (void)peer_poll(&peer); /* drives the server's side of the handshake */
    return world.dialled_count > 0;
}

static void
a_certificate_of_another_host_is_refused(void **state)
{
    (void)state;
    begin_tls();
    peer_accept(&peer, &listener, &world);
    peer_offer_tls(&peer, PATH("other.pem"), PATH("other.key"));
    world_until(&world, is_answered_in_tls, NULL);
    expect_failure("E0511", "elsewhere.test");
}

static void
plaintext_on_the_other_side_of_tls_is_explained(void **state)
{
    (void)state;
    begin_tls();
    peer_accept(&peer, &listener, &world);
    world_rest(&world);
    peer_hang_up(&peer);
    expect_failure("E0509", "127.0.0.1");
}

static void
an_absent_trust_file_is_named(void **state)
{
    (void)state;
    struct lw_pulsar_client_settings settings = world_settings();
    char url[64];
    settings.tls.trust_file = "/nonexistent/ca.pem";
    snprintf(url, sizeof url, "pulsar+ssl://127.0.0.1:%d", (int)listener.port);
    world_init(&world, url, &settings);
    world_dial(&world);
    expect_failure("E0418", "/nonexistent/ca.pem");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TLS_TEST(name) cmocka_unit_test_setup_teardown(name, setup_tls, teardown_tls)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(connect_says_who_we_are_and_what_we_can),
        TEST(a_description_is_appended_to_our_version),
        TEST(a_connection_is_ready_when_it_was_greeted),
        TEST(the_size_of_messages_belongs_to_the_connection),
        TEST(a_refusal_reaches_all_who_wait_word_for_word),
        TEST(wrong_credentials_are_told_as_such),
        TEST(another_answer_than_a_greeting_ends_it),
        TEST(a_challenge_before_the_greeting_is_answered),
        TEST(a_challenge_later_is_answered_with_fresh_credentials),
        TEST(without_fresh_credentials_the_connection_is_closed_by_us),
        TEST(silence_ends_after_the_time_for_connecting),
        TEST(garbage_is_not_buffered),
        TEST(a_web_server_is_recognised),
        TEST(a_listener_for_tls_is_recognised),
        TEST(a_peer_that_hangs_up_without_a_word_is_explained),
        TEST(a_greeting_may_come_byte_by_byte),
        TEST(a_second_greeting_breaks_the_protocol),
        TEST(an_unknown_command_is_ignored),
        TEST(a_known_command_without_its_body_breaks_the_protocol),
        TEST(a_refused_address_is_followed_by_the_next),
        TEST(an_address_that_does_not_answer_gets_its_share_of_the_time),
        TEST(a_name_that_is_not_answered_ends_in_time),
        TEST(an_unknown_name_says_so),
        TEST(nobody_listening_says_so),
        TEST(a_ping_is_answered_at_once),
        TEST(each_interval_asks_whether_the_peer_lives),
        TEST(a_peer_that_only_asks_is_dead),
        TEST(a_peer_that_sends_without_answering_pings_lives),
        TLS_TEST(tls_carries_the_protocol),
        TLS_TEST(a_certificate_of_another_host_is_refused),
        TLS_TEST(plaintext_on_the_other_side_of_tls_is_explained),
        TLS_TEST(an_absent_trust_file_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
