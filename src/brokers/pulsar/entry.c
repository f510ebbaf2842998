/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries, arrivals and members: who holds what, and when it goes. A single message with its entry
 * and arrival is one object of the pool; a batch adds one array of members, and more than 64
 * members one array of bits.
 */
#include "brokers/pulsar/entry.h"

#include <string.h>

#include "base/alloc.h"

enum { ENTRIES_MAX = 1 << 20, CHUNK = 128, SETS = 3, WORD = 64, REMEMBERED_MAX = 1024 };

enum lw_status
lw_pulsar_entries_init(struct lw_pulsar_entries *entries, struct lw_pulsar_arrays *arrays,
                       uint64_t seed)
{
    entries->arrays = arrays;
    entries->spare = NULL;
    entries->taken_count = 0;
    lw_pulsar_held_init(&entries->held, seed);
    lw_list_init(&entries->remembered);
    entries->remembered_count = 0;
    lw_pulsar_entries_forget_hole(entries);
    return lw_pool_init(&entries->pool, sizeof(struct lw_pulsar_entry), ENTRIES_MAX, CHUNK,
                        NULL, NULL);
}

/* The pool makes them; those that were used wait apart, since it would reuse them in turn. */
LW_INLINE struct lw_pulsar_entry *
take_entry(struct lw_pulsar_entries *entries)
{
    struct lw_pulsar_entry *entry = entries->spare;
    if (__builtin_expect(entry != NULL, 1)) {
        entries->spare = entry->held_next;
    } else if ((entry = lw_pool_take(&entries->pool)) == NULL) {
        return NULL;
    }
    entries->taken_count++;
    return entry;
}

LW_INLINE void
give_entry(struct lw_pulsar_entries *entries, struct lw_pulsar_entry *entry)
{
    entries->taken_count--;
    entry->held_next = entries->spare;
    entries->spare = entry;
}

LW_INLINE void
free_parts(struct lw_pulsar_entry *entry)
{
    if (entry->unacked != entry->own_words) {
        lw_pulsar_arrays_give(entry->home->arrays, entry->unacked);
    }
    if (entry->chunks) {
        lw_free(entry->chunks);
    }
    if (__builtin_expect(entry->validation != LW_PULSAR_NOT_INVALID, 0)) {
        lw_free(entry->note);
    }
}

static void
end_entry(struct lw_pulsar_entry *entry, void *user)
{
    (void)user;
    lw_pulsar_held_remove(&entry->home->held, entry);
    free_parts(entry);
    give_entry(entry->home, entry);
}

void
lw_pulsar_entries_deinit(struct lw_pulsar_entries *entries)
{
    lw_pulsar_held_each(&entries->held, end_entry, NULL);
    lw_pulsar_held_deinit(&entries->held);
    lw_pool_deinit(&entries->pool);
}

/* -- Entries -------------------------------------------------------------------------------------- */

/* All members up to the size, in as many words as it takes. */
__attribute__((noinline)) static bool
init_many_bits(struct lw_pulsar_entry *entry, uint32_t members)
{
    entry->word_count = (members + WORD - 1) / WORD;
    size_t set_bytes = entry->word_count * sizeof(uint64_t);
    uint64_t *words = SETS * set_bytes <= sizeof entry->own_words
                          ? entry->own_words
                          : lw_pulsar_arrays_take(entry->home->arrays, SETS * set_bytes);
    if (!words) {
        return false;
    }
    uint32_t rest = members % WORD;
    memset(words, 0xff, set_bytes);
    memset(words + entry->word_count, 0, (SETS - 1) * set_bytes);
    words[entry->word_count - 1] = rest == 0 ? UINT64_MAX : (UINT64_C(1) << rest) - 1;
    entry->unacked = words;
    entry->here = words + entry->word_count;
    entry->nacked = words + 2 * (size_t)entry->word_count;
    return true;
}

LW_INLINE void
init_few_bits(struct lw_pulsar_entry *entry, uint64_t all)
{
    entry->word_count = 1;
    entry->unacked = entry->own_words;
    entry->here = entry->own_words + 1;
    entry->nacked = entry->own_words + 2;
    entry->own_words[0] = all;
    entry->own_words[1] = 0;
    entry->own_words[2] = 0;
}

