/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Publishing: one receipt each, order behind slow ones, scripted refusals and unknown receipts,
 * room, sizes, keys, tiers of delayed retries; and what happens to all of it while the hub is
 * down or the broker closes. Transcripts on a moved clock.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "tests/brokers/memory/fixture.h"

static struct client *
producer(struct fixture *fixture)
{
    struct client *client = fixture_client(fixture, "p");
    client_start(client);
    fixture_settle(fixture);
    client_events(client);
    return client;
}

static void
collect(const struct lw_memory_view *view, void *user)
{
    char *text = user;
    strncat(text, view->value.data, view->value.size);
}

static const char *
contents(struct fixture *fixture, const char *topic)
{
    static char text[256];
    text[0] = '\0';
    lw_memory_hub_each(fixture->hub, topic, collect, text);
    return text;
}

static void
inject(struct fixture *fixture, enum lw_memory_fault_kind kind, enum lw_status status,
       bool is_applied, uint64_t delay_ns)
{
    struct lw_memory_fault fault = { .kind = kind,
                                     .count = 1,
                                     .status = status,
                                     .is_applied = is_applied,
                                     .delay_ns = delay_ns };
    assert_int_equal(lw_memory_hub_inject(fixture->hub, &fault), LW_STATUS_OK);
}

static void
every_publication_has_one_receipt_after_its_latency(void **state)
{
    (void)state;
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.publish_latency_ns = 2 * LW_MS;
    struct fixture *fixture = fixture_create(&options);
    struct client *p = producer(fixture);
    client_publish(p, "out", "k", "a");
    client_publish(p, "out", "k", "b");
    fixture_settle(fixture);
    assert_string_equal(client_events(p), "");
    assert_string_equal(contents(fixture, "out"), "");
    virtual_host_pass(&fixture->virtual_host, 3 * LW_MS);
    assert_string_equal(client_events(p), "published ok, published ok");
    assert_string_equal(contents(fixture, "out"), "ab");
    fixture_destroy(fixture);
}

static void
a_slow_one_holds_up_those_behind_it(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    struct client *p = producer(fixture);
    inject(fixture, LW_MEMORY_SLOW_PUBLISH, LW_STATUS_OK, false, SECONDS(1));
    client_publish(p, "out", "k", "a");
    client_publish(p, "out", "k", "b");
    fixture_settle(fixture);
    assert_string_equal(client_events(p), "");
    virtual_host_pass(&fixture->virtual_host, SECONDS(1) + LW_MS);
    assert_string_equal(client_events(p), "published ok, published ok");
    assert_string_equal(contents(fixture, "out"), "ab");
    fixture_destroy(fixture);
}

static void
refused_and_unknown_receipts_follow_the_script(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    struct client *p = producer(fixture);
    inject(fixture, LW_MEMORY_REFUSE_PUBLISH, LW_STATUS_DENIED, false, 0);
    client_publish(p, "out", "k", "a");
    inject(fixture, LW_MEMORY_LOSE_RECEIPT, LW_STATUS_OK, false, 0);
    client_publish(p, "out", "k", "b");
    inject(fixture, LW_MEMORY_LOSE_RECEIPT, LW_STATUS_OK, true, 0);
    client_publish(p, "out", "k", "c");
    client_publish(p, "out", "k", "d");
    fixture_settle(fixture);
    assert_string_equal(client_events(p), "published denied, published unknown, "
                                          "published unknown, published ok");
    assert_string_equal(contents(fixture, "out"), "cd");
    fixture_destroy(fixture);
}

static void
faults_of_a_topic_leave_others_alone(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    struct client *p = producer(fixture);
    struct lw_memory_fault fault = { .kind = LW_MEMORY_REFUSE_PUBLISH,
                                     .topic = "x",
                                     .skip = 1,
                                     .count = 2,
                                     .status = LW_STATUS_UNAVAILABLE };
    lw_memory_hub_inject(fixture->hub, &fault);
    client_publish(p, "y", "k", "1");
    for (int i = 0; i < 4; i++) {
        client_publish(p, "x", "k", "2");
    }
    fixture_settle(fixture);
    assert_string_equal(client_events(p), "published ok, published ok, published unavailable, "
                                          "published unavailable, published ok");
    fixture_destroy(fixture);
}

