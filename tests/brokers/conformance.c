/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker conformance suite. Every test makes its own topic and group, so that a broker with a
 * memory of its own can run it again. Nothing is asserted about how long something takes, only
 * that it comes within the environment's patience, and that what must not come has not come by
 * then. The test client checks generations, slots and receipts at every event.
 */
#include "tests/support/test.h"

#include "tests/brokers/conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/host.h"
#include "tests/brokers/client.h"

enum { NAME_SIZE = 160, PUMP_MS = 20, QUIET_MS = 400 };

static const struct conformance *env;
static int topic_count;

/* -- Helpers ------------------------------------------------------------------------------------- */

/* A name that was never used before. */
static const char *
fresh(char *out, const char *kind)
{
    snprintf(out, NAME_SIZE, "%s-%s-%d", env->prefix, kind, topic_count++);
    return out;
}

static struct client *
create(const char *name)
{
    return client_create_with(env->host, env->ops, name, env->url, env->broker_properties,
                              env->broker_property_count);
}

static void
create_topic(const char *name, int32_t partitions)
{
    struct lw_error error = { 0 };
    struct lw_topic_info info = { .name = name, .partitions = partitions, .retention_ms = -1 };
    struct client *client = create("admin");
    int64_t timeout_ms = (int64_t)env->patience_ms;
    enum lw_status status = client->ops->create_topics(client->broker, &info, 1, timeout_ms,
                                                       &error);
    if (status != LW_STATUS_OK || info.status != LW_STATUS_OK) {
        fail_msg("create topic: %s %s", error.message, info.reason);
    }
    client_destroy(client);
}

static const char *
fresh_topic(char *out, int32_t partitions)
{
    (void)fresh(out, "topic");
    if (env->create_topic) {
        env->create_topic(env->user, out, partitions);
    } else {
        create_topic(out, partitions);
    }
    return out;
}

static void
subscribe(struct client *client, const char *topic, const char *group)
{
    struct lw_source_options options = client_options(topic, group);
    options.properties = env->properties;
    options.property_count = env->property_count;
    (void)client_subscribe_with(client, &options);
}

static size_t
live_slots(const struct client *client)
{
    size_t count = 0;
    for (size_t i = 0; i < client->slot_count; i++) {
        count += client->slots[i].is_live;
    }
    return count;
}

static size_t
receipts(const struct client *client)
{
    size_t count = 0;
    for (size_t i = 0; i < client->sent_count; i++) {
        count += client->sent[i].receipts > 0;
    }
    return count;
}

static bool
is_up(const struct client *client, size_t wanted)
{
    return client->is_up && live_slots(client) == wanted;
}

static bool
has_receipts(const struct client *client, size_t wanted)
{
    return receipts(client) == wanted;
}

static bool
has_commits(const struct client *client, size_t wanted)
{
    return (size_t)client->commits_answered >= wanted;
}

static bool
has_revokes(const struct client *client, size_t wanted)
{
    return client->revoking_count >= wanted || live_slots(client) == 0;
}

static bool
is_closed(const struct client *client, size_t wanted)
{
    (void)wanted;
    return client->is_closed;
}

typedef bool (*condition_fn)(const struct client *client, size_t wanted);

static bool
await(struct client *client, condition_fn condition, size_t wanted)
{
    for (uint64_t waited = 0; waited <= env->patience_ms; waited += PUMP_MS) {
        client_events(client);
        if (condition(client, wanted)) {
            return true;
        }
        env->pump(env->user, PUMP_MS);
    }
    return false;
}

/* Receives until `count` messages were received in all; false when they did not come. */
static bool
await_messages(struct client *client, size_t count)
{
    for (uint64_t waited = 0; waited <= env->patience_ms; waited += PUMP_MS) {
        client_events(client);
        for (size_t i = 0; i < client->source_count; i++) {
            client_receive(client, client->sources[i], count - client->message_count);
        }
        if (client->message_count >= count) {
            return true;
        }
        env->pump(env->user, PUMP_MS);
    }
    return false;
}

static struct client *
open_client(const char *topic, const char *group, size_t partitions)
{
    struct client *client = create("client");
    if (topic) {
        subscribe(client, topic, group);
    }
    client_start(client);
    assert_true(await(client, is_up, partitions));
    return client;
}

