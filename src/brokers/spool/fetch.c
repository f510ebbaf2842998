/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fetch is a range of the table of messages, from the cursor to what is committed, and a range of
 * the index of what is due; neither looks at what was settled, so its cost does not know how long
 * the queue is. A message that is deleted meanwhile (retention) is passed over. The worker's thread.
 */
#include "brokers/spool/fetch.h"

#include <sqlite3.h>

#include "base/assert.h"
#include "base/error.h"
#include "brokers/spool/wire.h"

enum column { ID, TIME, EVENT, DUE, KEY, ORDERING_KEY, HEADERS, VALUE };

enum step { STEP_GOOD, STEP_FULL, STEP_NO_MEMORY };

struct reading {
    struct lw_spool_store *store;
    struct lw_spool_position *position;
    struct lw_spool_fetch *fetch;
    int64_t now_ms;
    bool is_failed;
};

static bool
is_full(const struct reading *reading)
{
    const struct lw_spool_chunk *chunk = reading->fetch->chunk;
    return chunk->count >= chunk->capacity || chunk->bytes >= reading->fetch->bytes_max;
}

static struct lw_bytes
column_bytes(struct sqlite3_stmt *row, int column)
{
    if (sqlite3_column_type(row, column) == SQLITE_NULL) {
        return (struct lw_bytes){ NULL, 0 };
    }
    const void *data = sqlite3_column_blob(row, column);
    return (struct lw_bytes){ data ? data : "", (size_t)sqlite3_column_bytes(row, column) };
}

static bool
copy_headers(struct lw_spool_chunk *chunk, struct lw_bytes blob, struct lw_spool_entry *entry)
{
    struct lw_bytes copy;
    size_t count = lw_spool_count_headers(blob);
    if (count == 0 || count == SIZE_MAX) {
        return true;
    }
    struct lw_header *headers = lw_spool_chunk_room(chunk, count * sizeof *headers);
    if (!headers || !lw_spool_chunk_copy(chunk, blob, &copy)) {
        return false;
    }
    lw_spool_view_headers(copy, headers);
    entry->headers = headers;
    entry->header_count = (uint32_t)count;
    return true;
}

static struct lw_spool_out *
take_out(struct lw_spool_store *store, struct lw_spool_position *position, int64_t offset)
{
    struct lw_spool_out *out = lw_pool_take(&store->outs);
    if (out) {
        *out = (struct lw_spool_out){ .position = position, .offset = offset };
        lw_list_init(&out->link);
        lw_list_init(&out->verdict);
    }
    return out;
}

/* One message into the chunk; its `out` is the caller's. */
static bool
fill(struct reading *reading, struct sqlite3_stmt *row, struct lw_spool_out *out)
{
    struct lw_spool_chunk *chunk = reading->fetch->chunk;
    struct lw_spool_entry *entry = &chunk->entries[chunk->count];
    *entry = (struct lw_spool_entry){ .offset = out->offset,
                                      .redeliveries = out->redeliveries,
                                      .is_fresh = !out->has_row,
                                      .out = out };
    entry->timestamp_ms = sqlite3_column_int64(row, TIME);
    entry->event_time_ms = sqlite3_column_type(row, EVENT) == SQLITE_NULL
                               ? -1
                               : sqlite3_column_int64(row, EVENT);
    struct lw_bytes headers = column_bytes(row, HEADERS);
    if (!lw_spool_chunk_copy(chunk, column_bytes(row, KEY), &entry->key) ||
        !lw_spool_chunk_copy(chunk, column_bytes(row, ORDERING_KEY), &entry->ordering_key) ||
        !lw_spool_chunk_copy(chunk, column_bytes(row, VALUE), &entry->value) ||
        !copy_headers(chunk, headers, entry)) {
        return false;
    }
    entry->bytes = (uint32_t)(entry->key.size + entry->ordering_key.size + entry->value.size +
                              headers.size);
    chunk->bytes += entry->bytes;
    chunk->count++;
    return true;
}

/* -- Fresh ones ---------------------------------------------------------------------------------- */

static enum step
take_fresh(struct reading *reading, struct sqlite3_stmt *row)
{
    struct lw_spool_position *position = reading->position;
    int64_t due_ms = sqlite3_column_int64(row, DUE); /* 0 when NULL */
    int64_t offset = lw_spool_offset(sqlite3_column_int64(row, ID));
    struct lw_spool_out *out = take_out(reading->store, position, offset);
    if (!out) {
        return STEP_NO_MEMORY;
    }
    bool is_early = due_ms > reading->now_ms;
    if (!is_early && !fill(reading, row, out)) {
        lw_pool_give(&reading->store->outs, out);
        return STEP_NO_MEMORY;
    }
    lw_list_push(&position->fresh, &out->link);
    position->cursor = offset + 1;
    if (is_early) {
        lw_spool_delay(reading->store, out, due_ms);
    }
    return is_full(reading) ? STEP_FULL : STEP_GOOD;
}

