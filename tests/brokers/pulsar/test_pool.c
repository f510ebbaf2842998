/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets which connection: shared ones, hosts of the service in turn, proxies, up and down;
 * and the small parts that reconnecting needs, pauses and the table of ids.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/connection_state.h"
#include "tests/brokers/pulsar/peer.h"

static struct world world;
static struct peer_listener first;
static struct peer_listener second;
static struct peer peer;
static uint64_t live_before;

struct call {
    struct lw_pulsar_dial dial;
    uint32_t count;
    struct lw_pulsar_connection *connection;
    struct lw_pulsar_failure failure;
    struct call *again; /* dialled from in the answer */
};

static void
on_called(struct lw_pulsar_dial *dial, struct lw_pulsar_connection *connection,
          const struct lw_pulsar_failure *failure)
{
    struct call *call = LW_CONTAINER(dial, struct call, dial);
    call->count++;
    call->connection = connection;
    if (failure) {
        call->failure = *failure;
    }
    if (call->again) {
        lw_pulsar_dial_service(&world.client, &call->again->dial, on_called);
    }
}

static bool
is_called_back(void *user)
{
    return ((struct call *)user)->count > 0;
}

static int
setup(void **state)
{
    char url[96];
    (void)state;
    live_before = lw_alloc_live();
    memset(&peer, 0, sizeof peer);
    peer_listen(&first, "127.0.0.1", 0);
    peer_listen(&second, "127.0.0.1", 0);
    snprintf(url, sizeof url, "pulsar://127.0.0.1:%d,127.0.0.1:%d", (int)first.port,
             (int)second.port);
    world_init(&world, url, NULL);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    peer_hang_up(&peer);
    peer_unlisten(&first);
    peer_unlisten(&second);
    world_deinit(&world);
    assert_int_equal(lw_alloc_live(), live_before);
    return 0;
}

static void
those_who_wait_for_the_same_share_one_connection(void **state)
{
    (void)state;
    struct call calls[3] = { 0 };
    for (int i = 0; i < 3; i++) {
        lw_pulsar_dial_service(&world.client, &calls[i].dial, on_called);
    }
    peer_accept(&peer, &first, &world);
    peer_greet(&peer, &world);
    world_until(&world, is_called_back, &calls[2]);
    assert_false(peer_is_called(&first));
    assert_non_null(calls[0].connection);
    assert_ptr_equal(calls[0].connection, calls[1].connection);
    assert_ptr_equal(calls[0].connection, calls[2].connection);
}

static void
one_that_is_ready_is_given_at_the_next_turn(void **state)
{
    (void)state;
    struct call call = { 0 };
    world_dial(&world);
    peer_serve(&peer, &first, &world);
    lw_pulsar_dial_service(&world.client, &call.dial, on_called);
    assert_int_equal(call.count, 0);
    virtual_host_settle(&world.virtual_host);
    assert_ptr_equal(call.connection, world.connection);
}

static void
a_dead_first_host_is_passed_over_at_once(void **state)
{
    (void)state;
    uint64_t begin = world.host->now;
    peer_unlisten(&first);
    world_dial(&world);
    peer_serve(&peer, &second, &world);
    assert_int_equal(world.host->now, begin);
    assert_int_equal(world.down_count, 0);
    assert_int_equal(world.up_count, 1);
    peer_listen(&first, "127.0.0.1", first.port);
}

static void
down_is_said_once_when_no_host_is_there_and_up_when_one_is(void **state)
{
    (void)state;
    peer_unlisten(&first);
    peer_unlisten(&second);
    for (int i = 0; i < 2; i++) {
        world_dial(&world);
        world_until(&world, world_is_dialled, &world);
        assert_null(world.connection);
        assert_true(world.failure.is_retried);
    }
    assert_int_equal(world.down_count, 1);
    peer_listen(&first, "127.0.0.1", first.port);
    peer_listen(&second, "127.0.0.1", second.port);
    world_dial(&world);
    peer_serve(&peer, &first, &world);
    assert_int_equal(world.up_count, 1);
    assert_int_equal(world.down_count, 1);
}

static void
a_host_whose_connection_ended_is_tried_first_again(void **state)
{
    (void)state;
    peer_unlisten(&first);
    world_dial(&world);
    peer_serve(&peer, &second, &world);
    peer_listen(&first, "127.0.0.1", first.port);
    peer_hang_up(&peer);
    world_rest(&world);
    world_dial(&world);
    peer_serve(&peer, &second, &world);
}

static void
one_that_closed_is_not_given_again(void **state)
{
    (void)state;
    struct peer next;
    world_dial(&world);
    peer_serve(&peer, &first, &world);
    lw_pulsar_connection_close(world.connection, NULL);
    world_dial(&world);
    peer_accept(&next, &first, &world);
    peer_greet(&next, &world);
    world_until(&world, world_is_dialled, &world);
    assert_int_equal(lw_pulsar_connection_state(world.connection), LW_PULSAR_READY);
    peer_hang_up(&peer);
    peer = next;
}

