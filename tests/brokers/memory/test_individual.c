/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Individual settlement. Shared: members divide the messages, a nack brings one back after its
 * delay, redelivery is counted and comes first, a lost member's messages come again. Exclusive:
 * one member, a nack rewinds, and the generation ends with it.
 */
#include "tests/support/test.h"

#include "tests/brokers/memory/fixture.h"

static struct fixture *
create(enum lw_memory_sharing sharing)
{
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.mode = LW_MEMORY_INDIVIDUAL;
    options.sharing = sharing;
    return fixture_create(&options);
}

static uint64_t
backlog(struct fixture *fixture)
{
    return lw_memory_hub_backlog(fixture->hub, "s", "jobs");
}

static void
a_message_is_out_until_it_is_acknowledged(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_SHARED);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 3);
    assert_string_equal(client_receive(a, a->sources[0], 2), "0:0=m0 0:1=m1");
    assert_int_equal(backlog(fixture), 3);
    client_ack(a, 1);
    assert_int_equal(backlog(fixture), 2);
    assert_int_equal(lw_memory_hub_stats(fixture->hub).acks, 1);
    fixture_destroy(fixture);
}

static void
shared_members_divide_the_messages(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_SHARED);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    struct client *b = fixture_member(fixture, "b", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 4);
    assert_string_equal(client_receive(a, a->sources[0], 1), "0:0=m0");
    assert_string_equal(client_receive(b, b->sources[0], 2), "0:1=m1 0:2=m2");
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:3=m3");
    assert_string_equal(client_receive(b, b->sources[0], 9), "");
    fixture_destroy(fixture);
}

static void
a_nack_brings_one_message_back_after_its_delay(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_SHARED);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 2);
    client_receive(a, a->sources[0], 2);
    client_nack(a, 0, 500);
    virtual_host_pass(&fixture->virtual_host, 499 * LW_MS);
    assert_string_equal(client_receive(a, a->sources[0], 9), "");
    virtual_host_pass(&fixture->virtual_host, 2 * LW_MS);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=m0x1");
    client_nack(a, 2, 0);
    fixture_settle(fixture);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=m0x2");
    fixture_destroy(fixture);
}

static void
a_nack_without_a_delay_of_its_own_waits_for_the_default(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_SHARED);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 1);
    client_receive(a, a->sources[0], 1);
    client_nack(a, 0, -1);
    virtual_host_pass(&fixture->virtual_host, SECONDS(59));
    assert_string_equal(client_receive(a, a->sources[0], 9), "");
    virtual_host_pass(&fixture->virtual_host, SECONDS(2));
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=m0x1");
    fixture_destroy(fixture);
}

static void
redelivery_comes_first_and_in_order(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_SHARED);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 5);
    client_receive(a, a->sources[0], 3);
    client_nack(a, 2, 0);
    client_nack(a, 0, 0);
    fixture_settle(fixture);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=m0x1 0:2=m2x1 0:3=m3 0:4=m4");
    fixture_destroy(fixture);
}

static void
what_a_lost_member_had_comes_again_with_a_count(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_SHARED);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    struct client *b = fixture_member(fixture, "b", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 3);
    client_receive(a, a->sources[0], 2);
    client_ack(a, 0);
    fixture_kill(fixture, a, true);
    fixture_settle(fixture);
    assert_string_equal(client_receive(b, b->sources[0], 9), "0:1=m1x1 0:2=m2");
    fixture_destroy(fixture);
}

static void
a_lost_ack_is_redelivered_after_the_connection(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_SHARED);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 2);
    client_receive(a, a->sources[0], 2);
    lw_memory_hub_inject(fixture->hub,
                         &(struct lw_memory_fault){ .kind = LW_MEMORY_LOSE_ACK, .count = 1 });
    client_ack(a, 0);
    client_ack(a, 1);
    assert_int_equal(backlog(fixture), 1);
    lw_memory_hub_lose(fixture->hub, "a");
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "lost, assigned jobs/0@-1");
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=m0x1");
    fixture_destroy(fixture);
}

static void
a_late_ack_takes_the_redelivery_back(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_SHARED);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 1);
    client_receive(a, a->sources[0], 1);
    lw_memory_hub_lose(fixture->hub, "a");
    fixture_settle(fixture);
    client_events(a);
    client_ack(a, 0); /* it waits for its redelivery now, which is taken back by this */
    assert_int_equal(backlog(fixture), 0);
    assert_string_equal(client_receive(a, a->sources[0], 9), "");
    fixture_destroy(fixture);
}

