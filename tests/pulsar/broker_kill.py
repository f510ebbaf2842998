# SPDX-License-Identifier: Apache-2.0
"""The broker is killed with SIGKILL in the middle of the job and comes back: the members connect
again by themselves, nothing is lost, and no more runs twice than was in hand, or acknowledged so
late that the broker had not yet written it down. E2E_SEED, E2E_MESSAGES (per topic), E2E_KILLS."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
from e2e_pulsar import test  # noqa: E402
from e2e_pulsar_scenarios import kill_broker  # noqa: E402

SEED = int(os.environ.get("E2E_SEED", "1"))
COUNT = int(os.environ.get("E2E_MESSAGES", "10000"))
KILLS = int(os.environ.get("E2E_KILLS", "1"))


@test
def nothing_is_lost_when_the_broker_is_killed(folder):
    print(dict(kill_broker(folder, COUNT, KILLS, SEED), seed=SEED))


if __name__ == "__main__":
    e2e.run()