/* All but what follows from its members. */
LW_INLINE void
init_entry(struct lw_pulsar_entry *entry, struct lw_pulsar_entries *home, uint64_t ledger,
           uint64_t id)
{
    entry->home = home;
    entry->consumer = NULL;
    entry->ledger = ledger;
    entry->id = id;
    entry->partition = -1;
    entry->left = 0;
    entry->validation = LW_PULSAR_NOT_INVALID;
    entry->ack_state = LW_PULSAR_ACK_NONE;
    entry->is_ack_again = false;
    entry->is_in_table = true;
    entry->is_fenced = false;
    entry->is_copy_due = false;
    entry->is_remembered = false;
    entry->nack_place = 0;
    entry->chunks = NULL;
    entry->chunk_count = 0;
    entry->first.left = 0;
    lw_list_init(&entry->ack_link);
    lw_list_init(&entry->timeout_link);
}

struct lw_pulsar_entry *
lw_pulsar_entry_create(struct lw_pulsar_entries *entries, uint64_t ledger, uint64_t id,
                       int32_t batch_size)
{
    struct lw_pulsar_entry *entry = take_entry(entries);
    if (!entry) {
        return NULL;
    }
    init_entry(entry, entries, ledger, id);
    entry->batch_size = batch_size;
    if (batch_size <= WORD) {
        init_few_bits(entry, UINT64_MAX >> (WORD - (batch_size > 0 ? batch_size : 1)));
    } else if (!init_many_bits(entry, (uint32_t)batch_size)) {
        give_entry(entries, entry);
        return NULL;
    }
    if (!lw_pulsar_held_add(&entries->held, entry)) {
        free_parts(entry);
        give_entry(entries, entry);
        return NULL;
    }
    return entry;
}

LW_INLINE bool
has_bits(const uint64_t *words, uint32_t count)
{
    uint64_t all = words[0];
    for (uint32_t i = 1; i < count; i++) {
        all |= words[i];
    }
    return all != 0;
}

bool
lw_pulsar_entry_has_unacked(const struct lw_pulsar_entry *entry)
{
    return has_bits(entry->unacked, entry->word_count);
}

bool
lw_pulsar_entry_has_here(const struct lw_pulsar_entry *entry)
{
    return has_bits(entry->here, entry->word_count);
}

/* -- Open ones -------------------------------------------------------------------------------------- */

void
lw_pulsar_entries_forget_hole(struct lw_pulsar_entries *entries)
{
    entries->hole = (struct lw_pulsar_place){ UINT64_MAX, UINT64_MAX };
}

void
lw_pulsar_entries_note_hole(struct lw_pulsar_entries *entries, uint64_t ledger, uint64_t entry)
{
    struct lw_pulsar_place place = { ledger, entry };
    if (lw_pulsar_place_is_before(place, entries->hole)) {
        entries->hole = place;
    }
}

/* Of its first chunk, if it has more than one. */
static struct lw_pulsar_place
place_of(const struct lw_pulsar_entry *entry)
{
    if (entry->chunk_count > 0) {
        return (struct lw_pulsar_place){ entry->chunks[0].ledger, entry->chunks[0].entry };
    }
    return (struct lw_pulsar_place){ entry->ledger, entry->id };
}

static bool
is_open(const struct lw_pulsar_entry *entry, bool with_refused)
{
    return has_bits(entry->unacked, entry->word_count) ||
           (with_refused && entry->validation != LW_PULSAR_NOT_INVALID &&
            entry->ack_state == LW_PULSAR_ACK_PENDING);
}

static void
lower_to_open(struct lw_pulsar_place *first, const struct lw_pulsar_entry *entry,
              bool with_refused)
{
    struct lw_pulsar_place place = place_of(entry);
    if (lw_pulsar_place_is_before(place, *first) && is_open(entry, with_refused)) {
        *first = place;
    }
}