/* Ends a client as a dispatcher does: stop, answer, release, close, CLOSED, destroy. */
static void
close_client(struct client *client)
{
    client->ops->stop_sources(client->broker);
    while (live_slots(client) > 0) {
        assert_true(await(client, has_revokes, 1));
        client_answer(client);
    }
    client_release_all(client);
    client->ops->close(client->broker);
    assert_true(await(client, is_closed, 1));
    for (size_t i = 0; i < client->sent_count; i++) {
        assert_int_equal(client->sent[i].receipts, 1);
    }
    client_destroy(client);
}

/* Publishes values "0".."n-1" with that key and waits for the receipts, which must be ok. */
static void
publish_numbers(struct client *client, const char *topic, const char *key, int count)
{
    static const char *const numbers[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" };
    size_t before = client->sent_count;
    for (int i = 0; i < count; i++) {
        assert_int_not_equal(client_publish(client, topic, key, numbers[i % 10]), SIZE_MAX);
    }
    assert_true(await(client, has_receipts, before + (size_t)count));
    for (size_t i = before; i < client->sent_count; i++) {
        assert_int_equal(client->sent[i].status, LW_STATUS_OK);
    }
}

/* -- Tests ----------------------------------------------------------------------------------------- */

static void
making_and_ending_needs_no_connection(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    struct client *client = create("unborn");
    client_subscribe(client, fresh(topic, "never"), "group");
    assert_string_equal(client_events(client), "");
    client_destroy(client);
}

static void
the_table_is_complete_and_consistent(void **state)
{
    (void)state;
    struct client *client = create("table");
    const struct lw_broker_caps *caps = &client->broker->caps;
    assert_ptr_equal(client->broker->host, env->host);
    assert_string_equal(client->broker->name, "table");
    assert_int_equal(strncmp(env->url, env->ops->scheme, strlen(env->ops->scheme)), 0);
    assert_int_not_equal(caps->default_ordering, LW_ORDERING_DEFAULT);
    assert_int_not_equal(caps->default_keyless, LW_KEYLESS_DEFAULT);
    assert_true((caps->settlement == LW_SETTLE_POSITION) == (caps->nack == LW_NACK_NONE));
    client_destroy(client);
}

static void
conventional_topics_are_named_or_refused(void **state)
{
    (void)state;
    char name[NAME_SIZE];
    char small[4];
    struct client *client = create("names");
    for (int kind = LW_TOPIC_RETRY; kind <= LW_TOPIC_DEAD_LETTER; kind++) {
        assert_true(client->ops->default_topic((enum lw_topic_kind)kind, "orders", "group",
                                               name, sizeof name));
        assert_non_null(strstr(name, "orders"));
        assert_false(client->ops->default_topic((enum lw_topic_kind)kind, "orders", "group",
                                                small, sizeof small));
    }
    client_destroy(client);
}

static void
every_partition_is_assigned_once(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    char group[NAME_SIZE];
    struct client *client = open_client(fresh_topic(topic, 3), fresh(group, "group"), 3);
    unsigned seen = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(strstr(client->slots[i].topic, topic)); /* its full name */
        assert_true(client->slots[i].generation > 0);
        seen |= 1u << client->slots[i].partition;
    }
    assert_int_equal(seen, 7);
    close_client(client);
}

static void
what_is_published_is_received_in_order_of_its_key(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    char group[NAME_SIZE];
    struct client *client = open_client(fresh_topic(topic, 3), fresh(group, "group"), 3);
    publish_numbers(client, topic, "key", 10);
    assert_true(await_messages(client, 10));
    for (size_t i = 0; i < 10; i++) {
        const struct lw_message *message = &client->messages[i];
        assert_int_equal(message->value.size, 1);
        assert_int_equal(*(const char *)message->value.data, '0' + (char)i);
        assert_int_equal(message->slot, client->messages[0].slot);
        assert_true(i == 0 || message->position > client->messages[i - 1].position);
    }
    close_client(client);
}

static void
a_dry_source_is_not_ready(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    char group[NAME_SIZE];
    struct client *client = open_client(fresh_topic(topic, 1), fresh(group, "group"), 1);
    publish_numbers(client, topic, "key", 3);
    assert_true(await_messages(client, 3));
    env->pump(env->user, QUIET_MS);
    client_receive(client, client->sources[0], 10);
    assert_int_equal(client->message_count, 3);
    assert_false(client->ops->is_ready(client->sources[0]));
    close_client(client);
}

