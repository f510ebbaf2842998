/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message without an ack is an entry in exactly one place (enum lw_memory_entry_place). Entries
 * come from a pool; both heaps are as large as the pool, so that once a message is out nothing
 * about it can fail for lack of memory. An entry that is acknowledged while it waits in a heap
 * (a late ack) is marked and dropped when it is popped. It keeps its chunk alive: retention does
 * not take back what is out.
 *
 * Redelivery comes before new messages, lowest position first, as on the real broker. A batch goes
 * to one slot as a whole, whatever was asked for; its members wait there in `sent`. By key there
 * is no heap of what is ready, but a line for each hash (keys.h).
 */
#include "brokers/memory/backlog.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "brokers/memory/keys.h"
#include "brokers/memory/source.h"

enum { ENTRIES_GROW = 64, ENTRIES_MAX = 1 << 24 };

/* -- Heaps: by due time, then by position ---------------------------------------------------- */

static bool
is_before(const struct lw_memory_entry *a, const struct lw_memory_entry *b)
{
    return a->due != b->due ? a->due < b->due : a->record->position < b->record->position;
}

static void
heap_push(struct lw_memory_heap *heap, struct lw_memory_entry *entry)
{
    lw_assert(heap->count < heap->capacity);
    uint32_t at = heap->count++;
    while (at > 0 && is_before(entry, heap->entries[(at - 1) / 2])) {
        heap->entries[at] = heap->entries[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->entries[at] = entry;
}

static struct lw_memory_entry *
heap_pop(struct lw_memory_heap *heap)
{
    struct lw_memory_entry *top = heap->entries[0];
    struct lw_memory_entry *moved = heap->entries[--heap->count];
    uint32_t at = 0;
    for (uint32_t child = 1; child < heap->count; child = at * 2 + 1) {
        if (child + 1 < heap->count &&
            is_before(heap->entries[child + 1], heap->entries[child])) {
            child++;
        }
        if (!is_before(heap->entries[child], moved)) {
            break;
        }
        heap->entries[at] = heap->entries[child];
        at = child;
    }
    heap->entries[at] = moved;
    return top;
}

static bool
heap_reserve(struct lw_memory_heap *heap, uint32_t capacity)
{
    if (heap->capacity >= capacity) {
        return true;
    }
    void *entries = lw_resize_array(heap->entries, capacity, sizeof(struct lw_memory_entry *));
    if (!entries) {
        return false;
    }
    heap->entries = entries;
    heap->capacity = capacity;
    return true;
}

/* -- Entries ------------------------------------------------------------------------------- */

static void
give_if_unused(struct lw_memory_entry *entry)
{
    if (entry->refs == 0 && entry->place == LW_MEMORY_ENTRY_DONE) {
        lw_memory_chunk_release(entry->chunk);
        lw_pool_give(&entry->backlog->entries, entry);
    }
}

void
lw_memory_entry_release(struct lw_memory_entry *entry)
{
    lw_assert(entry->refs > 0);
    entry->refs--;
    give_if_unused(entry);
}

/* Makes room for one more entry in the pool and in both heaps. */
static bool
reserve(struct lw_memory_backlog *backlog)
{
    struct lw_pool *pool = &backlog->entries;
    if (pool->taken_count < pool->count) {
        return true;
    }
    uint32_t count = pool->count + ENTRIES_GROW;
    return heap_reserve(&backlog->ready, count) && heap_reserve(&backlog->delayed, count) &&
           lw_pool_reserve(pool, count) == LW_STATUS_OK;
}

static struct lw_memory_entry *
create_entry(struct lw_memory_backlog *backlog, struct lw_memory_chunk *chunk,
             struct lw_memory_record *record)
{
    struct lw_memory_entry *entry = lw_pool_take(&backlog->entries);
    lw_assert(entry != NULL); /* reserved */
    *entry = (struct lw_memory_entry){ .chunk = chunk, .record = record, .backlog = backlog };
    lw_list_init(&entry->out);
    lw_list_init(&entry->member);
    if (backlog->keys) {
        entry->hash = lw_memory_keys_hash(record);
    }
    chunk->refs++;
    backlog->unsettled++;
    return entry;
}

static void
push_to(struct lw_memory_heap *heap, struct lw_memory_entry *entry)
{
    entry->refs++;
    entry->is_in_heap = true;
    heap_push(heap, entry);
}

static struct lw_memory_entry *
pop_from(struct lw_memory_heap *heap)
{
    struct lw_memory_entry *entry = heap_pop(heap);
    entry->refs--;
    entry->is_in_heap = false;
    return entry;
}

static bool
is_waiting(const struct lw_memory_entry *entry)
{
    return entry->place == LW_MEMORY_ENTRY_READY || entry->place == LW_MEMORY_ENTRY_DELAYED;
}

/* Into the place that fits `due`: delivered again then, or as soon as somebody asks. */
static void
wait_until(struct lw_memory_entry *entry, uint64_t due, uint64_t now)
{
    struct lw_memory_backlog *backlog = entry->backlog;
    bool is_delayed = due > now;
    entry->slot = NULL;
    entry->due = is_delayed ? due : 0;
    entry->place = is_delayed ? LW_MEMORY_ENTRY_DELAYED : LW_MEMORY_ENTRY_READY;
    if (is_delayed || !backlog->keys) {
        push_to(is_delayed ? &backlog->delayed : &backlog->ready, entry);
    } else {
        lw_memory_keys_wait(entry);
    }
}

/* Pops until one is not acknowledged meanwhile; it left its heap then. */
static struct lw_memory_entry *
pop_live(struct lw_memory_heap *heap)
{
    while (heap->count > 0) {
        struct lw_memory_entry *entry = pop_from(heap);
        if (is_waiting(entry)) {
            return entry;
        }
        give_if_unused(entry);
    }
    return NULL;
}

static uint64_t
ripe_at(const struct lw_memory_backlog *backlog)
{
    return backlog->delayed.count > 0 ? backlog->delayed.entries[0]->due : LW_NEVER;
}

static void
ripen(struct lw_memory_backlog *backlog, uint64_t now)
{
    while (ripe_at(backlog) <= now) {
        struct lw_memory_entry *entry = pop_live(&backlog->delayed);
        if (entry) {
            wait_until(entry, 0, now);
        }
    }
}

/* -- To a slot ------------------------------------------------------------------------------- */

void
lw_memory_entry_send(struct lw_memory_entry *entry, struct lw_memory_slot *slot)
{
    struct lw_memory_backlog *backlog = entry->backlog;
    uint32_t most = backlog->is_shared ? slot->source->broker->hub->options.unacked_max : 0;
    entry->place = LW_MEMORY_ENTRY_OUT;
    entry->due = 0;
    entry->slot = slot;
    lw_list_push(&slot->sent, &entry->out);
    slot->unacked++;
    slot->is_blocked = most > 0 && slot->unacked >= most;
    if (backlog->keys) {
        lw_memory_keys_hold(entry, slot);
    }
}

/* The slot does not have it any more. */
static void
take_back(struct lw_memory_entry *entry)
{
    struct lw_memory_slot *slot = entry->slot;
    lw_assert(slot);
    lw_list_remove(&entry->out);
    entry->slot = NULL;
    slot->unacked--;
    if (slot->is_blocked &&
        slot->unacked <= slot->source->broker->hub->options.unacked_max / 2) {
        slot->is_blocked = false;
        lw_memory_slot_wake(slot);
    }
    if (entry->backlog->keys) {
        lw_memory_keys_release(entry);
    }
}

/* What comes again, the lowest position first, with what is left of its batch. */
static bool
send_ready(struct lw_memory_backlog *backlog, struct lw_memory_slot *slot)
{
    struct lw_memory_heap *heap = &backlog->ready;
    struct lw_memory_entry *entry = pop_live(heap);
    if (!entry) {
        return false;
    }
    const struct lw_memory_batch *batch = entry->batch;
    lw_memory_entry_send(entry, slot);
    while (batch && heap->count > 0 && heap->entries[0]->batch == batch) {
        entry = pop_from(heap);
        if (is_waiting(entry)) {
            lw_memory_entry_send(entry, slot);
        }
    }
    return true;
}

/* A batch of its own for more than one; without memory each is settled for itself. */
static void
join(struct lw_memory_entry *entry, struct lw_memory_batch **batch)
{
    bool is_batched = *batch || entry->record->batch_end > entry->record->position;
    if (is_batched && !*batch) {
        *batch = lw_alloc(sizeof **batch);
        if (*batch) {
            lw_list_init(&(*batch)->members);
        }
    }
    if (*batch) {
        entry->batch = *batch;
        lw_list_push(&(*batch)->members, &entry->member);
        (*batch)->left++;
    }
}

/* Reads one message, or all of a batch, as entries in a list; false at the end. */
static bool
read_entries(struct lw_memory_backlog *backlog, uint64_t now, struct lw_list *ret_entries)
{
    struct lw_memory_chunk *chunk = NULL;
    struct lw_memory_log *log = &backlog->partition->log;
    struct lw_memory_record *record = lw_memory_log_peek(log, &backlog->cursor, &chunk);
    struct lw_memory_batch *batch = NULL;
    int64_t end = record ? record->batch_end : -1;
    if (record && record->visible_at > now && !backlog->is_shared) {
        return false;
    }
    while (record && record->position <= end && reserve(backlog)) {
        struct lw_memory_entry *entry = create_entry(backlog, chunk, record);
        join(entry, &batch);
        lw_list_push(ret_entries, &entry->out);
        backlog->cursor.index++;
        record = record->position < end ? lw_memory_log_peek(log, &backlog->cursor, &chunk)
                                        : NULL;
    }
    return !lw_list_is_empty(ret_entries);
}

static bool
may_go(const struct lw_memory_backlog *backlog, const struct lw_memory_entry *entry,
       const struct lw_memory_slot *slot)
{
    return !backlog->keys || lw_memory_keys_may(backlog->keys, entry->hash, slot);
}

static bool
may_read_ahead(const struct lw_memory_backlog *backlog)
{
    return !backlog->keys || backlog->keys->waiting < LW_MEMORY_KEYS_AHEAD;
}

/* To the slot, when it may have it now; delayed ones and those of other slots are set aside. */
static void
send_or_keep(struct lw_memory_entry *entry, struct lw_memory_slot *slot, uint64_t now)
{
    if (entry->record->visible_at > now) {
        wait_until(entry, entry->record->visible_at, now);
    } else if (may_go(entry->backlog, entry, slot)) {
        lw_memory_entry_send(entry, slot);
    } else {
        wait_until(entry, 0, now);
    }
}

/* The next that was never delivered. */
static bool
send_new(struct lw_memory_backlog *backlog, struct lw_memory_slot *slot, uint64_t now)
{
    struct lw_list entries;
    lw_list_init(&entries);
    while (lw_list_is_empty(&slot->sent) && may_read_ahead(backlog) &&
           read_entries(backlog, now, &entries)) {
        struct lw_list *node;
        while ((node = lw_list_pop(&entries)) != NULL) {
            send_or_keep(LW_CONTAINER(node, struct lw_memory_entry, out), slot, now);
        }
    }
    return !lw_list_is_empty(&slot->sent);
}

static bool
send(struct lw_memory_backlog *backlog, struct lw_memory_slot *slot, uint64_t now)
{
    bool is_sent = backlog->keys ? lw_memory_keys_send(backlog, slot)
                                 : send_ready(backlog, slot);
    return is_sent || send_new(backlog, slot, now);
}

struct lw_memory_entry *
lw_memory_backlog_next(struct lw_memory_backlog *backlog, struct lw_memory_slot *slot,
                       uint64_t now)
{
    ripen(backlog, now);
    if (lw_list_is_empty(&slot->sent) && (slot->is_blocked || !send(backlog, slot, now))) {
        return NULL;
    }
    struct lw_list *node = lw_list_pop(&slot->sent);
    lw_assert(node != NULL); /* something was sent */
    lw_list_push(&slot->out, node);
    return LW_CONTAINER(node, struct lw_memory_entry, out);
}

uint64_t
lw_memory_backlog_due(struct lw_memory_backlog *backlog, const struct lw_memory_slot *slot)
{
    if (slot->is_blocked) {
        return LW_NEVER; /* an ack wakes it */
    }
    struct lw_memory_chunk *chunk = NULL;
    const struct lw_memory_record *record = lw_memory_log_peek(&backlog->partition->log,
                                                               &backlog->cursor, &chunk);
    uint64_t due = ripe_at(backlog);
    bool is_earlier = record && may_read_ahead(backlog) && record->visible_at < due;
    return is_earlier ? record->visible_at : due;
}

/* -- Settling ------------------------------------------------------------------------------- */

static void
finish(struct lw_memory_entry *entry)
{
    entry->place = LW_MEMORY_ENTRY_DONE;
    entry->backlog->unsettled--;
    give_if_unused(entry);
}

/* All members are acknowledged: only now the broker forgets them. */
static void
finish_batch(struct lw_memory_batch *batch)
{
    struct lw_list *node;
    while ((node = lw_list_pop(&batch->members)) != NULL) {
        struct lw_memory_entry *entry = LW_CONTAINER(node, struct lw_memory_entry, member);
        entry->batch = NULL;
        finish(entry);
    }
    lw_free(batch);
}

bool
lw_memory_backlog_ack(struct lw_memory_entry *entry)
{
    if (entry->place >= LW_MEMORY_ENTRY_ACKED) {
        return false;
    }
    if (entry->place == LW_MEMORY_ENTRY_OUT) {
        take_back(entry);
    } else if (!entry->is_in_heap) {
        lw_memory_keys_unwait(entry);
    }
    if (!entry->batch) {
        finish(entry);
        return true;
    }
    entry->place = LW_MEMORY_ENTRY_ACKED;
    if (--entry->batch->left == 0) {
        finish_batch(entry->batch);
    }
    return true;
}

/* Brings back what was acknowledged of a batch that is not complete. */
static uint64_t
undo_acks(struct lw_memory_batch *batch)
{
    uint64_t count = 0;
    struct lw_list *head = &batch->members;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_entry *entry = LW_CONTAINER(node, struct lw_memory_entry, member);
        if (entry->place != LW_MEMORY_ENTRY_ACKED) {
            continue;
        }
        batch->left++;
        count++;
        if (entry->is_in_heap) { /* it never left */
            entry->place = entry->due > 0 ? LW_MEMORY_ENTRY_DELAYED : LW_MEMORY_ENTRY_READY;
        } else {
            wait_until(entry, 0, 0);
        }
    }
    return count;
}

void
lw_memory_backlog_nack(struct lw_memory_entry *entry, const struct lw_memory_slot *slot,
                       uint64_t due, uint64_t now)
{
    if (entry->place != LW_MEMORY_ENTRY_OUT || entry->slot != slot) {
        return;
    }
    take_back(entry);
    entry->redeliveries++;
    wait_until(entry, due, now);
}

static void
return_all(struct lw_memory_hub *hub, struct lw_list *entries, bool is_counted)
{
    struct lw_list *node;
    while ((node = lw_list_first(entries)) != NULL) {
        struct lw_memory_entry *entry = LW_CONTAINER(node, struct lw_memory_entry, out);
        take_back(entry);
        entry->redeliveries += is_counted;
        wait_until(entry, 0, 0);
        if (entry->batch && hub->options.undoes_batch_acks) {
            hub->stats.acks_undone += undo_acks(entry->batch);
        }
    }
}

void
lw_memory_backlog_return(struct lw_memory_slot *slot, bool is_counted)
{
    struct lw_memory_hub *hub = slot->source->broker->hub;
    return_all(hub, &slot->out, is_counted);
    return_all(hub, &slot->sent, is_counted);
    slot->is_blocked = false;
}

/* -- Backlogs ------------------------------------------------------------------------------- */

struct lw_memory_backlog *
lw_memory_backlog_find(const struct lw_memory_partition *partition, const char *subscription)
{
    const struct lw_list *head = &partition->backlogs;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_backlog *backlog = LW_CONTAINER(node, struct lw_memory_backlog, link);
        if (strcmp(backlog->subscription, subscription) == 0) {
            return backlog;
        }
    }
    return NULL;
}

