# SPDX-License-Identifier: Apache-2.0
"""A service of a few lines, for tests: starts a program and speaks with it, in either protocol.

Waiting ends with what is waited for; a program that says nothing for a minute fails the test.
"""
import fcntl
import json
import os
import pathlib
import select
import struct
import subprocess
import sys
import tempfile
import termios
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
WAIT_SECONDS = 60
F_GETPIPE_SZ = 1032  # of Linux; in fcntl from Python 3.10 on


class Program:
    def __init__(self, source, protocol="lines", uses_fd=True, window=4, handler="it", hello=True):
        self._protocol = protocol
        self._held = bytearray()
        self._looked = 0  # so many bytes of it hold no newline
        reading, writing = os.pipe()
        self._stderr = tempfile.TemporaryFile()
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "LANEWAY_PROTOCOL": protocol}
        environment.pop("LANEWAY_FD", None)
        if uses_fd:
            environment["LANEWAY_FD"] = str(writing)
        self._process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(source)], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE if uses_fd else writing,
            stderr=self._stderr, pass_fds=(writing,) if uses_fd else (), bufsize=0)
        os.close(writing)
        self._answers = reading
        if hello:
            self.send({"hello": {"protocol": 1, "service": "s", "handler": handler,
                                 "window": window}})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        if self._process.stdout:
            self._process.stdout.close()
        os.close(self._answers)
        self._stderr.close()

    def write(self, data):
        self._process.stdin.write(data)

    def send(self, *headers):
        """All in one write, so that they are read at once."""
        self.write(b"".join(self._encoded(dict(header)) for header in headers))

    def _encoded(self, header):
        if self._protocol == "lines":
            return (json.dumps(header) + "\n").encode()
        body = header.pop("value").encode() if "value" in header else None
        if body is not None:
            header["value_len"] = len(body)
        text = json.dumps(header).encode()
        return len(text).to_bytes(4, "big") + text + (body or b"")

    def message(self, number, value="", **fields):
        return {"id": number, "message_id": f"main/t/0/{number}", "topic": "t", "value": value,
                "attempt": 1, **fields}

    def read(self):
        """The next thing that the program says; None at the end."""
        while True:
            unit, size = self._unit()
            if unit is not None:
                del self._held[:size]
                self._looked = 0
                return unit
            if not select.select([self._answers], [], [], WAIT_SECONDS)[0]:
                raise AssertionError(f"nothing for {WAIT_SECONDS} s; {self.stderr()}")
            data = os.read(self._answers, 65536)
            if not data:
                assert not self._held, self._held
                return None
            self._held += data

    def _unit(self):
        if self._protocol == "lines":
            at = self._held.find(b"\n", self._looked) + 1
            self._looked = len(self._held)
            return (json.loads(self._held[:at]), at) if at else (None, 0)
        at = 4 + int.from_bytes(self._held[:4], "big")
        if len(self._held) < max(at, 5):
            return None, 0
        header = json.loads(self._held[4:at])
        size = header.get("reply_len", 0)
        if len(self._held) < at + size:
            return None, 0
        if "reply_len" in header:
            header["reply"] = self._held[at:at + size].decode()
        return header, at + size

    def answers(self, count):
        """So many answers, by id."""
        return {unit["id"]: unit for unit in (self.read() for _ in range(count))}

    def wait_blocked(self):
        """Until the pipe of its answers is full."""
        for _ in range(WAIT_SECONDS * 100):
            held = fcntl.ioctl(self._answers, termios.FIONREAD, struct.pack("i", 0))
            if struct.unpack("i", held)[0] > fcntl.fcntl(self._answers, F_GETPIPE_SZ) - 4096:
                return
            time.sleep(0.01)
        raise AssertionError("it does not write")

    def end_input(self):
        self._process.stdin.close()

    def wait(self):
        return self._process.wait(WAIT_SECONDS)

    def stderr(self):
        self._stderr.seek(0)
        return self._stderr.read().decode()

    def stdout(self):
        return self._process.stdout.read().decode()
