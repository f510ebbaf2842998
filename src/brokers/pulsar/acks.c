/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending entries are mostly in order already, since handlers finish roughly in order of receipt;
 * a group is sorted only when they are not. A plain id is written by hand: it is nearly every one.
 */
#include "brokers/pulsar/acks.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum {
    FIELD_IDS = 3, /* of ACK: with it in place the list is copied as it is */
    KEY_ID = LW_PROTO_KEY(FIELD_IDS, LW_PROTO_BYTES),
    KEY_LEDGER = LW_PROTO_KEY(1, LW_PROTO_VARINT),
    KEY_ENTRY = LW_PROTO_KEY(2, LW_PROTO_VARINT),
    KEY_PARTITION = LW_PROTO_KEY(3, LW_PROTO_VARINT),
    KEY_WORD = LW_PROTO_KEY(5, LW_PROTO_VARINT),
    WORD_BYTES = 1 + LW_PROTO_VARINT_BYTES_MAX,
    ID_BYTES = 2 + 5 + 3 * WORD_BYTES, /* without a set */
};

void
lw_pulsar_acks_init(struct lw_pulsar_acks *acks)
{
    *acks = (struct lw_pulsar_acks){ .is_sorted = true };
    lw_list_init(&acks->pending);
}

void
lw_pulsar_acks_deinit(struct lw_pulsar_acks *acks)
{
    lw_free(acks->buffer);
    acks->buffer = NULL;
}

/* -- Order ---------------------------------------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
    const struct lw_pulsar_entry *const *left = a;
    const struct lw_pulsar_entry *const *right = b;
    if ((*left)->ledger != (*right)->ledger) {
        return (*left)->ledger < (*right)->ledger ? -1 : 1;
    }
    return (*left)->id < (*right)->id ? -1 : (*left)->id > (*right)->id;
}

/* Only the first so many, which the next group takes. */
static void
sort_pending(struct lw_pulsar_acks *acks)
{
    struct lw_pulsar_entry *first[LW_PULSAR_ACK_IDS_MAX];
    size_t count = 0;
    while (count < LW_PULSAR_ACK_IDS_MAX) {
        struct lw_list *link = lw_list_pop(&acks->pending);
        if (!link) {
            break;
        }
        first[count++] = LW_CONTAINER(link, struct lw_pulsar_entry, ack_link);
    }
    qsort(first, count, sizeof(struct lw_pulsar_entry *), compare);
    while (count > 0) {
        lw_list_push_front(&acks->pending, &first[--count]->ack_link);
    }
}

/* -- Ids ------------------------------------------------------------------------------------------------ */

static size_t
set_words(const struct lw_pulsar_entry *entry)
{
    size_t count = entry->word_count;
    while (count > 0 && entry->unacked[count - 1] == 0) {
        count--;
    }
    return count;
}

static size_t
set_size(const struct lw_pulsar_entry *entry, size_t words)
{
    size_t size = words;
    for (size_t i = 0; i < words; i++) {
        size += lw_proto_varint_size(entry->unacked[i]);
    }
    return size;
}

LW_INLINE uint8_t *
put_number(uint8_t *at, uint8_t key, uint64_t value)
{
    *at++ = key;
    for (; value >= 0x80; value >>= 7) {
        *at++ = (uint8_t)(value | 0x80);
    }
    *at++ = (uint8_t)value;
    return at;
}

/* There is room: the caller looked. The size comes last, since it takes one byte without a set. */
static void
put_plain(struct lw_proto_writer *writer, uint64_t ledger, uint64_t id, int32_t partition)
{
    uint8_t *begin = writer->data + writer->size;
    uint8_t *at = put_number(begin + 2, KEY_LEDGER, ledger);
    at = put_number(at, KEY_ENTRY, id);
    if (partition >= 0) {
        at = put_number(at, KEY_PARTITION, (uint32_t)partition);
    }
    begin[0] = KEY_ID;
    begin[1] = (uint8_t)(at - begin - 2);
    writer->size += (size_t)(at - begin);
}

/* How ids of a ledger begin, up to the key of the entry; kept from one id to the next. */
struct prefix {
    uint64_t ledger;
    uint8_t bytes[16];
    size_t size; /* 0: none yet */
};

static void
make_prefix(struct prefix *prefix, uint64_t ledger)
{
    uint8_t *at = put_number(prefix->bytes + 2, KEY_LEDGER, ledger);
    prefix->bytes[0] = KEY_ID;
    *at++ = KEY_ENTRY;
    prefix->size = (size_t)(at - prefix->bytes);
    prefix->ledger = ledger;
}

