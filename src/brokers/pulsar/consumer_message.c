/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a MESSAGE becomes: charge it, see whether it is ours and new, open it (checksum, metadata,
 * chunks, compression, batch), queue its messages. What cannot be read is queued as such
 * (consumer_fault.c). Without memory the connection is closed, and all comes again. The broker's
 * second copy of what is here, or whose ack is not confirmed, is dropped, member by member.
 */
#include "base/alloc.h"
#include "base/error.h"
#include "brokers/pulsar/consumer_state.h"

enum { MEMBERS_MAX = 1 << 20 };

/* One MESSAGE on its way. */
struct taking {
    struct lw_pulsar_consumer *consumer;
    const struct lw_pulsar_message *message;
    struct lw_pulsar_block *block;
    const struct lw_pulsar_payload *payload;
    const struct lw_pulsar_metadata *metadata;
    struct lw_bytes body;
    uint8_t *buffer;                   /* owned; NULL: the body lies in the block */
    struct lw_pulsar_chunked *chunked; /* NULL, or the whole that the body is of */
};

static void
break_connection(struct lw_pulsar_consumer *consumer)
{
    struct lw_error error;
    (void)lw_error_set(&error, LW_STATUS_NO_MEMORY, "", "no memory for what %s brings",
                       consumer->topic);
    error.is_retriable = true;
    lw_pulsar_connection_close(consumer->connection, &error);
}

static struct lw_pulsar_entry *
make_entry(struct lw_pulsar_consumer *consumer, const struct lw_pulsar_message_id *id,
           int32_t batch_size)
{
    struct lw_pulsar_entry *entry = lw_pulsar_entry_create(&consumer->entries, id->ledger,
                                                           id->entry, batch_size);
    if (entry) {
        entry->consumer = consumer;
        entry->partition = id->partition;
    }
    return entry;
}

/* It goes on as it came, with the reason. */
static void
pass_unreadable(struct taking *taking, int32_t validation, const char *why)
{
    bool is_chunked = taking->chunked != NULL;
    struct lw_pulsar_unreadable what = {
        .message = taking->message,
        .block = taking->block,
        .metadata = taking->metadata,
        .metadata_bytes = taking->payload->metadata,
        .body = is_chunked ? taking->body : taking->payload->body,
        .buffer = is_chunked ? taking->buffer : NULL,
        .chunked = taking->chunked,
        .validation = validation,
        .is_sealed = validation == LW_PULSAR_INVALID_DECRYPTION,
        .why = why,
    };
    if (is_chunked) {
        taking->buffer = NULL;
    }
    if (!lw_pulsar_consumer_take_unreadable(taking->consumer, &what)) {
        break_connection(taking->consumer);
    }
}

void
lw_pulsar_consumer_give_up_chunk(void *user, struct lw_pulsar_chunk_id id, bool acks)
{
    struct lw_pulsar_consumer *consumer = user;
    struct lw_pulsar_message_id full = lw_pulsar_message_id_of(id.ledger, id.entry);
    if (lw_pulsar_held_find(&consumer->entries.held, id.ledger, id.entry)) {
        return;
    }
    struct lw_pulsar_entry *entry = make_entry(consumer, &full, 0);
    if (!entry) { /* the broker has it, and gives it again to the next session */
        lw_pulsar_entries_note_hole(&consumer->entries, id.ledger, id.entry);
        return;
    }
    if (acks) {
        entry->unacked[0] = 0;
        lw_pulsar_acks_add(&consumer->acks, entry);
        lw_pulsar_consumer_plan_acks(consumer);
    } else {
        lw_pulsar_bit_set(entry->here, 0);
        lw_pulsar_bit_set(entry->nacked, 0);
        lw_pulsar_consumer_plan_nack(consumer, entry, consumer->options->nack_delay_ns);
    }
}

/* -- Queueing -------------------------------------------------------------------------------------- */

