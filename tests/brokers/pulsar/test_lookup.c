/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding partitions, owners and topics at scripted brokers: answers, refusals, redirects, proxies,
 * sharing, limits.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/connection_state.h"
#include "brokers/pulsar/lookup.h"
#include "brokers/pulsar/search.h"
#include "tests/brokers/pulsar/peer.h"

#define TOPIC "persistent://public/default/t"

static const struct lw_bytes nothing = { NULL, 0 };

struct find {
    struct lw_pulsar_find find;
    uint32_t count;
    struct lw_pulsar_failure failure;
    bool has_failed;
    struct lw_pulsar_connection *owner;
    uint32_t partitions;
    uint32_t topic_count;
    bool is_filtered;
    char hash[16];
};

static struct world world;
static struct peer_listener listener;
static struct peer_listener owner;
static struct peer peer;
static struct peer owner_peer;
static uint64_t live_before;

static void
on_found(struct lw_pulsar_find *base, const struct lw_pulsar_find_result *result)
{
    struct find *find = LW_CONTAINER(base, struct find, find);
    find->count++;
    find->has_failed = result->failure != NULL;
    if (result->failure) {
        find->failure = *result->failure;
    }
    find->owner = result->owner;
    find->partitions = result->partitions;
    if (result->topics) {
        find->topic_count = result->topics->names.count;
        find->is_filtered = result->topics->is_filtered;
        snprintf(find->hash, sizeof find->hash, "%.*s", (int)result->topics->hash.size,
                 (const char *)result->topics->hash.data);
    }
}

static bool
is_found(void *user)
{
    return ((struct find *)user)->count > 0;
}

static int
setup(void **state)
{
    (void)state;
    live_before = lw_alloc_live();
    memset(&peer, 0, sizeof peer);
    memset(&owner_peer, 0, sizeof owner_peer);
    peer_listen(&listener, "127.0.0.1", 0);
    peer_listen(&owner, "127.0.0.1", 0);
    world_init(&world, peer_url(&listener), NULL);
    return 0;
}

static int
teardown(void **state)
{
    (void)state;
    peer_hang_up(&peer);
    peer_hang_up(&owner_peer);
    peer_unlisten(&listener);
    peer_unlisten(&owner);
    world_deinit(&world);
    assert_int_equal(lw_alloc_live(), live_before);
    return 0;
}

static void
find_owner(struct find *find, const char *topic)
{
    lw_pulsar_find_owner(&world.client, &find->find, topic, nothing, on_found);
    assert_int_equal(find->count, 0);
}

static void
serve(void)
{
    peer_accept(&peer, &listener, &world);
    peer_greet(&peer, &world);
}

static struct lw_pulsar_command
lookup_answer(uint64_t id, int32_t response, const char *url)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_LOOKUP_RESPONSE);
    command.lookup_response.request_id = id;
    command.lookup_response.response = response;
    command.lookup_response.authoritative = true;
    command.lookup_response.broker_service_url = lw_bytes_of(url);
    command.lookup_response.has |= 1 << 3; /* the response, though 0 is Redirect */
    return command;
}

/* Takes LOOKUP from `from` and answers it. */
static void
answer_owner(struct peer *from, int32_t response, const char *url)
{
    const struct lw_pulsar_lookup *lookup =
        &peer_expect(from, &world, LW_PULSAR_LOOKUP)->lookup;
    struct lw_pulsar_command command = lookup_answer(lookup->request_id, response, url);
    peer_send(from, &command);
}

static void
refuse_owner(int32_t code, const char *text)
{
    const struct lw_pulsar_lookup *lookup =
        &peer_expect(&peer, &world, LW_PULSAR_LOOKUP)->lookup;
    struct lw_pulsar_command command = lookup_answer(lookup->request_id,
                                                     LW_PULSAR_LOOKUP_FAILED, NULL);
    command.lookup_response.error = code;
    command.lookup_response.message = lw_bytes_of(text);
    peer_send(&peer, &command);
}

/* -- Answers ------------------------------------------------------------------------------------------ */

