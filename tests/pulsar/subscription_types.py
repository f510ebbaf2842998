# SPDX-License-Identifier: Apache-2.0
"""The four types of subscription on a real Pulsar with two members each: who gets what, in which
order, and who takes over."""
import collections
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
import e2e_judge  # noqa: E402
from e2e_pulsar import check, check_equal, test  # noqa: E402
from e2e_pulsar_job import ACKS_HELD_NS, read_runs, unfinished_of  # noqa: E402

KEYS = 40


class Pair:
    """Two members of one subscription, which write down their runs apart."""

    def __init__(self, folder, kind, partitions=0, work_ms=1, **pipeline):
        self.folder, self.kind = folder, kind
        self.topic = e2e.unique(kind)
        e2e.admin().create(self.topic, partitions)
        self.options = {"work_ms": work_ms, "workers": 4}
        self.pipeline = pipeline
        self.members, self.logs = [], []

    def start(self):
        name = f"member-{len(self.members)}"
        log = self.folder / name
        log.mkdir()
        setting = e2e.config("sub", [self.topic], e2e.handler(log=log, **self.options),
                             self.kind, concurrency=4, properties={"consumer_name": name},
                             **self.pipeline)
        setting["brokers"]["main"]["properties"] = {"admin_url": e2e.admin().url}
        self.members.append(e2e.Service(setting, self.folder, name).start())
        self.logs.append(log)
        return self.members[-1]

    def produce(self, count, first=0, batch=10):
        e2e.produce(self.topic, e2e.numbered(count, first, KEYS), e2e.key_of, batch)

    def runs(self, member):
        return read_runs(self.logs[member])

    def wait_done(self):
        e2e.wait_backlog([self.topic], "sub")

    def finish(self, count, duplicates=0):
        """Stops who is left; every message has run, and no more than so many of them twice."""
        self.wait_done()
        for member in self.members:
            if member.is_alive():
                check_equal(member.stop(), 0, f"exit code of {member.name}")
        runs = sorted(self.runs(0) + self.runs(1), key=lambda run: run.start)
        e2e.check_same([run.number for run in runs], range(count), "messages that ran")
        extra = len(runs) - count
        check(extra <= duplicates, f"{extra} duplicates")
        return runs


def check_order(runs, lane_of):
    """In each lane the numbers ascend, and a run starts when the one before has ended."""
    last = {}
    for run in runs:
        before = last.get(lane_of(run))
        if before:
            check(run.number > before.number, f"{run} after {before}")
            check(run.start >= before.end, f"{run} began before the end of {before}")
        last[lane_of(run)] = run


@test
def exclusive_the_second_waits_and_says_who(folder):
    pair = Pair(folder, "exclusive", ordering="partition")
    first = pair.start()
    e2e.wait_consumers(pair.topic, "sub", 1)
    pair.produce(500)
    pair.wait_done()
    second = pair.start()
    line = second.wait_log(text="taken")
    print({"the second says": line["msg"], "help": line.get("help", "")})
    check("sub" in line["msg"] and pair.topic in line["msg"], f"what is taken: {line}")
    check("waits" in line["help"] and second.is_alive(), f"it waits: {line}")
    line = second.wait_log("pulsar.subscription_held")
    print(line)
    check_equal([line["consumer"], line["subscription"]], ["member-0", "sub"], "who has it")
    check("127.0.0.1" in line["address"] and line["since"] != "", f"from where: {line}")
    pair.produce(500, 500)
    pair.wait_done()
    check_equal([len(pair.runs(0)), len(pair.runs(1))], [1000, 0], "runs of each")
    check_equal(first.stop(), 0, "exit code of the first")
    pair.produce(500, 1000)
    runs = pair.finish(1500)
    check_equal(len(pair.runs(1)), 500, "runs of the second when the first had gone")
    check_order(runs, lambda run: "all")


