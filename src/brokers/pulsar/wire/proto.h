/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wire encoding of protocol buffers, as far as Pulsar uses it: a reader that walks the fields
 * of one message and a writer with a bound. Both are a pair of pointers; neither allocates.
 * The reader stops for good at the first fault (is_bad). The writer goes on counting when its
 * space is used up, without writing: `size` is always what the whole would have taken, so a
 * writer without space is the size pass. Groups (wire types 3 and 4) are faults, as proto2
 * messages of Pulsar hold none. Inline, since every message pays for each instruction.
 */
#ifndef LW_BROKERS_PULSAR_WIRE_PROTO_H
#define LW_BROKERS_PULSAR_WIRE_PROTO_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <laneway/laneway.h>

#include "base/assert.h"

enum { LW_PROTO_VARINT, LW_PROTO_FIXED64, LW_PROTO_BYTES, LW_PROTO_FIXED32 = 5 };
enum { LW_PROTO_VARINT_BYTES_MAX = 10 };

struct lw_proto_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool is_bad;
};

/* One field. `bytes` is set for wire type BYTES, `number` else. */
struct lw_proto_field {
    uint32_t id;
    uint32_t wire;
    uint64_t number;
    struct lw_bytes bytes; /* never null, may be empty */
};

struct lw_proto_writer {
    uint8_t *data;
    size_t capacity;
    size_t size; /* needed so far; more than capacity: overflow */
};

/* A varint and the place behind it; NULL when it was malformed. */
struct lw_proto_long {
    const uint8_t *at;
    uint64_t value;
};

/*
 * Varints of three bytes and more, and those that end in a fault; and what passes over a value.
 * Both take and return places, not the reader, which then can stay in registers.
 */
struct lw_proto_long lw_proto_read_long(const uint8_t *at, const uint8_t *end);
const uint8_t *lw_proto_pass(const uint8_t *at, const uint8_t *end, uint32_t wire);

LW_INLINE uint32_t
lw_proto_load_le32(const uint8_t *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof value);
    return le32toh(value);
}

LW_INLINE uint64_t
lw_proto_load_le64(const uint8_t *from)
{
    uint64_t value;
    memcpy(&value, from, sizeof value);
    return le64toh(value);
}

/* The bits that say of eight bytes of a varint that another one follows. */
#define LW_PROTO_CONTINUES UINT64_C(0x8080808080808080)

/* Joins the eight groups of seven bits of `word`, the first in its lowest byte. */
LW_INLINE uint64_t
lw_proto_join_groups(uint64_t word)
{
    word &= ~LW_PROTO_CONTINUES;
    word = (word & UINT64_C(0x007f007f007f007f)) | (word & UINT64_C(0x7f007f007f007f00)) >> 1;
    word = (word & UINT64_C(0x00003fff00003fff)) | (word & UINT64_C(0x3fff00003fff0000)) >> 2;
    return (word & UINT64_C(0x0fffffff)) | (word & UINT64_C(0x0fffffff00000000)) >> 4;
}

LW_INLINE struct lw_proto_reader
lw_proto_reader_of(struct lw_bytes bytes)
{
    const uint8_t *at = (const uint8_t *)bytes.data;
    return (struct lw_proto_reader){ at, at == NULL ? NULL : at + bytes.size, false };
}

LW_INLINE bool
lw_proto_is_end(const struct lw_proto_reader *reader)
{
    return reader->at == reader->end;
}

LW_INLINE bool
lw_proto_fail(struct lw_proto_reader *reader)
{
    reader->is_bad = true;
    reader->at = reader->end;
    return false;
}

LW_INLINE bool
lw_proto_read_varint(struct lw_proto_reader *reader, uint64_t *ret_value)
{
    const uint8_t *at = reader->at;
    if (__builtin_expect(at != reader->end && at[0] < 0x80, 1)) {
        *ret_value = at[0];
        reader->at = at + 1;
        return true;
    }
    if (reader->end - at >= 2 && at[1] < 0x80) {
        *ret_value = (uint64_t)(at[0] & 0x7f) | (uint64_t)at[1] << 7;
        reader->at = at + 2;
        return true;
    }
    struct lw_proto_long read = lw_proto_read_long(at, reader->end);
    if (__builtin_expect(read.at == NULL, 0)) {
        return lw_proto_fail(reader);
    }
    *ret_value = read.value;
    reader->at = read.at;
    return true;
}

