# SPDX-License-Identifier: Apache-2.0
"""The six-lane order example as a job: what `laneway init six-lanes` writes, on topics of its own
and otherwise as it stands, with its Python handler. Orders wait in the four lanes before the
service starts; some work at the second try, some never, some are no orders at all. Judged by what
the official client finds afterwards, by the admin API and by the service's history.
"""
import collections
import json
import pathlib

import e2e_judge
import e2e_pulsar as e2e
from e2e_pulsar import check, check_equal

LANES = ("live_high", "live_low", "live_retry", "batch_high", "batch_low", "batch_retry")
FILLED = ("live_high", "live_low", "batch_high", "batch_low")
PRIORITIES = dict(zip(LANES, (110, 120, 150, 210, 220, 250)))
SUBSCRIPTION = "orders-sub"
MAX_RETRIES = 5
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PROPERTIES = {"traceparent": TRACE, "content-type": "application/json", "shop": "7"}
NEVER = 99


def fails_of(number):
    """How often order `number` fails before it works; None = it is no order."""
    if number % 250 == 11:
        return None
    if number % 1000 == 13:
        return NEVER
    return 1 if number % 100 == 7 else 0


def retries_of(number):
    return min(fails_of(number) or 0, MAX_RETRIES)


def is_dead(number):
    return fails_of(number) in (None, NEVER)


def value_of(number):
    fails = fails_of(number)
    if fails is None:
        return json.dumps({"name": "no id", "n": number})
    return json.dumps({"id": number, "n": number, **({"fails": fails} if fails else {})})


def number_of(value):
    return json.loads(value)["n"]


