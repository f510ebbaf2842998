/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words for the faults of the wire. Kept as a switch without a default, so that a new fault
 * cannot be forgotten here. Pure.
 */
#include "brokers/pulsar/wire/fault.h"

const char *
lw_pulsar_fault_text(enum lw_pulsar_fault fault)
{
    switch (fault) {
    case LW_PULSAR_OK:
        return "no fault";
    case LW_PULSAR_FRAME_TOO_LARGE:
        return "frame larger than this connection accepts";
    case LW_PULSAR_FRAME_TOO_SMALL:
        return "frame too small for a command";
    case LW_PULSAR_COMMAND_TOO_LARGE:
        return "size of the command is 0 or passes the frame's end";
    case LW_PULSAR_PROTO_MALFORMED:
        return "malformed protocol buffer";
    case LW_PULSAR_FIELD_MISSING:
        return "required field missing";
    case LW_PULSAR_TYPE_MISSING:
        return "command without a type";
    case LW_PULSAR_BODY_MISSING:
        return "command without its content";
    case LW_PULSAR_ENTRY_MALFORMED:
        return "malformed broker entry metadata";
    case LW_PULSAR_METADATA_TOO_LARGE:
        return "size of the metadata passes the frame's end";
    case LW_PULSAR_CHECKSUM_WRONG:
        return "checksum wrong";
    case LW_PULSAR_BATCH_MALFORMED:
        return "malformed batch";
    case LW_PULSAR_CODEC_UNKNOWN:
        return "unknown compression";
    case LW_PULSAR_SIZE_REFUSED:
        return "claimed uncompressed size refused";
    case LW_PULSAR_DATA_CORRUPT:
        return "compressed data corrupt";
    case LW_PULSAR_NO_MEMORY:
        return "no memory";
    }
    return "unknown fault";
}
