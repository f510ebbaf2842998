# SPDX-License-Identifier: Apache-2.0
"""Messages that cannot be read: encrypted ones of the official client, single, batched and chunked,
and broken ones, byte by byte. They follow on_undecodable; what is behind them goes on, and nothing
is lost."""
import base64
import pathlib
import subprocess
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import _interop as interop  # noqa: E402
import _interop_raw as raw  # noqa: E402
from _interop import check, check_equal, pulsar, test  # noqa: E402

KEY = "laneway-test"


def make_keys(folder):
    """A pair of keys for the official client's crypto key reader."""
    private, public = folder / "private.pem", folder / "public.pem"
    subprocess.run(["openssl", "genrsa", "-out", private, "2048"], check=True,
                   stderr=subprocess.DEVNULL)
    subprocess.run(["openssl", "rsa", "-in", private, "-pubout", "-out", public], check=True,
                   stderr=subprocess.DEVNULL)
    return pulsar.CryptoKeyReader(str(public), str(private))


def publish(topic, keys, records, **options):
    """Each record encrypted, between two that anybody can read."""
    for part, more in ((records[:1], {}), (records[1:-1], {"encryption_key": KEY,
                                                           "crypto_key_reader": keys}),
                       (records[-1:], {})):
        interop.produce(topic, part, **options, **more)


def secret_records():
    return [interop.record(n, b"number %d" % n, key=f"k{n}", ordering_key=f"o{n}", event_ms=n + 1,
                           a="b") for n in range(8)]


def read_secret(topic, keys, count):
    """What somebody with the key finds in the topic."""
    consumer = interop.subscribe(topic, crypto_key_reader=keys)
    found = [interop.as_record(m) for m in interop.take(consumer, count)]
    consumer.close()
    return found


def without_ours(records):
    """The properties that were the message's own."""
    return [dict(each, properties={name: value for name, value in each["properties"].items()
                                   if name in ("a", "n")}) for each in records]


@test
def encrypted_messages_are_dead_letters_that_can_be_decrypted(folder):
    keys, records, count = make_keys(folder), secret_records(), 0
    for batching in (False, True):
        for codec in ("none", "zstd"):
            topic, dead = interop.unique("secret"), interop.unique("secret-dead")
            publish(topic, keys, records, batching_enabled=batching,
                    compression_type=interop.COMPRESSIONS[codec])
            service = interop.Service(folder, [topic], name=f"{batching}-{codec}",
                                      dead_letter={"topic": dead}).start()
            service.wait_count(2)
            found = without_ours(read_secret(dead, keys, len(records) - 2))
            interop.wait_settled(topic)
            interop.check_records(found, records[1:-1], f"dead letters, {batching}, {codec}")
            check_equal(sorted(m["headers"]["n"] for m in service.messages()), ["0", "7"],
                        "what the handler got")
            failed = service.wait_log("message.failed", text="dead-lettered")
            check("it is encrypted" in failed["reason"], str(failed))
            service.end()
            count += len(found)
    print(f"{count} encrypted messages")


@test
def without_a_dead_letter_encrypted_messages_are_held_and_come_again(folder):
    keys, records = make_keys(folder), secret_records()
    topic = interop.unique("held")
    publish(topic, keys, records, batching_enabled=False)
    for again in range(2):
        service = interop.Service(folder, [topic], name=f"run-{again}", dead_letter="none").start()
        status = service.wait_status("all held", lambda s: s["topics"][0]["undecodable"] == 6)
        check_equal(status["topics"][0]["held"], 6, "held")
        interop.wait_for("the others", lambda: interop.admin().stats(topic)["subscriptions"][
            "laneway"]["unackedMessages"] == 6, pause=0.2)
        explained = service.ask("explain", topic).stdout
        check("held: it cannot be read: it is encrypted" in explained, explained)
        check_equal(service.stop(), 75, "exit code of what leaves messages unfinished")
    consumer = interop.subscribe(topic, "laneway", crypto_key_reader=keys)
    found = [interop.as_record(m) for m in interop.take(consumer, 6)]
    interop.check_records(found, records[1:-1], "by whoever has the key")
    print("6 encrypted messages, twice held")


@test
def dropped_and_stopped_as_configured(folder):
    keys, records = make_keys(folder), secret_records()
    topic = interop.unique("drop")
    publish(topic, keys, records, batching_enabled=True)
    service = interop.Service(folder, [topic], on_undecodable="drop").start()
    service.wait_count(2)
    interop.wait_settled(topic)
    check_equal(service.status()["topics"][0]["settled"]["dropped"], 1, "entries that were dropped")
    service.end()
    topic = interop.unique("stop")
    publish(topic, keys, records, batching_enabled=False)
    service = interop.Service(folder, [topic], name="stops", on_undecodable="stop").start()
    check_equal(service.code(), 79, "exit code")
    check("cannot" in service.log_text() or "it is encrypted" in service.log_text(), "reason")
    check(interop.e2e.backlog(topic, "laneway") >= 6, "encrypted messages are not acknowledged")
    print("7 encrypted messages")


