/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes one frame again and again, as a client does: its bounds, the command, the checksum, the
 * metadata, the members of a batch. Whatever does not decode ends the program.
 */
#include "bench/support/pulsar_decode.h"

#if LW_WITH_PULSAR

#include <stdio.h>
#include <stdlib.h>

#include "brokers/pulsar/wire/frame.h"
#include "brokers/pulsar/wire/message.h"

enum { FRAME_BYTES = 64 * 1024, VALUE_BYTES = 100 };

static struct lw_bytes
batch_of(uint8_t *room, size_t size, int32_t members)
{
    static const char value[VALUE_BYTES];
    struct lw_pulsar_single_metadata single = lw_pulsar_single_metadata_of();
    single.partition_key = (struct lw_bytes){ "key-17", 6 };
    struct lw_proto_writer writer = lw_proto_writer_of(room, size);
    for (int32_t i = 0; i < members; i++) {
        single.sequence_id = (uint64_t)i;
        lw_pulsar_batch_append(&single, (struct lw_bytes){ value, sizeof value }, &writer);
    }
    return (struct lw_bytes){ writer.data, writer.size };
}

/* A MESSAGE frame as a broker sends it, with 0 or so many members in a batch. */
static size_t
make_frame(uint8_t *frame, int32_t members)
{
    static uint8_t room[FRAME_BYTES];
    static const char value[VALUE_BYTES];
    struct lw_bytes body = members > 0 ? batch_of(room, sizeof room, members)
                                       : (struct lw_bytes){ value, sizeof value };
    struct lw_pulsar_command command = lw_pulsar_command_of(LW_PULSAR_MESSAGE);
    command.message.consumer_id = 1;
    command.message.message_id.ledger = 12345;
    command.message.message_id.entry = 678;
    struct lw_pulsar_metadata metadata = lw_pulsar_metadata_of();
    metadata.producer_name = (struct lw_bytes){ "standalone-0-1", 14 };
    metadata.sequence_id = 4711;
    metadata.publish_time = 1700000000000;
    if (members > 0) {
        metadata.has |= LW_PULSAR_METADATA_HAS_NUM_MESSAGES;
        metadata.num_messages_in_batch = members;
    } else {
        metadata.partition_key = (struct lw_bytes){ "key-17", 6 };
    }
    struct lw_proto_writer writer = lw_proto_writer_of(frame, FRAME_BYTES);
    lw_pulsar_payload_write_head(&command, NULL, &metadata, (struct lw_pulsar_body){ &body, 1 },
                                 &writer);
    lw_proto_put_raw(&writer, body.data, body.size);
    return writer.size;
}

static uint64_t
decode_members(const struct lw_pulsar_metadata *metadata, struct lw_bytes body)
{
    struct lw_pulsar_batch batch;
    struct lw_pulsar_member member;
    uint64_t count = 0;
    if (!lw_pulsar_metadata_is_batch(metadata)) {
        return 1;
    }
    if (lw_pulsar_batch_open(metadata, body, &batch) != LW_PULSAR_OK) {
        exit(70);
    }
    while (lw_pulsar_batch_next(&batch, &member)) {
        count++;
    }
    return count;
}

static uint64_t
decode_frame(const uint8_t *frame, size_t size)
{
    struct lw_pulsar_command command;
    struct lw_pulsar_payload payload;
    struct lw_pulsar_metadata metadata;
    struct lw_pulsar_scan scan = lw_pulsar_frame_scan(frame, size, FRAME_BYTES);
    if (scan.state != LW_PULSAR_SCAN_FRAME ||
        lw_pulsar_command_decode(scan.command, &command) != LW_PULSAR_OK ||
        lw_pulsar_payload_open(scan.rest, &payload) != LW_PULSAR_OK ||
        lw_pulsar_metadata_decode(payload.metadata, &metadata) != LW_PULSAR_OK) {
        fprintf(stderr, "pulsar_path: the frame does not decode\n");
        exit(70);
    }
    return decode_members(&metadata, payload.body);
}

void
lw_bench_decode(int32_t members, uint64_t n)
{
    static uint8_t frame[FRAME_BYTES];
    size_t size = make_frame(frame, members);
    uint64_t count = 0;
    while (count < n) {
        count += decode_frame(frame, size);
    }
    printf("%llu 0\n", (unsigned long long)count);
}

#else

void
lw_bench_decode(int32_t members, uint64_t n)
{
    (void)members;
    (void)n;
}

#endif
