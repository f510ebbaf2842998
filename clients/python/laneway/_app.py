# SPDX-License-Identifier: Apache-2.0
"""The handlers of a program, and running the one that the service asks for.

Whatever goes wrong before `ready` ends the program with a line on standard error: the service then
shows that line, holds the pipeline, and charges no message.
"""
from __future__ import annotations

import asyncio
import inspect
import logging
import os
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple, Type, TypeVar, Union, overload

from . import _run
from ._codec import Fields, ProtocolError
from ._session import CODECS, PROTOCOL, Handler, Input, Session, take_descriptors
from ._writer import Writer

EX_USAGE, EX_PROTOCOL, EX_CONFIG = 64, 76, 78

Function = TypeVar("Function", bound=Callable[..., Any])
Exceptions = Union[Type[BaseException], Tuple[Type[BaseException], ...]]


class _Refused(Exception):
    """(exit status, text)"""


class App:
    """Collects handlers, then runs one of them: `app.run()` is the last line of a program.

    With `logs`, records of `logging` go to the service's log with their level, unless the program
    has set up `logging` itself.
    """

    def __init__(self, logs: bool = True) -> None:
        self.handlers: Dict[Optional[str], Handler] = {}
        self.start_hooks: List[Callable[[], Any]] = []
        self.stop_hooks: List[Callable[[], Any]] = []
        self._logs = logs
        self._session: Optional[Session] = None

    # -- Registering --------------------------------------------------------------------------

    @overload
    def handler(self, name: Function) -> Function: ...

    @overload
    def handler(self, name: Optional[str] = None, *, threads: Union[int, bool] = 0,
                batch: bool = False, retry_on: Exceptions = (),
                dead_on: Exceptions = ()) -> Callable[[Function], Function]: ...

    def handler(self, name: Any = None, *, threads: Union[int, bool] = 0,
                batch: bool = False, retry_on: Exceptions = (),
                dead_on: Exceptions = ()) -> Any:
        """Registers a function that takes a `Message`, under its name in the configuration.

        Without a name it serves whatever name the service asks for. A plain function runs one
        message after the other, or on `threads` threads (True: as many as the window); an `async`
        one runs all messages of the window at once. With `batch` it takes a list of messages and
        returns nothing, or a list with a result for each. Exceptions of `retry_on` and `dead_on` are
        such verdicts; others are errors.
        """
        if callable(name):
            return self.handler(None)(name)

        def register(function: Function) -> Function:
            if name in self.handlers:
                raise ValueError(f"there is a handler {name!r} already")
            is_async = _is_async(function)
            if is_async and threads:
                raise ValueError("an async handler runs on no threads")
            if threads < 0:
                raise ValueError(f"{threads} threads are none")
            self.handlers[name] = Handler(name, function, is_async, batch,
                                          -1 if threads is True else int(threads),
                                          _exceptions(retry_on), _exceptions(dead_on))
            return function

        return register

    def on_start(self, hook: Function) -> Function:
        """Calls `hook` before the service hands messages over: open connections there."""
        self.start_hooks.append(hook)
        return hook

    def on_stop(self, hook: Function) -> Function:
        """Calls `hook` when all is answered."""
        self.stop_hooks.append(hook)
        return hook

    # -- While it runs ------------------------------------------------------------------------

    def log(self, level: str, text: str, **fields: Any) -> None:
        """Writes a line to the service's log: error, warn, info, debug or trace."""
        if self._session:
            self._session.log(level, text, fields)
        else:
            print(level, text, fields or "", file=sys.stderr)

    def run(self) -> None:
        """Speaks with the service until it closes the input. Does not return on a failure."""
        try:
            if sys.stdin is not None and sys.stdin.isatty():
                raise _Refused(EX_USAGE, "this is a handler: `laneway run` starts it and writes to "
                                         "its standard input")
            _check_protocol()
            self._converse()
        except _Refused as why:
            status, text = why.args
            print(f"laneway: {text}", file=sys.stderr)
            raise SystemExit(status) from None
        except ProtocolError as why:
            print(f"laneway: {why}", file=sys.stderr)
            raise SystemExit(EX_PROTOCOL) from None

    def _converse(self) -> None:
        source_fd, target_fd = take_descriptors()
        source = Input(source_fd)
        hello, requests = _greet(source)
        assert source.codec is not None  # it has read the hello
        session = Session(source.codec, Writer(target_fd))
        session.handler = self.choose(str(hello.get("handler", "")))
        session.has_batches = session.handler.is_batch or "batch" in hello
        self._session = session
        if self._logs and not logging.getLogger().handlers:
            logging.basicConfig(level=logging.INFO, format="%(message)s",
                                handlers=[LogHandler(session)])
        self._serve(session, source, requests, hello)
        session.writer.finish()

    def _serve(self, session: Session, source: Input, requests: List[Fields],
               hello: Fields) -> None:
        handler, window = session.handler, int(hello.get("window", 1))

        def ready(is_concurrent: bool) -> None:
            fields: Fields = {"protocol": PROTOCOL}
            if is_concurrent:
                fields["concurrent"] = True
            if "batch" in hello:
                fields["batch"] = True
            session.writer.now(session.codec.say({"ready": fields}))

        if handler.is_async:
            asyncio.run(_run.Asynchronous(session, source).run(requests, self,
                                                               lambda: ready(True)))
            return
        count = window if handler.threads < 0 else min(handler.threads, window)
        _run.check_hooks([*self.start_hooks, *self.stop_hooks])
        _run.run_hooks(self.start_hooks)
        ready(handler.threads != 0 and count >= window)
        if handler.threads:
            _run.threads(session, source, requests, count)
        else:
            _run.serial(session, source, requests)
        _run.run_hooks(self.stop_hooks)

    def choose(self, name: str) -> Handler:
        """The handler of that name, or the one without a name."""
        handler = self.handlers.get(name) or self.handlers.get(None)
        if handler is None:
            known = ", ".join(sorted(str(known) for known in self.handlers)) or "none"
            raise _Refused(EX_CONFIG, f"no handler is called {name!r}; this program has: {known}")
        return handler

    @staticmethod
    async def call_hooks(hooks: List[Callable[[], Any]]) -> None:
        for hook in hooks:
            result = hook()
            if inspect.isawaitable(result):
                await result


