# SPDX-License-Identifier: Apache-2.0
"""Prepares topics for tests with a real Kafka and reads back what was left in them.

Runs with the interpreter that `tools/broker kafka python` prints, or as
`tools/broker kafka admin COMMAND ...`. The broker is --bootstrap or $KAFKA_BOOTSTRAP; client
settings (TLS, SASL) are given with -X key=value. What comes out on stdout is data, one JSON
value a line; text is on stderr.
Every command waits until what it did is visible to other clients.
"""
import argparse
import base64
import json
import os
import random
import sys
import time

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
)

WAIT_S = 120


class Failed(Exception):
    """What ends a command with a sentence instead of a traceback."""


def wait_for(what, is_done):
    until = time.monotonic() + WAIT_S
    while not is_done():
        if time.monotonic() > until:
            raise Failed(f"{what}: not within {WAIT_S} s")
        time.sleep(0.02)


def settings(options, **more):
    chosen = {"bootstrap.servers": options.bootstrap, "log_level": 2, **more}
    chosen.update(setting.split("=", 1) for setting in options.X)
    return chosen


def admin_of(options):
    """Returns the command's one client, which must outlive every future that it gives."""
    if options.admin is None:
        options.admin = AdminClient(settings(options))
    return options.admin


def reader_of(options, group="laneway-admin"):
    chosen = {"group.id": group, "enable.auto.commit": False, "fetch.wait.max.ms": 20}
    return Consumer(settings(options, **chosen))


def partitions_of(client, topic):
    """Returns the partition ids, or None if the topic is absent or one has no leader yet."""
    found = client.list_topics(topic, timeout=WAIT_S).topics.get(topic)
    if found is None or found.error is not None:
        return None
    if any(each.error or each.leader < 0 for each in found.partitions.values()):
        return None
    return sorted(found.partitions)


def need_partitions(client, topic):
    found = partitions_of(client, topic)
    if found is None:
        raise Failed(f"no topic {topic}")
    return found


def finish(futures, ignored=()):
    for future in futures.values():
        try:
            future.result(WAIT_S)
        except KafkaException as failure:
            if failure.args[0].code() not in ignored:
                raise


# --- topics ---------------------------------------------------------------------------------


def do_create(options):
    names = options.topic.split(",")
    config = dict(each.split("=", 1) for each in options.config)
    admin = admin_of(options)
    topics = [
        NewTopic(name, options.partitions, options.replicas, config=config) for name in names
    ]
    finish(admin.create_topics(topics))
    for name in names:
        wait_for(
            f"topic {name}", lambda: len(partitions_of(admin, name) or []) == options.partitions
        )


def do_grow(options):
    admin = admin_of(options)
    finish(admin.create_partitions([NewPartitions(options.topic, options.partitions)]))
    wait_for(
        "partitions",
        lambda: len(partitions_of(admin, options.topic) or []) == options.partitions,
    )


def do_delete(options):
    admin = admin_of(options)
    finish(admin.delete_topics(options.topics), [KafkaError.UNKNOWN_TOPIC_OR_PART])
    for name in options.topics:
        wait_for(f"end of {name}", lambda: partitions_of(admin, name) is None)


def do_trim(options):
    """Deletes the records below an offset, so that a group's offset may fall out of range."""
    place = TopicPartition(options.topic, options.partition, options.offset)
    finish(admin_of(options).delete_records([place]))


def do_list(options):
    for name, topic in sorted(admin_of(options).list_topics(timeout=WAIT_S).topics.items()):
        print(json.dumps({"topic": name, "partitions": len(topic.partitions)}))


def do_config(options):
    resource = ConfigResource(ConfigResource.Type.TOPIC, options.topic)
    (future,) = admin_of(options).describe_configs([resource]).values()
    print(
        json.dumps({name: entry.value for name, entry in sorted(future.result(WAIT_S).items())})
    )


# --- access ---------------------------------------------------------------------------------


def acl(options, user, operation, permission):
    return AclBinding(
        ResourceType[options.kind],
        options.name,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        operation,
        permission,
    )


def do_deny(options):
    """Takes operations on a topic (or --kind GROUP) from one user; the others keep all."""
    bindings = [acl(options, "*", AclOperation.ALL, AclPermissionType.ALLOW)]
    for name in options.operations:
        bindings.append(acl(options, options.user, AclOperation[name], AclPermissionType.DENY))
    finish(admin_of(options).create_acls(bindings))


