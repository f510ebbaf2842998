/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands in and out of bytes. A BaseCommand is a type (field 1) and one sub-message whose
 * number equals the type; the sub-message counts, and it must be there even when it is empty.
 * MESSAGE is decoded by hand, since it comes with every message; the rest goes through the field
 * tables (command_tables.c). Pure.
 */
#include "brokers/pulsar/wire/command.h"

#include "brokers/pulsar/wire/fields.h"

enum { TYPE_ID = 1 };

bool
lw_pulsar_command_has_payload(int32_t type)
{
    return type == LW_PULSAR_SEND || type == LW_PULSAR_MESSAGE;
}

/* The one default that does not fit into a row. */
static void
set_size_default(struct lw_pulsar_command *command)
{
    struct lw_pulsar_connected *connected = &command->connected;
    if (command->type == LW_PULSAR_CONNECTED &&
        (connected->has & LW_PULSAR_CONNECTED_HAS_MAX_MESSAGE_SIZE) == 0) {
        connected->max_message_size = LW_PULSAR_MESSAGE_BYTES_DEFAULT;
    }
}

struct lw_pulsar_command
lw_pulsar_command_of(enum lw_pulsar_command_type type)
{
    struct lw_pulsar_command command;
    const struct lw_pulsar_table *table = lw_pulsar_command_table((int32_t)type);
    lw_assert(table != NULL);
    memset(&command, 0, sizeof command);
    command.type = (int32_t)type;
    command.is_known = true;
    lw_pulsar_fields_init(table, &command.connect);
    set_size_default(&command);
    return command;
}

/* -- Decoding --------------------------------------------------------------------------------- */

enum message_field {
    MESSAGE_CONSUMER_ID = 1,
    MESSAGE_ID = 2,
    MESSAGE_REDELIVERY_COUNT = 3,
    MESSAGE_ACK_SET = 4,
    MESSAGE_CONSUMER_EPOCH = 5,
};

#define KEY LW_PROTO_KEY

/* One field of CommandMessage, returns its bit; *id_bytes is left to be decoded after the walk. */
LW_INLINE uint64_t
decode_message_field(struct lw_proto_reader *reader, const uint8_t *tag, uint32_t key,
                     struct lw_pulsar_message *out, struct lw_bytes *id_bytes)
{
    uint64_t number = 0;
    uint64_t bit = UINT64_C(1) << (key >> 3 & 63);
    switch (key) {
    case KEY(MESSAGE_CONSUMER_ID, LW_PROTO_VARINT):
        lw_proto_read_varint(reader, &out->consumer_id);
        break;
    case KEY(MESSAGE_ID, LW_PROTO_BYTES):
        lw_proto_read_bytes(reader, id_bytes);
        break;
    case KEY(MESSAGE_REDELIVERY_COUNT, LW_PROTO_VARINT):
        lw_proto_read_varint(reader, &number);
        out->redelivery_count = (uint32_t)number;
        break;
    case KEY(MESSAGE_ACK_SET, LW_PROTO_VARINT):
    case KEY(MESSAGE_ACK_SET, LW_PROTO_BYTES):
        lw_proto_skip(reader, key & 7);
        lw_pulsar_list_extend(&out->ack_set, MESSAGE_ACK_SET, tag, reader->at);
        break;
    case KEY(MESSAGE_CONSUMER_EPOCH, LW_PROTO_VARINT):
        lw_proto_read_varint(reader, &out->consumer_epoch);
        break;
    default: /* a field that we do not know */
        lw_proto_skip(reader, key & 7);
        bit = 0;
        break;
    }
    return bit;
}

static enum lw_pulsar_fault
decode_message(struct lw_bytes bytes, struct lw_pulsar_message *out)
{
    enum { NEEDED = 1 << MESSAGE_CONSUMER_ID | 1 << MESSAGE_ID };
    struct lw_proto_reader reader = lw_proto_reader_of(bytes);
    struct lw_bytes id_bytes = { NULL, 0 };
    uint32_t key;
    uint64_t has = 0;
    out->redelivery_count = 0;
    out->ack_set = (struct lw_pulsar_list){ .at = NULL };
    out->consumer_epoch = 0;
    for (const uint8_t *tag = reader.at; lw_proto_read_key(&reader, &key); tag = reader.at) {
        has |= decode_message_field(&reader, tag, key, out, &id_bytes);
    }
    out->has = has;
    if (reader.is_bad) {
        return LW_PULSAR_PROTO_MALFORMED;
    }
    if ((has & NEEDED) != NEEDED) {
        return LW_PULSAR_FIELD_MISSING;
    }
    return lw_pulsar_message_id_decode(id_bytes, &out->message_id);
}

