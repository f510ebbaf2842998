#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""spool_crash.py [--moments N] [--seed S] [--minutes M]: SIGKILL while a spool is worked on.

An owner publishes, receives, acknowledges and gives back; a guest publishes through it, or comes
first and leaves the file to the owner. Again and again one or both are killed at a random moment,
then the file is checked. In the end everything is read out. Judged by the journals of all processes: whatever was confirmed and not acknowledged came;
nothing came that nobody sent; nothing came that was not bit for bit what was sent.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(os.environ["BUILD_DIR"]) / "tests/support/spool"
PATIENCE_S = 120
IDS = 1000000


class Job:
    def __init__(self, arguments):
        self.random = random.Random(arguments.seed)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="laneway-crash-"))
        self.path = self.folder / "crash.db"
        self.processes = 0
        self.kills = collections.Counter()

    def start(self, mode):
        self.processes += 1
        journal = self.folder / f"journal.{self.processes}"
        process = subprocess.Popen(
            [PROGRAM, mode, self.path, journal, str(self.processes * IDS + 1),
             str(self.random.getrandbits(30) + 1)], stdout=subprocess.PIPE, text=True)
        if process.stdout.readline() != "up\n":
            raise SystemExit(f"{mode} did not start: exit code {process.wait(PATIENCE_S)}")
        return process

    def check_file(self):
        with sqlite3.connect(self.path) as database:
            said = database.execute("PRAGMA integrity_check").fetchall()
            twice = database.execute("SELECT count(*) FROM unsettled u JOIN position p ON "
                                     "p.id = u.position_id WHERE u.offset >= p.next").fetchone()
        database.close()
        if said != [("ok",)] or twice != (0,):
            raise SystemExit(f"the file is damaged: {said[:3]}, rows behind next: {twice}")

    def kill(self, process, name):
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
        self.kills[name] += 1

    def end(self, process):
        process.send_signal(signal.SIGTERM)
        code = process.wait(PATIENCE_S)
        if code != 0:
            raise SystemExit(f"an orderly end failed: exit code {code}")

    def moment(self):
        """One owner's life, with one moment at least; returns how many moments it had."""
        if self.random.random() < 0.5:
            owner, guest = self.start("own"), self.start("write")
        else:  # the publisher has the file, and leaves it to the reader
            guest, owner = self.start("write"), self.start("own")
        time.sleep(self.random.uniform(0.005, 0.25))
        moments = 1
        if self.random.random() < 0.4:
            self.kill(guest, "guest")
            guest = self.start("write")
            time.sleep(self.random.uniform(0.005, 0.1))
            moments += 1
        self.kill(owner, "owner")
        self.end(guest)
        self.check_file()
        return moments

    def finish(self):
        process = self.start("drain")
        code = process.wait(PATIENCE_S)
        if code != 0:
            raise SystemExit(f"the last reader failed: exit code {code}")
        self.check_file()

    def judge(self):
        ids = collections.defaultdict(set)
        counts = collections.Counter()
        for journal in self.folder.glob("journal.*"):
            for line in journal.read_text().splitlines():
                what, _, number = line.partition(" ")
                ids[what].add(int(number))
                counts[what] += 1
        lost = ids["P"] - ids["A"]
        invented = ids["R"] - ids["T"]
        return {"confirmed": len(ids["P"]), "received": counts["R"],
                "again": counts["R"] - len(ids["R"]), "kills_owner": self.kills["owner"],
                "kills_guest": self.kills["guest"], "lost": len(lost),
                "invented": len(invented), "wrong": counts["B"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(20))
    arguments = parser.parse_args()
    if not PROGRAM.exists():
        print("built without the spool", file=sys.stderr)
        return 77
    print(f"seed {arguments.seed}", flush=True)
    until = time.monotonic() + arguments.minutes * 60 if arguments.minutes else float("inf")
    job = Job(arguments)
    moments = 0
    while moments < arguments.moments and time.monotonic() < until:
        moments += job.moment()
    job.finish()
    counts = {"seeds": 1, "moments": moments, **job.judge()}
    counts["failed"] = counts["lost"] + counts["invented"] + counts["wrong"]
    is_worthless = counts["confirmed"] < moments or counts["again"] == 0
    print(json.dumps(counts))
    if counts["failed"] == 0 and not is_worthless:
        shutil.rmtree(job.folder)
        return 0
    print(f"kept: {job.folder}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
