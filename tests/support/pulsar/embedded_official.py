# SPDX-License-Identifier: Apache-2.0
"""embedded_official.py PROGRAM: the official client against the embedded broker.

Each function is one behaviour, with a topic of its own; the first that fails ends the run.
"""
import subprocess
import sys
import threading
import time

import pulsar


class Broker:
    """The embedded broker as a process."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[1]

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert not answer.startswith("error"), (line, answer)
        return answer

    def stats(self, *names):
        return {key: int(value) for key, value in
                (word.split("=") for word in self.tell(" ".join(("stats", *names))).split())}

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(10) == 0


def equal(found, expected):
    assert found == expected, f"{found!r} instead of {expected!r}"


def take(consumer, count, acks=True):
    out = []
    for _ in range(count):
        message = consumer.receive(timeout_millis=10000)
        out.append(message)
        if acks:
            consumer.acknowledge(message)
    return out


def settled(broker, topic, subscription):
    until = time.time() + 10
    while broker.stats(topic, subscription)["backlog"] > 0:
        assert time.time() < until, broker.stats(topic, subscription)
        time.sleep(0.02)


def batches_and_compressions(broker, client):
    kinds = pulsar.CompressionType
    for kind in (kinds.NONE, kinds.ZSTD, kinds.LZ4, kinds.ZLib, kinds.SNAPPY):
        topic = f"codec-{int(kind) if not hasattr(kind, 'name') else kind.name}"
        consumer = client.subscribe(topic, "s", pulsar.ConsumerType.Shared)
        producer = client.create_producer(topic, compression_type=kind, batching_enabled=True,
                                          batching_max_messages=50,
                                          batching_max_publish_delay_ms=20)
        for i in range(200):
            producer.send_async(f"value {i} ".encode() * 20, None, partition_key=f"k{i % 7}",
                                properties={"n": str(i)})
        producer.flush()
        found = take(consumer, 200)
        equal([m.data() for m in found], [f"value {i} ".encode() * 20 for i in range(200)])
        equal([m.properties()["n"] for m in found], [str(i) for i in range(200)])
        equal([m.partition_key() for m in found], [f"k{i % 7}" for i in range(200)])
        settled(broker, topic, "s")
        consumer.close()
        producer.close()


def negative_acks_count(_broker, client):
    consumer = client.subscribe("nacked", "s", pulsar.ConsumerType.Shared,
                                negative_ack_redelivery_delay_ms=100)
    producer = client.create_producer("nacked", batching_enabled=False)
    producer.send(b"once more")
    for count in range(3):
        message = consumer.receive(timeout_millis=10000)
        equal((message.data(), message.redelivery_count()), (b"once more", count))
        consumer.negative_acknowledge(message)
    consumer.acknowledge(consumer.receive(timeout_millis=10000))
    consumer.close()


def partitions_keep_keys_together(broker, client):
    broker.tell("create parted 4")
    consumer = client.subscribe("parted", "s", pulsar.ConsumerType.Shared)
    producer = client.create_producer("parted", batching_enabled=False)
    for i in range(100):
        producer.send_async(str(i).encode(), None, partition_key=f"k{i % 10}")
    producer.flush()
    homes, numbers = {}, {}
    for message in take(consumer, 100):
        homes.setdefault(message.partition_key(), set()).add(message.topic_name())
        numbers.setdefault(message.partition_key(), []).append(int(message.data()))
    equal(sorted(map(len, homes.values())), [1] * 10)
    assert len(set.union(*homes.values())) > 1
    assert all(each == sorted(each) for each in numbers.values())
    consumer.close()


def key_shared_gives_each_key_to_one(_broker, client):
    seen, lock = {}, threading.Lock()

    def listener(name):
        def take_one(consumer, message):
            with lock:
                seen.setdefault(message.partition_key(), []).append((name, int(message.data())))
            consumer.acknowledge(message)
        return take_one
    consumers = [client.subscribe("keyed", "s", pulsar.ConsumerType.KeyShared, consumer_name=name,
                                  message_listener=listener(name)) for name in ("one", "two")]
    producer = client.create_producer("keyed", batching_enabled=True,
                                      batching_type=pulsar.BatchingType.KeyBased)
    for i in range(600):
        producer.send_async(str(i).encode(), None, partition_key=f"k{i % 30}")
    producer.flush()
    until = time.time() + 10
    while sum(map(len, seen.values())) < 600 and time.time() < until:
        time.sleep(0.02)
    equal(sum(map(len, seen.values())), 600)
    for key, each in seen.items():
        equal((key, len({name for name, _ in each})), (key, 1))
        equal([n for _, n in each], sorted(n for _, n in each))
    equal(len({name for each in seen.values() for name, _ in each}), 2)
    for consumer in consumers:
        consumer.close()


def cumulative_acks_and_seek(broker, client):
    consumer = client.subscribe("sought", "s", pulsar.ConsumerType.Exclusive)
    producer = client.create_producer("sought", batching_enabled=False)
    for i in range(20):
        producer.send(str(i).encode())
    found = take(consumer, 20, acks=False)
    consumer.acknowledge_cumulative(found[-1])
    settled(broker, "sought", "s")
    consumer.seek(pulsar.MessageId.earliest)
    equal([m.data() for m in take(consumer, 20)], [str(i).encode() for i in range(20)])
    consumer.close()


def drops_and_unloads_lose_nothing(broker, client):
    consumer = client.subscribe("shaken", "s", pulsar.ConsumerType.Shared)
    producer = client.create_producer("shaken", batching_enabled=True,
                                      batching_max_publish_delay_ms=1)
    seen = set()
    for i in range(300):
        producer.send_async(str(i).encode(), None)
        if i == 100:
            broker.tell("drop")
        if i == 200:
            broker.tell("unload shaken")
    producer.flush()
    until = time.time() + 20
    while len(seen) < 300 and time.time() < until:
        message = consumer.receive(timeout_millis=10000)
        seen.add(int(message.data()))
        consumer.acknowledge(message)
    equal(seen, set(range(300)))
    consumer.close()


def chunks_come_whole(_broker, client):
    consumer = client.subscribe("chunked", "s", pulsar.ConsumerType.Shared)
    producer = client.create_producer("chunked", chunking_enabled=True, batching_enabled=False)
    body = bytes(range(256)) * (12 * 4096)
    producer.send(body)
    equal(take(consumer, 1)[0].data() == body, True)
    consumer.close()


def a_pattern_finds_topics(broker, client):
    import re
    for name in ("found-1", "found-2", "other-1"):
        broker.tell(f"fill {name} 3 20 0")
    consumer = client.subscribe(re.compile("persistent://public/default/found-.*"), "s",
                                pulsar.ConsumerType.Shared,
                                initial_position=pulsar.InitialPosition.Earliest)
    equal({m.topic_name()[-7:] for m in take(consumer, 6)}, {"found-1", "found-2"})
    consumer.close()


def a_feed_is_read(broker, client):
    broker.tell("feed fed 50000 100 16 100")
    consumer = client.subscribe("fed", "s", pulsar.ConsumerType.Shared,
                                initial_position=pulsar.InitialPosition.Earliest)
    take(consumer, 50000)
    settled(broker, "fed", "s")
    consumer.close()


def delayed_messages_wait(broker, client):
    consumer = client.subscribe("delayed", "s", pulsar.ConsumerType.Shared)
    producer = client.create_producer("delayed", batching_enabled=False)
    producer.send(b"later", deliver_at=int(time.time() * 1000) + 3600 * 1000)
    producer.send(b"now")
    equal(take(consumer, 1)[0].data(), b"now")
    broker.tell("pass 3600000")
    equal(take(consumer, 1)[0].data(), b"later")
    consumer.close()


def main():
    broker = Broker(sys.argv[1])
    for test in (batches_and_compressions, negative_acks_count, partitions_keep_keys_together,
                 key_shared_gives_each_key_to_one, cumulative_acks_and_seek,
                 drops_and_unloads_lose_nothing, chunks_come_whole, a_pattern_finds_topics,
                 a_feed_is_read, delayed_messages_wait):
        client = pulsar.Client(broker.url, operation_timeout_seconds=10,
                               logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, "/dev/stderr"))
        begin = time.time()
        test(broker, client)
        client.close()
        print(f"{test.__name__}: {time.time() - begin:.2f} s", flush=True)
        equal(broker.stats()["protocol_errors"], 0)
    until = time.time() + 5
    while broker.stats()["connections"] > 0 and time.time() < until:
        time.sleep(0.02)
    equal(broker.stats()["connections"], 0)
    broker.end()


if __name__ == "__main__":
    main()
