#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""manners.py HOW [FILE]: handlers for the test of `laneway handler check`, most with one fault.

They speak the protocol that LANEWAY_PROTOCOL says, lines or frames.
"""
import fcntl
import json
import os
import signal
import sys
import threading
import time

HOW = sys.argv[1]
FILE = sys.argv[2] if len(sys.argv) > 2 else ""
FRAMED = os.environ["LANEWAY_PROTOCOL"] == "frames" and HOW != "lines-always"
OUT = os.fdopen(int(os.environ["LANEWAY_FD"]), "w") if HOW == "descriptor" else sys.stdout
HELD = []
LOCK = threading.Lock()


def say(answer, flush=True):
    text = json.dumps(answer)
    with LOCK:
        if not FRAMED:
            print(text, file=OUT, flush=flush)
            return
        order = "little" if HOW == "lowest-first" else "big"
        size = len(text) + (5 if HOW == "long-lengths" and "id" in answer else 0)
        OUT.buffer.write(size.to_bytes(4, order) + text.encode())
        if flush:
            OUT.buffer.flush()


def begin():
    match HOW:
        case "exits":
            print("config.ini: no such file", file=sys.stderr, flush=True)
            sys.exit(2)
        case "silent":
            time.sleep(200)
        case "early":
            say({"id": 1, "result": "ok"})
        case "prints" | "descriptor":
            print("loading the model", flush=True)
        case "locks":
            lock = open(FILE, "w", encoding="ascii")
            HELD.append(lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        case "brood":
            if os.fork() == 0:
                time.sleep(200)
        case "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready = {"future": {"protocol": 2}, "no-object": True}.get(HOW, {"protocol": 1})
    if HOW == "no-newline":
        print(json.dumps({"ready": ready}), end="", flush=True)
    else:
        say({"ready": ready}, flush=HOW not in ("buffered", "buffered-and-slow"))
    if HOW == "closes":
        OUT.flush()
        os.close(OUT.fileno())
        time.sleep(200)


def answer(message):
    reply = {"id": message["id"], "result": "ok"}
    match HOW:
        case "wrong-ids":
            reply["id"] += 1000
        case "text-ids":
            reply["id"] = str(reply["id"])
        case "short-ids":
            reply["id"] &= 0xFFFFFFFF
        case "twice":
            say(reply)
        case "needs-value":
            message["value"].upper()
        case "needs-text":
            message.get("value", "").encode()
            if "value_b64" in message:
                raise ValueError("what is value_b64?")
        case "no-result":
            reply["result"] = "fine"
        case "bad-reply":
            reply["reply"] = {"confirmed": 7}
        case "strict":
            unknown = [name for name in message if name.startswith("x-")]
            if unknown:
                raise ValueError(f"unknown fields: {unknown}")
        case "dead":
            reply = {"id": message["id"], "result": "dead", "reason": "I like nothing"}
        case "plain-headers":
            "".join(message["headers"].values())
    return reply


def late(message):
    time.sleep(1)
    say(answer(message))


def handle(message):
    if HOW == "extends" and not HELD:
        HELD.append(message)
        say({"id": message["id"], "extend": "120s"})
        time.sleep(8)
    if HOW == "lazy":
        threading.Thread(target=late, args=(message,), daemon=True).start()
        return
    say(answer(message), flush=HOW != "buffered-answers")
    if HOW in ("single", "single-and-slow"):
        time.sleep(0.5 if HOW == "single-and-slow" else 0)
        os._exit(0)


def read_frames():
    """As lines, with the bytes behind the headers as text, or in base64."""
    read = sys.stdin.buffer.read
    while length := read(4):
        message = json.loads(read(int.from_bytes(length, "big")))
        for name in ("key", "value"):
            if f"{name}_len" in message:
                data = read(message[f"{name}_len"])
                message[name] = data.decode(errors="replace")
        yield json.dumps(message)


def read_lines():
    """Lines; with a fault in how they are read."""
    if HOW == "short-lines":
        while line := sys.stdin.readline(65536):
            yield line
    elif FRAMED:
        yield from read_frames()
    elif HOW == "forgets":
        # Takes what is there for one line, as a program with a socket's habits.
        while data := os.read(0, 1 << 24):
            yield data.decode().split("\n")[0] + "\n"
    else:
        yield from sys.stdin


for text in read_lines():
    message = json.loads(text)
    if "hello" in message:
        begin()
    else:
        handle(message)
if HOW == "endless":
    time.sleep(200)
if HOW == "buffered-and-slow":
    time.sleep(3)
if HOW == "babbling":  # as one that takes the end of its input for an empty line, and is fast
    os.execvp("yes", ["yes", json.dumps({"id": 1, "result": "dead", "reason": "no JSON"})])
sys.exit(3 if HOW == "exit-code" else 0)