class Lanes:
    """`count` orders, a quarter in each lane; the example's handler, which may be told to take so
    long for each order."""

    def __init__(self, folder, count, name="six", work_s=0):
        self.folder, self.count = pathlib.Path(folder), count
        self.stem = e2e.unique(name).replace("-", "_")
        self.topics = {lane: e2e.full(f"{self.stem}_orders_{lane}") for lane in LANES}
        self.replies = f"{self.stem}_order_confirmations"
        self.dead = f"{self.stem}_orders_dead"
        self.members = []
        self.write_example()
        if work_s:
            self.slow_down(work_s)
        done = e2e.laneway("topics", "create", "--all", "--partitions", "1", str(self.file),
                           *self.settings())
        check_equal(done.returncode, 0, f"topics create: {done.stdout} {done.stderr}")
        # A subscription that acknowledges nothing keeps what is read here at the end.
        for topic in (self.replies, self.dead, self.topics["live_retry"],
                      self.topics["batch_retry"]):
            e2e.admin().subscribe(topic, "shelf")
        for number, lane in enumerate(FILLED):
            each = range(number * count // 4, (number + 1) * count // 4)
            e2e.produce(self.topics[lane], map(value_of, each), properties=PROPERTIES,
                        key=lambda value: f"customer-{number_of(value) % 500}")

    def write_example(self):
        where = self.folder / "six"
        done = e2e.laneway("init", "six-lanes", str(where))
        check_equal(done.returncode, 0, f"laneway init: {done.stderr}")
        self.file = where / "orders.yaml"
        text = self.file.read_text()
        for name in ('"orders_', " orders_dead", " order_confirmations"):
            check(name in text, f"the example names {name}")
            start = name[0]
            text = text.replace(name, f"{start}{self.stem}_{name[1:]}")
        self.file.write_text(text)

    def slow_down(self, work_s):
        file = self.file.parent / "handlers/confirm_order.py"
        head = "def confirm(order, retries):\n"
        check(head in file.read_text(), "the handler has a function confirm")
        slow = f"{head}    __import__('time').sleep({work_s})\n"
        file.write_text(file.read_text().replace(head, slow))

    def settings(self):
        """What differs from the example: where the broker is, and shorter delays of retries."""
        values = {"brokers.main.url": e2e.url(),
                  "brokers.main.properties.admin_url": e2e.admin().url,
                  "pipelines.orders.retry.backoff.max": "1s"}
        return [word for path, value in values.items() for word in ("--set", f"{path}={value}")]

    def start(self):
        name = f"member-{len(self.members)}"
        member = e2e.Service(self.file, self.folder, name, arguments=self.settings()).start()
        self.members.append(member)
        return member

    def expected_settled(self):
        """How often a message is settled: once where it came, and once for each retry."""
        return self.count + sum(retries_of(number) for number in range(self.count))

    def wait_done(self):
        for lane in ("live", "batch"):
            e2e.wait_backlog([self.topics[f"{lane}_{each}"] for each in ("high", "low", "retry")],
                             SUBSCRIPTION)

    # --- judging ----------------------------------------------------------------------------

    def check_outcomes(self, duplicates=0):
        """Every order has its reply or its dead letter, none has both; returns how many of each."""
        replies, dead = collections.Counter(), collections.Counter()
        for message in e2e.read(self.replies):
            replies[self.check_reply(message)] += 1
        for message in e2e.read(self.dead):
            dead[self.check_dead(message)] += 1
        bad = {number for number in range(self.count) if is_dead(number)}
        e2e.check_same(replies, set(range(self.count)) - bad, "orders with a reply")
        e2e.check_same(dead, bad, "orders with a dead letter")
        extra = sum(replies.values()) + sum(dead.values()) - self.count
        check(extra <= duplicates, f"{extra} replies and dead letters too many")
        return {"replies": sum(replies.values()), "dead_letters": sum(dead.values())}

    def check_reply(self, message):
        number = json.loads(message["value"])["confirmed"]
        check_equal(message["key"], f"customer-{number % 500}", f"key of the reply to {number}")
        wanted = {name: PROPERTIES[name] for name in ("traceparent", "content-type")}
        check_equal(message["properties"], wanted, f"properties of the reply to {number}")
        return number

    def check_dead(self, message):
        number, found = number_of(message["value"]), message["properties"]
        check_equal(message["value"], value_of(number), "value of a dead letter")
        check_equal(message["key"], f"customer-{number % 500}", "key of a dead letter")
        reason = "database timeout" if fails_of(number) else "bad order: KeyError('id')"
        wanted = {**PROPERTIES, "REAL_TOPIC": self.source_of(number), "x-error-reason": reason,
                  "RECONSUMETIMES": str(retries_of(number)), "x-retry-attempt": "1"}
        check_equal({name: found.get(name) for name in wanted}, wanted,
                    f"properties of the dead letter of {number}")
        check("ORIGIN_MESSAGE_ID" in found, f"no ORIGIN_MESSAGE_ID: {found}")
        return number

    def source_of(self, number):
        return self.topics[FILLED[number * 4 // self.count]]

    def check_retries(self, duplicates=0):
        """Each failed run but the last of an order made one copy, in the retry lane of its level."""
        copies, origins = collections.Counter(), {}
        for level in ("live", "batch"):
            for message in e2e.read(self.topics[f"{level}_retry"]):
                number, found = number_of(message["value"]), message["properties"]
                check(f"_{level}_" in self.source_of(number), f"{number} in the lane of {level}")
                copies[number, int(found["RECONSUMETIMES"])] += 1
                check_equal(found["REAL_TOPIC"], self.source_of(number), "REAL_TOPIC")
                origin = origins.setdefault(number, found["ORIGIN_MESSAGE_ID"])
                if duplicates == 0:
                    check_equal(found["ORIGIN_MESSAGE_ID"], origin, f"origin of {number}")
        wanted = {(number, turn + 1) for number in range(self.count)
                  for turn in range(retries_of(number))}
        e2e.check_same(copies, wanted, "copies (order, turn) in the retry lanes")
        extra = sum(copies.values()) - len(wanted)
        check(extra <= duplicates, f"{extra} retry copies too many")
        return {"retry_copies": sum(copies.values())}

    def check_order_of_service(self, member, are_scarce):
        """Starts go by priority: always among what was received; and where slots are scarce, so
        that lower lanes find no gaps to fill, all but one in a hundred among what the broker has."""
        events = e2e_judge.read_history(member.history)
        check_equal(inversions_at_decision(events), 0, "priority inversions when deciding")
        totals = {self.topics[lane]: self.count // 4 for lane in FILLED}
        priorities = {self.topics[lane]: PRIORITIES[lane] for lane in FILLED}
        places = {(topic, 0) for topic in totals}
        inverted, judged = e2e_judge.backlog_inversions(events, totals, priorities, places)
        check(judged >= self.count // 2, f"only {judged} starts of lower lanes were judged")
        check(not are_scarce or inverted <= judged * 0.01,
              f"{inverted} of {judged} starts came before better ones")
        starts = [event["topic"] for event in events if event["kind"] == "started"]
        check_equal(len(starts), self.expected_settled(), "runs")
        return {"runs": len(starts), "inversions_of_backlog": inverted, "lower_starts": judged}


def inversions_at_decision(events):
    """Counts starts made while a message of a better priority was in hand and could run; every
    message may, since a shared subscription without order has no lanes."""
    waiting, inversions = collections.Counter(), 0
    for event in events:
        if event["kind"] == "received":
            waiting[event["priority"]] += 1
        elif event["kind"] == "started":
            inversions += any(count > 0 and priority < event["priority"]
                              for priority, count in waiting.items())
            waiting[event["priority"]] -= 1
    return inversions
