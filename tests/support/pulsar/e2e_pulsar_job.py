# SPDX-License-Identifier: Apache-2.0
"""The main job on Pulsar for tests that kill something: three topics of different priority on one
shared subscription, a retry topic, dead letters, replies. Made here, judged here.

Nothing may be lost: every message has a run that ends it, and the reply or dead letter of that
run. Duplicates are runs beyond the number of copies that lie in the topics; there may be as many
as the killed members had received and not settled, or had settled and not yet acknowledged.
"""
import collections
import json

import e2e_judge
import e2e_pulsar as e2e
from e2e_pulsar import check, check_equal

MAX_RETRIES = 2
# Acks are grouped for 100 ms; a busy machine may be late by as much again.
ACKS_HELD_NS = 250_000_000
RULES = [
    [1000, 13, ["retry"]],
    [500, 19, ["drop"]],
    [250, 11, ["dead"]],
    [100, 7, ["retry", "ok"]],
    [50, 3, ["reply"]],
]

Run = collections.namedtuple("Run", "number retries start end result key member topic offset "
                             "redeliveries")


def final_of(number):
    """Returns (result of the last run, retries before it) that message `number` is to have."""
    for modulus, remainder, results in RULES:
        if number % modulus == remainder:
            for retries in range(MAX_RETRIES + 1):
                result = results[min(retries, len(results) - 1)]
                if result != "retry":
                    break
            return result, retries
    return "ok", 0


def read_runs(folder):
    """Returns the runs that e2e_handler.py wrote down, by their start; `end` is 0 where a run was
    killed."""
    runs = []
    for path in folder.glob("*.runs"):
        member, begun = int(path.name.split("-")[0]), None
        for line in path.read_text().splitlines():
            (what, topic, _, offset, _, retries, when, result, key, number,
             redeliveries) = line.split("\t")
            if what == "S":
                if begun:
                    runs.append(begun)
                begun = Run(int(number), int(retries), int(when), 0, result, key, member, topic,
                            int(offset), int(redeliveries))
            elif begun:
                runs.append(begun._replace(end=int(when)))
                begun = None
        if begun:
            runs.append(begun)
    runs.sort(key=lambda run: run.start)
    return runs