/*
 * Takes a varint of up to five bytes. NULL: a longer one, or none, which is for the general way.
 * Calls nothing, unlike lw_proto_read_varint.
 */
LW_INLINE const uint8_t *
lw_proto_take_number(const uint8_t *at, const uint8_t *end, uint64_t *ret_value)
{
    enum { BYTES_MAX = 5 };
    uint64_t value = 0;
#pragma GCC unroll 5
    for (unsigned i = 0; i < BYTES_MAX; i++) {
        if (at + i >= end) {
            return NULL;
        }
        value |= (uint64_t)(at[i] & 0x7f) << (7 * i);
        if (at[i] < 0x80) {
            *ret_value = value;
            return at + i + 1;
        }
    }
    return NULL;
}

/* Takes the ten bytes of -1, which brokers write with every message; NULL: it is not that. */
LW_INLINE const uint8_t *
lw_proto_take_minus_one(const uint8_t *at, const uint8_t *end)
{
    static const uint8_t minus_one[] = { 255, 255, 255, 255, 255, 255, 255, 255, 255, 1 };
    bool is_next = end - at >= LW_PROTO_VARINT_BYTES_MAX &&
                   memcmp(at, minus_one, sizeof minus_one) == 0;
    return is_next ? at + sizeof minus_one : NULL;
}

/* A field of one byte's key and such a varint; NULL too when another field comes, or `at` is NULL. */
LW_INLINE const uint8_t *
lw_proto_take_field(const uint8_t *at, const uint8_t *end, uint32_t key, uint64_t *ret_value)
{
    return at && at < end && *at == key ? lw_proto_take_number(at + 1, end, ret_value) : NULL;
}

/* The same with a varint of six bytes, which the times of this century have in milliseconds. */
LW_INLINE const uint8_t *
lw_proto_take_time(const uint8_t *at, const uint8_t *end, uint32_t key, uint64_t *ret_value)
{
    enum { BYTES = 6 };
    uint32_t low;
    uint16_t high;
    if (!at || end - at < 1 + BYTES || *at != key) {
        return NULL;
    }
    memcpy(&low, at + 1, sizeof low);
    memcpy(&high, at + 1 + sizeof low, sizeof high);
    uint64_t word = le32toh(low) | (uint64_t)le16toh(high) << 32;
    if ((word & LW_PROTO_CONTINUES) != (LW_PROTO_CONTINUES & UINT64_C(0x00ffffffffff))) {
        return NULL;
    }
    *ret_value = lw_proto_join_groups(word);
    return at + 1 + BYTES;
}

/* The same with bytes, shorter than 128. */
LW_INLINE const uint8_t *
lw_proto_take_bytes(const uint8_t *at, const uint8_t *end, uint32_t key,
                    struct lw_bytes *ret_bytes)
{
    if (!at || end - at < 2 || *at != key || at[1] >= 0x80 || at[1] > end - at - 2) {
        return NULL;
    }
    *ret_bytes = (struct lw_bytes){ at + 2, at[1] };
    return at + 2 + at[1];
}

LW_INLINE bool
lw_proto_read_bytes(struct lw_proto_reader *reader, struct lw_bytes *ret_bytes)
{
    uint64_t size;
    if (!lw_proto_read_varint(reader, &size) || size > (uint64_t)(reader->end - reader->at)) {
        return lw_proto_fail(reader);
    }
    *ret_bytes = (struct lw_bytes){ reader->at, (size_t)size };
    reader->at += size;
    return true;
}

/* Reads a tag: the field's id (1 to 2^29 - 1) and its wire type. False at the end and when bad. */
LW_INLINE bool
lw_proto_read_tag(struct lw_proto_reader *reader, uint32_t *ret_id, uint32_t *ret_wire)
{
    uint64_t tag;
    if (lw_proto_is_end(reader)) {
        return false;
    }
    if (!lw_proto_read_varint(reader, &tag) || tag > UINT32_MAX || tag < 8) {
        return lw_proto_fail(reader);
    }
    *ret_id = (uint32_t)tag >> 3;
    *ret_wire = (uint32_t)tag & 7;
    return true;
}

