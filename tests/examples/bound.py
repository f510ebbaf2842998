#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bound.py: the examples of a handler that waits and of one that computes.

Each result is checked, and that the one that waits does so for many messages at once: with its
window of 64 the run takes less than half of what a window of 1 would, by a run of a few messages on
the same machine at the same time.
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
FEW = 40


def orders(count):
    return [{"topic": "orders", "key": str(i),
             "value": json.dumps({"id": i, "item": "desk" if i % 2 else "lamp"})}
            for i in range(count)]


def timed(*arguments):
    """(what was published, seconds)"""
    began = time.monotonic()
    published, _ = memory_service.run(*arguments)
    return published, time.monotonic() - began


def io_bound(folder):
    how = (folder, "prices.yaml", "prices", ["orders"])
    _, alone = timed(*how, orders(FEW), {"window: 64": "window: 1"})
    bad = {"topic": "orders", "key": "x", "value": '{"id": 1, "item": "boat"}'}
    published, took = timed(*how, [*orders(COUNT), bad])
    priced = sorted((p["id"], p["price"]) for p in map(json.loads, values(published, "priced")))
    expect("priced", priced, [(i, 150 if i % 2 else 19) for i in range(COUNT)])
    expect("dead letters", len(values(published, "orders.dead")), 1)
    if took > alone * (COUNT / FEW) / 2:
        raise AssertionError(f"{COUNT} at once took {took:.1f} s, {FEW} one by one {alone:.1f} s")
    print(f"io-bound: {COUNT} orders at once took {took:.1f} s, {FEW} one by one {alone:.1f} s")


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
