/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checksum against published values, and the two ways of taking it against each other at
 * every length and alignment.
 */
#include "tests/support/test.h"

#include <string.h>

#include "brokers/pulsar/wire/crc32c.h"

static void
checksums_of_published_vectors_are_right(void **state)
{
    (void)state;
    uint8_t zeros[32] = { 0 };
    uint8_t ones[32];
    memset(ones, 0xff, sizeof ones);
    assert_int_equal(lw_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(lw_crc32c(0, zeros, 32), 0x8a9136aa);
    assert_int_equal(lw_crc32c(0, ones, 32), 0x62a8ab43);
    assert_int_equal(lw_crc32c(0, NULL, 0), 0);
    assert_int_equal(lw_crc32c_software(0, "123456789", 9), 0xe3069283);
}

static void
instruction_and_tables_agree_at_every_length_and_offset(void **state)
{
    (void)state;
    enum { BYTES = 14000 }; /* more than three blocks of the largest size, twice */
    static uint8_t bytes[BYTES];
    for (size_t i = 0; i < BYTES; i++) {
        bytes[i] = (uint8_t)(i * 131 + (i >> 7));
    }
    for (size_t size = 0; size < BYTES - 8; size += size < 1300 ? 1 : 37) {
        size_t offset = size % 8;
        assert_int_equal(lw_crc32c(7, bytes + offset, size),
                         lw_crc32c_software(7, bytes + offset, size));
    }
}

static void
checksum_of_parts_is_that_of_the_whole(void **state)
{
    (void)state;
    static uint8_t bytes[4000];
    memset(bytes, 0x5a, sizeof bytes);
    uint32_t whole = lw_crc32c(0, bytes, sizeof bytes);
    for (size_t cut = 0; cut <= sizeof bytes; cut += 199) {
        uint32_t first = lw_crc32c(0, bytes, cut);
        assert_int_equal(lw_crc32c(first, bytes + cut, sizeof bytes - cut), whole);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksums_of_published_vectors_are_right),
        cmocka_unit_test(instruction_and_tables_agree_at_every_length_and_offset),
        cmocka_unit_test(checksum_of_parts_is_that_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
