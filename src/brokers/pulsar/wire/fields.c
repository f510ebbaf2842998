/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder and the encoder of field tables. Unknown fields, and known ones of another wire
 * type, are skipped; of a field that comes twice the last one counts. A part is decoded after its
 * message: until then its place in the struct holds the view of its bytes, so the two levels are
 * two plain loops. Values are moved by memcpy, since the tables know places, not types. Pure.
 */
#include "brokers/pulsar/wire/fields.h"
#include <endian.h>

LW_INLINE uint64_t
bit_of(const struct lw_pulsar_field *field)
{
    return UINT64_C(1) << field->id;
}

static void
store_number(const struct lw_pulsar_field *field, uint8_t *place, uint64_t number)
{
    switch ((enum lw_pulsar_kind)field->kind) {
    case LW_PULSAR_KIND_U64:
        memcpy(place, &number, sizeof number);
        break;
    case LW_PULSAR_KIND_U32:
    case LW_PULSAR_KIND_I32: {
        uint32_t half = (uint32_t)number;
        memcpy(place, &half, sizeof half);
        break;
    }
    case LW_PULSAR_KIND_BOOL: {
        bool flag = number != 0;
        memcpy(place, &flag, sizeof flag);
        break;
    }
    case LW_PULSAR_KIND_DOUBLE:
    case LW_PULSAR_KIND_BYTES:
    case LW_PULSAR_KIND_LIST:
    case LW_PULSAR_KIND_NUMBERS:
    case LW_PULSAR_KIND_PART:
        break;
    }
}

LW_INLINE uint64_t
load_number(const struct lw_pulsar_field *field, const uint8_t *place)
{
    uint64_t number = 0;
    uint32_t half = 0;
    bool flag = false;
    switch ((enum lw_pulsar_kind)field->kind) {
    case LW_PULSAR_KIND_U64:
        memcpy(&number, place, sizeof number);
        break;
    case LW_PULSAR_KIND_U32:
        memcpy(&half, place, sizeof half);
        number = half;
        break;
    case LW_PULSAR_KIND_I32:
        memcpy(&half, place, sizeof half);
        number = (uint64_t)(int64_t)(int32_t)half;
        break;
    case LW_PULSAR_KIND_BOOL:
        memcpy(&flag, place, sizeof flag);
        number = flag;
        break;
    case LW_PULSAR_KIND_DOUBLE:
    case LW_PULSAR_KIND_BYTES:
    case LW_PULSAR_KIND_LIST:
    case LW_PULSAR_KIND_NUMBERS:
    case LW_PULSAR_KIND_PART:
        break;
    }
    return number;
}

/* -- Decoding --------------------------------------------------------------------------------- */

static void
init_flat(const struct lw_pulsar_table *table, uint8_t *out)
{
    memset(out, 0, table->size);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct lw_pulsar_field *field = &table->fields[i];
        if (field->fallback != 0) {
            store_number(field, out + field->offset, (uint64_t)(int64_t)field->fallback);
        }
    }
}

void
lw_pulsar_fields_init(const struct lw_pulsar_table *table, void *out)
{
    uint8_t *base = (uint8_t *)out;
    init_flat(table, base);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct lw_pulsar_field *field = &table->fields[i];
        if (field->kind == LW_PULSAR_KIND_PART) {
            init_flat(field->part, base + field->offset);
        }
    }
}

static bool
is_wire_right(const struct lw_pulsar_field *field, uint32_t wire)
{
    switch ((enum lw_pulsar_kind)field->kind) {
    case LW_PULSAR_KIND_U64:
    case LW_PULSAR_KIND_U32:
    case LW_PULSAR_KIND_I32:
    case LW_PULSAR_KIND_BOOL:
        return wire == LW_PROTO_VARINT;
    case LW_PULSAR_KIND_DOUBLE:
        return wire == LW_PROTO_FIXED64;
    case LW_PULSAR_KIND_BYTES:
    case LW_PULSAR_KIND_LIST:
    case LW_PULSAR_KIND_PART:
        return wire == LW_PROTO_BYTES;
    case LW_PULSAR_KIND_NUMBERS:
        return wire == LW_PROTO_VARINT || wire == LW_PROTO_BYTES;
    }
    return false;
}

