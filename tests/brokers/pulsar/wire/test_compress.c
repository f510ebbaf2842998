/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four codecs: both ways, exact sizes, claims that would fill the memory, damaged data, the
 * payloads that another client made. And the table of a broker's error codes.
 */
#include "tests/support/test.h"

#include <string.h>

#include "brokers/pulsar/wire/compress.h"
#include "tests/brokers/pulsar/wire/captures.h"

enum { PLAIN_BYTES = 100000, ROOM_BYTES = 2 * PLAIN_BYTES };

struct world {
    struct lw_pulsar_codec *codec;
    uint8_t plain[PLAIN_BYTES];
    uint8_t packed[ROOM_BYTES];
    uint8_t out[PLAIN_BYTES];
};

static int
set_up(void **state)
{
    struct world *world = test_calloc(1, sizeof *world);
    world->codec = lw_pulsar_codec_create();
    for (size_t i = 0; i < PLAIN_BYTES; i++) {
        world->plain[i] = (uint8_t)("compressible "[i % 13] + (i % 997 == 0));
    }
    *state = world;
    return 0;
}

static int
tear_down(void **state)
{
    struct world *world = *state;
    lw_pulsar_codec_destroy(world->codec);
    test_free(world);
    return 0;
}

static struct lw_bytes
pack(struct world *world, int32_t compression, size_t size)
{
    struct lw_proto_writer writer = lw_proto_writer_of(world->packed, ROOM_BYTES);
    struct lw_bytes plain = { world->plain, size };
    assert_true(lw_pulsar_compress_bound(compression, size) <= ROOM_BYTES);
    assert_int_equal(lw_pulsar_compress(world->codec, compression, plain, &writer), 0);
    return lw_proto_written(&writer);
}

static void
every_codec_gives_back_what_it_took(void **state)
{
    struct world *world = *state;
    const size_t sizes[] = { 0, 1, 100, 65536, PLAIN_BYTES };
    for (int32_t codec = 0; codec < LW_PULSAR_COMPRESSION_COUNT; codec++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct lw_bytes packed = pack(world, codec, sizes[i]);
            memset(world->out, 0, PLAIN_BYTES);
            assert_int_equal(lw_pulsar_uncompressed_check(codec, packed, sizes[i], PLAIN_BYTES),
                             LW_PULSAR_OK);
            assert_int_equal(
                lw_pulsar_decompress(world->codec, codec, packed, world->out, sizes[i]),
                LW_PULSAR_OK);
            assert_memory_equal(world->out, world->plain, sizes[i]);
        }
    }
}

static void
any_other_claimed_size_is_refused(void **state)
{
    struct world *world = *state;
    const size_t claims[] = { 0, 1, 999, 1001, PLAIN_BYTES };
    for (int32_t codec = 0; codec < LW_PULSAR_COMPRESSION_COUNT; codec++) {
        struct lw_bytes packed = pack(world, codec, 1000);
        for (size_t i = 0; i < sizeof claims / sizeof claims[0]; i++) {
            assert_int_not_equal(
                lw_pulsar_decompress(world->codec, codec, packed, world->out, claims[i]),
                LW_PULSAR_OK);
        }
    }
}

static void
claims_over_the_bound_are_refused_before_any_memory(void **state)
{
    struct world *world = *state;
    for (int32_t codec = LW_PULSAR_COMPRESSION_LZ4; codec < LW_PULSAR_COMPRESSION_COUNT;
         codec++) {
        struct lw_bytes packed = pack(world, codec, 5000);
        assert_int_equal(lw_pulsar_uncompressed_check(codec, packed, 5000, 5000), LW_PULSAR_OK);
        assert_int_equal(lw_pulsar_uncompressed_check(codec, packed, 5000, 4999),
                         LW_PULSAR_SIZE_REFUSED);
        assert_int_equal(lw_pulsar_uncompressed_check(codec, packed, UINT32_MAX, UINT64_MAX),
                         LW_PULSAR_SIZE_REFUSED);
    }
}

