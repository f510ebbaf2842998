/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hash: every byte and every bit of a key of any length matters, equal keys hash equally
 * wherever they lie, the seed matters, and few-bit tables fill evenly with keys as users have them.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"

static void
equal_keys_hash_equally_at_any_alignment(void **state)
{
    (void)state;
    char buffer[64];
    for (size_t offset = 0; offset < 16; offset++) {
        memcpy(buffer + offset, "customer-0000000000042-eu", 25);
        for (size_t size = 0; size <= 25; size++) {
            assert_true(lw_hash_bytes(buffer + offset, size, 9) ==
                        lw_hash_bytes("customer-0000000000042-eu", size, 9));
        }
    }
}

static void
every_bit_of_a_key_matters(void **state)
{
    (void)state;
    unsigned char key[70];
    for (size_t size = 1; size <= sizeof key; size++) {
        memset(key, 0x5a, sizeof key);
        uint64_t before = lw_hash_bytes(key, size, 1);
        for (size_t bit = 0; bit < size * 8; bit++) {
            key[bit / 8] ^= (unsigned char)(1u << bit % 8);
            assert_true(lw_hash_bytes(key, size, 1) != before);
            key[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
    }
}

static void
length_matters_even_for_zeros(void **state)
{
    (void)state;
    unsigned char zeros[64] = { 0 };
    uint64_t hashes[65];
    for (size_t size = 0; size <= 64; size++) {
        hashes[size] = lw_hash_bytes(zeros, size, 3);
        for (size_t shorter = 0; shorter < size; shorter++) {
            assert_true(hashes[size] != hashes[shorter]);
        }
    }
    assert_true(lw_hash_bytes(NULL, 0, 3) == hashes[0]);
}

static void
seed_matters(void **state)
{
    (void)state;
    assert_true(lw_hash_bytes("key", 3, 1) != lw_hash_bytes("key", 3, 2));
    assert_true(lw_hash_u64(5, 1) != lw_hash_u64(5, 2));
    assert_true(lw_hash_u64(5, 1) != lw_hash_u64(6, 1));
}

/* 65,536 keys in 1,024 buckets: 64 each, 8 standard deviations of room. */
static void
numbered_keys_fill_buckets_evenly(void **state)
{
    (void)state;
    unsigned low[1024] = { 0 };
    unsigned high[1024] = { 0 };
    for (unsigned i = 0; i < 65536; i++) {
        char key[32];
        int length = snprintf(key, sizeof key, "order-%u", i);
        uint64_t hash = lw_hash_bytes(key, (size_t)length, 0);
        low[hash % 1024]++;
        high[hash >> 54]++;
    }
    for (int i = 0; i < 1024; i++) {
        assert_in_range(low[i], 1, 128);
        assert_in_range(high[i], 1, 128);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_keys_hash_equally_at_any_alignment),
        cmocka_unit_test(every_bit_of_a_key_matters),
        cmocka_unit_test(length_matters_even_for_zeros),
        cmocka_unit_test(seed_matters),
        cmocka_unit_test(numbered_keys_fill_buckets_evenly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
