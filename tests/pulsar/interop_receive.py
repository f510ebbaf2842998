# SPDX-License-Identifier: Apache-2.0
"""What the official client publishes, Laneway gives to its handlers and shows in `peek`: every
codec, batched and single, every field, large and chunked messages, partitions, compaction."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import _interop as interop  # noqa: E402
from _interop import COMPRESSIONS, check, check_equal, test  # noqa: E402

FIVE_MB = 5_000_000
TWELVE_MB = 12_000_000


def check_received(service, topic, expected, what):
    """The handler saw each record once, as it was published."""
    found = [interop.handled(line) for line in service.messages() if line["topic"] == topic]
    interop.check_records(found, expected, what)


def ways(topics):
    """(codec, is batched, its topic): each way of writing a message."""
    return [(codec, batched, topics[codec, batched]) for codec, batched in topics]


@test
def every_codec_batched_and_single(folder):
    topics = {(codec, batched): interop.unique(f"{codec}-{'batch' if batched else 'single'}")
              for codec in COMPRESSIONS for batched in (True, False)}
    records = interop.shapes()
    for codec, batched, topic in ways(topics):
        interop.produce(topic, records, compression_type=COMPRESSIONS[codec],
                        batching_enabled=batched)
    service = interop.Service(folder, topics.values()).start()
    service.wait_count(len(topics) * len(records))
    for codec, batched, topic in ways(topics):
        interop.wait_settled(topic)
        name = f"{codec}, {'batched' if batched else 'single'}"
        check_received(service, topic, records, name)
        interop.check_records(map(interop.peeked, interop.peek(topic)), records,
                              f"peek of {name}")
    service.end()
    print(f"{service.count()} messages in {len(topics)} topics")


@test
def batches_are_batches_and_come_in_order(folder):
    """The broker counts messages, and entries; members come in the order of their batch."""
    topic = interop.unique("batches")
    records = [interop.record(n, b"member %d" % n, key=f"k{n % 7}") for n in range(1000)]
    interop.produce(topic, records, batching_enabled=True, batching_max_messages=100,
                    compression_type=COMPRESSIONS["zstd"])
    entries = interop.admin().call(
        "GET", interop.pulsar_admin.topic_path(topic) + "/internalStats")["entriesAddedCounter"]
    check(entries <= 100, f"{entries} entries for 1,000 messages")
    service = interop.Service(folder, [topic], kind="exclusive").start()
    service.wait_count(len(records))
    by_key = {}
    for line in service.messages():
        by_key.setdefault(line["key"], []).append(int(line["headers"]["n"]))
    check(all(each == sorted(each) for each in by_key.values()), "a key's members out of order")
    check_received(service, topic, records, "batches of 100")
    interop.wait_settled(topic)
    service.end()
    print(f"{len(records)} messages in {entries} entries")


@test
def five_megabytes_and_chunked_twelve(folder):
    topics, expected = [], {}
    for codec in COMPRESSIONS:
        for size, chunks in ((FIVE_MB, False), (TWELVE_MB, True)):
            topic = interop.unique(f"{codec}-large")
            records = [interop.record(1, interop.noise(size), key="noise"),
                       interop.record(2, b"0123456789" * (size // 10), key="packs well"),
                       interop.record(3, b"small", key="k", event_ms=5, a="b")]
            interop.produce(topic, records, compression_type=COMPRESSIONS[codec],
                            batching_enabled=False, chunking_enabled=chunks)
            topics.append(topic)
            expected[topic] = f"{codec}, {size} bytes", records
    service = interop.Service(folder, topics).start()
    service.wait_count(3 * len(topics))
    for topic, (what, records) in expected.items():
        check_received(service, topic, records, what)
        interop.wait_settled(topic)
    interop.check_records(map(interop.peeked, interop.peek(topics[1])), expected[topics[1]][1],
                          "peek of chunked messages")
    service.end()
    print(f"{service.count()} messages in {len(topics)} topics")


@test
def interleaved_chunks_of_two_producers(folder):
    topic = interop.unique("interleaved")
    producers = [interop.client().create_producer(topic, chunking_enabled=True, producer_name=f"{topic}-{n}")
                 for n in range(2)]
    records = [interop.record(n, interop.noise(11_000_000 + n, n), key=f"k{n}")
               for n in range(6)]
    for n, each in enumerate(records):
        producers[n % 2].send_async(each["value"], lambda *_: None, partition_key=each["key"],
                                    properties={"n": each["n"]})
    for producer in producers:
        producer.flush()
    service = interop.Service(folder, [topic]).start()
    service.wait_count(len(records))
    check_received(service, topic, records, "interleaved chunks")
    interop.wait_settled(topic)
    service.end()
    print(f"{len(records)} messages of 11 MB")


@test
def partitions_as_the_official_client_chose_them(folder):
    topic = interop.unique("parted")
    interop.admin().create(topic, 4)
    records = [interop.record(n, b"%d" % n, key=f"k{n % 50}") for n in range(500)]
    interop.produce(topic, records, batching_enabled=True)
    service = interop.Service(folder, [topic]).start()
    service.wait_count(len(records))
    interop.wait_settled(topic)
    official = {}
    for message in interop.take(interop.subscribe(topic), len(records)):
        official[message.properties()["n"]] = int(message.topic_name().rsplit("-", 1)[1])
    ours = {line["headers"]["n"]: line["partition"] for line in service.messages()}
    check_equal(ours, official, "partitions of the messages")
    check_equal(sorted(set(ours.values())), [0, 1, 2, 3], "partitions in use")
    shown = {each["headers"][0]["value"]: each["partition"] for each in interop.peek(topic)}
    check_equal(shown, official, "partitions that peek shows")
    service.end()
    print(f"{len(records)} messages in 4 partitions")


@test
def duplicates_that_the_broker_drops_never_come(folder):
    """Sequence ids: with deduplication a producer that sends again changes nothing."""
    topic = interop.deduplicated("sent-twice")
    for again in range(2):
        producer = interop.client().create_producer(topic, producer_name="the same", initial_sequence_id=0)
        for n in range(1, 51):
            producer.send(b"%d" % n, sequence_id=n, properties={"n": str(n)})
        producer.close()
    service = interop.Service(folder, [topic]).start()
    service.wait_count(50)
    interop.wait_settled(topic)
    check_received(service, topic, [interop.record(n, b"%d" % n) for n in range(1, 51)],
                   "sent twice")
    service.end()
    print("50 of 100 messages")


@test
def a_compacted_topic_is_read_compacted(folder):
    """Of each key the last value; a key whose last value is null is gone. Batches of which only
    some members are left, too."""
    topic, expected = interop.unique("compacted"), {}
    records = [interop.record(n, b"value %d" % n, key=f"k{n % 10}") for n in range(100)]
    records += [interop.record(100, None, key="k3"), interop.record(101, b"new", key="k11")]
    for batched in (True, False):
        part = records[:60] if batched else records[60:]
        interop.produce(topic, part, batching_enabled=batched, batching_max_messages=30)
    for each in records:
        expected[each["key"]] = each
    del expected["k3"]
    path = interop.pulsar_admin.topic_path(topic) + "/compaction"
    interop.admin().call("PUT", path)
    interop.wait_for("compaction",
                     lambda: interop.admin().call("GET", path)["status"] == "SUCCESS")
    service = interop.Service(folder, [topic], name="first", kind="exclusive",
                              properties={"is_read_compacted": "true"}).start()
    service.wait_count(len(expected))
    check_received(service, topic, list(expected.values()), "compacted")
    interop.wait_settled(topic)  # with what compaction left out
    service.end()
    interop.produce(topic, records[:1])
    service = interop.Service(folder, [topic], name="second", kind="exclusive",
                              properties={"is_read_compacted": "true"}).start()
    service.wait_count(1)
    check_equal(service.count(), 1, "messages that are new")
    interop.wait_settled(topic)
    service.end()
    print(f"{len(expected)} of {len(records)} messages")


if __name__ == "__main__":
    interop.run()