@test
def encrypted_chunks_are_dead_letters_one_by_one(folder):
    keys = make_keys(folder)
    topic, dead = interop.unique("secret-chunks"), interop.unique("secret-chunks-dead")
    value = interop.noise(6_000_000)
    interop.produce(topic, [interop.record(1, value, key="k")], chunking_enabled=True,
                    encryption_key=KEY, crypto_key_reader=keys)
    service = interop.Service(folder, [topic], dead_letter={"topic": dead}).start()
    status = service.wait_status("all judged", lambda s: s["topics"][0]["undecodable"] == 2)
    interop.wait_settled(topic)
    check_equal(status["topics"][0]["started"], 0, "handlers that were called")
    found = interop.peek(dead)
    check_equal(len(found), 2, "dead letters")
    service.end()
    print("2 encrypted chunks")


def broken():
    """(what, metadata, payload, messages, fault): entries that a broker stores and nobody reads."""
    packed = [zlib.compress(b"x" * (1000 + n)) for n in range(3)]
    return [
        ("no batch", raw.metadata(batch=3), b"this is no batch", 3, "malformed batch"),
        ("a batch that breaks off", raw.metadata(batch=2),
         b"\0\0\0\2\x18\3abc" + b"\0\0\0\2\x18\x7f", 2, "malformed"),
        ("no zlib", raw.metadata(2, 100), b"this is no zlib", 1, "compressed data corrupt"),
        ("a codec of tomorrow", raw.metadata(17, 100), b"?", 1, "unknown compression"),
        ("a bomb beyond all bounds", raw.metadata(2, 2**32 - 1), packed[0], 1, "size refused"),
        ("a bomb", raw.metadata(2, 100 << 20), b"small", 1, "size refused"),
        ("a size that is too small", raw.metadata(2, 10), packed[1], 1, "compressed data corrupt"),
        ("a size that is too large", raw.metadata(2, 2000), packed[2], 1, "compressed data corrupt"),
        ("chunks of 2 GiB", raw.metadata(more=raw.field(26, "u") + raw.field(27, 3) + raw.field(
            28, 2**31 - 1) + raw.field(29, 0)), b"abc", 1, "its chunks"),
    ]


@test
def broken_entries_are_dead_letters_with_their_bytes(folder):
    for kind in ("shared", "exclusive"):
        topic, dead = interop.unique("broken"), interop.unique("broken-dead")
        producer = raw.Producer(interop.url(), topic)
        for _, encoded, payload, messages, _ in broken():
            producer.publish(encoded, payload, messages)
        producer.publish(raw.metadata(key="k"), b"whole")
        service = interop.Service(folder, [topic], name=kind, kind=kind,
                                  dead_letter={"topic": dead}).start()
        service.wait_count(1)
        interop.wait_settled(topic)
        check_equal([m["value"] for m in service.messages()], ["whole"], "what the handler got")
        letters = interop.read(dead, len(broken()))
        check_equal(sorted(m.data() for m in letters), sorted(each[2] for each in broken()),
                    "bytes of the dead letters")
        reasons = {m.data(): str(m.properties()) for m in letters}
        for what, _, payload, _, fault in broken():
            check(fault in reasons[payload], f"{what}: {reasons[payload]}")
        connected = [line for line in service.lines if line.get("event") == "pulsar.connected"]
        check_equal(len(connected), 1, "connections that were made")
        service.end()
        producer.close()
    print(f"{2 * len(broken())} broken entries")


@test
def entries_whose_metadata_is_none_are_passed_over_by_the_broker(folder):
    topic = interop.unique("no-metadata")
    producer = raw.Producer(interop.url(), topic)
    producer.publish(b"\xff\xff\xff\xff", b"nobody can know what this is")
    producer.publish(raw.metadata(), b"whole")
    service = interop.Service(folder, [topic]).start()
    service.wait_count(1)
    check_equal([m["value"] for m in service.messages()], ["whole"], "what the handler got")
    service.end()
    print("1 entry")


@test
def keys_of_bytes_come_decoded(folder):
    key = b"\xff\x00\xfe key"
    topic, dead = interop.unique("raw-key"), interop.unique("raw-key-dead")
    producer = raw.Producer(interop.url(), topic)
    producer.publish(raw.metadata(key_b64=base64.b64encode(key).decode(),
                                  more=raw.field(4, raw.pair("do", "dead"))), b"value")
    producer.publish(raw.metadata(key_b64="no base64!"), b"value")
    service = interop.Service(folder, [topic], dead_letter={"topic": dead}).start()
    service.wait_count(2)
    check_equal({interop.bytes_of(m, "key") for m in service.messages()}, {key, b"no base64!"},
                "keys at the handler")
    letter = interop.read(dead, 1)[0]
    check_equal(base64.b64decode(letter.partition_key()), key, "key of the dead letter")
    service.end()
    print("2 keys")


@test
def peek_shows_that_a_message_is_encrypted(folder):
    keys, records = make_keys(folder), secret_records()
    topic = interop.unique("peeked")
    publish(topic, keys, records, batching_enabled=False)
    found = interop.peek(topic)
    faults = [each.get("fault") for each in found]
    check_equal(faults, [None] + ["it is encrypted"] * 6 + [None], "faults")
    check_equal([each["key"] for each in found], [each["key"] for each in records], "keys")
    print("6 encrypted messages")


if __name__ == "__main__":
    interop.run()
