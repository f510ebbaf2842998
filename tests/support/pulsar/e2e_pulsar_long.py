# SPDX-License-Identifier: Apache-2.0
"""e2e_pulsar_long.py SCENARIO SEED MINUTES: a job on a Pulsar of its own, again and again with
other seeds until the time is over. The last line is what tools/long reads."""
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support/pulsar"))
os.environ.setdefault("LANEWAY_BROKER_DIR", str(ROOT / "build/broker/long"))
import e2e_pulsar as e2e  # noqa: E402
import e2e_pulsar_scenarios as scenarios  # noqa: E402

SCENARIOS = {
    "pulsar-six-lanes": lambda folder, seed: scenarios.six_lanes(folder, 60000),
    "pulsar-kill-members": lambda folder, seed: scenarios.kill_members(
        folder, 33400, 10, random.Random(seed), seed),
    "pulsar-broker-restart": lambda folder, seed: scenarios.kill_broker(folder, 20000, 2, seed),
}


def one_round(scenario, seed):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="laneway-long-"))
    begin = time.monotonic()
    try:
        counts = scenario(folder, seed)
        for topic in e2e.admin().topics("public/default"):
            e2e.admin().delete(topic)
    except Exception:  # noqa: B902
        print(f"FAILED seed {seed}, see {folder}", file=sys.stderr)
        traceback.print_exc()
        e2e.show_logs()
        return None
    finally:
        e2e.end_services()
    shutil.rmtree(folder, ignore_errors=True)
    print(f"seed {seed}: {json.dumps(counts)} in {time.monotonic() - begin:.0f} s", flush=True)
    return counts


def start_broker():
    os.environ.pop("PULSAR_URL", None)
    os.environ.setdefault("LANEWAY_BROKER_OWNER", str(os.getpid()))
    url = e2e.broker("start")
    os.environ["PULSAR_ADMIN_URL"] = e2e.broker("address", "--admin")
    os.environ["PULSAR_URL"] = url


def main():
    scenario, seed = SCENARIOS[sys.argv[1]], int(sys.argv[2])
    until = time.monotonic() + float(sys.argv[3]) * 60
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    start_broker()
    sums, longest, used = {"failed": 0}, 0.0, 0
    try:
        while used == 0 or time.monotonic() + longest < until and not sums["failed"]:
            begin = time.monotonic()
            counts = one_round(scenario, seed + used)
            sums["failed"] += counts is None
            for name, value in (counts or {}).items():
                sums[name] = sums.get(name, 0) + value
            used, longest = used + 1, max(longest, time.monotonic() - begin)
    finally:
        e2e.broker("stop")
    print(json.dumps({"seeds": used, **sums}), flush=True)
    return 1 if sums["failed"] else 0


if __name__ == "__main__":
    os._exit(main())  # the official client may abort a process that ends by itself