static void
claims_that_no_codec_can_reach_are_refused(void **state)
{
    (void)state;
    struct lw_bytes tiny = { "\x78\x9c\x03\x00", 4 };
    uint64_t huge = 100 << 20;
    for (int32_t codec = LW_PULSAR_COMPRESSION_LZ4; codec < LW_PULSAR_COMPRESSION_COUNT;
         codec++) {
        assert_int_not_equal(lw_pulsar_uncompressed_check(codec, tiny, huge, 2 * huge),
                             LW_PULSAR_OK);
    }
}

static void
damaged_data_never_leaves_its_bounds(void **state)
{
    struct world *world = *state;
    for (int32_t codec = LW_PULSAR_COMPRESSION_LZ4; codec < LW_PULSAR_COMPRESSION_COUNT;
         codec++) {
        struct lw_bytes packed = pack(world, codec, 3000);
        for (size_t bit = 0; bit < 8 * packed.size; bit++) {
            uint8_t *copy = test_malloc(packed.size);
            uint8_t *out = test_malloc(3000);
            memcpy(copy, packed.data, packed.size);
            copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
            lw_pulsar_decompress(world->codec, codec, (struct lw_bytes){ copy, packed.size },
                                 out, 3000);
            test_free(out);
            test_free(copy);
        }
        struct lw_bytes whole = pack(world, codec, 3000); /* the contexts are still of use */
        assert_int_equal(lw_pulsar_decompress(world->codec, codec, whole, world->out, 3000), 0);
    }
}

static void
truncated_data_is_corrupt(void **state)
{
    struct world *world = *state;
    for (int32_t codec = LW_PULSAR_COMPRESSION_LZ4; codec < LW_PULSAR_COMPRESSION_COUNT;
         codec++) {
        struct lw_bytes packed = pack(world, codec, 3000);
        for (size_t size = 0; size < packed.size; size++) {
            struct lw_bytes part = { packed.data, size };
            assert_int_not_equal(
                lw_pulsar_decompress(world->codec, codec, part, world->out, 3000),
                LW_PULSAR_OK);
        }
    }
}

static void
unknown_codec_is_named(void **state)
{
    struct world *world = *state;
    int32_t compression = -1;
    struct lw_bytes packed = { "x", 1 };
    assert_int_equal(lw_pulsar_decompress(world->codec, 5, packed, world->out, 1),
                     LW_PULSAR_CODEC_UNKNOWN);
    assert_null(lw_pulsar_compression_name(5));
    assert_true(lw_pulsar_compression_parse("snappy", &compression));
    assert_int_equal(compression, LW_PULSAR_COMPRESSION_SNAPPY);
    assert_false(lw_pulsar_compression_parse("gzip", &compression));
}

static void
captured_payloads_of_another_client_decompress(void **state)
{
    struct world *world = *state;
    size_t index;
    json_t *capture;
    unsigned seen = 0;
    json_t *captures = captures_load();
    json_array_foreach(captures, index, capture)
    {
        const json_t *meta = json_object_get(capture, "meta");
        int codec = (int)json_integer_value(json_object_get(meta, "compression"));
        size_t size = (size_t)json_integer_value(json_object_get(meta, "uncompressed_size"));
        if (codec != 0) {
            struct lw_bytes packed = hex_bytes(
                json_string_value(json_object_get(capture, "payload_hex")));
            assert_int_equal(
                lw_pulsar_decompress(world->codec, codec, packed, world->out, size), 0);
            seen |= 1u << codec;
            hex_free(packed);
        }
    }
    json_decref(captures);
    assert_int_equal(seen, 0x1e); /* all four */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec_gives_back_what_it_took),
        cmocka_unit_test(any_other_claimed_size_is_refused),
        cmocka_unit_test(claims_over_the_bound_are_refused_before_any_memory),
        cmocka_unit_test(claims_that_no_codec_can_reach_are_refused),
        cmocka_unit_test(damaged_data_never_leaves_its_bounds),
        cmocka_unit_test(truncated_data_is_corrupt),
        cmocka_unit_test(unknown_codec_is_named),
        cmocka_unit_test(captured_payloads_of_another_client_decompress),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
