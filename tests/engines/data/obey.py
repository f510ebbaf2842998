#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""obey.py [how]: the handler of the engine tests. It does what a message's text says.

The same commands as tests/engines/obey.c, and some that only a program can do. `how` is a word
that changes its manners: concurrent, fd3, noisy; frames (whatever LANEWAY_PROTOCOL says), eager
(says ready before it was spoken to). It speaks lines or frames, as LANEWAY_PROTOCOL says.
"""
import json
import os
import resource
import signal
import sys
import threading
import time

HOW = sys.argv[1:]
LOCK = threading.Lock()
FRAMED = "frames" in HOW or os.environ["LANEWAY_PROTOCOL"] == "frames"
OUT = os.fdopen(int(os.environ["LANEWAY_FD"]), "wb") if "fd3" in HOW else sys.stdout.buffer


def write(data):
    with LOCK:
        OUT.write(data)
        OUT.flush()


def say_text(header, tail=b""):
    """Writes a line, or a frame with these bytes behind its header."""
    text = header.encode()
    write(len(text).to_bytes(4, "big") + text + tail if FRAMED else text + b"\n")


def move_bytes(item, names):
    """Takes texts and bytes out of an item of a frame; the bytes that belong behind the header."""
    tail = b""
    for name in names:
        if FRAMED and isinstance(item.get(name), (str, bytes)):
            data = item.pop(name)
            data = data if isinstance(data, bytes) else data.encode()
            item[name + "_len"] = len(data)
            tail += data
    return tail


def say(answer):
    answer = json.loads(json.dumps(answer)) if not FRAMED else dict(answer)
    tail = move_bytes(answer, ["reply"])
    for output in answer.get("outputs", []):
        tail += move_bytes(output, ["key", "value"])
    say_text(json.dumps(answer), tail)


def messages():
    """What is read: the hello, then messages, each with its value as a text if it is one."""
    if not FRAMED:
        for line in sys.stdin:
            yield json.loads(line)
        return
    read = sys.stdin.buffer.read
    while length := read(4):
        message = json.loads(read(int.from_bytes(length, "big")))
        for name in ("key", "value"):
            if name + "_len" in message:
                message[name + "_bytes"] = read(message[name + "_len"])
        yield message


def text_of(message):
    if "value_bytes" in message and "value" not in message:
        return message["value_bytes"].decode(errors="surrogateescape")
    return message.get("value")


def echo(message):
    if "value_bytes" in message:
        return {"reply": message["value_bytes"]}
    for name in ("value", "value_b64"):
        if name in message:
            return {"reply" + name[5:]: message[name]}
    return {"reply": None}


def die_of(number):
    os.kill(os.getpid(), number)
    time.sleep(60)


def leak(answer, megabytes):
    """In steps, with a look at the clock between them, as a leak that grows."""
    kept = []
    while len(kept) < megabytes // 10:
        kept.append(b"\1" * 10_000_000)
        time.sleep(0.02)
    return answer | {"reply": str(len(kept))}


def spin(answer, milliseconds):
    end = time.process_time() + milliseconds / 1000
    while time.process_time() < end:
        pass
    return answer


def fork_two():
    """A child that does not heed TERM and has a child of its own; the child's number."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.fork()
        time.sleep(3600)
    return child


