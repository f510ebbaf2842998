#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""batch.py [how]: a program that takes several messages at once, in lines or frames.

Each message says what becomes of it: ok, retry WHY, dead WHY, reply TEXT, die; flaky TEXT is a retry
at first, then that reply. `how` changes its
manners: one (a single verdict for all, the first that is not ok), short and long (a result too few,
one too many), old (does not say that it takes batches).
"""
import json
import os
import sys

HOW = sys.argv[1] if len(sys.argv) > 1 else ""
FRAMED = os.environ["LANEWAY_PROTOCOL"] == "frames"
IN = sys.stdin.buffer
OUT = sys.stdout.buffer


def say(header, tail=b""):
    text = json.dumps(header).encode()
    OUT.write(len(text).to_bytes(4, "big") + text + tail if FRAMED else text + b"\n")
    OUT.flush()


def hear():
    """The next object, the values of its messages put in; None at the end."""
    if not FRAMED:
        line = IN.readline()
        return json.loads(line) if line else None
    size = IN.read(4)
    if not size:
        return None
    item = json.loads(IN.read(int.from_bytes(size, "big")))
    for message in item.get("messages", []):
        for name in ("key", "value"):
            if name + "_len" in message:
                message[name] = IN.read(message[name + "_len"]).decode()
    return item


def result_of(message):
    """The result of one message and the bytes that belong behind the header."""
    word, _, rest = message["value"].partition(" ")
    if word == "die":
        os._exit(9)
    if word == "ok":
        return "ok", b""
    if word == "flaky" and message["attempt"] == 1:
        return {"result": "retry", "reason": "not yet", "delay": "1ms"}, b""
    word = "reply" if word == "flaky" else word
    if word == "reply" and FRAMED:
        data = rest.encode()
        return {"result": "ok", "reply_len": len(data)}, data
    if word == "reply":
        return {"result": "ok", "reply": rest}, b""
    return {"result": word, "reason": rest}, b""


def answer(item):
    pairs = [result_of(message) for message in item["messages"]]
    results = [pair[0] for pair in pairs]
    if HOW == "one":
        bad = [result for result in results if result != "ok"]
        say({"id": item["id"], **(bad[0] if bad else {"result": "ok"})})
        return
    if HOW == "short":
        results = results[:-1]
        pairs = pairs[:-1]
    if HOW == "long":
        results.append("ok")
    say({"id": item["id"], "results": results}, b"".join(pair[1] for pair in pairs))


hello = hear()["hello"]
assert hello["batch"]["verdict"] == ("one" if HOW == "one" else "each"), hello
say({"ready": {"protocol": 1, "batch": HOW != "old"}})
item = hear()
while item is not None:
    answer(item)
    item = hear()
