/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walking and making repeated fields. A walk passes over fields of other ids, which may lie
 * between the occurrences, and over occurrences of a wire type that cannot be of the kind asked
 * for, as every reader of protocol buffers does. Pure.
 */
#include "brokers/pulsar/wire/list.h"

enum { ID_ONE_BYTE_END = 16 }; /* from here on a key takes two bytes */

struct lw_pulsar_walk
lw_pulsar_list_walk(const struct lw_pulsar_list *list)
{
    struct lw_bytes span = { list->at, list->at == NULL ? 0 : list->size };
    return (struct lw_pulsar_walk){ .reader = lw_proto_reader_of(span), .id = list->id };
}

bool
lw_pulsar_walk_bytes(struct lw_pulsar_walk *walk, struct lw_bytes *ret_bytes)
{
    struct lw_proto_field field;
    while (lw_proto_next(&walk->reader, &field)) {
        if (field.id == walk->id && field.wire == LW_PROTO_BYTES) {
            *ret_bytes = field.bytes;
            return true;
        }
    }
    return false;
}

bool
lw_pulsar_walk_number(struct lw_pulsar_walk *walk, uint64_t *ret_number)
{
    for (;;) {
        if (!lw_proto_is_end(&walk->packed)) {
            walk->reader.is_bad |= !lw_proto_read_varint(&walk->packed, ret_number);
            return !walk->reader.is_bad;
        }
        struct lw_proto_field field;
        if (walk->reader.is_bad || !lw_proto_next(&walk->reader, &field)) {
            return false;
        }
        if (field.id == walk->id && field.wire == LW_PROTO_VARINT) {
            *ret_number = field.number;
            return true;
        }
        if (field.id == walk->id && field.wire == LW_PROTO_BYTES) {
            walk->packed = lw_proto_reader_of(field.bytes);
        }
    }
}

/* Both fields of a pair and of a range are required. */
static bool
end_item(struct lw_pulsar_walk *walk, const struct lw_proto_reader *item, bool is_whole)
{
    if (item->is_bad || !is_whole) {
        return lw_proto_fail(&walk->reader);
    }
    return true;
}

bool
lw_pulsar_walk_pair(struct lw_pulsar_walk *walk, struct lw_pulsar_pair *ret_pair)
{
    struct lw_bytes bytes;
    if (!lw_pulsar_walk_bytes(walk, &bytes)) {
        return false;
    }
    struct lw_pulsar_pair pair = { .key = { NULL, 0 } };
    struct lw_proto_reader item = lw_proto_reader_of(bytes);
    struct lw_proto_field field;
    while (lw_proto_next(&item, &field)) {
        if (field.id == 1 && field.wire == LW_PROTO_BYTES) {
            pair.key = field.bytes;
        } else if (field.id == 2 && field.wire == LW_PROTO_BYTES) {
            pair.value = field.bytes;
        }
    }
    if (!end_item(walk, &item, pair.key.data != NULL && pair.value.data != NULL)) {
        return false;
    }
    *ret_pair = pair;
    return true;
}

bool
lw_pulsar_walk_range(struct lw_pulsar_walk *walk, struct lw_pulsar_range *ret_range)
{
    struct lw_bytes bytes;
    if (!lw_pulsar_walk_bytes(walk, &bytes)) {
        return false;
    }
    struct lw_pulsar_range range = { 0, 0 };
    unsigned seen = 0;
    struct lw_proto_reader item = lw_proto_reader_of(bytes);
    struct lw_proto_field field;
    while (lw_proto_next(&item, &field)) {
        if (field.wire == LW_PROTO_VARINT && (field.id == 1 || field.id == 2)) {
            *(field.id == 1 ? &range.start : &range.end) = (int32_t)(uint32_t)field.number;
            seen |= field.id;
        }
    }
    if (!end_item(walk, &item, seen == 3)) {
        return false;
    }
    *ret_range = range;
    return true;
}

