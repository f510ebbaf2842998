# SPDX-License-Identifier: Apache-2.0
"""The broker is killed with SIGKILL in the middle of the job and comes back: the members connect
again by themselves, nothing is lost, and no more runs twice than was in hand, or acknowledged so
late that the broker had not yet written it down. E2E_SEED, E2E_MESSAGES (per topic), E2E_KILLS."""
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
import e2e_judge  # noqa: E402
from e2e_pulsar import check, test  # noqa: E402
from e2e_pulsar_job import Job, unfinished_of  # noqa: E402

SEED = int(os.environ.get("E2E_SEED", "1"))
COUNT = int(os.environ.get("E2E_MESSAGES", "10000"))
KILLS = int(os.environ.get("E2E_KILLS", "1"))
# The broker writes a cursor down once a second (managedLedgerDefaultMarkDeleteRateLimit); what was
# acknowledged since is forgotten with it.
CURSOR_NS = 1_500_000_000


@test
def nothing_is_lost_when_the_broker_is_killed(folder):
    job = Job(folder, COUNT, seed=SEED, name="outage")
    members = [job.start(work_ms=2, workers=4) for _ in range(2)]
    deaths = []
    for turn in range(KILLS):
        job.wait_runs(job.total * (turn + 1) // (KILLS + 2))
        seen = [len(member.lines) for member in members]
        deaths.append(time.monotonic_ns())
        e2e.broker("kill")
        for member, start in zip(members, seen):
            member.wait_log("broker.down", start=start)
        e2e.broker("restart")
        for member, start in zip(members, seen):
            member.wait_log("broker.up", start=start)
    job.wait_done()
    check(all(member.is_alive() for member in members), "the members are the same")
    job.stop_all()
    histories = [e2e_judge.read_history(member.history) for member in members]
    bound = sum(unfinished_of(history, when, CURSOR_NS)
                for history in histories for when in deaths)
    print(dict(job.check_all(bound), brokers_killed=KILLS, seed=SEED))


if __name__ == "__main__":
    e2e.run()