static bool
read_list(struct lw_proto_reader *reader, const struct lw_pulsar_field *field, uint32_t wire,
          const uint8_t *tag, uint8_t *place)
{
    struct lw_pulsar_list list;
    if (!lw_proto_skip(reader, wire)) {
        return false;
    }
    memcpy(&list, place, sizeof list);
    lw_pulsar_list_extend(&list, field->id, tag, reader->at);
    memcpy(place, &list, sizeof list);
    return true;
}

static bool
read_double(struct lw_proto_reader *reader, uint8_t *place)
{
    const uint8_t *from = reader->at;
    if (!lw_proto_skip(reader, LW_PROTO_FIXED64)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(uint64_t); i++) { /* little-endian on the wire */
        place[BYTE_ORDER == BIG_ENDIAN ? sizeof(uint64_t) - 1 - i : i] = from[i];
    }
    return true;
}

static bool
read_value(struct lw_proto_reader *reader, const struct lw_pulsar_field *field, uint32_t wire,
           const uint8_t *tag, uint8_t *place)
{
    uint64_t number = 0;
    struct lw_bytes bytes;
    switch ((enum lw_pulsar_kind)field->kind) {
    case LW_PULSAR_KIND_U64:
    case LW_PULSAR_KIND_U32:
    case LW_PULSAR_KIND_I32:
    case LW_PULSAR_KIND_BOOL:
        if (lw_proto_read_varint(reader, &number)) {
            store_number(field, place, number);
        }
        break;
    case LW_PULSAR_KIND_BYTES:
    case LW_PULSAR_KIND_PART: /* see decode_parts */
        if (lw_proto_read_bytes(reader, &bytes)) {
            memcpy(place, &bytes, sizeof bytes);
        }
        break;
    case LW_PULSAR_KIND_DOUBLE:
        return read_double(reader, place);
    case LW_PULSAR_KIND_LIST:
    case LW_PULSAR_KIND_NUMBERS:
        return read_list(reader, field, wire, tag, place);
    }
    return !reader->is_bad;
}

/* Fields mostly come in the order of their numbers, so the search goes on from the last one. */
static const struct lw_pulsar_field *
find_field(const struct lw_pulsar_table *table, uint32_t id, uint32_t *hint)
{
    for (uint32_t i = *hint; i < table->count; i++) {
        if (table->fields[i].id == id) {
            *hint = i;
            return &table->fields[i];
        }
    }
    for (uint32_t i = 0; i < *hint; i++) {
        if (table->fields[i].id == id) {
            *hint = i;
            return &table->fields[i];
        }
    }
    return NULL;
}

static enum lw_pulsar_fault
decode_flat(const struct lw_pulsar_table *table, struct lw_bytes bytes, uint8_t *out)
{
    struct lw_proto_reader reader = lw_proto_reader_of(bytes);
    uint64_t has = 0;
    uint32_t hint = 0;
    uint32_t id;
    uint32_t wire;
    init_flat(table, out);
    for (const uint8_t *tag = reader.at; lw_proto_read_tag(&reader, &id, &wire);
         tag = reader.at) {
        const struct lw_pulsar_field *field = find_field(table, id, &hint);
        if (field == NULL || !is_wire_right(field, wire)) {
            lw_proto_skip(&reader, wire);
        } else if (read_value(&reader, field, wire, tag, out + field->offset)) {
            has |= bit_of(field);
        }
    }
    memcpy(out, &has, sizeof has);
    if (reader.is_bad) {
        return LW_PULSAR_PROTO_MALFORMED;
    }
    return (has & table->required) == table->required ? LW_PULSAR_OK : LW_PULSAR_FIELD_MISSING;
}

static enum lw_pulsar_fault
decode_parts(const struct lw_pulsar_table *table, uint8_t *out)
{
    uint64_t has;
    enum lw_pulsar_fault fault = LW_PULSAR_OK;
    memcpy(&has, out, sizeof has);
    for (uint32_t i = 0; i < table->count && fault == LW_PULSAR_OK; i++) {
        const struct lw_pulsar_field *field = &table->fields[i];
        if (field->kind != LW_PULSAR_KIND_PART) {
            continue;
        }
        struct lw_bytes bytes;
        memcpy(&bytes, out + field->offset, sizeof bytes);
        if ((has & bit_of(field)) == 0) {
            init_flat(field->part, out + field->offset);
        } else {
            fault = decode_flat(field->part, bytes, out + field->offset);
        }
    }
    return fault;
}

