/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches and the bound of unacknowledged messages. A batch goes to one member, its messages are
 * settled one by one; with `undoes_batch_acks` an incomplete one comes again as a whole, as from a
 * broker that keeps no acks of single messages. A member that has too much without an ack gets
 * nothing until it has settled half of it.
 */
#include "tests/support/test.h"

#include "tests/brokers/memory/fixture.h"

#include <stdio.h>

static struct fixture *
create(bool undoes_batch_acks, uint32_t unacked_max)
{
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.mode = LW_MEMORY_INDIVIDUAL;
    options.undoes_batch_acks = undoes_batch_acks;
    options.unacked_max = unacked_max;
    return fixture_create(&options);
}

static void
publish_batch(struct fixture *fixture, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        char value[16];
        snprintf(value, sizeof value, "b%u", i);
        struct lw_memory_item item = lw_memory_item_of("jobs", NULL, value);
        item.batch_left = size - 1 - i;
        assert_int_equal(lw_memory_hub_publish(fixture->hub, &item, NULL, NULL), LW_STATUS_OK);
    }
}

static void
a_batch_goes_to_one_member(void **state)
{
    (void)state;
    struct fixture *fixture = create(false, 0);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    struct client *b = fixture_member(fixture, "b", "jobs", "s");
    publish_batch(fixture, 3);
    fixture_fill(fixture, "jobs", NULL, 1);
    assert_string_equal(client_receive(a, a->sources[0], 1), "0:0=b0");
    assert_string_equal(client_receive(b, b->sources[0], 9), "0:3=m0");
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:1=b1 0:2=b2");
    fixture_destroy(fixture);
}

static void
what_was_acknowledged_of_a_lost_batch_does_not_come_again(void **state)
{
    (void)state;
    struct fixture *fixture = create(false, 0);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    publish_batch(fixture, 3);
    client_receive(a, a->sources[0], 2);
    client_ack(a, 0);
    lw_memory_hub_lose(fixture->hub, "a");
    fixture_settle(fixture);
    client_events(a);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:1=b1x1 0:2=b2x1");
    assert_int_equal(lw_memory_hub_stats(fixture->hub).acks_undone, 0);
    fixture_destroy(fixture);
}

static void
without_acks_in_batches_an_incomplete_one_comes_again_whole(void **state)
{
    (void)state;
    struct fixture *fixture = create(true, 0);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    publish_batch(fixture, 3);
    client_receive(a, a->sources[0], 9);
    client_ack(a, 0);
    client_ack(a, 2);
    lw_memory_hub_lose(fixture->hub, "a");
    fixture_settle(fixture);
    client_events(a);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=b0 0:1=b1x1 0:2=b2");
    assert_int_equal(lw_memory_hub_stats(fixture->hub).acks_undone, 2);
    fixture_destroy(fixture);
}

static void
a_complete_batch_does_not_come_again(void **state)
{
    (void)state;
    struct fixture *fixture = create(true, 0);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    publish_batch(fixture, 2);
    client_receive(a, a->sources[0], 9);
    client_ack(a, 1);
    assert_int_equal(lw_memory_hub_backlog(fixture->hub, "s", "jobs"), 2);
    client_ack(a, 0);
    assert_int_equal(lw_memory_hub_backlog(fixture->hub, "s", "jobs"), 0);
    lw_memory_hub_lose(fixture->hub, "a");
    fixture_settle(fixture);
    client_events(a);
    assert_string_equal(client_receive(a, a->sources[0], 9), "");
    fixture_destroy(fixture);
}

static void
a_nack_in_a_batch_brings_that_message_alone(void **state)
{
    (void)state;
    struct fixture *fixture = create(true, 0);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    publish_batch(fixture, 3);
    client_receive(a, a->sources[0], 9);
    client_ack(a, 0);
    client_nack(a, 1, 0);
    fixture_settle(fixture);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:1=b1x1");
    fixture_destroy(fixture);
}

static void
a_late_ack_completes_a_batch_that_waits(void **state)
{
    (void)state;
    struct fixture *fixture = create(true, 0);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    publish_batch(fixture, 2);
    client_receive(a, a->sources[0], 9);
    lw_memory_hub_lose(fixture->hub, "a");
    fixture_settle(fixture);
    client_events(a);
    client_ack(a, 0);
    client_ack(a, 1);
    assert_int_equal(lw_memory_hub_backlog(fixture->hub, "s", "jobs"), 0);
    assert_string_equal(client_receive(a, a->sources[0], 9), "");
    fixture_destroy(fixture);
}

static void
a_member_with_too_much_unacknowledged_gets_no_more(void **state)
{
    (void)state;
    struct fixture *fixture = create(false, 4);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    struct client *b = fixture_member(fixture, "b", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 6);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=m0 0:1=m1 0:2=m2 0:3=m3");
    client_ack(a, 0);
    fixture_settle(fixture);
    assert_string_equal(client_receive(a, a->sources[0], 9), "");
    client_ack(a, 1);
    fixture_settle(fixture);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:4=m4 0:5=m5");
    assert_string_equal(client_receive(b, b->sources[0], 9), "");
    fixture_destroy(fixture);
}

static void
the_bound_is_passed_by_a_batch_at_most(void **state)
{
    (void)state;
    struct fixture *fixture = create(false, 4);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    publish_batch(fixture, 3);
    publish_batch(fixture, 3);
    publish_batch(fixture, 3);
    client_receive(a, a->sources[0], 99);
    assert_int_equal(lw_memory_hub_stats(fixture->hub).received, 6);
    fixture_destroy(fixture);
}

static void
a_nack_gives_room_too(void **state)
{
    (void)state;
    struct fixture *fixture = create(false, 2);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 3);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=m0 0:1=m1");
    client_nack(a, 1, 0);
    fixture_settle(fixture);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:1=m1x1");
    fixture_destroy(fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_goes_to_one_member),
        cmocka_unit_test(what_was_acknowledged_of_a_lost_batch_does_not_come_again),
        cmocka_unit_test(without_acks_in_batches_an_incomplete_one_comes_again_whole),
        cmocka_unit_test(a_complete_batch_does_not_come_again),
        cmocka_unit_test(a_nack_in_a_batch_brings_that_message_alone),
        cmocka_unit_test(a_late_ack_completes_a_batch_that_waits),
        cmocka_unit_test(a_member_with_too_much_unacknowledged_gets_no_more),
        cmocka_unit_test(the_bound_is_passed_by_a_batch_at_most),
        cmocka_unit_test(a_nack_gives_room_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