/* To the end of an id from its partition on, which is -1 for most topics, or not said. */
LW_INLINE const uint8_t *
take_partition(const uint8_t *at, const uint8_t *end, struct lw_pulsar_message_id *out)
{
    uint64_t number = UINT64_MAX;
    out->has = 1 << 1 | 1 << 2;
    if (at && at != end) {
        if (*at != KEY(3, LW_PROTO_VARINT)) {
            return NULL;
        }
        out->has |= LW_PULSAR_ID_HAS_PARTITION;
        const uint8_t *next = lw_proto_take_minus_one(at + 1, end);
        at = next ? next : lw_proto_take_number(at + 1, end, &number);
    }
    out->partition = (int32_t)(uint32_t)number;
    return at;
}

/* An id as brokers write it, with its length: ledger, entry, and mostly the partition. */
LW_INLINE const uint8_t *
take_usual_id(const uint8_t *at, const uint8_t *end, struct lw_pulsar_message_id *ret_id)
{
    if (at + 2 > end || at[0] != KEY(MESSAGE_ID, LW_PROTO_BYTES) || at[1] > end - at - 2) {
        return NULL;
    }
    const uint8_t *id_end = at + 2 + at[1];
    at = lw_proto_take_field(at + 2, id_end, KEY(1, LW_PROTO_VARINT), &ret_id->ledger);
    at = lw_proto_take_field(at, id_end, KEY(2, LW_PROTO_VARINT), &ret_id->entry);
    at = take_partition(at, id_end, ret_id);
    ret_id->batch_index = -1;
    ret_id->batch_size = 0;
    ret_id->ack_set = (struct lw_pulsar_list){ .at = NULL };
    ret_id->first_chunk = (struct lw_bytes){ NULL, 0 };
    return at == id_end ? at : NULL;
}

/*
 * MESSAGE as brokers write it: its type, then one sub-message to the end with the consumer, the id
 * and at most the count of redeliveries. False: anything else, which is for the general way;
 * nothing of *out counts then.
 */
bool
lw_pulsar_message_decode_usual(struct lw_bytes bytes, struct lw_pulsar_message *out)
{
    enum {
        HEAD = KEY(TYPE_ID, LW_PROTO_VARINT) | LW_PULSAR_MESSAGE << 8 |
               KEY(LW_PULSAR_MESSAGE, LW_PROTO_BYTES) << 16,
        HEAD_BYTES = 4,
        BODY_BYTES_MAX = 127
    };
    const uint8_t *at = bytes.data;
    const uint8_t *end = at + bytes.size;
    uint64_t count = 0;
    size_t body = bytes.size - HEAD_BYTES;
    if (bytes.size < HEAD_BYTES || body > BODY_BYTES_MAX ||
        lw_proto_load_le32(at) != (HEAD | (uint32_t)body << 24)) {
        return false;
    }
    at = lw_proto_take_field(at + HEAD_BYTES, end, KEY(MESSAGE_CONSUMER_ID, LW_PROTO_VARINT),
                             &out->consumer_id);
    at = at ? take_usual_id(at, end, &out->message_id) : NULL;
    out->has = 1 << MESSAGE_CONSUMER_ID | 1 << MESSAGE_ID;
    if (at && at != end) {
        at = lw_proto_take_field(at, end, KEY(MESSAGE_REDELIVERY_COUNT, LW_PROTO_VARINT),
                                 &count);
        out->has |= 1 << MESSAGE_REDELIVERY_COUNT;
    }
    out->redelivery_count = (uint32_t)count;
    out->ack_set = (struct lw_pulsar_list){ .at = NULL };
    out->consumer_epoch = 0;
    return at == end;
}

