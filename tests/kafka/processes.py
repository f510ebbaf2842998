# SPDX-License-Identifier: Apache-2.0
"""A plug-in in worker processes (engine `processes`) on a real Kafka: order by key and by partition,
retries, dead letters, replies; workers that die and are killed; a rebalance with messages in hand; a
restart that goes on where the commits end. E2E_SEED."""
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import e2e  # noqa: E402
import e2e_judge  # noqa: E402
from e2e import admin, check, check_equal, test  # noqa: E402
from e2e_job import Job  # noqa: E402

SEED = int(os.environ.get("E2E_SEED", "1"))


class Processes(Job):
    """The main job with its handler as a plug-in."""

    make_handler = staticmethod(e2e.plugin_handler)
    workers_killed = 0

    def workers_of(self, member):
        """The processes that have written anything down and live."""
        pids = [int(path.stem.split("-")[1]) for path in self.log.glob(f"{member.pid}-*.runs")]
        return [pid for pid in pids if pathlib.Path(f"/proc/{pid}").exists()]

    def kill_worker(self, member):
        """Charges nobody; what it ran, and no more than that, runs again."""
        seen = len(member.lines)
        os.kill(self.workers_of(member)[-1], signal.SIGKILL)
        member.wait_log("handler.ended", start=seen)
        self.workers_killed += 1

    def check_duplicates(self):
        found, bound = e2e_judge.duplicates_of(self.runs), e2e_judge.duplicates_bound(
            self.histories) + self.workers_killed
        check(found <= bound, f"{found} duplicates, the bound is {bound}")
        return found, bound

    def partitions_of_members(self):
        return sorted(len(each["partitions"]) for each in admin("members", self.group)[1:])


@test
def everything_is_handled_once_in_the_order_of_keys(folder):
    job = Processes(folder, 5000, seed=SEED)
    member = job.start()
    member.wait_settled(job.total)
    check_equal(len(job.workers_of(member)), 2, "worker processes that ran handlers")
    check_equal(member.stop(), 0, "exit code after SIGTERM")
    counts = job.check_all()
    check_equal(counts["duplicates"], 0, "duplicates")
    job.check_inversions(member, are_scarce=False)
    print(counts)


@test
def everything_is_handled_once_in_the_order_of_partitions(folder):
    job = Processes(folder, 1500, seed=SEED + 1, name="partitions")
    member = job.start(ordering="partition")
    member.wait_settled(job.total)
    check_equal(member.stop(), 0, "exit code after SIGTERM")
    counts = job.check_all()
    check_equal(counts["duplicates"], 0, "duplicates")
    faults = e2e_judge.order_faults([run._replace(key="all") for run in job.runs])
    check_equal(faults[:3], [], f"{len(faults)} order violations in partitions")
    print(counts)


@test
def a_stop_in_the_middle_goes_on_at_the_committed_offsets(folder):
    job = Processes(folder, 2000, seed=SEED + 2, name="restart")
    first = job.start(work_ms=5)  # 15 s for all, so that the stop comes in the middle
    first.wait_settled(job.total // 3)
    check_equal(first.stop(), 0, "exit code of the first run")
    done = e2e.committed(job.group)
    check(job.lag(0) > 0, "the first run was stopped before its end")
    second = job.start()
    check_equal(job.lag(e2e.PATIENCE_S), 0, "lag")
    check_equal(second.stop(), 0, "exit code of the second run")
    counts = job.check_all()
    check_equal(counts["duplicates"], 0, "duplicates")
    begun = {}
    for event in job.histories[second.pid]:
        if event["kind"] == "received":
            begun.setdefault((event["topic"], event["partition"]), event["position"])
    check(begun, "the second run received something")
    for place, position in begun.items():
        check_equal(position, max(done.get(place, 0), 0), f"first offset of {place}")
    print(counts)


def rebalance(folder, name, seed, properties):
    job = Processes(folder, 2000, seed=seed, name=name)
    options = {"work_ms": 5, "properties": {**e2e.STEADY_SESSION, **properties}}
    first = job.start(**options)
    first.wait_settled(500)
    second = job.start(**options)
    e2e.wait_for("partitions shared", lambda: job.partitions_of_members() == [12, 12])
    # Joining may have taken longer than the first one needed for all there was.
    job.produce(500)
    second.wait_settled(300)
    check_equal(first.stop(), 0, "exit code of the one that leaves")
    check_equal(job.lag(e2e.PATIENCE_S), 0, "lag")
    check_equal(second.stop(), 0, "exit code of the one that stays")
    return job.check_all()


@test
def messages_in_hand_when_a_second_member_joins_are_not_lost(folder):
    counts = rebalance(folder, "eager", SEED + 3, {})
    check(counts["stale"] > 0, "no message was in hand when partitions were taken away")
    print(counts)


@test
def a_second_member_may_join_cooperatively(folder):
    print(rebalance(folder, "cooperative", SEED + 4,
                    {"partition.assignment.strategy": "cooperative-sticky"}))


@test
def nothing_is_lost_when_workers_and_a_member_are_killed(folder):
    job = Processes(folder, 2000, seed=SEED + 5, name="kills")
    first = job.start(work_ms=2, properties=e2e.SHORT_SESSION)
    for share in (8, 6, 4):
        first.wait_settled(job.total // share)
        job.kill_worker(first)
    first.wait_settled(job.total // 3)
    first.kill()
    second = job.start(work_ms=2, properties=e2e.SHORT_SESSION)
    check_equal(job.lag(wait_s=e2e.PATIENCE_S), 0, "lag")
    check_equal(second.stop(), 0, "exit code after SIGTERM")
    print(dict(job.check_all(), workers_killed=job.workers_killed, members_killed=1))


@test
def a_message_that_kills_its_worker_is_charged_and_its_neighbours_are_not(folder):
    topic, tells = e2e.unique("crash"), [[]] * 40
    tells[7], tells[23] = ["crash"], ["crash", "ok"]
    admin("create", f"{topic},{topic}.dlq", 1)
    e2e.put([{"topic": topic, "key": f"k{number}", "value": json.dumps({"i": number, "do": tell})}
             for number, tell in enumerate(tells)])
    setting = e2e.config(topic, [topic], e2e.plugin_handler(log=folder), on_error="retry",
                         retry={"in_place": True, "max_attempts": 5,
                                "backoff": {"initial": "10ms", "max": "10ms", "jitter": "0ms"}})
    service = e2e.Service(setting, folder).start()
    service.wait_settled(len(tells))
    check_equal(service.stop(), 0, "exit code")
    e2e.check_all_committed(topic, [topic])
    dead = {record["key"]: e2e.headers_of(record) for record in admin("read", f"{topic}.dlq")}
    check_equal(list(dead), ["k7"], "dead letters")
    for word in ("SIGSEGV", "crash 3 of this message", "going down"):
        check(word in dead["k7"]["x-error-reason"], f"no {word!r} in {dead}")
    check_equal(dead["k7"]["x-retry-attempt"], "3", "attempts: only crashes alone are charged")
    runs = {}
    for run in e2e_judge.read_runs(folder, {}):
        runs.setdefault(run.key, []).append(run.attempt)
    check_equal(runs.pop("k23"), [1, 1, 2], "attempts of the one that crashes its first one")
    check_equal(set(runs.pop("k7")), {1, 2, 3}, "attempts of the dead one")
    check_equal({len(each) for each in runs.values()}, {1}, "runs of their neighbours")


if __name__ == "__main__":
    e2e.run()
