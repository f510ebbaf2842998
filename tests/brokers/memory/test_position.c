/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settlement by position with one member: receiving and its bounds, holes and retention, commits
 * with latency and faults, where a new member begins, detached messages, stalls. Transcripts on
 * a moved clock.
 */
#include "tests/support/test.h"

#include "tests/brokers/memory/fixture.h"

static void
a_member_receives_in_order_what_was_published(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 3);
    struct client *a = fixture_client(fixture, "a");
    struct lw_source *orders = client_subscribe(a, "orders", "g");
    client_start(a);
    assert_string_equal(client_receive(a, orders, 10), "");
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "up, assigned orders/0@0");
    assert_string_equal(client_receive(a, orders, 2), "0:0=m0 0:1=m1");
    assert_string_equal(client_receive(a, orders, 10), "0:2=m2");
    assert_false(a->ops->is_ready(orders));
    fixture_fill(fixture, "orders", "k", 1);
    assert_string_equal(client_receive(a, orders, 10), "0:3=m0");
    fixture_destroy(fixture);
}

static void
receiving_is_fair_over_partitions(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    lw_memory_hub_create_topic(fixture->hub, "orders", 2);
    fixture_fill(fixture, "orders", NULL, 100); /* without a key: round robin */
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    const char *told = client_receive(a, a->sources[0], 32);
    assert_int_equal(client_count(told, "0:"), 16);
    assert_int_equal(client_count(told, "1:"), 16);
    assert_int_equal(a->messages[15].slot, a->messages[0].slot);
    assert_int_not_equal(a->messages[16].slot, a->messages[0].slot);
    fixture_destroy(fixture);
}

static void
a_byte_bound_gives_at_least_one(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 5);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    struct lw_message messages[5];
    struct lw_message *out[5] = { &messages[0], &messages[1], &messages[2], &messages[3],
                                  &messages[4] };
    bool has_more = false;
    assert_int_equal(a->ops->receive(a->sources[0], out, 5, 0, &has_more), 1);
    assert_true(has_more);
    assert_int_equal(a->ops->receive(a->sources[0], out + 1, 4, 4, &has_more), 2);
    assert_int_equal(a->ops->receive(a->sources[0], out + 3, 2, 100, &has_more), 2);
    assert_true(has_more); /* full, so not known to be dry */
    a->ops->release(a->broker, out, 5);
    fixture_destroy(fixture);
}

static void
nothing_is_received_without_demand(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    a->ops->demand(a->sources[0], 0, 0);
    fixture_fill(fixture, "orders", "k", 1);
    assert_false(a->ops->is_ready(a->sources[0]));
    a->ops->demand(a->sources[0], 1, 1000);
    assert_true(a->ops->is_ready(a->sources[0]));
    assert_string_equal(client_receive(a, a->sources[0], 10), "0:0=m0");
    fixture_destroy(fixture);
}

static void
holes_are_skipped_and_a_trailing_one_is_told(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 3);
    lw_memory_hub_delete(fixture->hub, "orders", 0, 1);
    lw_memory_hub_skip(fixture->hub, "orders", 0, 2);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    assert_string_equal(client_receive(a, a->sources[0], 10), "0:0=m0 0:2=m2");
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "position orders/0@5");
    lw_memory_hub_skip(fixture->hub, "orders", 0, 1);
    assert_string_equal(client_receive(a, a->sources[0], 10), "");
    assert_string_equal(client_events(a), "position orders/0@6");
    fixture_destroy(fixture);
}

static void
retention_that_passes_the_reader_moves_it_on(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 10);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    assert_string_equal(client_receive(a, a->sources[0], 2), "0:0=m0 0:1=m1");
    lw_memory_hub_raise_start(fixture->hub, "orders", 0, 8);
    assert_string_equal(client_receive(a, a->sources[0], 10), "0:8=m8 0:9=m9");
    assert_int_equal(lw_memory_hub_start(fixture->hub, "orders", 0), 8);
    fixture_destroy(fixture);
}

static void
a_committed_position_is_where_the_next_member_begins(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 5);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    client_receive(a, a->sources[0], 5);
    assert_int_equal(client_commit(a, "orders", 0, 3), LW_STATUS_OK);
    assert_int_equal(client_commit(a, "orders", 0, 4), LW_STATUS_AGAIN); /* one in flight */
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "committed ok");
    assert_int_equal(lw_memory_hub_committed(fixture->hub, "g", "orders", 0, NULL), 3);
    assert_int_equal(lw_memory_hub_backlog(fixture->hub, "g", "orders"), 2);
    a->ops->stop_sources(a->broker);
    fixture_agree(fixture);
    struct client *b = fixture_member(fixture, "b", "orders", "g");
    assert_string_equal(client_receive(b, b->sources[0], 5), "0:3=m3 0:4=m4");
    fixture_destroy(fixture);
}

