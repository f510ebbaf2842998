# SPDX-License-Identifier: Apache-2.0
"""A torn last record is cut off a bookie's journal; nothing else is touched."""
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TOOL = ROOT / "tools/broker.d/pulsar-journal.py"
HEAD = (b"BKLG" + struct.pack(">i", 6)).ljust(512, b"\0")
# CRC32C of ledger 5, entry 0, last confirmed -1, length 1000 and 1,000 bytes "x"; and of entry 1,
# last confirmed 0, length 2000 and the same.
DIGESTS = {0: 0x4FFAE5B7, 1: 0xF7FBDD8C}


def entry(number):
    head = struct.pack(">qqqq", 5, number, number - 1, 1000 * (number + 1))
    return head + struct.pack(">I", DIGESTS[number]) + b"x" * 1000


def record(data):
    return struct.pack(">i", len(data)) + data


def fence():
    return record(struct.pack(">qq", 5, -0x2000))


def padding(size):
    return struct.pack(">ii", -0x100, size) + b"\0" * size


def mended(*parts):
    """Returns how many bytes are left of a journal of these parts, filled up with zeros."""
    with tempfile.NamedTemporaryFile(suffix=".txn") as file:
        file.write(b"".join([HEAD, *parts, b"\0" * 100000]))
        file.flush()
        done = subprocess.run([sys.executable, TOOL, file.name], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return pathlib.Path(file.name).stat().st_size, done.stderr


def check(found, size, text):
    assert found[0] == size and text in found[1], f"{found} instead of {size}, {text!r}"


first, second = record(entry(0)), record(entry(1))
whole = len(HEAD) + len(first) + len(second) + 100000
check(mended(first, second), whole, "")
check(mended(first, padding(300), second, fence()), whole + 308 + len(fence()), "")
check(mended(), len(HEAD) + 100000, "")
for left in (4, 20, 40, 500, len(second) - 1):
    check(mended(first, second[:left]), len(HEAD) + len(first), "a torn record")
check(mended(second[:100]), len(HEAD), "ledger 5, entry 1")
print("a journal loses its torn record and nothing else")