/* `limit` rows at most are looked at, delayed ones among them. */
static void
read_fresh(struct reading *reading)
{
    struct lw_spool_position *position = reading->position;
    const struct lw_spool_partition *partition = position->partition;
    int64_t limit = (int64_t)reading->fetch->chunk->capacity * 4;
    int64_t numbers[] = { lw_spool_row(partition, position->cursor),
                          lw_spool_row(partition, partition->stored), limit };
    struct sqlite3_stmt *row = lw_spool_bind(reading->store, LW_SPOOL_READ, numbers, 3);
    enum step step = STEP_GOOD;
    int64_t seen = 0;
    int code = SQLITE_ROW;
    while (step == STEP_GOOD && (code = sqlite3_step(row)) == SQLITE_ROW) {
        step = take_fresh(reading, row);
        seen++;
    }
    if (code == SQLITE_DONE && seen < limit) {
        position->cursor = partition->stored; /* holes at its end */
    } else if (code != SQLITE_ROW && code != SQLITE_DONE) {
        reading->is_failed = true;
        (void)lw_spool_fail(reading->store, "read");
    }
    reading->is_failed = reading->is_failed || step == STEP_NO_MEMORY;
    (void)sqlite3_reset(row);
}

/* -- Those that are due again ---------------------------------------------------------------------- */

/* It is gone: retention deleted it. Its row goes with the next write. */
static void
forget(struct reading *reading, struct lw_spool_out *out)
{
    lw_spool_judge(reading->store, out, true, 0);
}

static enum step
take_due(struct reading *reading, struct sqlite3_stmt *due)
{
    struct lw_spool_position *position = reading->position;
    int64_t offset = sqlite3_column_int64(due, 1);
    struct lw_spool_out *out = take_out(reading->store, position, offset);
    if (!out) {
        return STEP_NO_MEMORY;
    }
    out->has_row = true;
    out->redeliveries = (uint32_t)sqlite3_column_int64(due, 2);
    int64_t number = lw_spool_row(position->partition, offset);
    struct sqlite3_stmt *row = lw_spool_bind(reading->store, LW_SPOOL_READ_ONE, &number, 1);
    int code = sqlite3_step(row);
    bool is_there = code == SQLITE_ROW;
    bool is_filled = is_there && fill(reading, row, out);
    if (!is_there && code != SQLITE_DONE) {
        (void)lw_spool_fail(reading->store, "read");
    }
    (void)sqlite3_reset(row);
    if (!is_filled && code != SQLITE_DONE) {
        lw_pool_give(&reading->store->outs, out);
        return STEP_NO_MEMORY;
    }
    position->taken_due_ms = sqlite3_column_int64(due, 0);
    position->taken_offset = offset;
    position->waiting -= position->waiting > 0;
    if (is_filled) {
        lw_spool_note_taken(reading->store, out);
    } else {
        forget(reading, out);
    }
    return is_full(reading) ? STEP_FULL : STEP_GOOD;
}

static void
read_due(struct reading *reading)
{
    struct lw_spool_position *position = reading->position;
    int64_t numbers[] = { position->id, position->taken_due_ms, position->taken_offset,
                          reading->now_ms, reading->fetch->chunk->capacity };
    struct sqlite3_stmt *due = lw_spool_bind(reading->store, LW_SPOOL_DUE, numbers, 5);
    enum step step = STEP_GOOD;
    int code = SQLITE_ROW;
    while (step == STEP_GOOD && (code = sqlite3_step(due)) == SQLITE_ROW) {
        step = take_due(reading, due);
    }
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        reading->is_failed = true;
        (void)lw_spool_fail(reading->store, "read");
    }
    reading->is_failed = reading->is_failed || step == STEP_NO_MEMORY;
    (void)sqlite3_reset(due);
    int64_t rest[] = { position->id, position->taken_due_ms, position->taken_offset };
    position->due_ms = LW_SPOOL_NEVER_MS;
    if (!lw_spool_ask(reading->store, LW_SPOOL_NEXT_DUE, rest, 3, &position->due_ms)) {
        reading->is_failed = true;
        position->due_ms = reading->now_ms; /* looked for again */
    }
}

/* -- Both ---------------------------------------------------------------------------------------- */

bool
lw_spool_fetch_is_due(const struct lw_spool_position *position, int64_t now_ms)
{
    return position->due_ms <= now_ms || position->cursor < position->partition->stored;
}

uint64_t
lw_spool_fetch_waiting(const struct lw_spool_position *position)
{
    return (uint64_t)(position->partition->stored - position->cursor) + position->waiting;
}

bool
lw_spool_fetch_read(struct lw_spool_store *store, struct lw_spool_position *position,
                    struct lw_spool_fetch *fetch, int64_t now_ms, bool *ret_is_failed)
{
    struct reading reading = {
        .store = store, .position = position, .fetch = fetch, .now_ms = now_ms
    };
    lw_assert(!store->is_in_transaction);
    fetch->chunk = lw_spool_chunk_create(fetch->messages_max);
    if (!fetch->chunk) {
        *ret_is_failed = true;
        return false;
    }
    if (position->due_ms <= now_ms) {
        read_due(&reading);
    }
    if (!is_full(&reading) && !reading.is_failed) {
        read_fresh(&reading);
    }
    fetch->waiting = lw_spool_fetch_waiting(position);
    *ret_is_failed = reading.is_failed;
    if (fetch->chunk->count == 0) {
        lw_spool_chunk_destroy(fetch->chunk);
        fetch->chunk = NULL;
    }
    return fetch->chunk != NULL;
}
