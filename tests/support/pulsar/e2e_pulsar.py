# SPDX-License-Identifier: Apache-2.0
"""Runs `laneway` on a real Pulsar as a user would, for the tests in tests/pulsar and tests/long.

A script imports this module first: it goes on under an interpreter that has pulsar-client. What
goes in and what comes out is published and read by the official client, and what is left is
asked by the admin API, so that nothing of Laneway judges itself. What does not depend on the
broker is in e2e_base.py, whose names are here, too.
"""
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import e2e_base  # noqa: E402
from e2e_base import (  # noqa: E402, F401
    BROKER, LANEWAY, PATIENCE_S, ROOT, SUPPORT, Failure, Service, call_broker, check, check_equal,
    end_services, handler, laneway, plugin_handler, settled_of, show_logs, test, unique, wait_for,
)

e2e_base.go_on_with("pulsar", "pulsar", "python")
import pulsar  # noqa: E402
import pulsar_admin  # noqa: E402
import pulsar_client  # noqa: E402

_clients = {}


def url():
    address = os.environ.get("PULSAR_URL")
    if not address or not os.environ.get("PULSAR_ADMIN_URL"):
        print("e2e: PULSAR_URL and PULSAR_ADMIN_URL are not set; start one with tools/broker pulsar"
              " start", file=sys.stderr)
        sys.exit(77)
    return address


def admin():
    return pulsar_admin.Admin()


def broker(*words, timeout=PATIENCE_S):
    return call_broker("pulsar", *words, timeout=timeout)


def full(topic):
    return pulsar_admin.full_name(topic)


def client():
    """The official client, one for each URL and for as long as the script runs."""
    if url() not in _clients:
        _clients[url()] = pulsar_client.connect(url())
    return _clients[url()]


def check_same(found, expected, what):
    """Compares two sets, and names no more than a few of their differences."""
    found, expected = set(found), set(expected)
    check(found == expected, f"{what}: {len(expected - found)} missing, such as"
          f" {sorted(expected - found)[:3]}, {len(found - expected)} not expected, such as"
          f" {sorted(found - expected)[:3]}")


def forget_client():
    """The next one knows partitions that are new."""
    found = _clients.pop(url(), None)
    if found:
        found.close()


# --- what goes in, what came out --------------------------------------------------------------


def produce(topic, values, key=None, batch=100, **more):
    """Publishes the values (text) in order; `key` gives each one its key. batch=1: no batches."""
    producer = client().create_producer(
        topic, batching_enabled=batch > 1, batching_max_messages=max(batch, 2),
        batching_max_publish_delay_ms=5, block_if_queue_full=True, max_pending_messages=10000,
        batching_type=more.pop("batching_type", pulsar.BatchingType.Default))
    failures, ids = [], []

    def on_receipt(result, identity):
        if result != pulsar.Result.Ok:
            failures.append(str(result))
        ids.append(identity)

    for value in values:
        producer.send_async(value.encode(), on_receipt,
                            partition_key=key(value) if key else None, **more)
    producer.flush()
    producer.close()
    check(not failures, f"{len(failures)} not accepted, the first with {failures[:1]}")
    return ids


def read(*topics):
    """Returns all messages that the topics hold, as dicts, without any subscription."""
    found = []
    for topic in topics:
        for each in admin().each_partition(topic):
            reader = client().create_reader(each, pulsar.MessageId.earliest,
                                            receiver_queue_size=5000)
            while reader.has_message_available():
                found.append(as_dict(reader.read_next(timeout_millis=PATIENCE_S * 1000)))
            reader.close()
    return found


def as_dict(message):
    return {
        "topic": message.topic_name(), "id": str(message.message_id()),
        "key": message.partition_key() or None, "properties": message.properties(),
        "publish_ms": message.publish_timestamp(), "value": message.data().decode(),
    }


def backlog(topic, subscription):
    return admin().backlog(topic, subscription)["entries"]


def wait_backlog(topics, subscription, timeout=PATIENCE_S):
    """Waits until the broker has nothing left for the subscription, acks included."""
    for topic in topics:
        wait_for(f"no backlog of {topic}", lambda: backlog(topic, subscription) == 0, timeout, 0.1)


def consumers(topic, subscription):
    """Returns the broker's statistics of each consumer, of all partitions."""
    found = []
    for each in admin().each_partition(topic):
        stats = admin().stats(each)["subscriptions"].get(subscription)
        found += stats["consumers"] if stats else []
    return found


def wait_consumers(topic, subscription, count, timeout=PATIENCE_S):
    return wait_for(f"{count} consumers of {topic}",
                    lambda: len(consumers(topic, subscription)) == count, timeout, 0.05)


# --- a configuration --------------------------------------------------------------------------


def config(subscription, topics, one_handler, kind="shared", concurrency=8, properties=None,
           address=None, **pipeline):
    """A whole configuration; topics are names (equal priority) or (name, priority)."""
    entries = [t if isinstance(t, str) else {"name": t[0], "priority": t[1]} for t in topics]
    consumer = {"initial_position": "earliest", **(properties or {})}
    return {
        "version": 1,
        "service": {"concurrency": concurrency, "drain_timeout": "15s",
                    "log": {"level": "info", "format": "json"}},
        "brokers": {"main": {"url": address or url()}},
        "handlers": {"work": one_handler},
        "pipelines": {"work": {"broker": "main", "handler": "work", "topics": entries,
                               "consumer": {"subscription": subscription, "type": kind,
                                            "properties": consumer}, **pipeline}},
    }


def numbered(count, first=0, keys=0):
    """Values {"i": N} with a key where wanted, as e2e_handler.py reads them."""
    return [json.dumps({"i": number, **({"key": f"k{number % keys}"} if keys else {})})
            for number in range(first, first + count)]


def key_of(value):
    return json.loads(value)["key"]


def run(limit_s=850, finish=None):
    """Runs the script's tests; `finish` stops what they started."""
    code = 1
    try:
        e2e_base.run(url, limit_s)
    except SystemExit as end:
        code = end.code
    end_services()
    if finish:
        finish()
    sys.stdout.flush()
    # The client's own threads now and then abort the process while Python tears itself down.
    os._exit(code)