static void
set_key(struct lw_pulsar_received *member, struct lw_bytes key, bool is_b64, bool is_null)
{
    member->key = is_null ? (struct lw_bytes){ NULL, 0 } : key;
    member->has_bytes_key = is_b64 && !is_null && key.data &&
                            lw_pulsar_key_decode(&member->key);
}

/*
 * A message of its own entry, which is not known yet; `buffer` goes to it. NULL: no memory.
 * Six arguments, or each message would pay for putting them together.
 * NOLINTBEGIN(readability-function-size)
 */
static struct lw_pulsar_entry *
take_single(struct lw_pulsar_consumer *consumer, const struct lw_pulsar_message *message,
            const struct lw_pulsar_metadata *metadata, struct lw_bytes body,
            struct lw_pulsar_block *block, uint8_t *buffer)
{
    bool was_empty = consumer->queue.first == NULL;
    struct lw_pulsar_received *member = lw_pulsar_single_create(
        &consumer->entries, message->message_id.ledger, message->message_id.entry, block,
        buffer);
    if (__builtin_expect(!member, 0)) {
        break_connection(consumer);
        return NULL;
    }
    struct lw_pulsar_arrival *arrival = member->arrival;
    struct lw_pulsar_entry *entry = arrival->entry;
    entry->consumer = consumer;
    entry->partition = message->message_id.partition;
    arrival->publish_time = metadata->publish_time;
    arrival->redeliveries = message->redelivery_count;
    set_key(member, metadata->partition_key, metadata->is_key_b64,
            metadata->null_partition_key);
    member->ordering_key = metadata->ordering_key;
    member->value = metadata->null_value ? (struct lw_bytes){ NULL, 0 } : body;
    member->schema_version = metadata->schema_version;
    member->properties = metadata->properties;
    member->event_time = metadata->event_time;
    lw_pulsar_consumer_enqueue(consumer, member);
    lw_pulsar_consumer_tell_ready(consumer, was_empty);
    return entry;
}
/* NOLINTEND(readability-function-size) */

/* -- Batches --------------------------------------------------------------------------------------- */

static void
set_member(struct lw_pulsar_received *to, const struct lw_pulsar_member *from,
           const struct lw_pulsar_metadata *metadata)
{
    set_key(to, from->metadata.partition_key, from->metadata.is_key_b64,
            from->metadata.null_partition_key);
    to->ordering_key = from->metadata.ordering_key;
    to->value = from->value;
    to->schema_version = metadata->schema_version;
    to->properties = from->metadata.properties;
    to->event_time = from->metadata.event_time;
}

/* The broker's set: what it knows to be acknowledged is so here, too. */
static void
apply_set(struct lw_pulsar_entry *entry, const struct lw_pulsar_list *set)
{
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(set);
    for (uint32_t i = 0; set->count > 0 && i < entry->word_count; i++) {
        uint64_t word = 0; /* those that are missing are acknowledged */
        (void)lw_pulsar_walk_number(&walk, &word);
        entry->unacked[i] &= word;
    }
}

/* Members of a compacted batch that are not in it count as acknowledged. */
static void
apply_compaction(struct lw_pulsar_entry *entry, const struct lw_pulsar_list *indexes)
{
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(indexes);
    uint64_t index;
    if (indexes->count == 0) {
        return;
    }
    for (uint32_t i = 0; i < entry->word_count; i++) {
        entry->nacked[i] = entry->unacked[i];
        entry->unacked[i] = 0;
    }
    while (lw_pulsar_walk_number(&walk, &index)) {
        if (index < (uint64_t)entry->batch_size &&
            lw_pulsar_bit_is_set(entry->nacked, (uint32_t)index)) {
            lw_pulsar_bit_set(entry->unacked, (uint32_t)index);
        }
    }
    for (uint32_t i = 0; i < entry->word_count; i++) {
        entry->nacked[i] = 0;
    }
}

