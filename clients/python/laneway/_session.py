# SPDX-License-Identifier: Apache-2.0
"""The conversation with a service: descriptors, handshake, and what a handler's result becomes.

Standard input is replaced by nothing and standard output by standard error before a handler runs,
so that neither a print nor a child process can disturb the conversation.
"""
from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import traceback
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple, Type, Union

from ._codec import (Answer, Codec, Fields, Frames, Lines, ProtocolError, TooLargeError,
                     require_fit)
from ._message import Message, plain
from ._verdicts import Verdict, _Null
from ._writer import Writer

PROTOCOL = 1
READ_BYTES = 65536
REASON_CHARACTERS_MAX = 512
LOG_CHARACTERS_MAX = 65536  # the service keeps far less of a line
CODECS: Dict[str, Callable[[], Codec]] = {"lines": Lines, "frames": Frames}
_LEVELS = ("error", "warn", "info", "debug", "trace")
# What ends the program. Whatever else a handler raises is an error of its message: one that is no
# Exception must neither end the program nor leave the message without an answer.
_ENDS = (KeyboardInterrupt, SystemExit, GeneratorExit)


class Handler(NamedTuple):
    """A function and how it is run."""

    name: Optional[str]
    function: Callable[..., Any]
    is_async: bool
    is_batch: bool
    threads: int
    retry_on: Tuple[Type[BaseException], ...]
    dead_on: Tuple[Type[BaseException], ...]