static void
commits_take_their_time_and_can_fail(void **state)
{
    (void)state;
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.commit_latency_ns = 5 * LW_MS;
    struct fixture *fixture = fixture_create(&options);
    fixture_fill(fixture, "orders", "k", 5);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    lw_memory_hub_inject(fixture->hub, &(struct lw_memory_fault){
                                           .kind = LW_MEMORY_FAIL_COMMIT,
                                           .count = 1,
                                           .skip = 1,
                                           .status = LW_STATUS_UNAVAILABLE,
                                       });
    client_commit(a, "orders", 0, 1);
    virtual_host_pass(&fixture->virtual_host, 4 * LW_MS);
    assert_string_equal(client_events(a), "");
    virtual_host_pass(&fixture->virtual_host, 2 * LW_MS);
    assert_string_equal(client_events(a), "committed ok");
    client_commit(a, "orders", 0, 2);
    virtual_host_pass(&fixture->virtual_host, 6 * LW_MS);
    assert_string_equal(client_events(a), "committed unavailable");
    assert_int_equal(lw_memory_hub_committed(fixture->hub, "g", "orders", 0, NULL), 1);
    fixture_destroy(fixture);
}

static void
one_bad_entry_puts_the_error_on_all_though_the_others_are_stored(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    lw_memory_hub_create_topic(fixture->hub, "orders", 2);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    lw_memory_hub_inject(
        fixture->hub, &(struct lw_memory_fault){ .kind = LW_MEMORY_SPLIT_COMMIT, .count = 1 });
    struct lw_commit_item items[2] = { { a->sources[0], 0, 7 }, { a->sources[0], 1, 9 } };
    a->ops->commit(a->broker, items, 2);
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "committed too_large");
    assert_int_equal(lw_memory_hub_committed(fixture->hub, "g", "orders", 0, NULL), -1);
    assert_int_equal(lw_memory_hub_committed(fixture->hub, "g", "orders", 1, NULL), 9);
    fixture_destroy(fixture);
}

static void
metadata_stays_with_a_position_until_the_next_commit(void **state)
{
    (void)state;
    const char *metadata = NULL;
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 5);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    lw_memory_hub_set_committed(fixture->hub, "g", "orders", 0, 2);
    lw_memory_hub_set_metadata(fixture->hub, "g", "orders", 0, "done 3");
    assert_int_equal(lw_memory_hub_committed(fixture->hub, "g", "orders", 0, &metadata), 2);
    assert_string_equal(metadata, "done 3");
    client_commit(a, "orders", 0, 4);
    fixture_settle(fixture);
    assert_int_equal(lw_memory_hub_committed(fixture->hub, "g", "orders", 0, &metadata), 4);
    assert_string_equal(metadata, "");
    fixture_destroy(fixture);
}

static struct client *
member_with_reset(struct fixture *fixture, const char *reset)
{
    struct client *client = fixture_client(fixture, reset);
    struct lw_property property = { "auto.offset.reset", reset };
    struct lw_source_options options = client_options("orders", reset);
    options.properties = &property;
    options.property_count = 1;
    client_subscribe_with(client, &options);
    client_start(client);
    fixture_settle(fixture);
    return client;
}

static void
a_committed_position_out_of_range_follows_the_reset(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 20);
    lw_memory_hub_raise_start(fixture->hub, "orders", 0, 10);
    lw_memory_hub_set_committed(fixture->hub, "earliest", "orders", 0, 3);
    lw_memory_hub_set_committed(fixture->hub, "latest", "orders", 0, 3);
    lw_memory_hub_set_committed(fixture->hub, "none", "orders", 0, 99);
    struct client *earliest = member_with_reset(fixture, "earliest");
    assert_string_equal(client_events(earliest), "up, assigned orders/0@10");
    struct client *latest = member_with_reset(fixture, "latest");
    assert_string_equal(client_events(latest), "up, assigned orders/0@20");
    struct client *none = member_with_reset(fixture, "none");
    assert_string_equal(client_events(none), "up, error not_found!");
    assert_true(none->last_error.is_fatal);
    fixture_destroy(fixture);
}

static void
a_committed_position_at_the_end_is_in_range(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 10);
    lw_memory_hub_set_committed(fixture->hub, "none", "orders", 0, 10);
    struct client *none = member_with_reset(fixture, "none");
    assert_string_equal(client_events(none), "up, assigned orders/0@10");
    fixture_destroy(fixture);
}

