/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: [total size][command size][command][rest], both sizes big-endian; `rest` is the payload
 * part of SEND and MESSAGE. The scanner looks at the bytes received so far and answers: a frame
 * (used n), more needed, or bad and why. It decides from the length alone, before anything is
 * buffered or allocated. Trailing bytes after a simple command are legal and ignored.
 */
#ifndef LW_BROKERS_PULSAR_WIRE_FRAME_H
#define LW_BROKERS_PULSAR_WIRE_FRAME_H

#include "brokers/pulsar/wire/fault.h"
#include "brokers/pulsar/wire/proto.h"

enum {
    LW_PULSAR_HEAD_BYTES = 8,                          /* the two sizes */
    LW_PULSAR_MESSAGE_BYTES_DEFAULT = 5 * 1024 * 1024, /* until CONNECTED says otherwise */
    LW_PULSAR_PADDING_BYTES = 10 * 1024, /* whole frames up to message size + this are legal */
    LW_PULSAR_MARGIN_BYTES = 64 * 1024,  /* what a client grants a broker beyond that */
    LW_PULSAR_PAYLOAD_HEAD_BYTES_MAX = 10, /* magic, checksum, metadata size */
    LW_PULSAR_COMMAND_BYTES_MIN = 2,
};

enum lw_pulsar_scan_state { LW_PULSAR_SCAN_FRAME, LW_PULSAR_SCAN_MORE, LW_PULSAR_SCAN_BAD };

struct lw_pulsar_scan {
    enum lw_pulsar_scan_state state;
    enum lw_pulsar_fault fault; /* BAD: why */
    size_t size;             /* FRAME: bytes used; MORE: the least that must be there; BAD: 0 */
    struct lw_bytes command; /* FRAME */
    struct lw_bytes rest;    /* FRAME; never null, empty for simple commands */
};

/* The largest whole frame (its first four bytes counted) that a broker accepts. */
size_t lw_pulsar_frame_bytes_max(int64_t message_bytes_max);
/* The same as a client should use for its broker, with the margin for what brokers add. */
size_t lw_pulsar_frame_bytes_accepted(int64_t message_bytes_max);
LW_INLINE struct lw_pulsar_scan
lw_pulsar_frame_scan(const void *data, size_t size, size_t frame_bytes_max);
/* The same without a short way. */
struct lw_pulsar_scan
lw_pulsar_frame_scan_any(const void *data, size_t size, size_t frame_bytes_max);

/* A whole frame within its bounds; anything else is looked at with care. */
LW_INLINE struct lw_pulsar_scan
lw_pulsar_frame_scan(const void *data, size_t size, size_t frame_bytes_max)
{
    const uint8_t *at = (const uint8_t *)data;
    if (__builtin_expect(size < LW_PULSAR_HEAD_BYTES, 0)) {
        return lw_pulsar_frame_scan_any(data, size, frame_bytes_max);
    }
    uint64_t whole = (uint64_t)lw_proto_load_be32(at) + 4;
    uint64_t command = lw_proto_load_be32(at + 4);
    if (__builtin_expect(whole > size || whole > frame_bytes_max ||
                             command < LW_PULSAR_COMMAND_BYTES_MIN ||
                             command + LW_PULSAR_HEAD_BYTES > whole,
                         0)) {
        return lw_pulsar_frame_scan_any(data, size, frame_bytes_max);
    }
    at += LW_PULSAR_HEAD_BYTES;
    return (struct lw_pulsar_scan){
        .state = LW_PULSAR_SCAN_FRAME,
        .size = (size_t)whole,
        .command = { at, (size_t)command },
        .rest = { at + command, (size_t)(whole - LW_PULSAR_HEAD_BYTES - command) },
    };
}

#endif
