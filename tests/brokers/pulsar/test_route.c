/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partitions: the two hashes against values of the official clients, and the turn of messages
 * without a key.
 */
#include "tests/support/test.h"

#include "brokers/pulsar/route.h"

struct vector {
    const char *key;
    uint32_t murmur3;
    uint32_t java;
};

static const struct vector vectors[] = {
    { "", 0, 0 },
    { "a", 1009084850, 97 },
    { "k1", 2110152746, 3366 },
    { "k2", 1479966664, 3367 },
    { "key-0", 1664612543, 101943362 },
    { "key1", 462881061, 3288498 },
    { "hello", 613153351, 99162322 },
    { "order-42", 1259446670, 1234255197 },
    { "\xc3\xa9", 269551495, 233 },
    { "\xf0\x9f\x98\x80", 1051995898, 1772899 },
};

static void
both_hashes_are_those_of_the_official_clients(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        struct lw_bytes key = lw_bytes_of(vectors[i].key);
        assert_int_equal(lw_pulsar_hash_murmur3(key), vectors[i].murmur3);
        assert_int_equal(lw_pulsar_hash_java_string(key), vectors[i].java);
    }
}

static void
bytes_that_are_no_text_hash_as_replacement_characters(void **state)
{
    (void)state;
    struct lw_bytes key = { "\xff", 1 };
    assert_int_equal(lw_pulsar_hash_java_string(key), 0xfffd);
}

static void
a_key_goes_by_its_masked_hash(void **state)
{
    (void)state;
    struct lw_pulsar_producer_settings options = { .hashing = LW_PULSAR_HASH_MURMUR3 };
    struct lw_pulsar_router router;
    lw_pulsar_router_init(&router, &options, 7);
    assert_int_equal(lw_pulsar_router_choose(&router, lw_bytes_of("k2"), 1, 10, 0), 4);
    options.hashing = LW_PULSAR_HASH_JAVA_STRING;
    assert_int_equal(lw_pulsar_router_choose(&router, lw_bytes_of("k2"), 1, 10, 0), 7);
    assert_int_equal(lw_pulsar_router_choose(&router, lw_bytes_of(""), 1, 10, 0), 0);
}

static uint32_t
choose(struct lw_pulsar_router *router, size_t bytes, uint64_t now)
{
    return lw_pulsar_router_choose(router, (struct lw_bytes){ NULL, 0 }, bytes, 3, now);
}

static void
without_batches_each_message_goes_to_the_next_partition(void **state)
{
    (void)state;
    struct lw_pulsar_producer_settings options = { .batches = false };
    struct lw_pulsar_router router;
    lw_pulsar_router_init(&router, &options, 2);
    uint32_t first = choose(&router, 1, 0);
    assert_int_equal(choose(&router, 1, 0), (first + 1) % 3);
    assert_int_equal(choose(&router, 1, 0), (first + 2) % 3);
    assert_int_equal(choose(&router, 1, 0), first);
}

static void
with_batches_the_turn_goes_on_when_one_would_be_full_or_old(void **state)
{
    (void)state;
    struct lw_pulsar_producer_settings options = {
        .batches = true, .batch_messages_max = 2, .batch_bytes_max = 100, .batch_delay_ns = 10
    };
    struct lw_pulsar_router router;
    lw_pulsar_router_init(&router, &options, 0);
    uint32_t first = choose(&router, 1, 1000);
    assert_int_equal(choose(&router, 1, 1000), first);
    assert_int_equal(choose(&router, 99, 1000), (first + 1) % 3); /* two were full */
    assert_int_equal(choose(&router, 2, 1000), (first + 2) % 3);  /* bytes */
    assert_int_equal(choose(&router, 2, 1011), first);            /* time */
}

static void
single_mode_stays_where_it_began(void **state)
{
    (void)state;
    struct lw_pulsar_producer_settings options = { .routing = LW_PULSAR_ROUTE_SINGLE };
    struct lw_pulsar_router router;
    lw_pulsar_router_init(&router, &options, 5);
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(choose(&router, 1, i), 2);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_hashes_are_those_of_the_official_clients),
        cmocka_unit_test(bytes_that_are_no_text_hash_as_replacement_characters),
        cmocka_unit_test(a_key_goes_by_its_masked_hash),
        cmocka_unit_test(without_batches_each_message_goes_to_the_next_partition),
        cmocka_unit_test(with_batches_the_turn_goes_on_when_one_would_be_full_or_old),
        cmocka_unit_test(single_mode_stays_where_it_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
