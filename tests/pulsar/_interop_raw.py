# SPDX-License-Identifier: Apache-2.0
"""Publishes entries byte by byte, for what no client would send: a broker looks neither at the
metadata nor at the payload. Speaks just enough of the protocol; each field is written by hand."""
import socket
import struct
import time
import urllib.parse

CONNECT, PRODUCER, SEND, RECEIPT, PRODUCER_SUCCESS, PING, PONG, LOOKUP, FOUND = (
    2, 5, 6, 7, 17, 18, 19, 23, 24)


def varint(number):
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """One field: a number, or bytes or text."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def pair(name, value):
    return field(1, name) + field(2, value)


def metadata(compression=0, uncompressed_size=0, batch=None, key=None, key_b64=None, more=b""):
    """Encoded MessageMetadata; `more` is added as it is."""
    out = field(1, "raw") + field(2, 0) + field(3, int(time.time() * 1000))
    if key is not None or key_b64 is not None:
        out += field(6, key if key_b64 is None else key_b64)
    if compression:
        out += field(8, compression) + field(9, uncompressed_size)
    if batch is not None:
        out += field(11, batch)
    if key_b64 is not None:
        out += field(17, 1)
    return out + more


class Producer:
    """A producer of one topic; publish() waits for the receipt."""

    def __init__(self, url, topic):
        address = urllib.parse.urlparse(url)
        self.socket = socket.create_connection((address.hostname, address.port), timeout=30)
        self.input, self.sequence = b"", 0
        self.say(CONNECT, field(1, "raw") + field(4, 21))
        self.hear(3)
        self.say(LOOKUP, field(1, topic) + field(2, 1))
        self.hear(FOUND)
        self.say(PRODUCER, field(1, topic) + field(2, 1) + field(3, 2))
        self.hear(PRODUCER_SUCCESS)

    def say(self, kind, body, rest=b""):
        command = field(1, kind) + field(kind, body)
        size = struct.pack(">II", 4 + len(command) + len(rest), len(command))
        self.socket.sendall(size + command + rest)

    def hear(self, kind):
        """Waits for a command of that type."""
        while True:
            found = self.next_type()
            if found == PING:
                self.say(PONG, b"")
            elif found == kind:
                return
            else:
                assert found not in (8, 14), f"refused: {self.last[:300]!r}"

    def next_type(self):
        while len(self.input) < 4 or len(self.input) < 4 + struct.unpack(">I", self.input[:4])[0]:
            data = self.socket.recv(65536)
            assert data, "the broker closed the connection"
            self.input += data
        size = 4 + struct.unpack(">I", self.input[:4])[0]
        self.last, self.input = self.input[8:size], self.input[size:]
        return self.last[1]  # every command begins with its type, a small number

    def publish(self, encoded, payload, messages=1):
        rest = struct.pack(">I", len(encoded)) + encoded + payload  # a checksum is not required
        self.say(SEND, field(1, 1) + field(2, self.sequence) + field(3, messages), rest)
        self.sequence += 1
        self.hear(RECEIPT)

    def close(self):
        self.socket.close()