/* Id and wire type in one: what a field begins with. */
#define LW_PROTO_KEY(id, wire) ((uint32_t)(id) << 3 | (uint32_t)(wire))

/* As lw_proto_read_tag, as one key. */
LW_INLINE bool
lw_proto_read_key(struct lw_proto_reader *reader, uint32_t *ret_key)
{
    uint64_t key;
    if (lw_proto_is_end(reader)) {
        return false;
    }
    if (!lw_proto_read_varint(reader, &key) || key > UINT32_MAX || key < 8) {
        return lw_proto_fail(reader);
    }
    *ret_key = (uint32_t)key;
    return true;
}

/* Takes the one-byte key of a field that is expected next; false, and nothing taken, if not. */
LW_INLINE bool
lw_proto_take_key(struct lw_proto_reader *reader, uint32_t key)
{
    bool is_next = reader->at != reader->end && *reader->at == key;
    reader->at += is_next ? 1 : 0;
    return is_next;
}

/* Passes over the value of a field that nobody wants. False when bad. */
LW_INLINE bool
lw_proto_skip(struct lw_proto_reader *reader, uint32_t wire)
{
    const uint8_t *at = lw_proto_pass(reader->at, reader->end, wire);
    if (__builtin_expect(at == NULL, 0)) {
        return lw_proto_fail(reader);
    }
    reader->at = at;
    return true;
}

/* Reads the next field whole. False at the end and when bad. */
bool lw_proto_next(struct lw_proto_reader *reader, struct lw_proto_field *ret_field);

/* -- Writing --------------------------------------------------------------------------------- */

LW_INLINE struct lw_proto_writer
lw_proto_writer_of(void *data, size_t capacity)
{
    return (struct lw_proto_writer){ (uint8_t *)data, capacity, 0 };
}

LW_INLINE bool
lw_proto_is_overflow(const struct lw_proto_writer *writer)
{
    return writer->size > writer->capacity;
}

/* What was written; null when it did not fit. */
LW_INLINE struct lw_bytes
lw_proto_written(const struct lw_proto_writer *writer)
{
    bool fits = !lw_proto_is_overflow(writer) && writer->data != NULL;
    return (struct lw_bytes){ fits ? writer->data : NULL, fits ? writer->size : 0 };
}

/* The place of the next `size` bytes, or NULL when they do not fit; counts them either way. */
LW_INLINE uint8_t *
lw_proto_claim(struct lw_proto_writer *writer, size_t size)
{
    size_t at = writer->size;
    writer->size = at + size;
    bool fits = at <= writer->capacity && size <= writer->capacity - at;
    return fits ? writer->data + at : NULL;
}

LW_INLINE size_t
lw_proto_varint_size(uint64_t value)
{
    /* 1 + floor(log2(value) / 7), without a division */
    return (size_t)((64 - __builtin_clzll(value | 1)) * 9 + 64) / 64;
}

void lw_proto_put_varint(struct lw_proto_writer *writer, uint64_t value);
/*
 * Around a nested message: begin leaves one byte for its length, end fills it in (and moves the
 * message when the length takes more), so that nothing is measured first.
 */
size_t lw_proto_begin_length(struct lw_proto_writer *writer);
void lw_proto_end_length(struct lw_proto_writer *writer, size_t begin);
void lw_proto_put_raw(struct lw_proto_writer *writer, const void *data, size_t size);
void lw_proto_put_be16(struct lw_proto_writer *writer, uint16_t value);
void lw_proto_put_be32(struct lw_proto_writer *writer, uint32_t value);
/* Tag and value. */
void lw_proto_put_number(struct lw_proto_writer *writer, uint32_t id, uint64_t value);
void lw_proto_put_bytes(struct lw_proto_writer *writer, uint32_t id, struct lw_bytes bytes);

LW_INLINE uint32_t
lw_proto_load_be32(const uint8_t *from)
{
    return __builtin_bswap32(lw_proto_load_le32(from));
}

LW_INLINE void
lw_proto_store_be32(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 24);
    to[1] = (uint8_t)(value >> 16);
    to[2] = (uint8_t)(value >> 8);
    to[3] = (uint8_t)value;
}

#endif
