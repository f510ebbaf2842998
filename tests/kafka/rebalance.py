# SPDX-License-Identifier: Apache-2.0
"""Members that come, go, and hold on to slow messages: nothing lost, nothing run out of order,
nobody thrown out of the group for a slow handler."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import e2e  # noqa: E402
import e2e_judge  # noqa: E402
from e2e import admin, check, check_equal, test  # noqa: E402


class Group:
    """A topic, its group, and what its members left behind."""

    def __init__(self, folder, name, partitions=4):
        self.folder, self.topic, self.members = folder, e2e.unique(name), []
        admin("create", self.topic, partitions)

    def start(self, name, properties=None, rules=(), work_ms=0.0, timeout="30s"):
        handler = e2e.handler(rules, work_ms, self.folder, timeout=timeout)
        setting = e2e.config(self.topic, [self.topic], handler,
                             properties={**e2e.SHORT_SESSION, **(properties or {})})
        member = e2e.Service(setting, self.folder, name).start()
        self.members.append(member)
        return member

    def partitions_of(self):
        state = admin("members", self.topic)
        return sorted(len(member["partitions"]) for member in state[1:])

    def wait_shared(self, counts):
        e2e.wait_for(f"partitions shared as {counts}", lambda: self.partitions_of() == counts)

    def drain_lag(self, wait_s=e2e.PATIENCE_S):
        lag = admin("lag", self.topic, self.topic, "--wait", wait_s)[0]
        check_equal(lag, 0, "lag")

    def judge(self, count):
        histories = {m.pid: e2e_judge.read_history(m.history) for m in self.members}
        runs = e2e_judge.read_runs(self.folder, histories)
        places = {(run.partition, run.offset) for run in runs}
        check_equal(len(places), count, "messages that ran")
        check_equal(e2e_judge.order_faults(runs)[:3], [], "order violations")
        found, bound = e2e_judge.duplicates_of(runs), e2e_judge.duplicates_bound(histories)
        check(found <= bound, f"{found} duplicates, the bound is {bound}")
        print(f"{count} messages, {len(runs)} runs, {found} duplicates, bound {bound}")
        return runs


def share_and_leave(folder, name, properties):
    group = Group(folder, name)
    admin("produce", group.topic, 6000)
    first = group.start("first", properties, work_ms=1)
    first.wait_settled(500)
    second = group.start("second", properties, work_ms=1)
    group.wait_shared([2, 2])
    # Joining may have taken longer than the first one needed for all there was.
    admin("produce", group.topic, 6000, "--first", 6000)
    second.wait_settled(300)
    check_equal(first.stop(), 0, "exit code of the one that leaves")
    group.drain_lag()
    check_equal(second.stop(), 0, "exit code of the one that stays")
    group.judge(12000)


@test
def two_members_share_and_one_leaves(folder):
    share_and_leave(folder, "eager", {})


@test
def two_cooperative_members_share_and_one_leaves(folder):
    share_and_leave(folder, "cooperative",
                    {"partition.assignment.strategy": "cooperative-sticky"})


@test
def a_rebalance_during_drain_loses_nothing(folder):
    group = Group(folder, "drain")
    admin("produce", group.topic, 400)
    first = group.start("first", work_ms=300)
    first.wait_status("slots busy", lambda s: s["slots_busy"] >= 2)
    first.process.terminate()
    first.wait_log("service.draining")
    second = group.start("second", work_ms=1)
    check_equal(first.code(), 0, "exit code of the one that drains")
    group.drain_lag()
    check_equal(second.stop(), 0, "exit code of the second member")
    group.judge(400)


@test
def a_slow_handler_keeps_its_member_in_the_group(folder):
    group = Group(folder, "slow", partitions=1)
    session = {"session.timeout.ms": "3000"}
    member = group.start("slow", session, rules=[[10, 0, ["sleep:10"]]])
    group.wait_shared([1])
    before = admin("members", group.topic)[1]["member"]
    admin("produce", group.topic, 10)
    member.wait_settled(10)
    check_equal(admin("members", group.topic)[1]["member"], before, "member of the group")
    for event in ("assignment.lost", "kafka.max_poll", "revoke.uncommitted"):
        check(member.find(event) is None, f"no {event}: {member.find(event)}")
    check_equal(member.stop(), 0, "exit code")
    runs = group.judge(10)
    slowest = max(run.end - run.start for run in runs) / 1e9
    check(slowest >= 3 * 3.0, f"{slowest:.1f} s held for three sessions of 3 s")
    check_equal(len(runs), 10, "runs")


@test
def a_frozen_member_comes_back_without_harm(folder):
    import signal
    group = Group(folder, "frozen")
    admin("produce", group.topic, 3000)
    first = group.start("first", work_ms=1)
    first.wait_settled(300)
    first.process.send_signal(signal.SIGSTOP)
    second = group.start("second", work_ms=1)
    second.wait_settled(300)
    first.process.send_signal(signal.SIGCONT)
    first.wait_log("assignment.lost")
    group.drain_lag()
    check_equal([first.stop(), second.stop()], [0, 0], "exit codes")
    group.judge(3000)


if __name__ == "__main__":
    e2e.run()
