/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages without a producer: one with what a test wants in it, many of a size for benches, and
 * the feed, whose entries are made once and given again and again under new ids, so that feeding
 * costs a copy and nothing else.
 */
#include "tests/support/pulsar/embedded_state.h"

enum { FEED_ENTRIES = 1024 };

static size_t
members_size(const struct lw_pulsar_single_metadata *single, const struct lw_bytes value,
             int32_t count)
{
    return lw_pulsar_batch_member_size(single, value) * (size_t)count + 16 * (size_t)count;
}

/* The body of a batch of equal members; its memory is the caller's. */
static struct lw_bytes
make_batch(const struct embedded_publish *message)
{
    struct lw_pulsar_single_metadata single = lw_pulsar_single_metadata_of();
    single.partition_key = embedded_bytes(message->key);
    single.ordering_key = embedded_bytes(message->ordering_key);
    size_t size = members_size(&single, message->value, message->batch);
    struct lw_proto_writer writer = lw_proto_writer_of(embedded_new(size), size);
    for (int32_t i = 0; i < message->batch; i++) {
        single.sequence_id = (uint64_t)i;
        lw_pulsar_batch_append(&single, message->value, &writer);
    }
    lw_assert(!lw_proto_is_overflow(&writer));
    return (struct lw_bytes){ writer.data, writer.size };
}

static struct lw_pulsar_metadata
metadata_for(struct embedded_topic *topic, const struct embedded_publish *message)
{
    struct lw_pulsar_metadata metadata = lw_pulsar_metadata_of();
    metadata.producer_name = embedded_bytes("embedded-fill");
    metadata.sequence_id = topic->count;
    metadata.publish_time = (uint64_t)embedded_now_ms(topic->broker);
    metadata.partition_key = embedded_bytes(message->key);
    metadata.ordering_key = embedded_bytes(message->ordering_key);
    if (message->batch > 0) {
        metadata.has |= LW_PULSAR_METADATA_HAS_NUM_MESSAGES;
        metadata.num_messages_in_batch = message->batch;
    }
    if (message->deliver_at_ms != 0) {
        metadata.has |= LW_PULSAR_METADATA_HAS_DELIVER_AT;
        metadata.deliver_at_time = message->deliver_at_ms;
    }
    return metadata;
}

/* The frame's part behind the command becomes an entry; `spoils` its checksum. */
static uint64_t
store(struct embedded_topic *topic, const struct lw_pulsar_metadata *metadata,
      struct lw_bytes value, bool spoils)
{
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_SEND);
    struct lw_proto_writer measure = lw_proto_writer_of(NULL, 0);
    lw_pulsar_metadata_encode(metadata, &measure);
    size_t head = lw_pulsar_command_frame_size(&command);
    size_t size = head + measure.size + value.size + 64;
    uint8_t *frame = embedded_new(size);
    struct lw_proto_writer writer = lw_proto_writer_of(frame, size);
    struct lw_pulsar_body body = { &value, 1 };
    lw_pulsar_payload_write_head(&command, NULL, metadata, body, &writer);
    lw_proto_put_raw(&writer, value.data, value.size);
    lw_assert(!lw_proto_is_overflow(&writer));
    if (spoils) {
        frame[head + 2] ^= 0x55;
    }
    struct lw_bytes rest = { frame + head, writer.size - head };
    uint64_t number = embedded_append(topic, rest, NULL);
    free(frame);
    return number;
}

static uint64_t
publish(struct embedded_topic *topic, const struct embedded_publish *message)
{
    static const char nothing[1];
    struct lw_bytes value = message->value;
    value.data = value.data == NULL ? nothing : value.data;
    struct lw_bytes made = { NULL, 0 };
    if (message->batch > 0) {
        value = made = make_batch(message);
    }
    struct lw_pulsar_metadata metadata = metadata_for(topic, message);
    uint64_t number = store(topic, &metadata, value, message->has_wrong_checksum);
    free((void *)(uintptr_t)made.data);
    return number;
}

uint64_t
embedded_store(struct embedded *broker, const char *topic,
               const struct lw_pulsar_metadata *metadata, struct lw_bytes body)
{
    return store(embedded_topic_get(broker, topic), metadata, body, false);
}

uint64_t
embedded_publish(struct embedded *broker, const char *topic,
                 const struct embedded_publish *message)
{
    return publish(embedded_topic_get(broker, topic), message);
}

static void
fill(struct embedded_topic *topic, uint64_t messages, size_t bytes, uint32_t keys,
     uint32_t batch, uint64_t entries_max)
{
    char key[32];
    char *value = embedded_new(bytes + 32);
    uint64_t done = 0;
    for (uint64_t i = 0; done < messages && i < entries_max; i++) {
        uint64_t left = messages - done;
        uint64_t here = batch == 0 ? 1 : left < batch ? left : batch;
        int head = snprintf(value, bytes + 32, "%llu ", (unsigned long long)done);
        memset(value + head, 'x', bytes > (size_t)head ? bytes - (size_t)head : 0);
        snprintf(key, sizeof key, "k%llu", (unsigned long long)(keys > 0 ? i % keys : 0));
        struct embedded_publish message = {
            .key = keys > 0 ? key : NULL,
            .value = { value, bytes },
            .batch = batch == 0 ? 0 : (int32_t)here,
        };
        (void)publish(topic, &message);
        done += here;
    }
    free(value);
}

void
embedded_fill(struct embedded *broker, const char *topic, uint64_t messages, size_t bytes,
              uint32_t keys, uint32_t batch)
{
    fill(embedded_topic_get(broker, topic), messages, bytes, keys, batch, UINT64_MAX);
}

void
embedded_feed(struct embedded *broker, const char *name, uint64_t messages, size_t bytes,
              uint32_t keys, uint32_t batch)
{
    struct embedded_topic *topic = embedded_topic_get(broker, name);
    lw_assert(topic->count == 0);
    uint64_t each = batch == 0 ? 1 : batch;
    uint64_t entries = messages / each;
    uint64_t made = entries < FEED_ENTRIES ? entries : FEED_ENTRIES;
    fill(topic, made * each, bytes, keys, batch, FEED_ENTRIES);
    topic->count = entries;
    topic->messages = entries * each;
}
