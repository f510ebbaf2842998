#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pool.py: a handler that works on several messages at once, for work that waits.

Says `concurrent`, so that the clock of each message starts when it is handed over; set `window` of
the handler to the number of messages that one process may hold. It answers on descriptor 3, so
that a print somewhere in a library does no harm. Replace `work`.
"""
import concurrent.futures
import json
import os
import sys
import threading

answers = os.fdopen(int(os.environ["LANEWAY_FD"]), "w")
lock = threading.Lock()


class Retry(Exception):
    """May work later."""


def work(message):
    order = json.loads(message["value"])
    if order.get("busy"):
        raise Retry("the shop is busy")
    return json.dumps({"confirmed": order["id"]})


def say(answer):
    with lock:
        print(json.dumps(answer), file=answers, flush=True)


def handle(message):
    answer = {"id": message["id"], "result": "ok"}
    try:
        answer["reply"] = work(message)
    except Retry as why:
        answer |= {"result": "retry", "reason": str(why), "delay": "2s"}
    except (KeyError, ValueError) as why:
        answer |= {"result": "dead", "reason": f"bad order: {why}"}
    except Exception as why:  # pylint: disable=broad-except
        answer |= {"result": "error", "reason": repr(why)}
    say(answer)


hello = json.loads(sys.stdin.readline())["hello"]
say({"ready": {"protocol": 1, "concurrent": True}})
with concurrent.futures.ThreadPoolExecutor(max_workers=hello["window"]) as pool:
    for line in sys.stdin:
        pool.submit(handle, json.loads(line))