size_t
lw_pulsar_list_numbers(const struct lw_pulsar_list *list, uint64_t *out, size_t count)
{
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(list);
    size_t seen = 0;
    for (uint64_t number = 0; lw_pulsar_walk_number(&walk, &number); seen++) {
        if (seen < count) {
            out[seen] = number;
        }
    }
    return seen;
}

/* -- Making ---------------------------------------------------------------------------------- */

void
lw_pulsar_list_put_bytes(struct lw_proto_writer *writer, struct lw_bytes bytes)
{
    lw_proto_put_bytes(writer, LW_PULSAR_LIST_ID, bytes);
}

void
lw_pulsar_list_put_number(struct lw_proto_writer *writer, uint64_t number)
{
    lw_proto_put_number(writer, LW_PULSAR_LIST_ID, number);
}

static size_t
bytes_field_size(struct lw_bytes bytes)
{
    return 1 + lw_proto_varint_size(bytes.size) + bytes.size;
}

void
lw_pulsar_list_put_pair(struct lw_proto_writer *writer, struct lw_bytes key,
                        struct lw_bytes value)
{
    lw_proto_put_varint(writer, LW_PULSAR_LIST_ID << 3 | LW_PROTO_BYTES);
    lw_proto_put_varint(writer, bytes_field_size(key) + bytes_field_size(value));
    lw_proto_put_bytes(writer, 1, key);
    lw_proto_put_bytes(writer, 2, value);
}

void
lw_pulsar_list_put_range(struct lw_proto_writer *writer, struct lw_pulsar_range range)
{
    uint64_t start = (uint64_t)(int64_t)range.start;
    uint64_t end = (uint64_t)(int64_t)range.end;
    lw_proto_put_varint(writer, LW_PULSAR_LIST_ID << 3 | LW_PROTO_BYTES);
    lw_proto_put_varint(writer, 2 + lw_proto_varint_size(start) + lw_proto_varint_size(end));
    lw_proto_put_number(writer, 1, start);
    lw_proto_put_number(writer, 2, end);
}

struct lw_pulsar_list
lw_pulsar_list_of(const struct lw_proto_writer *writer)
{
    struct lw_bytes made = lw_proto_written(writer);
    struct lw_pulsar_list list = { .at = (const uint8_t *)made.data,
                                   .size = made.size,
                                   .id = LW_PULSAR_LIST_ID,
                                   .is_dense = 1 };
    struct lw_proto_reader reader = lw_proto_reader_of(made);
    for (uint32_t key; lw_proto_read_key(&reader, &key); list.count++) {
        lw_proto_skip(&reader, key & 7);
    }
    return list;
}

/* Copies a list of ours whole and gives each item its key, which takes one byte as before. */
static void
write_dense(const struct lw_pulsar_list *list, uint32_t id, struct lw_proto_writer *writer)
{
    uint8_t *out = lw_proto_claim(writer, list->size);
    if (out == NULL) {
        return;
    }
    memcpy(out, list->at, list->size);
    if (list->id == id) {
        return; /* it was made for this field */
    }
    struct lw_proto_reader reader = { list->at, list->at + list->size, false };
    for (uint32_t key; lw_proto_read_key(&reader, &key); lw_proto_skip(&reader, key & 7)) {
        out[reader.at - 1 - list->at] = (uint8_t)(id << 3 | (key & 7));
    }
}

void
lw_pulsar_list_write(const struct lw_pulsar_list *list, uint32_t id,
                     struct lw_proto_writer *writer)
{
    if (list->is_dense != 0 && id < ID_ONE_BYTE_END) {
        write_dense(list, id, writer);
        return;
    }
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(list);
    for (struct lw_bytes bytes; lw_pulsar_walk_bytes(&walk, &bytes);) {
        lw_proto_put_bytes(writer, id, bytes);
    }
}

void
lw_pulsar_list_write_numbers(const struct lw_pulsar_list *list, uint32_t id,
                             struct lw_proto_writer *writer)
{
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(list);
    for (uint64_t number = 0; lw_pulsar_walk_number(&walk, &number);) {
        lw_proto_put_number(writer, id, number);
    }
}
