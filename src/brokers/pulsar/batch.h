/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches that are being filled, of one producer. One takes all messages, or one per key (the
 * ordering key before the key) so that a Key_Shared subscription can give each entry to the owner
 * of its key. The limits of count and bytes hold for the sum. Batches are taken out in the order
 * in which they were begun, which is that of their first messages. Members stay where they are
 * until their batch is sent; no ids are given here. Pure.
 */
#ifndef LW_BROKERS_PULSAR_BATCH_H
#define LW_BROKERS_PULSAR_BATCH_H

#include "base/list.h"
#include "brokers/pulsar/producer_ring.h"

enum { LW_PULSAR_OPEN_BATCHES_MAX = 64 };

struct lw_pulsar_open_batch {
    struct lw_list link;
    uint64_t hash; /* of the key, if by key */
    struct lw_pulsar_waiting *items;
    uint32_t count;
    uint32_t capacity;
    size_t bytes; /* the most that its body can take */
};

struct lw_pulsar_batches {
    struct lw_list open;  /* oldest first */
    struct lw_list spare; /* memory for later ones */
    uint32_t open_count;
    uint32_t count; /* messages */
    size_t bytes;
    uint32_t messages_max;
    size_t bytes_max;
    bool is_by_key;
};

void lw_pulsar_batches_init(struct lw_pulsar_batches *batches, uint32_t messages_max,
                            size_t bytes_max, bool is_by_key);
void
lw_pulsar_batches_deinit(struct lw_pulsar_batches *batches); /* members stay the caller's */
/* The most that a publication can take as a member. */
size_t lw_pulsar_member_bytes_max(const struct lw_publication *publication);
/* A message that is larger than a whole batch may be goes alone. */
bool lw_pulsar_batches_takes(const struct lw_pulsar_batches *batches, size_t bytes);
/* Whether it joins what is open; if not, all of it is sent first. */
bool lw_pulsar_batches_fits(const struct lw_pulsar_batches *batches,
                            const struct lw_publication *publication, size_t bytes);
/* False without memory. It was asked whether it fits. */
bool lw_pulsar_batches_add(struct lw_pulsar_batches *batches, struct lw_pulsar_waiting item,
                           size_t bytes);
bool lw_pulsar_batches_is_full(const struct lw_pulsar_batches *batches);
/* Takes the oldest one (last: the youngest) out; NULL: none. Give it back when it is sent. */
struct lw_pulsar_open_batch *lw_pulsar_batches_take(struct lw_pulsar_batches *batches);
struct lw_pulsar_open_batch *lw_pulsar_batches_take_last(struct lw_pulsar_batches *batches);
void
lw_pulsar_batches_give(struct lw_pulsar_batches *batches, struct lw_pulsar_open_batch *batch);

#endif
