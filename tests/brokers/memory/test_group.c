/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consumer groups: rebalances in both protocols, generations, late answers, members that die or
 * overrun their revoke, commits that come too late or touch what belongs to somebody else.
 * Transcripts: a client is asked what happened, and tells it in one line.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/memory/fixture.h"

static struct fixture *
create(enum lw_memory_protocol protocol, int32_t partitions)
{
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.protocol = protocol;
    struct fixture *fixture = fixture_create(&options);
    lw_memory_hub_create_topic(fixture->hub, "orders", partitions);
    return fixture;
}

static struct client *
join(struct fixture *fixture, const char *name)
{
    struct client *client = fixture_client(fixture, name);
    client_subscribe(client, "orders", "g");
    client_start(client);
    fixture_settle(fixture);
    return client;
}

/* The owners' names by partition, such as "aabb"; '-' for none. */
static const char *
owners(struct fixture *fixture)
{
    static char text[16];
    int32_t count = lw_memory_hub_partitions(fixture->hub, "orders");
    for (int32_t p = 0; p < count; p++) {
        const char *owner = lw_memory_hub_owner(fixture->hub, "g", "orders", p);
        text[p] = owner ? *owner : '-';
    }
    text[count] = '\0';
    return text;
}

static void
an_eager_rebalance_takes_all_away_first(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EAGER, 4);
    struct client *a = join(fixture, "a");
    client_events(a);
    assert_string_equal(owners(fixture), "aaaa");
    struct client *b = join(fixture, "b");
    assert_string_equal(client_events(a), "revoking");
    assert_string_equal(client_events(b), "up");
    client_answer(a);
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "assigned orders/0@0, assigned orders/1@0");
    assert_string_equal(client_events(b), "assigned orders/2@0, assigned orders/3@0");
    assert_string_equal(owners(fixture), "aabb");
    assert_int_equal(lw_memory_hub_member_count(fixture->hub, "g"), 2);
    fixture_destroy(fixture);
}

static void
an_eager_assignment_has_one_generation_and_one_revoke(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EAGER, 3);
    lw_memory_hub_create_topic(fixture->hub, "mails", 2);
    struct client *a = fixture_client(fixture, "a");
    client_subscribe(a, "orders", "g");
    client_subscribe(a, "mails", "g");
    client_start(a);
    fixture_settle(fixture);
    client_events(a);
    for (int i = 1; i < 5; i++) {
        assert_int_equal(a->slots[i].generation, a->slots[0].generation);
    }
    lw_memory_hub_rebalance(fixture->hub, "g");
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "revoking");
    fixture_destroy(fixture);
}

static void
a_cooperative_rebalance_moves_only_what_must_move(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_COOPERATIVE, 4);
    struct client *a = join(fixture, "a");
    client_events(a);
    struct client *b = join(fixture, "b");
    assert_string_equal(client_events(a), "revoking, revoking");
    client_answer(a);
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "");
    assert_string_equal(client_events(b), "up, assigned orders/2@0, assigned orders/3@0");
    assert_string_equal(owners(fixture), "aabb");
    a->ops->stop_sources(a->broker);
    fixture_agree(fixture);
    assert_string_equal(owners(fixture), "bbbb");
    fixture_destroy(fixture);
}

static void
three_cooperative_members_end_balanced(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_COOPERATIVE, 7);
    join(fixture, "a");
    join(fixture, "b");
    join(fixture, "c");
    fixture_agree(fixture);
    assert_int_equal(client_count(owners(fixture), "a"), 3);
    assert_int_equal(client_count(owners(fixture), "b"), 2);
    assert_int_equal(client_count(owners(fixture), "c"), 2);
    fixture_destroy(fixture);
}

static void
nothing_is_received_while_a_revoke_is_unanswered(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_COOPERATIVE, 2);
    fixture_fill(fixture, "orders", NULL, 10);
    struct client *a = join(fixture, "a");
    client_events(a);
    join(fixture, "b");
    client_events(a);
    assert_int_equal(a->revoking_count, 1);
    assert_string_equal(client_receive(a, a->sources[0], 10), "");
    client_answer(a);
    fixture_settle(fixture);
    assert_int_equal(client_count(client_receive(a, a->sources[0], 10), "0:"), 5);
    fixture_destroy(fixture);
}

