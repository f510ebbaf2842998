# SPDX-License-Identifier: Apache-2.0
"""Publishes and consumes with the official Python client, beside what is under test.

Runs as `tools/broker pulsar client VERB ...`, or by the interpreter that `tools/broker pulsar
python` prints with $PULSAR_URL (and $PULSAR_CA, $PULSAR_TOKEN_FILE, $PULSAR_CLIENT_CERT with
$PULSAR_CLIENT_KEY, where --auth wants them). Tests in Python may import it and use connect().
What comes out on stdout is data, one JSON value a line; text is on stderr.
Exit 0 = done, 1 = refused or not all came.
"""
import argparse
import base64
import json
import os
import random
import sys
import time

import pulsar

COMPRESSIONS = {
    "none": pulsar.CompressionType.NONE,
    "lz4": pulsar.CompressionType.LZ4,
    "zlib": pulsar.CompressionType.ZLib,
    "zstd": pulsar.CompressionType.ZSTD,
    "snappy": pulsar.CompressionType.SNAPPY,
}
TYPES = {
    "exclusive": pulsar.ConsumerType.Exclusive,
    "shared": pulsar.ConsumerType.Shared,
    "failover": pulsar.ConsumerType.Failover,
    "key_shared": pulsar.ConsumerType.KeyShared,
}


class Failed(Exception):
    """What ends a command with a sentence instead of a traceback."""


def authentication_of(kind, environment):
    if kind == "auto":
        kind = "token" if environment.get("PULSAR_TOKEN_FILE") else "none"
    if kind == "token":
        path = environment["PULSAR_TOKEN_FILE"]
        return pulsar.AuthenticationToken(lambda: open(path).read().strip())
    if kind == "basic":
        return pulsar.AuthenticationBasic(environment.get("PULSAR_USER", "laneway"),
                                          environment.get("PULSAR_PASSWORD", "laneway-secret"))
    if kind == "tls":
        return pulsar.AuthenticationTLS(environment["PULSAR_CLIENT_CERT"],
                                        environment["PULSAR_CLIENT_KEY"])
    return None


def connect(url=None, auth="auto", ca=None, **more):
    """Returns a client of $PULSAR_URL; it checks the broker's name when it speaks TLS."""
    url = url or os.environ.get("PULSAR_URL")
    if not url:
        raise Failed("no broker: neither --url nor PULSAR_URL is given")
    if url.startswith("pulsar+ssl://"):
        more["tls_trust_certs_file_path"] = ca or os.environ.get("PULSAR_CA")
        more["tls_validate_hostname"] = True
    more.setdefault("operation_timeout_seconds", 15)
    more.setdefault("logger", pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull))
    return pulsar.Client(url, authentication=authentication_of(auth, os.environ), **more)


def as_json(message):
    out = {
        "topic": message.topic_name(),
        "id": str(message.message_id()),
        "key": message.partition_key() or None,
        "ordering_key": message.ordering_key() or None,
        "properties": message.properties(),
        "event_ms": message.event_timestamp(),
        "publish_ms": message.publish_timestamp(),
        "redeliveries": message.redelivery_count(),
    }
    try:
        out["value"] = message.data().decode()
    except UnicodeDecodeError:
        out["value_base64"] = base64.b64encode(message.data()).decode()
    return json.dumps(out, separators=(",", ":"))


# --- produce --------------------------------------------------------------------------------


class Records:
    """A sequence that depends on the seed alone: key and value, with the key's own count `n`."""

    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.seen = {}

    def take(self, number):
        key = f"{self.options.key_prefix}{self.random.randrange(max(self.options.keys, 1))}"
        n = self.seen[key] = self.seen.get(key, -1) + 1
        value = '{"i":%d,"key":"%s","n":%d,"pad":"' % (number, key, n)
        return key, (value + "x" * max(0, self.options.size - len(value) - 2) + '"}').encode()


def do_produce(client, options):
    """COUNT messages, batched unless --single; waits for every receipt."""
    producer = client.create_producer(
        options.topic, compression_type=COMPRESSIONS[options.compression],
        batching_enabled=not options.single and not options.chunks,
        batching_max_messages=options.batch, batching_max_publish_delay_ms=5, block_if_queue_full=True,
        chunking_enabled=options.chunks, max_pending_messages=10000, send_timeout_millis=30000,
        batching_type=(pulsar.BatchingType.KeyBased if options.key_batches
                       else pulsar.BatchingType.Default))
    records, failures = Records(options), []

    def on_receipt(result, _id):
        if result != pulsar.Result.Ok:
            failures.append(str(result))

    more = {"properties": dict(each.split("=", 1) for each in options.property)}
    if options.event_ms is not None:
        more["event_timestamp"] = options.event_ms
    if options.delay_ms is not None:
        more["deliver_at"] = int(time.time() * 1000) + options.delay_ms
    if options.ordering_key is not None:
        more["ordering_key"] = options.ordering_key
    for number in range(options.first, options.first + options.count):
        key, value = records.take(number)
        producer.send_async(value, on_receipt, partition_key=key if options.keys else None,
                            **more)
    producer.flush()
    producer.close()
    if failures:
        raise Failed(f"{len(failures)} refused, the first with {failures[0]}")