static void
partitions_are_counted(void **state)
{
    (void)state;
    struct find find = { 0 };
    struct lw_pulsar_command answer = lw_pulsar_command_of(
        LW_PULSAR_PARTITIONED_METADATA_RESPONSE);
    lw_pulsar_find_partitions(&world.client, &find.find, TOPIC, false, on_found);
    serve();
    const struct lw_pulsar_partitioned_metadata *asked =
        &peer_expect(&peer, &world, LW_PULSAR_PARTITIONED_METADATA)->partitioned_metadata;
    assert_true(lw_text_is_equal(asked->topic, TOPIC));
    assert_false(asked->metadata_auto_creation_enabled);
    answer.partitioned_metadata_response.request_id = asked->request_id;
    answer.partitioned_metadata_response.partitions = 3;
    answer.partitioned_metadata_response.response = LW_PULSAR_PARTITIONED_SUCCESS;
    answer.partitioned_metadata_response.has |= 1 << 3;
    peer_send(&peer, &answer);
    world_until(&world, is_found, &find);
    assert_false(find.has_failed);
    assert_int_equal(find.partitions, 3);
}

static void
topics_of_a_namespace_are_listed(void **state)
{
    (void)state;
    struct find find = { 0 };
    uint8_t list[128];
    struct lw_proto_writer writer = lw_proto_writer_of(list, sizeof list);
    struct lw_pulsar_command answer = lw_pulsar_command_of(
        LW_PULSAR_GET_TOPICS_OF_NAMESPACE_RESPONSE);
    lw_pulsar_find_topics(&world.client, &find.find, "public/default", 0, "t.*",
                          lw_bytes_of("0000abcd"), on_found);
    serve();
    const struct lw_pulsar_get_topics *asked =
        &peer_expect(&peer, &world, LW_PULSAR_GET_TOPICS_OF_NAMESPACE)->get_topics;
    assert_true(lw_text_is_equal(asked->topics_pattern, "t.*"));
    assert_true(lw_text_is_equal(asked->topics_hash, "0000abcd"));
    lw_pulsar_list_put_bytes(&writer, lw_bytes_of(TOPIC));
    lw_pulsar_list_put_bytes(&writer, lw_bytes_of(TOPIC "2"));
    answer.get_topics_response.request_id = asked->request_id;
    answer.get_topics_response.topics = lw_pulsar_list_of(&writer);
    answer.get_topics_response.topics_hash = lw_bytes_of("1234abcd");
    answer.get_topics_response.filtered = true;
    peer_send(&peer, &answer);
    world_until(&world, is_found, &find);
    assert_int_equal(find.topic_count, 2);
    assert_true(find.is_filtered);
    assert_string_equal(find.hash, "1234abcd");
}

static void
the_owner_may_be_the_broker_that_was_asked(void **state)
{
    (void)state;
    struct find find = { 0 };
    find_owner(&find, TOPIC);
    serve();
    answer_owner(&peer, LW_PULSAR_LOOKUP_CONNECT, peer_url(&listener));
    world_until(&world, is_found, &find);
    assert_non_null(find.owner);
    assert_false(peer_is_called(&listener));
}

static void
the_owner_elsewhere_is_connected_to(void **state)
{
    (void)state;
    struct find find = { 0 };
    find_owner(&find, TOPIC);
    serve();
    answer_owner(&peer, LW_PULSAR_LOOKUP_CONNECT, peer_url(&owner));
    peer_accept(&owner_peer, &owner, &world);
    peer_greet(&owner_peer, &world);
    world_until(&world, is_found, &find);
    assert_int_equal(find.owner->target.physical.port, owner.port);
}

static void
through_a_proxy_the_owner_is_reached_where_it_was_asked(void **state)
{
    (void)state;
    struct find find = { 0 };
    find_owner(&find, TOPIC);
    serve();
    uint64_t id = peer_expect(&peer, &world, LW_PULSAR_LOOKUP)->lookup.request_id;
    struct lw_pulsar_command answer = lookup_answer(id, LW_PULSAR_LOOKUP_CONNECT,
                                                    "pulsar://inner.test:6650");
    answer.lookup_response.proxy_through_service_url = true;
    peer_send(&peer, &answer);
    peer_accept(&owner_peer, &listener, &world);
    const struct lw_pulsar_connect *connect =
        &peer_expect(&owner_peer, &world, LW_PULSAR_CONNECT)->connect;
    assert_true(lw_text_is_equal(connect->proxy_to_broker_url, "inner.test:6650"));
}