/* Receives `wanted` in calls that must bring one each, by that bound of messages or of bytes. */
static size_t
receive_singly(struct client *client, size_t wanted, size_t n, uint64_t bytes_max)
{
    struct lw_message *out[4] = { &client->messages[0], &client->messages[1],
                                  &client->messages[2], &client->messages[3] };
    size_t received = 0;
    for (uint64_t waited = 0; waited <= env->patience_ms; waited += PUMP_MS) {
        bool has_more = true;
        while (has_more && received < wanted && client->ops->is_ready(client->sources[0])) {
            size_t count = client->ops->receive(client->sources[0], out, n, bytes_max,
                                                &has_more);
            assert_in_range(count, 0, 1);
            client->ops->release(client->broker, out, count);
            received += count;
        }
        if (received == wanted) {
            break;
        }
        env->pump(env->user, PUMP_MS);
        client_events(client);
    }
    return received;
}

static void
receive_keeps_to_its_bounds(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    char group[NAME_SIZE];
    struct client *client = open_client(fresh_topic(topic, 1), fresh(group, "group"), 1);
    publish_numbers(client, topic, "key", 10);
    assert_int_equal(receive_singly(client, 7, 4, 1), 7); /* a byte is less than any of them */
    assert_int_equal(receive_singly(client, 3, 1, 1 << 20), 3);
    close_client(client);
}

static void
bytes_and_headers_come_through_bit_for_bit(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    char group[NAME_SIZE];
    struct client *client = open_client(fresh_topic(topic, 1), fresh(group, "group"), 1);
    struct lw_header sent[4] = {
        { { "same", 4 }, { "1", 1 } },
        { { "same", 4 }, { "2", 1 } },
        { { "empty", 5 }, { "", 0 } },
        { { "binary", 6 }, { "\0\xff\n", 3 } },
    };
    struct lw_publication publication = { .kind = LW_PUBLISH_OUTPUT,
                                          .topic = topic,
                                          .partition = 0,
                                          .key = { "", 0 },
                                          .value = { NULL, 0 },
                                          .headers = sent,
                                          .header_count = 4,
                                          .event_time_ms = -1 };
    assert_int_not_equal(client_offer(client, &publication), SIZE_MAX);
    assert_true(await_messages(client, 1));
    const struct lw_message *message = &client->messages[0];
    assert_non_null(message->key.data);
    assert_int_equal(message->key.size, 0);
    assert_null(message->value.data);
    size_t count = 0;
    const struct lw_header *headers = client->ops->headers(client->broker, message, &count);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(headers[i].name.size, sent[i].name.size);
        assert_memory_equal(headers[i].name.data, sent[i].name.data, sent[i].name.size);
        assert_int_equal(headers[i].value.size, sent[i].value.size);
        assert_memory_equal(headers[i].value.data, sent[i].value.data, sent[i].value.size);
    }
    assert_true(await(client, has_receipts, 1));
    close_client(client);
}

static void
a_detached_message_outlives_its_neighbours(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    char group[NAME_SIZE];
    struct client *client = open_client(fresh_topic(topic, 1), fresh(group, "group"), 1);
    publish_numbers(client, topic, "key", 5);
    assert_true(await_messages(client, 5));
    assert_true(client->ops->detach(client->broker, &client->messages[2]));
    for (size_t i = 0; i < 5; i++) {
        if (i != 2) {
            client_release(client, i);
        }
    }
    assert_int_equal(*(const char *)client->messages[2].value.data, '2');
    assert_memory_equal(client->messages[2].key.data, "key", 3);
    size_t count = 9;
    client->ops->headers(client->broker, &client->messages[2], &count);
    assert_int_equal(count, 0);
    close_client(client);
}

static void
settle_first(struct client *client, const char *topic, size_t count)
{
    enum lw_settlement_kind kind = client->broker->caps.settlement;
    size_t first = kind == LW_SETTLE_INDIVIDUAL ? 0
                                                : count - 1; /* the last covers the others */
    for (size_t i = first; kind != LW_SETTLE_POSITION && i < count; i++) {
        client_ack(client, i);
    }
    if (kind != LW_SETTLE_POSITION) {
        return;
    }
    int64_t next = client->messages[count - 1].position + 1;
    assert_int_equal(client_commit(client, topic, 0, next), LW_STATUS_OK);
    assert_true(await(client, has_commits, 1));
    assert_int_equal(client->last_commit, LW_STATUS_OK);
}