def obey(message):
    answer = {"id": message["id"], "result": "ok"}
    text = text_of(message)
    words = (text or "").split(" ", 2)
    if not text or ord(text[0]) < 32:
        return answer | echo(message)
    match words[0]:
        case "ok":
            return answer
        case "echo":
            return answer | echo(message)
        case "reply":
            return answer | {"reply": text.split(" ", 1)[1]}
        case "reply-null":
            return answer | {"reply": None}
        case "output":
            output = {"topic": words[1], "key": "out", "value": words[2],
                      "headers": {"h": "1"}, "delay": "1500ms"}
            return answer | {"outputs": [output]}
        case "dead" | "drop":
            return answer | {"result": words[0], "reason": text.split(" ", 1)[1]}
        case "retry":
            delay = {} if words[1].startswith("-") else {"delay": words[1] + "ms"}
            return answer | {"result": "retry", "reason": words[2]} | delay
        case "error":
            return answer | {"result": "error", "code": int(words[1]), "reason": words[2]}
        case "wait":
            time.sleep(int(words[1]) / 1000)
            return obey(message | {"value": words[2]})
        case "hold":
            time.sleep(3600)
        case "show":
            plain = {name: field for name, field in message.items()
                     if not isinstance(field, bytes)}
            return answer | {"reply": json.dumps(plain)}
        case "pid":
            return answer | {"reply": str(os.getpid())}
        case "env":
            return answer | {"reply": os.environ.get(words[1], "-")}
        case "cwd":
            return answer | {"reply": os.getcwd()}
        case "descriptors":
            return answer | {"reply": " ".join(sorted(os.listdir("/proc/self/fd"), key=int))}
        case "status":
            with open("/proc/self/status", encoding="ascii") as status:
                fields = [line.split() for line in status]
            return answer | {"reply": dict((f[0], f[1]) for f in fields if len(f) > 1)[words[1]]}
        case "stderr":
            print(text.split(" ", 1)[1], file=sys.stderr, flush=True)
            return answer
        case "storm":
            line = "x" * 99 + "\n"
            for _ in range(int(words[1])):
                sys.stderr.write(line)
            sys.stderr.flush()
            return answer
        case "print":
            print(text.split(" ", 1)[1], flush=True)
            return answer
        case "raw":
            say_text(text.split(" ", 1)[1].replace("ID", str(message["id"])))
            return None
        case "bytes":
            write(bytes.fromhex(words[1]))
            time.sleep(3600)
        case "half":
            write(b"\x00\x00\x01\x00{\"id\":")
            os._exit(int(words[1]))
        case "log":
            say({"log": words[1], "msg": words[2]})
            return answer
        case "twice":
            say(answer)
            return answer
        case "unknown":
            return answer | {"id": message["id"] + 100000}
        case "extend":
            say({"id": message["id"], "extend": words[1]})
            return obey(message | {"value": words[2]})
        case "exit":
            print("about to exit", file=sys.stderr, flush=True)
            os._exit(int(words[1]))
        case "crash":
            die_of(signal.SIGKILL)
        case "mute":
            OUT.flush()
            os.close(OUT.fileno())
            time.sleep(3600)
        case "deaf":
            os.close(0)
            time.sleep(3600)
        case "huge":
            os.write(OUT.fileno(), b"x" * (1 << 20) * int(words[1]))
            time.sleep(3600)
        case "large":
            return answer | {"reply": "y" * int(words[1])}
        case "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            print("stubborn", file=sys.stderr, flush=True)
            time.sleep(3600)
        case "child":
            child = os.fork()
            if child == 0:
                time.sleep(3600)
            return answer | {"reply": str(child)}
        case "leak":
            return leak(answer, int(words[1]))
        case "leak-child":
            if os.fork() == 0:
                leak(answer, int(words[1]))
                time.sleep(3600)
            time.sleep(3600)
        case "spin":
            return spin(answer, int(words[1]))
        case "limit":
            limits = resource.getrlimit(getattr(resource, words[1]))
            return answer | {"reply": f"{limits[0]} {limits[1]}"}
        case "who":
            who = [*os.getresuid(), *os.getresgid(), *sorted(os.getgroups())]
            return answer | {"reply": " ".join(str(number) for number in who)}
        case "stubborn-mute":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            OUT.flush()
            os.close(OUT.fileno())
            time.sleep(3600)
        case "brood":
            return answer | {"reply": " ".join(str(fork_two()) for _ in range(int(words[1])))}
        case "wander":
            # Into the group of who started it, where its own group's signals do not come.
            try:
                os.setpgid(0, os.getpgid(os.getppid()))
            except PermissionError:
                print("stays", file=sys.stderr, flush=True)
            time.sleep(3600)
        case "session":
            return answer | {"reply": f"{os.getsid(0) == os.getpid() == os.getpgid(0)}"}
        case "first-time":
            # Dies once, then is well: the marker is a file named by the test.
            if os.path.exists(words[1]):
                return answer
            with open(words[1], "w", encoding="ascii"):
                pass
            os._exit(9)
    return answer | {"result": "error", "code": -1, "reason": "unknown command"}


def main():
    if "noisy" in HOW:
        print("starting up", flush=True)
        print(json.dumps({"level": "info", "msg": "structured noise", "id": "abc"}), flush=True)
    if "eager" in HOW:
        say({"ready": {"protocol": 1}})
    for message in messages():
        if "hello" in message:
            ready = {"protocol": 1}
            if "concurrent" in HOW:
                ready["concurrent"] = True
            say({"ready": ready})
            continue
        if "concurrent" in HOW:
            threading.Thread(target=handle, args=(message,), daemon=True).start()
        else:
            handle(message)


def handle(message):
    answer = obey(message)
    if answer is not None:
        say(answer)


main()
while threading.active_count() > 1:
    time.sleep(0.005)