static void
the_proxy_flag_of_a_broker_that_is_reached_directly_changes_nothing(void **state)
{
    (void)state;
    struct find find = { 0 };
    find_owner(&find, TOPIC);
    serve();
    uint64_t id = peer_expect(&peer, &world, LW_PULSAR_LOOKUP)->lookup.request_id;
    struct lw_pulsar_command answer = lookup_answer(id, LW_PULSAR_LOOKUP_CONNECT,
                                                    peer_url(&listener));
    answer.lookup_response.proxy_through_service_url = true;
    peer_send(&peer, &answer);
    world_until(&world, is_found, &find);
    assert_non_null(find.owner);
    assert_false(peer_is_called(&listener));
}

/* -- Redirects ------------------------------------------------------------------------------------------- */

static void
a_redirect_is_followed_with_the_brokers_word_on_authority(void **state)
{
    (void)state;
    struct find find = { 0 };
    find_owner(&find, TOPIC);
    serve();
    assert_false(peer_expect(&peer, &world, LW_PULSAR_LOOKUP)->lookup.authoritative);
    struct lw_pulsar_command answer = lookup_answer(
        peer.command.lookup.request_id, LW_PULSAR_LOOKUP_REDIRECT, peer_url(&owner));
    peer_send(&peer, &answer);
    peer_accept(&owner_peer, &owner, &world);
    peer_greet(&owner_peer, &world);
    assert_true(peer_expect(&owner_peer, &world, LW_PULSAR_LOOKUP)->lookup.authoritative);
    answer = lookup_answer(owner_peer.command.lookup.request_id, LW_PULSAR_LOOKUP_CONNECT,
                           peer_url(&owner));
    peer_send(&owner_peer, &answer);
    world_until(&world, is_found, &find);
    assert_non_null(find.owner);
}

static void
redirects_in_circles_end(void **state)
{
    (void)state;
    struct find find = { 0 };
    world.client.options.redirects_max = 3;
    find_owner(&find, TOPIC);
    serve();
    for (int i = 0; i <= 3; i++) {
        answer_owner(&peer, LW_PULSAR_LOOKUP_REDIRECT, peer_url(&listener));
    }
    world_until(&world, is_found, &find);
    assert_true(find.failure.is_retried);
    assert_non_null(strstr(find.failure.error.message, "circles"));
}

/* -- Refusals ---------------------------------------------------------------------------------------------- */

static void
expect_refusal(int32_t code, const char *text, bool is_retried)
{
    struct find find = { 0 };
    find_owner(&find, TOPIC);
    if (!peer.in) {
        serve();
    }
    refuse_owner(code, text);
    world_until(&world, is_found, &find);
    assert_true(find.has_failed);
    assert_int_equal(find.failure.code, code);
    assert_int_equal(find.failure.is_retried, is_retried);
    world_rest(&world);
}

static void
a_topic_that_is_not_there_is_final_but_a_broker_that_starts_is_not(void **state)
{
    (void)state;
    expect_refusal(LW_PULSAR_TOPIC_NOT_FOUND, "", false);
    expect_refusal(LW_PULSAR_TOPIC_NOT_FOUND, "Namespace not found", true);
    assert_false(peer.is_ended);
}

static void
a_broker_that_is_not_ready_is_left(void **state)
{
    (void)state;
    expect_refusal(LW_PULSAR_SERVICE_NOT_READY, "not ready at all", true);
    peer_expect_end(&peer, &world);
    assert_true(lw_list_is_empty(&world.client.connections));
}

