/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Message ids. Decoding is by hand, since every message brings one. The text forms are those that
 * other clients write into properties and logs; both are read. Pure.
 */
#include "brokers/pulsar/wire/message_id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "brokers/pulsar/wire/fields.h"

static const struct lw_pulsar_field message_id_fields[] = {
    REQUIRED(struct lw_pulsar_message_id, 1, U64, ledger),
    REQUIRED(struct lw_pulsar_message_id, 2, U64, entry),
    DEFAULT(struct lw_pulsar_message_id, 3, I32, partition, -1),
    DEFAULT(struct lw_pulsar_message_id, 4, I32, batch_index, -1),
    FIELD(struct lw_pulsar_message_id, 5, NUMBERS, ack_set),
    FIELD(struct lw_pulsar_message_id, 6, I32, batch_size),
    FIELD(struct lw_pulsar_message_id, 7, BYTES, first_chunk),
};
const struct lw_pulsar_table lw_pulsar_message_id_table = TABLE(
    struct lw_pulsar_message_id, message_id_fields, BIT(1) | BIT(2));

enum id_field {
    ID_LEDGER = 1,
    ID_ENTRY = 2,
    ID_PARTITION = 3,
    ID_BATCH_INDEX = 4,
    ID_ACK_SET = 5,
    ID_BATCH_SIZE = 6,
    ID_FIRST_CHUNK = 7,
};

#define KEY LW_PROTO_KEY

struct lw_pulsar_message_id
lw_pulsar_message_id_of(uint64_t ledger, uint64_t entry)
{
    return (struct lw_pulsar_message_id){
        .ledger = ledger, .entry = entry, .partition = -1, .batch_index = -1
    };
}

LW_INLINE void
read_int(struct lw_proto_reader *reader, int32_t *ret_value)
{
    uint64_t number = 0;
    lw_proto_read_varint(reader, &number);
    *ret_value = (int32_t)(uint32_t)number;
}

LW_INLINE uint64_t
decode_field(struct lw_proto_reader *reader, const uint8_t *tag, uint32_t key,
             struct lw_pulsar_message_id *out)
{
    uint64_t bit = UINT64_C(1) << (key >> 3 & 63);
    switch (key) {
    case KEY(ID_LEDGER, LW_PROTO_VARINT):
        lw_proto_read_varint(reader, &out->ledger);
        break;
    case KEY(ID_ENTRY, LW_PROTO_VARINT):
        lw_proto_read_varint(reader, &out->entry);
        break;
    case KEY(ID_PARTITION, LW_PROTO_VARINT):
        read_int(reader, &out->partition);
        break;
    case KEY(ID_BATCH_INDEX, LW_PROTO_VARINT):
        read_int(reader, &out->batch_index);
        break;
    case KEY(ID_ACK_SET, LW_PROTO_VARINT):
    case KEY(ID_ACK_SET, LW_PROTO_BYTES):
        lw_proto_skip(reader, key & 7);
        lw_pulsar_list_extend(&out->ack_set, ID_ACK_SET, tag, reader->at);
        break;
    case KEY(ID_BATCH_SIZE, LW_PROTO_VARINT):
        read_int(reader, &out->batch_size);
        break;
    case KEY(ID_FIRST_CHUNK, LW_PROTO_BYTES):
        lw_proto_read_bytes(reader, &out->first_chunk);
        break;
    default: /* a field that we do not know */
        lw_proto_skip(reader, key & 7);
        bit = 0;
        break;
    }
    return bit;
}

enum lw_pulsar_fault
lw_pulsar_message_id_decode(struct lw_bytes bytes, struct lw_pulsar_message_id *ret_id)
{
    enum { NEEDED = 1 << ID_LEDGER | 1 << ID_ENTRY };
    struct lw_proto_reader reader = lw_proto_reader_of(bytes);
    uint32_t key;
    *ret_id = lw_pulsar_message_id_of(0, 0);
    uint64_t has = 0;
    for (const uint8_t *tag = reader.at; lw_proto_read_key(&reader, &key); tag = reader.at) {
        has |= decode_field(&reader, tag, key, ret_id);
    }
    ret_id->has = has;
    if (reader.is_bad) {
        return LW_PULSAR_PROTO_MALFORMED;
    }
    return (has & NEEDED) == NEEDED ? LW_PULSAR_OK : LW_PULSAR_FIELD_MISSING;
}

void
lw_pulsar_message_id_serialize(const struct lw_pulsar_message_id *id,
                               struct lw_proto_writer *writer)
{
    struct lw_pulsar_message_id plain = *id;
    plain.has = 0;
    plain.partition = id->partition < 0 ? -1 : id->partition;
    plain.batch_index = id->batch_index < 0 ? -1 : id->batch_index;
    lw_pulsar_fields_encode(&lw_pulsar_message_id_table, &plain, writer);
}

/* Whether an id is a ledger and an entry, as in nearly every ack. */
static bool
is_bare(const struct lw_pulsar_message_id *id)
{
    return id->partition < 0 && id->batch_index < 0 && id->batch_size == 0 &&
           id->ack_set.count == 0 && id->first_chunk.data == NULL;
}

