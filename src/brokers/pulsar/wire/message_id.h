/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MessageIdData: where a message lies. Its protobuf form (also the public serialised form of all
 * clients), its two text forms, and its order. A chunked message carries the id of its last chunk
 * and, as bytes that are decoded by one more call, that of its first: one level by hand, so that
 * a hostile nesting costs nothing.
 */
#ifndef LW_BROKERS_PULSAR_WIRE_MESSAGE_ID_H
#define LW_BROKERS_PULSAR_WIRE_MESSAGE_ID_H

#include "brokers/pulsar/wire/fault.h"
#include "brokers/pulsar/wire/list.h"

/* Bits of `has`: the field's number. */
enum {
    LW_PULSAR_ID_HAS_PARTITION = 1 << 3,
    LW_PULSAR_ID_HAS_BATCH_INDEX = 1 << 4,
    LW_PULSAR_ID_HAS_BATCH_SIZE = 1 << 6,
};

struct lw_pulsar_message_id {
    uint64_t has;
    uint64_t ledger;
    uint64_t entry;
    int32_t partition;   /* -1: none */
    int32_t batch_index; /* -1: none */
    int32_t batch_size;
    struct lw_pulsar_list ack_set; /* words; a set bit is a member not yet acknowledged */
    struct lw_bytes first_chunk;   /* an encoded MessageIdData; null: not chunked */
};

enum { LW_PULSAR_ID_TEXT_BYTES = 80 };

/* (ledger, entry) without partition and batch. */
struct lw_pulsar_message_id lw_pulsar_message_id_of(uint64_t ledger, uint64_t entry);
enum lw_pulsar_fault
lw_pulsar_message_id_decode(struct lw_bytes bytes, struct lw_pulsar_message_id *ret_id);
/* Writes the public serialised form: partition and batch index only from 0 up. */
void lw_pulsar_message_id_serialize(const struct lw_pulsar_message_id *id,
                                    struct lw_proto_writer *writer);
/* Puts an id, in its serialised form, into a list that is being made (acks, redeliveries). */
void
lw_pulsar_list_put_id(struct lw_proto_writer *writer, const struct lw_pulsar_message_id *id);
/* As lw_pulsar_walk_bytes, decoded. A malformed id ends the walk with is_bad. */
bool lw_pulsar_walk_id(struct lw_pulsar_walk *walk, struct lw_pulsar_message_id *ret_id);

/* Orders by ledger, entry, batch index (-1 first). */
int lw_pulsar_message_id_compare(const struct lw_pulsar_message_id *a,
                                 const struct lw_pulsar_message_id *b);
/* "ledger:entry:partition[:batch]", as Java and Go print it. */
void lw_pulsar_message_id_print(const struct lw_pulsar_message_id *id, char *out, size_t size);
/* "(ledger,entry,partition,batch)", as C++ and Python print it (property ORIGIN_MESSAGE_ID). */
void
lw_pulsar_message_id_print_tuple(const struct lw_pulsar_message_id *id, char *out, size_t size);
/* Reads both text forms; false when it is neither. Partition and batch may be missing. */
bool lw_pulsar_message_id_parse(const char *text, struct lw_pulsar_message_id *ret_id);

#endif
