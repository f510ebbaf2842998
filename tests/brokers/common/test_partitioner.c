/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The partitioner against the values of Kafka's own unit test of murmur2, so that a message with
 * a key lies here where every Kafka client would put it. The value of the empty key is that of
 * librdkafka's own test.
 */
#include "tests/support/test.h"

#include "brokers/common/partitioner.h"

static void
hashes_are_those_of_the_java_client(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int32_t hash;
    } rows[] = {
        { "21", -973932308 },
        { "foobar", -790332482 },
        { "a-little-bit-long-string", -985981536 },
        { "a-little-bit-longer-string", -1486304829 },
        { "lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971 },
        { "abc", 479470107 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t hash = lw_partitioner_hash(lw_bytes_of(rows[i].key));
        assert_int_equal((int32_t)hash, rows[i].hash);
    }
}

static void
a_partition_is_the_positive_hash_modulo_the_count(void **state)
{
    (void)state;
    struct lw_bytes key = lw_bytes_of("foobar");
    assert_int_equal(lw_partitioner_choose(key, 7), (-790332482 & INT32_MAX) % 7);
    assert_int_equal(lw_partitioner_choose(key, 1), 0);
}

static void
an_empty_key_is_a_key(void **state)
{
    (void)state;
    assert_int_equal((int32_t)lw_partitioner_hash(lw_bytes_of("")), 275646681);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_those_of_the_java_client),
        cmocka_unit_test(a_partition_is_the_positive_hash_modulo_the_count),
        cmocka_unit_test(an_empty_key_is_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
