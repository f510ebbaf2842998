/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Key_Shared: the messages of a key go to one member, in order, also when they come again. A
 * member that comes or goes moves keys; a key that moves waits until nothing of it is left at its
 * earlier member.
 */
#include "tests/support/test.h"

#include "tests/brokers/memory/fixture.h"

#include <stdio.h>
#include <string.h>

enum { KEYS = 16 };

static struct fixture *
create(void)
{
    struct lw_memory_options options;
    lw_memory_options_init(&options);
    options.mode = LW_MEMORY_INDIVIDUAL;
    options.sharing = LW_MEMORY_KEY_SHARED;
    return fixture_create(&options);
}

static const char *
key_of(int i)
{
    static char key[16];
    snprintf(key, sizeof key, "key%d", i);
    return key;
}

/* One message for each key, whose value is the number of the key. */
static void
publish_each(struct fixture *fixture)
{
    for (int i = 0; i < KEYS; i++) {
        char value[16];
        snprintf(value, sizeof value, "%d", i);
        struct lw_memory_item item = lw_memory_item_of("jobs", key_of(i), value);
        assert_int_equal(lw_memory_hub_publish(fixture->hub, &item, NULL, NULL), LW_STATUS_OK);
    }
}

/* Receives all; marks which keys came, returns how many messages. */
static int
take(struct client *client, bool came[KEYS])
{
    int count = 0;
    memset(came, 0, KEYS * sizeof *came);
    const char *text = client_receive(client, client->sources[0], 100);
    for (const char *at = strchr(text, '='); at; at = strchr(at + 1, '=')) {
        int key = 0;
        assert_int_equal(sscanf(at, "=%d", &key), 1);
        came[key] = true;
        count++;
    }
    return count;
}

static void
one_member_has_all_keys(void **state)
{
    (void)state;
    struct fixture *fixture = create();
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", "k", 2);
    fixture_fill(fixture, "jobs", NULL, 1);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=m0 0:1=m1 0:2=m0");
    fixture_destroy(fixture);
}

static void
each_key_goes_to_one_of_two_members(void **state)
{
    (void)state;
    struct fixture *fixture = create();
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    struct client *b = fixture_member(fixture, "b", "jobs", "s");
    bool at_a[KEYS], at_b[KEYS], again[KEYS];
    publish_each(fixture);
    int count_a = take(a, at_a);
    int count_b = take(b, at_b);
    assert_int_equal(count_a + count_b, KEYS);
    assert_true(count_a > 0 && count_b > 0);
    publish_each(fixture);
    assert_int_equal(take(b, again), count_b);
    assert_memory_equal(again, at_b, sizeof again);
    assert_int_equal(take(a, again), count_a);
    assert_memory_equal(again, at_a, sizeof again);
    fixture_destroy(fixture);
}

static void
a_key_that_moves_waits_until_its_holder_has_settled_it(void **state)
{
    (void)state;
    struct fixture *fixture = create();
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    bool came[KEYS];
    publish_each(fixture);
    assert_int_equal(take(a, came), KEYS);
    struct client *b = fixture_member(fixture, "b", "jobs", "s");
    publish_each(fixture);
    assert_int_equal(take(b, came), 0);
    int stayed = take(a, came);
    for (size_t i = 0; i < KEYS; i++) {
        client_ack(a, i);
    }
    fixture_settle(fixture);
    assert_int_equal(take(b, came), KEYS - stayed);
    fixture_destroy(fixture);
}

static void
a_member_that_dies_leaves_its_keys_to_the_others(void **state)
{
    (void)state;
    struct fixture *fixture = create();
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    struct client *b = fixture_member(fixture, "b", "jobs", "s");
    bool came[KEYS];
    publish_each(fixture);
    int count_a = take(a, came);
    int count_b = take(b, came);
    fixture_kill(fixture, a, true);
    fixture_settle(fixture);
    assert_int_equal(take(b, came), count_a);
    assert_int_equal(count_a + count_b, KEYS);
    fixture_destroy(fixture);
}

static void
what_comes_again_comes_before_later_ones_of_its_key(void **state)
{
    (void)state;
    struct fixture *fixture = create();
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", "k", 4);
    assert_string_equal(client_receive(a, a->sources[0], 2), "0:0=m0 0:1=m1");
    client_nack(a, 0, 0);
    fixture_settle(fixture);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=m0x1 0:2=m2 0:3=m3");
    fixture_destroy(fixture);
}

static void
a_late_ack_takes_the_redelivery_of_a_key_back(void **state)
{
    (void)state;
    struct fixture *fixture = create();
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    fixture_fill(fixture, "jobs", "k", 2);
    client_receive(a, a->sources[0], 2);
    lw_memory_hub_lose(fixture->hub, "a");
    fixture_settle(fixture);
    client_events(a);
    client_ack(a, 0);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:1=m1x1");
    fixture_destroy(fixture);
}

static void
a_delay_holds_up_no_other_key(void **state)
{
    (void)state;
    struct fixture *fixture = create();
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    struct lw_memory_item late = lw_memory_item_of("jobs", "k", "late");
    late.delay_ms = 1000;
    lw_memory_hub_publish(fixture->hub, &late, NULL, NULL);
    fixture_fill(fixture, "jobs", "other", 1);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:1=m0");
    virtual_host_pass(&fixture->virtual_host, 1001 * LW_MS);
    assert_string_equal(client_receive(a, a->sources[0], 9), "0:0=late");
    fixture_destroy(fixture);
}

static void
an_ordering_key_comes_before_the_key(void **state)
{
    (void)state;
    struct fixture *fixture = create();
    struct client *a = fixture_member(fixture, "a", "jobs", "s");
    struct client *b = fixture_member(fixture, "b", "jobs", "s");
    bool at_a[KEYS], at_b[KEYS];
    for (int i = 0; i < KEYS; i++) {
        char value[16];
        snprintf(value, sizeof value, "%d", i);
        struct lw_memory_item item = lw_memory_item_of("jobs", key_of(i), value);
        item.ordering_key = lw_bytes_of("same");
        lw_memory_hub_publish(fixture->hub, &item, NULL, NULL);
    }
    int count_a = take(a, at_a);
    int count_b = take(b, at_b);
    assert_int_equal(count_a + count_b, KEYS);
    assert_true(count_a == 0 || count_b == 0);
    fixture_destroy(fixture);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_member_has_all_keys),
        cmocka_unit_test(each_key_goes_to_one_of_two_members),
        cmocka_unit_test(a_key_that_moves_waits_until_its_holder_has_settled_it),
        cmocka_unit_test(a_member_that_dies_leaves_its_keys_to_the_others),
        cmocka_unit_test(what_comes_again_comes_before_later_ones_of_its_key),
        cmocka_unit_test(a_late_ack_takes_the_redelivery_of_a_key_back),
        cmocka_unit_test(a_delay_holds_up_no_other_key),
        cmocka_unit_test(an_ordering_key_comes_before_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
