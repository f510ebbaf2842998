/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries, their table and acknowledgements in groups: order, sets of batches, what waits for a
 * receipt, what goes back; and the heap of negative acks.
 */
#include "tests/support/test.h"

#include "base/alloc.h"
#include "brokers/pulsar/acks.h"
#include "brokers/pulsar/nacks.h"

struct table {
    struct lw_pulsar_arrays arrays;
    struct lw_pulsar_entries entries;
    struct lw_pulsar_acks acks;
    struct lw_pulsar_nacks nacks;
    uint64_t live;
};

static struct table table;

static int
set_up(void **state)
{
    (void)state;
    table.live = lw_alloc_live();
    assert_int_equal(lw_pulsar_entries_init(&table.entries, &table.arrays, 7), LW_STATUS_OK);
    lw_pulsar_acks_init(&table.acks);
    lw_pulsar_nacks_init(&table.nacks);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    lw_pulsar_acks_deinit(&table.acks);
    lw_pulsar_nacks_deinit(&table.nacks);
    lw_pulsar_entries_deinit(&table.entries);
    lw_pulsar_arrays_deinit(&table.arrays);
    assert_int_equal(lw_alloc_live(), table.live);
    return 0;
}

static struct lw_pulsar_entry *
make(uint64_t ledger, uint64_t id, int32_t batch)
{
    struct lw_pulsar_entry *entry = lw_pulsar_entry_create(&table.entries, ledger, id, batch);
    assert_non_null(entry);
    return entry;
}

static struct lw_pulsar_entry *
acked(uint64_t ledger, uint64_t id)
{
    struct lw_pulsar_entry *entry = make(ledger, id, 0);
    entry->unacked[0] = 0;
    lw_pulsar_acks_add(&table.acks, entry);
    return entry;
}

static void
the_table_finds_what_is_in_it_while_entries_come_and_go(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 5000; i++) {
        (void)make(i % 3, i, 0);
        if (i >= 1000) {
            uint64_t old = i - 1000;
            struct lw_pulsar_entry *entry = lw_pulsar_held_find(&table.entries.held, old % 3,
                                                                old);
            assert_non_null(entry);
            assert_int_equal(entry->id, old);
            lw_pulsar_entry_tidy(entry); /* nothing of it is here */
            assert_null(lw_pulsar_held_find(&table.entries.held, old % 3, old));
        }
        assert_null(lw_pulsar_held_find(&table.entries.held, 3, i));
    }
    assert_int_equal(table.entries.held.count, 1000);
}

static void
ids_of_a_group_ascend_and_wait_for_their_receipt(void **state)
{
    (void)state;
    struct lw_list group;
    struct lw_pulsar_list ids;
    struct lw_pulsar_message_id id;
    int32_t validation;
    lw_list_init(&group);
    (void)acked(2, 5);
    (void)acked(1, 9);
    (void)acked(2, 1);
    assert_true(lw_pulsar_acks_take(&table.acks, &group, &ids, &validation));
    assert_int_equal(ids.count, 3);
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(&ids);
    const uint64_t expected[][2] = { { 1, 9 }, { 2, 1 }, { 2, 5 } };
    for (int i = 0; i < 3; i++) {
        assert_true(lw_pulsar_walk_id(&walk, &id));
        assert_int_equal(id.ledger, expected[i][0]);
        assert_int_equal(id.entry, expected[i][1]);
        assert_int_equal(id.ack_set.count, 0);
    }
    assert_int_equal(table.entries.held.count, 3);
    lw_pulsar_acks_confirm(&table.acks, &group);
    assert_int_equal(table.entries.held.count, 0);
}

static void
a_group_that_is_not_confirmed_goes_again(void **state)
{
    (void)state;
    struct lw_list group;
    struct lw_pulsar_list ids;
    int32_t validation;
    lw_list_init(&group);
    (void)acked(1, 1);
    assert_true(lw_pulsar_acks_take(&table.acks, &group, &ids, &validation));
    assert_false(lw_pulsar_acks_take(&table.acks, &group, &ids, &validation));
    lw_pulsar_acks_return(&table.acks, &group);
    assert_int_equal(table.acks.pending_count, 1);
    assert_true(lw_pulsar_acks_take(&table.acks, &group, &ids, &validation));
    assert_int_equal(ids.count, 1);
    lw_pulsar_acks_confirm(&table.acks, &group);
}

static void
a_batch_carries_the_set_of_what_is_left(void **state)
{
    (void)state;
    struct lw_list group;
    struct lw_pulsar_list ids;
    struct lw_pulsar_message_id id;
    uint64_t words[3] = { 0 };
    int32_t validation;
    lw_list_init(&group);
    struct lw_pulsar_entry *entry = make(1, 1, 130);
    lw_pulsar_bit_clear(entry->unacked, 0);
    lw_pulsar_bit_clear(entry->unacked, 1);
    lw_pulsar_bit_clear(entry->unacked, 129);
    lw_pulsar_acks_add(&table.acks, entry);
    assert_true(lw_pulsar_acks_take(&table.acks, &group, &ids, &validation));
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(&ids);
    assert_true(lw_pulsar_walk_id(&walk, &id));
    assert_int_equal(lw_pulsar_list_numbers(&id.ack_set, words, 3), 3);
    assert_true(words[0] == ~UINT64_C(3) && words[1] == UINT64_MAX && words[2] == 1);
    assert_int_equal(id.batch_index, -1);
    lw_pulsar_bit_clear(entry->unacked, 5);
    lw_pulsar_acks_add(&table.acks, entry); /* while the first is under way */
    assert_int_equal(table.acks.pending_count, 0);
    lw_pulsar_acks_confirm(&table.acks, &group);
    assert_int_equal(table.acks.pending_count, 1);
    assert_true(lw_pulsar_acks_take(&table.acks, &group, &ids, &validation));
    lw_pulsar_acks_confirm(&table.acks, &group);
}

