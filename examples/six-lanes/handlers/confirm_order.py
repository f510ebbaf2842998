#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Confirms orders such as {"id": 7}. {"id": 7, "fails": 2} fails twice before it works."""
import json
import sys


class TryLater(Exception):
    """May work later."""


def confirm(order, retries):
    if retries < order.get("fails", 0):
        raise TryLater("database timeout")
    return json.dumps({"confirmed": order["id"]})


for line in sys.stdin:
    message = json.loads(line)
    if "hello" in message:
        answer = {"ready": {"protocol": 1}}
    else:
        answer = {"id": message["id"], "result": "ok"}
        try:
            order = json.loads(message["value"])
            answer["reply"] = confirm(order, message.get("retries", 0))
        except TryLater as why:
            answer.update(result="retry", reason=str(why))
        except (KeyError, ValueError, TypeError, AttributeError) as why:
            answer.update(result="dead", reason=f"bad order: {why!r}")
    print(json.dumps(answer), flush=True)
