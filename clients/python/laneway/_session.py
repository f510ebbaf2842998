# SPDX-License-Identifier: Apache-2.0
"""The conversation with a service: descriptors, handshake, and what a handler's result becomes.

Standard input is replaced by nothing and standard output by standard error before a handler runs,
so that neither a print nor a child process can disturb the conversation.
"""
from __future__ import annotations

import asyncio
import os
import sys
import traceback
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple, Type, Union

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
            if message.outputs is None:
                if reply is None:
                    return self._ok(fields["id"])
                if type(reply) is str:
                    return self._ok_text(fields["id"], reply)
            answer = self.judge(message, reply)
        except Exception as why:
            answer = self.blame(why)
        finally:
            message.is_answered = True
        return self.encode(fields["id"], answer)

    async def run_async(self, fields: Fields) -> bytes:
        message = Message(fields, self)
        try:
            reply = await self.handler.function(message)
            if reply is None and message.outputs is None:
                return self._ok(fields["id"])
            answer = self.judge(message, reply)
        except (Exception, asyncio.CancelledError) as why:  # the task is ours: it ends here
            answer = self.blame(why)
        finally:
            message.is_answered = True
        return self.encode(fields["id"], answer)

    def judge(self, message: Message, reply: Any) -> Answer:
        """What a handler's return value means."""
        if isinstance(reply, Verdict):
            return self.blame(reply)
        answer = Answer()
        answer.has_reply = reply is not None
        if reply is not None and not isinstance(reply, _Null):
            answer.reply = plain(reply)
        answer.outputs = message.outputs
        return answer

    def blame(self, why: BaseException) -> Answer:
        """What an exception means."""
        handler = self.handler
        if isinstance(why, Verdict):
            answer = Answer(why.result, why.reason)
            answer.delay = why.delay
            answer.code = why.code
        else:
            text = "".join(traceback.format_exception_only(type(why), why)).strip()
            is_dead, is_retry = isinstance(why, handler.dead_on), isinstance(why, handler.retry_on)
            answer = Answer("dead" if is_dead else "retry" if is_retry else "error", text)
            if not is_dead and not is_retry:
                traceback.print_exception(type(why), why, why.__traceback__)
        reason = answer.reason[:REASON_CHARACTERS_MAX]
        answer.reason = reason.encode("utf-8", "backslashreplace").decode()
        return answer

    def encode(self, number: int, answer: Answer) -> bytes:
        """What cannot be encoded is an error of its message."""
        try:
            return self.codec.answer(number, answer)
        except Exception as why:
            return self.codec.answer(number, self.blame(why))

    # -- Several messages ---------------------------------------------------------------------

    def run_batch(self, fields: Fields) -> bytes:
        messages = self._messages(fields)
        answers: Union[Answer, List[Answer]]
        try:
            if self.handler.is_batch:
                answers = self._judge_all(messages, self.handler.function(messages))
            else:
                answers = [self._run_member(message) for message in messages]
        except Exception as why:
            answers = self.blame(why)
        return self._encode_batch(fields, messages, answers)

    async def run_batch_async(self, fields: Fields) -> bytes:
        messages = self._messages(fields)
        answers: Union[Answer, List[Answer]]
        try:
            if self.handler.is_batch:
                answers = self._judge_all(messages, await self.handler.function(messages))
            else:
                members = (self._run_member_async(message) for message in messages)
                answers = list(await asyncio.gather(*members))
        except (Exception, asyncio.CancelledError) as why:
            answers = self.blame(why)
        return self._encode_batch(fields, messages, answers)

    def _messages(self, fields: Fields) -> List[Message]:
        """The members of a batch, whose id and time are those of the batch; or the one message."""
        if "messages" not in fields:
            return [Message(fields, self)]
        common: Fields = {name: fields[name] for name in ("id", "deadline_ms") if name in fields}
        return [Message({**member, **common}, self) for member in fields["messages"]]

    def _judge_all(self, messages: List[Message], replies: Any) -> Union[Answer, List[Answer]]:
        if isinstance(replies, Verdict):
            return self.blame(replies)
        if replies is None:
            replies = [None] * len(messages)
        if not isinstance(replies, (list, tuple)):
            raise TypeError("a handler of batches returns nothing, a verdict for all, or a list "
                            f"with a result for each message, not {type(replies).__name__}")
        if len(replies) > len(messages):  # of too few the service says so, and runs the rest again
            raise ValueError(f"{len(replies)} results for {len(messages)} messages")
        return [self._judge_member(message, reply) for message, reply in zip(messages, replies)]

    def _judge_member(self, message: Message, reply: Any) -> Answer:
        try:
            return self.judge(message, reply)
        except Exception as why:
            return self.blame(why)

    def _run_member(self, message: Message) -> Answer:
        try:
            return self.judge(message, self.handler.function(message))
        except Exception as why:
            return self.blame(why)

    async def _run_member_async(self, message: Message) -> Answer:
        try:
            return self.judge(message, await self.handler.function(message))
        except (Exception, asyncio.CancelledError) as why:
            return self.blame(why)

    def _encode_batch(self, fields: Fields, messages: List[Message],
                      answers: Union[Answer, List[Answer]]) -> bytes:
        for message in messages:
            message.is_answered = True
        number = fields["id"]
        if isinstance(answers, Answer):
            return self.encode(number, answers)
        if "messages" not in fields:
            return self.encode(number, answers[0] if answers else Answer("error", "no result"))
        try:
            return self.codec.results(number, answers)
        except Exception:
            return self.codec.results(number, [self._encodable(answer) for answer in answers])

    def _encodable(self, answer: Answer) -> Answer:
        try:
            self.codec.answer(0, answer)
            return answer
        except Exception as why:
            return self.blame(why)

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
