# SPDX-License-Identifier: Apache-2.0
"""The conversation with a service: descriptors, handshake, and what a handler's result becomes.

Standard input is replaced by nothing and standard output by standard error before a handler runs,
so that neither a print nor a child process can disturb the conversation.
"""
from __future__ import annotations

import os
import sys
import traceback
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple, Type

from ._codec import Answer, Codec, Fields, Frames, Lines, ProtocolError
from ._message import Message, plain
from ._verdicts import Verdict, _Null
from ._writer import Writer

PROTOCOL = 1
READ_BYTES = 65536
REASON_CHARACTERS_MAX = 512
_LEVELS = ("error", "warn", "info", "debug", "trace")


class Handler(NamedTuple):
    """A function and how it is run."""

    name: Optional[str]
    function: Callable[..., Any]
    is_async: bool
    threads: int
    retry_on: Tuple[Type[BaseException], ...]
    dead_on: Tuple[Type[BaseException], ...]


class Session:
    def __init__(self, codec: Codec, writer: Writer) -> None:
        self.codec = codec
        self.writer = writer
        self.handler: Handler
        self._ok = codec.ok
        self._ok_text = codec.ok_text

    # -- One message --------------------------------------------------------------------------

    def run(self, fields: Fields) -> bytes:
        """Runs a plain function and gives what is to be written."""
        message = Message(fields, self)
        try:
            reply = self.handler.function(message)
            if message.outputs is None:
                if reply is None:
                    return self._ok(fields["id"])
                if type(reply) is str:
                    return self._ok_text(fields["id"], reply)
            return self.done(message, reply)
        except Exception as why:
            return self.failed(message, why)
        finally:
            message.is_answered = True

    def done(self, message: Message, reply: Any) -> bytes:
        if isinstance(reply, Verdict):
            return self._verdict(message, reply)
        if reply is None and message.outputs is None:
            return self._ok(message.number)
        answer = Answer()
        answer.has_reply = reply is not None
        if reply is not None and not isinstance(reply, _Null):
            answer.reply = plain(reply)
        answer.outputs = message.outputs
        return self.codec.answer(message.number, answer)

    def failed(self, message: Message, why: BaseException) -> bytes:
        if isinstance(why, Verdict):
            return self._verdict(message, why)
        text = "".join(traceback.format_exception_only(type(why), why)).strip()
        handler = self.handler
        if isinstance(why, handler.dead_on):
            return self._answer(message, Answer("dead", text))
        if isinstance(why, handler.retry_on):
            return self._answer(message, Answer("retry", text))
        traceback.print_exception(type(why), why, why.__traceback__)
        return self._answer(message, Answer("error", text))

    def _verdict(self, message: Message, verdict: Verdict) -> bytes:
        answer = Answer(verdict.result, verdict.reason)
        answer.delay = verdict.delay
        answer.code = verdict.code
        return self._answer(message, answer)

    def _answer(self, message: Message, answer: Answer) -> bytes:
        reason = answer.reason[:REASON_CHARACTERS_MAX]
        answer.reason = reason.encode("utf-8", "backslashreplace").decode()
        return self.codec.answer(message.number, answer)

    # -- Beside answers -----------------------------------------------------------------------

    def extend(self, message: Message, duration: str) -> None:
        """An extension of what is answered would break the protocol, so it is left out."""
        line = self.codec.say({"id": message.number, "extend": duration})
        self.writer.now(line, unless=lambda: message.is_answered)

    def log(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        if level not in _LEVELS:
            raise ValueError(f"a level is one of {', '.join(_LEVELS)}, not {level!r}")
        text = " ".join([text, *(f"{name}={value}" for name, value in fields.items())])
        text = text.encode("utf-8", "backslashreplace").decode()
        self.writer.now(self.codec.say({"log": level, "msg": text}))


class Input:
    """Requests as they come."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.codec: Optional[Codec] = None

    def read(self) -> Optional[List[Fields]]:
        """What one read brings, maybe nothing; None at the end."""
        data = os.read(self.fd, READ_BYTES)
        if data:
            return self.codec.feed(data) if self.codec else self._first(data)
        if self.codec and self.codec.has_rest():
            raise ProtocolError("the service stopped in the middle of a message")
        return None

    def _first(self, data: bytes) -> List[Fields]:
        name = os.environ.get("LANEWAY_PROTOCOL") or ("frames" if data[0] == 0 else "lines")
        codecs: Dict[str, Callable[[], Codec]] = {"lines": Lines, "frames": Frames}
        if name not in codecs:
            raise ProtocolError(f"this client speaks {' and '.join(codecs)}, not {name}")
        self.codec = codecs[name]()
        return self.codec.feed(data)


def take_descriptors() -> Tuple[int, int]:
    """(input, output), out of the way of everybody else."""
    source = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    target = _answers_fd()
    sys.stdout.flush()
    os.dup2(2, 1)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure:
        reconfigure(line_buffering=True)
    return source, target


def _answers_fd() -> int:
    number = os.environ.get("LANEWAY_FD", "")
    if number.isdigit() and int(number) > 2:
        try:
            os.set_inheritable(int(number), False)
            return int(number)
        except OSError:
            pass  # started by hand, with the environment of something else
    return os.dup(1)
