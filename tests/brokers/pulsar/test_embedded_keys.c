/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Key_Shared on the embedded broker: hashes and slots as seen on a real one, sticky ranges with
 * their borders, draining when a consumer joins, order of a key.
 */
#include "tests/support/test.h"

#include <string.h>

#include "tests/brokers/pulsar/talk.h"
#include "tests/support/pulsar/embedded_state.h"

enum { KEY_SHARED = LW_PULSAR_SUB_KEY_SHARED };

static int
setup(void **state)
{
    *state = talk_create(NULL);
    talk_join(*state, 0);
    return 0;
}

static int
teardown(void **state)
{
    talk_destroy(*state);
    return 0;
}

static struct lw_bytes
text(const char *from)
{
    return (struct lw_bytes){ from, strlen(from) };
}

static void
hashes_and_slots_are_those_of_other_clients(void **state)
{
    static const struct {
        const char *key;
        uint32_t masked;
        uint32_t sticky;
    } rows[] = {
        { "", 0, 1 },
        { "a", 1009084850, 27058 },
        { "k1", 2110152746, 24618 },
        { "k2", 1479966664, 32712 },
        { "key-0", 1664612543, 63679 },
        { "key1", 462881061, 293 },
        { "hello", 613153351, 64071 },
        { "order-42", 1259446670, 41358 },
        { "\xc3\xa9", 269551495, 1927 },
        { "\xf0\x9f\x98\x80", 1051995898, 12026 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(embedded_hash(text(rows[i].key)), rows[i].masked);
        assert_int_equal(embedded_slot_sticky(text(rows[i].key)), rows[i].sticky);
        assert_int_equal(embedded_slot_divided(text(rows[i].key)), rows[i].masked % 65535 + 1);
    }
}

static void
subscribe_ranges(struct talk *talk, uint64_t id, const char *name, int32_t start, int32_t end)
{
    uint8_t space[64];
    struct lw_proto_writer writer = lw_proto_writer_of(space, sizeof space);
    lw_pulsar_list_put_range(&writer, (struct lw_pulsar_range){ start, end });
    struct lw_pulsar_command command = talk_subscribe_command(KEY_SHARED, id, name);
    command.subscribe.key_shared_meta.mode = LW_PULSAR_KEY_SHARED_STICKY;
    command.subscribe.key_shared_meta.ranges = lw_pulsar_list_of(&writer);
    talk_send(talk, &talk->talkers[0], &command);
}

static void
sticky_ranges_hold_both_their_ends(void **state)
{
    struct talk *talk = *state;
    struct embedded_consumer_info info;
    subscribe_ranges(talk, 1, "low", 0, 27058);
    talk_expect(talk, &talk->talkers[0], LW_PULSAR_SUCCESS);
    subscribe_ranges(talk, 2, "high", 27059, 65535);
    talk_expect(talk, &talk->talkers[0], LW_PULSAR_SUCCESS);
    talk_flow(talk, &talk->talkers[0], 1, 10);
    talk_flow(talk, &talk->talkers[0], 2, 10);
    talk_fill(talk, 1, 0, "a");
    talk_fill(talk, 2, 0, "k2");
    assert_int_equal(talk_entries(talk, &talk->talkers[0], NULL), 3);
    assert_true(embedded_consumer(talk->broker, "t", "low", &info));
    assert_int_equal(info.messages_sent, 1);
    assert_true(embedded_consumer(talk->broker, "t", "high", &info));
    assert_int_equal(info.messages_sent, 2);
}

static void
sticky_ranges_that_meet_are_refused(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    subscribe_ranges(talk, 1, "low", 0, 100);
    talk_expect(talk, talker, LW_PULSAR_SUCCESS);
    subscribe_ranges(talk, 2, "too", 100, 200);
    assert_int_equal(talk_expect(talk, talker, LW_PULSAR_ERROR)->error.error,
                     LW_PULSAR_CONSUMER_ASSIGN_ERROR);
    struct lw_pulsar_command divided = talk_subscribe_command(KEY_SHARED, 3, "other");
    talk_send(talk, talker, &divided);
    assert_int_equal(talk_expect(talk, talker, LW_PULSAR_ERROR)->error.error,
                     LW_PULSAR_CONSUMER_BUSY);
}

/* Fills keys k0 to k(keys-1), `each` times. */
static void
fill_keys(struct talk *talk, int keys, int each)
{
    embedded_fill(talk->broker, "t", (uint64_t)(keys * each), 10, (uint32_t)keys, 0);
}

/* Ranges that a real broker published for consumers that joined in this order. */
static void
a_ring_is_divided_as_by_a_real_broker(void **state)
{
    struct talk *talk = *state;
    static const char *const names[] = { "c1", "c2", "c2", "worker-7" };
    static const struct {
        int consumer;
        uint32_t start;
        uint32_t end;
    } ranges[] = {
        { 0, 629, 1031 },  { 0, 1508, 1726 }, { 0, 1767, 1870 }, { 0, 64608, 64838 },
        { 1, 1382, 1424 }, { 1, 1909, 2082 }, { 1, 2457, 2830 }, { 1, 64386, 64399 },
        { 2, 1, 122 },     { 2, 1161, 1381 }, { 2, 1425, 1507 }, { 2, 65494, 65535 },
        { 3, 123, 628 },   { 3, 1032, 1160 }, { 3, 1727, 1766 }, { 3, 65303, 65493 },
    };
    for (uint64_t i = 0; i < 4; i++) {
        talk_subscribe(talk, &talk->talkers[0], KEY_SHARED, i, names[i]);
    }
    const struct embedded_topic *topic = embedded_topic_find(talk->broker, "t");
    const struct embedded_subscription *subscription = embedded_subscription_find(topic,
                                                                                  text("s"));
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        uint64_t id = (uint64_t)ranges[i].consumer;
        assert_int_equal(embedded_slot_owner(subscription, ranges[i].start)->id, id);
        assert_int_equal(embedded_slot_owner(subscription, ranges[i].end)->id, id);
    }
}

