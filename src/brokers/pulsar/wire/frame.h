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
struct lw_pulsar_scan
lw_pulsar_frame_scan(const void *data, size_t size, size_t frame_bytes_max);

#endif
