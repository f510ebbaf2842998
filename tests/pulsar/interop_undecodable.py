# SPDX-License-Identifier: Apache-2.0
"""Messages that cannot be read, from the official client and raw: encrypted, single and batched
and chunked. They follow on_undecodable; what is behind them goes on, and nothing is lost."""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import _interop as interop  # noqa: E402
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
