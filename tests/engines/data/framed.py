#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""framed.py HOW: programs for protocol frames with one odd manner each.

  eager    says ready before it was spoken to
  future   speaks protocol 2
  early    answers the first message when it has its header, reads the payload only then, and
           answers the second with the size and the last byte of the first
"""
import json
import sys

HOW = sys.argv[1]
READ = sys.stdin.buffer.read


def say(header, tail=b""):
    text = json.dumps(header).encode()
    sys.stdout.buffer.write(len(text).to_bytes(4, "big") + text + tail)
    sys.stdout.buffer.flush()


def read_header():
    length = READ(4)
    return json.loads(READ(int.from_bytes(length, "big"))) if length else None


if HOW == "eager":
    say({"ready": {"protocol": 1}})
read_header()
say({"ready": {"protocol": 2 if HOW == "future" else 1}})
first = None
while message := read_header():
    if first is None:
        say({"id": message["id"], "result": "ok"})
    first_now = READ(message.get("key_len", 0)) + READ(message.get("value_len", 0))
    if first is not None:
        reply = f"{len(first) - 1} {chr(first[-1])}".encode()
        say({"id": message["id"], "result": "ok", "reply_len": len(reply)}, reply)
    first = first_now
