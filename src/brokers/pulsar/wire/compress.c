/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The four codecs behind one face. The first check of a claimed size is arithmetic: what LZ4 and
 * zlib can reach at best, and what snappy and zstd say at the beginning of their data. Contexts
 * of zlib and zstd are made when first used and kept. LZ4 is always decoded by the function that
 * knows both sizes.
 */
#include "brokers/pulsar/wire/compress.h"

#include <lz4.h>
#include <snappy-c.h>
#include <string.h>
#define ZLIB_CONST /* next_in is const */
#include <zlib.h>
#include <zstd.h>

#include "base/alloc.h"

enum {
    LZ4_RATIO_MAX = 255,   /* one byte of a length stands for 255 */
    ZLIB_RATIO_MAX = 1032, /* 258 bytes by two bits */
    RATIO_SLACK_BYTES = 64,
    ZSTD_LEVEL = 3, /* as other clients */
};

struct lw_pulsar_codec {
    z_stream inflate;
    z_stream deflate;
    bool has_inflate;
    bool has_deflate;
    ZSTD_DCtx *unzstd;
    ZSTD_CCtx *zstd;
};

static const char *const names[LW_PULSAR_COMPRESSION_COUNT] = { "none", "lz4", "zlib", "zstd",
                                                                "snappy" };

struct lw_pulsar_codec *
lw_pulsar_codec_create(void)
{
    return (struct lw_pulsar_codec *)lw_alloc(sizeof(struct lw_pulsar_codec));
}

void
lw_pulsar_codec_destroy(struct lw_pulsar_codec *codec)
{
    if (codec == NULL) {
        return;
    }
    if (codec->has_inflate) {
        inflateEnd(&codec->inflate);
    }
    if (codec->has_deflate) {
        deflateEnd(&codec->deflate);
    }
    ZSTD_freeDCtx(codec->unzstd);
    ZSTD_freeCCtx(codec->zstd);
    lw_free(codec);
}

const char *
lw_pulsar_compression_name(int32_t compression)
{
    bool is_known = compression >= 0 && compression < LW_PULSAR_COMPRESSION_COUNT;
    return is_known ? names[compression] : NULL;
}

bool
lw_pulsar_compression_parse(const char *name, int32_t *ret_compression)
{
    for (int32_t i = 0; i < LW_PULSAR_COMPRESSION_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            *ret_compression = i;
            return true;
        }
    }
    return false;
}

/* -- Claimed sizes ---------------------------------------------------------------------------- */

static enum lw_pulsar_fault
check_ratio(struct lw_bytes packed, uint64_t claimed, uint64_t ratio_max)
{
    bool is_possible = claimed <= packed.size * ratio_max + RATIO_SLACK_BYTES;
    return is_possible ? LW_PULSAR_OK : LW_PULSAR_SIZE_REFUSED;
}

static enum lw_pulsar_fault
check_zstd(struct lw_bytes packed, uint64_t claimed)
{
    unsigned long long said = ZSTD_getFrameContentSize(packed.data, packed.size);
    if (said == ZSTD_CONTENTSIZE_ERROR) {
        return LW_PULSAR_DATA_CORRUPT;
    }
    bool agrees = said == ZSTD_CONTENTSIZE_UNKNOWN || said == claimed;
    return agrees ? LW_PULSAR_OK : LW_PULSAR_SIZE_REFUSED;
}

static enum lw_pulsar_fault
check_snappy(struct lw_bytes packed, uint64_t claimed)
{
    size_t said;
    if (snappy_uncompressed_length((const char *)packed.data, packed.size, &said) !=
        SNAPPY_OK) {
        return LW_PULSAR_DATA_CORRUPT;
    }
    return said == claimed ? LW_PULSAR_OK : LW_PULSAR_SIZE_REFUSED;
}

/* Nothing became nothing: some clients do not even run the codec then. */
static bool
is_empty(struct lw_bytes packed, uint64_t claimed)
{
    return packed.size == 0 && claimed == 0;
}

enum lw_pulsar_fault
lw_pulsar_uncompressed_check(int32_t compression, struct lw_bytes packed, uint64_t claimed,
                             uint64_t bytes_max)
{
    if (lw_pulsar_compression_name(compression) == NULL) {
        return LW_PULSAR_CODEC_UNKNOWN;
    }
    bool is_plain = compression == LW_PULSAR_COMPRESSION_NONE;
    uint64_t size = is_plain ? packed.size : claimed;
    if (size > bytes_max || size > INT32_MAX || packed.size > INT32_MAX) {
        return LW_PULSAR_SIZE_REFUSED;
    }
    if (is_plain || is_empty(packed, claimed)) {
        return LW_PULSAR_OK;
    }
    switch ((enum lw_pulsar_compression)compression) {
    case LW_PULSAR_COMPRESSION_NONE:
        break;
    case LW_PULSAR_COMPRESSION_LZ4:
        return check_ratio(packed, claimed, LZ4_RATIO_MAX);
    case LW_PULSAR_COMPRESSION_ZLIB:
        return check_ratio(packed, claimed, ZLIB_RATIO_MAX);
    case LW_PULSAR_COMPRESSION_ZSTD:
        return check_zstd(packed, claimed);
    case LW_PULSAR_COMPRESSION_SNAPPY:
        return check_snappy(packed, claimed);
    }
    return LW_PULSAR_OK;
}