class LogHandler(logging.Handler):
    """Sends records of `logging` to the service's log."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session

    def emit(self, record: logging.LogRecord) -> None:
        try:
            number = record.levelno
            level = ("error" if number >= logging.ERROR else
                     "warn" if number >= logging.WARNING else
                     "info" if number >= logging.INFO else "debug")
            self._session.log(level, f"{record.name}: {self.format(record)}", {})
        except Exception:  # as every handler of logging does
            self.handleError(record)


def _check_protocol() -> None:
    """Under `once` there is no conversation: the status must say that no message is to blame."""
    name = os.environ.get("LANEWAY_PROTOCOL") or "lines"
    if name not in CODECS:
        raise _Refused(EX_CONFIG, f"this client speaks {' and '.join(CODECS)}, not {name}: say "
                                  "`protocol: lines` in the configuration of the handler")


def _greet(source: Input) -> Tuple[Dict[str, Any], List[Fields]]:
    """Reads the hello; (its fields, what came with it)."""
    requests: Optional[List[Fields]] = []
    while not requests:
        requests = source.read()
        if requests is None:
            raise _Refused(EX_USAGE, "the input ended before the service said hello")
    hello = requests[0].get("hello")
    if not isinstance(hello, dict):
        raise ProtocolError("the first thing that came is no hello")
    if hello.get("protocol", PROTOCOL) != PROTOCOL:
        raise ProtocolError(f"the service speaks protocol {hello['protocol']}, "
                            f"this client {PROTOCOL}")
    return hello, requests[1:]


def _is_async(function: Any) -> bool:
    return (inspect.iscoroutinefunction(function)
            or inspect.iscoroutinefunction(getattr(function, "__call__", None)))


def _exceptions(given: Exceptions) -> Tuple[Type[BaseException], ...]:
    """Checked here: at the first exception of a handler it would be too late."""
    classes = given if isinstance(given, tuple) else (given,)
    for each in classes:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise TypeError(f"{each!r} is no class of exceptions")
    return classes
