/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A repeated field: a view of the encoded bytes that hold it, never an array, so that nothing is
 * allocated and nothing is cut off. Decoding gives the span from the first to the last occurrence
 * (others may lie between; walking skips them). For encoding a list is made by putting items
 * into a writer over the caller's memory; the encoder gives them the id they need. Numbers are
 * accepted packed and single, and written single, as proto2 does.
 */
#ifndef LW_BROKERS_PULSAR_WIRE_LIST_H
#define LW_BROKERS_PULSAR_WIRE_LIST_H

#include "brokers/pulsar/wire/proto.h"

struct lw_pulsar_list {
    const uint8_t *at;
    size_t size;
    uint16_t id;
    uint16_t is_dense; /* made by us: nothing lies between the occurrences */
    uint32_t count;    /* occurrences; a packed one is counted once. 0: the list is empty */
};

/* What a list is made with and the id that lw_pulsar_list_of gives it. */
enum { LW_PULSAR_LIST_ID = 1 };

struct lw_pulsar_pair {
    struct lw_bytes key;
    struct lw_bytes value;
};

struct lw_pulsar_range {
    int32_t start;
    int32_t end; /* inclusive */
};

struct lw_pulsar_walk {
    struct lw_proto_reader reader;
    struct lw_proto_reader packed;
    uint32_t id;
};

struct lw_pulsar_walk lw_pulsar_list_walk(const struct lw_pulsar_list *list);
/* Each returns false at the end; walk.reader.is_bad then says whether something was malformed. */
bool lw_pulsar_walk_bytes(struct lw_pulsar_walk *walk, struct lw_bytes *ret_bytes);
bool lw_pulsar_walk_number(struct lw_pulsar_walk *walk, uint64_t *ret_number);
bool lw_pulsar_walk_pair(struct lw_pulsar_walk *walk, struct lw_pulsar_pair *ret_pair);
bool lw_pulsar_walk_range(struct lw_pulsar_walk *walk, struct lw_pulsar_range *ret_range);

/* Copies up to `count` numbers (ack_set words); returns how many there are in all. */
size_t lw_pulsar_list_numbers(const struct lw_pulsar_list *list, uint64_t *out, size_t count);

/* Making: put the items, then take the list. */
void lw_pulsar_list_put_bytes(struct lw_proto_writer *writer, struct lw_bytes bytes);
void lw_pulsar_list_put_number(struct lw_proto_writer *writer, uint64_t number);
void lw_pulsar_list_put_pair(struct lw_proto_writer *writer, struct lw_bytes key,
                             struct lw_bytes value);
void lw_pulsar_list_put_range(struct lw_proto_writer *writer, struct lw_pulsar_range range);
/* The list of what was put; empty when it did not fit (check lw_proto_is_overflow). */
struct lw_pulsar_list lw_pulsar_list_of(const struct lw_proto_writer *writer);

/* Writes every occurrence of the list as field `id`: texts, bytes, messages; or numbers. */
void lw_pulsar_list_write(const struct lw_pulsar_list *list, uint32_t id,
                          struct lw_proto_writer *writer);
void lw_pulsar_list_write_numbers(const struct lw_pulsar_list *list, uint32_t id,
                                  struct lw_proto_writer *writer);

#endif
