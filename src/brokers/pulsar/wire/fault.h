/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why bytes were refused: one list for every decoder of this folder, so that a connection, a
 * consumer and a test name the same thing in the same word. LW_PULSAR_OK is 0 and means none.
 * Faults of the frame and of the command end the connection; those of the message and of its
 * payload concern this message alone (discard it with an ack that carries a validation error).
 */
#ifndef LW_BROKERS_PULSAR_WIRE_FAULT_H
#define LW_BROKERS_PULSAR_WIRE_FAULT_H

enum lw_pulsar_fault {
    LW_PULSAR_OK,
    LW_PULSAR_FRAME_TOO_LARGE,    /* the length exceeds what this connection accepts */
    LW_PULSAR_FRAME_TOO_SMALL,    /* less than a command's length and its type */
    LW_PULSAR_COMMAND_TOO_LARGE,  /* the command's length is 0 or passes the frame's end */
    LW_PULSAR_PROTO_MALFORMED,    /* varint over 10 bytes, length past the end, bad tag */
    LW_PULSAR_FIELD_MISSING,      /* a required field did not come */
    LW_PULSAR_TYPE_MISSING,       /* the command names no type */
    LW_PULSAR_BODY_MISSING,       /* known type without its sub-message */
    LW_PULSAR_ENTRY_MALFORMED,    /* broker entry metadata passes the end or cannot be read */
    LW_PULSAR_METADATA_TOO_LARGE, /* metadata passes the frame's end */
    LW_PULSAR_CHECKSUM_WRONG,
    LW_PULSAR_BATCH_MALFORMED, /* a member passes the end, or the count cannot be */
    LW_PULSAR_CODEC_UNKNOWN,   /* a compression that we do not know */
    LW_PULSAR_SIZE_REFUSED,    /* the claimed uncompressed size is over the bound or absurd */
    LW_PULSAR_DATA_CORRUPT,    /* does not decompress to exactly the claimed size */
    LW_PULSAR_NO_MEMORY,
};

/* Returns a constant text such as "checksum wrong". */
const char *lw_pulsar_fault_text(enum lw_pulsar_fault fault);

#endif