static void
a_topic_that_is_not_ready_leaves_the_connection(void **state)
{
    (void)state;
    expect_refusal(LW_PULSAR_SERVICE_NOT_READY, "x KeeperException y", true);
    expect_refusal(LW_PULSAR_SERVICE_NOT_READY, "Failed to acquire ownership of it", true);
    expect_refusal(LW_PULSAR_SERVICE_NOT_READY, "bundle is being unloaded", true);
    (void)peer_poll(&peer);
    assert_false(peer.is_ended);
}

static void
too_many_requests_are_endured_fifty_times_a_minute(void **state)
{
    (void)state;
    for (int i = 0; i < 49; i++) {
        expect_refusal(LW_PULSAR_TOO_MANY_REQUESTS, "slower", true);
    }
    (void)peer_poll(&peer);
    assert_false(peer.is_ended);
    expect_refusal(LW_PULSAR_TOO_MANY_REQUESTS, "slower", true);
    peer_expect_end(&peer, &world);
}

static void
an_error_answers_a_lookup_too(void **state)
{
    (void)state;
    struct find find = { 0 };
    find_owner(&find, TOPIC);
    serve();
    uint64_t id = peer_expect(&peer, &world, LW_PULSAR_LOOKUP)->lookup.request_id;
    peer_send_error(&peer, id, LW_PULSAR_AUTHORIZATION_ERROR, "no");
    world_until(&world, is_found, &find);
    assert_string_equal(find.failure.error.code, "E0504");
    assert_false(find.failure.is_retried);
}

static void
an_owner_without_an_address_is_an_error_of_configuration(void **state)
{
    (void)state;
    struct find find = { 0 };
    find_owner(&find, TOPIC);
    serve();
    answer_owner(&peer, LW_PULSAR_LOOKUP_CONNECT, NULL);
    world_until(&world, is_found, &find);
    assert_int_equal(find.failure.error.status, LW_STATUS_CONFIG);
    assert_false(find.failure.is_retried);
}

static void
an_address_that_is_none_is_refused(void **state)
{
    (void)state;
    struct find find = { 0 };
    find_owner(&find, TOPIC);
    serve();
    answer_owner(&peer, LW_PULSAR_LOOKUP_CONNECT, "http://127.0.0.1:8080");
    world_until(&world, is_found, &find);
    assert_true(find.has_failed);
    assert_true(find.failure.is_retried);
}

/* -- Time, sharing, limits ----------------------------------------------------------------------------------- */

static void
a_lookup_without_an_answer_ends_after_the_operations_time(void **state)
{
    (void)state;
    struct find find = { 0 };
    find_owner(&find, TOPIC);
    serve();
    peer_expect(&peer, &world, LW_PULSAR_LOOKUP);
    virtual_host_pass(&world.virtual_host, 29000 * LW_MS);
    assert_int_equal(find.count, 0);
    virtual_host_pass(&world.virtual_host, 1100 * LW_MS);
    assert_int_equal(find.count, 1);
    assert_int_equal(find.failure.error.status, LW_STATUS_TIMEOUT);
}

static void
equal_lookups_share_one_request(void **state)
{
    (void)state;
    struct find finds[3] = { 0 };
    for (int i = 0; i < 3; i++) {
        find_owner(&finds[i], TOPIC);
    }
    serve();
    answer_owner(&peer, LW_PULSAR_LOOKUP_CONNECT, peer_url(&listener));
    world_until(&world, is_found, &finds[2]);
    assert_null(peer_poll(&peer));
    assert_ptr_equal(finds[0].owner, finds[2].owner);
    struct find later = { 0 };
    find_owner(&later, TOPIC); /* nothing is kept */
    answer_owner(&peer, LW_PULSAR_LOOKUP_CONNECT, peer_url(&listener));
    world_until(&world, is_found, &later);
}

static void
one_who_goes_leaves_the_lookup_to_the_others(void **state)
{
    (void)state;
    struct find finds[2] = { 0 };
    find_owner(&finds[0], TOPIC);
    find_owner(&finds[1], TOPIC);
    lw_pulsar_find_cancel(&finds[0].find);
    lw_pulsar_find_cancel(&finds[0].find);
    serve();
    answer_owner(&peer, LW_PULSAR_LOOKUP_CONNECT, peer_url(&listener));
    world_until(&world, is_found, &finds[1]);
    assert_int_equal(finds[0].count, 0);
}

