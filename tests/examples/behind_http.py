#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""behind_http.py: the example of a service behind HTTP. Counts are exact."""
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import memory_service  # noqa: E402
from memory_service import expect, values  # noqa: E402


def payments():
    """90 good ones, 6 that fail once, 2 that always fail, 2 without an account."""
    for number in range(100):
        payment = {"account": f"a-{number % 7}", "amount": number}
        if number >= 90:
            payment["busy"] = 1 if number < 96 else 99
        if number >= 98:
            payment = {"amount": number}
        yield {"topic": "payments", "key": payment.get("account", "none"),
               "value": json.dumps(payment)}


def check(folder, port):
    changes = {"http://127.0.0.1:8080/charge": f"http://127.0.0.1:{port}/charge",
               "initial: 1s, max: 10s": "initial: 5ms, max: 5ms"}
    published, _ = memory_service.run(folder, "payments.yaml", "payments", ["payments"], payments(),
                                      changes)
    receipts = [json.loads(value)["charged"] for value in values(published, "receipts")]
    expect("receipts", sorted(receipts), list(range(96)))
    dead = [m for m in published if m["topic"] == "payments.dead"]
    expect("dead letters", len(dead), 4)
    reasons = sorted(m["headers"]["x-error-reason"] for m in dead)
    expect("bad payments", sum("bad payment" in reason for reason in reasons), 2)
    print(f"http: 100 payments, {len(receipts)} receipts, {len(dead)} dead")


def main():
    folder = memory_service.copy_of(memory_service.ROOT / "examples" / "http")
    with subprocess.Popen([sys.executable, folder / "charge.py", "0"], stdout=subprocess.PIPE,
                          text=True) as service:
        try:
            check(folder, service.stdout.readline().split()[-1])
        finally:
            service.kill()
            shutil.rmtree(folder)


main()