/* Reads the members that are wanted into the arrival; false: malformed. */
static bool
read_members(struct taking *taking, struct lw_pulsar_batch *batch,
             struct lw_pulsar_arrival *arrival, uint32_t *ret_count)
{
    struct lw_pulsar_entry *entry = arrival->entry;
    struct lw_pulsar_member member;
    uint32_t count = 0;
    while (lw_pulsar_batch_next(batch, &member)) {
        uint32_t bit = (uint32_t)member.index;
        if (member.metadata.compacted_out) {
            lw_pulsar_bit_clear(entry->unacked, bit);
        } else if (lw_pulsar_bit_is_set(entry->unacked, bit) &&
                   !lw_pulsar_bit_is_set(entry->here, bit)) {
            struct lw_pulsar_received *to = &arrival->members[count++];
            lw_pulsar_received_begin(to, arrival, member.index);
            set_member(to, &member, taking->metadata);
        }
    }
    *ret_count = count;
    return batch->fault == LW_PULSAR_OK;
}

static void
end_members(struct lw_pulsar_arrival *arrival, uint32_t count)
{
    struct lw_pulsar_received *members = arrival->members;
    if (count == 0) {
        lw_pulsar_arrival_drop(arrival);
    }
    for (uint32_t i = 0; i < count; i++) {
        lw_pulsar_received_end(&members[i]);
    }
}

/* Nothing of a new one is left to deliver: all of it was compacted away or acknowledged. */
static void
end_empty(struct lw_pulsar_consumer *consumer, struct lw_pulsar_entry *entry)
{
    if (!lw_pulsar_entry_has_unacked(entry) && entry->ack_state == LW_PULSAR_ACK_NONE) {
        lw_pulsar_acks_add(&consumer->acks, entry);
        lw_pulsar_consumer_plan_acks(consumer);
    }
    lw_pulsar_entry_tidy(entry);
}

/* The memory of `taking` goes to the arrival. NULL: none left, the connection is closed. */
static struct lw_pulsar_arrival *
arrive(struct taking *taking, struct lw_pulsar_entry *entry, uint32_t members)
{
    struct lw_pulsar_arrival *arrival = lw_pulsar_arrival_create(entry, taking->block,
                                                                 taking->buffer, members);
    taking->buffer = NULL;
    if (!arrival) {
        lw_pulsar_entry_tidy(entry);
        break_connection(taking->consumer);
        return NULL;
    }
    arrival->publish_time = taking->metadata->publish_time;
    arrival->redeliveries = taking->message->redelivery_count;
    return arrival;
}

static void
fill_batch(struct taking *taking, struct lw_pulsar_batch *batch, struct lw_pulsar_entry *entry)
{
    struct lw_pulsar_consumer *consumer = taking->consumer;
    bool was_empty = consumer->queue.first == NULL;
    uint32_t count = 0;
    entry->left++; /* it stays while we look at it */
    uint32_t capacity = batch->left > 0 ? (uint32_t)batch->left : 1;
    struct lw_pulsar_arrival *arrival = arrive(taking, entry, capacity);
    if (!arrival) {
        entry->left--;
        lw_pulsar_entry_tidy(entry);
        return;
    }
    bool is_read = read_members(taking, batch, arrival, &count);
    if (!is_read || count == 0) {
        end_members(arrival, count);
        entry->left--;
        if (is_read) {
            end_empty(consumer, entry);
        } else {
            lw_pulsar_entry_tidy(entry);
            pass_unreadable(taking, LW_PULSAR_INVALID_BATCH,
                            lw_pulsar_fault_text(batch->fault));
        }
        return;
    }
    entry->left--;
    for (uint32_t i = 0; i < count; i++) {
        lw_pulsar_consumer_enqueue(consumer, &arrival->members[i]);
    }
    lw_pulsar_consumer_tell_ready(consumer, was_empty);
}