static void
no_room_accepts_nothing_and_tells_when_there_is(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    struct client *p = producer(fixture);
    lw_memory_hub_set_room(fixture->hub, false);
    assert_int_equal(client_publish(p, "out", "k", "a"), SIZE_MAX);
    fixture_settle(fixture);
    assert_string_equal(client_events(p), "");
    lw_memory_hub_set_room(fixture->hub, true);
    fixture_settle(fixture);
    assert_string_equal(client_events(p), "room");
    assert_int_not_equal(client_publish(p, "out", "k", "a"), SIZE_MAX);
    fixture_destroy(fixture);
}

static void
a_full_queue_has_no_room_until_half_is_gone(void **state)
{
    (void)state;
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.publish_queue_max = 4;
    options.publish_latency_ns = LW_MS;
    struct fixture *fixture = fixture_create(&options);
    struct client *p = producer(fixture);
    for (int i = 0; i < 4; i++) {
        assert_int_not_equal(client_publish(p, "out", "k", "a"), SIZE_MAX);
    }
    assert_int_equal(client_publish(p, "out", "k", "a"), SIZE_MAX);
    virtual_host_pass(&fixture->virtual_host, 2 * LW_MS);
    assert_non_null(strstr(client_events(p), "room"));
    fixture_destroy(fixture);
}

static void
the_messages_own_fault_and_the_targets_are_told_apart(void **state)
{
    (void)state;
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.is_closed_world = true;
    options.message_bytes_max = 10;
    struct fixture *fixture = fixture_create(&options);
    lw_memory_hub_create_topic(fixture->hub, "out", 1);
    struct client *p = producer(fixture);
    client_publish(p, "nowhere", "k", "a");
    client_publish(p, "out", "k", "0123456789");
    client_publish(p, "out", "k", "012345678");
    struct lw_publication astray = {
        .topic = "out", .partition = 99, .value = lw_bytes_of("x"), .event_time_ms = -1
    };
    client_offer(p, &astray);
    fixture_settle(fixture);
    assert_string_equal(client_events(p), "published not_found, published too_large, "
                                          "published ok, published not_found");
    fixture_destroy(fixture);
}

