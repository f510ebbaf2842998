# SPDX-License-Identifier: Apache-2.0
"""A plug-in in worker processes (engine `processes`) on a real Pulsar: retries, dead letters, replies;
order by key and by partition while members join and leave with messages in hand; a restart that goes
on where the acknowledgments end; workers and a member that are killed. E2E_SEED."""
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
from e2e_pulsar import check, check_equal, test  # noqa: E402
from e2e_pulsar_job import Job, read_runs  # noqa: E402

SEED = int(os.environ.get("E2E_SEED", "1"))
KEYS = 40


class Processes(Job):
    """The main job with its handler as a plug-in."""

    make_handler = staticmethod(e2e.plugin_handler)
    workers_killed = 0

    def kill_worker(self, member):
        """Charges nobody; what it ran, and no more than that, runs again."""
        pids = [int(path.stem.split("-")[1]) for path in self.log.glob(f"{member.pid}-*.runs")]
        seen = len(member.lines)
        os.kill([pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()][-1], signal.SIGKILL)
        member.wait_log("handler.ended", start=seen)
        self.workers_killed += 1

    def bound(self):
        return super().bound() + self.workers_killed


@test
def a_stop_in_the_middle_leaves_nothing_to_run_again(folder):
    job = Processes(folder, 2000, seed=SEED, name="middle")
    first = job.start(work_ms=5)  # 15 s for all, so that the stop comes in the middle
    job.wait_runs(job.total // 3)
    check_equal(first.stop(), 0, "exit code of the first run")
    check(e2e.backlog(job.topics[2], job.subscription) > 0, "it was stopped before its end")
    second = job.start()
    job.wait_done()
    check_equal(second.stop(), 0, "exit code of the second run")
    counts = job.check_all(0)
    check_equal(len({run.member for run in job.runs}), 2, "services that ran something")
    print(counts)


@test
def nothing_is_lost_when_workers_and_a_member_are_killed(folder):
    job = Processes(folder, 2000, seed=SEED + 1, name="kills")
    members = [job.start(work_ms=2) for _ in range(2)]
    for share in (8, 6, 4):
        job.wait_runs(job.total // share)
        job.kill_worker(members[0])
    job.wait_runs(job.total // 3)
    job.kill(members[1])
    job.wait_done()
    job.stop_all()
    print(dict(job.check_all(), workers_killed=job.workers_killed, members_killed=1))


class Pair:
    """Two members of one subscription, which write down their runs apart."""

    def __init__(self, folder, kind, partitions, ordering):
        self.folder, self.kind, self.ordering = folder, kind, ordering
        self.topic, self.members, self.count = e2e.unique(kind), [], 0
        e2e.admin().create(self.topic, partitions)

    def start(self):
        name = f"member-{len(self.members)}"
        (self.folder / name).mkdir()
        work = e2e.plugin_handler(log=self.folder / name, work_ms=3)
        setting = e2e.config("sub", [self.topic], work, self.kind, concurrency=4,
                             properties={"consumer_name": name}, ordering=self.ordering)
        self.members.append(e2e.Service(setting, self.folder, name).start())
        return self.members[-1]

    def produce(self, count):
        e2e.produce(self.topic, e2e.numbered(count, self.count, KEYS), e2e.key_of, batch=1)
        self.count += count

    def runs(self, number):
        return read_runs(self.folder / f"member-{number}")

    def finish(self, lane_of):
        """Every message has run once; in each lane the numbers ascend, and none began before the
        end of the one before, whoever had it."""
        e2e.wait_backlog([self.topic], "sub")
        for member in self.members:
            if member.is_alive():
                check_equal(member.stop(), 0, f"exit code of {member.name}")
        runs = sorted(self.runs(0) + self.runs(1), key=lambda run: run.start)
        check_equal(sorted(run.number for run in runs), list(range(self.count)), "runs")
        last = {}
        for run in runs:
            before = last.get(lane_of(run))
            if before:
                check(run.number > before.number, f"{run} after {before}")
                check(run.start >= before.end, f"{run} began before the end of {before}")
            last[lane_of(run)] = run
        return [len(self.runs(0)), len(self.runs(1))]


def leave(pair, member, lane_of):
    """The first one stops while both have work in hand."""
    e2e.wait_for("both at work", lambda: min(len(pair.runs(0)), len(pair.runs(1))) >= 100)
    check_equal(member.stop(), 0, "exit code of the first")
    print(dict(zip(("first", "second"), pair.finish(lane_of))))


@test
def the_order_of_keys_is_kept_while_members_come_and_go(folder):
    pair = Pair(folder, "key_shared", 0, "key")
    first = pair.start()
    pair.produce(2000)
    e2e.wait_for("the first at work", lambda: len(pair.runs(0)) >= 100)
    pair.start()
    e2e.wait_consumers(pair.topic, "sub", 2)
    # Joining may have taken longer than the first one needed for all there was.
    pair.produce(3000)
    leave(pair, first, lambda run: run.key)


def active_members(pair):
    """Who is served, of each partition."""
    stats = [e2e.admin().stats(each)["subscriptions"].get("sub", {})
             for each in e2e.admin().each_partition(pair.topic)]
    return [each.get("activeConsumerName") for each in stats]


@test
def the_order_of_partitions_is_kept_when_a_member_leaves(folder):
    pair = Pair(folder, "failover", 4, "partition")
    first = pair.start()
    pair.start()
    # The broker lets the newcomer have its partitions a second after it came.
    e2e.wait_for("two partitions each", lambda: sorted(map(str, active_members(pair))) ==
                 ["member-0"] * 2 + ["member-1"] * 2)
    pair.produce(3000)
    leave(pair, first, lambda run: run.topic)


if __name__ == "__main__":
    e2e.run()
