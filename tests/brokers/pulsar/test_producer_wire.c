/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a producer says to a broker, command by command, with a scripted peer that answers: names,
 * epochs and ids over a reconnect, and answers that come twice or never.
 */
#include "tests/support/test.h"

#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/producer.h"
#include "tests/brokers/pulsar/peer.h"

#define TOPIC "persistent://public/default/t"

static struct world world;
static struct peer_listener listener;
static struct peer peer;
static struct lw_pulsar_publisher *publisher;
static struct lw_publication publication;
static uint32_t receipts;
static enum lw_status status;
static uint32_t closed;
static uint64_t live;

static void
on_receipt(void *user, struct lw_publication *it, enum lw_status its_status)
{
    (void)user, (void)it;
    receipts++;
    status = its_status;
}

static void
on_blocked(void *user, const char *topic, const struct lw_error *error)
{
    (void)user, (void)topic, (void)error;
}

static void
on_room(void *user)
{
    (void)user;
}

static void
on_closed(void *user)
{
    (void)user;
    closed++;
}

static const struct lw_pulsar_publisher_ops ops = { on_receipt, on_room, on_blocked,
                                                    on_closed };

static int
set_up(void **state)
{
    (void)state;
    static const struct lw_property properties[] = { { "team", "blue" } };
    struct lw_pulsar_producer_settings settings = { .pending_max = 10,
                                                    .producers_max = 10,
                                                    .idle_ns = 60000 * LW_MS,
                                                    .properties = properties,
                                                    .property_count = 1 };
    live = lw_alloc_live();
    receipts = closed = 0;
    peer_listen(&listener, "127.0.0.1", 0);
    world_init(&world, peer_url(&listener), NULL);
    publisher = lw_pulsar_publisher_create(&world.client, &settings, &ops, NULL);
    assert_non_null(publisher);
    publication = (struct lw_publication){
        .topic = "t", .partition = -1, .value = lw_bytes_of("v"), .event_time_ms = -1
    };
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    lw_pulsar_publisher_destroy(publisher);
    peer_hang_up(&peer);
    world_deinit(&world);
    peer_unlisten(&listener);
    assert_int_equal(lw_alloc_live(), live);
    return 0;
}

static void
publish(void)
{
    struct lw_publication *items[] = { &publication };
    assert_int_equal(lw_pulsar_publisher_publish(publisher, items, 1), 1);
}

static void
accept_client(void)
{
    peer_accept(&peer, &listener, &world);
    peer_greet(&peer, &world);
}

static void
answer_partitions(void)
{
    const struct lw_pulsar_command *asked = peer_expect(&peer, &world,
                                                        LW_PULSAR_PARTITIONED_METADATA);
    struct lw_pulsar_command answer = lw_pulsar_command_of(
        LW_PULSAR_PARTITIONED_METADATA_RESPONSE);
    assert_true(asked->partitioned_metadata.metadata_auto_creation_enabled);
    answer.partitioned_metadata_response.request_id = asked->partitioned_metadata.request_id;
    answer.partitioned_metadata_response.response = LW_PULSAR_PARTITIONED_SUCCESS;
    answer.partitioned_metadata_response.has = UINT64_C(1) << 3;
    peer_send(&peer, &answer);
}

static void
answer_lookup(void)
{
    const struct lw_pulsar_command *asked = peer_expect(&peer, &world, LW_PULSAR_LOOKUP);
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_LOOKUP_RESPONSE);
    answer.lookup_response.request_id = asked->lookup.request_id;
    answer.lookup_response.response = LW_PULSAR_LOOKUP_CONNECT;
    answer.lookup_response.broker_service_url = lw_bytes_of(peer_url(&listener));
    answer.lookup_response.authoritative = true;
    peer_send(&peer, &answer);
}

static void
welcome(uint64_t request_id, const char *name, int64_t last, bool is_ready)
{
    struct lw_pulsar_command answer = lw_pulsar_command_of(LW_PULSAR_PRODUCER_SUCCESS);
    answer.producer_success.request_id = request_id;
    answer.producer_success.producer_name = lw_bytes_of(name);
    answer.producer_success.last_sequence_id = last;
    answer.producer_success.producer_ready = is_ready;
    answer.producer_success.topic_epoch = 4;
    answer.producer_success.has |= LW_PULSAR_PRODUCER_SUCCESS_HAS_TOPIC_EPOCH;
    peer_send(&peer, &answer);
}

static void
confirm(uint64_t producer_id, uint64_t sequence_id, uint64_t ledger)
{
    struct lw_pulsar_command receipt = lw_pulsar_command_of(LW_PULSAR_SEND_RECEIPT);
    receipt.send_receipt.producer_id = producer_id;
    receipt.send_receipt.sequence_id = sequence_id;
    receipt.send_receipt.message_id = lw_pulsar_message_id_of(ledger, ledger);
    receipt.send_receipt.has |= LW_PULSAR_RECEIPT_HAS_MESSAGE_ID;
    peer_send(&peer, &receipt);
}

static bool
is_told(void *user)
{
    return receipts >= *(uint32_t *)user;
}

static void
await(uint32_t count)
{
    world_until(&world, is_told, &count);
}

