#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manners.py HOW [ARGUMENT]: programs with one bad habit each, for tests of faults.

  exits N          exits with N before it says ready
  silent           never says ready
  stubborn         never says ready and ignores TERM
  ready-exits      says ready and exits with 0
  future           speaks protocol 2
  no-object        its ready is no object
  early            answers before it is ready
  garbage          prints bytes, an endless line, blank lines, then behaves
  slow MS          says ready after a time
  once-broken FILE exits with 1 unless FILE exists, which it makes
  retires N        exits with 0 after N answers
  exhausted FILE   dies over two messages unless FILE exists, which it makes; then it answers one,
                   and dies when it has read another one
  wrong-ids        answers every message with an id that is not open
  deaf             says ready, then closes its input and sleeps
  hasty            says ready before it was spoken to
  lingers          has something to do at the end of its input, and says that it did it
  plain            has none
"""
import json
import os
import signal
import sys
import time

HOW = sys.argv[1]
ARGUMENT = sys.argv[2] if len(sys.argv) > 2 else ""


def say(answer):
    print(json.dumps(answer), flush=True)


def begin():
    if HOW == "exits":
        print("config.ini: no such file", file=sys.stderr, flush=True)
        sys.exit(int(ARGUMENT))
    elif HOW == "silent":
        time.sleep(3600)
    elif HOW == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("stubborn", file=sys.stderr, flush=True)
        time.sleep(3600)
    elif HOW == "early":
        say({"id": 1, "result": "ok"})
    elif HOW == "slow":
        time.sleep(int(ARGUMENT) / 1000)
    elif HOW == "garbage":
        sys.stdout.buffer.write(b"\xff\xfe\x00\x01\n\n\n" + b"x" * 3000000 + b"\n{}\n[1]\n17\n")
        sys.stdout.flush()
    elif HOW == "once-broken" and not os.path.exists(ARGUMENT):
        with open(ARGUMENT, "w", encoding="ascii"):
            pass
        sys.exit(1)
    ready = {"future": {"protocol": 2}, "no-object": "yes"}.get(HOW, {"protocol": 1})
    say({"ready": ready})
    if HOW == "ready-exits":
        sys.exit(0)
    if HOW == "deaf":
        os.close(0)
        time.sleep(3600)


if HOW == "hasty":
    say({"ready": {"protocol": 1}})
answered = 0
for line in sys.stdin:
    message = json.loads(line)
    if "hello" in message:
        begin()
        continue
    if HOW == "exhausted" and not os.path.exists(ARGUMENT):
        next(sys.stdin)
        with open(ARGUMENT, "w", encoding="ascii"):
            os._exit(1)
    say({"id": message["id"] + (1000 if HOW == "wrong-ids" else 0), "result": "ok"})
    answered += 1
    if HOW == "exhausted":
        os._exit(3 if next(sys.stdin, None) else 0)
    if HOW == "retires" and answered == int(ARGUMENT):
        sys.exit(0)
if HOW == "lingers":
    time.sleep(0.05)
    print("lingered", file=sys.stderr, flush=True)
