# SPDX-License-Identifier: Apache-2.0
"""e2e_pulsar_long.py SCENARIO SEED MINUTES: a job on a Pulsar of its own, again and again with
other seeds until the time is over. The last line is what tools/long reads."""
import os
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support/pulsar"))
os.environ.setdefault("LANEWAY_BROKER_DIR", str(ROOT / "build/broker/long"))
import e2e_pulsar as e2e  # noqa: E402
import e2e_pulsar_scenarios as scenarios  # noqa: E402
import e2e_rounds  # noqa: E402

SCENARIOS = {
    "pulsar-six-lanes": lambda folder, seed: scenarios.six_lanes(folder, 60000),
    "pulsar-kill-members": lambda folder, seed: scenarios.kill_members(
        folder, 33400, 10, random.Random(seed), seed),
    "pulsar-broker-restart": lambda folder, seed: scenarios.kill_broker(folder, 20000, 2, seed),
}


def with_clean_topics(scenario):
    """The same, leaving no topic behind."""
    def run(folder, seed):
        counts = scenario(folder, seed)
        for topic in e2e.admin().topics("public/default"):
            e2e.admin().delete(topic)
        return counts
    return run


def start_broker():
    os.environ.pop("PULSAR_URL", None)
    os.environ.setdefault("LANEWAY_BROKER_OWNER", str(os.getpid()))
    url = e2e.broker("start")
    os.environ["PULSAR_ADMIN_URL"] = e2e.broker("address", "--admin")
    os.environ["PULSAR_URL"] = url


def main():
    return e2e_rounds.run(with_clean_topics(SCENARIOS[sys.argv[1]]), int(sys.argv[2]),
                          float(sys.argv[3]), start_broker, lambda: e2e.broker("stop"))


if __name__ == "__main__":
    os._exit(main())  # the official client may abort a process that ends by itself