struct lw_pulsar_place
lw_pulsar_entries_first_open(const struct lw_pulsar_entries *entries, bool with_refused)
{
    struct lw_pulsar_place first = entries->hole;
    for (size_t i = 0; i < entries->held.capacity; i++) {
        const struct lw_pulsar_entry *entry = entries->held.buckets[i];
        for (; entry; entry = entry->held_next) {
            lower_to_open(&first, entry, with_refused);
        }
    }
    return first;
}

LW_INLINE void
leave_table(struct lw_pulsar_entry *entry)
{
    if (entry->is_in_table) {
        if (__builtin_expect(has_bits(entry->unacked, entry->word_count), 0)) {
            struct lw_pulsar_place place = place_of(entry);
            lw_pulsar_entries_note_hole(entry->home, place.ledger, place.entry);
        }
        entry->is_in_table = false;
        lw_pulsar_held_remove(&entry->home->held, entry);
    }
}

void
lw_pulsar_entry_tidy(struct lw_pulsar_entry *entry)
{
    if (entry->ack_state != LW_PULSAR_ACK_NONE) {
        return;
    }
    if (entry->is_in_table && !entry->is_remembered && !lw_pulsar_entry_has_here(entry)) {
        leave_table(entry);
    }
    if (!entry->is_in_table && entry->left == 0) {
        free_parts(entry);
        give_entry(entry->home, entry);
    }
}

void
lw_pulsar_entry_remember(struct lw_pulsar_entry *entry)
{
    struct lw_pulsar_entries *home = entry->home;
    if (!entry->is_remembered) {
        entry->is_remembered = true;
        home->remembered_count++;
        lw_list_push(&home->remembered, &entry->ack_link);
    }
    if (home->remembered_count > REMEMBERED_MAX) {
        struct lw_pulsar_entry *oldest = LW_CONTAINER(home->remembered.next,
                                                      struct lw_pulsar_entry, ack_link);
        lw_pulsar_entry_forget(oldest);
        lw_pulsar_entry_tidy(oldest);
    }
}

void
lw_pulsar_entry_fence(struct lw_pulsar_entry *entry)
{
    lw_assert(entry->nack_place == 0);
    entry->is_fenced = true;
    entry->is_ack_again = false;
    lw_pulsar_entry_forget(entry);
    lw_list_remove(&entry->timeout_link);
    leave_table(entry);
    lw_pulsar_entry_tidy(entry);
}

/* -- Arrivals --------------------------------------------------------------------------------------- */

/* The one in the entry, unless an earlier delivery still lies there; NULL: no memory. */
static struct lw_pulsar_arrival *
place_for(struct lw_pulsar_entry *entry)
{
    return entry->first.left == 0
               ? &entry->first
               : lw_pulsar_arrays_take(entry->home->arrays, sizeof(struct lw_pulsar_arrival));
}

static void
free_place(struct lw_pulsar_arrival *arrival, struct lw_pulsar_entry *entry)
{
    if (arrival && arrival != &entry->first) {
        lw_pulsar_arrays_give(entry->home->arrays, arrival);
    }
}

LW_INLINE void
init_arrival(struct lw_pulsar_arrival *arrival, struct lw_pulsar_entry *entry,
             struct lw_pulsar_block *block, uint8_t *buffer, struct lw_pulsar_received *members)
{
    arrival->entry = entry;
    arrival->block = block;
    arrival->buffer = buffer;
    arrival->members = members;
    arrival->publish_time = 0;
    arrival->redeliveries = 0;
    arrival->left = 0;
    arrival->pins = 0;
    if (block) {
        lw_pulsar_block_hold(block);
    }
}

struct lw_pulsar_arrival *
lw_pulsar_arrival_create(struct lw_pulsar_entry *entry, struct lw_pulsar_block *block,
                         uint8_t *buffer, uint32_t count)
{
    struct lw_pulsar_arrival *arrival = place_for(entry);
    struct lw_pulsar_received *members = NULL;
    if (arrival && count > 0) {
        members = lw_pulsar_arrays_take(entry->home->arrays, count * sizeof *members);
    }
    if (!arrival || (count > 0 && !members)) {
        free_place(arrival, entry);
        lw_free(buffer);
        return NULL;
    }
    init_arrival(arrival, entry, block, buffer, members);
    return arrival;
}

