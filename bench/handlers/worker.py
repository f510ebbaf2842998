#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""worker.py noop|nap|cpu: the least that a Python program does to be a handler, in the protocol
that LANEWAY_PROTOCOL names: what a bench of lines and frames runs."""
import hashlib
import json
import os
import sys
import time


def noop(value):
    return value


def nap(value):
    time.sleep(0.005)
    return value


def cpu(value):
    for _ in range(500):
        value = hashlib.sha256(value).digest()
    return value


def lines(work):
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "hello" in message:
            answer = {"ready": {"protocol": 1}}
        else:
            work(message["value"].encode())
            answer = {"id": message["id"], "result": "ok"}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def frames(work):
    source, target = sys.stdin.buffer, sys.stdout.buffer
    while size := source.read(4):
        message = json.loads(source.read(int.from_bytes(size, "big")))
        if "hello" in message:
            answer = {"ready": {"protocol": 1}}
        else:
            source.read(message.get("key_len") or 0)
            work(source.read(message.get("value_len") or 0))
            answer = {"id": message["id"], "result": "ok"}
        header = json.dumps(answer).encode()
        target.write(len(header).to_bytes(4, "big") + header)
        target.flush()


works = {"noop": noop, "nap": nap, "cpu": cpu}
{"lines": lines, "frames": frames}[os.environ.get("LANEWAY_PROTOCOL", "lines")](works[sys.argv[1]])
