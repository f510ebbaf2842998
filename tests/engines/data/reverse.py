#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reverse.py: collects as many messages as its window, then answers them last first, at once."""
import json
import sys

held = []
window = 1
for line in sys.stdin:
    message = json.loads(line)
    if "hello" in message:
        window = message["hello"]["window"]
        print(json.dumps({"ready": {"protocol": 1, "concurrent": True}}), flush=True)
        continue
    held.append(message["id"])
    if len(held) == window:
        answers = (json.dumps({"id": number, "result": "ok"}) for number in reversed(held))
        print("\n".join(answers), flush=True)
        held = []
