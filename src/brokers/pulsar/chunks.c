/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Few messages are put together at a time, so they are found by walking a list. Memory for the
 * whole is taken with its first chunk, after the bound was looked at.
 */
#include "brokers/pulsar/chunks.h"

#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum {
    CHUNKS_MAX = 4096, /* so that the ids of a message fit one ACK */
    GIVEN_UP_MAX = 256
};

void
lw_pulsar_chunked_free(struct lw_pulsar_chunked *chunked)
{
    lw_free(chunked->data);
    lw_free(chunked->ids);
    lw_free(chunked);
}

static void
take_out(struct lw_pulsar_chunks *chunks, struct lw_pulsar_chunked *chunked)
{
    lw_list_remove(&chunked->link);
    chunks->count--;
    chunks->bytes -= chunked->size;
}

/* -- Given up --------------------------------------------------------------------------------------- */

static uint32_t
place_of_given_up(const struct lw_pulsar_chunks *chunks, struct lw_bytes uuid)
{
    uint64_t hash = lw_hash_bytes(uuid.data, uuid.size, 0);
    uint32_t place = 0;
    while (place < chunks->given_up_count && chunks->given_up[place] != hash) {
        place++;
    }
    return place;
}

static bool
was_given_up(const struct lw_pulsar_chunks *chunks, struct lw_bytes uuid)
{
    return chunks->is_given_up_full || place_of_given_up(chunks, uuid) < chunks->given_up_count;
}

static void
note_given_up(struct lw_pulsar_chunks *chunks, struct lw_bytes uuid)
{
    if (was_given_up(chunks, uuid)) {
        return;
    }
    if (!chunks->given_up) {
        chunks->given_up = lw_alloc_array(GIVEN_UP_MAX, sizeof *chunks->given_up);
    }
    if (!chunks->given_up || chunks->given_up_count == GIVEN_UP_MAX) {
        chunks->is_given_up_full = true;
        return;
    }
    chunks->given_up[chunks->given_up_count++] = lw_hash_bytes(uuid.data, uuid.size, 0);
}

/* It begins again. */
static void
forget_given_up(struct lw_pulsar_chunks *chunks, struct lw_bytes uuid)
{
    uint32_t place = place_of_given_up(chunks, uuid);
    if (place < chunks->given_up_count) {
        chunks->given_up[place] = chunks->given_up[--chunks->given_up_count];
    }
}

/* -- Messages --------------------------------------------------------------------------------------- */

/* Its chunks are given up, then it is gone. */
static void
abandon(struct lw_pulsar_chunks *chunks, struct lw_pulsar_chunked *chunked, bool acks)
{
    take_out(chunks, chunked);
    if (!acks) {
        note_given_up(chunks, (struct lw_bytes){ chunked->uuid, chunked->uuid_size });
    }
    for (uint32_t i = 0; i < chunked->next; i++) {
        chunks->give_up(chunks->user, chunked->ids[i], acks);
    }
    lw_pulsar_chunked_free(chunked);
}

static struct lw_pulsar_chunked *
first_of(const struct lw_pulsar_chunks *chunks)
{
    struct lw_list *link = lw_list_first(&chunks->pending);
    return link ? LW_CONTAINER(link, struct lw_pulsar_chunked, link) : NULL;
}

static struct lw_pulsar_chunked *
find(const struct lw_pulsar_chunks *chunks, struct lw_bytes uuid)
{
    for (struct lw_list *at = chunks->pending.next; at != &chunks->pending; at = at->next) {
        struct lw_pulsar_chunked *chunked = LW_CONTAINER(at, struct lw_pulsar_chunked, link);
        if (chunked->uuid_size == uuid.size &&
            memcmp(chunked->uuid, uuid.data, uuid.size) == 0) {
            return chunked;
        }
    }
    return NULL;
}

static bool
is_same(struct lw_pulsar_chunk_id a, struct lw_pulsar_chunk_id b)
{
    return a.ledger == b.ledger && a.entry == b.entry;
}