static void
a_commit_is_accepted_while_a_revoke_waits(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EAGER, 2);
    struct client *a = join(fixture, "a");
    join(fixture, "b");
    client_events(a);
    assert_int_equal(a->revoking_count, 1);
    client_commit(a, "orders", 1, 5);
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "committed ok");
    assert_int_equal(lw_memory_hub_committed(fixture->hub, "g", "orders", 1, NULL), 5);
    fixture_destroy(fixture);
}

static void
a_commit_between_two_generations_fails(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EAGER, 2);
    struct client *a = join(fixture, "a");
    struct client *b = join(fixture, "b");
    fixture_agree(fixture);
    lw_memory_hub_rebalance(fixture->hub, "g");
    fixture_settle(fixture);
    client_events(a);
    client_events(b);
    client_answer(a);
    client_commit(a, "orders", 0, 1);
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "committed state");
    assert_int_equal(lw_memory_hub_committed(fixture->hub, "g", "orders", 0, NULL), -1);
    fixture_destroy(fixture);
}

static void
nobody_guards_the_partition_of_somebody_else(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EAGER, 2);
    struct client *a = join(fixture, "a");
    client_events(a);
    struct client *b = join(fixture, "b");
    fixture_agree(fixture);
    assert_string_equal(owners(fixture), "ab");
    client_commit(b, "orders", 1, 9);
    fixture_settle(fixture);
    client_commit(a, "orders", 1, 4); /* once its own, b's now */
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "committed ok");
    assert_int_equal(lw_memory_hub_committed(fixture->hub, "g", "orders", 1, NULL), 4);
    fixture_destroy(fixture);
}

static void
a_member_that_overruns_its_revoke_is_expelled_without_a_sign(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EAGER, 2);
    struct client *a = join(fixture, "a");
    client_events(a);
    struct client *b = join(fixture, "b");
    assert_string_equal(client_events(a), "revoking");
    virtual_host_pass(&fixture->virtual_host, SECONDS(31));
    assert_string_equal(client_events(a), "");
    assert_string_equal(owners(fixture), "bb");
    assert_int_equal(lw_memory_hub_stats(fixture->hub).expulsions, 1);
    client_commit(a, "orders", 0, 5);
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "committed state");
    client_events(b);
    client_answer(a); /* now it finds out, and joins again */
    fixture_agree(fixture);
    assert_string_equal(owners(fixture), "ab");
    fixture_destroy(fixture);
}

static void
a_lost_assignment_comes_without_a_question(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EAGER, 2);
    struct client *a = join(fixture, "a");
    client_events(a);
    lw_memory_hub_lose(fixture->hub, "a");
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "lost, assigned orders/0@0, assigned orders/1@0");
    a->ops->revoke_done(a->broker, a->slots[0].generation - 1); /* too late: nothing */
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "");
    fixture_destroy(fixture);
}

static void
a_dead_member_keeps_its_partitions_until_its_session_ends(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EAGER, 2);
    fixture_fill(fixture, "orders", NULL, 10);
    struct client *a = join(fixture, "a");
    struct client *b = join(fixture, "b");
    fixture_agree(fixture);
    client_receive(a, a->sources[0], 5);
    client_commit(a, "orders", 0, 3);
    fixture_kill(fixture, a, true);
    virtual_host_pass(&fixture->virtual_host, SECONDS(9));
    assert_string_equal(client_events(b), "");
    assert_int_equal(lw_memory_hub_member_count(fixture->hub, "g"), 2);
    virtual_host_pass(&fixture->virtual_host, SECONDS(2));
    assert_string_equal(client_events(b), "revoking");
    client_answer(b);
    fixture_settle(fixture);
    assert_string_equal(client_events(b), "assigned orders/0@3, assigned orders/1@0");
    fixture_destroy(fixture);
}

