/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message without an ack is an entry in exactly one place (enum lw_memory_entry_place). Entries
 * come from a pool; both heaps are as large as the pool, so that once a message is out nothing
 * about it can fail for lack of memory. An entry that is acknowledged while it waits in a heap
 * (a late ack) is marked and dropped when it is popped. It keeps its chunk alive: retention does
 * not take back what is out.
 *
 * Redelivery comes before new messages, lowest position first, as on the real broker.
 */
#include "brokers/memory/backlog.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

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
    chunk->refs++;
    backlog->unsettled++;
    return entry;
}

/* Into the heap that fits `due`: delivered again then, or as soon as somebody asks. */
static void
wait_until(struct lw_memory_entry *entry, uint64_t due, uint64_t now)
{
    struct lw_memory_backlog *backlog = entry->backlog;
    bool is_delayed = due > now;
    entry->slot = NULL;
    entry->due = is_delayed ? due : 0;
    entry->place = is_delayed ? LW_MEMORY_ENTRY_DELAYED : LW_MEMORY_ENTRY_READY;
    entry->refs++;
    heap_push(is_delayed ? &backlog->delayed : &backlog->ready, entry);
}

/* Pops until one is not acknowledged meanwhile; it left its heap then. */
static struct lw_memory_entry *
pop_live(struct lw_memory_heap *heap)
{
    while (heap->count > 0) {
        struct lw_memory_entry *entry = heap_pop(heap);
        entry->refs--;
        if (entry->place != LW_MEMORY_ENTRY_DONE) {
            return entry;
        }
        give_if_unused(entry);
    }
    return NULL;
}

static void
ripen(struct lw_memory_backlog *backlog, uint64_t now)
{
    while (lw_memory_backlog_due(backlog) <= now) {
        struct lw_memory_entry *entry = pop_live(&backlog->delayed);
        if (entry) {
            wait_until(entry, 0, now);
        }
    }
}

uint64_t
lw_memory_backlog_due(const struct lw_memory_backlog *backlog)
{
    return backlog->delayed.count > 0 ? backlog->delayed.entries[0]->due : LW_NEVER;
}

/* The next message that was never delivered, as an entry; delayed ones are set aside. */
static struct lw_memory_entry *
read_on(struct lw_memory_backlog *backlog, uint64_t now)
{
    struct lw_memory_log *log = &backlog->partition->log;
    struct lw_memory_chunk *chunk = NULL;
    struct lw_memory_record *record = lw_memory_log_peek(log, &backlog->cursor, &chunk);
    while (record && reserve(backlog)) {
        bool is_early = record->visible_at > now;
        if (is_early && !backlog->is_shared) {
            return NULL;
        }
        backlog->cursor.index++;
        struct lw_memory_entry *entry = create_entry(backlog, chunk, record);
        if (!is_early) {
            return entry;
        }
        wait_until(entry, record->visible_at, now);
        record = lw_memory_log_peek(log, &backlog->cursor, &chunk);
    }
    return NULL;
}

struct lw_memory_entry *
lw_memory_backlog_next(struct lw_memory_backlog *backlog, struct lw_memory_slot *slot,
                       uint64_t now)
{
    ripen(backlog, now);
    struct lw_memory_entry *entry = pop_live(&backlog->ready);
    entry = entry ? entry : read_on(backlog, now);
    if (entry) {
        entry->place = LW_MEMORY_ENTRY_OUT;
        entry->due = 0;
        entry->slot = slot;
        lw_list_push(&slot->out, &entry->out);
    }
    return entry;
}

bool
lw_memory_backlog_ack(struct lw_memory_entry *entry)
{
    if (entry->place == LW_MEMORY_ENTRY_DONE) {
        return false;
    }
    lw_list_remove(&entry->out);
    entry->slot = NULL;
    entry->place = LW_MEMORY_ENTRY_DONE;
    entry->backlog->unsettled--;
    give_if_unused(entry);
    return true;
}

void
lw_memory_backlog_nack(struct lw_memory_entry *entry, const struct lw_memory_slot *slot,
                       uint64_t due, uint64_t now)
{
    if (entry->place != LW_MEMORY_ENTRY_OUT || entry->slot != slot) {
        return;
    }
    lw_list_remove(&entry->out);
    entry->redeliveries++;
    wait_until(entry, due, now);
}

void
lw_memory_backlog_return(struct lw_memory_slot *slot, bool is_counted)
{
    for (struct lw_list *node = lw_list_pop(&slot->out); node; node = lw_list_pop(&slot->out)) {
        struct lw_memory_entry *entry = LW_CONTAINER(node, struct lw_memory_entry, out);
        entry->redeliveries += is_counted;
        wait_until(entry, 0, 0);
    }
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
                      bool is_shared, int64_t position)
{
    struct lw_memory_backlog *backlog = lw_memory_backlog_find(partition, subscription);
    if (backlog) {
        return backlog;
    }
    backlog = lw_alloc(sizeof *backlog);
    char *name = lw_copy_text(subscription);
    if (!backlog || !name ||
        lw_pool_init(&backlog->entries, sizeof(struct lw_memory_entry), ENTRIES_MAX,
                     ENTRIES_GROW, NULL, NULL) != LW_STATUS_OK) {
        lw_free(backlog);
        lw_free(name);
        return NULL;
    }
    backlog->partition = partition;
    backlog->subscription = name;
    backlog->is_shared = is_shared;
    backlog->cursor = lw_memory_log_seek(&partition->log, position);
    lw_list_push(&partition->backlogs, &backlog->link);
    return backlog;
}

void
lw_memory_backlog_destroy(struct lw_memory_backlog *backlog)
{
    for (uint32_t i = 0; i < backlog->entries.count; i++) {
        struct lw_memory_entry *entry = lw_pool_at(&backlog->entries, i);
        lw_assert(entry != NULL);
        if (entry->chunk && (entry->refs > 0 || entry->place != LW_MEMORY_ENTRY_DONE)) {
            lw_memory_chunk_release(entry->chunk);
        }
    }
    lw_list_remove(&backlog->link);
    lw_pool_deinit(&backlog->entries);
    lw_free(backlog->ready.entries);
    lw_free(backlog->delayed.entries);
    lw_free(backlog->subscription);
    lw_free(backlog);
}

uint64_t
lw_memory_backlog_count(const struct lw_memory_backlog *backlog)
{
    return backlog->unsettled +
           lw_memory_log_count_from(&backlog->partition->log, backlog->cursor);
}