static void
the_first_producer_command_has_no_name_and_the_next_ones_have_what_the_broker_gave(void **state)
{
    (void)state;
    publish();
    accept_client();
    answer_partitions();
    answer_lookup();
    const struct lw_pulsar_producer_command *asked =
        &peer_expect(&peer, &world, LW_PULSAR_PRODUCER)->producer;
    uint64_t id = asked->producer_id;
    assert_true(lw_text_is_equal(asked->topic, TOPIC));
    assert_null(asked->producer_name.data);
    assert_false(asked->user_provided_producer_name);
    assert_int_equal(asked->epoch, 0);
    assert_int_equal(asked->metadata.count, 1);
    assert_false(asked->has & LW_PULSAR_PRODUCER_HAS_TOPIC_EPOCH);
    welcome(asked->request_id, "given-1", 41, true);
    assert_int_equal(peer_expect(&peer, &world, LW_PULSAR_SEND)->send.sequence_id, 42);
    peer_hang_up(&peer);
    virtual_host_pass(&world.virtual_host, 200 * LW_MS);
    accept_client();
    answer_lookup();
    asked = &peer_expect(&peer, &world, LW_PULSAR_PRODUCER)->producer;
    assert_int_equal(asked->producer_id, id);
    assert_true(lw_text_is_equal(asked->producer_name, "given-1"));
    assert_false(asked->user_provided_producer_name);
    assert_int_equal(asked->epoch, 1);
    assert_true(asked->has & LW_PULSAR_PRODUCER_HAS_TOPIC_EPOCH);
    assert_int_equal(asked->topic_epoch, 4);
    welcome(asked->request_id, "given-1", 99, true); /* ids are not touched by it */
    assert_int_equal(peer_expect(&peer, &world, LW_PULSAR_SEND)->send.sequence_id, 42);
    confirm(id, 42, 7);
    await(1);
    assert_int_equal(status, LW_STATUS_OK);
}

static uint64_t
begin_producer(uint64_t *ret_request_id)
{
    publish();
    accept_client();
    answer_partitions();
    answer_lookup();
    const struct lw_pulsar_producer_command *asked =
        &peer_expect(&peer, &world, LW_PULSAR_PRODUCER)->producer;
    *ret_request_id = asked->request_id;
    return asked->producer_id;
}

static void
one_that_waits_for_the_topic_sends_when_it_is_told_a_second_time(void **state)
{
    (void)state;
    uint64_t request_id = 0;
    uint64_t id = begin_producer(&request_id);
    welcome(request_id, "given", -1, false);
    for (int i = 0; i < 5; i++) { /* longer than a request's deadline */
        virtual_host_pass(&world.virtual_host, 20000 * LW_MS);
        world_rest(&world);
        peer_send_simple(&peer, LW_PULSAR_PONG);
        world_rest(&world);
    }
    while (peer_poll(&peer) != NULL) {
        assert_int_equal(peer.command.type, LW_PULSAR_PING);
    }
    welcome(request_id, "given", -1, true);
    assert_int_equal(peer_expect(&peer, &world, LW_PULSAR_SEND)->send.sequence_id, 0);
    confirm(id, 0, 1);
    await(1);
}

static void
a_receipt_without_a_place_is_a_receipt(void **state)
{
    (void)state;
    uint64_t request_id = 0;
    uint64_t id = begin_producer(&request_id);
    welcome(request_id, "given", -1, true);
    (void)peer_expect(&peer, &world, LW_PULSAR_SEND);
    confirm(id, 0, UINT64_MAX); /* stored before, or dropped */
    await(1);
    assert_int_equal(status, LW_STATUS_OK);
}

static void
a_topic_that_moved_to_another_cluster_is_looked_up_there(void **state)
{
    (void)state;
    uint64_t request_id = 0;
    uint64_t id = begin_producer(&request_id);
    struct lw_pulsar_command moved = lw_pulsar_command_of(LW_PULSAR_TOPIC_MIGRATED);
    moved.topic_migrated.resource_id = id;
    moved.topic_migrated.resource_type = LW_PULSAR_RESOURCE_PRODUCER;
    moved.topic_migrated.broker_service_url = lw_bytes_of(peer_url(&listener));
    peer_send(&peer, &moved);
    struct lw_pulsar_command close = lw_pulsar_command_of(LW_PULSAR_CLOSE_PRODUCER);
    close.close_producer.id = id;
    close.close_producer.request_id = LW_PULSAR_NO_REQUEST;
    peer_send(&peer, &close);
    world_rest(&world);
    (void)peer_expect(&peer, &world, LW_PULSAR_CLOSE_PRODUCER); /* it might be about another */
    virtual_host_pass(&world.virtual_host, 200 * LW_MS);
    answer_lookup(); /* there, without having waited for an answer */
    (void)peer_expect(&peer, &world, LW_PULSAR_PRODUCER);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(
            the_first_producer_command_has_no_name_and_the_next_ones_have_what_the_broker_gave),
        TEST(one_that_waits_for_the_topic_sends_when_it_is_told_a_second_time),
        TEST(a_receipt_without_a_place_is_a_receipt),
        TEST(a_topic_that_moved_to_another_cluster_is_looked_up_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
