/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cannot be read: encrypted, with a wrong checksum, malformed, packed in an unknown way, larger
 * than allowed when unpacked. It is queued as one message that says why (lw_message.fault), with
 * the bytes as they came and those fields that can be believed; the dispatcher's policy decides, and
 * its ack tells the broker the reason. So nothing is lost for being unreadable here, the connection
 * stays, and messages behind it go on. Of an encrypted one the metadata is kept, so that a copy of
 * it can be decrypted by whoever has the key.
 */
#include <string.h>

#include "base/alloc.h"
#include "brokers/pulsar/consumer_state.h"

/* NULL: no memory. */
static struct lw_pulsar_fault_note *
make_note(const struct lw_pulsar_unreadable *what)
{
    size_t size = what->is_sealed ? what->metadata_bytes.size : 0;
    struct lw_pulsar_fault_note *note = lw_alloc(sizeof *note + size);
    if (!note) {
        return NULL;
    }
    note->text = what->why;
    note->sealed_size = size;
    if (size > 0) {
        memcpy(note->sealed, what->metadata_bytes.data, size);
    }
    return note;
}

/* What the metadata says, if it is believed: an empty one says nothing. */
static void
fill(struct lw_pulsar_received *member, const struct lw_pulsar_unreadable *what)
{
    struct lw_pulsar_metadata none = lw_pulsar_metadata_of();
    const struct lw_pulsar_metadata *metadata = what->metadata ? what->metadata : &none;
    member->value = what->body;
    member->key = metadata->null_partition_key ? none.partition_key : metadata->partition_key;
    member->has_bytes_key = metadata->is_key_b64 && member->key.data &&
                            lw_pulsar_key_decode(&member->key);
    member->ordering_key = metadata->ordering_key;
    member->schema_version = metadata->schema_version;
    member->properties = metadata->properties;
    member->event_time = metadata->event_time;
}

static void
begin_entry(struct lw_pulsar_arrival *arrival, struct lw_pulsar_consumer *consumer,
            const struct lw_pulsar_unreadable *what)
{
    struct lw_pulsar_entry *entry = arrival->entry;
    entry->consumer = consumer;
    entry->partition = what->message->message_id.partition;
    entry->validation = (int16_t)what->validation;
    if (what->chunked) {
        entry->chunks = what->chunked->ids;
        entry->chunk_count = what->chunked->count - 1;
        what->chunked->ids = NULL;
    }
    arrival->publish_time = what->metadata ? what->metadata->publish_time : 0;
    arrival->redeliveries = what->message->redelivery_count;
}

bool
lw_pulsar_consumer_take_unreadable(struct lw_pulsar_consumer *consumer,
                                   const struct lw_pulsar_unreadable *what)
{
    const struct lw_pulsar_message_id *id = &what->message->message_id;
    bool was_empty = consumer->queue.first == NULL;
    if (lw_pulsar_held_find(&consumer->entries.held, id->ledger, id->entry)) {
        consumer->figures.copies_dropped++; /* a copy that was damaged on its way */
        lw_free(what->buffer);
        return true;
    }
    struct lw_pulsar_fault_note *note = make_note(what);
    struct lw_pulsar_received *member = NULL;
    if (note) {
        member = lw_pulsar_single_create(&consumer->entries, id->ledger, id->entry, what->block,
                                         what->buffer);
    } else {
        lw_free(what->buffer);
    }
    if (!member) {
        lw_free(note);
        return false;
    }
    begin_entry(member->arrival, consumer, what);
    member->arrival->entry->note = note;
    fill(member, what);
    consumer->figures.unreadable++;
    lw_pulsar_consumer_enqueue(consumer, member);
    lw_pulsar_consumer_tell_ready(consumer, was_empty);
    return true;
}

/* -- Afterwards ------------------------------------------------------------------------------------ */

static const struct lw_pulsar_fault_note *
note_of(const struct lw_message *message)
{
    const struct lw_pulsar_received *member = message->owner;
    const struct lw_pulsar_entry *entry = member ? member->arrival->entry : NULL;
    return entry && entry->validation != LW_PULSAR_NOT_INVALID ? entry->note : NULL;
}

struct lw_bytes
lw_pulsar_message_sealed(const struct lw_message *message)
{
    const struct lw_pulsar_fault_note *note = note_of(message);
    if (!note || note->sealed_size == 0) {
        return (struct lw_bytes){ NULL, 0 };
    }
    return (struct lw_bytes){ note->sealed, note->sealed_size };
}
