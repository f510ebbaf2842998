#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a line for each event to standard error, which becomes part of the service's log.

An event is {"id": 7}. {"id": 7, "fails": 2} fails twice before it works; anything else is dead.
"""
import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    if "hello" in message:
        print(json.dumps({"ready": {"protocol": 1}}), flush=True)
        continue
    answer = {"id": message["id"], "result": "ok"}
    try:
        event = json.loads(message["value"])
        if message.get("retries", 0) < event.get("fails", 0):
            answer.update(result="retry", reason="the register is busy")
        else:
            print(f"{message['topic']}: {event['id']}", file=sys.stderr)
    except (KeyError, ValueError, TypeError, AttributeError) as why:
        answer.update(result="dead", reason=f"bad event: {why!r}")
    print(json.dumps(answer), flush=True)
