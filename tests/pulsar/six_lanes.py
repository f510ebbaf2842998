# SPDX-License-Identifier: Apache-2.0
"""The six-lane order example on a real Pulsar, as `laneway init six-lanes` writes it: every order
is confirmed or dead-lettered once, retries are counted, and lanes are served by priority.
E2E_MESSAGES is the number of orders."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
from e2e_pulsar import test  # noqa: E402
from e2e_pulsar_scenarios import six_lanes  # noqa: E402

COUNT = int(os.environ.get("E2E_MESSAGES", "60000"))


@test
def every_order_is_confirmed_or_dead_lettered_once(folder):
    print(six_lanes(folder, COUNT))


@test
def a_backlog_is_served_by_priority_where_slots_are_scarce(folder):
    print(six_lanes(folder, 4000, are_scarce=True, work_s=0.005))


if __name__ == "__main__":
    e2e.run()
