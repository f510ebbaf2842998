/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A subscription and its slots: what is read ahead, whose turn it is, and the way of a message
 * from a chunk to the dispatcher. A slot asks again when half of what it may hold is gone, so that
 * reading goes on beside handling. Every partition belongs to this process from start to stop.
 * Loop thread.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/error.h"
#include "brokers/spool/spool.h"

enum { SLOT_EVENTS = 2 /* ASSIGNED, REVOKING */ };
enum { FETCH_MAX = 256, FETCH_BYTES_MAX = 1 << 20, FETCH_BYTES_MIN = 64 << 10 };
#define REVOKE_NS (30000 * LW_MS)

static void on_fetched(struct lw_letter *letter);
static void on_counted(struct lw_letter *letter);

/* -- Life ---------------------------------------------------------------------------------------- */

enum lw_status
lw_spool_source_create(struct lw_spool_broker *broker, const struct lw_source_options *options,
                       struct lw_spool_source **ret_source, struct lw_error *ret_error)
{
    struct lw_spool_reader_options reader;
    enum lw_status status = lw_spool_read(lw_spool_reader_rows, &reader, options->properties,
                                          options->property_count, ret_error);
    if (status != LW_STATUS_OK) {
        return status;
    }
    if (!lw_spool_is_topic(options->topic)) {
        return lw_error_set(ret_error, LW_STATUS_INVALID, "E0117",
                            "\"%s\" is no name for a topic of a spool", options->topic);
    }
    struct lw_spool_source *source = lw_alloc(sizeof *source);
    char *topic = lw_copy_text(options->topic);
    char *group = lw_copy_text(options->subscription ? options->subscription : "");
    if (!source || !topic || !group) {
        lw_free(source);
        lw_free(topic);
        lw_free(group);
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a source");
    }
    source->broker = broker;
    source->topic = topic;
    source->group = group;
    source->options = reader;
    source->queue_size = options->receiver_queue_size;
    source->queue_bytes_max = options->queue_bytes_max;
    lw_turns_init(&source->turns);
    lw_list_push(&broker->sources, &source->link);
    *ret_source = source;
    return LW_STATUS_OK;
}

static void
drop_chunks(struct lw_spool_slot *slot)
{
    struct lw_list *node;
    lw_turns_remove(&slot->source->turns, &slot->turn);
    while ((node = lw_list_pop(&slot->chunks)) != NULL) {
        lw_spool_chunk_release(LW_CONTAINER(node, struct lw_spool_chunk, link));
    }
    slot->held = 0;
    slot->held_bytes = 0;
}

void
lw_spool_source_destroy(struct lw_spool_source *source)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        drop_chunks(&source->slots[i]);
    }
    lw_list_remove(&source->link);
    lw_free(source->slots);
    lw_free(source->topic);
    lw_free(source->group);
    lw_free(source);
}

static uint32_t
clamp(uint64_t value, uint32_t low, uint32_t high)
{
    return value < low ? low : value > high ? high : (uint32_t)value;
}

/* Half of the queue: what was read and what is being read are as much as it allows. */
static void
init_slot(struct lw_spool_slot *slot, struct lw_spool_source *source, uint32_t number)
{
    uint32_t share = source->queue_size / 2 / source->slot_count;
    uint64_t bytes = source->queue_bytes_max / 2 / source->slot_count;
    slot->source = source;
    slot->number = number;
    slot->partition = (int32_t)number;
    lw_list_init(&slot->turn);
    lw_list_init(&slot->chunks);
    lw_spool_command_init(&slot->asking.command, LW_SPOOL_COMMAND_FETCH, on_fetched);
    lw_spool_command_init(&slot->counting.command, LW_SPOOL_COMMAND_COUNT, on_counted);
    slot->asking.fetch.messages_max = clamp(share, 1, FETCH_MAX);
    slot->asking.fetch.bytes_max = clamp(bytes, FETCH_BYTES_MIN, FETCH_BYTES_MAX);
}

static enum lw_status
fail(const struct lw_spool_store *store, struct lw_error *ret_error)
{
    if (ret_error) {
        *ret_error = store->error;
    }
    return store->error.status;
}