/* The same as put_plain, of an entry that is one message of a topic without partitions. */
LW_INLINE void
put_single(struct lw_proto_writer *writer, struct prefix *prefix,
           const struct lw_pulsar_entry *entry)
{
    if (__builtin_expect(prefix->ledger != entry->ledger || prefix->size == 0, 0)) {
        make_prefix(prefix, entry->ledger);
    }
    uint8_t *begin = writer->data + writer->size;
    memcpy(begin, prefix->bytes, sizeof prefix->bytes);
    uint8_t *at = begin + prefix->size;
    uint64_t id = entry->id;
    for (; id >= 0x80; id >>= 7) {
        *at++ = (uint8_t)(id | 0x80);
    }
    *at++ = (uint8_t)id;
    begin[1] = (uint8_t)(at - begin - 2);
    writer->size += (size_t)(at - begin);
}

static void
put_with_set(struct lw_proto_writer *writer, const struct lw_pulsar_entry *entry, size_t words)
{
    size_t size = 2 + lw_proto_varint_size(entry->ledger) + lw_proto_varint_size(entry->id);
    size += set_size(entry, words);
    lw_proto_put_varint(writer, KEY_ID);
    lw_proto_put_varint(writer, size);
    lw_proto_put_number(writer, 1, entry->ledger);
    lw_proto_put_number(writer, 2, entry->id);
    for (size_t i = 0; i < words; i++) {
        lw_proto_put_varint(writer, KEY_WORD);
        lw_proto_put_varint(writer, entry->unacked[i]);
    }
}

static void
put_ids(struct lw_proto_writer *writer, const struct lw_pulsar_entry *entry)
{
    for (uint32_t i = 0; i < entry->chunk_count; i++) {
        put_plain(writer, entry->chunks[i].ledger, entry->chunks[i].entry, entry->partition);
    }
    size_t words = entry->batch_size > 0 ? set_words(entry) : 0;
    if (words > 0) {
        put_with_set(writer, entry, words);
    } else {
        put_plain(writer, entry->ledger, entry->id, entry->partition);
    }
}

static size_t
bytes_for(const struct lw_pulsar_entry *entry)
{
    return ((size_t)entry->chunk_count + 1) * ID_BYTES +
           (entry->batch_size > 0 ? (size_t)entry->word_count * WORD_BYTES : 0);
}

/* -- Groups --------------------------------------------------------------------------------------------- */

/* One id and no more to say: it takes ID_BYTES at most. */
LW_INLINE bool
is_single(const struct lw_pulsar_entry *entry)
{
    return entry->batch_size == 0 && entry->chunk_count == 0 && entry->partition < 0 &&
           entry->validation == LW_PULSAR_NOT_INVALID;
}

/* Whether it may join a group of so many ids and bytes. */
static bool
fits(const struct lw_pulsar_entry *entry, uint32_t ids, size_t bytes)
{
    return ids == 0 || (entry->validation == LW_PULSAR_NOT_INVALID &&
                        ids + entry->chunk_count < LW_PULSAR_ACK_IDS_MAX &&
                        bytes + bytes_for(entry) <= LW_PULSAR_ACK_BYTES_MAX);
}

/* The first `count` of the pending ones, which end before `end`, become the group. */
static void
move(struct lw_pulsar_acks *acks, struct lw_list *end, uint32_t count, struct lw_list *group)
{
    struct lw_list *pending = &acks->pending;
    struct lw_list *first = pending->next;
    struct lw_list *last = end->prev;
    pending->next = end;
    end->prev = pending;
    group->next = first;
    first->prev = group;
    group->prev = last;
    last->next = group;
    acks->pending_count -= count;
    acks->sent_count += count;
}

bool
lw_pulsar_acks_take(struct lw_pulsar_acks *acks, struct lw_list *group,
                    struct lw_pulsar_list *ret_ids, int32_t *ret_validation)
{
    uint32_t ids = 0;
    int32_t validation = LW_PULSAR_NOT_INVALID;
    if (acks->pending_count > 0 && !acks->buffer) {
        acks->buffer = lw_alloc(LW_PULSAR_ACK_BYTES_MAX);
    }
    if (acks->pending_count == 0 || !acks->buffer) {
        return false;
    }
    if (!acks->is_sorted) {
        sort_pending(acks);
    }
    struct lw_proto_writer writer = lw_proto_writer_of(acks->buffer, LW_PULSAR_ACK_BYTES_MAX);
    struct prefix prefix = { .size = 0 };
    struct lw_list *at = acks->pending.next;
    uint32_t count = 0;
    for (; validation == LW_PULSAR_NOT_INVALID && at != &acks->pending; at = at->next) {
        struct lw_pulsar_entry *entry = LW_CONTAINER(at, struct lw_pulsar_entry, ack_link);
        if (is_single(entry) && ids < LW_PULSAR_ACK_IDS_MAX &&
            writer.size <= LW_PULSAR_ACK_BYTES_MAX - ID_BYTES) {
            put_single(&writer, &prefix, entry);
        } else if (fits(entry, ids, writer.size)) {
            put_ids(&writer, entry);
        } else {
            break;
        }
        validation = entry->validation;
        ids += entry->chunk_count + 1;
        entry->ack_state = LW_PULSAR_ACK_SENT;
        count++;
    }
    move(acks, at, count, group);
    acks->is_sorted |= acks->pending_count == 0;
    *ret_ids = (struct lw_pulsar_list){
        .at = writer.data, .size = writer.size, .id = FIELD_IDS, .is_dense = 1, .count = ids
    };
    *ret_validation = validation;
    return true;
}