static void
a_lost_log_is_read_again_and_may_be_committed_backwards(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 10);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    client_receive(a, a->sources[0], 10);
    client_commit(a, "orders", 0, 10);
    fixture_settle(fixture);
    client_events(a);
    lw_memory_hub_truncate(fixture->hub, "orders", 0);
    fixture_fill(fixture, "orders", "k", 2);
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "lost, assigned orders/0@0");
    assert_string_equal(client_receive(a, a->sources[0], 10), "0:0=m0 0:1=m1");
    client_commit(a, "orders", 0, 2);
    fixture_settle(fixture);
    assert_int_equal(lw_memory_hub_committed(fixture->hub, "g", "orders", 0, NULL), 2);
    fixture_destroy(fixture);
}

static void
fetch_latency_delays_what_was_published(void **state)
{
    (void)state;
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.fetch_latency_ns = 3 * LW_MS;
    struct fixture *fixture = fixture_create(&options);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    fixture_fill(fixture, "orders", "k", 1);
    assert_string_equal(client_receive(a, a->sources[0], 1), "");
    assert_false(a->ops->is_ready(a->sources[0]));
    virtual_host_pass(&fixture->virtual_host, 4 * LW_MS);
    assert_string_equal(client_receive(a, a->sources[0], 1), "0:0=m0");
    fixture_destroy(fixture);
}

static void
a_detached_message_keeps_its_bytes_without_the_log(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    struct lw_header header = { lw_bytes_of("h"), lw_bytes_of("x") };
    struct lw_memory_item item = lw_memory_item_of("orders", "key", "value");
    item.headers = &header;
    item.header_count = 1;
    item.event_time_ms = 42;
    lw_memory_hub_publish(fixture->hub, &item, NULL, NULL);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    client_receive(a, a->sources[0], 1);
    struct lw_message *message = &a->messages[0];
    const void *before = message->value.data;
    assert_true(a->ops->detach(a->broker, message));
    lw_memory_hub_raise_start(fixture->hub, "orders", 0, 1);
    assert_ptr_not_equal(message->value.data, before);
    assert_memory_equal(message->value.data, "value", 5);
    size_t count = 0;
    const struct lw_header *headers = a->ops->headers(a->broker, message, &count);
    assert_int_equal(count, 1);
    assert_memory_equal(headers[0].value.data, "x", 1);
    struct lw_message_times times;
    a->ops->times(a->broker, message, &times);
    assert_int_equal(times.event_time_ms, 42);
    fixture_destroy(fixture);
}

static void
a_message_delivered_twice_comes_with_the_same_position(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 2);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    lw_memory_hub_inject(
        fixture->hub, &(struct lw_memory_fault){ .kind = LW_MEMORY_DELIVER_TWICE, .count = 1 });
    assert_string_equal(client_receive(a, a->sources[0], 5), "0:0=m0 0:0=m0 0:1=m1");
    fixture_destroy(fixture);
}

static void
a_stalled_topic_delivers_later_though_all_looks_well(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_create(NULL);
    fixture_fill(fixture, "orders", "k", 2);
    struct client *a = fixture_member(fixture, "a", "orders", "g");
    lw_memory_hub_stall(fixture->hub, "orders", SECONDS(2));
    assert_false(a->ops->is_ready(a->sources[0]));
    virtual_host_pass(&fixture->virtual_host, SECONDS(1));
    fixture_fill(fixture, "orders", "k", 1);
    assert_false(a->ops->is_ready(a->sources[0]));
    virtual_host_pass(&fixture->virtual_host, SECONDS(1) + LW_MS);
    assert_string_equal(client_events(a), "");
    assert_string_equal(client_receive(a, a->sources[0], 5), "0:0=m0 0:1=m1 0:2=m0");
    fixture_destroy(fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_member_receives_in_order_what_was_published),
        cmocka_unit_test(receiving_is_fair_over_partitions),
        cmocka_unit_test(a_byte_bound_gives_at_least_one),
        cmocka_unit_test(nothing_is_received_without_demand),
        cmocka_unit_test(holes_are_skipped_and_a_trailing_one_is_told),
        cmocka_unit_test(retention_that_passes_the_reader_moves_it_on),
        cmocka_unit_test(a_committed_position_is_where_the_next_member_begins),
        cmocka_unit_test(commits_take_their_time_and_can_fail),
        cmocka_unit_test(one_bad_entry_puts_the_error_on_all_though_the_others_are_stored),
        cmocka_unit_test(metadata_stays_with_a_position_until_the_next_commit),
        cmocka_unit_test(a_committed_position_out_of_range_follows_the_reset),
        cmocka_unit_test(a_committed_position_at_the_end_is_in_range),
        cmocka_unit_test(a_lost_log_is_read_again_and_may_be_committed_backwards),
        cmocka_unit_test(fetch_latency_delays_what_was_published),
        cmocka_unit_test(a_detached_message_keeps_its_bytes_without_the_log),
        cmocka_unit_test(a_message_delivered_twice_comes_with_the_same_position),
        cmocka_unit_test(a_stalled_topic_delivers_later_though_all_looks_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