static void
one_who_joins_gets_a_key_when_its_old_owner_is_done_with_it(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    uint64_t entries[256];
    struct embedded_consumer_info info;
    talk_subscribe(talk, talker, KEY_SHARED, 1, "old");
    talk_flow(talk, talker, 1, 1000);
    fill_keys(talk, 20, 1);
    assert_int_equal(talk_entries(talk, talker, entries), 20);
    struct talker *other = talk_join(talk, 1);
    talk_subscribe(talk, other, KEY_SHARED, 2, "new");
    talk_flow(talk, other, 2, 1000);
    fill_keys(talk, 20, 1);
    assert_int_equal(talk_entries(talk, other, NULL), 0);
    size_t kept = talk_entries(talk, talker, NULL);
    assert_in_range(kept, 1, 19);
    talk_ids(talk, talker, LW_PULSAR_ACK, 1, entries, 20);
    assert_int_equal(talk_entries(talk, other, NULL), 20 - kept);
    assert_true(embedded_consumer(talk->broker, "t", "new", &info));
    assert_int_equal(info.messages_sent, 20 - kept);
}

static void
out_of_order_delivery_does_not_wait_for_it(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    struct lw_pulsar_command command = talk_subscribe_command(KEY_SHARED, 1, "old");
    command.subscribe.key_shared_meta.allow_out_of_order_delivery = true;
    talk_send(talk, talker, &command);
    talk_expect(talk, talker, LW_PULSAR_SUCCESS);
    talk_flow(talk, talker, 1, 1000);
    fill_keys(talk, 20, 1);
    assert_int_equal(talk_entries(talk, talker, NULL), 20);
    struct talker *other = talk_join(talk, 1);
    command.subscribe.consumer_name = text("new");
    talk_send(talk, other, &command);
    talk_expect(talk, other, LW_PULSAR_SUCCESS);
    talk_flow(talk, other, 1, 1000);
    fill_keys(talk, 20, 1);
    size_t moved = talk_entries(talk, other, NULL);
    assert_in_range(moved, 1, 19);
    assert_int_equal(talk_entries(talk, talker, NULL), 20 - moved);
}

static void
a_key_stays_in_order_when_its_owner_has_no_permits_for_a_while(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    uint64_t entries[256];
    talk_subscribe(talk, talker, KEY_SHARED, 1, "one");
    talk_fill(talk, 6, 0, "k1");
    for (size_t i = 0; i < 6; i++) {
        talk_flow(talk, talker, 1, 1);
        assert_int_equal(talk_entries(talk, talker, entries), 1);
        assert_int_equal(entries[0], i);
    }
}

static void
a_consumer_without_permits_does_not_hold_up_the_keys_of_others(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    struct embedded_subscription_info info;
    talk_subscribe(talk, talker, KEY_SHARED, 1, "one");
    talk_subscribe(talk, talker, KEY_SHARED, 2, "two");
    talk_flow(talk, talker, 1, 1000);
    fill_keys(talk, 40, 5);
    size_t first = talk_entries(talk, talker, NULL);
    assert_in_range(first, 5, 195);
    assert_int_equal(first % 5, 0);
    assert_true(embedded_subscription(talk->broker, "t", "s", &info));
    assert_int_equal(info.waiting, 200 - first);
    talk_flow(talk, talker, 2, 1000);
    assert_int_equal(talk_entries(talk, talker, NULL), 200 - first);
}

static void
an_ordering_key_wins_over_the_partition_key(void **state)
{
    struct talk *talk = *state;
    struct talker *talker = &talk->talkers[0];
    struct embedded_consumer_info info;
    struct embedded_publish message = { .key = "k2", .ordering_key = "a" };
    subscribe_ranges(talk, 1, "of-a", 27058, 27058);
    talk_expect(talk, talker, LW_PULSAR_SUCCESS);
    talk_flow(talk, talker, 1, 10);
    embedded_publish(talk->broker, "t", &message);
    assert_int_equal(talk_entries(talk, talker, NULL), 1);
    message = (struct embedded_publish){ .key = "k2" };
    embedded_publish(talk->broker, "t", &message);
    assert_int_equal(talk_entries(talk, talker, NULL), 0);
    assert_true(embedded_consumer(talk->broker, "t", "of-a", &info));
    assert_int_equal(info.messages_sent, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_and_slots_are_those_of_other_clients),
        TEST(sticky_ranges_hold_both_their_ends),
        TEST(sticky_ranges_that_meet_are_refused),
        TEST(a_ring_is_divided_as_by_a_real_broker),
        TEST(one_who_joins_gets_a_key_when_its_old_owner_is_done_with_it),
        TEST(out_of_order_delivery_does_not_wait_for_it),
        TEST(a_key_stays_in_order_when_its_owner_has_no_permits_for_a_while),
        TEST(a_consumer_without_permits_does_not_hold_up_the_keys_of_others),
        TEST(an_ordering_key_wins_over_the_partition_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
