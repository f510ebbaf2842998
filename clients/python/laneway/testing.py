# SPDX-License-Identifier: Apache-2.0
"""Calls a handler as a service would, without one: for unit tests of handlers.

    from laneway.testing import call

    def test_an_order_without_an_id_is_dead():
        result = call(app, {"customer": 3}, handler="confirm-order")
        assert result.verdict == "dead"
        assert result.reason == "bad order: no id"

The message is encoded as the service encodes it, and the answer is read as the service reads it,
so what cannot be sent fails here too.
"""
from __future__ import annotations

import asyncio
import base64
import json
from collections import deque
from typing import (Any, Callable, Deque, Dict, List, Mapping, NamedTuple, Optional, Sequence,
                    Tuple, Union)

from ._app import App
from ._codec import Fields, Frames, Lines
from ._message import _encode_json, split
from ._run import Asynchronous
from ._session import Input, Session

Payload = Union[str, bytes, Dict[Any, Any], List[Any], None]
HeaderValues = Union[str, bytes, None, Sequence[Union[str, bytes, None]]]


class Output(NamedTuple):
    """A further message that the handler publishes."""

    topic: str
    key: Optional[bytes]
    value: Optional[bytes]
    headers: Dict[str, Any]
    delay: Optional[str]


class Result(NamedTuple):
    """What the service would read."""

    verdict: str
    reason: str
    delay: Optional[str]
    code: Optional[int]
    has_reply: bool
    reply: Optional[bytes]
    outputs: List[Output]
    extensions: List[str]
    logs: List[Tuple[str, str]]

    def json(self) -> Any:
        """The reply read as JSON."""
        if self.reply is None:
            raise ValueError("there is no reply")
        return json.loads(self.reply)


class _Recorder:
    """Stands for the way to the service."""

    def __init__(self) -> None:
        self.queue: Deque[bytes] = deque()
        self.said: List[bytes] = []

    def flush(self) -> None:
        """What was answered stays in the queue."""

    def now(self, data: bytes, unless: Optional[Callable[[], bool]] = None) -> None:
        if unless is None or not unless():
            self.said.append(data)


def call(app: App, value: Payload = None, *, handler: Optional[str] = None,
         key: Union[str, bytes, None] = None, headers: Optional[Mapping[str, HeaderValues]] = None,
         protocol: str = "lines", **fields: Any) -> Result:
    """Runs a handler on one message. `fields` are further ones of the protocol: topic="orders",
    attempt=2, deadline_ms=5000. Without `handler` the program's only one is called."""
    request = _request(protocol, [(value, key, headers)], fields, is_batch=False)
    return _call(app, handler, protocol, request)[0]


def call_batch(app: App, values: Sequence[Payload], *, handler: Optional[str] = None,
               protocol: str = "lines", **fields: Any) -> List[Result]:
    """Runs a handler on several messages at once; a result for each. One verdict for all is given
    as that of each."""
    request = _request(protocol, [(value, None, None) for value in values], fields, is_batch=True)
    results = _call(app, handler, protocol, request)
    return results if len(results) > 1 or len(values) < 2 else results * len(values)


def _call(app: App, name: Optional[str], protocol: str, request: bytes) -> List[Result]:
    codec: Any = {"lines": Lines, "frames": Frames}[protocol]()
    recorder = _Recorder()
    session = Session(codec, recorder)  # type: ignore[arg-type]
    if name is None and len(app.handlers) == 1:
        name = next(iter(app.handlers))
    if name not in app.handlers:
        raise ValueError(f"no handler is called {name!r}")
    session.handler = app.handlers[name]
    previous, app._session = app._session, session
    try:
        (fields,) = codec.feed(request)
        session.has_batches = session.handler.is_batch or "messages" in fields
        if session.handler.is_async:
            asyncio.run(Asynchronous(session, Input(-1)).run_these([fields]))
            answer = recorder.queue.popleft()
        else:
            answer = (session.run_batch if session.has_batches else session.run)(fields)
    finally:
        app._session = previous
    return _results(protocol, answer, recorder.said)


# -- What a service writes ------------------------------------------------------------------------


Given = Tuple[Payload, Union[str, bytes, None], Optional[Mapping[str, HeaderValues]]]


