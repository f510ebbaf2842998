# SPDX-License-Identifier: Apache-2.0
"""Asks a Kafka broker whether it serves, with nothing but Python's own library.

  kafka-probe.py cluster-id               an id for a new cluster
  kafka-probe.py ready HOST:PORT...       all nodes known, coordinator of groups at work
  kafka-probe.py write HOST:PORT...       the same, every partition led, and a record accepted

Exit 0 = yes, 1 = not yet (the reason on stderr). Protocol versions are the oldest that Kafka 4
still answers, where every field has a fixed place.
"""
import base64
import os
import socket
import struct
import sys
import time

PRODUCE, METADATA, FIND_COORDINATOR, CREATE_TOPICS = 0, 3, 10, 19
TOPIC_ALREADY_EXISTS = 36
PROBE_TOPIC = "laneway.probe"


class NotYet(Exception):
    pass


def text(value):
    raw = value.encode()
    return struct.pack(">h", len(raw)) + raw


class Answer:
    """Reads the fields of one response in order."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, form):
        (value,) = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return value

    def string(self):
        size = self.number("h")
        if size < 0:
            return None
        self.at += size
        return self.data[self.at - size : self.at].decode()

    def many(self, read):
        return [read() for _ in range(self.number("i"))]


class Connection:
    def __init__(self, address):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=5)

    def ask(self, key, version, body):
        head = struct.pack(">hhi", key, version, 1) + text("laneway-probe")
        self.socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        (size,) = struct.unpack(">i", self.read(4))
        return Answer(self.read(size)[4:])

    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise NotYet("connection closed")
            data += part
        return data


def metadata(connection):
    """Returns the ids of the live brokers and [(topic, partition, leader)]."""
    answer = connection.ask(METADATA, 1, struct.pack(">i", -1))

    def broker():
        node = answer.number("i")
        answer.string(), answer.number("i"), answer.string()
        return node

    def partition():
        answer.number("h")
        index, leader = answer.number("i"), answer.number("i")
        answer.many(lambda: answer.number("i")), answer.many(lambda: answer.number("i"))
        return index, leader

    def topic():
        answer.number("h")
        name = answer.string()
        answer.number("b")
        return [(name, *each) for each in answer.many(partition)]

    brokers = answer.many(broker)
    answer.number("i")
    return brokers, [each for parts in answer.many(topic) for each in parts]


def check_ready(addresses):
    for address in addresses:
        connection = Connection(address)
        brokers, _ = metadata(connection)
        if len(brokers) < len(addresses):
            raise NotYet(f"{address} knows {len(brokers)} of {len(addresses)} nodes")
    error = connection.ask(FIND_COORDINATOR, 0, text("laneway-probe")).number("h")
    if error:
        raise NotYet(f"no group coordinator, error {error}")
    return connection


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def record_batch():
    """One record with the value "probe" and no key (varints are zigzag: 0x01 is -1)."""
    record = b"\0\0\0" + b"\x01" + bytes([5 * 2]) + b"probe" + b"\0"
    now = int(time.time() * 1000)
    tail = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1)
    tail += bytes([len(record) * 2]) + record
    head = struct.pack(">ibI", -1, 2, crc32c(tail)) + tail
    return struct.pack(">qi", 0, len(head)) + head


def check_write(addresses):
    connection = check_ready(addresses)
    body = struct.pack(">i", 1) + text(PROBE_TOPIC) + struct.pack(">ih", 1, 1)
    body += struct.pack(">ii", 0, 0) + struct.pack(">i?", 5000, False)
    connection.ask(CREATE_TOPICS, 2, body)
    _, partitions = metadata(connection)
    for name, index, leader in partitions:
        if leader < 0:
            raise NotYet(f"{name}/{index} has no leader")
    check_produce(addresses)


def check_produce(addresses):
    """Only the topic's leader accepts a record, so each node is tried."""
    batch = record_batch()
    body = struct.pack(">hhi", -1, -1, 5000) + struct.pack(">i", 1) + text(PROBE_TOPIC)
    body += struct.pack(">ii", 1, 0) + struct.pack(">i", len(batch)) + batch
    errors = []
    for address in addresses:
        answer = Connection(address).ask(PRODUCE, 3, body)
        answer.number("i"), answer.string(), answer.number("i"), answer.number("i")
        errors.append(answer.number("h"))
    if 0 not in errors:
        raise NotYet(f"write refused, error {errors}")


def main(arguments):
    command, values = arguments[0], arguments[1:]
    if command == "cluster-id":
        print(base64.urlsafe_b64encode(b"L" + os.urandom(15)).decode().rstrip("="))
        return 0
    try:
        {"ready": check_ready, "write": check_write}[command](values)
    except (NotYet, OSError) as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
