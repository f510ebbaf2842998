# SPDX-License-Identifier: Apache-2.0
"""What Laneway publishes, the official client reads: lines of `laneway send`, replies, retry
copies and dead letters; every codec, batched and single, every field, large and chunked
messages, partitions, sequence ids."""
import base64
import pathlib
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import _interop as interop  # noqa: E402
from _interop import COMPRESSIONS, check, check_equal, test  # noqa: E402

FIVE_MB = 5_000_000
TWELVE_MB = 12_000_000
RAW_KEY = b"\xff\x00\xfe key"


def send(topic, *words, stdin, **options):
    """`laneway send` with producer options as properties."""
    properties = [word for name, value in options.items() for word in ("-X", f"{name}={value}")]
    return interop.laneway("send", "-b", interop.url(), *properties, *words, topic, stdin=stdin)


@test
def lines_in_every_codec_batched_and_single(folder):
    lines = [b"line %d " % n + b"packs well " * (n % 20) for n in range(300)]
    for codec in COMPRESSIONS:
        for batching in ("true", "false"):
            topic = interop.unique(f"sent-{codec}")
            send(topic, "-K", "|", "-H", "a=1", "-H", "\u00fc=\u4e2d",
                 stdin=b"".join(b"k%d|%s\n" % (n % 7, line) for n, line in enumerate(lines)),
                 compression_type=codec, batching_enabled=batching)
            found = interop.read(topic, len(lines))
            what = f"{codec}, batching_enabled={batching}"
            check_equal([m.data() for m in found], lines, f"values, {what}")
            check_equal([m.partition_key() for m in found],
                        [f"k{n % 7}" for n in range(len(lines))], f"keys, {what}")
            check_equal({str(m.properties()) for m in found}, {str({"a": "1", "\u00fc": "\u4e2d"})},
                        f"properties, {what}")
            entries = {(m.message_id().ledger_id(), m.message_id().entry_id()) for m in found}
            check(len(entries) == len(lines) if batching == "false" else len(entries) < 100,
                  f"{len(entries)} entries, {what}")
    print(f"{len(lines)} messages in {2 * len(COMPRESSIONS)} topics")


@test
def nulls_empty_payloads_and_keys_of_bytes(folder):
    for batching in ("true", "false"):
        topic = interop.unique("sent-odd")
        send(topic, stdin=b"\n", batching_enabled=batching)
        send(topic, "-Z", "-k", "gone", stdin=b"\n", batching_enabled=batching)
        send(topic, "-k", "\u00fc", stdin=b"\xff\x00\xfe\n", batching_enabled=batching)
        send(topic, "-K", "|", stdin=RAW_KEY + b"|raw\n", batching_enabled=batching)
        found = [interop.as_record(m) for m in interop.read(topic, 4)]
        check_equal([each["value"] for each in found], [b"", None, b"\xff\x00\xfe", b"raw"],
                    f"values, batching_enabled={batching}")
        # The official client shows the base64 text by which clients write bytes.
        check_equal([each["key"] for each in found],
                    [None, "gone", "\u00fc", base64.b64encode(RAW_KEY).decode()],
                    f"keys, batching_enabled={batching}")
    print("8 messages")