enum lw_status
lw_spool_source_open(struct lw_spool_source *source, struct lw_spool_store *store,
                     struct lw_error *ret_error)
{
    struct lw_spool_topic *topic = lw_spool_find_topic(store, source->topic);
    topic = topic ? topic : lw_spool_make_topic(store, source->topic, 0, -1);
    if (!topic) {
        return fail(store, ret_error);
    }
    uint32_t count = (uint32_t)topic->partition_count;
    source->slots = lw_alloc_array(count, sizeof *source->slots);
    if (!source->slots ||
        !lw_events_reserve(&source->broker->events, (size_t)count * SLOT_EVENTS)) {
        return lw_error_set(ret_error, LW_STATUS_NO_MEMORY, "", "no memory for a source");
    }
    source->slot_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct lw_spool_slot *slot = &source->slots[i];
        init_slot(slot, source, i);
        slot->asking.position = lw_spool_use_position(
            store, &topic->partitions[i], source->group,
            source->options.initial_position == LW_SPOOL_LATEST);
        if (!slot->asking.position) {
            return fail(store, ret_error);
        }
        slot->counting.position = slot->asking.position;
        lw_spool_wear_one(store, &topic->partitions[i]); /* what the last end left to delete */
        slot->seen = slot->asking.position->seen;
        slot->waiting = lw_spool_fetch_waiting(slot->asking.position);
    }
    return LW_STATUS_OK;
}

/* -- Slots --------------------------------------------------------------------------------------- */

static void
push_event(struct lw_spool_slot *slot, enum lw_event_kind kind)
{
    struct lw_spool_source *source = slot->source;
    struct lw_event event = {
        .kind = kind,
        .source = (struct lw_source *)source,
        .slot = slot->number,
        .generation = slot->generation,
        .topic = source->topic,
        .partition = slot->partition,
        .position = -1,
        .deadline = source->broker->base.host->now + REVOKE_NS,
    };
    lw_events_push_reserved(&source->broker->events, &event);
}

void
lw_spool_source_assign(struct lw_spool_source *source)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        source->slots[i].generation = lw_broker_next_generation();
        push_event(&source->slots[i], LW_EVENT_ASSIGNED);
    }
}

void
lw_spool_source_stop(struct lw_spool_source *source)
{
    source->is_stopped = true;
    for (uint32_t i = 0; i < source->slot_count; i++) {
        struct lw_spool_slot *slot = &source->slots[i];
        drop_chunks(slot);
        if (slot->generation != 0 && !slot->is_revoking) {
            slot->is_revoking = true;
            push_event(slot, LW_EVENT_REVOKING);
        }
    }
}

bool
lw_spool_source_end(struct lw_spool_source *source, uint64_t generation)
{
    for (uint32_t i = 0; i < source->slot_count; i++) {
        struct lw_spool_slot *slot = &source->slots[i];
        if (slot->generation == generation) {
            slot->generation = 0;
            slot->is_revoking = false;
            return true;
        }
    }
    return false;
}

/* -- Reading ahead -------------------------------------------------------------------------------- */

static void
ask(struct lw_spool_slot *slot)
{
    struct lw_spool_source *source = slot->source;
    if (slot->is_asking || !source->is_wanted || source->is_stopped ||
        source->broker->state != LW_SPOOL_UP ||
        slot->held > slot->asking.fetch.messages_max / 2 ||
        slot->held_bytes > slot->asking.fetch.bytes_max / 2) {
        return;
    }
    slot->is_asking = true;
    slot->asking.seen = slot->seen;
    lw_spool_worker_post(source->broker->worker, &slot->asking.command);
}

static void
on_fetched(struct lw_letter *letter)
{
    struct lw_spool_command *command = LW_CONTAINER(letter, struct lw_spool_command, letter);
    struct lw_spool_asking *asking = LW_CONTAINER(command, struct lw_spool_asking, command);
    struct lw_spool_slot *slot = LW_CONTAINER(asking, struct lw_spool_slot, asking);
    struct lw_spool_chunk *chunk = asking->fetch.chunk;
    slot->is_asking = false;
    asking->fetch.chunk = NULL;
    if (!chunk) {
        return; /* the end */
    }
    slot->waiting = asking->fetch.waiting;
    if (slot->source->is_stopped) {
        lw_spool_chunk_release(chunk);
        return;
    }
    lw_list_push(&slot->chunks, &chunk->link);
    slot->held += chunk->count;
    slot->held_bytes += chunk->bytes;
    lw_turns_add(&slot->source->turns, &slot->turn);
    lw_host_want_turn(slot->source->broker->base.host);
}

void
lw_spool_source_demand(struct lw_spool_source *source, uint32_t messages, uint64_t bytes)
{
    source->is_wanted = messages > 0 && bytes > 0;
    for (uint32_t i = 0; source->is_wanted && i < source->slot_count; i++) {
        ask(&source->slots[i]);
    }
}