@test
def failover_the_second_takes_over(folder):
    pair = Pair(folder, "failover", ordering="partition")
    members = [pair.start(), pair.start()]
    e2e.wait_consumers(pair.topic, "sub", 2)
    pair.produce(1000)
    pair.wait_done()
    counts = [len(pair.runs(0)), len(pair.runs(1))]
    check_equal(sorted(counts), [0, 1000], "runs of each while both live")
    active = counts.index(1000)
    pair.produce(3000, 1000)
    e2e.wait_for("the middle", lambda: len(pair.runs(active)) >= 2000)
    members[active].kill()
    left = unfinished_of(e2e_judge.read_history(members[active].history), None, ACKS_HELD_NS)
    runs = pair.finish(4000, duplicates=left)
    check(len(pair.runs(1 - active)) >= 1000, "the other one took over")
    check_order(pair.runs(active), lambda run: run.member)
    check_order(pair.runs(1 - active), lambda run: run.member)
    print({"runs": [len(pair.runs(0)), len(pair.runs(1))], "duplicates": len(runs) - 4000,
           "duplicates_bound": left})


@test
def failover_divides_the_partitions(folder):
    pair = Pair(folder, "failover", partitions=4, ordering="partition")
    members = [pair.start(), pair.start()]
    e2e.wait_consumers(pair.topic, "sub", 8)
    # The broker lets the newcomer have its partitions a second after it came.
    e2e.wait_for("two partitions each", lambda: set(active_of(pair).values()) ==
                 {"member-0", "member-1"} and len(active_of(pair)) == 4)
    pair.produce(2000)
    pair.wait_done()
    found = [{run.topic for run in pair.runs(member)} for member in range(2)]
    check_equal([len(found[0]), len(found[1]), found[0] & found[1]], [2, 2, set()], "partitions")
    check_equal(members[0].stop(), 0, "exit code of the first")
    pair.produce(2000, 2000)
    runs = pair.finish(4000)
    check_order(runs, lambda run: run.topic)


def active_of(pair):
    """Returns {partition: the name of the consumer that is served}."""
    found = {}
    for each in e2e.admin().each_partition(pair.topic):
        stats = e2e.admin().stats(each)["subscriptions"].get("sub", {})
        if stats.get("activeConsumerName"):
            found[each] = stats["activeConsumerName"]
    return found


@test
def key_shared_keeps_the_order_of_each_key(folder):
    pair = Pair(folder, "key_shared", ordering="key")
    members = [pair.start(), pair.start()]
    e2e.wait_consumers(pair.topic, "sub", 2)
    pair.produce(4000, batch=1)
    pair.wait_done()
    keys = [{run.key for run in pair.runs(member)} for member in range(2)]
    check_equal(keys[0] & keys[1], set(), "keys that both had")
    check(min(len(keys[0]), len(keys[1])) >= KEYS // 8, f"keys of each: {keys}")
    before = [len(pair.runs(0)), len(pair.runs(1))]
    pair.produce(4000, 4000, batch=1)
    e2e.wait_for("the middle", lambda: len(pair.runs(0)) >= before[0] + 100)
    check_equal(members[0].stop(), 0, "exit code of the first")
    runs = pair.finish(8000)
    check_order(runs, lambda run: run.key)
    print({"keys": [len(keys[0]), len(keys[1])],
           "runs": [len(pair.runs(0)), len(pair.runs(1))], "duplicates": 0})


@test
def shared_divides_the_messages(folder):
    pair = Pair(folder, "shared", ordering="none")
    pair.start()
    pair.start()
    e2e.wait_consumers(pair.topic, "sub", 2)
    pair.produce(4000)
    pair.finish(4000)
    counts = [len(pair.runs(0)), len(pair.runs(1))]
    check(min(counts) >= 1000, f"runs of each: {counts}")
    perkey = collections.Counter(run.key for run in pair.runs(0))
    check(len(perkey) > KEYS // 2, "a shared subscription does not divide by key")
    print({"runs": counts, "duplicates": 0})


if __name__ == "__main__":
    e2e.run()
