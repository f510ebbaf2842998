/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as compressed data: the first names the codec, the next three the claimed
 * size. What the check lets pass is decompressed into a block of exactly that size; and whatever
 * the bytes are, compressing them and back gives them again.
 */
#include <stdlib.h>
#include <string.h>

#include "brokers/pulsar/wire/compress.h"

enum { HEAD_BYTES = 4, BYTES_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check_unpacking(struct lw_pulsar_codec *codec, int32_t compression, struct lw_bytes packed,
                size_t claimed)
{
    if (lw_pulsar_uncompressed_check(compression, packed, claimed, BYTES_MAX) != LW_PULSAR_OK) {
        return;
    }
    lw_assert(claimed <= BYTES_MAX || compression == LW_PULSAR_COMPRESSION_NONE);
    void *out = malloc(claimed + 1); /* one more: malloc(0) may be NULL */
    (void)lw_pulsar_decompress(codec, compression, packed, out, claimed);
    free(out);
}

static void
check_round_trip(struct lw_pulsar_codec *codec, int32_t compression, struct lw_bytes plain)
{
    size_t bound = lw_pulsar_compress_bound(compression, plain.size);
    if (bound == 0) {
        return;
    }
    struct lw_proto_writer writer = lw_proto_writer_of(malloc(bound), bound);
    uint8_t *out = malloc(plain.size + 1);
    lw_assert(lw_pulsar_compress(codec, compression, plain, &writer) == LW_PULSAR_OK);
    lw_assert(lw_pulsar_decompress(codec, compression, lw_proto_written(&writer), out,
                                   plain.size) == LW_PULSAR_OK);
    lw_assert(memcmp(out, plain.data, plain.size) == 0);
    free(writer.data);
    free(out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct lw_pulsar_codec *codec; /* kept, as a consumer keeps it */
    if (codec == NULL) {
        codec = lw_pulsar_codec_create();
    }
    if (size < HEAD_BYTES) {
        return 0;
    }
    int32_t compression = bytes[0] % (LW_PULSAR_COMPRESSION_COUNT + 1);
    size_t claimed = (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
    struct lw_bytes data = { bytes + HEAD_BYTES, size - HEAD_BYTES };
    check_unpacking(codec, compression, data, claimed);
    check_round_trip(codec, compression, data);
    return 0;
}
