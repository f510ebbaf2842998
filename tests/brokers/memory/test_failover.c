/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failover: each partition has one active member, the others wait. Who is active follows from the
 * order of coming and the partition's number; a handover is a loss, not a question.
 */
#include "tests/support/test.h"

#include "tests/brokers/memory/fixture.h"

static struct fixture *
create(int32_t partitions)
{
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.mode = LW_MEMORY_INDIVIDUAL;
    options.sharing = LW_MEMORY_FAILOVER;
    options.default_partitions = partitions;
    return fixture_create(&options);
}

static struct client *
join(struct fixture *fixture, const char *name)
{
    struct client *client = fixture_client(fixture, name);
    client_subscribe(client, "jobs", "s");
    client_start(client);
    fixture_settle(fixture);
    return client;
}

static void
the_second_member_waits(void **state)
{
    (void)state;
    struct fixture *fixture = create(1);
    struct client *a = join(fixture, "a");
    struct client *b = join(fixture, "b");
    assert_string_equal(client_events(a), "up, assigned jobs/0@-1");
    assert_string_equal(client_events(b), "up");
    fixture_fill(fixture, "jobs", NULL, 2);
    assert_string_equal(client_receive(b, b->sources[0], 9), "");
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=m0 0:1=m1");
    fixture_destroy(fixture);
}

static void
a_second_member_takes_over_a_partition_of_its_own(void **state)
{
    (void)state;
    struct fixture *fixture = create(2);
    struct client *a = join(fixture, "a");
    assert_string_equal(client_events(a), "up, assigned jobs/0@-1, assigned jobs/1@-1");
    struct client *b = join(fixture, "b");
    assert_string_equal(client_events(a), "lost");
    assert_string_equal(client_events(b), "up, assigned jobs/1@-1");
    fixture_destroy(fixture);
}

static void
what_a_dead_member_had_comes_to_the_next_in_order(void **state)
{
    (void)state;
    struct fixture *fixture = create(1);
    struct client *a = join(fixture, "a");
    struct client *b = join(fixture, "b");
    client_events(a);
    client_events(b);
    fixture_fill(fixture, "jobs", "k", 4);
    client_receive(a, a->sources[0], 3);
    client_ack(a, 1);
    fixture_kill(fixture, a, true);
    fixture_settle(fixture);
    assert_string_equal(client_events(b), "assigned jobs/0@-1");
    assert_string_equal(client_receive(b, b->sources[0], 9), "0:0=m0 0:2=m2 0:3=m3");
    fixture_destroy(fixture);
}

static void
a_member_that_leaves_keeps_its_partition_until_it_has_answered(void **state)
{
    (void)state;
    struct fixture *fixture = create(1);
    struct client *a = join(fixture, "a");
    struct client *b = join(fixture, "b");
    client_events(b);
    client_events(a);
    a->ops->stop_sources(a->broker);
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "revoking");
    assert_string_equal(client_events(b), "");
    client_answer(a);
    fixture_settle(fixture);
    assert_string_equal(client_events(b), "assigned jobs/0@-1");
    fixture_destroy(fixture);
}

static void
a_waiting_member_that_leaves_is_not_chosen(void **state)
{
    (void)state;
    struct fixture *fixture = create(1);
    struct client *a = join(fixture, "a");
    struct client *b = join(fixture, "b");
    client_events(a);
    client_events(b);
    b->ops->stop_sources(b->broker);
    fixture_kill(fixture, a, true);
    fixture_settle(fixture);
    assert_string_equal(client_events(b), "");
    fixture_destroy(fixture);
}

static void
a_nack_rewinds_and_the_member_stays_active(void **state)
{
    (void)state;
    struct fixture *fixture = create(1);
    struct client *a = join(fixture, "a");
    struct client *b = join(fixture, "b");
    client_events(a);
    client_events(b);
    fixture_fill(fixture, "jobs", NULL, 3);
    client_receive(a, a->sources[0], 3);
    client_ack(a, 0);
    client_nack(a, 2, 10);
    virtual_host_pass(&fixture->virtual_host, 11 * LW_MS);
    assert_string_equal(client_events(a), "lost, assigned jobs/0@-1");
    assert_string_equal(client_events(b), "");
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:1=m1 0:2=m2");
    fixture_destroy(fixture);
}

static void
a_member_whose_connection_ended_comes_last(void **state)
{
    (void)state;
    struct fixture *fixture = create(1);
    struct client *a = join(fixture, "a");
    struct client *b = join(fixture, "b");
    client_events(a);
    client_events(b);
    lw_memory_hub_lose(fixture->hub, "a");
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "lost");
    assert_string_equal(client_events(b), "assigned jobs/0@-1");
    fixture_destroy(fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_second_member_waits),
        cmocka_unit_test(a_second_member_takes_over_a_partition_of_its_own),
        cmocka_unit_test(what_a_dead_member_had_comes_to_the_next_in_order),
        cmocka_unit_test(a_member_that_leaves_keeps_its_partition_until_it_has_answered),
        cmocka_unit_test(a_waiting_member_that_leaves_is_not_chosen),
        cmocka_unit_test(a_nack_rewinds_and_the_member_stays_active),
        cmocka_unit_test(a_member_whose_connection_ended_comes_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