static uint8_t *
store_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) {
        *at++ = (uint8_t)value | 0x80;
    }
    *at++ = (uint8_t)value;
    return at;
}

/* By hand: every message that is acknowledged goes through here. */
static void
put_bare(struct lw_proto_writer *writer, const struct lw_pulsar_message_id *id)
{
    size_t size = 2 + lw_proto_varint_size(id->ledger) + lw_proto_varint_size(id->entry);
    uint8_t *at = lw_proto_claim(writer, 2 + size);
    if (at == NULL) {
        return;
    }
    *at++ = LW_PULSAR_LIST_ID << 3 | LW_PROTO_BYTES;
    *at++ = (uint8_t)size; /* 22 at most */
    *at++ = ID_LEDGER << 3 | LW_PROTO_VARINT;
    at = store_varint(at, id->ledger);
    *at++ = ID_ENTRY << 3 | LW_PROTO_VARINT;
    store_varint(at, id->entry);
}

void
lw_pulsar_list_put_id(struct lw_proto_writer *writer, const struct lw_pulsar_message_id *id)
{
    if (is_bare(id)) {
        put_bare(writer, id);
        return;
    }
    lw_proto_put_varint(writer, LW_PULSAR_LIST_ID << 3 | LW_PROTO_BYTES);
    size_t begin = lw_proto_begin_length(writer);
    lw_pulsar_message_id_serialize(id, writer);
    lw_proto_end_length(writer, begin);
}

bool
lw_pulsar_walk_id(struct lw_pulsar_walk *walk, struct lw_pulsar_message_id *ret_id)
{
    struct lw_bytes bytes;
    struct lw_pulsar_message_id id;
    if (!lw_pulsar_walk_bytes(walk, &bytes)) {
        return false;
    }
    if (lw_pulsar_message_id_decode(bytes, &id) != LW_PULSAR_OK) {
        return lw_proto_fail(&walk->reader);
    }
    *ret_id = id;
    return true;
}

int
lw_pulsar_message_id_compare(const struct lw_pulsar_message_id *a,
                             const struct lw_pulsar_message_id *b)
{
    if (a->ledger != b->ledger) {
        return a->ledger < b->ledger ? -1 : 1;
    }
    if (a->entry != b->entry) {
        return a->entry < b->entry ? -1 : 1;
    }
    return (a->batch_index > b->batch_index) - (a->batch_index < b->batch_index);
}

/* -- Text ------------------------------------------------------------------------------------- */

/* The ends of a topic are -1 in every client, though the wire holds 2^64 - 1. */
void
lw_pulsar_message_id_print(const struct lw_pulsar_message_id *id, char *out, size_t size)
{
    long long ledger = (long long)id->ledger;
    long long entry = (long long)id->entry;
    if (id->batch_index < 0) {
        (void)snprintf(out, size, "%lld:%lld:%d", ledger, entry, id->partition);
    } else {
        (void)snprintf(out, size, "%lld:%lld:%d:%d", ledger, entry, id->partition,
                       id->batch_index);
    }
}

void
lw_pulsar_message_id_print_tuple(const struct lw_pulsar_message_id *id, char *out, size_t size)
{
    (void)snprintf(out, size, "(%lld,%lld,%d,%d)", (long long)id->ledger, (long long)id->entry,
                   id->partition, id->batch_index);
}

/* Reads one decimal number from `min` up and stands behind it. */
static bool
scan_number(const char **at, long long min, long long max, long long *ret_value)
{
    char *end;
    if (**at != '-' && (**at < '0' || **at > '9')) {
        return false;
    }
    errno = 0;
    long long value = strtoll(*at, &end, 10);
    if (end == *at || errno != 0 || value < min || value > max) {
        return false;
    }
    *at = end;
    *ret_value = value;
    return true;
}

bool
lw_pulsar_message_id_parse(const char *text, struct lw_pulsar_message_id *ret_id)
{
    enum { PARTS_MIN = 2, PARTS_MAX = 4 };
    long long parts[PARTS_MAX] = { 0, 0, -1, -1 };
    const char *at = text;
    bool is_tuple = *at == '(';
    char separator = is_tuple ? ',' : ':';
    int count = 0;
    at += is_tuple ? 1 : 0;
    do {
        long long max = count < 2 ? INT64_MAX : INT32_MAX;
        if (count == PARTS_MAX || !scan_number(&at, -1, max, &parts[count])) {
            return false;
        }
        count++;
    } while (*at == separator && at++ != NULL);
    if (count < PARTS_MIN || (is_tuple && *at++ != ')') || *at != '\0') {
        return false;
    }
    struct lw_pulsar_message_id id = lw_pulsar_message_id_of((uint64_t)parts[0],
                                                             (uint64_t)parts[1]);
    id.partition = (int32_t)parts[2];
    id.batch_index = (int32_t)parts[3];
    *ret_id = id;
    return true;
}