static void
equal_keys_share_a_partition_and_keep_their_order(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    lw_memory_hub_create_topic(fixture->hub, "out", 8);
    struct client *p = producer(fixture);
    for (int i = 0; i < 8; i++) {
        static const char *const values[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
        client_publish(p, "out", "same", values[i]);
    }
    fixture_settle(fixture);
    client_events(p);
    assert_string_equal(contents(fixture, "out"), "abcdefgh");
    int used = 0;
    for (int32_t i = 0; i < 8; i++) {
        used += lw_memory_hub_end(fixture->hub, "out", i) > 0;
    }
    assert_int_equal(used, 1);
    fixture_destroy(fixture);
}

static void
a_delay_goes_to_the_tier_that_fits_and_comes_back_when_due(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    lw_memory_hub_create_topic(fixture->hub, "orders", 2);
    struct client *a = fixture_client(fixture, "a");
    int64_t tiers[2] = { 1000, 30000 };
    struct lw_source_options options = client_options("orders", "g");
    options.retry_topic = "orders.retry";
    options.tiers_ms = tiers;
    options.tier_count = 2;
    options.reads_tiers = true;
    client_subscribe_with(a, &options);
    client_start(a);
    fixture_settle(fixture);
    assert_int_equal(client_count(client_events(a), "assigned +orders.retry."), 4);
    char due[32];
    snprintf(due, sizeof due, "%lld", (long long)(VIRTUAL_WALL_MS + 1500));
    struct lw_header header = { lw_bytes_of("x-laneway-not-before"), lw_bytes_of(due) };
    struct lw_publication copy = { .kind = LW_PUBLISH_RETRY,
                                   .topic = "orders.retry",
                                   .partition = 1,
                                   .value = lw_bytes_of("again"),
                                   .headers = &header,
                                   .header_count = 1,
                                   .event_time_ms = -1,
                                   .delay_ms = 1500 };
    client_offer(a, &copy);
    fixture_settle(fixture);
    assert_int_equal(lw_memory_hub_end(fixture->hub, "orders.retry.30s", 1), 1);
    virtual_host_pass(&fixture->virtual_host, 1400 * LW_MS);
    assert_string_equal(client_receive(a, a->sources[0], 5), "");
    virtual_host_pass(&fixture->virtual_host, 101 * LW_MS);
    client_events(a);
    assert_string_equal(client_receive(a, a->sources[0], 5), "1:0=again");
    client_commit(a, "orders.retry.30s", 1, 1);
    fixture_settle(fixture);
    assert_int_equal(lw_memory_hub_committed(fixture->hub, "g", "orders.retry.30s", 1, NULL),
                     1);
    fixture_destroy(fixture);
}

static void
while_it_is_down_all_waits_and_then_goes_on(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    fixture_fill(fixture, "orders", "k", 2);
    lw_memory_hub_set_down(fixture->hub, SECONDS(5));
    assert_string_equal(client_events(a), "down");
    client_publish(a, "out", "k", "x");
    client_commit(a, "orders", 0, 1);
    assert_string_equal(client_receive(a, a->sources[0], 5), "");
    virtual_host_pass(&fixture->virtual_host, SECONDS(4));
    assert_string_equal(client_events(a), "");
    virtual_host_pass(&fixture->virtual_host, SECONDS(2));
    assert_string_equal(client_events(a), "up, published ok, committed ok");
    assert_string_equal(client_receive(a, a->sources[0], 5), "0:0=m0 0:1=m1");
    fixture_destroy(fixture);
}

static void
a_session_that_ends_meanwhile_costs_the_assignment(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    lw_memory_hub_set_down(fixture->hub, SECONDS(20));
    virtual_host_pass(&fixture->virtual_host, SECONDS(11));
    assert_string_equal(client_events(a), "down, lost");
    virtual_host_pass(&fixture->virtual_host, SECONDS(10));
    assert_string_equal(client_events(a), "up, assigned orders/0@0");
    fixture_destroy(fixture);
}

static void
a_start_while_it_is_down_connects_later(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    producer(fixture);
    lw_memory_hub_set_down(fixture->hub, SECONDS(1));
    struct client *b = fixture_client(fixture, "b");
    client_start(b);
    virtual_host_pass(&fixture->virtual_host, LW_MS);
    assert_string_equal(client_events(b), "");
    virtual_host_pass(&fixture->virtual_host, SECONDS(2));
    assert_string_equal(client_events(b), "up");
    fixture_destroy(fixture);
}

static void
closing_answers_what_was_never_confirmed(void **state)
{
    (void)state;
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.publish_latency_ns = SECONDS(1);
    struct fixture *fixture = fixture_create(&options);
    struct client *p = producer(fixture);
    client_publish(p, "out", "k", "x");
    p->ops->close(p->broker);
    assert_string_equal(client_events(p), "published unknown, closed");
    client_destroy(p);
    fixture->client_count = 0;
    fixture_destroy(fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_publication_has_one_receipt_after_its_latency),
        cmocka_unit_test(a_slow_one_holds_up_those_behind_it),
        cmocka_unit_test(refused_and_unknown_receipts_follow_the_script),
        cmocka_unit_test(faults_of_a_topic_leave_others_alone),
        cmocka_unit_test(no_room_accepts_nothing_and_tells_when_there_is),
        cmocka_unit_test(a_full_queue_has_no_room_until_half_is_gone),
        cmocka_unit_test(the_messages_own_fault_and_the_targets_are_told_apart),
        cmocka_unit_test(equal_keys_share_a_partition_and_keep_their_order),
        cmocka_unit_test(a_delay_goes_to_the_tier_that_fits_and_comes_back_when_due),
        cmocka_unit_test(while_it_is_down_all_waits_and_then_goes_on),
        cmocka_unit_test(a_session_that_ends_meanwhile_costs_the_assignment),
        cmocka_unit_test(a_start_while_it_is_down_connects_later),
        cmocka_unit_test(closing_answers_what_was_never_confirmed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
