# SPDX-License-Identifier: Apache-2.0
"""Judges what members of a group did, from three independent sources: what lies in the topics,
what the handlers wrote down (e2e_handler.py), and the members' histories (LANEWAY_HISTORY).

Order is judged per ownership (member, partition, generation): starts of a key ascend and never
overlap; a replay may start again at the last commit. Runs of a member after it lost the
partition are counted as stale. Duplicates may be as many as every lost ownership had received
and not settled, or settled and not covered by its last accepted commit.
"""
import collections
import json
import pathlib

Run = collections.namedtuple(
    "Run", "topic partition offset attempt retries start end result key member generation"
)


def read_history(path):
    """Returns the events of a file; what lies behind its last whole line is not looked at."""
    path = pathlib.Path(path)
    data = path.read_bytes().rstrip(b"\0") if path.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    return json.loads(b"[" + whole.replace(b"}\n{", b"},{") + b"]")


def read_runs(folder, histories):
    """Returns the runs of all workers. `histories` maps a member's pid to its events: the k-th
    start of a message in a member's history is the k-th run of its handlers."""
    begun, ended = collections.defaultdict(list), {}
    for path in sorted(pathlib.Path(folder).glob("*.runs")):
        member = int(path.name.split("-")[0])
        last = None
        for line in path.read_text().splitlines():
            fields = line.split("\t")
            what, topic, partition, offset, attempt, retries, when, result, key = fields[:9]
            place = (member, topic, int(partition), int(offset))
            if what == "S":
                last = [int(when), int(attempt), int(retries), result, key, None]
                begun[place].append(last)
            elif last is not None:
                last[5] = int(when)
    starts = collections.defaultdict(list)
    for member, events in histories.items():
        for event in events:
            if event["kind"] == "started":
                place = (member, event["topic"], event["partition"], event["position"])
                starts[place].append(event["generation"])
    runs = []
    for (member, topic, partition, offset), found in begun.items():
        found.sort(key=lambda one: one[0])
        generations = starts.get((member, topic, partition, offset), [])
        for index, (when, attempt, retries, result, key, end) in enumerate(found):
            generation = generations[index] if index < len(generations) else None
            runs.append(Run(topic, partition, offset, attempt, retries, when, end or when,
                            result, key, member, generation))
    runs.sort(key=lambda run: run.start)
    return runs


def order_faults(runs):
    """Returns texts: starts that go back within an ownership, runs of a key that overlap."""
    faults = []
    last_end, last_offset = {}, {}
    for run in runs:
        lane = (run.member, run.topic, run.partition, run.key)
        before = last_end.get(lane)
        if before is not None and run.start < before.end:
            faults.append(f"overlap: {before} and {run}")
        last_end[lane] = run
        owned = lane + (run.generation,)
        if run.offset < last_offset.get(owned, -1):
            faults.append(f"back to {run.offset} after {last_offset[owned]}: {run}")
        last_offset[owned] = run.offset
    return faults


def stale_runs(runs, histories):
    """Counts the runs that ended after their ownership had."""
    ends = {}
    for member, events in histories.items():
        for event in events:
            if event["kind"] == "revoked":
                where = (member, event["topic"], event["partition"], event["generation"])
                ends[where] = event["t"]
    return sum(
        run.end > ends.get((run.member, run.topic, run.partition, run.generation), run.end)
        for run in runs
    )


def duplicates_of(runs):
    """Counts first attempts beyond the first one of each message."""
    firsts = collections.Counter(
        (run.topic, run.partition, run.offset) for run in runs if run.attempt == 1
    )
    return sum(count - 1 for count in firsts.values())


def duplicates_bound(histories):
    """Sums, over all ownerships at their end, what another owner has to run again."""
    bound = 0
    for events in histories.values():
        owned = {}
        for event in events:
            where = (event["topic"], event["partition"], event["generation"])
            one = owned.setdefault(where, {"held": set(), "settled": set(), "committed": -1})
            if event["kind"] == "received":
                one["held"].add(event["position"])
            elif event["kind"] == "settled":
                one["held"].discard(event["position"])
                one["settled"].add(event["position"])
            elif event["kind"] == "committed":
                one["committed"] = max(one["committed"], event["position"])
        for one in owned.values():
            bound += len(one["held"])
            bound += sum(position >= one["committed"] for position in one["settled"])
    return bound


class Backlog:
    """What the broker still has for the topics better than one, and whether they may receive."""

    def __init__(self, totals, priorities, max_in_flight):
        self.left = dict(totals)
        self.priorities = priorities
        self.max_in_flight = max_in_flight
        self.most = max_in_flight * 7 // 8  # the rest is kept for partitions below their share
        self.in_hand = collections.Counter()
        self.is_full = dict.fromkeys(totals, False)
        self.seen = set()

    def note(self, event):
        topic = event["topic"]
        if topic not in self.left:
            return
        if event["kind"] == "received":
            place = (topic, event["partition"], event["position"])
            if place not in self.seen:
                self.seen.add(place)
                self.left[topic] -= 1
            self.in_hand[topic] += 1
        elif event["kind"] in ("settled", "dropped"):
            self.in_hand[topic] -= 1
        if self.in_hand[topic] >= self.most:
            self.is_full[topic] = True
        elif self.in_hand[topic] < self.max_in_flight * 0.7:
            self.is_full[topic] = False

    def is_inverted(self, topic, waiting):
        own = self.priorities[topic]
        return any(
            self.left[other] > 0 and not self.is_full[other] and not waiting[other]
            for other, priority in self.priorities.items()
            if priority < own
        )


def backlog_inversions(events, totals, priorities, places, max_in_flight=1000):
    """Returns (inverted, judged): starts of a lower topic while a better one, not at its limits,
    had messages not yet received. Judged from the first start after each partition of the best
    topic has delivered; against another topic as soon as each of its own has."""
    backlog = Backlog(totals, priorities, max_in_flight)
    best = min(priorities, key=priorities.get)
    waiting = {topic: {p for t, p in places if t == topic} for topic in priorities}
    inverted = judged = 0
    for event in events:
        backlog.note(event)
        topic = event["topic"]
        if event["kind"] == "received" and topic in waiting:
            waiting[topic].discard(event["partition"])
        elif event["kind"] == "started" and not waiting[best] and priorities.get(topic):
            is_lower = priorities[topic] > priorities[best]
            judged += is_lower
            inverted += is_lower and backlog.is_inverted(topic, waiting)
    return inverted, judged


def decision_inversions(events):
    """Counts starts made while a lane of a better priority had a head that could run. What is
    parked counts as not able to run until it starts again: its due time is not in a history."""
    lanes, eligible, inversions = {}, collections.Counter(), 0

    def lane_of(event):
        name = (event["topic"], event["partition"], event["key_hash"])
        return lanes.setdefault(name, {"queue": collections.deque(), "busy": None})

    def is_ready(lane):
        return lane["busy"] is None and len(lane["queue"]) > 0

    for event in events:
        if "key_hash" not in event:
            continue
        lane, own = lane_of(event), (event["generation"], event["position"])
        before = is_ready(lane)
        if event["kind"] == "received":
            lane["queue"].append(own)
        elif event["kind"] == "started":
            inversions += any(
                count > 0 and priority < event["priority"]
                for priority, count in eligible.items()
            )
            if lane["busy"] != own:
                lane["busy"] = own
                lane["queue"].remove(own)
        elif event["kind"] in ("settled", "dropped"):
            if lane["busy"] == own:
                lane["busy"] = None
            elif own in lane["queue"]:
                lane["queue"].remove(own)
        eligible[event["priority"]] += is_ready(lane) - before
    return inversions