static void
take_batch(struct taking *taking, struct lw_pulsar_entry *entry)
{
    struct lw_pulsar_consumer *consumer = taking->consumer;
    struct lw_pulsar_batch batch;
    enum lw_pulsar_fault fault = lw_pulsar_batch_open(taking->metadata, taking->body, &batch);
    if (fault == LW_PULSAR_OK && batch.count > MEMBERS_MAX) {
        fault = LW_PULSAR_BATCH_MALFORMED;
    }
    if (fault != LW_PULSAR_OK) {
        pass_unreadable(taking, LW_PULSAR_INVALID_BATCH, lw_pulsar_fault_text(fault));
        return;
    }
    if (!entry) {
        entry = make_entry(consumer, &taking->message->message_id, batch.count);
        if (!entry) {
            break_connection(consumer);
            return;
        }
        apply_compaction(entry, &taking->metadata->compacted_batch_indexes);
    } else if (entry->batch_size != batch.count) {
        consumer->figures.copies_dropped++;
        return;
    }
    apply_set(entry, &taking->message->ack_set);
    fill_batch(taking, &batch, entry);
}

/* -- Opening --------------------------------------------------------------------------------------- */

/* Into a buffer of its own; false: it is unreadable, or there is no memory. */
static bool
unpack(struct taking *taking, size_t size)
{
    struct lw_pulsar_consumer *consumer = taking->consumer;
    consumer->codec = consumer->codec ? consumer->codec : lw_pulsar_codec_create();
    uint8_t *buffer = lw_resize_array(NULL, size + 1, 1);
    enum lw_pulsar_fault fault = LW_PULSAR_NO_MEMORY;
    if (consumer->codec && buffer) {
        fault = lw_pulsar_decompress(consumer->codec, taking->metadata->compression,
                                     taking->body, buffer, size);
    }
    if (fault != LW_PULSAR_OK) {
        lw_free(buffer);
        if (fault == LW_PULSAR_NO_MEMORY) {
            break_connection(consumer);
        } else {
            pass_unreadable(taking, LW_PULSAR_INVALID_DECOMPRESSION,
                            lw_pulsar_fault_text(fault));
        }
        return false;
    }
    lw_free(taking->buffer);
    taking->buffer = buffer;
    taking->body = (struct lw_bytes){ buffer, size };
    return true;
}

static bool
decompress(struct taking *taking)
{
    size_t size = taking->metadata->uncompressed_size;
    enum lw_pulsar_fault fault = lw_pulsar_uncompressed_check(
        taking->metadata->compression, taking->body, size,
        taking->consumer->options->uncompressed_bytes_max);
    if (fault != LW_PULSAR_OK) {
        pass_unreadable(taking,
                        fault == LW_PULSAR_SIZE_REFUSED ? LW_PULSAR_INVALID_UNCOMPRESSED_SIZE
                                                        : LW_PULSAR_INVALID_DECOMPRESSION,
                        lw_pulsar_fault_text(fault));
        return false;
    }
    return unpack(taking, size);
}

/* The body is whole: decompress, then deliver what of it is new. */
static void
take_body(struct taking *taking, struct lw_pulsar_entry *entry)
{
    struct lw_pulsar_chunked *chunked = taking->chunked;
    if (taking->metadata->compression != LW_PULSAR_COMPRESSION_NONE && !decompress(taking)) {
        return;
    }
    if (!chunked && lw_pulsar_metadata_is_batch(taking->metadata)) {
        take_batch(taking, entry);
        return;
    }
    entry = take_single(taking->consumer, taking->message, taking->metadata, taking->body,
                        taking->block, taking->buffer);
    taking->buffer = NULL;
    if (entry && chunked) {
        entry->chunks = chunked->ids;
        entry->chunk_count = chunked->count - 1;
        chunked->ids = NULL;
    }
}

/* A copy of a single message, or of a batch of which no member can be new. */
static bool
is_copy(const struct taking *taking, const struct lw_pulsar_entry *entry)
{
    for (uint32_t i = 0; i < entry->word_count; i++) {
        if ((entry->unacked[i] & ~entry->here[i]) != 0) {
            return !lw_pulsar_metadata_is_batch(taking->metadata);
        }
    }
    return true;
}