def do_allow(options):
    """Removes what `deny` did."""
    everything = AclBindingFilter(
        ResourceType[options.kind],
        options.name,
        ResourcePatternType.LITERAL,
        None,
        None,
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    finish(admin_of(options).delete_acls([everything]))


# --- records --------------------------------------------------------------------------------


class Records:
    """A sequence that depends on the seed alone: same seed, same keys, values and headers."""

    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.seen = {}

    def take(self, number):
        """Returns key and value; the value is JSON with the key and the key's own count `n`."""
        key = f"{self.options.key_prefix}{self.random.randrange(self.options.keys)}"
        n = self.seen.get(key, 0)
        self.seen[key] = n + 1
        value = '{"i":%d,"key":"%s","n":%d,"pad":"' % (number, key, n)
        pad = max(0, self.options.size - len(value) - 2)
        return key, value + "x" * pad + '"}'


def produce_all(options):
    names = options.topic.split(",")
    failures = []

    def on_receipt(error, _message):
        if error is not None:
            failures.append(error)

    chosen = {
        "enable.idempotence": True,
        "linger.ms": 5,
        "queue.buffering.max.messages": 1000000,
        "partitioner": "murmur2_random",
        "message.timeout.ms": options.timeout * 1000,
    }
    if options.transaction:
        chosen["transactional.id"] = f"laneway-admin-{os.getpid()}"
    producer = Producer(settings(options, **chosen))
    headers = [tuple(each.split("=", 1)) for each in options.header]
    keyless = options.keys == 0
    options.keys = max(options.keys, 1)
    records = {name: Records(options) for name in names}
    if options.transaction:
        producer.init_transactions(WAIT_S)
        producer.begin_transaction()
    started = time.monotonic()
    for index in range(options.count * len(names)):
        name = names[index % len(names)]
        number = options.first + index // len(names)
        key, value = records[name].take(number)
        more = {}
        if options.number_header:
            more["headers"] = headers + [(options.number_header, str(number))]
        elif headers:
            more["headers"] = headers
        if options.partition is not None:
            more["partition"] = options.partition
        if options.rate:
            pace(producer, started + index / options.rate)
        put(producer, name, value, None if keyless else key, on_receipt, more)
    if producer.flush(options.timeout) or failures:
        raise Failed(f"{len(failures)} refused ({failures[:1]}), {len(producer)} unsent")
    if options.transaction == "commit":
        producer.commit_transaction(WAIT_S)
    elif options.transaction == "abort":
        producer.abort_transaction(WAIT_S)
    return time.monotonic() - started


def pace(producer, due):
    while (left := due - time.monotonic()) > 0:
        producer.poll(min(left, 0.05))


def put(producer, name, value, key, on_receipt, more):
    while True:
        try:
            producer.produce(name, value, key, on_delivery=on_receipt, **more)
            return
        except BufferError:
            producer.poll(0.1)


def do_produce(options):
    took = produce_all(options)
    total = options.count * len(options.topic.split(","))
    print(f"{total} messages in {took:.2f} s", file=sys.stderr)


def raw(value, as_base64):
    if value is None:
        return None
    return base64.b64decode(value) if as_base64 else value.encode()


def do_put(options):
    """Sends exact records, one JSON value a line of stdin: topic, partition, key or key_b64,
    value or value_b64, headers as [[name, value]], timestamp in ms. What is absent is null."""
    receipts = []
    producer = Producer(
        settings(options, **{"partitioner": "murmur2_random", "message.max.bytes": 16 << 20})
    )
    for line in sys.stdin:
        record = json.loads(line)
        more = {name: record[name] for name in ("partition", "timestamp") if name in record}
        if "headers" in record:
            more["headers"] = [tuple(each) for each in record["headers"]]
        producer.produce(
            record["topic"],
            raw(record.get("value_b64", record.get("value")), "value_b64" in record),
            raw(record.get("key_b64", record.get("key")), "key_b64" in record),
            on_delivery=lambda error, message: receipts.append((error, message)),
            **more,
        )
        producer.poll(0)
    producer.flush(WAIT_S)
    for error, message in receipts:
        place = {"topic": message.topic(), "partition": message.partition()}
        outcome = {"error": str(error)} if error else {"offset": message.offset()}
        print(json.dumps({**place, **outcome}))
    if len(producer) or any(error for error, _ in receipts):
        raise Failed("not every record was accepted")


def shown(name, value):
    """Text stays text; other bytes appear under NAME_b64."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name + "_b64": base64.b64encode(value).decode()}


def as_json(message, with_value):
    out = {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
    }
    out.update(shown("key", message.key()))
    if with_value:
        out.update(shown("value", message.value()))
    out["headers"] = [
        [name, None if value is None else value.decode(errors="backslashreplace")]
        for name, value in message.headers() or []
    ]
    return json.dumps(out, separators=(",", ":"))


def do_read(options):
    """Prints every record in the topics now, partition by partition, in order of offset."""
    reader = reader_of(options)
    reader.assign([])
    for topic in options.topics:
        for partition in need_partitions(reader, topic):
            read_partition(reader, TopicPartition(topic, partition), options)
    reader.close()


def read_partition(reader, place, options):
    low, high = reader.get_watermark_offsets(place, timeout=WAIT_S)
    place.offset = low
    reader.assign([place])
    while place.offset < high:
        # The position moves over holes (compaction, transactions) even if no record comes.
        for message in reader.consume(10000, timeout=0.05):
            if message.error():
                raise Failed(message.error())
            place.offset = message.offset() + 1
            if message.offset() < high:
                print(as_json(message, not options.no_value))
        position = reader.position([place])[0].offset
        place.offset = max(place.offset, position)


def do_watch(options):
    """Prints records as they come, from the end or --from-start, until --count or --seconds."""
    reader = reader_of(options)
    start = OFFSET_BEGINNING if options.from_start else OFFSET_END
    places = [
        TopicPartition(topic, partition, start)
        for topic in options.topics
        for partition in need_partitions(reader, topic)
    ]
    reader.assign(places)
    until, count = time.monotonic() + options.seconds, 0
    while count < options.count and time.monotonic() < until:
        for message in reader.consume(min(1000, options.count - count), timeout=0.1):
            if message.error():
                raise Failed(message.error())
            print(as_json(message, True), flush=True)
            count += 1
    reader.close()
    if options.count != sys.maxsize and count < options.count:
        raise Failed(f"{count} of {options.count} records within {options.seconds} s")


# --- offsets --------------------------------------------------------------------------------


def print_places(places):
    for place in sorted(places, key=lambda each: (each.topic, each.partition)):
        print(json.dumps(place_json(place)))


def place_json(place):
    out = {"topic": place.topic, "partition": place.partition, "offset": place.offset}
    if getattr(place, "metadata", None):
        out["metadata"] = place.metadata
    return out


def committed(options):
    request = [ConsumerGroupTopicPartitions(options.group)]
    (future,) = admin_of(options).list_consumer_group_offsets(request).values()
    places = future.result(WAIT_S).topic_partitions
    return [each for each in places if not options.topics or each.topic in options.topics]


def ends(admin, topics, spec=None):
    places = [
        TopicPartition(topic, partition)
        for topic in topics
        for partition in need_partitions(admin, topic)
    ]
    asked = admin.list_offsets({place: spec or OffsetSpec.latest() for place in places})
    return [
        TopicPartition(p.topic, p.partition, f.result(WAIT_S).offset) for p, f in asked.items()
    ]


def do_offsets(options):
    print_places(committed(options))


def do_end(options):
    print_places(ends(admin_of(options), options.topics))


def do_start(options):
    print_places(ends(admin_of(options), options.topics, OffsetSpec.earliest()))


def lag_of(admin, options):
    done = {(each.topic, each.partition): each.offset for each in committed(options)}
    lag = 0
    for end, start in zip(
        sorted(ends(admin, options.topics), key=str),
        sorted(ends(admin, options.topics, OffsetSpec.earliest()), key=str),
    ):
        offset = done.get((end.topic, end.partition), OFFSET_INVALID)
        lag += end.offset - (offset if offset >= 0 else start.offset)
    return lag


COORDINATOR_BEGINS = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


def lag_if_known(admin, options, until):
    """None while the group's coordinator begins, which a broker that came back does for a while."""
    try:
        return lag_of(admin, options)
    except KafkaException as failure:
        if failure.args[0].code() not in COORDINATOR_BEGINS or time.monotonic() > until:
            raise
        return None


def do_lag(options):
    """Prints how many records the group has not committed; with --wait S, waits until none."""
    admin = admin_of(options)
    until = time.monotonic() + options.wait
    while (lag := lag_if_known(admin, options, until)) != 0 and time.monotonic() < until:
        time.sleep(0.1)
    print(lag)
    if options.wait and lag:
        raise Failed(f"a lag of {lag} is left after {options.wait} s")


def do_seek(options):
    """Sets a group's committed offset; the group must have no members."""
    place = TopicPartition(options.topic, options.partition, options.offset)
    request = [ConsumerGroupTopicPartitions(options.group, [place])]
    (future,) = admin_of(options).alter_consumer_group_offsets(request).values()
    for each in future.result(WAIT_S).topic_partitions:
        if each.error:
            raise Failed(each.error)


def do_forget(options):
    """Deletes groups with all their offsets."""
    finish(
        admin_of(options).delete_consumer_groups(options.groups),
        [KafkaError.GROUP_ID_NOT_FOUND],
    )


def do_members(options):
    (future,) = admin_of(options).describe_consumer_groups([options.group]).values()
    group = future.result(WAIT_S)
    print(json.dumps({"state": group.state.name, "protocol": group.partition_assignor}))
    for member in group.members:
        owned = member.assignment.topic_partitions
        print(
            json.dumps(
                {
                    "client": member.client_id,
                    "member": member.member_id,
                    "partitions": sorted(f"{each.topic}/{each.partition}" for each in owned),
                }
            )
        )


# --- the command line -----------------------------------------------------------------------


def add(commands, name, function, *positional):
    command = commands.add_parser(name, help=(function.__doc__ or "").split("\n")[0])
    command.set_defaults(run=function)
    for each in positional:
        plural = each.endswith("+") or each.endswith("*")
        kind = int if each in ("partitions", "partition", "offset", "count") else str
        extra = {"nargs": each[-1]} if plural else {}
        command.add_argument(each.rstrip("+*"), type=kind, **extra)
    return command


def add_record_commands(commands):
    produce = add(commands, "produce", do_produce, "topic", "count")
    produce.description = (
        "TOPIC may be a list with commas: COUNT messages for each, interleaved."
    )
    produce.add_argument("--keys", type=int, default=100, help="0 = no keys")
    produce.add_argument("--key-prefix", default="k")
    produce.add_argument("--size", type=int, default=100, help="bytes of a value, at least")
    produce.add_argument("--seed", type=int, default=1)
    produce.add_argument("--first", type=int, default=0, help="number of the first message")
    produce.add_argument("--partition", type=int)
    produce.add_argument("--header", action="append", default=[], metavar="NAME=VALUE")
    produce.add_argument("--number-header", metavar="NAME", help="a header with the number")
    produce.add_argument(
        "--rate", type=float, default=0, help="messages a second; 0 = full speed"
    )
    produce.add_argument("--timeout", type=int, default=50)
    produce.add_argument("--transaction", choices=["commit", "abort"], help="all in one")
    add(commands, "put", do_put)
    add(commands, "read", do_read, "topics+").add_argument("--no-value", action="store_true")
    watch = add(commands, "watch", do_watch, "topics+")
    watch.add_argument("--count", type=int, default=sys.maxsize)
    watch.add_argument("--seconds", type=float, default=WAIT_S)
    watch.add_argument("--from-start", action="store_true")


def add_topic_commands(commands):
    create = add(commands, "create", do_create, "topic", "partitions", "config*")
    create.description = "TOPIC may be a list with commas; CONFIG is key=value."
    create.add_argument("--replicas", type=int, default=1)
    add(commands, "grow", do_grow, "topic", "partitions")
    add(commands, "delete", do_delete, "topics+")
    add(commands, "trim", do_trim, "topic", "partition", "offset")
    add(commands, "list", do_list)
    add(commands, "config", do_config, "topic")
    deny = add(commands, "deny", do_deny, "name", "user", "operations+")
    for command in (deny, add(commands, "allow", do_allow, "name")):
        command.add_argument("--kind", default="TOPIC", choices=["TOPIC", "GROUP"])


def add_offset_commands(commands):
    add(commands, "offsets", do_offsets, "group", "topics*")
    add(commands, "end", do_end, "topics+")
    add(commands, "start", do_start, "topics+")
    add(commands, "lag", do_lag, "group", "topics+").add_argument(
        "--wait", type=float, default=0
    )
    add(commands, "seek", do_seek, "group", "topic", "partition", "offset")
    add(commands, "forget", do_forget, "groups+")
    add(commands, "members", do_members, "group")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bootstrap", default=os.environ.get("KAFKA_BOOTSTRAP"))
    parser.add_argument("-X", action="append", default=[], metavar="KEY=VALUE")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    add_topic_commands(commands)
    add_record_commands(commands)
    add_offset_commands(commands)
    options = parser.parse_args(namespace=argparse.Namespace(admin=None))
    if not options.bootstrap:
        parser.error("no broker: neither --bootstrap nor KAFKA_BOOTSTRAP is given")
    try:
        options.run(options)
    except (Failed, KafkaException, TimeoutError) as failure:
        print(f"kafka_admin: {str(failure) or 'no answer'}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
