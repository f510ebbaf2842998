/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as the payload part of a message: opened, its metadata decoded by hand and by
 * table with the same result, the members of its batch read and built again. A wrong checksum
 * stops a consumer, but not this target: nobody guesses checksums.
 */
#include <stdlib.h>
#include <string.h>

#include "brokers/pulsar/wire/fields.h"
#include "brokers/pulsar/wire/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
check_member(const struct lw_pulsar_member *member)
{
    struct lw_proto_writer writer = lw_proto_writer_of(NULL, 0);
    lw_pulsar_batch_append(&member->metadata, member->value, &writer);
    size_t needed = writer.size;
    writer = lw_proto_writer_of(malloc(needed), needed);
    lw_pulsar_batch_append(&member->metadata, member->value, &writer);
    struct lw_pulsar_metadata one = lw_pulsar_metadata_of();
    struct lw_pulsar_batch batch;
    struct lw_pulsar_member again;
    lw_assert(lw_pulsar_batch_open(&one, lw_proto_written(&writer), &batch) == LW_PULSAR_OK);
    lw_assert(lw_pulsar_batch_next(&batch, &again));
    lw_assert(again.value.size == member->value.size);
    lw_assert((again.value.data == NULL) == (member->value.data == NULL));
    lw_assert(again.metadata.partition_key.size == member->metadata.partition_key.size);
    free(writer.data);
}

static void
check_batch(const struct lw_pulsar_metadata *metadata, struct lw_bytes body)
{
    struct lw_pulsar_batch batch;
    struct lw_pulsar_member member;
    if (lw_pulsar_batch_open(metadata, body, &batch) != LW_PULSAR_OK) {
        return;
    }
    int32_t expected = batch.left;
    int32_t count = 0;
    for (; lw_pulsar_batch_next(&batch, &member); count++) {
        lw_assert(member.index >= 0 && member.index < batch.count);
        check_member(&member);
    }
    lw_assert(batch.fault != LW_PULSAR_OK || count == expected);
}

static void
check_metadata(const struct lw_pulsar_payload *payload)
{
    struct lw_pulsar_metadata by_hand;
    struct lw_pulsar_metadata by_table;
    memset(&by_hand, 0, sizeof by_hand);
    memset(&by_table, 0, sizeof by_table);
    enum lw_pulsar_fault fault = lw_pulsar_metadata_decode(payload->metadata, &by_hand);
    lw_assert(fault ==
              lw_pulsar_fields_decode(&lw_pulsar_metadata_table, payload->metadata, &by_table));
    if (fault != LW_PULSAR_OK) {
        return;
    }
    lw_assert(memcmp(&by_hand, &by_table, sizeof by_hand) == 0);
    check_batch(&by_hand, payload->body);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct lw_pulsar_payload payload;
    struct lw_pulsar_entry_metadata entry;
    enum lw_pulsar_fault fault = lw_pulsar_payload_open((struct lw_bytes){ bytes, size },
                                                        &payload);
    if (fault != LW_PULSAR_OK && fault != LW_PULSAR_CHECKSUM_WRONG) {
        return 0;
    }
    lw_assert(payload.metadata.size + payload.body.size <= size);
    if (payload.entry_metadata.data != NULL) {
        (void)lw_pulsar_entry_metadata_decode(payload.entry_metadata, &entry);
    }
    check_metadata(&payload);
    return 0;
}