LW_INLINE void
drop_memory(struct lw_pulsar_arrival *arrival)
{
    if (arrival->block) {
        lw_pulsar_block_drop(arrival->block);
        arrival->block = NULL;
    }
    if (arrival->buffer) {
        lw_free(arrival->buffer);
        arrival->buffer = NULL;
    }
}

void
lw_pulsar_arrival_drop(struct lw_pulsar_arrival *arrival)
{
    drop_memory(arrival);
    if (arrival->members) {
        lw_pulsar_arrays_give(arrival->entry->home->arrays, arrival->members);
        arrival->members = NULL;
    }
    free_place(arrival, arrival->entry);
}

void
lw_pulsar_arrival_unpin(struct lw_pulsar_arrival *arrival)
{
    if (--arrival->pins == 0) {
        drop_memory(arrival);
    }
}

/* -- Members ------------------------------------------------------------------------------------------ */

/* Once a message: what it calls is put into it. */
__attribute__((flatten)) struct lw_pulsar_received *
lw_pulsar_single_create(struct lw_pulsar_entries *entries, uint64_t ledger, uint64_t id,
                        struct lw_pulsar_block *block, uint8_t *buffer)
{
    struct lw_pulsar_entry *entry = take_entry(entries);
    if (!entry) {
        lw_free(buffer);
        return NULL;
    }
    init_entry(entry, entries, ledger, id);
    entry->batch_size = 0;
    init_few_bits(entry, 1);
    if (!lw_pulsar_held_add(&entries->held, entry)) {
        give_entry(entries, entry);
        lw_free(buffer);
        return NULL;
    }
    init_arrival(&entry->first, entry, block, buffer, NULL);
    lw_pulsar_received_begin(&entry->first.single, &entry->first, -1);
    return &entry->first.single;
}

/* One that was never settled is not here any more either: a copy of it is welcome. */
void
lw_pulsar_received_end(struct lw_pulsar_received *member)
{
    struct lw_pulsar_arrival *arrival = member->arrival;
    struct lw_pulsar_entry *entry = arrival->entry;
    if (__builtin_expect(member->copy != NULL, 0)) {
        lw_free(member->copy);
    } else if (--arrival->pins == 0) {
        drop_memory(arrival);
    }
    if (member->state != LW_PULSAR_SETTLED && !entry->is_fenced) {
        lw_pulsar_bit_clear(entry->here, lw_pulsar_received_bit(member));
    }
    entry->left--;
    if (--arrival->left == 0 && (arrival->members || arrival != &entry->first)) {
        lw_pulsar_arrival_drop(arrival);
    }
    if (entry->left == 0) {
        lw_pulsar_entry_unwatch(entry);
        if (entry->ack_state == LW_PULSAR_ACK_NONE) {
            lw_pulsar_entry_tidy(entry);
        }
    }
}

/* Ledger, entry and index in one number: ascends in a topic, and is the same for each delivery. */
static int64_t
position_of(const struct lw_pulsar_received *member)
{
    const struct lw_pulsar_entry *entry = member->arrival->entry;
    return (int64_t)((entry->ledger & 0x7ffffff) << 36 | (entry->id & 0xffffff) << 12 |
                     (lw_pulsar_received_bit(member) & 0xfff));
}

void
lw_pulsar_received_fill(struct lw_pulsar_received *member, uint32_t slot,
                        struct lw_message *out)
{
    member->state = LW_PULSAR_HELD;
    out->key = member->key;
    out->ordering_key = member->ordering_key;
    out->value = member->value;
    out->position = position_of(member);
    out->slot = slot;
    out->redeliveries = member->arrival->redeliveries;
    out->fault = member->arrival->entry->validation == LW_PULSAR_NOT_INVALID
                     ? NULL
                     : member->arrival->entry->note->text;
    out->owner = member;
    out->entry = NULL;
}