static void
what_is_settled_stays_settled_and_the_rest_comes_again(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    char group[NAME_SIZE];
    struct client *first = open_client(fresh_topic(topic, 1), fresh(group, "group"), 1);
    publish_numbers(first, topic, "key", 10);
    assert_true(await_messages(first, 10));
    settle_first(first, topic, 4);
    close_client(first);
    struct client *second = open_client(topic, group, 1);
    assert_true(await_messages(second, 6));
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(*(const char *)second->messages[i].value.data, '4' + (char)i);
    }
    env->pump(env->user, QUIET_MS);
    client_receive(second, second->sources[0], 10);
    assert_int_equal(second->message_count, 6);
    close_client(second);
}

static void
a_stop_asks_before_it_takes(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    char group[NAME_SIZE];
    struct client *client = open_client(fresh_topic(topic, 2), fresh(group, "group"), 2);
    publish_numbers(client, topic, "key", 3);
    client->ops->stop_sources(client->broker);
    assert_false(client->ops->is_ready(client->sources[0]));
    assert_true(await(client, has_revokes, 1));
    assert_true(client->deadline > env->host->now);
    client_answer(client);
    env->pump(env->user, QUIET_MS);
    client_receive(client, client->sources[0], 10);
    assert_int_equal(client->message_count, 0);
    close_client(client);
}

/* Who has stopped receiving still settles. */
static void
what_is_settled_while_stopping_is_settled(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    char group[NAME_SIZE];
    struct client *first = open_client(fresh_topic(topic, 1), fresh(group, "group"), 1);
    publish_numbers(first, topic, "key", 10);
    assert_true(await_messages(first, 10));
    first->ops->stop_sources(first->broker);
    assert_true(await(first, has_revokes, 1));
    settle_first(first, topic, 10);
    close_client(first);
    struct client *second = open_client(topic, group, 1);
    publish_numbers(second, topic, "key", 1);
    assert_true(await_messages(second, 1));
    env->pump(env->user, QUIET_MS);
    client_receive(second, second->sources[0], 10);
    assert_int_equal(second->message_count, 1);
    close_client(second);
}

static void
what_is_given_back_comes_again(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    char group[NAME_SIZE];
    struct client *client = open_client(fresh_topic(topic, 1), fresh(group, "group"), 1);
    publish_numbers(client, topic, "key", 1);
    assert_true(await_messages(client, 1));
    client_nack(client, 0, 0);
    assert_true(await_messages(client, 2));
    assert_memory_equal(client->messages[1].value.data, "0", 1);
    assert_int_equal(client->messages[1].position, client->messages[0].position);
    client_ack(client, 1);
    env->pump(env->user, QUIET_MS);
    client_receive(client, client->sources[0], 10);
    assert_int_equal(client->message_count, 2);
    close_client(client);
}

static void
a_second_member_shares_what_there_is(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    char group[NAME_SIZE];
    struct client *first = open_client(fresh_topic(topic, 4), fresh(group, "group"), 4);
    struct client *second = create("second");
    subscribe(second, topic, group);
    client_start(second);
    for (uint64_t waited = 0; waited <= env->patience_ms; waited += PUMP_MS) {
        client_events(first);
        client_answer(first);
        client_events(second);
        client_answer(second);
        if (live_slots(first) == 2 && live_slots(second) == 2) {
            break;
        }
        env->pump(env->user, PUMP_MS);
    }
    assert_int_equal(live_slots(first), 2);
    assert_int_equal(live_slots(second), 2);
    close_client(second);
    close_client(first);
}