enum lw_pulsar_fault
lw_pulsar_fields_decode(const struct lw_pulsar_table *table, struct lw_bytes bytes, void *out)
{
    enum lw_pulsar_fault fault = decode_flat(table, bytes, (uint8_t *)out);
    return fault == LW_PULSAR_OK ? decode_parts(table, (uint8_t *)out) : fault;
}

/* -- Encoding --------------------------------------------------------------------------------- */

static void
write_double(const struct lw_pulsar_field *field, const uint8_t *place, bool is_wanted,
             struct lw_proto_writer *writer)
{
    uint64_t number;
    memcpy(&number, place, sizeof number);
    if (!is_wanted && number == 0) {
        return;
    }
    uint8_t bytes[8];
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (uint8_t)(number >> (8 * i));
    }
    lw_proto_put_varint(writer, (uint64_t)field->id << 3 | LW_PROTO_FIXED64);
    lw_proto_put_raw(writer, bytes, sizeof bytes);
}

static void
write_list(const struct lw_pulsar_field *field, const uint8_t *place,
           struct lw_proto_writer *writer)
{
    struct lw_pulsar_list list;
    memcpy(&list, place, sizeof list);
    if (list.count == 0) {
        return;
    }
    if (field->kind == LW_PULSAR_KIND_NUMBERS) {
        lw_pulsar_list_write_numbers(&list, field->id, writer);
    } else {
        lw_pulsar_list_write(&list, field->id, writer);
    }
}

LW_INLINE void
write_value(const struct lw_pulsar_field *field, const uint8_t *place, bool is_wanted,
            struct lw_proto_writer *writer)
{
    uint64_t number = 0;
    struct lw_bytes bytes;
    switch ((enum lw_pulsar_kind)field->kind) {
    case LW_PULSAR_KIND_U64:
    case LW_PULSAR_KIND_U32:
    case LW_PULSAR_KIND_I32:
    case LW_PULSAR_KIND_BOOL:
        number = load_number(field, place);
        if (is_wanted || number != (uint64_t)(int64_t)field->fallback) {
            lw_proto_put_number(writer, field->id, number);
        }
        break;
    case LW_PULSAR_KIND_BYTES:
        memcpy(&bytes, place, sizeof bytes);
        if (bytes.data != NULL || field->is_required) {
            lw_proto_put_bytes(writer, field->id, bytes);
        }
        break;
    case LW_PULSAR_KIND_DOUBLE:
        write_double(field, place, is_wanted, writer);
        break;
    case LW_PULSAR_KIND_LIST:
    case LW_PULSAR_KIND_NUMBERS:
        write_list(field, place, writer);
        break;
    case LW_PULSAR_KIND_PART: /* see lw_pulsar_fields_encode */
        break;
    }
}

static void
encode_flat(const struct lw_pulsar_table *table, const uint8_t *from,
            struct lw_proto_writer *writer)
{
    uint64_t wanted;
    memcpy(&wanted, from, sizeof wanted);
    wanted |= table->required;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct lw_pulsar_field *field = &table->fields[i];
        write_value(field, from + field->offset, (wanted & bit_of(field)) != 0, writer);
    }
}

static void
write_part(const struct lw_pulsar_field *field, const uint8_t *place,
           struct lw_proto_writer *writer)
{
    lw_proto_put_varint(writer, (uint64_t)field->id << 3 | LW_PROTO_BYTES);
    size_t begin = lw_proto_begin_length(writer);
    encode_flat(field->part, place, writer);
    lw_proto_end_length(writer, begin);
}

void
lw_pulsar_fields_encode(const struct lw_pulsar_table *table, const void *from,
                        struct lw_proto_writer *writer)
{
    const uint8_t *base = (const uint8_t *)from;
    uint64_t wanted;
    memcpy(&wanted, base, sizeof wanted);
    wanted |= table->required;
    for (uint32_t i = 0; i < table->count; i++) {
        const struct lw_pulsar_field *field = &table->fields[i];
        bool is_wanted = (wanted & bit_of(field)) != 0;
        if (field->kind != LW_PULSAR_KIND_PART) {
            write_value(field, base + field->offset, is_wanted, writer);
        } else if (is_wanted) {
            write_part(field, base + field->offset, writer);
        }
    }
}
