# SPDX-License-Identifier: Apache-2.0
"""Long jobs on a broker of their own: a scenario again and again with other seeds until the time is
over. scenario(folder, seed) returns counts; what it raises is a failed round, whose folder stays."""
import json
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import traceback

import e2e_base


def one_round(scenario, seed):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="laneway-long-"))
    begin = time.monotonic()
    try:
        counts = scenario(folder, seed)
    except Exception:  # noqa: B902
        print(f"FAILED seed {seed}, see {folder}", file=sys.stderr)
        traceback.print_exc()
        e2e_base.show_logs()
        return None
    finally:
        e2e_base.end_services()
    shutil.rmtree(folder, ignore_errors=True)
    print(f"seed {seed}: {json.dumps(counts)} in {time.monotonic() - begin:.0f} s", flush=True)
    return counts


def rounds(scenario, seed, minutes):
    """At least one round, and no other after one that failed; returns the sums of the counts."""
    until = time.monotonic() + minutes * 60
    sums, longest, used = {"failed": 0}, 0.0, 0
    while used == 0 or time.monotonic() + longest < until and not sums["failed"]:
        begin = time.monotonic()
        counts = one_round(scenario, seed + used)
        sums["failed"] += counts is None
        for name, value in (counts or {}).items():
            sums[name] = sums.get(name, 0) + value
        used, longest = used + 1, max(longest, time.monotonic() - begin)
    return {"seeds": used, **sums}


def run(scenario, seed, minutes, start, stop):
    """Prints what tools/long reads, as the last line; returns the exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    start()
    try:
        sums = rounds(scenario, seed, minutes)
    finally:
        stop()
    print(json.dumps(sums), flush=True)
    return 1 if sums["failed"] else 0
