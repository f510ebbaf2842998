# SPDX-License-Identifier: Apache-2.0
"""A handler of protocol `lines` for end-to-end tests: does what rules say, and writes down when.

E2E_LOG is a directory: one file per worker, one line as a run begins and one before its answer
is sent: what, topic, partition, offset, attempt, retries, monotonic ns, result, key, number "i",
redeliveries. A line is one write, so it survives any kill. E2E_RULES is a JSON list of [modulus, remainder, results]:
the first rule that fits the number "i" in the value gives the result of attempt 1, 2, ...; the
last one is repeated. A value may carry rules of its own under "do". Results: the verdicts ok,
retry, dead, drop, error; retry:DELAY; error-once (ok when the broker gives it again); reply (ok,
with a reply); output:TOPIC:DELAY (ok, and the value goes there); and what a broken handler does:
garbage, silent, twice, unknown, exit, sleep:SECONDS, big:BYTES (a reply of that size).
"""
import json
import os
import sys
import time

RULES = json.loads(os.environ.get("E2E_RULES", "[]"))
WORK_S = float(os.environ.get("E2E_WORK_MS", "0")) / 1000
LOG = -1
if "E2E_LOG" in os.environ:
    name = f"{os.environ['E2E_LOG']}/{os.getppid()}-{os.getpid()}.runs"
    LOG = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def shown_key(message):
    key = message.get("key", message.get("key_b64"))
    if key is None:
        return "<null>"
    return key if len(key) <= 100 else f"<{len(key)}>"


def note(what, message, number, attempt, result):
    if LOG >= 0:
        fields = [
            what,
            message["topic"],
            message["partition"],
            message["offset"],
            attempt,
            message.get("retries", 0),
            time.monotonic_ns(),
            result,
            shown_key(message),
            number,
            message.get("redeliveries", 0),
        ]
        os.write(LOG, ("\t".join(map(str, fields)) + "\n").encode())


def value_of(message):
    try:
        value = json.loads(message.get("value") or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def result_of(message, value):
    results = value.get("do")
    for modulus, remainder, each in RULES if results is None else []:
        if value.get("i", -1) % modulus == remainder:
            results = each
            break
    if not results:
        return "ok"
    run = message.get("attempt", 1) + message.get("retries", 0)
    return results[min(run, len(results)) - 1]


def answer_of(message, result):
    answer = {"id": message["id"], "result": result}
    if result == "reply":
        answer["result"] = "ok"
        answer["reply"] = json.dumps({"done": json.loads(message["value"])["i"]})
    elif result.startswith("big:"):
        answer["result"] = "ok"
        answer["reply"] = "x" * int(result[4:])
    elif result == "error-once":
        is_first = message.get("redeliveries", 0) == 0
        answer.update(result="error" if is_first else "ok", reason="as told, once")
    elif result.startswith("output:"):
        topic, delay = result[7:].rsplit(":", 1)
        answer.update(result="ok", outputs=[{"topic": topic, "value": message["value"],
                                             "delay": delay}])
    elif result.startswith("retry:"):
        answer.update(result="retry", delay=result[6:], reason=f"as told: {result}")
    elif result in ("retry", "dead", "drop", "error"):
        answer["reason"] = f"as told: {result}"
    return answer


def misbehave(message, result):
    """Does what a broken handler does; returns what is still to be answered, or None."""
    if result == "exit":
        sys.stderr.write("going down\n")
        os._exit(3)
    if result == "silent":
        return None
    if result == "garbage":
        print("debug: a print that somebody forgot")
        return answer_of(message, "ok")
    if result == "twice":
        print(json.dumps(answer_of(message, "ok")))
        return answer_of(message, "ok")
    if result == "unknown":
        return dict(answer_of(message, "ok"), id=message["id"] + 1000000)
    if result.startswith("sleep:"):
        time.sleep(float(result[6:]))
        return answer_of(message, "ok")
    return answer_of(message, result)


def serve():
    for line in sys.stdin:
        message = json.loads(line)
        if "hello" in message:
            print(json.dumps({"ready": {"protocol": 1}}), flush=True)
            continue
        value = value_of(message)
        number = value.get("i", -1)
        attempt, result = message.get("attempt", 1), result_of(message, value)
        note("S", message, number, attempt, result)
        if WORK_S:
            time.sleep(WORK_S)
        answer = misbehave(message, result)
        note("E", message, number, attempt, result)
        if answer is not None:
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