static enum lw_pulsar_fault
decode_body(int32_t type, struct lw_bytes body, struct lw_pulsar_command *ret_command)
{
    const struct lw_pulsar_table *table = lw_pulsar_command_table(type);
    ret_command->type = type;
    ret_command->is_known = table != NULL;
    if (table == NULL) {
        return LW_PULSAR_OK;
    }
    if (body.data == NULL) {
        return LW_PULSAR_BODY_MISSING;
    }
    if (type == LW_PULSAR_MESSAGE) {
        return decode_message(body, &ret_command->message);
    }
    enum lw_pulsar_fault fault = lw_pulsar_fields_decode(table, body, &ret_command->connect);
    set_size_default(ret_command);
    return fault;
}

/*
 * The type normally comes first; a writer may put it last, so sub-messages that come before it
 * are found by a second walk.
 */
static struct lw_bytes
find_body(struct lw_bytes bytes, uint32_t type)
{
    struct lw_proto_reader reader = lw_proto_reader_of(bytes);
    struct lw_bytes body = { NULL, 0 };
    for (struct lw_proto_field field; lw_proto_next(&reader, &field);) {
        if (field.id == type && field.wire == LW_PROTO_BYTES) {
            body = field.bytes;
        }
    }
    return body;
}

__attribute__((noinline)) static enum lw_pulsar_fault
decode_any(struct lw_bytes bytes, struct lw_pulsar_command *ret_command)
{
    struct lw_proto_reader reader = lw_proto_reader_of(bytes);
    struct lw_bytes body = { NULL, 0 };
    uint64_t type = 0;
    uint32_t id;
    uint32_t wire;
    bool has_type = false;
    bool is_ordered = true;
    while (lw_proto_read_tag(&reader, &id, &wire)) {
        if (id == TYPE_ID && wire == LW_PROTO_VARINT) {
            is_ordered = is_ordered && !has_type;
            has_type = lw_proto_read_varint(&reader, &type);
        } else if (has_type && id == type && wire == LW_PROTO_BYTES) {
            lw_proto_read_bytes(&reader, &body);
        } else {
            is_ordered = is_ordered && has_type;
            lw_proto_skip(&reader, wire);
        }
    }
    if (reader.is_bad) {
        return LW_PULSAR_PROTO_MALFORMED;
    }
    if (!has_type) {
        return LW_PULSAR_TYPE_MISSING;
    }
    if (!is_ordered) {
        body = find_body(bytes, (uint32_t)type);
    }
    return decode_body((int32_t)(uint32_t)type, body, ret_command);
}

enum lw_pulsar_fault
lw_pulsar_command_decode(struct lw_bytes bytes, struct lw_pulsar_command *ret_command)
{
    if (__builtin_expect(lw_pulsar_message_decode_usual(bytes, &ret_command->message), 1)) {
        ret_command->type = LW_PULSAR_MESSAGE;
        ret_command->is_known = true;
        return LW_PULSAR_OK;
    }
    return decode_any(bytes, ret_command);
}

/* -- Encoding --------------------------------------------------------------------------------- */

void
lw_pulsar_command_encode(const struct lw_pulsar_command *command,
                         struct lw_proto_writer *writer)
{
    const struct lw_pulsar_table *table = lw_pulsar_command_table(command->type);
    lw_assert(table != NULL);
    uint32_t type = (uint32_t)command->type;
    lw_proto_put_number(writer, TYPE_ID, type);
    lw_proto_put_varint(writer, (uint64_t)type << 3 | LW_PROTO_BYTES);
    size_t begin = lw_proto_begin_length(writer);
    lw_pulsar_fields_encode(table, &command->connect, writer);
    lw_proto_end_length(writer, begin);
}

size_t
lw_pulsar_command_frame_size(const struct lw_pulsar_command *command)
{
    struct lw_proto_writer measure = lw_proto_writer_of(NULL, 0);
    lw_pulsar_command_encode(command, &measure);
    return LW_PULSAR_HEAD_BYTES + measure.size;
}

void
lw_pulsar_command_write(const struct lw_pulsar_command *command, struct lw_proto_writer *writer)
{
    lw_assert(!lw_pulsar_command_has_payload(command->type));
    uint8_t *head = lw_proto_claim(writer, LW_PULSAR_HEAD_BYTES);
    size_t begin = writer->size;
    lw_pulsar_command_encode(command, writer);
    if (head != NULL && !lw_proto_is_overflow(writer)) {
        lw_proto_store_be32(head, (uint32_t)(writer->size - begin + 4));
        lw_proto_store_be32(head + 4, (uint32_t)(writer->size - begin));
    }
}
