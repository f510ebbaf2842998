#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""http_outage.py: a handler behind HTTP whose service is something else, then there, then killed,
something else again, then there again. Every message is answered, none is dead, and at most those
that were in the service when it was killed, and the one that was tried with what came after it,
count a second attempt."""
import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import memory_service  # noqa: E402
from memory_service import expect  # noqa: E402

MESSAGES = 400
SLOTS = 8
CONFIG = """
version: 1
service: {{ name: outage, concurrency: {slots} }}
brokers:
  main: {{ url: "kafka://localhost:9092" }}
handlers:
  show: {{ http: "http://127.0.0.1:{port}/in", timeout: 60s }}
pipelines:
  p:
    broker: main
    handler: show
    consumer: {{ group: g }}
    topics: [orders]
    on_error: retry
    retry: {{ in_place: true, max_attempts: 3, backoff: {{ initial: 5ms, jitter: 0 }} }}
    dead_letter: {{ topic: dead }}
    reply: {{ topic: replies }}
"""


def hold_port():
    """A port that nobody else gets while this socket is open, whoever listens on it, if anybody."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    holder.bind(("127.0.0.1", 0))
    return holder


def start(port):
    server = subprocess.Popen(
        [sys.executable, memory_service.ROOT / "tests/support/http_server.py", "--port", str(port)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    expect("port", server.stdout.readline().strip(), str(port))
    return server


def be_somebody_else(port):
    """Answers one connection like another service that got the port: no word of HTTP."""
    with socket.create_server(("127.0.0.1", port), reuse_port=True) as server:
        server.settimeout(120)
        client, _ = server.accept()
        client.sendall(b"220 mail ready\r\n")
        client.close()


def requests_of(port):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/", data=b"stats")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())["requests"]


def wait_for_messages(port, count):
    """Until the service was given so many; the questions about it are no messages."""
    asked, deadline = 1, time.monotonic() + 120
    while requests_of(port) - asked < count and time.monotonic() < deadline:
        asked += 1
        time.sleep(0.02)


def outages(folder):
    """How often the handler was said to be down."""
    return (folder / "log").read_text(encoding="utf-8").count("handler.down")


def wait_for_outage(folder, before):
    deadline = time.monotonic() + 120
    while outages(folder) == before:
        if time.monotonic() > deadline:
            raise AssertionError("the end of the service was not noticed")
        time.sleep(0.02)


def run(folder, port, results):
    (folder / "outage.yaml").write_text(CONFIG.format(port=port, slots=SLOTS))
    messages = [{"topic": "orders", "key": f"k{i}", "value": f"wait 50 show {i}"}
                for i in range(MESSAGES)]
    published, log = [], "it did not end"
    try:
        published, log = memory_service.run(folder, "outage.yaml", "g", ["orders"], messages)
    finally:
        results.append((published, log))


def check(published, log):
    replies = [json.loads(m["value"]) for m in published if m["topic"] == "replies"]
    headers = [dict(reply["headers"]) for reply in replies]
    expect("dead letters", sum(m["topic"] == "dead" for m in published), 0)
    expect("answered", sorted(reply["body"] for reply in replies),
           sorted(f"show {i}" for i in range(MESSAGES)))
    again = sum(int(header["x-laneway-attempt"]) > 1 for header in headers)
    if again > SLOTS + 1:
        raise AssertionError(f"{again} messages were charged for the service's end")
    if log.count("handler.down") < 2 or log.count("handler.up") < 2:
        raise AssertionError(f"two outages are not in the log:\n{log[-4000:]}")
    print(f"{len(replies)} answered, {again} of them in a second attempt")


def main():
    results = []
    with tempfile.TemporaryDirectory() as folder, hold_port() as holder:
        port = holder.getsockname()[1]
        folder = pathlib.Path(folder)
        thread = threading.Thread(target=run, args=(folder, port, results))
        thread.start()
        be_somebody_else(port)
        server = start(port)
        wait_for_messages(port, 40)
        before = outages(folder)
        server.kill()
        server.wait()
        wait_for_outage(folder, before)
        be_somebody_else(port)
        server = start(port)
        thread.join(240)
        server.kill()
        server.wait()
    check(*results[0])


main()