def do_put(client, options):
    """Publishes one message for each line of stdin, in order, one by one."""
    producer = client.create_producer(options.topic, batching_enabled=False)
    for line in sys.stdin.buffer:
        producer.send(line.rstrip(b"\n"))
    producer.close()


# --- consume --------------------------------------------------------------------------------


def do_consume(client, options):
    """Prints and acknowledges messages until COUNT came, or fails after --seconds without."""
    consumer = client.subscribe(
        options.topics if len(options.topics) > 1 else options.topics[0], options.subscription,
        TYPES[options.type], initial_position=pulsar.InitialPosition.Earliest,
        receiver_queue_size=options.queue)
    count = 0
    try:
        while count < options.count:
            show_next(consumer, options)
            count += 1
    except pulsar.Timeout:
        raise Failed(f"{count} of {options.count} messages came") from None
    finally:
        # Grouped acknowledgments leave with the close.
        consumer.close()


def show_next(consumer, options):
    message = consumer.receive(timeout_millis=int(options.seconds * 1000))
    print(as_json(message), flush=True)
    if not options.keep:
        consumer.acknowledge(message)


def do_read(client, options):
    """Prints all that a topic (not partitioned) holds, without any subscription."""
    reader = client.create_reader(options.topic, pulsar.MessageId.earliest)
    while reader.has_message_available():
        print(as_json(reader.read_next(timeout_millis=10000)))
    reader.close()


# --- the command line -----------------------------------------------------------------------


def add_verbs(verbs):
    produce = verbs.add_parser("produce", help=do_produce.__doc__)
    produce.set_defaults(run=do_produce)
    produce.add_argument("topic")
    produce.add_argument("count", type=int)
    produce.add_argument("--keys", type=int, default=100, help="0 = no keys")
    produce.add_argument("--key-prefix", default="k")
    produce.add_argument("--ordering-key")
    produce.add_argument("--size", type=int, default=100, help="bytes of a value, at least")
    produce.add_argument("--seed", type=int, default=1)
    produce.add_argument("--first", type=int, default=0, help="number of the first message")
    produce.add_argument("--compression", choices=COMPRESSIONS, default="none")
    produce.add_argument("--single", action="store_true", help="no batches")
    produce.add_argument("--batch", type=int, default=100, help="messages in a batch, at most")
    produce.add_argument("--key-batches", action="store_true", help="one key in a batch")
    produce.add_argument("--chunks", action="store_true")
    produce.add_argument("--property", action="append", default=[], metavar="NAME=VALUE")
    produce.add_argument("--event-ms", type=int)
    produce.add_argument("--delay-ms", type=int, help="deliver that much later")
    put = verbs.add_parser("put", help=do_put.__doc__)
    put.set_defaults(run=do_put)
    put.add_argument("topic")
    consume = verbs.add_parser("consume", help=do_consume.__doc__)
    consume.set_defaults(run=do_consume)
    consume.add_argument("subscription")
    consume.add_argument("topics", nargs="+")
    consume.add_argument("--count", type=int, default=1)
    consume.add_argument("--seconds", type=float, default=15, help="the longest wait for one")
    consume.add_argument("--type", choices=TYPES, default="shared")
    consume.add_argument("--queue", type=int, default=1000)
    consume.add_argument("--keep", action="store_true", help="acknowledge nothing")
    read = verbs.add_parser("read", help=do_read.__doc__)
    read.set_defaults(run=do_read)
    read.add_argument("topic")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url", help="default: $PULSAR_URL")
    parser.add_argument("--auth", choices=["auto", "none", "token", "basic", "tls"],
                        default="auto")
    parser.add_argument("--ca", help="default: $PULSAR_CA")
    parser.add_argument("--timeout", type=int, default=15, help="seconds for one operation")
    add_verbs(parser.add_subparsers(required=True, metavar="VERB"))
    options = parser.parse_args()
    client = None
    try:
        client = connect(options.url, options.auth, options.ca,
                         operation_timeout_seconds=options.timeout)
        options.run(client, options)
    except (Failed, ValueError, pulsar.PulsarException) as failure:
        print(f"pulsar_client: {type(failure).__name__} {failure}", file=sys.stderr)
        return 1
    finally:
        if client is not None:
            client.close()
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # The client's own threads now and then abort the process while Python tears itself down.
    os._exit(code)
