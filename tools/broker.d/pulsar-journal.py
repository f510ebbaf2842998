# SPDX-License-Identifier: Apache-2.0
"""pulsar-journal.py FILE...: cuts a torn last record off journals of a bookie that was killed.

A journal is filled with zeros in advance and has no checksums of its own, so the bookie takes a
record whose end was never written for a whole one, and the ledger cannot be opened again: "digest
mismatch". Other bookies would have a whole copy; where there is only this one, the record was
never confirmed to anybody and may go. An entry carries the CRC32C of its head (32 bytes: ledger,
entry, last confirmed, length) and its payload, 4 bytes between them.
"""
import mmap
import os
import struct
import sys

HEAD_BYTES = 512  # since version 5; "BKLG", the version
FIRST_VERSION, LAST_VERSION = 5, 6
PADDING = -0x100
ENTRY_BYTES, DIGEST_BYTES = 32, 4


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


def crc32c(*parts):
    table, crc = crc_table(), 0xFFFFFFFF
    for part in parts:
        for byte in part:
            crc = (crc >> 8) ^ table[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def last_record(data):
    """Returns (start, entry) of the last record of an entry, or None."""
    at, found = HEAD_BYTES, None
    while at + 8 <= len(data):
        (size,) = struct.unpack_from(">i", data, at)
        if size == PADDING:
            at += 8 + struct.unpack_from(">i", data, at + 4)[0]
        elif size <= 0:
            break
        else:
            # Fences and the like carry a negative number of an entry and no checksum.
            if size >= 16 and struct.unpack_from(">q", data, at + 12)[0] >= 0:
                found = (at, size)
            at += 4 + size
    return found


def is_whole(data, start, size):
    entry = data[start + 4 : start + 4 + size]
    if len(entry) < size or size < ENTRY_BYTES + DIGEST_BYTES:
        return False
    (digest,) = struct.unpack_from(">I", entry, ENTRY_BYTES)
    return digest == crc32c(entry[:ENTRY_BYTES], entry[ENTRY_BYTES + DIGEST_BYTES :])


def mend(path):
    """Returns a sentence about what was cut off, or None."""
    with open(path, "r+b") as file:
        if os.path.getsize(path) <= HEAD_BYTES:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            magic, version = struct.unpack_from(">4si", data)
            if magic != b"BKLG" or not FIRST_VERSION <= version <= LAST_VERSION:
                return f"{path} is no journal that is known here"
            found = last_record(data)
            if found is None or is_whole(data, *found):
                return None
            ledger, entry = struct.unpack_from(">qq", data, found[0] + 4)
        file.truncate(found[0])
    return f"cut off a torn record that nobody was told of: ledger {ledger}, entry {entry}"


if __name__ == "__main__":
    for journal in sys.argv[1:]:
        sentence = mend(journal)
        if sentence:
            print(sentence, file=sys.stderr)
