/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a consumer keeps of an entry (a message, a batch, or a chunked message under the id of its
 * last chunk). Three things with lives of their own:
 *
 *   entry    one per (ledger, entry), found in the table while the broker's copies are to be known:
 *            a member is here or its ack is not confirmed. Which members are not acknowledged, are
 *            here, and wait for a negative ack, are three sets of bits.
 *   arrival  one delivery of it: the memory that its messages look into (block, buffer). The first
 *            one lies in the entry, so that a single message takes one object.
 *   member   one message: the `owner` of a lw_message.
 *
 * An entry goes when it is in no table, no ack is under way and no message of it is left; the
 * memory of an arrival when none of its messages looks into it any more. Loop thread, except the
 * headers of a message.
 */
#ifndef LW_BROKERS_PULSAR_ENTRY_H
#define LW_BROKERS_PULSAR_ENTRY_H

#include <laneway/plugin.h>

#include "base/list.h"
#include "base/pool.h"
#include "brokers/pulsar/arrays.h"
#include "brokers/pulsar/block.h"
#include "brokers/pulsar/held.h"
#include "brokers/pulsar/wire/message.h"

struct lw_pulsar_arrival;
struct lw_pulsar_consumer;

/*
 * QUEUED -> HELD by receive; HELD -> SETTLED by ack or nack; each to released. A settlement in
 * another state, or of a fenced entry, is ignored.
 */
enum lw_pulsar_received_state { LW_PULSAR_QUEUED, LW_PULSAR_HELD, LW_PULSAR_SETTLED };

struct lw_pulsar_received {
    struct lw_queue_node node; /* of the consumer's queue */
    struct lw_pulsar_arrival *arrival;
    struct lw_bytes key;
    struct lw_bytes ordering_key;
    struct lw_bytes value;
    struct lw_bytes schema_version;
    struct lw_pulsar_list properties;
    uint64_t event_time;
    uint8_t *copy; /* not NULL: detached, and all views point into it */
    int32_t index; /* in the batch as it was published */
    enum lw_pulsar_received_state state;
    bool has_bytes_key; /* the key came in base64 */
};

struct lw_pulsar_arrival {
    struct lw_pulsar_entry *entry;
    struct lw_pulsar_block *block;
    uint8_t *buffer; /* decompressed or assembled; NULL: all lies in the block */
    struct lw_pulsar_received *members; /* of a batch; NULL: single */
    uint64_t publish_time;
    uint32_t redeliveries;
    uint32_t left; /* messages not released */
    uint32_t pins; /* messages that look into block and buffer */
    struct lw_pulsar_received single;
};

enum lw_pulsar_ack_state {
    LW_PULSAR_ACK_NONE,
    LW_PULSAR_ACK_PENDING, /* to be sent with the next group */
    LW_PULSAR_ACK_SENT     /* no receipt yet */
};

struct lw_pulsar_chunk_id {
    uint64_t ledger;
    uint64_t entry;
};

enum { LW_PULSAR_NOT_INVALID = -1 };

/* Why an entry cannot be read; with the metadata of one that is encrypted. */
struct lw_pulsar_fault_note {
    const char *text;
    size_t sealed_size; /* 0: it is not encrypted */
    uint8_t sealed[];
};

/* Where an entry lies in its topic's order. */
struct lw_pulsar_place {
    uint64_t ledger;
    uint64_t entry;
};

struct lw_pulsar_entries {
    struct lw_pool pool;
    struct lw_pulsar_entry *spare; /* the last one first: it is still in the caches */
    uint32_t taken_count;          /* in use; those that are spare are not */
    struct lw_pulsar_arrays *arrays;
    struct lw_pulsar_held held;
    struct lw_list remembered; /* oldest first */
    uint32_t remembered_count;
    struct lw_pulsar_place
        hole; /* the first one that was let go unacknowledged; all ones: none */
};

struct lw_pulsar_entry {
    void *pool_link;
    struct lw_pulsar_entries *home;
    struct lw_pulsar_consumer *consumer;
    struct lw_pulsar_entry *held_next; /* of the same bucket, or of the spare ones */
    size_t held_hash;
    uint64_t ledger;
    uint64_t id;
    int32_t partition;
    int32_t batch_size; /* 0: no batch */
    uint32_t word_count;
    uint32_t left;      /* messages of all arrivals that are not released */
    int16_t validation; /* LW_PULSAR_INVALID_: it has a note; or LW_PULSAR_NOT_INVALID */
    uint8_t ack_state;
    bool is_ack_again; /* more was acknowledged while an ack was under way */
    bool is_in_table;
    bool is_fenced;     /* not ours any more: settlements are ignored */
    bool is_copy_due;   /* the broker may have it on its way once more */
    bool is_remembered; /* for its partial acks alone */
    uint64_t *unacked;  /* bits: not acknowledged by us */
    uint64_t *here;     /* bits: queued, held, or waiting for a negative ack */
    uint64_t *nacked;   /* bits: waiting for a negative ack */
    uint64_t own_words[6];
    struct lw_list ack_link; /* of those to ack, of a group, or of the remembered */
    struct lw_list timeout_link;
    uint64_t timeout_due;
    uint64_t nack_due;
    size_t nack_place;                 /* in the heap, from 1; 0: not in it */
    struct lw_pulsar_fault_note *note; /* owned; only where `validation` says so */
    struct lw_pulsar_chunk_id *chunks; /* before the last one, which is the entry itself */
    uint32_t chunk_count;
    struct lw_pulsar_arrival first;
};

