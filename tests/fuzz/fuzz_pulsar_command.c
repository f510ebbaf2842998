/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as frames of Pulsar: scanned, decoded, every list walked to its end. What was
 * understood is encoded; from then on decoding and encoding must give the same bytes for ever.
 */
#include <stdlib.h>
#include <string.h>

#include "brokers/pulsar/wire/command.h"
#include "brokers/pulsar/wire/fields.h"

enum { FRAME_BYTES_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void
walk_list(const struct lw_pulsar_list *list)
{
    struct lw_pulsar_walk walk = lw_pulsar_list_walk(list);
    struct lw_pulsar_message_id id;
    struct lw_pulsar_pair pair;
    struct lw_pulsar_range range;
    uint64_t number;
    while (lw_pulsar_walk_id(&walk, &id)) {
        lw_assert(id.first_chunk.size <= list->size);
    }
    for (walk = lw_pulsar_list_walk(list); lw_pulsar_walk_pair(&walk, &pair);) {
        lw_assert(pair.key.size + pair.value.size <= list->size);
    }
    for (walk = lw_pulsar_list_walk(list); lw_pulsar_walk_range(&walk, &range);) {
    }
    for (walk = lw_pulsar_list_walk(list); lw_pulsar_walk_number(&walk, &number);) {
    }
}

static void
walk_lists(const struct lw_pulsar_command *command)
{
    const struct lw_pulsar_table *table = lw_pulsar_command_table(command->type);
    for (uint32_t i = 0; i < table->count; i++) {
        const struct lw_pulsar_field *field = &table->fields[i];
        if (field->kind == LW_PULSAR_KIND_LIST || field->kind == LW_PULSAR_KIND_NUMBERS) {
            struct lw_pulsar_list list;
            memcpy(&list, (const uint8_t *)&command->connect + field->offset, sizeof list);
            walk_list(&list);
        }
    }
}

/* Encodes into a block of exactly the size that was counted. */
static struct lw_bytes
encode(const struct lw_pulsar_command *command)
{
    struct lw_proto_writer writer = lw_proto_writer_of(NULL, 0);
    lw_pulsar_command_encode(command, &writer);
    size_t needed = writer.size;
    writer = lw_proto_writer_of(malloc(needed), needed);
    lw_pulsar_command_encode(command, &writer);
    lw_assert(writer.size == needed && !lw_proto_is_overflow(&writer));
    return (struct lw_bytes){ writer.data, needed };
}

static void
check_command(struct lw_bytes bytes)
{
    struct lw_pulsar_command command;
    struct lw_pulsar_command again;
    if (lw_pulsar_command_decode(bytes, &command) != LW_PULSAR_OK || !command.is_known) {
        return;
    }
    walk_lists(&command);
    struct lw_bytes first = encode(&command);
    lw_assert(lw_pulsar_command_decode(first, &again) == LW_PULSAR_OK);
    struct lw_bytes second = encode(&again);
    lw_assert(first.size == second.size && memcmp(first.data, second.data, first.size) == 0);
    free((void *)(uintptr_t)first.data);
    free((void *)(uintptr_t)second.data);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    while (size > 0) {
        struct lw_pulsar_scan scan = lw_pulsar_frame_scan(bytes, size, FRAME_BYTES_MAX);
        if (scan.state != LW_PULSAR_SCAN_FRAME) {
            lw_assert(scan.state == LW_PULSAR_SCAN_BAD || scan.size > size);
            break;
        }
        lw_assert(scan.size <= size && scan.command.size + scan.rest.size + 8 == scan.size);
        check_command(scan.command);
        bytes += scan.size;
        size -= scan.size;
    }
    return 0;
}
