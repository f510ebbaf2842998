# SPDX-License-Identifier: Apache-2.0
"""What the tests tests/pulsar/interop_*.py share: records, the official client, and Laneway.

A script imports this module first, which imports e2e_pulsar. A record is what both sides must
agree on: value, key, ordering key, properties and event time of one message, named by its
property "n". Laneway's side is a real `laneway run` whose handler writes down each message as it
came, or `laneway send` and `peek`.
"""
import base64
import calendar
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
import pulsar  # noqa: E402
import pulsar_admin  # noqa: E402
import pulsar_client  # noqa: E402
from e2e_pulsar import (  # noqa: E402, F401
    LANEWAY, PATIENCE_S, Failure, admin, check, client, run, test, url, wait_for,
)

COMPRESSIONS = pulsar_client.COMPRESSIONS


def shown(value):
    text = repr(value)
    return text if len(text) < 600 else text[:600] + "..."


def check_equal(found, expected, what):
    """As e2e's, for values that may be very large."""
    check(found == expected, f"{what}: {shown(found)} instead of {shown(expected)}")


def unique(name):
    return e2e.full(e2e.unique(f"interop-{name}"))


# --- records --------------------------------------------------------------------------------


def digest(value):
    """Large values are compared, and shown, by what they hash to."""
    if value is None or len(value) <= 200:
        return value
    return f"<{len(value)} bytes, {hashlib.sha256(value).hexdigest()[:16]}>"


def record(n, value, key=None, ordering_key=None, event_ms=0, **properties):
    return {"n": str(n), "value": value, "key": key, "ordering_key": ordering_key,
            "event_ms": event_ms, "properties": properties}


def noise(size, seed=1):
    return random.Random(seed).randbytes(size)


def shapes():
    """One record for each way in which messages differ."""
    return [
        record(0, b"plain"),
        record(1, b"with a key", key="k1"),
        record(2, "a key, and a value, of another alphabet: \u00fc\u4e2d\U0001f69a".encode(),
               key="\u00fc\u4e2d\U0001f69a"),
        record(3, b"with an ordering key", key="k3", ordering_key="o3"),
        record(4, b"an ordering key alone", ordering_key="o4"),
        record(5, b"with properties", a="1", empty="", **{"\u00fc": "\u4e2d", "b c": "d=e,f"}),
        record(6, b"with an event time", event_ms=1234567890123),
        record(7, b"all", key="k7", ordering_key="o7", event_ms=1, x="y" * 3000),
        record(8, b"", key="k8"),
        record(9, None, key="k9"),
        record(10, None),
        record(11, bytes(range(256)), key="bytes that are no text"),
        record(12, b"\x00", key="k" * 2000),
        record(13, b"a" * 100_000, key="packs well"),
        record(14, noise(100_000), key="does not pack"),
    ]


def comparable(records):
    """Sorted by number, with what is large replaced by its digest."""
    return [dict(each, value=digest(each["value"]), key=digest_text(each["key"]))
            for each in sorted(records, key=lambda r: (int(r["n"]), r["key"] or ""))]


def digest_text(text):
    return text if text is None or len(text) <= 200 else f"<{len(text)} of {text[:8]}>"


def check_records(found, expected, what):
    found, expected = comparable(found), comparable(expected)
    for one, other in zip(found, expected):
        check_equal(one, other, f"{what}, record {other['n']}")
    check_equal(len(found), len(expected), f"{what}, records")


# --- the official client --------------------------------------------------------------------


def deduplicated(name):
    """Makes a namespace in which the broker drops what was sent again; returns a topic in it."""
    topic = unique(name).replace("/default/", "/interop-deduplicated/")
    if "public/interop-deduplicated" not in admin().call("GET", "namespaces/public"):
        admin().call("PUT", "namespaces/public/interop-deduplicated")
    admin().call("POST", "namespaces/public/interop-deduplicated/deduplication", True)
    return topic


def send_all(producer, records):
    """Sends without waiting for each, so that batches form; all are confirmed at the end."""
    refused = []

    def on_receipt(result, _id):
        if result != pulsar.Result.Ok:
            refused.append(result)

    for each in records:
        producer.send_async(each["value"], on_receipt, partition_key=each["key"],
                            ordering_key=each["ordering_key"],
                            event_timestamp=each["event_ms"] or None,
                            properties=dict(each["properties"], n=each["n"]))
    producer.flush()
    check_equal(refused, [], "receipts of the official producer")


def produce(topic, records, **options):
    producer = client().create_producer(topic, block_if_queue_full=True,
                                      batching_max_publish_delay_ms=20, **options)
    send_all(producer, records)
    producer.close()


def as_record(message):
    properties = dict(message.properties())
    return {
        "n": properties.pop("n", "-1"),
        "value": None if message.has_null_value() else message.data(),
        "key": message.partition_key() or None,
        "ordering_key": message.ordering_key() or None,
        "event_ms": message.event_timestamp(),
        "properties": properties,
    }