/* Once it has come, one that is all acknowledged need not be known any longer. */
static void
drop_copy(struct lw_pulsar_consumer *consumer, struct lw_pulsar_entry *entry)
{
    consumer->figures.copies_dropped++;
    entry->is_copy_due = false;
    if (entry->is_remembered && !lw_pulsar_entry_has_unacked(entry)) {
        lw_pulsar_entry_forget(entry);
        lw_pulsar_entry_tidy(entry);
    }
}

/* Of a message that was never whole here: its end came alone and waits to be asked for. */
static bool
is_lone_end(const struct lw_pulsar_entry *entry)
{
    return entry->nack_place > 0 && entry->left == 0 && entry->chunk_count == 0;
}

/* `is_broken`: it holds what came of it, and cannot be read. */
static void
take_chunked(struct taking *taking, struct lw_pulsar_chunked *chunked, bool is_broken)
{
    const struct lw_pulsar_message_id *id = &taking->message->message_id;
    struct lw_pulsar_entry *entry = lw_pulsar_held_find(&taking->consumer->entries.held,
                                                        id->ledger, id->entry);
    if (entry && is_lone_end(entry)) {
        lw_pulsar_consumer_drop_nack(taking->consumer, entry);
        entry = NULL;
    }
    if (entry) {
        drop_copy(taking->consumer, entry);
    } else {
        taking->buffer = chunked->data;
        taking->body = (struct lw_bytes){ chunked->data, chunked->size };
        chunked->data = NULL;
        taking->chunked = chunked;
        if (is_broken) {
            pass_unreadable(taking, LW_PULSAR_INVALID_UNCOMPRESSED_SIZE,
                            "its chunks do not add up to the size that they tell");
        } else {
            take_body(taking, NULL);
        }
    }
    lw_pulsar_chunked_free(chunked);
}

static bool
is_older(const struct lw_pulsar_consumer *consumer, uint64_t publish_time)
{
    struct lw_host *host = consumer->client->host;
    uint64_t wall = (uint64_t)host->ops->wall_ms(host);
    return consumer->options->chunk_expiry_ns > 0 && wall > publish_time &&
           wall - publish_time > consumer->options->chunk_expiry_ns / LW_MS;
}

static void
take_chunk(struct taking *taking)
{
    struct lw_pulsar_consumer *consumer = taking->consumer;
    const struct lw_pulsar_metadata *metadata = taking->metadata;
    const struct lw_pulsar_message_id *id = &taking->message->message_id;
    struct lw_pulsar_chunked *whole = NULL;
    struct lw_host *host = consumer->client->host;
    struct lw_pulsar_chunk chunk = {
        .uuid = metadata->uuid,
        .body = taking->body,
        .id = { id->ledger, id->entry },
        .index = metadata->chunk_id,
        .count = metadata->num_chunks_from_msg,
        .size = metadata->total_chunk_msg_size,
        .is_old = is_older(consumer, metadata->publish_time),
    };
    enum lw_pulsar_chunk_result result = lw_pulsar_chunks_add(&consumer->chunks, &chunk,
                                                              host->now, &whole);
    switch (result) {
    case LW_PULSAR_CHUNK_WHOLE:
    case LW_PULSAR_CHUNK_BROKEN:
        take_chunked(taking, whole, result == LW_PULSAR_CHUNK_BROKEN);
        break;
    case LW_PULSAR_CHUNK_REFUSED:
        pass_unreadable(taking, LW_PULSAR_INVALID_UNCOMPRESSED_SIZE,
                        "its chunks do not make a message within the bounds");
        break;
    case LW_PULSAR_CHUNK_NO_MEMORY:
        break_connection(consumer);
        break;
    case LW_PULSAR_CHUNK_KEPT:
        break;
    }
    lw_timers_arm(&host->timers, &consumer->chunk_timer,
                  lw_pulsar_chunks_expire(&consumer->chunks, host->now));
}

/* -- Charging -------------------------------------------------------------------------------------- */