static void
a_validation_error_goes_alone(void **state)
{
    (void)state;
    struct lw_list group;
    struct lw_pulsar_list ids;
    int32_t validation;
    lw_list_init(&group);
    (void)acked(1, 1);
    acked(1, 2)->validation = LW_PULSAR_INVALID_CHECKSUM;
    (void)acked(1, 3);
    const int32_t expected[] = { LW_PULSAR_NOT_INVALID, LW_PULSAR_INVALID_CHECKSUM,
                                 LW_PULSAR_NOT_INVALID };
    for (int i = 0; i < 3; i++) {
        assert_true(lw_pulsar_acks_take(&table.acks, &group, &ids, &validation));
        assert_int_equal(ids.count, 1);
        assert_int_equal(validation, expected[i]);
        lw_pulsar_acks_confirm(&table.acks, &group);
    }
}

static void
a_group_is_bounded_and_the_rest_follows(void **state)
{
    (void)state;
    struct lw_list group;
    struct lw_pulsar_list ids;
    int32_t validation;
    uint32_t count = 0;
    lw_list_init(&group);
    for (uint64_t i = 0; i < 2500; i++) {
        (void)acked(1, 2500 - i);
    }
    while (lw_pulsar_acks_take(&table.acks, &group, &ids, &validation)) {
        assert_true(ids.count <= LW_PULSAR_ACK_IDS_MAX);
        count += ids.count;
        lw_pulsar_acks_confirm(&table.acks, &group);
    }
    assert_int_equal(count, 2500);
    assert_int_equal(table.entries.held.count, 0);
}

static void
of_many_partial_batches_the_oldest_are_forgotten(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 3000; i++) {
        lw_pulsar_entry_remember(make(1, i, 2));
    }
    assert_int_equal(table.entries.held.count, table.entries.remembered_count);
    assert_in_range(table.entries.held.count, 1000, 1100);
    assert_null(lw_pulsar_held_find(&table.entries.held, 1, 0));
    assert_non_null(lw_pulsar_held_find(&table.entries.held, 1, 2999));
}

static void
negative_acks_come_due_in_order_and_can_be_taken_back(void **state)
{
    (void)state;
    struct lw_pulsar_entry *entries[100];
    for (uint64_t i = 0; i < 100; i++) {
        entries[i] = make(1, i, 0);
        assert_true(lw_pulsar_nacks_add(&table.nacks, entries[i], i * 37 % 101));
    }
    for (uint64_t i = 0; i < 100; i += 3) {
        lw_pulsar_nacks_remove(&table.nacks, entries[i]);
    }
    uint64_t last = 0;
    size_t count = 0;
    assert_null(lw_pulsar_nacks_pop(&table.nacks, lw_pulsar_nacks_next(&table.nacks) - 1));
    for (struct lw_pulsar_entry *entry; (entry = lw_pulsar_nacks_pop(&table.nacks, 1000));) {
        assert_true(entry->nack_due >= last && entry->id % 3 != 0);
        last = entry->nack_due;
        count++;
    }
    assert_int_equal(count, 66);
    assert_true(lw_pulsar_nacks_next(&table.nacks) == UINT64_MAX);
}

static void
the_delay_grows_up_to_its_cap(void **state)
{
    (void)state;
    assert_int_equal(lw_pulsar_nacks_delay(100, 0, 2, 5), 100);
    assert_int_equal(lw_pulsar_nacks_delay(100, 1000, 2, 0), 100);
    assert_int_equal(lw_pulsar_nacks_delay(100, 1000, 2, 2), 400);
    assert_int_equal(lw_pulsar_nacks_delay(100, 1000, 3, 2), 900);
    assert_int_equal(lw_pulsar_nacks_delay(100, 1000, 1.5, 2), 225);
    assert_int_equal(lw_pulsar_nacks_delay(100, 1000, 2, UINT32_MAX), 1000);
    assert_int_equal(lw_pulsar_nacks_delay(100, 1000, 1, UINT32_MAX), 100);
    assert_int_equal(lw_pulsar_nacks_delay(0, 1000, 2, UINT32_MAX), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_table_finds_what_is_in_it_while_entries_come_and_go),
        TEST(ids_of_a_group_ascend_and_wait_for_their_receipt),
        TEST(a_group_that_is_not_confirmed_goes_again),
        TEST(a_batch_carries_the_set_of_what_is_left),
        TEST(a_validation_error_goes_alone),
        TEST(a_group_is_bounded_and_the_rest_follows),
        TEST(of_many_partial_batches_the_oldest_are_forgotten),
        TEST(negative_acks_come_due_in_order_and_can_be_taken_back),
        TEST(the_delay_grows_up_to_its_cap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