static void
a_commit_in_flight_at_the_death_may_be_lost(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EAGER, 1);
    struct client *a = join(fixture, "a");
    client_events(a);
    client_commit(a, "orders", 0, 3);
    fixture_kill(fixture, a, false);
    assert_int_equal(lw_memory_hub_committed(fixture->hub, "g", "orders", 0, NULL), -1);
    fixture_destroy(fixture);
}

static void
leaving_asks_first_and_then_tells_the_others(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EAGER, 2);
    struct client *a = join(fixture, "a");
    struct client *b = join(fixture, "b");
    fixture_agree(fixture);
    a->ops->stop_sources(a->broker);
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "revoking");
    assert_string_equal(client_events(b), "");
    client_commit(a, "orders", 0, 1); /* the final commit */
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "committed ok");
    client_answer(a);
    fixture_agree(fixture);
    assert_string_equal(owners(fixture), "bb");
    assert_string_equal(client_events(a), "");
    fixture_destroy(fixture);
}

static void
new_partitions_and_new_topics_are_found(void **state)
{
    (void)state;
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.is_closed_world = true;
    struct fixture *fixture = fixture_create(&options);
    struct client *a = join(fixture, "a");
    assert_string_equal(client_events(a), "up, error not_found");
    assert_string_equal(a->last_error.code, "E0503");
    assert_false(a->last_error.is_fatal);
    lw_memory_hub_create_topic(fixture->hub, "orders", 1);
    fixture_settle(fixture);
    assert_string_equal(client_events(a), "assigned orders/0@0");
    lw_memory_hub_create_topic(fixture->hub, "orders", 2);
    fixture_agree(fixture);
    assert_string_equal(owners(fixture), "aa");
    fixture_destroy(fixture);
}

static void
two_groups_read_the_same_topic_apart(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EAGER, 1);
    fixture_fill(fixture, "orders", "k", 2);
    struct client *a = join(fixture, "a");
    client_subscribe(fixture_client(fixture, "b"), "orders", "other");
    struct client *b = fixture->clients[1];
    client_start(b);
    fixture_agree(fixture);
    client_commit(a, "orders", 0, 2);
    fixture_agree(fixture);
    assert_string_equal(client_receive(b, b->sources[0], 5), "0:0=m0 0:1=m1");
    assert_int_equal(lw_memory_hub_committed(fixture->hub, "other", "orders", 0, NULL), -1);
    fixture_destroy(fixture);
}

static void
a_rebalance_that_comes_during_another_is_taken_in(void **state)
{
    (void)state;
    struct fixture *fixture = create(LW_MEMORY_EAGER, 3);
    struct client *a = join(fixture, "a");
    client_events(a);
    join(fixture, "b");
    client_events(a);
    join(fixture, "c"); /* a has not answered yet */
    assert_string_equal(client_events(a), "");
    fixture_agree(fixture);
    assert_string_equal(owners(fixture), "abc");
    fixture_destroy(fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_eager_rebalance_takes_all_away_first),
        cmocka_unit_test(an_eager_assignment_has_one_generation_and_one_revoke),
        cmocka_unit_test(a_cooperative_rebalance_moves_only_what_must_move),
        cmocka_unit_test(three_cooperative_members_end_balanced),
        cmocka_unit_test(nothing_is_received_while_a_revoke_is_unanswered),
        cmocka_unit_test(a_commit_is_accepted_while_a_revoke_waits),
        cmocka_unit_test(a_commit_between_two_generations_fails),
        cmocka_unit_test(nobody_guards_the_partition_of_somebody_else),
        cmocka_unit_test(a_member_that_overruns_its_revoke_is_expelled_without_a_sign),
        cmocka_unit_test(a_lost_assignment_comes_without_a_question),
        cmocka_unit_test(a_dead_member_keeps_its_partitions_until_its_session_ends),
        cmocka_unit_test(a_commit_in_flight_at_the_death_may_be_lost),
        cmocka_unit_test(leaving_asks_first_and_then_tells_the_others),
        cmocka_unit_test(new_partitions_and_new_topics_are_found),
        cmocka_unit_test(two_groups_read_the_same_topic_apart),
        cmocka_unit_test(a_rebalance_that_comes_during_another_is_taken_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
