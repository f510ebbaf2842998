# SPDX-License-Identifier: Apache-2.0
"""One of three members of a shared subscription is killed, twice, on a real Pulsar: what it held
goes to the others, nothing is lost, and no more runs twice than it can have left unacknowledged.
E2E_SEED, E2E_MESSAGES (per topic), E2E_KILLS."""
import os
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support/pulsar"))
import e2e_pulsar as e2e  # noqa: E402
from e2e_pulsar import test  # noqa: E402
from e2e_pulsar_scenarios import kill_members  # noqa: E402

SEED = int(os.environ.get("E2E_SEED", "1"))
COUNT = int(os.environ.get("E2E_MESSAGES", "10000"))
KILLS = int(os.environ.get("E2E_KILLS", "2"))


@test
def nothing_is_lost_when_members_are_killed(folder):
    print(dict(kill_members(folder, COUNT, KILLS, random.Random(SEED), SEED), seed=SEED))


if __name__ == "__main__":
    e2e.run()
