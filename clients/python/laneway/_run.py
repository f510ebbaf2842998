# SPDX-License-Identifier: Apache-2.0
"""The three ways to run a handler: one message after the other, on threads, or asynchronously.

Each reads requests until the end of input, then finishes what it holds. The service never hands
over more than the window, so nobody counts here.
"""
from __future__ import annotations

import asyncio
import inspect
import os
import queue
import stat
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

from ._codec import Fields
from ._session import Input, Session
from ._writer import Guard

if TYPE_CHECKING:
    from ._app import App

# Handlers that take less than this have their answers written together.
QUICK_SECONDS = 0.0002


def serial(session: Session, source: Input, requests: List[Fields]) -> None:
    """One after the other, on this thread."""
    writer = session.writer
    run = session.run_batch if session.has_batches else session.run
    append, clock, guard = writer.queue.append, time.monotonic, Guard(writer)
    is_quick = False
    batch: Optional[List[Fields]] = requests
    while batch is not None:
        count = len(batch)
        began = clock()
        if is_quick and count > 1:
            guard.open()
            try:
                for fields in batch:
                    append(run(fields))
                    if guard.has_expired:
                        writer.flush()
            finally:  # a handler may end the program by sys.exit()
                guard.close()
                writer.flush()
        else:
            for fields in batch:
                append(run(fields))
                writer.flush()
        is_quick = clock() - began < QUICK_SECONDS * count
        batch = source.read()


def threads(session: Session, source: Input, requests: List[Fields], count: int) -> None:
    """On `count` threads."""
    work: "queue.SimpleQueue[Optional[Fields]]" = queue.SimpleQueue()
    writer = session.writer
    run = session.run_batch if session.has_batches else session.run

    def loop() -> None:
        fields = work.get()
        while fields is not None:
            try:
                writer.queue.append(run(fields))
            except BaseException:  # sys.exit() in a handler ends the process, as it says
                writer.finish()
                _leave()
            writer.flush()
            fields = work.get()

    pool = [threading.Thread(target=loop, name=f"laneway-{i}", daemon=True) for i in range(count)]
    for thread in pool:
        thread.start()
    batch: Optional[List[Fields]] = requests
    while batch is not None:
        for fields in batch:
            work.put(fields)
        batch = source.read()
    for _ in pool:
        work.put(None)
    for thread in pool:
        thread.join()


def _leave() -> None:
    why = sys.exc_info()[1]
    status = why.code if isinstance(why, SystemExit) else 1
    if not isinstance(status, int):
        traceback.print_exc()
        status = 0 if status is None else 1
    sys.stderr.flush()
    os._exit(status)


class Asynchronous:
    """All messages of the window at once, on one event loop."""

    def __init__(self, session: Session, source: Input) -> None:
        self._run = session.run_batch_async if session.has_batches else session.run_async
        self._source = source
        self._writer = session.writer
        self._tasks: Dict[int, "asyncio.Task[None]"] = {}
        self._has_flush = False
        self._loop: asyncio.AbstractEventLoop
        self._ended: Optional["asyncio.Future[None]"] = None  # the input is
        self._idle: Optional["asyncio.Future[None]"] = None  # all is answered

    async def run(self, requests: List[Fields], app: App, ready: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        await app.call_hooks(app.start_hooks)
        ready()
        self._ended = self._loop.create_future()
        self._start(requests)
        await self._read_all(self._ended)
        await self._finish()
        await app.call_hooks(app.stop_hooks)

    async def run_these(self, requests: List[Fields]) -> None:
        """Nothing is read, and nobody is greeted."""
        self._loop = asyncio.get_running_loop()
        self._start(requests)
        await self._finish()

    async def _finish(self) -> None:
        while self._tasks:
            self._idle = self._loop.create_future()
            await self._idle
        self._flush()

    async def _read_all(self, ended: "asyncio.Future[None]") -> None:
        if not stat.S_ISREG(os.fstat(self._source.fd).st_mode):
            self._loop.add_reader(self._source.fd, self._on_readable, ended)
            await ended
            return
        while not ended.done():  # a file, by hand: always readable, and not to be watched
            self._on_readable(ended)
            await asyncio.sleep(0)
        await ended

    def _on_readable(self, ended: "asyncio.Future[None]") -> None:
        if ended.done():  # the program is about to end
            return
        try:
            requests = self._source.read()
        except Exception as why:
            self._loop.remove_reader(self._source.fd)
            ended.set_exception(why)
            return
        if requests is None:
            self._loop.remove_reader(self._source.fd)
            ended.set_result(None)
        else:
            self._start(requests)

    def _start(self, requests: List[Fields]) -> None:
        create_task = self._loop.create_task
        for fields in requests:
            self._tasks[fields["id"]] = create_task(self._one(fields))

    async def _one(self, fields: Fields) -> None:
        try:
            answer = await self._run(fields)
            if not self._is_interrupted():
                self._say(answer)
        finally:
            del self._tasks[fields["id"]]
            if not self._tasks and self._idle and not self._idle.done():
                self._idle.set_result(None)

    def _is_interrupted(self) -> bool:
        """By sys.exit() in another handler, or a signal: whoever is cancelled by that has done
        nothing wrong, so nothing is said of his message, and it runs again elsewhere."""
        return any(future is not None and future.cancelled() for future in (self._ended, self._idle))

    def _say(self, answer: bytes) -> None:
        self._writer.queue.append(answer)
        if not self._has_flush:
            self._has_flush = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._has_flush = False
        self._writer.flush()


def check_hooks(hooks: List[Callable[[], Any]]) -> None:
    """For handlers that are not asynchronous: before any message comes."""
    for hook in hooks:
        if inspect.iscoroutinefunction(hook):
            raise TypeError(f"{hook.__name__} is asynchronous, but the handler is not")


def run_hooks(hooks: List[Callable[[], Any]]) -> None:
    for hook in hooks:
        hook()