static void
lookups_beyond_the_limit_wait_for_a_place(void **state)
{
    (void)state;
    struct find finds[3] = { 0 };
    world.client.options.lookups_max = 2;
    find_owner(&finds[0], TOPIC "0");
    find_owner(&finds[1], TOPIC "1");
    find_owner(&finds[2], TOPIC "2");
    serve();
    peer_expect(&peer, &world, LW_PULSAR_LOOKUP);
    uint64_t id = peer.command.lookup.request_id;
    peer_expect(&peer, &world, LW_PULSAR_LOOKUP);
    world_rest(&world);
    assert_null(peer_poll(&peer));
    struct lw_pulsar_command answer = lookup_answer(id, LW_PULSAR_LOOKUP_CONNECT,
                                                    peer_url(&listener));
    peer_send(&peer, &answer);
    world_until(&world, is_found, &finds[0]);
    assert_true(lw_text_is_equal(peer_expect(&peer, &world, LW_PULSAR_LOOKUP)->lookup.topic,
                                 TOPIC "2"));
}

static void
a_closed_connection_fails_the_lookup_for_another_try(void **state)
{
    (void)state;
    struct find find = { 0 };
    find_owner(&find, TOPIC);
    serve();
    peer_expect(&peer, &world, LW_PULSAR_LOOKUP);
    peer_hang_up(&peer);
    world_until(&world, is_found, &find);
    assert_int_equal(find.failure.code, -1);
    assert_true(find.failure.is_retried);
}

/* -- Assigned brokers ------------------------------------------------------------------------------------------ */

static void
an_assigned_broker_is_gone_to_without_asking(void **state)
{
    (void)state;
    struct find find = { 0 };
    lw_pulsar_find_owner(&world.client, &find.find, TOPIC, lw_bytes_of(peer_url(&owner)),
                         on_found);
    peer_accept(&owner_peer, &owner, &world);
    peer_greet(&owner_peer, &world);
    world_until(&world, is_found, &find);
    assert_non_null(find.owner);
    assert_false(peer_is_called(&listener));
}

static void
an_assigned_broker_that_is_dead_is_asked_for_at_the_service(void **state)
{
    (void)state;
    struct find find = { 0 };
    lw_pulsar_find_owner(&world.client, &find.find, TOPIC, lw_bytes_of("pulsar://127.0.0.1:1"),
                         on_found);
    serve();
    answer_owner(&peer, LW_PULSAR_LOOKUP_CONNECT, peer_url(&listener));
    world_until(&world, is_found, &find);
    assert_non_null(find.owner);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(partitions_are_counted),
        TEST(topics_of_a_namespace_are_listed),
        TEST(the_owner_may_be_the_broker_that_was_asked),
        TEST(the_owner_elsewhere_is_connected_to),
        TEST(through_a_proxy_the_owner_is_reached_where_it_was_asked),
        TEST(the_proxy_flag_of_a_broker_that_is_reached_directly_changes_nothing),
        TEST(a_redirect_is_followed_with_the_brokers_word_on_authority),
        TEST(redirects_in_circles_end),
        TEST(a_topic_that_is_not_there_is_final_but_a_broker_that_starts_is_not),
        TEST(a_broker_that_is_not_ready_is_left),
        TEST(a_topic_that_is_not_ready_leaves_the_connection),
        TEST(too_many_requests_are_endured_fifty_times_a_minute),
        TEST(an_error_answers_a_lookup_too),
        TEST(an_owner_without_an_address_is_an_error_of_configuration),
        TEST(an_address_that_is_none_is_refused),
        TEST(a_lookup_without_an_answer_ends_after_the_operations_time),
        TEST(equal_lookups_share_one_request),
        TEST(one_who_goes_leaves_the_lookup_to_the_others),
        TEST(lookups_beyond_the_limit_wait_for_a_place),
        TEST(a_closed_connection_fails_the_lookup_for_another_try),
        TEST(an_assigned_broker_is_gone_to_without_asking),
        TEST(an_assigned_broker_that_is_dead_is_asked_for_at_the_service),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