static struct lw_pulsar_chunked *
create(const struct lw_pulsar_chunk *chunk, uint64_t now)
{
    struct lw_pulsar_chunked *chunked = lw_alloc(sizeof *chunked + chunk->uuid.size);
    if (!chunked) {
        return NULL;
    }
    chunked->begun_at = now;
    chunked->size = (size_t)chunk->size;
    chunked->count = (uint32_t)chunk->count;
    chunked->uuid_size = chunk->uuid.size;
    memcpy(chunked->uuid, chunk->uuid.data, chunk->uuid.size);
    chunked->data = lw_alloc(chunked->size + 1);
    chunked->ids = lw_alloc_array(chunked->count, sizeof *chunked->ids);
    if (!chunked->data || !chunked->ids) {
        lw_pulsar_chunked_free(chunked);
        return NULL;
    }
    return chunked;
}

/* Makes room for one more of that size. */
static void
evict(struct lw_pulsar_chunks *chunks, size_t size)
{
    struct lw_pulsar_chunked *oldest;
    while ((oldest = first_of(chunks)) != NULL &&
           ((chunks->count_max > 0 && chunks->count >= chunks->count_max) ||
            chunks->bytes + size > chunks->bytes_max)) {
        abandon(chunks, oldest, chunks->acks_oldest);
    }
}

/* The first chunk again is a redelivery of the entry, or the message was published twice. */
static struct lw_pulsar_chunked *
begin(struct lw_pulsar_chunks *chunks, const struct lw_pulsar_chunk *chunk, uint64_t now)
{
    struct lw_pulsar_chunked *before = find(chunks, chunk->uuid);
    forget_given_up(chunks, chunk->uuid);
    if (before && is_same(before->ids[0], chunk->id)) {
        take_out(chunks, before);
        lw_pulsar_chunked_free(before);
    } else if (before) {
        abandon(chunks, before, true);
    }
    evict(chunks, (size_t)chunk->size);
    struct lw_pulsar_chunked *chunked = create(chunk, now);
    if (chunked) {
        lw_list_push(&chunks->pending, &chunked->link);
        chunks->count++;
        chunks->bytes += chunked->size;
    }
    return chunked;
}

/* One that does not continue what is known of its message. */
static void
pass_over(struct lw_pulsar_chunks *chunks, struct lw_pulsar_chunked *chunked,
          const struct lw_pulsar_chunk *chunk)
{
    uint32_t index = (uint32_t)chunk->index;
    if (!chunked) {
        bool is_leftover = chunk->is_old && !was_given_up(chunks, chunk->uuid);
        chunks->give_up(chunks->user, chunk->id, is_leftover || chunks->acks_oldest);
    } else if (index < chunked->next) {
        if (!is_same(chunked->ids[index], chunk->id)) {
            chunks->give_up(chunks->user, chunk->id, true);
        }
    } else {
        abandon(chunks, chunked, chunks->acks_oldest);
        chunks->give_up(chunks->user, chunk->id, chunks->acks_oldest);
    }
}

static bool
is_sane(const struct lw_pulsar_chunks *chunks, const struct lw_pulsar_chunk *chunk)
{
    return chunk->count > 1 && chunk->count <= CHUNKS_MAX && chunk->index >= 0 &&
           chunk->index < chunk->count && chunk->size >= 0 &&
           (uint64_t)chunk->size <= chunks->bytes_max &&
           chunk->body.size <= (size_t)chunk->size;
}

static void
put(struct lw_pulsar_chunked *chunked, const struct lw_pulsar_chunk *chunk)
{
    chunked->ids[chunked->next++] = chunk->id;
    if (chunk->body.size > 0) {
        memcpy(chunked->data + chunked->filled, chunk->body.data, chunk->body.size);
    }
    chunked->filled += chunk->body.size;
}