@test
def five_megabytes_and_chunked_twelve(folder):
    for codec in COMPRESSIONS:
        for size, chunks in ((FIVE_MB, False), (TWELVE_MB, True)):
            topic = interop.unique(f"sent-large-{codec}")
            values = [interop.noise(size).replace(b"\n", b"\r"), b"0123456789" * (size // 10),
                      b"small"]
            more = {"chunking_enabled": "true", "batching_enabled": "false"} if chunks else {}
            send(topic, "-k", "k", stdin=b"\n".join(values) + b"\n", compression_type=codec, **more)
            found = interop.read(topic, 3)
            what = f"{codec}, {size} bytes"
            check_equal([interop.digest(m.data()) for m in found],
                        [interop.digest(value) for value in values], what)
            check_equal([m.partition_key() for m in found], ["k"] * 3, f"keys, {what}")
    print(f"{6 * len(COMPRESSIONS)} messages")


@test
def what_is_too_large_is_named_and_the_others_go(folder):
    topic = interop.unique("sent-too-large")
    done = subprocess.run([interop.LANEWAY, "send", "-b", interop.url(), topic],
                          input=b"one\n" + b"x" * TWELVE_MB + b"\nthree\n",
                          stderr=subprocess.PIPE, timeout=interop.PATIENCE_S)
    text = done.stderr.decode()
    check(done.returncode != 0 and "line 2" in text and "sent 2, failed 1" in text, text)
    check_equal([m.data() for m in interop.read(topic, 2)], [b"one", b"three"], "the others")
    print("2 of 3 messages")


@test
def replies_in_every_codec(folder):
    records = interop.shapes()
    for codec in COMPRESSIONS:
        for batching in ("true", "false"):
            source, replies = interop.unique("asked"), interop.unique("replied")
            interop.produce(source, [dict(each, properties={"do": "reply"})
                                             for each in records])
            service = interop.Service(
                folder, [source], name=f"{codec}-{batching}", reply={"topic": replies},
                broker={"compression_type": codec,
                                       "batching_enabled": batching}).start()
            found = [interop.as_record(m) for m in interop.read(replies, len(records))]
            interop.wait_settled(source)
            service.end()
            # A reply has the key and the value; who wants more of the message sets headers.
            pairs = [(interop.digest(each["value"]), each["key"]) for each in found]
            expected = [(interop.digest(each["value"]), each["key"]) for each in records]
            check_equal(sorted(map(str, pairs)), sorted(map(str, expected)),
                        f"replies, {codec}, batching_enabled={batching}")
    print(f"{len(records)} replies in {2 * len(COMPRESSIONS)} topics")


@test
def retry_copies_and_dead_letters_keep_all_fields(folder):
    """Every field of a message is in its dead letter, after retry copies in between."""
    records = interop.shapes()
    for number, batching in enumerate(("true", "false")):
        source, retries, dead = (interop.unique(f"{kind}-{number}")
                                 for kind in ("copied", "copies", "dead"))
        interop.produce(source,
                        [dict(each, properties=dict(each["properties"],
                                                    do="dead" if n % 2 else "retry"))
                         for n, each in enumerate(records)])
        service = interop.Service(
            folder, [source, retries], name=f"batching-{batching}",
            retry={"topic": retries, "max_retries": 1, "backoff": {"initial": "100ms"}},
            dead_letter={"topic": dead},
            broker={"batching_enabled": batching}).start()
        found = [interop.as_record(m) for m in interop.read(dead, len(records))]
        for topic in (source, retries):
            interop.wait_settled(topic)
        copies = [interop.as_record(m) for m in interop.read(retries, (len(records) + 1) // 2)]
        service.end()
        for each in found + copies:
            each["properties"] = {name: value for name, value in each["properties"].items()
                                  if not (name.isupper() or "-" in name or name == "do")}
        interop.check_records(found, records, f"dead letters, batching_enabled={batching}")
        interop.check_records(copies, records[::2], f"copies, batching_enabled={batching}")
    print(f"{2 * len(records)} dead letters")


@test
def a_key_of_bytes_stays_one_in_copies(folder):
    source, dead = interop.unique("raw-key"), interop.unique("raw-key-dead")
    send(source, "-K", "|", "-H", "do=dead", "-H", "n=1", stdin=RAW_KEY + b"|value\n")
    service = interop.Service(folder, [source], dead_letter={"topic": dead}).start()
    letter = interop.read(dead, 1)[0]
    check_equal(interop.bytes_of(service.messages()[0], "key"), RAW_KEY, "the key at the handler")
    check_equal(base64.b64decode(letter.partition_key()), RAW_KEY, "the key of the dead letter")
    check_equal(interop.bytes_of(interop.peek(dead)[0], "key"), RAW_KEY, "the key in peek")
    service.end()
    print("1 dead letter")


@test
def large_replies_and_copies_are_chunked(folder):
    source, replies, dead = (interop.unique(f"large-{kind}")
                             for kind in ("source", "replies", "dead"))
    records = [interop.record(n, interop.noise(TWELVE_MB, n), key=f"k{n}",
                              do="reply" if n % 2 else "dead") for n in range(4)]
    interop.produce(source, records, chunking_enabled=True)
    service = interop.Service(folder, [source], reply={"topic": replies},
                              dead_letter={"topic": dead},
                              broker={"chunking_enabled": "true",
                                                     "batching_enabled": "false"}).start()
    for topic, remainder in ((replies, 1), (dead, 0)):
        found = {m.partition_key(): interop.digest(m.data()) for m in interop.read(topic, 2)}
        check_equal(found, {each["key"]: interop.digest(each["value"])
                            for each in records[remainder::2]}, topic)
    interop.wait_settled(source)
    service.end()
    print("4 messages of 12 MB")


@test
def partitions_by_key_and_by_number(folder):
    topic = interop.unique("sent-parted")
    interop.admin().create(topic, 4)
    send(topic, "-K", "|", stdin=b"".join(b"k%d|%d\n" % (n % 50, n) for n in range(500)))
    send(topic, "-p", "2", stdin=b"to two\n" * 5)
    found = interop.read(topic, 505)
    homes, numbers = {}, {}
    for message in found[:]:
        place = int(message.topic_name().rsplit("-", 1)[1])
        if message.data() == b"to two":
            check_equal(place, 2, "partition that was asked for")
            continue
        homes.setdefault(message.partition_key(), set()).add(place)
        numbers.setdefault(message.partition_key(), []).append(int(message.data()))
    check_equal({len(each) for each in homes.values()}, {1}, "partitions of a key")
    check_equal(sorted(set.union(*homes.values())), [0, 1, 2, 3], "partitions in use")
    check(all(each == sorted(each) for each in numbers.values()), "a key out of order")
    print("505 messages in 4 partitions")


@test
def with_deduplication_nothing_is_lost_or_twice_when_the_topic_moves(folder):
    """Pending messages are sent again with their sequence ids; the broker drops what it has."""
    for batching in ("true", "false"):
        topic, lines = interop.deduplicated("sent-again"), 30000 if batching == "true" else 5000
        interop.admin().create(topic)
        interop.subscribe(topic).close()  # what nobody waits for goes with its ledger
        process = subprocess.Popen(
            [interop.LANEWAY, "send", "-b", interop.url(), "-X", f"batching_enabled={batching}",
             "-X", "batching_max_messages=50", topic],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        feeder = threading.Thread(target=feed, args=(process, lines))
        feeder.start()
        moves = 0
        while moves < 3 and unload_under_way(topic, process):
            moves += 1
        check(moves > 0, "all was sent before the topic moved once")
        feeder.join()
        check_equal(process.wait(interop.PATIENCE_S), 0, process.stderr.read().decode())
        found = [int(m.data()) for m in interop.read(topic, lines)]
        check_equal(found, list(range(lines)), f"messages, batching_enabled={batching}")
        print(f"{lines} messages, {moves} moves, batching_enabled={batching}")


def unload_under_way(topic, process):
    """Unloads the topic once more of the messages came; False: all are sent."""
    before = interop.admin().stats(topic)["msgInCounter"]
    interop.wait_for(f"more messages in {topic}", lambda: process.poll() is not None or
                     interop.admin().stats(topic)["msgInCounter"] != before, pause=0.01)
    if process.poll() is not None:
        return False
    interop.admin().call("PUT", interop.pulsar_admin.topic_path(topic) + "/unload")
    return True


def feed(process, lines):
    for n in range(lines):
        process.stdin.write(b"%d\n" % n)
    process.stdin.close()


if __name__ == "__main__":
    interop.run()
