/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the protocol buffer encoding that are too long to be inline: varints of several
 * bytes, skipping, and writing. A long varint is read eight bytes at a time: the ids that brokers
 * write as -1 take ten bytes and come with every message. Pure.
 */
#include "brokers/pulsar/wire/proto.h"

#define MALFORMED ((struct lw_proto_long){ NULL, 0 })

/* Near the end of the bytes: one at a time. */
static struct lw_proto_long
read_slowly(const uint8_t *at, const uint8_t *end)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && at != end; shift += 7) {
        uint8_t byte = *at++;
        if (shift == 63 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            return (struct lw_proto_long){ at, value };
        }
    }
    return MALFORMED;
}

struct lw_proto_long
lw_proto_read_long(const uint8_t *at, const uint8_t *end)
{
    if (end - at < LW_PROTO_VARINT_BYTES_MAX) {
        return read_slowly(at, end);
    }
    uint64_t word = lw_proto_load_le64(at);
    uint64_t stops = ~word & LW_PROTO_CONTINUES;
    if (stops != 0) {
        return (struct lw_proto_long){ at + __builtin_ctzll(stops) / 8 + 1,
                                       lw_proto_join_groups(word & (stops ^ (stops - 1))) };
    }
    if (word == UINT64_MAX && at[8] == 0xff && at[9] == 1) { /* -1 */
        return (struct lw_proto_long){ at + 10, UINT64_MAX };
    }
    uint64_t value = lw_proto_join_groups(word) | (uint64_t)(at[8] & 0x7f) << 56;
    if (at[8] < 0x80) {
        return (struct lw_proto_long){ at + 9, value };
    }
    return at[9] > 1 ? MALFORMED
                     : (struct lw_proto_long){ at + 10, value | (uint64_t)at[9] << 63 };
}

const uint8_t *
lw_proto_pass(const uint8_t *at, const uint8_t *end, uint32_t wire)
{
    struct lw_proto_reader reader = { at, end, false };
    uint64_t number;
    struct lw_bytes bytes;
    switch (wire) {
    case LW_PROTO_VARINT:
        return lw_proto_read_varint(&reader, &number) ? reader.at : NULL;
    case LW_PROTO_BYTES:
        return lw_proto_read_bytes(&reader, &bytes) ? reader.at : NULL;
    case LW_PROTO_FIXED64:
        return end - at >= 8 ? at + 8 : NULL;
    case LW_PROTO_FIXED32:
        return end - at >= 4 ? at + 4 : NULL;
    default: /* groups and the two unused wire types of the encoding */
        return NULL;
    }
}

bool
lw_proto_next(struct lw_proto_reader *reader, struct lw_proto_field *ret_field)
{
    struct lw_proto_field field = { .bytes = { "", 0 } };
    if (!lw_proto_read_tag(reader, &field.id, &field.wire)) {
        return false;
    }
    bool is_read = field.wire == LW_PROTO_VARINT  ? lw_proto_read_varint(reader, &field.number)
                   : field.wire == LW_PROTO_BYTES ? lw_proto_read_bytes(reader, &field.bytes)
                                                  : lw_proto_skip(reader, field.wire);
    if (is_read) {
        *ret_field = field;
    }
    return is_read;
}

/* -- Writing --------------------------------------------------------------------------------- */

void
lw_proto_put_varint(struct lw_proto_writer *writer, uint64_t value)
{
    uint8_t *at = lw_proto_claim(writer, lw_proto_varint_size(value));
    if (at == NULL) {
        return;
    }
    for (; value >= 0x80; value >>= 7) {
        *at++ = (uint8_t)value | 0x80;
    }
    *at = (uint8_t)value;
}

size_t
lw_proto_begin_length(struct lw_proto_writer *writer)
{
    (void)lw_proto_claim(writer, 1);
    return writer->size;
}

void
lw_proto_end_length(struct lw_proto_writer *writer, size_t begin)
{
    size_t size = writer->size - begin;
    size_t more = lw_proto_varint_size(size) - 1;
    writer->size += more;
    if (lw_proto_is_overflow(writer) || writer->data == NULL) {
        return;
    }
    if (more > 0) {
        memmove(writer->data + begin + more, writer->data + begin, size);
    }
    struct lw_proto_writer length = lw_proto_writer_of(writer->data + begin - 1, 1 + more);
    lw_proto_put_varint(&length, size);
}

void
lw_proto_put_raw(struct lw_proto_writer *writer, const void *data, size_t size)
{
    uint8_t *at = lw_proto_claim(writer, size);
    if (at != NULL && size > 0) {
        memcpy(at, data, size);
    }
}

void
lw_proto_put_be16(struct lw_proto_writer *writer, uint16_t value)
{
    uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };
    lw_proto_put_raw(writer, bytes, sizeof bytes);
}

void
lw_proto_put_be32(struct lw_proto_writer *writer, uint32_t value)
{
    uint8_t bytes[4];
    lw_proto_store_be32(bytes, value);
    lw_proto_put_raw(writer, bytes, sizeof bytes);
}

void
lw_proto_put_number(struct lw_proto_writer *writer, uint32_t id, uint64_t value)
{
    lw_proto_put_varint(writer, (uint64_t)id << 3 | LW_PROTO_VARINT);
    lw_proto_put_varint(writer, value);
}

void
lw_proto_put_bytes(struct lw_proto_writer *writer, uint32_t id, struct lw_bytes bytes)
{
    lw_proto_put_varint(writer, (uint64_t)id << 3 | LW_PROTO_BYTES);
    lw_proto_put_varint(writer, bytes.size);
    lw_proto_put_raw(writer, bytes.data, bytes.size);
}
