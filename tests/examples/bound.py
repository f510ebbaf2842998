#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bound.py: the examples of a handler that waits and of one that computes.

Each result is checked, and that the one that waits does so for many messages at once: with a
window of 64 the run takes less than half of what one after the other would take at best.
"""
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import memory_service  # noqa: E402
from memory_service import expect, values  # noqa: E402

COUNT = 400
WAIT_SECONDS = 0.05


def io_bound(folder):
    stream = [{"topic": "orders", "key": str(i),
               "value": json.dumps({"id": i, "item": "desk" if i % 2 else "lamp"})}
              for i in range(COUNT)]
    stream.append({"topic": "orders", "key": "x", "value": '{"id": 1, "item": "boat"}'})
    began = time.monotonic()
    published, _ = memory_service.run(folder, "prices.yaml", "prices", ["orders"], stream)
    took = time.monotonic() - began
    priced = sorted((p["id"], p["price"]) for p in map(json.loads, values(published, "priced")))
    expect("priced", priced, [(i, 150 if i % 2 else 19) for i in range(COUNT)])
    expect("dead letters", len(values(published, "orders.dead")), 1)
    if took > COUNT * WAIT_SECONDS / 2:
        raise AssertionError(f"{COUNT} waits of {WAIT_SECONDS} s took {took:.1f} s")
    print(f"io-bound: {COUNT} orders that wait for {WAIT_SECONDS} s each took {took:.1f} s")


def digest(value):
    for _ in range(500):
        value = hashlib.sha256(value).digest()
    return value.hex()


def cpu_bound(folder):
    check_digests(folder, "digests.yaml")
    subprocess.run(["cc", "-std=c17", "-O2", "-Wall", "-Werror", "-shared", "-fPIC",
                    f"-I{memory_service.ROOT / 'include'}", "-o", "digest.so", "digest.c",
                    "-lcrypto"], cwd=folder, check=True, timeout=280)
    check_digests(folder, "digests-c.yaml")


def check_digests(folder, config):
    stream = [{"topic": "documents", "value": f"document {i}"} for i in range(COUNT)]
    published, _ = memory_service.run(folder, config, "digests", ["documents"], stream)
    expect("digests", values(published, "digests"),
           sorted(digest(message["value"].encode()) for message in stream))
    print(f"cpu-bound: {COUNT} digests by {config}")


def main():
    for name, check in (("io-bound", io_bound), ("cpu-bound", cpu_bound)):
        folder = memory_service.copy_of(memory_service.ROOT / "examples" / name)
        try:
            check(folder)
        finally:
            shutil.rmtree(folder)


main()
