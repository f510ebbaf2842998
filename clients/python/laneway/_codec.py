# SPDX-License-Identifier: Apache-2.0
"""Bytes to requests and answers to bytes: the lines protocol and the frames protocol.

docs/protocol.md of Laneway is the norm. Both codecs take bytes as they arrive and give out the
requests that are whole. An answer is encoded when it is given, so that one that cannot be encoded
(a lone surrogate, say) is found while its message is still at hand.
"""
from __future__ import annotations

import json
from typing import Any, Dict, List, Optional, Sequence, Union

from ._message import plain, split

Fields = Dict[str, Any]
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_read = json.JSONDecoder().raw_decode

LENGTH_BYTES = 4
HEADER_BYTES_MAX = 0xFFFFFF
# What the service takes for one answer, beside the size of its request. A longer one would break
# the protocol, and end the program with all that it holds.
ANSWER_BYTES_MAX = 16 << 20
_CONTENTS = (("key", "key_len"), ("value", "value_len"))  # behind a header, in this order


class ProtocolError(Exception):
    """The service does not speak what this client speaks."""


class Answer:
    """What is said about one message. `reply` is None for nothing; `has_reply` tells a null."""

    __slots__ = ("code", "delay", "has_reply", "outputs", "reason", "reply", "result")

    def __init__(self, result: str = "ok", reason: str = "") -> None:
        self.result = result
        self.reason = reason
        self.delay: Optional[str] = None
        self.code: Optional[int] = None
        self.has_reply = False
        self.reply: Union[str, bytes, None] = None
        self.outputs: Optional[List[Fields]] = None

    def header(self) -> Fields:
        """All of it but what the protocols write in different ways."""
        header: Fields = {"result": self.result}
        if self.reason:
            header["reason"] = self.reason
        if self.delay is not None:
            header["delay"] = self.delay
        if self.code is not None:
            header["code"] = self.code
        return header


def _short(header: Fields) -> Union[Fields, str]:
    """Of a result that is nothing but a word, the word."""
    return header["result"] if len(header) == 1 else header


class TooLargeError(ValueError):
    """An answer that the service would not take."""


def require_fit(request: Fields, answer: bytes) -> bytes:
    """The answer, if the service takes it; the size of the request is only asked for if need be."""
    if len(answer) > ANSWER_BYTES_MAX:
        size = sum(map(_content_bytes, request.get("messages") or (request,)))
        if len(answer) > ANSWER_BYTES_MAX + size:
            raise TooLargeError(
                f"an answer of {len(answer)} bytes (reply and outputs together) is too large: at most "
                f"16 MiB more than its request are allowed, here {ANSWER_BYTES_MAX + size}")
    return answer


def _content_bytes(message: Fields) -> int:
    """As many bytes as its content had at least on its way."""
    size = 0
    for name in ("key", "value", "key_b64", "value_b64"):
        content = message.get(name)
        if isinstance(content, str):
            size += len(_encode(content).encode())
        elif content is not None:
            size += len(content)
    return size


def _put(header: Fields, name: str, value: Union[str, bytes]) -> None:
    text, coded = split(value)
    if text is None:
        header[name + "_b64"] = coded
    else:
        header[name] = text


class Lines:
    """One JSON object per line."""

    name = "lines"

    def __init__(self) -> None:
        self._parts: List[bytes] = []

    def feed(self, data: bytes) -> List[Fields]:
        """Takes what was read and gives the requests that are whole."""
        end = data.rfind(b"\n") + 1
        if end == 0:
            self._parts.append(data)
            return []
        whole = data if end == len(data) else data[:end]
        if self._parts:
            self._parts.append(whole)
            whole = b"".join(self._parts)
            self._parts = []
        if end < len(data):
            self._parts.append(data[end:])
        return self._decode(whole)

    def has_rest(self) -> bool:
        return bool(self._parts)

    @staticmethod
    def _decode(whole: bytes) -> List[Fields]:
        requests = []
        try:
            text = whole.decode()
            at, size = 0, len(text)
            while at < size:
                if text[at] == "{":
                    fields, at = _read(text, at)
                    requests.append(fields)
                elif text[at] not in " \t\r\n":
                    raise ValueError("a line is no JSON object")
                else:
                    at += 1
        except ValueError as why:
            raise ProtocolError(f"what the service wrote is not the lines protocol: {why}") from why
        return requests

    @staticmethod
    def say(header: Fields) -> bytes:
        """Encodes a line that is no answer, such as `ready`."""
        return (_encode(header) + "\n").encode()

    @staticmethod
    def ok(number: int) -> bytes:
        """The most frequent answer."""
        return b'{"id":%d,"result":"ok"}\n' % number

    @staticmethod
    def ok_text(number: int, reply: str) -> bytes:
        """The second most frequent one."""
        return f'{{"id":{number},"result":"ok","reply":{_encode(reply)}}}\n'.encode()

    @classmethod
    def answer(cls, number: int, answer: Answer) -> bytes:
        return cls.say({"id": number, **_written(answer)})

    @classmethod
    def results(cls, number: int, answers: Sequence[Answer]) -> bytes:
        """One for each message of a batch."""
        return cls.say({"id": number, "results": [_short(_written(answer)) for answer in answers]})


