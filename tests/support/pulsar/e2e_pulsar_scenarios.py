# SPDX-License-Identifier: Apache-2.0
"""What is done to a job on Pulsar, few times in tests/pulsar and often in tests/long. Each drains
the job, stops its members, judges it, and returns what was counted."""
import time

import e2e_pulsar as e2e
import e2e_judge
from e2e_lanes import Lanes
from e2e_pulsar import check, check_equal
from e2e_pulsar_job import Job, unfinished_of

# The broker writes a cursor down once a second (managedLedgerDefaultMarkDeleteRateLimit); what was
# acknowledged since is forgotten with it. And half a second for a busy machine.
CURSOR_NS = 1_500_000_000


def six_lanes(folder, count, are_scarce=False, work_s=0):
    """The six-lane example, undisturbed: exact counts, and order by priority."""
    job = Lanes(folder, count, work_s=work_s)
    begin = time.monotonic()
    member = job.start()
    member.wait_settled(job.expected_settled())
    seconds = time.monotonic() - begin
    job.wait_done()
    check_equal(member.stop(), 0, "exit code after SIGTERM")
    counts = {"orders": job.count, **job.check_outcomes(), **job.check_retries(),
              **job.check_order_of_service(member, are_scarce)}
    return dict(counts, lost=0, duplicates=0, inversions_at_decision=0, seconds=round(seconds, 1))


def kill_members(folder, count, kills, chance, seed):
    """One of three members of a shared subscription is killed, so many times."""
    job = Job(folder, count, seed=seed, name="members")
    options = {"work_ms": 2, "workers": 4}
    members = [job.start(**options) for _ in range(3)]
    for turn in range(kills):
        job.wait_runs(job.total * (turn + 1) // (kills + 2))
        job.kill(members.pop(chance.randrange(3)))
        members.append(job.start(**options))
    job.wait_done()
    job.stop_all()
    return dict(job.check_all(), members_killed=kills)


def kill_broker(folder, count, kills, seed):
    """The broker is killed and restarted under two members, so many times."""
    job = Job(folder, count, seed=seed, name="outage")
    members = [job.start(work_ms=2, workers=4) for _ in range(2)]
    deaths = []
    for turn in range(kills):
        job.wait_runs(job.total * (turn + 1) // (kills + 2))
        deaths.append(fell_down(members))
    job.wait_done()
    check(all(member.is_alive() for member in members), "the members are the same")
    job.stop_all()
    histories = [e2e_judge.read_history(member.history) for member in members]
    bound = sum(unfinished_of(history, when, CURSOR_NS)
                for history in histories for when in deaths)
    return dict(job.check_all(bound), brokers_killed=kills)


def fell_down(members):
    """Kills the broker and brings it back; returns when it died."""
    seen = [len(member.lines) for member in members]
    when = time.monotonic_ns()
    e2e.broker("kill")
    for member, start in zip(members, seen):
        member.wait_log("broker.down", start=start)
    e2e.broker("restart")
    for member, start in zip(members, seen):
        member.wait_log("broker.up", start=start)
    return when
