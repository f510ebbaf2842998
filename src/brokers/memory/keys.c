/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line of waiting entries per hash, in order of positions, so that what comes again comes
 * before what was published later with the same key. Choosing the next of a slot looks at all
 * hashes: there are few. Loop thread.
 */
#include "brokers/memory/keys.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "brokers/memory/backlog.h"
#include "brokers/memory/source.h"

struct lw_memory_keys *
lw_memory_keys_create(void)
{
    struct lw_memory_keys *keys = lw_alloc(sizeof *keys);
    for (int i = 0; keys && i < LW_MEMORY_HASHES; i++) {
        lw_list_init(&keys->hashes[i].waiting);
    }
    return keys;
}

uint8_t
lw_memory_keys_hash(const struct lw_memory_record *record)
{
    const struct lw_bytes *key = record->ordering_key.data ? &record->ordering_key
                                                           : &record->key;
    return (uint8_t)(lw_hash_bytes(key->data, key->size, 1) % LW_MEMORY_HASHES);
}

static struct lw_memory_slot *
choose(const struct lw_memory_backlog *backlog, uint64_t hash)
{
    struct lw_memory_slot *chosen = NULL;
    uint64_t best = 0;
    const struct lw_list *head = &backlog->consumers;
    for (struct lw_list *node = head->next; node != head; node = node->next) {
        struct lw_memory_slot *slot = LW_CONTAINER(node, struct lw_memory_slot, consumer);
        uint64_t weight = lw_hash_u64(hash, slot->consumer_id);
        if (!chosen || weight > best) {
            chosen = slot;
            best = weight;
        }
    }
    return chosen;
}

void
lw_memory_keys_assign(struct lw_memory_backlog *backlog)
{
    for (uint64_t i = 0; i < LW_MEMORY_HASHES; i++) {
        backlog->keys->hashes[i].owner = choose(backlog, i);
    }
}

/* Nothing of the hash is at somebody else. */
static bool
is_free(const struct lw_memory_hash *hash, const struct lw_memory_slot *slot)
{
    return hash->owner == slot && (hash->held == 0 || hash->holder == slot);
}

bool
lw_memory_keys_may(const struct lw_memory_keys *keys, uint8_t hash,
                   const struct lw_memory_slot *slot)
{
    return is_free(&keys->hashes[hash], slot) && lw_list_is_empty(&keys->hashes[hash].waiting);
}

static struct lw_memory_entry *
entry_of(struct lw_list *node)
{
    return LW_CONTAINER(node, struct lw_memory_entry, out);
}

void
lw_memory_keys_wait(struct lw_memory_entry *entry)
{
    struct lw_memory_keys *keys = entry->backlog->keys;
    struct lw_memory_hash *hash = &keys->hashes[entry->hash];
    struct lw_list *at = &hash->waiting; /* before it: most come in order */
    while (at->prev != &hash->waiting &&
           entry_of(at->prev)->record->position > entry->record->position) {
        at = at->prev;
    }
    lw_list_insert(at, &entry->out);
    keys->waiting++;
    if (hash->owner) {
        lw_memory_slot_wake(hash->owner);
    }
}

void
lw_memory_keys_unwait(struct lw_memory_entry *entry)
{
    lw_list_remove(&entry->out);
    entry->backlog->keys->waiting--;
}

static struct lw_memory_hash *
find_oldest(struct lw_memory_keys *keys, const struct lw_memory_slot *slot)
{
    struct lw_memory_hash *found = NULL;
    int64_t oldest = 0;
    for (int i = 0; keys->waiting > 0 && i < LW_MEMORY_HASHES; i++) {
        struct lw_memory_hash *hash = &keys->hashes[i];
        if (lw_list_is_empty(&hash->waiting) || !is_free(hash, slot)) {
            continue;
        }
        int64_t position = entry_of(hash->waiting.next)->record->position;
        if (!found || position < oldest) {
            found = hash;
            oldest = position;
        }
    }
    return found;
}

bool
lw_memory_keys_send(struct lw_memory_backlog *backlog, struct lw_memory_slot *slot)
{
    struct lw_memory_hash *hash = find_oldest(backlog->keys, slot);
    if (!hash) {
        return false;
    }
    const struct lw_memory_batch *batch = entry_of(hash->waiting.next)->batch;
    do {
        struct lw_memory_entry *entry = entry_of(hash->waiting.next);
        lw_memory_keys_unwait(entry);
        lw_memory_entry_send(entry, slot);
    } while (batch && !lw_list_is_empty(&hash->waiting) &&
             entry_of(hash->waiting.next)->batch == batch);
    return true;
}

void
lw_memory_keys_hold(struct lw_memory_entry *entry, struct lw_memory_slot *slot)
{
    struct lw_memory_hash *hash = &entry->backlog->keys->hashes[entry->hash];
    lw_assert(!entry->is_key_held);
    entry->is_key_held = true;
    hash->holder = slot;
    hash->held++;
}

void
lw_memory_keys_release(struct lw_memory_entry *entry)
{
    if (!entry->is_key_held) {
        return;
    }
    struct lw_memory_hash *hash = &entry->backlog->keys->hashes[entry->hash];
    entry->is_key_held = false;
    if (--hash->held > 0) {
        return;
    }
    hash->holder = NULL;
    if (hash->owner && !lw_list_is_empty(&hash->waiting)) {
        lw_memory_slot_wake(hash->owner);
    }
}
