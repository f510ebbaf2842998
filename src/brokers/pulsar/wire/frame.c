/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame scanner. Everything is judged as soon as its bytes are there: a length beyond the
 * limit is refused after four bytes, a command beyond its frame after eight. Pure.
 */
#include "brokers/pulsar/wire/frame.h"

enum { SIZE_BYTES = 4 };

size_t
lw_pulsar_frame_bytes_max(int64_t message_bytes_max)
{
    int64_t message = message_bytes_max > 0 ? message_bytes_max
                                            : LW_PULSAR_MESSAGE_BYTES_DEFAULT;
    return (size_t)message + LW_PULSAR_PADDING_BYTES;
}

size_t
lw_pulsar_frame_bytes_accepted(int64_t message_bytes_max)
{
    return lw_pulsar_frame_bytes_max(message_bytes_max) + LW_PULSAR_MARGIN_BYTES;
}

static struct lw_pulsar_scan
more(size_t size)
{
    return (struct lw_pulsar_scan){ .state = LW_PULSAR_SCAN_MORE, .size = size };
}

static struct lw_pulsar_scan
bad(enum lw_pulsar_fault fault)
{
    return (struct lw_pulsar_scan){ .state = LW_PULSAR_SCAN_BAD, .fault = fault };
}

struct lw_pulsar_scan
lw_pulsar_frame_scan_any(const void *data, size_t size, size_t frame_bytes_max)
{
    const uint8_t *at = (const uint8_t *)data;
    if (size < SIZE_BYTES) {
        return more(LW_PULSAR_HEAD_BYTES);
    }
    uint64_t whole = (uint64_t)lw_proto_load_be32(at) + SIZE_BYTES;
    if (whole > frame_bytes_max) {
        return bad(LW_PULSAR_FRAME_TOO_LARGE);
    }
    if (whole < LW_PULSAR_HEAD_BYTES + LW_PULSAR_COMMAND_BYTES_MIN) {
        return bad(LW_PULSAR_FRAME_TOO_SMALL);
    }
    if (size < LW_PULSAR_HEAD_BYTES) {
        return more(LW_PULSAR_HEAD_BYTES);
    }
    uint32_t command_size = lw_proto_load_be32(at + SIZE_BYTES);
    if (command_size == 0 || command_size > whole - LW_PULSAR_HEAD_BYTES) {
        return bad(LW_PULSAR_COMMAND_TOO_LARGE);
    }
    if (size < whole) {
        return more((size_t)whole);
    }
    const uint8_t *command = at + LW_PULSAR_HEAD_BYTES;
    return (struct lw_pulsar_scan){
        .state = LW_PULSAR_SCAN_FRAME,
        .size = (size_t)whole,
        .command = { command, command_size },
        .rest = { command + command_size, (size_t)whole - LW_PULSAR_HEAD_BYTES - command_size },
    };
}
