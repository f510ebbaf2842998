# SPDX-License-Identifier: Apache-2.0
"""A handler of protocol `lines` that writes each message down as it came and does what it asks.

$INTEROP_SEEN is the file: one JSON object a line, written before the answer; a value above 200
bytes is replaced by "digest", its size and hash. A header "do" asks for: reply (the value again),
dead, error, retry (until the third attempt).
"""
import base64
import hashlib
import json
import os
import sys

SEEN = os.open(os.environ["INTEROP_SEEN"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def value_of(message):
    if "value_b64" in message:
        return base64.b64decode(message["value_b64"])
    return message["value"].encode() if message.get("value") is not None else None


def note(message):
    seen, value = dict(message), value_of(message)
    if value is not None and len(value) > 200:
        seen.pop("value", None)
        seen.pop("value_b64", None)
        seen["digest"] = f"<{len(value)} bytes, {hashlib.sha256(value).hexdigest()[:16]}>"
    os.write(SEEN, json.dumps(seen).encode() + b"\n")


def answer_of(message):
    answer = {"id": message["id"], "result": "ok"}
    wanted = message.get("headers", {}).get("do", "ok")
    if wanted == "reply":
        answer.update({"reply": None} if value_of(message) is None else {
            "reply_b64": base64.b64encode(value_of(message)).decode()})
    elif wanted == "dead":
        answer.update(result="dead", reason="as asked")
    elif wanted == "error":
        answer.update(result="error", reason="as asked")
    elif wanted == "retry" and message.get("retries", 0) < 2:
        answer.update(result="retry", reason="as asked")
    return answer


def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "hello" in message:
            print(json.dumps({"ready": {"protocol": 1}}), flush=True)
            continue
        note(message)
        print(json.dumps(answer_of(message)), flush=True)


if __name__ == "__main__":
    main()
