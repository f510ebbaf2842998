# SPDX-License-Identifier: Apache-2.0
"""Retry copies and dead letters, with those of the official clients: the Python client's dead-letter
policy and the Java client's reconsumeLater read ours, and the other way round; the client's own
policy in Laneway; topics with an enforced schema. Where Java cannot run a source file (no JDK), its
part is done by hand with the properties that it writes and reads."""
import functools
import json
import pathlib
import re
import subprocess
import sys
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import _interop as interop  # noqa: E402
import pulsar  # noqa: E402
from _interop import (  # noqa: E402
    PATIENCE_S, admin, check, check_equal, client, e2e, record, run, test, url,
)

# What both sides write of a letter's origin, and what is Laneway's own.
OFFICIAL = {"REAL_TOPIC", "ORIGIN_MESSAGE_ID"}
OWN = {"ORIGIN_MESSAGE_IDY_TIME", "REAL_SUBSCRIPTION", "RECONSUMETIMES", "DELAY_TIME",
       "DEAD_LETTER_TOPIC"}


def identity(topic, ledger, entry, partition=0, batch=-1):
    """The identity of a message by where it lies at the broker."""
    place = f"{ledger}:{entry}" + (f":{batch}" if batch >= 0 else "")
    return f"main/{urllib.parse.quote(topic, safe='')}/{partition}/{place}"


def numbers(text):
    """The four numbers of an id as the Python client writes it."""
    found = re.fullmatch(r"\((\d+),(\d+),(-?\d+),(-?\d+)\)", text)
    check(found, f"{text} is no id as the official client writes it")
    return tuple(int(each) for each in found.groups())


def identity_of(topic, text):
    ledger, entry, partition, batch = numbers(text)
    return identity(topic, ledger, entry, max(partition, 0), batch)


def letters():
    """One record for each field that a copy must keep; all fail."""
    return [record(0, b"plain", do="dead"),
            record(1, b"keyed", key="k1", do="dead", color="red"),
            record(2, b"ordered", key="k2", ordering_key="o2", do="dead"),
            record(3, b"\x00\xff bytes", do="dead", empty=""),
            record(4, b"timed", event_ms=1234567890123, do="dead")]


def official_letters(topic, subscription):
    """Fails the messages of a topic by the official policy until all are dead letters. How often it
    gives a member of a batch depends on how its negative acknowledgments are grouped."""
    policy = pulsar.ConsumerDeadLetterPolicy(1, None, "keep")
    consumer = interop.subscribe(topic, subscription, dead_letter_policy=policy,
                                 negative_ack_redelivery_delay_ms=200)

    def fail_all():
        try:
            while True:
                consumer.negative_acknowledge(consumer.receive(timeout_millis=300))
        except pulsar.Timeout:
            return e2e.backlog(topic, subscription) == 0

    e2e.wait_for(f"dead letters of {topic}", fail_all)
    consumer.close()


def by_number(messages):
    found = {message.properties()["n"]: message for message in messages}
    check_equal(len(found), len(messages), "different letters")
    return found


def official_by_number(messages):
    """The official client may write a letter twice, when a redelivery overtakes it."""
    return {message.properties()["n"]: message for message in messages}


def handled_by_number(service):
    return {message["headers"]["n"]: message for message in service.messages()}


# --- the Java client ------------------------------------------------------------------------