static void
an_ack_twice_is_counted(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_SHARED);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 1);
    lw_memory_hub_inject(
        fixture->hub, &(struct lw_memory_fault){ .kind = LW_MEMORY_DELIVER_TWICE, .count = 1 });
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=m0 0:0=m0");
    client_ack(a, 0);
    client_ack(a, 1);
    assert_int_equal(lw_memory_hub_stats(fixture->hub).acks, 1);
    assert_int_equal(lw_memory_hub_stats(fixture->hub).acks_repeated, 1);
    fixture_destroy(fixture);
}

static void
a_delayed_publication_does_not_hold_up_others(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_SHARED);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    struct lw_memory_item late = lw_memory_item_of("jobs", NULL, "late");
    late.delay_ms = 1000;
    lw_memory_hub_publish(fixture->hub, &late, NULL, NULL);
    fixture_fill(fixture, "jobs", NULL, 1);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:1=m0");
    virtual_host_pass(&fixture->virtual_host, 1001 * LW_MS);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=late");
    fixture_destroy(fixture);
}

static void
an_exclusive_subscription_has_one_member(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EXCLUSIVE);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    struct client *b = fixture_client(fixture, "b");
    client_subscribe(b, "jobs", "s");
    client_start(b);
    fixture_settle(fixture);
    assert_string_equal(client_events(b), "up, error unavailable");
    virtual_host_pass(&fixture->virtual_host, SECONDS(5));
    assert_string_equal(client_events(b), "");
    fixture_kill(fixture, a, true);
    virtual_host_pass(&fixture->virtual_host, SECONDS(2));
    assert_string_equal(client_events(b), "assigned jobs/0@-1");
    fixture_destroy(fixture);
}

static void
an_exclusive_nack_rewinds_to_the_first_without_an_ack(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EXCLUSIVE);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 4);
    client_receive(a, a->sources[0], 3);
    client_ack(a, 1);
    client_nack(a, 2, 10);
    virtual_host_pass(&fixture->virtual_host, 11 * LW_MS);
    assert_string_equal(client_events(a), "lost, assigned jobs/0@-1");
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=m0 0:2=m2 0:3=m3");
    fixture_destroy(fixture);
}

static void
a_subscription_outlives_its_members(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_SHARED);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 2);
    client_receive(a, a->sources[0], 1);
    a->ops->stop_sources(a->broker);
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "revoking");
    client_ack(a, 0); /* until the answer it may settle */
    client_answer(a);
    fixture_fill(fixture, "jobs", NULL, 1);
    assert_string_equal(client_receive(a, a->sources[0], 9), "");
    struct client *b = fixture_member(fixture, "b", "jobs", "s");
    assert_string_equal(client_receive(b, b->sources[0], 9), "0:1=m1 0:2=m0");
    fixture_destroy(fixture);
}

static void
every_partition_has_a_generation_of_its_own(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_SHARED);
    lw_memory_hub_create_topic(fixture->hub, "jobs", 3);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    assert_int_equal(a->slot_count, 3);
    assert_int_not_equal(a->slots[0].generation, a->slots[1].generation);
    a->ops->stop_sources(a->broker);
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "revoking, revoking, revoking");
    fixture_destroy(fixture);
}

static void
retention_does_not_take_what_is_out(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_SHARED);
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", NULL, 3);
    client_receive(a, a->sources[0], 1);
    lw_memory_hub_raise_start(fixture->hub, "jobs", 0, 3);
    assert_int_equal(backlog(fixture), 1);
    client_nack(a, 0, 0);
    fixture_settle(fixture);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=m0x1");
    fixture_destroy(fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_out_until_it_is_acknowledged),
        cmocka_unit_test(shared_members_divide_the_messages),
        cmocka_unit_test(a_nack_brings_one_message_back_after_its_delay),
        cmocka_unit_test(a_nack_without_a_delay_of_its_own_waits_for_the_default),
        cmocka_unit_test(redelivery_comes_first_and_in_order),
        cmocka_unit_test(what_a_lost_member_had_comes_again_with_a_count),
        cmocka_unit_test(a_lost_ack_is_redelivered_after_the_connection),
        cmocka_unit_test(a_late_ack_takes_the_redelivery_back),
        cmocka_unit_test(an_ack_twice_is_counted),
        cmocka_unit_test(a_delayed_publication_does_not_hold_up_others),
        cmocka_unit_test(an_exclusive_subscription_has_one_member),
        cmocka_unit_test(an_exclusive_nack_rewinds_to_the_first_without_an_ack),
        cmocka_unit_test(a_subscription_outlives_its_members),
        cmocka_unit_test(every_partition_has_a_generation_of_its_own),
        cmocka_unit_test(retention_does_not_take_what_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
