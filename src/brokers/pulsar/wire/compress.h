/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compression of payloads: none, LZ4 block, zlib stream, zstd frame, raw snappy block. The bytes
 * that come out lie in the caller's memory. A decompression bomb is refused before that memory
 * exists: lw_pulsar_uncompressed_check compares the claimed size with a bound, with what the
 * codec can possibly reach and with what the data says of itself. The output must have exactly
 * the claimed size. A codec keeps the contexts of zlib and zstd (making them anew costs more
 * than a message); they are made on first use, by those libraries' own allocators. One thread
 * at a time per codec.
 */
#ifndef LW_BROKERS_PULSAR_WIRE_COMPRESS_H
#define LW_BROKERS_PULSAR_WIRE_COMPRESS_H

#include "brokers/pulsar/wire/fault.h"
#include "brokers/pulsar/wire/proto.h"

enum lw_pulsar_compression {
    LW_PULSAR_COMPRESSION_NONE,
    LW_PULSAR_COMPRESSION_LZ4,
    LW_PULSAR_COMPRESSION_ZLIB,
    LW_PULSAR_COMPRESSION_ZSTD,
    LW_PULSAR_COMPRESSION_SNAPPY,
};
enum { LW_PULSAR_COMPRESSION_COUNT = LW_PULSAR_COMPRESSION_SNAPPY + 1 };

struct lw_pulsar_codec;

struct lw_pulsar_codec *lw_pulsar_codec_create(void); /* NULL: no memory */
void lw_pulsar_codec_destroy(struct lw_pulsar_codec *codec);

/* "none", "lz4", "zlib", "zstd", "snappy"; NULL for an unknown value. */
const char *lw_pulsar_compression_name(int32_t compression);
bool lw_pulsar_compression_parse(const char *name, int32_t *ret_compression);

/*
 * Says whether `packed` may be decompressed to `claimed` bytes (metadata.uncompressed_size) in
 * memory of at most `bytes_max`. Allocates nothing; call it before the memory is taken.
 */
enum lw_pulsar_fault lw_pulsar_uncompressed_check(int32_t compression, struct lw_bytes packed,
                                                  uint64_t claimed, uint64_t bytes_max);
/* Fills exactly `size` bytes of `out`. `out` may be NULL when size is 0. */
enum lw_pulsar_fault lw_pulsar_decompress(struct lw_pulsar_codec *codec, int32_t compression,
                                          struct lw_bytes packed, void *out, size_t size);

/* The most that compressing `size` bytes can take. 0: unknown codec or absurd size. */
size_t lw_pulsar_compress_bound(int32_t compression, size_t size);
/* Appends to the writer, which must have room for lw_pulsar_compress_bound more bytes. */
enum lw_pulsar_fault lw_pulsar_compress(struct lw_pulsar_codec *codec, int32_t compression,
                                        struct lw_bytes plain, struct lw_proto_writer *writer);

#endif