/* Arrays come from `arrays`, which outlive the entries. */
LW_MUST_USE enum lw_status
lw_pulsar_entries_init(struct lw_pulsar_entries *entries, struct lw_pulsar_arrays *arrays,
                       uint64_t seed);
void lw_pulsar_entries_deinit(struct lw_pulsar_entries *entries);
/*
 * Before which place everything that was received is acknowledged: the first open entry or hole.
 * with_refused: one that waits to be refused by a validation error counts as open.
 */
struct lw_pulsar_place
lw_pulsar_entries_first_open(const struct lw_pulsar_entries *entries, bool with_refused);
/* What was let go comes again, or is given up: no hole is known any more. */
void lw_pulsar_entries_forget_hole(struct lw_pulsar_entries *entries);
void
lw_pulsar_entries_note_hole(struct lw_pulsar_entries *entries, uint64_t ledger, uint64_t entry);

/* Makes one with all bits of its members unacknowledged and none here, in the table. NULL: no
 * memory. */
struct lw_pulsar_entry *
lw_pulsar_entry_create(struct lw_pulsar_entries *entries, uint64_t ledger, uint64_t id,
                       int32_t batch_size);
/* Out of the table if nothing of it is to be known any more, and freed if nothing holds it. */
void lw_pulsar_entry_tidy(struct lw_pulsar_entry *entry);
/* Ends ownership: out of the table, settlements are ignored from now on. */
void lw_pulsar_entry_fence(struct lw_pulsar_entry *entry);
/* Keeps it, for partial acks that the broker does not know, or for a copy that is on its way; the
 * oldest of many is forgotten. */
void lw_pulsar_entry_remember(struct lw_pulsar_entry *entry);
bool lw_pulsar_entry_has_unacked(const struct lw_pulsar_entry *entry);
bool lw_pulsar_entry_has_here(const struct lw_pulsar_entry *entry);

/* An arrival that holds `block` (may be NULL) and owns `buffer`; NULL: no memory (`buffer` is
 * freed). With `count` members of a batch, 0: single. */
struct lw_pulsar_arrival *
lw_pulsar_arrival_create(struct lw_pulsar_entry *entry, struct lw_pulsar_block *block,
                         uint8_t *buffer, uint32_t count);
/* Gives up an arrival without any message. */
void lw_pulsar_arrival_drop(struct lw_pulsar_arrival *arrival);
/* A message looks into it no more. */
void lw_pulsar_arrival_unpin(struct lw_pulsar_arrival *arrival);
/*
 * An entry with its arrival and its only message, which has begun, in one: what the functions above
 * make of a new one that is no batch. NULL: no memory (`buffer` is freed).
 */
struct lw_pulsar_received *
lw_pulsar_single_create(struct lw_pulsar_entries *entries, uint64_t ledger, uint64_t id,
                        struct lw_pulsar_block *block, uint8_t *buffer);
/* A message ends. */
void lw_pulsar_received_end(struct lw_pulsar_received *member);
/* Writes what a dispatcher sees. */
void lw_pulsar_received_fill(struct lw_pulsar_received *member, uint32_t slot,
                             struct lw_message *out);
/* Decodes base64 where it lies; false, and nothing is changed, when it is none. */
bool lw_pulsar_key_decode(struct lw_bytes *key);

static inline bool
lw_pulsar_bit_is_set(const uint64_t *words, uint32_t index)
{
    return (words[index >> 6] >> (index & 63) & 1) != 0;
}

static inline void
lw_pulsar_bit_set(uint64_t *words, uint32_t index)
{
    words[index >> 6] |= UINT64_C(1) << (index & 63);
}

static inline void
lw_pulsar_bit_clear(uint64_t *words, uint32_t index)
{
    words[index >> 6] &= ~(UINT64_C(1) << (index & 63));
}

static inline bool
lw_pulsar_place_is_before(struct lw_pulsar_place a, struct lw_pulsar_place b)
{
    return a.ledger < b.ledger || (a.ledger == b.ledger && a.entry < b.entry);
}

static inline uint32_t
lw_pulsar_received_bit(const struct lw_pulsar_received *member)
{
    return member->index < 0 ? 0 : (uint32_t)member->index;
}

/* Harmless if it was not remembered. */
static inline void
lw_pulsar_entry_forget(struct lw_pulsar_entry *entry)
{
    if (entry->is_remembered) {
        entry->is_remembered = false;
        entry->home->remembered_count--;
        lw_list_remove(&entry->ack_link);
    }
}

/* Out of the list of those with a time-out; most are in none, and nothing is written then. */
static inline void
lw_pulsar_entry_unwatch(struct lw_pulsar_entry *entry)
{
    if (__builtin_expect(!lw_list_is_empty(&entry->timeout_link), 0)) {
        lw_list_remove(&entry->timeout_link);
    }
}

/* A message begins. */
static inline void
lw_pulsar_received_begin(struct lw_pulsar_received *member, struct lw_pulsar_arrival *arrival,
                         int32_t index)
{
    member->arrival = arrival;
    member->copy = NULL;
    member->index = index;
    member->state = LW_PULSAR_QUEUED;
    arrival->left++;
    arrival->pins++;
    arrival->entry->left++;
    lw_pulsar_bit_set(arrival->entry->here, lw_pulsar_received_bit(member));
}

#endif