/* Of a batch of which members are acknowledged already. */
static uint32_t
count_left(uint32_t count, const struct lw_pulsar_list *set)
{
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(set);
    uint32_t left = 0;
    uint64_t word;
    for (uint32_t i = 0; i < count && lw_pulsar_walk_number(&walk, &word); i += 64) {
        uint64_t mask = count - i >= 64 ? UINT64_MAX : (UINT64_C(1) << (count - i)) - 1;
        left += (uint32_t)__builtin_popcountll(word & mask);
    }
    return left;
}

/* What the broker took from the permits: the members that were not acknowledged. */
LW_INLINE uint32_t
charge_of(const struct lw_pulsar_metadata *metadata, const struct lw_pulsar_list *set)
{
    uint32_t count = metadata->num_messages_in_batch > 0
                         ? (uint32_t)metadata->num_messages_in_batch
                         : 1;
    return __builtin_expect(set->count == 0, 1) ? count : count_left(count, set);
}

/*
 * The broker charged what the metadata says, for it looks at them and not at the checksum: a
 * smaller guess would lose permits for good. Believed as far as the bytes could hold as many.
 */
static uint32_t
charge_of_damaged(const struct lw_pulsar_payload *payload, const struct lw_pulsar_list *set)
{
    struct lw_pulsar_metadata metadata;
    if (lw_pulsar_metadata_decode(payload->metadata, &metadata) != LW_PULSAR_OK) {
        return 1;
    }
    bool is_packed = metadata.compression != LW_PULSAR_COMPRESSION_NONE;
    size_t size = is_packed ? metadata.uncompressed_size : payload->body.size;
    size_t most = size / LW_PULSAR_MEMBER_BYTES_MIN;
    uint32_t claimed = charge_of(&metadata, set);
    most = most < MEMBERS_MAX ? most : MEMBERS_MAX;
    return claimed <= most ? claimed : 1;
}

/* It belongs to what was before a rewind or a seek. */
static bool
is_stale(const struct lw_pulsar_consumer *consumer, const struct lw_pulsar_message *message)
{
    bool has_epoch = (message->has & LW_PULSAR_MESSAGE_HAS_CONSUMER_EPOCH) != 0;
    return consumer->is_seeking || (has_epoch && message->consumer_epoch < consumer->epoch);
}

/* Of brokers that do not tell who is active. */
LW_INLINE void
begin_ownership(struct lw_pulsar_consumer *consumer)
{
    if (__builtin_expect(!consumer->is_begun, 0)) {
        lw_pulsar_consumer_begin(consumer);
    }
}

/* All that is not acknowledged and lies before it has come, too. */
static void
note_horizon(struct lw_pulsar_consumer *consumer, const struct lw_pulsar_message *message)
{
    bool has_epoch = (message->has & LW_PULSAR_MESSAGE_HAS_CONSUMER_EPOCH) != 0;
    if (has_epoch || !consumer->has_rewound) {
        consumer->has_horizon = true;
        consumer->horizon = (struct lw_pulsar_place){ message->message_id.ledger,
                                                      message->message_id.entry };
    }
}

/* `payload` NULL: not even its parts are known, and all of it is the body. */
static void
take_damaged(struct lw_pulsar_consumer *consumer, struct lw_pulsar_unreadable *what,
             const struct lw_pulsar_payload *payload)
{
    const struct lw_pulsar_message *message = what->message;
    uint32_t charge = payload ? charge_of_damaged(payload, &message->ack_set) : 1;
    lw_pulsar_permits_charge(&consumer->permits, charge, 0);
    if (payload) {
        what->body = payload->body;
    }
    if (!is_stale(consumer, message)) {
        begin_ownership(consumer);
        if (consumer->is_in_order) {
            note_horizon(consumer, message);
        }
        if (!lw_pulsar_consumer_take_unreadable(consumer, what)) {
            break_connection(consumer);
        }
    }
    lw_pulsar_consumer_flow(consumer);
}

