# SPDX-License-Identifier: Apache-2.0
"""Messages of unusual shape: no key, an empty key, a huge key, no payload, thousands of headers,
and payloads above what the next topic takes. Each is handled once or dead-lettered, never looped."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import e2e  # noqa: E402
import e2e_judge  # noqa: E402
from e2e import admin, check, check_equal, test  # noqa: E402

MANY = 10000
BIG = 1_000_000


def run_all(folder, records, count=None, **pipeline):
    """Puts the records into a topic that takes large ones, runs until all are settled; returns
    the topic, the runs, and what is in its dead-letter topic."""
    topic = e2e.unique("payload")
    admin("create", topic, 1, "max.message.bytes=8388608")
    admin("create", f"{topic}.dlq", 1)
    e2e.put([{"topic": topic, **each} for each in records])
    setting = e2e.config(topic, [topic], e2e.handler(log=folder), **pipeline)
    service = e2e.Service(setting, folder).start()
    service.wait_settled(count or len(records))
    check_equal(service.stop(), 0, "exit code")
    e2e.check_all_committed(topic, [topic])
    runs = e2e_judge.read_runs(folder, {})
    check_equal(len(runs), len(records), "runs")
    return topic, runs, admin("read", f"{topic}.dlq")


@test
def keys_and_payloads_may_be_null_empty_or_huge(folder):
    value = json.dumps({"i": 1})
    records = [
        {"value": value},
        {"key": "", "value": value},
        {"key": "k" * BIG, "value": value},
        {"key": "tombstone"},
        {},
        {"key": "empty value", "value": ""},
        {"key_b64": "/wD+", "value_b64": "/wD+"},
    ]
    runs = run_all(folder, records)[1]
    keys = sorted(run.key for run in runs)
    expected = sorted(["<null>", "", f"<{BIG}>", "tombstone", "<null>", "empty value", "/wD+"])
    check_equal(keys, expected, "keys that the handler saw")


@test
def a_null_key_stays_null_and_an_empty_one_empty_in_a_dead_letter(folder):
    value = json.dumps({"do": ["dead"]})
    records = [{"value": value}, {"key": "", "value": value}, {"key": "k", "value": value}]
    dead = run_all(folder, records)[2]
    check_equal(sorted(str(record["key"]) for record in dead), ["", "None", "k"], "keys")


@test
def ten_thousand_headers_are_carried_bit_for_bit(folder):
    headers = [[f"h{number % 7}", f"value {number}"] for number in range(MANY)]
    record = {"key": "k", "value": json.dumps({"do": ["dead"]}), "headers": headers}
    dead = run_all(folder, [record])[2]
    check_equal(len(dead), 1, "dead letters")
    check_equal(dead[0]["headers"][:MANY], headers, "headers of the message")
    names = [name for name, _ in dead[0]["headers"][MANY:]]
    check("x-error-reason" in names and "x-laneway-id" in names, f"ours behind them: {names}")


@test
def a_dead_letter_above_the_limit_is_sent_without_its_payload(folder):
    record = {"key": "k", "value": json.dumps({"do": ["dead"], "pad": "x" * 2 * BIG})}
    topic, _, dead = run_all(folder, [record])
    check_equal(len(dead), 1, "dead letters")
    headers = e2e.headers_of(dead[0])
    check_equal([dead[0]["key"], dead[0]["value"]], [None, None], "key and value")
    check_equal(headers["source-topic"], topic, "where the payload can be found")
    check_equal(headers["x-error-reason"], "as told: dead", "reason")


@test
def a_reply_above_the_limit_dead_letters_its_message(folder):
    reply = e2e.unique("replies")
    admin("create", reply, 1)
    record = {"key": "k", "value": json.dumps({"do": [f"big:{3 * BIG}"]})}
    dead = run_all(folder, [record], reply={"topic": reply})[2]
    check_equal(len(admin("read", reply)), 0, "replies")
    check_equal([record["key"] for record in dead], ["k"], "dead letters")
    reason = e2e.headers_of(dead[0])["x-error-reason"]
    check("larger than its topic allows" in reason, f"reason: {reason}")


@test
def a_large_reply_does_not_harm_its_neighbours(folder):
    """The broker refuses whole batches; the small ones in it are sent again."""
    reply = e2e.unique("small")
    admin("create", reply, 1, "max.message.bytes=2000")
    records = [{"key": f"k{n}", "value": json.dumps({"i": n, "do": ["reply"]})}
               for n in range(50)]
    records[25]["value"] = json.dumps({"do": ["big:5000"]})
    dead = run_all(folder, records, reply={"topic": reply})[2]
    check_equal(len(admin("read", reply)), 49, "replies")
    check_equal([record["key"] for record in dead], ["k25"], "dead letters")


if __name__ == "__main__":
    e2e.run()