/* More or less than its size: what came of it so far stays together. */
static enum lw_pulsar_chunk_result
end_broken(struct lw_pulsar_chunks *chunks, struct lw_pulsar_chunked *chunked,
           const struct lw_pulsar_chunk *chunk, struct lw_pulsar_chunked **ret_whole)
{
    size_t size = chunked->filled + chunk->body.size;
    if (size > chunked->size) {
        uint8_t *data = lw_resize_array(chunked->data, size, 1);
        if (!data) {
            return LW_PULSAR_CHUNK_NO_MEMORY;
        }
        chunked->data = data;
    }
    take_out(chunks, chunked);
    put(chunked, chunk);
    chunked->size = size;
    chunked->count = chunked->next;
    *ret_whole = chunked;
    return LW_PULSAR_CHUNK_BROKEN;
}

static enum lw_pulsar_chunk_result
append(struct lw_pulsar_chunks *chunks, struct lw_pulsar_chunked *chunked,
       const struct lw_pulsar_chunk *chunk, struct lw_pulsar_chunked **ret_whole)
{
    size_t missing = chunked->size - chunked->filled;
    bool is_last = chunked->next + 1 == chunked->count;
    if (chunk->body.size > missing || (is_last && chunk->body.size != missing)) {
        return end_broken(chunks, chunked, chunk, ret_whole);
    }
    put(chunked, chunk);
    if (!is_last) {
        return LW_PULSAR_CHUNK_KEPT;
    }
    take_out(chunks, chunked);
    *ret_whole = chunked;
    return LW_PULSAR_CHUNK_WHOLE;
}

enum lw_pulsar_chunk_result
lw_pulsar_chunks_add(struct lw_pulsar_chunks *chunks, const struct lw_pulsar_chunk *chunk,
                     uint64_t now, struct lw_pulsar_chunked **ret_whole)
{
    if (!is_sane(chunks, chunk)) {
        return LW_PULSAR_CHUNK_REFUSED;
    }
    struct lw_pulsar_chunked *chunked = chunk->index == 0 ? begin(chunks, chunk, now)
                                                          : find(chunks, chunk->uuid);
    if (chunk->index == 0 && !chunked) {
        return LW_PULSAR_CHUNK_NO_MEMORY;
    }
    if (!chunked || (uint32_t)chunk->index != chunked->next) {
        pass_over(chunks, chunked, chunk);
        return LW_PULSAR_CHUNK_KEPT;
    }
    return append(chunks, chunked, chunk, ret_whole);
}

uint64_t
lw_pulsar_chunks_expire(struct lw_pulsar_chunks *chunks, uint64_t now)
{
    struct lw_pulsar_chunked *oldest;
    while (chunks->expiry_ns > 0 && (oldest = first_of(chunks)) != NULL) {
        if (now - oldest->begun_at < chunks->expiry_ns) {
            return oldest->begun_at + chunks->expiry_ns;
        }
        abandon(chunks, oldest, chunks->acks_oldest);
    }
    return UINT64_MAX;
}

void
lw_pulsar_chunks_clear(struct lw_pulsar_chunks *chunks)
{
    struct lw_pulsar_chunked *oldest;
    while ((oldest = first_of(chunks)) != NULL) {
        take_out(chunks, oldest);
        lw_pulsar_chunked_free(oldest);
    }
    lw_free(chunks->given_up);
    chunks->given_up = NULL;
    chunks->given_up_count = 0;
    chunks->is_given_up_full = false;
}

void
lw_pulsar_chunks_first_open(const struct lw_pulsar_chunks *chunks,
                            struct lw_pulsar_place *place)
{
    for (struct lw_list *at = chunks->pending.next; at != &chunks->pending; at = at->next) {
        const struct lw_pulsar_chunked *chunked = LW_CONTAINER(at, struct lw_pulsar_chunked,
                                                               link);
        struct lw_pulsar_place first = { chunked->ids[0].ledger, chunked->ids[0].entry };
        *place = lw_pulsar_place_is_before(first, *place) ? first : *place;
    }
}