def subscribe(topic, subscription="official", **options):
    options.setdefault("consumer_type", pulsar.ConsumerType.Shared)
    return client().subscribe(topic, subscription,
                            initial_position=pulsar.InitialPosition.Earliest, **options)


def take(consumer, count):
    """Receives and acknowledges `count` messages, and looks that no more come."""
    messages = []
    for i in range(count):
        try:
            messages.append(consumer.receive(timeout_millis=60000))
        except pulsar.Timeout:
            raise Failure(f"{i} of {count} messages came") from None
        consumer.acknowledge(messages[-1])
    try:
        more = consumer.receive(timeout_millis=300)
        raise Failure(f"one more than {count} came: {shown(as_record(more))}")
    except pulsar.Timeout:
        return messages


def read(topic, count):
    consumer = subscribe(topic)
    messages = take(consumer, count)
    consumer.close()
    return messages


def wait_settled(topic, subscription="laneway"):
    e2e.wait_backlog([topic], subscription)


# --- Laneway --------------------------------------------------------------------------------


class Service(e2e.Service):
    """One `laneway run` on `topics`; its handler writes down each message as it came."""

    def __init__(self, folder, topics, subscription="laneway", name="member", kind="shared",
                 properties=None, broker=None, **pipeline):
        self.seen = pathlib.Path(folder) / f"{name}.seen"
        handler = {"program": [sys.executable, str(HERE / "_interop_handler.py")],
                   "protocol": "lines", "workers": 1, "window": 16, "timeout": "60s",
                   "env": {"INTEROP_SEEN": str(self.seen)}}
        config = e2e.config(subscription, topics, handler, kind, properties=properties, **pipeline)
        config["brokers"]["main"]["properties"] = broker or {}
        super().__init__(config, folder, name)

    def messages(self):
        """What the handler got, as JSON objects; a line that is being written is left out."""
        if not self.seen.exists():
            return []
        return [json.loads(line) for line in self.seen.read_bytes().split(b"\n")[:-1]]

    def count(self):
        return self.seen.read_bytes().count(b"\n") if self.seen.exists() else 0

    def wait_count(self, count):
        def look():
            check(self.is_alive(), f"the service ended, {self.process.poll()}")
            return self.count() >= count

        wait_for(f"{count} messages at the handler", look)

    def end(self):
        check_equal(self.stop(), 0, "exit code of laneway run")


def bytes_of(message, name):
    """A field of a message as a handler gets it, in either form; None: absent."""
    if name + "_b64" in message:
        return base64.b64decode(message[name + "_b64"])
    value = message.get(name)
    return None if value is None else value.encode()


def event_ms_of(message):
    if "event_time" not in message:
        return 0
    text = message["event_time"]
    whole, rest = text.rstrip("Z").split(".")
    seconds = time.strptime(whole, "%Y-%m-%dT%H:%M:%S")
    return calendar.timegm(seconds) * 1000 + int(rest[:3].ljust(3, "0"))


def handled(message):
    """A message as the handler got it, as a record."""
    headers = dict(message.get("headers", {}))
    key, ordering_key = bytes_of(message, "key"), bytes_of(message, "ordering_key")
    return {
        "n": headers.pop("n", "-1"),
        "value": message["digest"] if "digest" in message else bytes_of(message, "value"),
        "key": None if key is None else key.decode(errors="backslashreplace"),
        "ordering_key": None if ordering_key is None else ordering_key.decode(),
        "event_ms": event_ms_of(message),
        "properties": headers,
    }


def laneway(*words, stdin=None, timeout=PATIENCE_S, code=0):
    """Runs one command to its end; returns what it printed."""
    done = subprocess.run([LANEWAY, *words], input=stdin, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=timeout)
    check_equal(done.returncode, code,
                f"exit code of laneway {' '.join(words)[:200]}: {done.stderr.decode()}")
    return done.stdout


def peek(topic, *words):
    """All messages of a topic, by `laneway peek`, as JSON objects."""
    out = laneway("peek", "-b", url(), "--json", "-e", *words, topic)
    return [json.loads(line) for line in out.splitlines()]


def peeked(message):
    """A message as `laneway peek` printed it, as a record."""
    headers = {each["name"]: each["value"] for each in message["headers"]}
    key, ordering_key = bytes_of(message, "key"), bytes_of(message, "ordering_key")
    return {
        "n": headers.pop("n", "-1"),
        "value": bytes_of(message, "value"),
        "key": None if key is None else key.decode(errors="backslashreplace"),
        "ordering_key": None if ordering_key is None else ordering_key.decode(),
        "event_ms": message.get("event_time", 0),
        "properties": headers,
    }
