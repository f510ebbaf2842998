# SPDX-License-Identifier: Apache-2.0
"""Runs `laneway` on a real Kafka as a user would, for the tests in tests/kafka and tests/long.

A script imports this module first: it goes on under an interpreter that has confluent-kafka. What
does not depend on the broker is in e2e_base.py, whose names are here, too.
"""
import contextlib
import io
import json
import os
import sys
import time

import e2e_base
from e2e_base import (  # noqa: F401
    BROKER, LANEWAY, PATIENCE_S, ROOT, SUPPORT, Failure, Service, call_broker, check, check_equal,
    end_services, handler, laneway, plugin_handler, settled_of, show_logs, test, unique, wait_for,
)

e2e_base.go_on_with("confluent_kafka", "kafka", "python")
import kafka_admin  # noqa: E402


def bootstrap():
    address = os.environ.get("KAFKA_BOOTSTRAP")
    if not address:
        print("e2e: KAFKA_BOOTSTRAP is not set; start one with tools/broker kafka start",
              file=sys.stderr)
        sys.exit(77)
    return address


def admin(*words, stdin="", address=None):
    """Calls tests/support/kafka_admin.py in this process; returns what it printed, parsed."""
    out, errors = io.StringIO(), io.StringIO()
    before = sys.argv, sys.stdin
    sys.argv = ["kafka_admin", "--bootstrap", address or bootstrap()] + [str(w) for w in words]
    sys.stdin = io.StringIO(stdin)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = kafka_admin.main()
    finally:
        sys.argv, sys.stdin = before
    check(code == 0, f"kafka_admin {' '.join(map(str, words))}: {errors.getvalue().strip()}")
    return json.loads("[" + ",".join(out.getvalue().splitlines()) + "]")


def text_of(data):
    return None if data is None else data.decode(errors="backslashreplace")


def read(*topics):
    """Returns all records of the topics, as `kafka_admin read` does but faster for very many."""
    reader = kafka_admin.Consumer({"bootstrap.servers": bootstrap(), "group.id": "laneway-e2e",
                                   "enable.auto.commit": False, "fetch.wait.max.ms": 20})
    ends = {(p["topic"], p["partition"]): p["offset"] for p in admin("end", *topics)}
    ends = {place: end for place, end in ends.items() if end > 0}
    reader.assign([kafka_admin.TopicPartition(*place, 0) for place in ends])
    found, until = [], time.monotonic() + PATIENCE_S
    while ends:
        for message in reader.consume(10000, timeout=0.2):
            check(message.error() is None, f"reading {topics}: {message.error()}")
            topic, partition, offset = message.topic(), message.partition(), message.offset()
            headers = [[name, text_of(value)] for name, value in message.headers() or []]
            found.append({"topic": topic, "partition": partition, "offset": offset,
                          "key": text_of(message.key()), "value": text_of(message.value()),
                          "timestamp": message.timestamp()[1], "headers": headers})
            if offset + 1 >= ends.get((topic, partition), offset + 2):
                del ends[topic, partition]
        check(time.monotonic() < until, f"reading {topics}: {ends} not within {PATIENCE_S} s")
    reader.close()
    return found


def put(records, address=None):
    """Sends exact records (see kafka_admin put); returns their places."""
    return admin("put", stdin="\n".join(json.dumps(each) for each in records), address=address)


def broker(*words, timeout=PATIENCE_S):
    return call_broker("kafka", *words, timeout=timeout)


def headers_of(record):
    return dict(record["headers"])


def committed(group):
    return {(p["topic"], p["partition"]): p["offset"] for p in admin("offsets", group)}


def check_all_committed(group, topics):
    """Every partition that holds anything is committed up to its end."""
    done = committed(group)
    for place in admin("end", *topics):
        where = (place["topic"], place["partition"])
        if place["offset"] > 0 or where in done:
            check_equal(done.get(where), place["offset"], f"committed offset of {where}")


def config(group, topics, one_handler, concurrency=8, properties=None, url=None, **pipeline):
    """A whole configuration; topics are names (equal priority) or (name, priority)."""
    entries = [t if isinstance(t, str) else {"name": t[0], "priority": t[1]} for t in topics]
    consumer = {"auto.offset.reset": "earliest", **(properties or {})}
    return {
        "version": 1,
        "service": {"concurrency": concurrency, "drain_timeout": "15s",
                    "log": {"level": "info", "format": "json"}},
        "brokers": {"main": {"url": url or f"kafka://{bootstrap()}"}},
        "handlers": {"work": one_handler},
        "pipelines": {"work": {"broker": "main", "handler": "work", "topics": entries,
                               "consumer": {"group": group, "properties": consumer},
                               **pipeline}},
    }


# For members that are killed or frozen: others take over soon. A busy machine may lose such a
# session by itself, so only what allows for that is judged with it.
SHORT_SESSION = {"session.timeout.ms": "1000", "heartbeat.interval.ms": "300"}
STEADY_SESSION = {"session.timeout.ms": "30000", "heartbeat.interval.ms": "300"}


def run(limit_s=850):
    e2e_base.run(bootstrap, limit_s)