static void
a_proxy_is_told_which_broker_is_meant(void **state)
{
    (void)state;
    struct call call = { 0 };
    struct lw_pulsar_target target = { .logical = { .name = "inner.test", .port = 6650 },
                                       .physical = world.client.address.hosts[0] };
    char url[64] = "";
    lw_pulsar_dial_target(&world.client, &target, &call.dial, on_called);
    peer_accept(&peer, &first, &world);
    const struct lw_pulsar_connect *connect =
        &peer_expect(&peer, &world, LW_PULSAR_CONNECT)->connect;
    memcpy(url, connect->proxy_to_broker_url.data, connect->proxy_to_broker_url.size);
    assert_string_equal(url, "inner.test:6650");
    lw_pulsar_dial_cancel(&call.dial);
}

static void
brokers_behind_one_proxy_have_connections_of_their_own(void **state)
{
    (void)state;
    struct call calls[2] = { 0 };
    for (int i = 0; i < 2; i++) {
        struct lw_pulsar_target target = { .logical = { .name = "inner.test" },
                                           .physical = world.client.address.hosts[0] };
        target.logical.port = (uint16_t)(6650 + i);
        lw_pulsar_dial_target(&world.client, &target, &calls[i].dial, on_called);
        peer_accept(&peer, &first, &world);
        peer_hang_up(&peer);
    }
    world_until(&world, is_called_back, &calls[0]);
    world_until(&world, is_called_back, &calls[1]);
}

static void
a_cancelled_dial_hears_nothing(void **state)
{
    (void)state;
    struct call call = { 0 };
    lw_pulsar_dial_service(&world.client, &call.dial, on_called);
    lw_pulsar_dial_cancel(&call.dial);
    lw_pulsar_dial_cancel(&call.dial);
    peer_accept(&peer, &first, &world);
    peer_greet(&peer, &world);
    world_rest(&world);
    assert_int_equal(call.count, 0);
}

static void
one_may_dial_from_in_an_answer(void **state)
{
    (void)state;
    struct call again = { 0 };
    struct call call = { .again = &again };
    lw_pulsar_dial_service(&world.client, &call.dial, on_called);
    peer_accept(&peer, &first, &world);
    peer_greet(&peer, &world);
    world_until(&world, is_called_back, &again);
    assert_ptr_equal(again.connection, call.connection);
}

static void
pauses_double_up_to_a_cap_and_begin_anew_after_success(void **state)
{
    (void)state;
    struct lw_pulsar_backoff backoff = { 0 };
    uint64_t expected = 100 * LW_MS;
    for (int i = 0; i < 40; i++) {
        uint64_t pause = lw_pulsar_backoff_next(&backoff, &world.client);
        assert_in_range(pause, expected / 10 * 9, expected);
        expected = expected * 2 < 60000 * LW_MS ? expected * 2 : 60000 * LW_MS;
    }
    lw_pulsar_backoff_reset(&backoff);
    assert_in_range(lw_pulsar_backoff_next(&backoff, &world.client), 90 * LW_MS, 100 * LW_MS);
}

static void
ids_are_found_while_others_come_and_go(void **state)
{
    (void)state;
    struct lw_pulsar_ids ids = { 0 };
    static int values[1000];
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(lw_pulsar_ids_set(&ids, i * 977, &values[i]));
    }
    for (uint64_t i = 0; i < 1000; i += 3) {
        lw_pulsar_ids_remove(&ids, i * 977);
        lw_pulsar_ids_remove(&ids, i * 977);
    }
    for (uint64_t i = 0; i < 1000; i++) {
        void *expected = i % 3 == 0 ? NULL : &values[i];
        assert_ptr_equal(lw_pulsar_ids_get(&ids, i * 977), expected);
    }
    assert_int_equal(ids.count, 666);
    lw_pulsar_ids_deinit(&ids);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(those_who_wait_for_the_same_share_one_connection),
        TEST(one_that_is_ready_is_given_at_the_next_turn),
        TEST(a_dead_first_host_is_passed_over_at_once),
        TEST(down_is_said_once_when_no_host_is_there_and_up_when_one_is),
        TEST(a_host_whose_connection_ended_is_tried_first_again),
        TEST(one_that_closed_is_not_given_again),
        TEST(a_proxy_is_told_which_broker_is_meant),
        TEST(brokers_behind_one_proxy_have_connections_of_their_own),
        TEST(a_cancelled_dial_hears_nothing),
        TEST(one_may_dial_from_in_an_answer),
        TEST(pauses_double_up_to_a_cap_and_begin_anew_after_success),
        TEST(ids_are_found_while_others_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