static bool
is_before(const struct lw_pulsar_entry *entry, struct lw_pulsar_place end)
{
    struct lw_pulsar_place place = { entry->ledger, entry->id };
    return lw_pulsar_place_is_before(place, end);
}

bool
lw_pulsar_acks_are_before(const struct lw_pulsar_acks *acks, struct lw_pulsar_place end,
                          uint32_t least)
{
    uint32_t count = 0;
    for (struct lw_list *at = acks->pending.next; at != &acks->pending && count < least;
         at = at->next) {
        count += is_before(LW_CONTAINER(at, struct lw_pulsar_entry, ack_link), end);
    }
    return count == least;
}

void
lw_pulsar_acks_take_before(struct lw_pulsar_acks *acks, struct lw_pulsar_place end,
                           struct lw_list *group, uint8_t *buffer,
                           struct lw_pulsar_list *ret_id)
{
    const struct lw_pulsar_entry *last = NULL;
    for (struct lw_list *at = acks->pending.next, *next; at != &acks->pending; at = next) {
        struct lw_pulsar_entry *entry = LW_CONTAINER(at, struct lw_pulsar_entry, ack_link);
        next = at->next;
        if (!is_before(entry, end)) {
            continue;
        }
        lw_list_remove(at);
        lw_list_push(group, at);
        entry->ack_state = LW_PULSAR_ACK_SENT;
        acks->pending_count--;
        acks->sent_count++;
        if (!last || !is_before(entry, (struct lw_pulsar_place){ last->ledger, last->id })) {
            last = entry;
        }
    }
    acks->is_sorted |= acks->pending_count == 0;
    lw_assert(last);
    struct lw_pulsar_message_id id = lw_pulsar_message_id_of(last->ledger, last->id);
    struct lw_proto_writer writer = lw_proto_writer_of(buffer, LW_PULSAR_ACK_ID_BYTES);
    if (last->partition >= 0) {
        id.has |= LW_PULSAR_ID_HAS_PARTITION;
        id.partition = last->partition;
    }
    lw_pulsar_list_put_id(&writer, &id);
    *ret_id = lw_pulsar_list_of(&writer);
}

void
lw_pulsar_acks_confirm(struct lw_pulsar_acks *acks, struct lw_list *group)
{
    struct lw_list *next = group->next;
    for (struct lw_list *at = next; at != group; at = next) {
        struct lw_pulsar_entry *entry = LW_CONTAINER(at, struct lw_pulsar_entry, ack_link);
        next = at->next;
        lw_list_init(at); /* out of the group, which is empty at the end */
        entry->ack_state = LW_PULSAR_ACK_NONE;
        acks->sent_count--;
        if (entry->is_ack_again) {
            entry->is_ack_again = false;
            lw_pulsar_acks_push(acks, entry);
        } else if (entry->is_copy_due && !entry->is_fenced) {
            lw_pulsar_entry_remember(entry); /* it may have been read before the ack came */
        } else {
            lw_pulsar_entry_tidy(entry);
        }
    }
    lw_list_init(group);
}

void
lw_pulsar_acks_return(struct lw_pulsar_acks *acks, struct lw_list *group)
{
    for (struct lw_list *link; (link = lw_list_pop(group)) != NULL;) {
        struct lw_pulsar_entry *entry = LW_CONTAINER(link, struct lw_pulsar_entry, ack_link);
        entry->is_ack_again = false;
        acks->sent_count--;
        if (entry->is_fenced) { /* what comes again now is another's, or wanted again */
            entry->ack_state = LW_PULSAR_ACK_NONE;
            lw_pulsar_entry_tidy(entry);
        } else {
            lw_pulsar_acks_push(acks, entry);
        }
    }
}