/* -- Decompression ---------------------------------------------------------------------------- */

static bool
unpack_lz4(struct lw_bytes packed, void *out, size_t size)
{
    return LZ4_decompress_safe((const char *)packed.data, (char *)out, (int)packed.size,
                               (int)size) == (int)size;
}

static bool
unpack_snappy(struct lw_bytes packed, void *out, size_t size)
{
    size_t room = size;
    return snappy_uncompress((const char *)packed.data, packed.size, (char *)out, &room) ==
               SNAPPY_OK &&
           room == size;
}

static enum lw_pulsar_fault
unpack_zstd(struct lw_pulsar_codec *codec, struct lw_bytes packed, void *out, size_t size)
{
    if (codec->unzstd == NULL) {
        codec->unzstd = ZSTD_createDCtx();
    }
    if (codec->unzstd == NULL) {
        return LW_PULSAR_NO_MEMORY;
    }
    size_t made = ZSTD_decompressDCtx(codec->unzstd, out, size, packed.data, packed.size);
    return !ZSTD_isError(made) && made == size ? LW_PULSAR_OK : LW_PULSAR_DATA_CORRUPT;
}

static enum lw_pulsar_fault
unpack_zlib(struct lw_pulsar_codec *codec, struct lw_bytes packed, void *out, size_t size)
{
    z_stream *stream = &codec->inflate;
    if (!codec->has_inflate) {
        if (inflateInit(stream) != Z_OK) {
            return LW_PULSAR_NO_MEMORY;
        }
        codec->has_inflate = true;
    } else if (inflateReset(stream) != Z_OK) {
        return LW_PULSAR_DATA_CORRUPT;
    }
    stream->next_in = (const Bytef *)packed.data;
    stream->avail_in = (uInt)packed.size;
    stream->next_out = (Bytef *)out;
    stream->avail_out = (uInt)size;
    int result = inflate(stream, Z_FINISH);
    bool is_whole = result == Z_STREAM_END && stream->avail_out == 0 && stream->avail_in == 0;
    return is_whole ? LW_PULSAR_OK : LW_PULSAR_DATA_CORRUPT;
}

static enum lw_pulsar_fault
copy_plain(struct lw_bytes packed, void *out, size_t size)
{
    if (packed.size != size) {
        return LW_PULSAR_DATA_CORRUPT;
    }
    if (size > 0) {
        memcpy(out, packed.data, size);
    }
    return LW_PULSAR_OK;
}

enum lw_pulsar_fault
lw_pulsar_decompress(struct lw_pulsar_codec *codec, int32_t compression, struct lw_bytes packed,
                     void *out, size_t size)
{
    uint8_t nothing[1]; /* the codecs want a place even for no bytes */
    void *place = out == NULL ? nothing : out;
    enum lw_pulsar_fault fault = lw_pulsar_uncompressed_check(compression, packed, size, size);
    if (fault != LW_PULSAR_OK || (is_empty(packed, size))) {
        return fault;
    }
    switch ((enum lw_pulsar_compression)compression) {
    case LW_PULSAR_COMPRESSION_NONE:
        return copy_plain(packed, place, size);
    case LW_PULSAR_COMPRESSION_LZ4:
        return unpack_lz4(packed, place, size) ? LW_PULSAR_OK : LW_PULSAR_DATA_CORRUPT;
    case LW_PULSAR_COMPRESSION_ZLIB:
        return unpack_zlib(codec, packed, place, size);
    case LW_PULSAR_COMPRESSION_ZSTD:
        return unpack_zstd(codec, packed, place, size);
    case LW_PULSAR_COMPRESSION_SNAPPY:
        return unpack_snappy(packed, place, size) ? LW_PULSAR_OK : LW_PULSAR_DATA_CORRUPT;
    }
    return LW_PULSAR_CODEC_UNKNOWN;
}

/* A place to write to. */
struct lw_bytes_out {
    uint8_t *data;
    size_t size;
};

/* -- Compression ------------------------------------------------------------------------------ */