static void
the_fault_of_a_message_and_of_its_target_are_told_apart(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    char nowhere[NAME_SIZE];
    fresh_topic(topic, 1);
    struct client *client = open_client(NULL, NULL, 0);
    size_t size = client->broker->caps.message_bytes_max;
    size = size > 0 ? size + 1 : (size_t)1 << 26;
    char *large = malloc(size);
    assert_non_null(large);
    memset(large, 'x', size);
    struct lw_publication publication = { .kind = LW_PUBLISH_OUTPUT,
                                          .topic = topic,
                                          .partition = -1,
                                          .value = { large, size },
                                          .event_time_ms = -1 };
    assert_int_not_equal(client_offer(client, &publication), SIZE_MAX);
    if (env->has_strict_topics) {
        client_publish(client, fresh(nowhere, "nowhere"), "key", "value");
    }
    client_publish(client, topic, "key", "value");
    assert_true(await(client, has_receipts, client->sent_count));
    assert_int_equal(client->sent[0].status, LW_STATUS_TOO_LARGE);
    if (env->has_strict_topics) {
        assert_int_equal(client->sent[1].status, LW_STATUS_NOT_FOUND);
    }
    assert_int_equal(client->sent[client->sent_count - 1].status, LW_STATUS_OK);
    close_client(client);
    free(large);
}

static void
nothing_is_confirmed_while_nobody_is_there(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    fresh_topic(topic, 1);
    struct client *client = open_client(NULL, NULL, 0);
    env->set_down(env->user, 2 * (uint64_t)QUIET_MS);
    client_publish(client, topic, "key", "value");
    env->pump(env->user, QUIET_MS);
    client_events(client);
    assert_false(receipts(client) > 0 && client->sent[0].status == LW_STATUS_OK);
    assert_true(await(client, has_receipts, 1));
    close_client(client);
}

static void
topics_are_described_without_a_start(void **state)
{
    (void)state;
    char topic[NAME_SIZE];
    char nowhere[NAME_SIZE];
    struct lw_error error = { 0 };
    struct lw_topic_info infos[2] = { { .name = fresh_topic(topic, 3) },
                                      { .name = fresh(nowhere, "nowhere") } };
    struct client *client = create("admin");
    enum lw_status status = client->ops->describe_topics(client->broker, infos, 2,
                                                         (int64_t)env->patience_ms, &error);
    assert_int_equal(status, LW_STATUS_OK);
    assert_int_equal(infos[0].partitions, 3);
    assert_true(infos[1].partitions == 0 || !env->has_strict_topics);
    client_destroy(client);
}

static bool
is_individual(void)
{
    struct client *client = create("caps");
    bool is = client->broker->caps.settlement == LW_SETTLE_INDIVIDUAL;
    client_destroy(client);
    return is;
}

/* What the environment cannot show is left out: a test that is skipped is one that is missed. */
#define run_group(tests, applies)                                                              \
    ((applies) ? cmocka_run_group_tests_name(env->name, tests, NULL, NULL) : 0)

int
conformance_run(const struct conformance *environment)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(making_and_ending_needs_no_connection),
        cmocka_unit_test(the_table_is_complete_and_consistent),
        cmocka_unit_test(conventional_topics_are_named_or_refused),
        cmocka_unit_test(every_partition_is_assigned_once),
        cmocka_unit_test(what_is_published_is_received_in_order_of_its_key),
        cmocka_unit_test(a_dry_source_is_not_ready),
        cmocka_unit_test(receive_keeps_to_its_bounds),
        cmocka_unit_test(bytes_and_headers_come_through_bit_for_bit),
        cmocka_unit_test(a_detached_message_outlives_its_neighbours),
        cmocka_unit_test(what_is_settled_stays_settled_and_the_rest_comes_again),
        cmocka_unit_test(a_stop_asks_before_it_takes),
        cmocka_unit_test(what_is_settled_while_stopping_is_settled),
        cmocka_unit_test(the_fault_of_a_message_and_of_its_target_are_told_apart),
    };
    const struct CMUnitTest described[] = {
        cmocka_unit_test(topics_are_described_without_a_start),
    };
    const struct CMUnitTest individual[] = {
        cmocka_unit_test(what_is_given_back_comes_again),
    };
    const struct CMUnitTest divided[] = {
        cmocka_unit_test(a_second_member_shares_what_there_is),
    };
    const struct CMUnitTest down[] = {
        cmocka_unit_test(nothing_is_confirmed_while_nobody_is_there),
    };
    env = environment;
    int failed = run_group(tests, true) + run_group(described, !env->has_no_admin);
    failed += run_group(individual, is_individual());
    failed += run_group(divided, env->divides_partitions);
    failed += run_group(down, env->set_down != NULL);
    return failed;
}
