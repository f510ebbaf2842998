# SPDX-License-Identifier: Apache-2.0
"""The main job on a real Kafka: 100,000 messages undisturbed, and one with a member and the
broker killed in the middle. Arguments: names of tests; E2E_SEED, E2E_MESSAGES (per topic)."""
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import e2e  # noqa: E402
from e2e import check, check_equal, test  # noqa: E402
from e2e_job import Job  # noqa: E402

SEED = int(os.environ.get("E2E_SEED", "1"))
COUNT = int(os.environ.get("E2E_MESSAGES", "33400"))


@test
def everything_is_handled_once_in_order_and_by_priority(folder):
    job = Job(folder, COUNT, seed=SEED)
    begin = time.monotonic()
    member = job.start()
    member.wait_settled(job.total)
    seconds = time.monotonic() - begin
    check_equal(member.stop(), 0, "exit code after SIGTERM")
    counts = job.check_all()
    check_equal(counts["duplicates"], 0, "duplicates")
    inverted, judged = job.check_inversions(member)
    counts.update(inversions_at_decision=0, inversions_of_backlog=inverted,
                  lower_starts_judged=judged, seconds=round(seconds, 1), seed=SEED)
    print(counts)


@test
def nothing_is_lost_when_a_member_and_the_broker_are_killed(folder):
    job = Job(folder, 10000, seed=SEED + 1, name="kills")
    first = job.start(work_ms=0.5, workers=4, properties=e2e.SHORT_SESSION)
    first.wait_settled(job.total // 4)
    first.kill()
    second = job.start(work_ms=0.5, workers=4)
    second.wait_settled(job.total // 4)
    e2e.broker("kill")
    second.wait_log("broker.down")
    e2e.broker("restart")
    check_equal(job.lag(wait_s=e2e.PATIENCE_S), 0, "lag after the broker came back")
    check_equal(second.stop(), 0, "exit code after SIGTERM")
    counts = job.check_all()
    check(counts["runs"] >= job.total, "fewer runs than messages")
    print(dict(counts, members_killed=1, brokers_killed=1, seed=SEED + 1))


if __name__ == "__main__":
    e2e.run()