class Job:
    make_handler = staticmethod(e2e.handler)

    def __init__(self, folder, count, keys=500, partitions=2, seed=1, name="job"):
        self.folder, self.count, self.seed = folder, count, seed
        self.stem = e2e.unique(name)
        self.subscription = f"{self.stem}-sub"
        self.topics = [f"{self.stem}.{level}" for level in ("high", "mid", "low")]
        self.retry, self.dead, self.reply = (f"{self.stem}.{what}"
                                             for what in ("retry", "dead", "replies"))
        self.priorities = list(zip([*self.topics, self.retry], (10, 20, 30, 15)))
        self.members, self.killed = [], []
        self.log = folder / "runs"
        self.log.mkdir()
        for topic in [*self.topics, self.retry]:
            e2e.admin().create(topic, partitions)
        # A subscription that acknowledges nothing keeps what is read here at the end.
        for topic in (self.retry, self.dead, self.reply):
            e2e.admin().subscribe(topic, "shelf")
        self.total = count * len(self.topics)
        for number, topic in enumerate(self.topics):
            e2e.produce(topic, e2e.numbered(count, number * count, keys), e2e.key_of,
                        batch=100 if seed % 2 else 10)

    def config(self, work_ms=0, workers=2, window=4, concurrency=8, properties=None, **pipeline):
        retry = {"topic": self.retry, "max_retries": MAX_RETRIES, "backoff": {"initial": "1s"}}
        handler = self.make_handler(RULES, work_ms, self.log, workers, window)
        return e2e.config(self.subscription, self.priorities, handler, "shared", concurrency,
                          properties, retry=retry, dead_letter={"topic": self.dead},
                          reply={"topic": self.reply}, **pipeline)

    def start(self, arguments=(), **options):
        name = f"member-{len(self.members)}"
        setting = self.config(**options)
        member = e2e.Service(setting, self.folder, name, arguments=arguments).start()
        self.members.append(member)
        return member

    def kill(self, member):
        member.kill()
        self.killed.append(member)

    def runs_so_far(self):
        return sum(path.read_bytes().count(b"\nE") for path in self.log.glob("*.runs"))

    def wait_runs(self, count, timeout=e2e.PATIENCE_S):
        e2e.wait_for(f"{count} runs", lambda: self.runs_so_far() >= count, timeout, 0.1)

    def wait_done(self, timeout=e2e.PATIENCE_S):
        """Waits until no topic has a backlog; a retry that is not yet due is in the backlog."""
        e2e.wait_backlog([*self.topics, self.retry], self.subscription, timeout)
        # What a last run of a topic put into the retry topic.
        e2e.wait_backlog([self.retry], self.subscription, timeout)

    def stop_all(self):
        for member in self.members:
            if member.is_alive():
                check_equal(member.stop(), 0, f"exit code of {member.name}")

    # --- judging ----------------------------------------------------------------------------

    def load(self):
        self.runs = read_runs(self.log)
        self.copies = collections.Counter()
        for message in e2e.read(self.retry):
            key = (json.loads(message["value"])["i"],
                   int(message["properties"]["RECONSUMETIMES"]))
            self.copies[key] += 1

    def check_handled(self):
        """Every message had the run that ends it, and no run but those it was to have."""
        best = {}
        for run in self.runs:
            if run.end:
                best[run.number] = max(best.get(run.number, -1), run.retries)
        finals = {number: final_of(number)[1] for number in range(self.total)}
        lost = [n for n, retries in finals.items() if best.get(n, -1) < retries]
        too_many = [n for n, retries in finals.items() if best.get(n, -1) > retries]
        check_equal(lost[:5], [], f"{len(lost)} messages lost")
        check_equal(too_many[:5], [], f"{len(too_many)} messages with too many retries")
        wanted = {(n, turn + 1) for n, retries in finals.items()
                  for turn in range(retries if final_of(n)[0] != "retry" else MAX_RETRIES)}
        e2e.check_same(self.copies, wanted, "copies (message, turn) in the retry topic")
        return len(lost)

    def duplicates(self):
        counted = collections.Counter((run.number, run.retries) for run in self.runs)
        return sum(max(0, count - (self.copies[one] if one[1] else 1))
                   for one, count in counted.items())

    def bound(self, unsure_ns=ACKS_HELD_NS):
        """Sums over the killed members what they held, or had settled and maybe not yet acked."""
        return sum(unfinished_of(e2e_judge.read_history(member.history), None, unsure_ns)
                   for member in self.killed)

    def check_duplicates(self, bound):
        found = self.duplicates()
        check(found <= bound, f"{found} duplicates, the bound is {bound}")
        return {"duplicates": found, "duplicates_bound": bound}

    def check_outputs(self, bound):
        """Dead letters and replies: none is missing, and none is there without a run."""
        finals = {number: final_of(number)[0] for number in range(self.total)}
        dead = collections.Counter(json.loads(m["value"])["i"] for m in e2e.read(self.dead))
        replies = collections.Counter(json.loads(m["value"])["done"] for m in e2e.read(self.reply))
        e2e.check_same(dead, [n for n, end in finals.items() if end in ("dead", "retry")],
                       "dead letters")
        e2e.check_same(replies, [n for n, end in finals.items() if end == "reply"], "replies")
        extra = sum(dead.values()) - len(dead) + sum(replies.values()) - len(replies)
        extra += sum(self.copies.values()) - len(self.copies)
        check(extra <= bound, f"{extra} publications twice, the bound is {bound}")
        return {"dead_letters": len(dead), "replies": len(replies), "published_twice": extra}

    def check_all(self, bound=None):
        self.load()
        bound = self.bound() if bound is None else bound
        return {"messages": self.total, "runs": len(self.runs), "lost": self.check_handled(),
                **self.check_duplicates(bound), **self.check_outputs(bound),
                "retry_copies": sum(self.copies.values())}


def unfinished_of(events, until, unsure_ns):
    """Counts what the broker may give again when a member or the broker is gone at `until` (by
    default after the last event): what was received and not settled; what was settled so short
    before that its ack may not count; and what was settled of a batch that was not yet whole."""
    held, settled = set(), []
    until = until or (events[-1]["t"] if events else 0)
    for event in events:
        if event["t"] > until:
            break
        place = (event["topic"], event["partition"], event["generation"], event["position"])
        if event["kind"] == "received":
            held.add(place)
        elif event["kind"] in ("settled", "dropped"):
            held.discard(place)
            settled.append((event["t"], entry_of(place)))
    is_open = {entry_of(place) for place in held}
    return len(held) + sum(when > until - unsure_ns or entry in is_open for when, entry in settled)


def entry_of(place):
    """A position is ledger, entry and member of the batch: the last 12 bits."""
    return place[:3] + (place[3] >> 12,)