@functools.cache
def java_command():
    """Runs Reconsume.java, or None without a JDK."""
    done = subprocess.run(["java", "--list-modules"], capture_output=True, text=True)
    if "jdk.compiler" not in done.stdout:
        print("there is no JDK: the Java client's part is done by hand")
        return None
    jars = subprocess.run([str(e2e.ROOT / "tools/broker"), "pulsar", "jars"],
                          capture_output=True, text=True, check=True).stdout.strip()
    return ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{jars}/*",
            str(e2e.ROOT / "tests/support/pulsar/Reconsume.java")]


def java_by_hand(topic, subscription, count, delay_ms, limit):
    """What RetryMessageUtil and ConsumerImpl of the Java client do with properties."""
    retry, dead = f"{topic}-{subscription}-RETRY", f"{topic}-{subscription}-DLQ"
    consumer = client().subscribe([topic, retry], subscription, pulsar.ConsumerType.Shared,
                                  initial_position=pulsar.InitialPosition.Earliest)
    seen = []
    for _ in range(count):
        message = consumer.receive(timeout_millis=PATIENCE_S * 1000)
        ledger, entry, partition, batch = numbers(str(message.message_id()))
        text = f"{ledger}:{entry}:{partition}" + (f":{batch}" if batch >= 0 else "")
        properties = dict(message.properties())
        seen.append({"topic": message.topic_name(), "id": text, "properties": dict(properties),
                     "value": message.data().decode()})
        for name, value in (("REAL_TOPIC", message.topic_name()),
                            ("ORIGIN_MESSAGE_IDY_TIME", text), ("ORIGIN_MESSAGE_ID", text),
                            ("REAL_SUBSCRIPTION", subscription)):
            properties.setdefault(name, value)
        times = int(properties.get("RECONSUMETIMES", "0")) + 1
        properties.update(RECONSUMETIMES=str(times), DELAY_TIME=str(delay_ms))
        producer = client().create_producer(dead if times > limit else retry)
        producer.send(message.data(), properties=properties,
                      partition_key=message.partition_key() or None)
        producer.close()
        consumer.acknowledge(message)
    consumer.close()
    return seen


def java_reconsume(topic, subscription, count, delay_ms=0, limit=16):
    """reconsumeLater for the next `count` messages; returns what was received."""
    command = java_command()
    if not command:
        return java_by_hand(topic, subscription, count, delay_ms, limit)
    words = [url(), topic, subscription, count, delay_ms, limit, PATIENCE_S]
    done = subprocess.run(command + [str(word) for word in words], capture_output=True, text=True,
                          timeout=2 * PATIENCE_S)
    check_equal(done.returncode, 0, f"exit code of Reconsume.java: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


# --- dead letters ---------------------------------------------------------------------------


def compare_letters(source, records, ours, theirs):
    """Letters of the same messages from both sides."""
    ours, theirs = by_number(ours), official_by_number(theirs)
    check_equal(set(ours), {each["n"] for each in records}, "our letters")
    for each in records:
        own, official = ours[each["n"]], theirs[each["n"]]
        mine, other = own.properties(), official.properties()
        for name in OFFICIAL:
            check_equal(mine[name], other[name], f"{name} of record {each['n']}")
        check_equal(own.data(), official.data(), "value")
        check_equal(own.partition_key(), official.partition_key(), "key")
        check_equal(own.ordering_key(), official.ordering_key(), "ordering key")
        check_equal(own.event_timestamp(), each["event_ms"], "event time")
        more = {name for name in set(mine) - set(other)
                if not (name in OWN or name.startswith("x-"))}
        check_equal((more, set(other) - set(mine)), (set(), set()), "other properties")
        check_equal(mine["x-laneway-id"], identity_of(source, mine["ORIGIN_MESSAGE_ID"]),
                    "identity")
        ledger, entry, partition, batch = numbers(mine["ORIGIN_MESSAGE_ID"])
        java = f"{ledger}:{entry}:{partition}" + (f":{batch}" if batch >= 0 else "")
        check_equal(mine["ORIGIN_MESSAGE_IDY_TIME"], java, "the origin's id as Java writes it")
        check_equal(mine["REAL_SUBSCRIPTION"], "laneway", "subscription")


def letters_of_both(folder, name, partitions, **batching):
    """The same messages, failed on one subscription by each; returns the source and both sides."""
    source, records = interop.unique(name), letters()
    if partitions:
        admin().create(source, partitions)
    interop.produce(source, records, **batching)
    service = interop.Service(folder, [source], name=name).start()
    ours = interop.read(f"{source}-laneway-DLQ", len(records))
    interop.wait_settled(source)
    service.end()
    official_letters(source, "official")
    parts = [f"{source}-partition-{n}" for n in range(partitions)] or [source]
    topics = [f"{each}-official-DLQ" for each in parts]
    return source, records, ours, topics


@test
def letters_of_both_clients_are_alike(folder):
    """Single messages, members of a batch, messages of partitions."""
    kinds = {"single": (0, {"batching_enabled": False}), "batched": (0, {"batching_enabled": True}),
             "parted": (2, {"batching_enabled": False})}
    for name, (partitions, batching) in kinds.items():
        source, records, ours, topics = letters_of_both(folder, name, partitions, **batching)
        topics = [each for each in topics if admin().exists(each)]
        found = [message for each in topics for message in read_all(each)]
        compare_letters(source, records, ours, found)
        batches = {numbers(m.properties()["ORIGIN_MESSAGE_ID"])[3] for m in ours}
        check_equal(batches == {-1}, name != "batched", f"members of batches in {batches}")
        official_letters_are_read(folder, f"{name}-read", source, found, topics)
        print(f"{name}: {len(records)} letters of each side")


def read_all(topic):
    reader = client().create_reader(topic, pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(timeout_millis=PATIENCE_S * 1000))
    reader.close()
    return found


def official_letters_are_read(folder, name, source, found, topics):
    """A handler gets a letter of the official client by the identity of its first appearance."""
    service = interop.Service(folder, topics, "later", name=name, dead_letter="none",
                              on_exhausted="drop").start()
    service.wait_count(len(found))
    for topic in topics:
        interop.wait_settled(topic, "later")
    service.end()
    seen = handled_by_number(service)
    for message in found:
        properties = message.properties()
        check_equal(seen[properties["n"]]["message_id"],
                    identity_of(source, properties["ORIGIN_MESSAGE_ID"]),
                    f"identity of {properties}")


@test
def a_letter_of_ours_goes_through_the_official_policy(folder):
    """And keeps its identity, in whatever topic it ends."""
    source, records = interop.unique("twice"), letters()[:2]
    interop.produce(source, records, batching_enabled=False)
    service = interop.Service(folder, [source]).start()
    first = by_number(interop.read(f"{source}-laneway-DLQ", len(records)))
    interop.wait_settled(source)
    service.end()
    letters_topic = f"{source}-laneway-DLQ"
    official_letters(letters_topic, "again")
    second = f"{letters_topic}-again-DLQ"
    twice = read_all(second)
    for number, message in official_by_number(twice).items():
        before = first[number].properties()
        after = message.properties()
        check_equal({name: after[name] for name in before if name not in OFFICIAL},
                    {name: before[name] for name in before if name not in OFFICIAL},
                    f"properties of record {number}")
    service = interop.Service(folder, [second], "later", name="later", dead_letter="none",
                              on_exhausted="drop").start()
    service.wait_count(len(twice))
    interop.wait_settled(second, "later")
    service.end()
    for number, seen in handled_by_number(service).items():
        check_equal(seen["message_id"], first[number].properties()["x-laneway-id"], "identity")


# --- retry copies ---------------------------------------------------------------------------


@test
def the_java_clients_retry_copies_are_read_and_ours_by_it(folder):
    source = interop.unique("java")
    retry, dead = f"{source}-sub-RETRY", f"{source}-sub-DLQ"
    interop.produce(source, [record(0, b"value", key="k", do="retry")], batching_enabled=False)
    received = java_reconsume(source, "sub", 1)[0]
    copy = read_all(retry)[0].properties()
    check_equal(copy["RECONSUMETIMES"], "1", "RECONSUMETIMES of the Java client's copy")
    ledger, entry, _ = (int(each) for each in received["id"].split(":"))
    expected = identity(source, ledger, entry)
    # Ours is the second copy: its handler retries until there are two.
    service = interop.Service(folder, [retry], "ours", retry={"topic": retry, "max_retries": 5},
                              dead_letter="none", on_exhausted="drop").start()
    service.wait_count(2)
    interop.wait_settled(retry, "ours")
    service.end()
    seen = service.messages()
    check_equal([each["message_id"] for each in seen], [expected] * 2, "identities")
    check_equal([each.get("retries", 0) for each in seen], [1, 2], "retries")
    ours = read_all(retry)[1].properties()
    for name in OFFICIAL | {"ORIGIN_MESSAGE_IDY_TIME", "REAL_SUBSCRIPTION"}:
        check_equal(ours[name], copy[name], f"{name} of our copy")
    check_equal(ours["RECONSUMETIMES"], "2", "RECONSUMETIMES of our copy")
    # The Java client takes its own copy and ours; ours was late twice, and is dead to it.
    counts = sorted(each["properties"].get("RECONSUMETIMES", "0")
                    for each in java_reconsume(source, "sub", 2, limit=2))
    check_equal(counts, ["1", "2"], "what the Java client received")
    letter = read_all(dead)[0]
    check_equal(letter.properties()["RECONSUMETIMES"], "3", "RECONSUMETIMES of its letter")
    check_equal(letter.properties()["x-laneway-id"], expected, "identity in its letter")
    check_equal((letter.data(), letter.partition_key()), (b"value", "k"), "its value and key")


@test
def our_first_copy_is_retried_on_by_the_java_client(folder):
    source = interop.unique("ours-first")
    retry, dead = f"{source}-sub-RETRY", f"{source}-sub-DLQ"
    interop.produce(source, [record(0, b"value", key="k", do="retry")], batching_enabled=False)
    interop.subscribe(retry, "sub").close()  # so that what we write waits for the Java client
    service = interop.Service(folder, [source], "sub",
                              retry={"topic": "{topic}-{group}-RETRY", "external": True,
                                     "backoff": {"initial": "2s"}}).start()
    service.wait_count(1)
    interop.wait_settled(source, "sub")
    service.end()
    received = java_reconsume(source, "sub", 1, limit=1)[0]
    check_equal(received["topic"], retry, "topic of our copy")
    check_equal(received["value"], "value", "value of our copy")
    ours = received["properties"]
    check_equal((ours["RECONSUMETIMES"], ours["DELAY_TIME"]), ("1", "2000"), "our copy")
    check_equal(ours["DEAD_LETTER_TOPIC"], dead, "its dead-letter topic")
    check_equal(ours["x-laneway-id"], identity_of(source, ours["ORIGIN_MESSAGE_ID"]), "identity")
    letter = read_all(dead)[0].properties()
    check_equal(letter["RECONSUMETIMES"], "2", "RECONSUMETIMES of the Java client's letter")
    for name in OFFICIAL | {"x-laneway-id", "REAL_SUBSCRIPTION", "ORIGIN_MESSAGE_IDY_TIME"}:
        check_equal(letter[name], ours[name], f"{name} of its letter")


# --- the client's policy in Laneway ---------------------------------------------------------


@test
def the_clients_policy_counts_redeliveries(folder):
    """N redeliveries are N + 1 runs; the letter's topic has its first subscription."""
    source = interop.unique("policy")
    records = [record(n, b"value", do="error") for n in range(5)]
    interop.produce(source, records, batching_enabled=False)
    service = interop.Service(folder, [source], properties={
        "dead_letter_policy.max_redeliver_count": 2,
        "dead_letter_policy.initial_subscription_name": "keep",
        "negative_ack_redelivery_delay_ms": 200}).start()
    service.wait_count(3 * len(records))
    interop.wait_settled(source)
    service.end()
    runs = sorted((each["headers"]["n"], each.get("redeliveries", 0))
                  for each in service.messages())
    check_equal(runs, sorted((each["n"], count) for each in records for count in range(3)), "runs")
    found = interop.subscribe(f"{source}-laneway-DLQ", "keep")
    letters_found = interop.take(found, len(records))
    found.close()
    check_equal(set(by_number(letters_found)), {each["n"] for each in records}, "letters")


# --- schemas --------------------------------------------------------------------------------


class Order(pulsar.schema.Record):
    number = pulsar.schema.Integer(required=True)
    text = pulsar.schema.String(required=True)


def enforced_namespace():
    name = f"public/{e2e.unique('schemas')}"
    admin().call("PUT", f"namespaces/{name}")
    admin().call("POST", f"namespaces/{name}/schemaValidationEnforced", True)
    return name


def enforced_topic(namespace, name, schema):
    topic = f"persistent://{namespace}/{name}"
    client().create_producer(topic, schema=schema).close()
    return topic


@test
def a_topic_with_an_enforced_schema_takes_copies_and_replies(folder):
    """Read back by a consumer of that schema, which wants the version that wrote them."""
    schema = pulsar.schema.JsonSchema(Order)
    namespace = enforced_namespace()
    source, retry, dead, replies = (enforced_topic(namespace, name, schema)
                                    for name in ("orders", "again", "dead", "replies"))
    readers = {topic: interop.subscribe(topic, schema=schema) for topic in (retry, dead, replies)}
    producer = client().create_producer(source, schema=schema)
    for number, wanted in enumerate(("retry", "dead", "reply", "reply")):
        producer.send(Order(number=number, text="x"), properties={"n": str(number), "do": wanted})
    producer.close()
    try:
        client().create_producer(source)
        raise interop.Failure("the broker enforces no schema")
    except pulsar.IncompatibleSchema:
        pass
    service = interop.Service(folder, [source, retry], retry={"topic": retry, "max_retries": 5,
                                                              "backoff": {"initial": "100ms"}},
                              dead_letter={"topic": dead}, reply={"topic": replies}).start()
    for topic, expected in ((retry, [0, 0]), (dead, [1]), (replies, [2, 3])):
        messages = interop.take(readers[topic], len(expected))
        check_equal(sorted(each.value().number for each in messages), expected, topic)
        check(all(each.schema_version() for each in messages), f"versions of schemas in {topic}")
        readers[topic].close()
    for topic in (source, retry):
        interop.wait_settled(topic)
    service.end()


if __name__ == "__main__":
    run()