/* `what` has the message, its block, and all of it as the body. */
__attribute__((noinline)) static void
take_fault(struct lw_pulsar_consumer *consumer, struct lw_pulsar_unreadable what,
           const struct lw_pulsar_payload *payload, enum lw_pulsar_fault fault)
{
    bool is_checksum = fault == LW_PULSAR_CHECKSUM_WRONG;
    what.validation = is_checksum ? LW_PULSAR_INVALID_CHECKSUM : LW_PULSAR_INVALID_BATCH;
    what.why = lw_pulsar_fault_text(fault);
    take_damaged(consumer, &what, is_checksum ? payload : NULL);
}

/* Whatever is not one plain message of an entry that is not known. */
__attribute__((noinline)) static void
take_other(struct taking *taking, struct lw_pulsar_entry *entry)
{
    struct lw_pulsar_consumer *consumer = taking->consumer;
    if (taking->metadata->encryption_keys.count > 0) {
        pass_unreadable(taking, LW_PULSAR_INVALID_DECRYPTION, "it is encrypted");
    } else if (lw_pulsar_metadata_is_chunk(taking->metadata)) {
        take_chunk(taking);
    } else if (entry && is_copy(taking, entry)) {
        drop_copy(consumer, entry);
    } else {
        take_body(taking, entry);
    }
    lw_free(taking->buffer);
}

LW_INLINE void
take(struct lw_pulsar_consumer *consumer, const struct lw_pulsar_message *message,
     const struct lw_pulsar_metadata *metadata, const struct lw_pulsar_payload *payload,
     struct lw_pulsar_block *block)
{
    const struct lw_pulsar_message_id *id = &message->message_id;
    uint32_t queued = consumer->permits.queued;
    struct lw_pulsar_entry *entry = lw_pulsar_held_find(&consumer->entries.held, id->ledger,
                                                        id->entry);
    if (!entry && (metadata->has & LW_PULSAR_METADATA_HAS_MORE_TO_DO) == 0) {
        (void)take_single(consumer, message, metadata, payload->body, block, NULL);
    } else {
        struct taking taking = { consumer, message,       block, payload,
                                 metadata, payload->body, NULL,  NULL };
        take_other(&taking, entry);
    }
    if (__builtin_expect(consumer->permits.queued == queued, 0)) {
        lw_pulsar_consumer_flow(consumer); /* its permits brought nothing */
    }
}

void
lw_pulsar_consumer_on_message(struct lw_pulsar_user *user,
                              const struct lw_pulsar_message *message, struct lw_bytes rest,
                              struct lw_pulsar_block *block)
{
    struct lw_pulsar_consumer *consumer = LW_CONTAINER(user, struct lw_pulsar_consumer, user);
    struct lw_pulsar_payload payload;
    struct lw_pulsar_metadata metadata;
    consumer->figures.entries++;
    if (!lw_pulsar_consumer_has_session(consumer)) {
        return;
    }
    enum lw_pulsar_fault fault = lw_pulsar_payload_open(rest, &payload);
    if (__builtin_expect(fault != LW_PULSAR_OK, 0)) {
        struct lw_pulsar_unreadable what = { .message = message, .block = block, .body = rest };
        take_fault(consumer, what, &payload, fault);
        return;
    }
    fault = lw_pulsar_metadata_decode(payload.metadata, &metadata);
    if (__builtin_expect(fault != LW_PULSAR_OK, 0)) {
        struct lw_pulsar_unreadable what = { .message = message, .block = block, .body = rest };
        take_fault(consumer, what, &payload, fault);
        return;
    }
    lw_pulsar_permits_charge(&consumer->permits, charge_of(&metadata, &message->ack_set),
                             payload.body.size);
    if (__builtin_expect(is_stale(consumer, message), 0)) {
        lw_pulsar_consumer_flow(consumer);
        return;
    }
    begin_ownership(consumer);
    if (__builtin_expect(consumer->is_in_order, 0)) {
        note_horizon(consumer, message);
    }
    take(consumer, message, &metadata, &payload, block);
}