def _written(answer: Answer) -> Fields:
    header = answer.header()
    if answer.has_reply and answer.reply is None:
        header["reply"] = None
    elif answer.reply is not None:
        _put(header, "reply", answer.reply)
    if answer.outputs:
        header["outputs"] = [_listed(output) for output in answer.outputs]
    return header


def _listed(output: Fields) -> Fields:
    """An output as the lines protocol writes it."""
    header = {name: value for name, value in output.items() if name not in ("key", "value")}
    for name in ("key", "value"):
        if name in output:
            _put(header, name, plain(output[name]))
    return header


class Frames:
    """A header of JSON with its length before it, and raw bytes behind it."""

    name = "frames"

    def __init__(self) -> None:
        self._parts: List[bytes] = []
        self._held = 0
        self._need = LENGTH_BYTES  # so many bytes must be held before there is anything to do

    def feed(self, data: bytes) -> List[Fields]:
        """Takes what was read and gives the requests that are whole."""
        requests: List[Fields] = []
        self._held += len(data)
        if self._parts or self._held < self._need:
            self._parts.append(data)
            if self._held < self._need:
                return requests
            data = b"".join(self._parts)
            self._parts = []
        at = self._take_all(data, requests)
        if at < len(data):
            self._parts.append(data[at:])
        self._held = len(data) - at
        return requests

    def has_rest(self) -> bool:
        return self._held > 0

    def _take_all(self, data: bytes, requests: List[Fields]) -> int:
        """Appends the whole requests; gives where the first that is not whole begins."""
        at, held = 0, len(data)
        while True:
            begin = at + LENGTH_BYTES
            if begin > held:
                self._need = LENGTH_BYTES
                return at
            end = begin + int.from_bytes(data[at:begin], "big")
            if end - begin > HEADER_BYTES_MAX:
                raise ProtocolError("what the service wrote is not the frames protocol")
            if end > held:
                self._need = end - at
                return at
            fields = self._read_header(data[begin:end])
            messages = fields.get("messages") or (fields,)
            body = end
            for message in messages:
                end += (message.get("key_len") or 0) + (message.get("value_len") or 0)
            if end > held:
                self._need = end - at
                return at
            for message in messages:
                for name, length in _CONTENTS:
                    size = message.get(length)
                    if size is not None:
                        message[name] = data[body:body + size]
                        body += size
            requests.append(fields)
            at = end

    @staticmethod
    def _read_header(header: bytes) -> Fields:
        try:
            fields: Fields = _read(header.decode().lstrip())[0]
        except ValueError as why:
            raise ProtocolError(f"the header of a frame is wrong: {why}") from why
        if not isinstance(fields, dict):
            raise ProtocolError("the header of a frame is no JSON object")
        return fields

    @staticmethod
    def say(header: Fields) -> bytes:
        """Encodes a frame that is no answer, such as `ready`."""
        return _framed(_encode(header).encode())

    @staticmethod
    def ok(number: int) -> bytes:
        """The most frequent answer."""
        return _framed(b'{"id":%d,"result":"ok"}' % number)

    @staticmethod
    def ok_text(number: int, reply: str) -> bytes:
        """The second most frequent one."""
        body = reply.encode()
        return _framed(b'{"id":%d,"result":"ok","reply_len":%d}' % (number, len(body)), body)

    @staticmethod
    def answer(number: int, answer: Answer) -> bytes:
        parts: List[bytes] = []
        header = {"id": number, **_framed_answer(answer, parts)}
        return _framed(_encode(header).encode(), *parts)

    @staticmethod
    def results(number: int, answers: Sequence[Answer]) -> bytes:
        """One for each message of a batch."""
        parts: List[bytes] = []
        results = [_short(_framed_answer(answer, parts)) for answer in answers]
        header = {"id": number, "results": results}
        return _framed(_encode(header).encode(), *parts)


def _framed_answer(answer: Answer, parts: List[bytes]) -> Fields:
    header = answer.header()
    if answer.has_reply and answer.reply is None:
        header["reply"] = None
    elif answer.reply is not None:
        _measure(header, "reply", answer.reply, parts)
    if answer.outputs:
        header["outputs"] = [_measured(output, parts) for output in answer.outputs]
    return header


def _framed(header: bytes, *parts: bytes) -> bytes:
    if len(header) > HEADER_BYTES_MAX:
        raise TooLargeError("the header of an answer is larger than 16 MiB")
    return b"".join((len(header).to_bytes(LENGTH_BYTES, "big"), header, *parts))


def _measure(header: Fields, name: str, value: Union[str, bytes], parts: List[bytes]) -> None:
    body = value.encode() if isinstance(value, str) else value
    header[name + "_len"] = len(body)
    parts.append(body)


def _measured(output: Fields, parts: List[bytes]) -> Fields:
    """An output as the frames protocol writes it."""
    header = {name: value for name, value in output.items() if name not in ("key", "value")}
    for name in ("key", "value"):
        if name in output:
            _measure(header, name, plain(output[name]), parts)
    return header


Codec = Union[Lines, Frames]
