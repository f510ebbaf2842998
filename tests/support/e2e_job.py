# SPDX-License-Identifier: Apache-2.0
"""The main job: three topics of different priority, a handler that fails some, dead letters and
replies. Made here, changed by the scripts that kill things in the middle, judged here."""
import collections
import json

import e2e
import e2e_handler
import e2e_judge
from e2e import admin, check, check_equal

MAX_ATTEMPTS = 3
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
RULES = [
    [1000, 13, ["retry"]],
    [1000, 17, ["error", "ok"]],
    [500, 19, ["drop"]],
    [250, 11, ["dead"]],
    [100, 7, ["retry", "ok"]],
    [50, 3, ["reply"]],
]


def final_of(number):
    """Returns (result of the last run, runs) that message `number` is to have."""
    for modulus, remainder, results in RULES:
        if number % modulus == remainder:
            for attempt in range(1, MAX_ATTEMPTS + 1):
                result = results[min(attempt, len(results)) - 1]
                if result not in ("retry", "error"):
                    break
            return result, attempt
    return "ok", 1


class Job:
    make_handler = staticmethod(e2e.handler)

    def __init__(self, folder, count, keys=500, partitions=8, seed=1, name="job"):
        self.folder, self.count, self.seed = folder, count, seed
        stem = e2e.unique(name)
        self.group, self.reply = f"{stem}-group", f"{stem}.replies"
        self.topics = [f"{stem}.{level}" for level in ("high", "mid", "low")]
        self.priorities = dict(zip(self.topics, (10, 20, 30)))
        self.members = []
        self.log = folder / "runs"
        self.log.mkdir()
        dead = [f"{topic}.dlq" for topic in self.topics]
        admin("create", ",".join(self.topics + dead + [self.reply]), partitions)
        self.headers = ["--header", f"traceparent={TRACE}", "--header",
                        "content-type=application/json", "--header", "twice=1", "--header",
                        "twice=2"]
        self.keys, self.total = keys, 0
        self.produce(count)

    def produce(self, count):
        """So many further messages for each topic."""
        first = self.total // len(self.topics)
        admin("produce", ",".join(self.topics), count, "--keys", self.keys, "--seed",
              self.seed + first, "--first", first, *self.headers)
        self.total += count * len(self.topics)

    def config(self, work_ms=0, workers=2, window=4, concurrency=8, properties=None, **pipeline):
        retry = {"in_place": True, "max_attempts": MAX_ATTEMPTS,
                 "backoff": {"initial": "20ms", "multiplier": 2, "max": "100ms", "jitter": "5ms"}}
        handler = self.make_handler(RULES, work_ms, self.log, workers, window)
        pipeline = {"ordering": "key", **pipeline}
        return e2e.config(self.group, list(self.priorities.items()), handler, concurrency,
                          properties, retry=retry, on_error="retry",
                          reply={"topic": self.reply}, **pipeline)

    def start(self, arguments=(), **options):
        name = f"member-{len(self.members)}"
        setting = self.config(**options)
        member = e2e.Service(setting, self.folder, name, arguments=arguments).start()
        self.members.append(member)
        return member

    def lag(self, wait_s):
        return int(admin("lag", self.group, *self.topics, "--wait", wait_s)[0])

    # --- judging ----------------------------------------------------------------------------

    def load(self):
        self.histories = {m.pid: e2e_judge.read_history(m.history) for m in self.members}
        self.runs = e2e_judge.read_runs(self.log, self.histories)
        self.sources = {}
        for record in e2e.read(*self.topics):
            place = (record["topic"], record["partition"], record["offset"])
            record["i"] = json.loads(record["value"])["i"]
            self.sources[place] = record
        check_equal(len(self.sources), self.total, "records in the topics")

    def by_result(self, result):
        return {p for p, s in self.sources.items() if final_of(s["i"])[0] == result}

    def check_handled(self):
        """Every message had the run that ends it, and no run but those it was to have."""
        best = collections.Counter()
        for run in self.runs:
            place = (run.topic, run.partition, run.offset)
            best[place] = max(best[place], run.attempt)
        lost = [p for p, s in self.sources.items() if best[p] < final_of(s["i"])[1]]
        too_many = [p for p, s in self.sources.items() if best[p] > final_of(s["i"])[1]]
        check_equal(lost[:5], [], f"{len(lost)} messages lost")
        check_equal(too_many[:5], [], f"{len(too_many)} messages with too many attempts")
        return len(lost)

    def check_order(self):
        faults = e2e_judge.order_faults(self.runs)
        check_equal(faults[:3], [], f"{len(faults)} order violations")

    def check_duplicates(self):
        found, bound = e2e_judge.duplicates_of(self.runs), e2e_judge.duplicates_bound(
            self.histories)
        check(found <= bound, f"{found} duplicates, the bound is {bound}")
        return found, bound

    def check_dead_letters(self, duplicates=0):
        seen = collections.Counter()
        for record in e2e.read(*[f"{topic}.dlq" for topic in self.topics]):
            self.check_dead_letter(record, seen)
        expected = {p for p, s in self.sources.items() if final_of(s["i"])[0] in ("dead", "retry")}
        check_equal(set(seen), expected, "dead letters")
        extra = sum(seen.values()) - len(seen)
        check(extra <= duplicates, f"{extra} dead letters twice")
        return len(seen)

    def check_dead_letter(self, record, seen):
        headers = e2e.headers_of(record)
        place = (headers["source-topic"], int(headers["partition"]), int(headers["offset"]))
        source = self.sources.get(place)
        check(source is not None, f"a dead letter of no message: {record}")
        seen[place] += 1
        result, attempts = final_of(source["i"])
        topic, partition, offset = place
        check_equal(record["topic"], f"{topic}.dlq", "topic of a dead letter")
        check_equal(record["key"], source["key"], "key of a dead letter")
        check_equal(record["value"], source["value"], "value of a dead letter")
        own = [pair for pair in record["headers"] if pair in source["headers"]]
        check_equal(own, source["headers"], "the message's own headers on its dead letter")
        wanted = {
            "x-error-reason": f"as told: {result}",
            "x-retry-attempt": str(attempts),
            "x-laneway-id": f"main/{topic}/{partition}/{offset}",
            "x-laneway-retries": "0",
            "x-laneway-timestamp": str(source["timestamp"]),
        }
        for name, value in wanted.items():
            check_equal(headers.get(name), value, f"header {name} of {record}")
        check(int(headers["epoch"]) >= 0, f"header epoch of {record}")

    def check_replies(self, duplicates=0):
        expected = collections.Counter(
            (self.sources[p]["key"], json.dumps({"done": self.sources[p]["i"]}))
            for p in self.by_result("reply")
        )
        found = collections.Counter()
        for record in e2e.read(self.reply):
            found[(record["key"], record["value"])] += 1
            check_equal(record["headers"], [["traceparent", TRACE],
                                            ["content-type", "application/json"]],
                        "headers of a reply")
        check(not expected - found, f"replies missing: {list(expected - found)[:3]}")
        extra = sum((found - expected).values())
        check(extra <= duplicates, f"{extra} replies too many")
        return sum(expected.values())

    def check_inversions(self, member, are_scarce=True):
        events = self.histories[member.pid]
        check_equal(e2e_judge.decision_inversions(events), 0, "priority inversions when deciding")
        totals = collections.Counter(place[0] for place in self.sources)
        places = {place[:2] for place in self.sources}
        inverted, judged = e2e_judge.backlog_inversions(events, totals, self.priorities, places)
        share = inverted / judged if judged else 0.0
        check(judged > 0, "no start of a lower topic was judged")
        if are_scarce:
            check(share <= 0.01, f"{inverted} of {judged} starts of lower topics came too early")
        return inverted, judged

    def check_all(self):
        """Judges everything but inversions; returns the counts as a dict."""
        self.load()
        lost = self.check_handled()
        self.check_order()
        duplicates, bound = self.check_duplicates()
        dead = self.check_dead_letters(duplicates)
        replies = self.check_replies(duplicates)
        e2e.check_all_committed(self.group, self.topics)
        return {
            "messages": self.total, "runs": len(self.runs), "lost": lost, "order_violations": 0,
            "duplicates": duplicates, "duplicates_bound": bound, "dead_letters": dead,
            "replies": replies, "stale": e2e_judge.stale_runs(self.runs, self.histories),
        }


assert e2e_handler.RULES == [], "the judge's rules are its own"