size_t
lw_pulsar_compress_bound(int32_t compression, size_t size)
{
    if (lw_pulsar_compression_name(compression) == NULL || size > LZ4_MAX_INPUT_SIZE) {
        return 0;
    }
    switch ((enum lw_pulsar_compression)compression) {
    case LW_PULSAR_COMPRESSION_NONE:
        return size;
    case LW_PULSAR_COMPRESSION_LZ4:
        return (size_t)LZ4_compressBound((int)size);
    case LW_PULSAR_COMPRESSION_ZLIB:
        return compressBound((uLong)size);
    case LW_PULSAR_COMPRESSION_ZSTD:
        return ZSTD_compressBound(size);
    case LW_PULSAR_COMPRESSION_SNAPPY:
        return snappy_max_compressed_length(size);
    }
    return 0;
}

static enum lw_pulsar_fault
pack_zstd(struct lw_pulsar_codec *codec, struct lw_bytes plain, struct lw_bytes_out out,
          size_t *ret_size)
{
    if (codec->zstd == NULL) {
        codec->zstd = ZSTD_createCCtx();
    }
    if (codec->zstd == NULL) {
        return LW_PULSAR_NO_MEMORY;
    }
    size_t made = ZSTD_compressCCtx(codec->zstd, out.data, out.size, plain.data, plain.size,
                                    ZSTD_LEVEL);
    *ret_size = made;
    return ZSTD_isError(made) ? LW_PULSAR_NO_MEMORY : LW_PULSAR_OK;
}

static enum lw_pulsar_fault
pack_zlib(struct lw_pulsar_codec *codec, struct lw_bytes plain, struct lw_bytes_out out,
          size_t *ret_size)
{
    z_stream *stream = &codec->deflate;
    if (!codec->has_deflate) {
        if (deflateInit(stream, Z_DEFAULT_COMPRESSION) != Z_OK) {
            return LW_PULSAR_NO_MEMORY;
        }
        codec->has_deflate = true;
    } else if (deflateReset(stream) != Z_OK) {
        return LW_PULSAR_NO_MEMORY;
    }
    stream->next_in = (const Bytef *)plain.data;
    stream->avail_in = (uInt)plain.size;
    stream->next_out = (Bytef *)out.data;
    stream->avail_out = (uInt)out.size;
    int result = deflate(stream, Z_FINISH);
    *ret_size = out.size - stream->avail_out;
    return result == Z_STREAM_END ? LW_PULSAR_OK : LW_PULSAR_NO_MEMORY;
}

/* Compresses into `out`, which has room for the bound. */
static enum lw_pulsar_fault
pack(struct lw_pulsar_codec *codec, int32_t compression, struct lw_bytes plain,
     struct lw_bytes_out out, size_t *ret_size)
{
    size_t made = out.size;
    switch ((enum lw_pulsar_compression)compression) {
    case LW_PULSAR_COMPRESSION_NONE:
        *ret_size = plain.size;
        return copy_plain(plain, out.data, plain.size);
    case LW_PULSAR_COMPRESSION_LZ4:
        *ret_size = (size_t)LZ4_compress_default((const char *)plain.data, (char *)out.data,
                                                 (int)plain.size, (int)out.size);
        return LW_PULSAR_OK;
    case LW_PULSAR_COMPRESSION_ZLIB:
        return pack_zlib(codec, plain, out, ret_size);
    case LW_PULSAR_COMPRESSION_ZSTD:
        return pack_zstd(codec, plain, out, ret_size);
    case LW_PULSAR_COMPRESSION_SNAPPY:
        snappy_compress((const char *)plain.data, plain.size, (char *)out.data, &made);
        *ret_size = made;
        return LW_PULSAR_OK;
    }
    return LW_PULSAR_CODEC_UNKNOWN;
}

enum lw_pulsar_fault
lw_pulsar_compress(struct lw_pulsar_codec *codec, int32_t compression, struct lw_bytes plain,
                   struct lw_proto_writer *writer)
{
    if (lw_pulsar_compression_name(compression) == NULL) {
        return LW_PULSAR_CODEC_UNKNOWN;
    }
    size_t bound = lw_pulsar_compress_bound(compression, plain.size);
    bool has_room = !lw_proto_is_overflow(writer) && bound <= writer->capacity - writer->size;
    if (plain.size > LZ4_MAX_INPUT_SIZE || bound > INT32_MAX || !has_room) {
        return LW_PULSAR_SIZE_REFUSED;
    }
    struct lw_bytes from = { plain.data == NULL ? "" : plain.data, plain.size };
    struct lw_bytes_out out = { writer->data + writer->size, bound };
    size_t made = 0;
    enum lw_pulsar_fault fault = pack(codec, compression, from, out, &made);
    if (fault == LW_PULSAR_OK) {
        writer->size += made;
    }
    return fault;
}