class Session:
    def __init__(self, codec: Codec, writer: Writer) -> None:
        self.codec = codec
        self.writer = writer
        self.handler: Handler
        self.has_batches = False
        self._ok = codec.ok
        self._ok_text = codec.ok_text

    # -- One message --------------------------------------------------------------------------

    def run(self, fields: Fields) -> bytes:
        """Runs a plain function and gives what is to be written."""
        message = Message(fields, self)
        try:
            reply = self.handler.function(message)
        except _ENDS:
            raise
        except BaseException as why:
            reply = self.blame(why)
        finally:
            message.is_answered = True
        return self._encode_reply(fields, message, reply)

    async def run_async(self, fields: Fields) -> bytes:
        message = Message(fields, self)
        try:
            reply = await self.handler.function(message)
        except _ENDS:
            raise
        except BaseException as why:  # also when it is cancelled: the task is ours and ends here
            reply = self.blame(why)
        finally:
            message.is_answered = True
        return self._encode_reply(fields, message, reply)

    def _encode_reply(self, fields: Fields, message: Message, reply: Any) -> bytes:
        """What cannot be encoded, or is too large, is an error of its message."""
        number = fields["id"]
        try:
            if message.outputs is None:
                if reply is None:
                    return self._ok(number)
                if type(reply) is str:
                    return require_fit(fields, self._ok_text(number, reply))
            answer = self.codec.answer(number, self.judge(message, reply))
            return require_fit(fields, answer)
        except Exception as why:
            return self.codec.answer(number, self.fault(why))

    def judge(self, message: Message, reply: Any) -> Answer:
        """What a handler's return value means."""
        if isinstance(reply, Answer):
            return reply
        if isinstance(reply, Verdict):
            return self.blame(reply)
        answer = Answer()
        answer.has_reply = reply is not None
        if reply is not None and not isinstance(reply, _Null):
            answer.reply = plain(reply)
        answer.outputs = message.outputs
        return answer

    def blame(self, why: BaseException) -> Answer:
        """What an exception of a handler means."""
        handler = self.handler
        if isinstance(why, Verdict):
            answer = Answer(why.result, _reason(why.reason))
            answer.delay = why.delay
            answer.code = why.code
            return answer
        if isinstance(why, handler.dead_on):
            return Answer("dead", _reason_of(why))
        if isinstance(why, handler.retry_on):
            return Answer("retry", _reason_of(why))
        return self.fault(why)

    @staticmethod
    def fault(why: BaseException) -> Answer:
        """What is wrong with a result: never one of the exceptions that a handler names."""
        with contextlib.suppress(OSError):  # nobody reads standard error any more
            traceback.print_exception(type(why), why, why.__traceback__)
        return Answer("error", _reason_of(why))

    def encode(self, fields: Fields, answer: Answer) -> bytes:
        number = fields["id"]
        try:
            return require_fit(fields, self.codec.answer(number, answer))
        except Exception as why:
            return self.codec.answer(number, self.fault(why))

    # -- Several messages ---------------------------------------------------------------------

    def run_batch(self, fields: Fields) -> bytes:
        messages = self._messages(fields)
        answers: Union[Answer, List[Answer]]
        if self.handler.is_batch:
            try:
                replies = self.handler.function(messages)
            except _ENDS:
                raise
            except BaseException as why:
                replies = self.blame(why)
            answers = self._judge_all(messages, replies)
        else:
            answers = [self._run_member(message) for message in messages]
        return self._encode_batch(fields, messages, answers)

    async def run_batch_async(self, fields: Fields) -> bytes:
        messages = self._messages(fields)
        answers: Union[Answer, List[Answer]]
        if self.handler.is_batch:
            try:
                replies = await self.handler.function(messages)
            except _ENDS:
                raise
            except BaseException as why:
                replies = self.blame(why)
            answers = self._judge_all(messages, replies)
        else:
            members = (self._run_member_async(message) for message in messages)
            try:
                answers = list(await asyncio.gather(*members))
            except asyncio.CancelledError as why:
                answers = self.blame(why)
        return self._encode_batch(fields, messages, answers)

    def _messages(self, fields: Fields) -> List[Message]:
        """The members of a batch, whose id and time are those of the batch; or the one message."""
        if "messages" not in fields:
            return [Message(fields, self)]
        common: Fields = {name: fields[name] for name in ("id", "deadline_ms") if name in fields}
        return [Message({**member, **common}, self) for member in fields["messages"]]

    def _judge_all(self, messages: List[Message], replies: Any) -> Union[Answer, List[Answer]]:
        if isinstance(replies, (Answer, Verdict)):
            return self.judge(messages[0], replies)
        if replies is None:
            replies = [None] * len(messages)
        if not isinstance(replies, (list, tuple)):
            return self.fault(TypeError(
                "a handler of batches returns nothing, a verdict for all, or a list with a result "
                f"for each message, not {type(replies).__name__}"))
        if len(replies) > len(messages):  # of too few the service says so, and runs the rest again
            return self.fault(ValueError(f"{len(replies)} results for {len(messages)} messages"))
        return [self._judge_member(message, reply) for message, reply in zip(messages, replies)]

    def _judge_member(self, message: Message, reply: Any) -> Answer:
        try:
            return self.judge(message, reply)
        except Exception as why:
            return self.fault(why)

    def _run_member(self, message: Message) -> Answer:
        try:
            reply = self.handler.function(message)
        except _ENDS:
            raise
        except BaseException as why:
            return self.blame(why)
        return self._judge_member(message, reply)

    async def _run_member_async(self, message: Message) -> Answer:
        try:
            reply = await self.handler.function(message)
        except _ENDS:
            raise
        except BaseException as why:
            return self.blame(why)
        return self._judge_member(message, reply)

    def _encode_batch(self, fields: Fields, messages: List[Message],
                      answers: Union[Answer, List[Answer]]) -> bytes:
        for message in messages:
            message.is_answered = True
        number = fields["id"]
        if isinstance(answers, Answer):
            return self.encode(fields, answers)
        if "messages" not in fields:
            return self.encode(fields, answers[0] if answers else Answer("error", "no result"))
        with contextlib.suppress(Exception):
            return require_fit(fields, self.codec.results(number, answers))
        encodable = [self._encodable(fields, answer) for answer in answers]
        try:
            return require_fit(fields, self.codec.results(number, encodable))
        except TooLargeError as why:  # all of them together: each comes again alone
            return self.codec.answer(number, self.fault(why))

    def _encodable(self, fields: Fields, answer: Answer) -> Answer:
        try:
            require_fit(fields, self.codec.answer(0, answer))
            return answer
        except Exception as why:
            return self.fault(why)

    # -- Beside answers -----------------------------------------------------------------------

    def extend(self, message: Message, duration: str) -> None:
        """An extension of what is answered would break the protocol, so it is left out."""
        line = self.codec.say({"id": message.number, "extend": duration})
        self.writer.now(line, unless=lambda: message.is_answered)

    def log(self, level: str, text: str, fields: Mapping[str, Any]) -> None:
        if level not in _LEVELS:
            raise ValueError(f"a level is one of {', '.join(_LEVELS)}, not {level!r}")
        text = " ".join([text, *(f"{name}={value}" for name, value in fields.items())])
        text = text[:LOG_CHARACTERS_MAX].encode("utf-8", "backslashreplace").decode()
        self.writer.now(self.codec.say({"log": level, "msg": text}))


def _reason(text: str) -> str:
    """As much of it as is kept, without half characters."""
    return text[:REASON_CHARACTERS_MAX].encode("utf-8", "backslashreplace").decode()


def _reason_of(why: BaseException) -> str:
    return _reason("".join(traceback.format_exception_only(type(why), why)).strip())


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
        self.codec = CODECS[name]()
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