def _request(protocol: str, messages: Sequence[Given], fields: Fields, is_batch: bool) -> bytes:
    parts: List[bytes] = []
    members = [_member(protocol, number, message, fields, parts)
               for number, message in enumerate(messages)]
    header = {"id": 1, "messages": members} if is_batch else {"id": 1, **members[0]}
    text = json.dumps(header)
    if protocol == "lines":
        return (text + "\n").encode()
    return b"".join((len(text).to_bytes(4, "big"), text.encode(), *parts))


def _member(protocol: str, number: int, message: Given, fields: Fields,
            parts: List[bytes]) -> Fields:
    value, key, headers = message
    header: Fields = {"message_id": f"main/test/0/{number}", "topic": "test", "partition": 0,
                      "offset": number, "subscription": "test", "pipeline": "test",
                      **_header_objects(headers or {}),
                      "timestamp": "2026-01-01T00:00:00.000Z", "attempt": 1, "retries": 0,
                      "redeliveries": 0, **fields}
    if isinstance(value, (dict, list)):
        value = _encode_json(value)
    for name, content in (("key", key), ("value", value)):
        if content is None:
            continue
        if protocol == "frames":
            parts.append(content.encode() if isinstance(content, str) else content)
            header[name + "_len"] = len(parts[-1])
        else:
            text, coded = split(content)
            header[name if coded is None else name + "_b64"] = text if coded is None else coded
    return header


def _header_objects(headers: Mapping[str, HeaderValues]) -> Fields:
    texts: Dict[str, List[Optional[str]]] = {}
    coded: Dict[str, List[Optional[str]]] = {}
    for name, values in headers.items():
        listed = [values] if values is None or isinstance(values, (str, bytes)) else values
        for value in listed:
            text, binary = (None, None) if value is None else split(value)
            (texts if binary is None else coded).setdefault(name, []).append(
                text if binary is None else binary)
    objects: Fields = {"headers": _unlisted(texts)}
    if coded:
        objects["headers_b64"] = _unlisted(coded)
    return objects


def _unlisted(values: Mapping[str, List[Optional[str]]]) -> Dict[str, Any]:
    return {name: listed[0] if len(listed) == 1 else listed for name, listed in values.items()}


# -- What a service reads -------------------------------------------------------------------------


class _Reader:
    """One answer, or what else is said."""

    def __init__(self, protocol: str, data: bytes) -> None:
        if protocol == "lines":
            if not data.endswith(b"\n") or b"\n" in data[:-1]:
                raise AssertionError(f"not one line: {data!r}")
            self._rest = b""
        else:
            size = int.from_bytes(data[:4], "big")
            data, self._rest = data[4:4 + size], data[4 + size:]
        self.header: Fields = json.loads(data)

    def content(self, holder: Fields, name: str) -> Tuple[bool, Optional[bytes]]:
        """(it was said, the bytes or None for a null)."""
        if name + "_len" in holder:
            size = holder[name + "_len"]
            part, self._rest = self._rest[:size], self._rest[size:]
            return True, part
        if name + "_b64" in holder:
            return True, base64.b64decode(holder[name + "_b64"], validate=True)
        value = holder.get(name)
        return name in holder, None if value is None else value.encode()

    def check_end(self) -> None:
        if self._rest:
            raise AssertionError(f"{len(self._rest)} bytes too many behind a frame")


def _results(protocol: str, answer: bytes, said: List[bytes]) -> List[Result]:
    """One for each message, or one for all."""
    reader = _Reader(protocol, answer)
    others = [_Reader(protocol, data).header for data in said]
    extensions = [other["extend"] for other in others if "extend" in other]
    logs = [(other["log"], other["msg"]) for other in others if "log" in other]
    holders = [{"result": holder} if isinstance(holder, str) else holder
               for holder in reader.header.get("results", [reader.header])]
    results = [_result(reader, holder, extensions, logs) for holder in holders]
    reader.check_end()
    return results


def _result(reader: _Reader, holder: Fields, extensions: List[str],
            logs: List[Tuple[str, str]]) -> Result:
    has_reply, reply = reader.content(holder, "reply")
    outputs = []
    for output in holder.get("outputs", []):
        key, value = (reader.content(output, name)[1] for name in ("key", "value"))
        outputs.append(Output(output["topic"], key, value, output.get("headers", {}),
                              output.get("delay")))
    return Result(holder["result"], holder.get("reason", ""), holder.get("delay"),
                  holder.get("code"), has_reply, reply, outputs, extensions, logs)
