# SPDX-License-Identifier: Apache-2.0
"""Answers on their way to the service.

Any thread may add answers and flush. Whoever gets the lock writes all that is there in one call;
who does not get it may leave, since the holder looks again after it let go. A write may block while
the pipe is full: the service always reads, so that ends. A service that is gone is no error: its
messages go to somebody else.
"""
from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from typing import Callable, Deque, Optional

HOLD_SECONDS = 0.002


class Writer:
    __slots__ = ("_fd", "_is_broken", "_lock", "queue")

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._is_broken = False
        self._lock = threading.Lock()
        self.queue: Deque[bytes] = deque()

    def flush(self) -> None:
        while self.queue and self._lock.acquire(blocking=False):
            self._write_queue()

    def now(self, data: bytes, unless: Optional[Callable[[], bool]] = None) -> None:
        """Writes what is no answer. `unless` is asked when nobody else can write. Without it a
        signal handler may call this while its own thread writes."""
        if unless is None:
            self.queue.append(data)
        else:
            with self._lock:
                if not unless():
                    self._write(data)
        self.flush()

    def finish(self) -> None:
        """Returns when all is written."""
        self._lock.acquire()
        self._write_queue()

    def _write_queue(self) -> None:
        """Holds the lock, and lets it go."""
        try:
            parts = []
            while self.queue:
                parts.append(self.queue.popleft())
            self._write(parts[0] if len(parts) == 1 else b"".join(parts))
        finally:
            self._lock.release()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and not self._is_broken:
            try:
                rest = rest[os.write(self._fd, rest):]
            except BlockingIOError:
                select.select([], [self._fd], [])
            except BrokenPipeError:
                self._is_broken = True


class Guard:
    """Sees to it that an answer is never held back for long by the handler that runs after it.

    Answers of handlers that take microseconds are written once per batch that was read. If one of
    them takes milliseconds all of a sudden, this thread writes what is there, and the rest of the
    batch goes out one by one. It sleeps while nothing is held back.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._number = 0
        self._is_open = False
        self._wake = threading.Lock()
        self._wake.acquire()
        self._thread: Optional[threading.Thread] = None
        self.has_expired = False

    def open(self) -> None:
        """Answers are held back from now on."""
        self.has_expired = False
        self._number += 1
        self._is_open = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="laneway-guard", daemon=True)
            self._thread.start()
        if self._wake.locked():
            self._wake.release()

    def close(self) -> None:
        """All are written or about to be."""
        self._is_open = False

    def _watch(self) -> None:
        while True:
            self._wake.acquire()
            while self._is_open and not self.has_expired:
                number = self._number
                time.sleep(HOLD_SECONDS)
                if self._is_open and self._number == number:
                    self.has_expired = True
            self._writer.flush()
