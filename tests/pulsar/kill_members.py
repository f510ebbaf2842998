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
from e2e_pulsar_job import Job  # noqa: E402

SEED = int(os.environ.get("E2E_SEED", "1"))
COUNT = int(os.environ.get("E2E_MESSAGES", "10000"))
KILLS = int(os.environ.get("E2E_KILLS", "2"))


@test
def nothing_is_lost_when_members_are_killed(folder):
    job, chance = Job(folder, COUNT, seed=SEED, name="members"), random.Random(SEED)
    options = {"work_ms": 2, "workers": 4}
    members = [job.start(**options) for _ in range(3)]
    for turn in range(KILLS):
        job.wait_runs(job.total * (turn + 1) // (KILLS + 2))
        job.kill(members.pop(chance.randrange(3)))
        members.append(job.start(**options))
    job.wait_done()
    job.stop_all()
    print(dict(job.check_all(), members_killed=KILLS, seed=SEED))


if __name__ == "__main__":
    e2e.run()