struct lw_memory_backlog *
lw_memory_backlog_use(struct lw_memory_partition *partition, const char *subscription,
                      enum lw_memory_sharing sharing, int64_t position)
{
    struct lw_memory_backlog *backlog = lw_memory_backlog_find(partition, subscription);
    if (backlog) {
        return backlog;
    }
    bool has_keys = sharing == LW_MEMORY_KEY_SHARED;
    backlog = lw_alloc(sizeof *backlog);
    char *name = lw_copy_text(subscription);
    struct lw_memory_keys *keys = has_keys ? lw_memory_keys_create() : NULL;
    if (!backlog || !name || (has_keys && !keys) ||
        lw_pool_init(&backlog->entries, sizeof(struct lw_memory_entry), ENTRIES_MAX,
                     ENTRIES_GROW, NULL, NULL) != LW_STATUS_OK) {
        lw_free(backlog);
        lw_free(name);
        lw_free(keys);
        return NULL;
    }
    lw_list_init(&backlog->consumers);
    backlog->keys = keys;
    backlog->partition = partition;
    backlog->subscription = name;
    backlog->is_shared = has_keys || sharing == LW_MEMORY_SHARED;
    backlog->cursor = lw_memory_log_seek(&partition->log, position);
    lw_list_push(&partition->backlogs, &backlog->link);
    return backlog;
}