static void
on_counted(struct lw_letter *letter)
{
    struct lw_spool_command *command = LW_CONTAINER(letter, struct lw_spool_command, letter);
    struct lw_spool_counting *counting = LW_CONTAINER(command, struct lw_spool_counting,
                                                      command);
    struct lw_spool_slot *slot = LW_CONTAINER(counting, struct lw_spool_slot, counting);
    slot->is_counting = false;
    slot->waiting = counting->waiting;
}

static void
ask_count(struct lw_spool_slot *slot)
{
    if (!slot->is_counting && slot->source->broker->state == LW_SPOOL_UP) {
        slot->is_counting = true;
        lw_spool_worker_post(slot->source->broker->worker, &slot->counting.command);
    }
}

bool
lw_spool_source_lag(struct lw_spool_source *source, struct lw_lag *ret_lag)
{
    *ret_lag = (struct lw_lag){ 0, 0 };
    for (uint32_t i = 0; i < source->slot_count; i++) {
        ret_lag->messages += source->slots[i].held + source->slots[i].waiting;
        ask_count(&source->slots[i]);
    }
    return source->slot_count > 0;
}

/* -- Receiving ------------------------------------------------------------------------------------ */

struct batch {
    struct lw_message *const *out;
    size_t given;
    uint64_t bytes_left;
};

static void
give(struct batch *batch, struct lw_spool_slot *slot, struct lw_spool_chunk *chunk)
{
    struct lw_spool_entry *entry = &chunk->entries[chunk->given++];
    struct lw_message *message = batch->out[batch->given++];
    *message = (struct lw_message){
        .key = entry->key,
        .ordering_key = entry->ordering_key,
        .value = entry->value,
        .position = entry->offset,
        .slot = slot->number,
        .redeliveries = entry->redeliveries,
        .owner = chunk,
        .entry = entry,
    };
    chunk->refs++;
    slot->held--;
    slot->held_bytes -= entry->bytes;
    if (entry->is_fresh && entry->offset >= slot->seen) {
        slot->seen = entry->offset + 1;
    }
    uint64_t bytes = entry->key.size + entry->value.size;
    batch->bytes_left = bytes < batch->bytes_left ? batch->bytes_left - bytes : 0;
}

/* Gives until so many are given in all, or the slot has no more. */
static void
give_from(struct batch *batch, struct lw_spool_slot *slot, size_t until)
{
    while (batch->given < until && batch->bytes_left > 0 && slot->held > 0) {
        struct lw_spool_chunk *chunk = LW_CONTAINER(slot->chunks.next, struct lw_spool_chunk,
                                                    link);
        give(batch, slot, chunk);
        if (chunk->given == chunk->count) {
            lw_list_remove(&chunk->link);
            lw_spool_chunk_release(chunk);
        }
    }
}

/* One slot's turn; false when it had no room. */
static bool
take_turn(struct lw_spool_source *source, struct batch *batch, size_t n)
{
    size_t share = lw_turns_share(&source->turns, n - batch->given);
    struct lw_list *node = lw_turns_next(&source->turns);
    struct lw_spool_slot *slot = LW_CONTAINER(node, struct lw_spool_slot, turn);
    size_t before = batch->given;
    if (source->rooms && source->rooms[slot->number] < share) {
        share = source->rooms[slot->number];
    }
    give_from(batch, slot, before + share);
    if (source->rooms) {
        source->rooms[slot->number] -= (uint32_t)(batch->given - before);
    }
    if (slot->held > 0) {
        lw_turns_add(&source->turns, &slot->turn);
    }
    ask(slot);
    return batch->given > before;
}

size_t
lw_spool_source_receive(struct lw_spool_source *source, struct lw_message *const out[],
                        size_t n, uint64_t bytes_max, bool *ret_has_more)
{
    struct batch batch = { .out = out, .bytes_left = bytes_max > 0 ? bytes_max : 1 };
    uint32_t passed = 0; /* slots in a row that had no room */
    while (batch.given < n && batch.bytes_left > 0 && passed < source->turns.count) {
        passed = take_turn(source, &batch, n) ? 0 : passed + 1;
    }
    source->broker->held += batch.given;
    *ret_has_more = source->turns.count > 0;
    return batch.given;
}

/* -- Settling ------------------------------------------------------------------------------------ */

void
lw_spool_source_settle(struct lw_spool_source *source, const struct lw_settle_item *items,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct lw_spool_entry *entry = items[i].message->entry;
        const struct lw_spool_slot *slot = &source->slots[items[i].message->slot];
        if (slot->generation == 0 || !entry->out) {
            continue; /* given up, or settled already */
        }
        struct lw_spool_verdict verdict = { entry->out, items[i].delay_ms, items[i].is_ack };
        entry->out = NULL;
        lw_spool_add_verdict(source->broker, &verdict);
    }
}