/* Its members know it no more. NULL is fine. */
static void
free_batch(struct lw_memory_batch *batch)
{
    struct lw_list *node;
    while (batch && (node = lw_list_pop(&batch->members)) != NULL) {
        LW_CONTAINER(node, struct lw_memory_entry, member)->batch = NULL;
    }
    lw_free(batch);
}

void
lw_memory_backlog_destroy(struct lw_memory_backlog *backlog)
{
    for (uint32_t i = 0; i < backlog->entries.count; i++) {
        struct lw_memory_entry *entry = lw_pool_at(&backlog->entries, i);
        lw_assert(entry != NULL);
        if (entry->chunk && (entry->refs > 0 || entry->place != LW_MEMORY_ENTRY_DONE)) {
            lw_memory_chunk_release(entry->chunk);
            free_batch(entry->batch);
        }
    }
    lw_list_remove(&backlog->link);
    lw_pool_deinit(&backlog->entries);
    lw_free(backlog->ready.entries);
    lw_free(backlog->delayed.entries);
    lw_free(backlog->keys);
    lw_free(backlog->subscription);
    lw_free(backlog);
}

uint64_t
lw_memory_backlog_count(const struct lw_memory_backlog *backlog)
{
    return backlog->unsettled +
           lw_memory_log_count_from(&backlog->partition->log, backlog->cursor);
}
