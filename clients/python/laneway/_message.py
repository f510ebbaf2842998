# SPDX-License-Identifier: Apache-2.0
"""A message as a handler sees it.

It holds the fields as the service sent them and makes of them what is asked for, so that a handler
pays for nothing that it does not use. With `lines` the content is text in `value` or base64 in
`value_b64`; with `frames` it is bytes in `value`.
"""
from __future__ import annotations

import base64
import datetime
import json
import time
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Tuple, Union

from ._verdicts import Duration, _Null, duration_text

if TYPE_CHECKING:
    from ._session import Session

HeaderValue = Union[str, bytes, None]
Content = Union[str, bytes, bytearray, memoryview, Dict[Any, Any], List[Any], _Null, None]
OutputHeaders = Mapping[str, Union[str, None, List[Optional[str]]]]


def _content(fields: Dict[str, Any], name: str) -> Optional[bytes]:
    value = fields.get(name)
    if value is None:
        coded = fields.get(name + "_b64")
        return None if coded is None else base64.b64decode(coded)
    return value.encode() if isinstance(value, str) else bytes(value)


def _text(fields: Dict[str, Any], name: str) -> Optional[str]:
    value = fields.get(name)
    if isinstance(value, str):
        return value
    content = _content(fields, name)
    return None if content is None else content.decode()


def _listed(value: Any) -> List[Any]:
    return value if isinstance(value, list) else [value]


class Headers(Mapping[str, HeaderValue]):
    """Headers by name. Of a name that comes more than once, `[name]` is the last value.

    Values are text, bytes where they are no UTF-8, or None for a null.
    """

    __slots__ = ("_binary", "_texts")

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._texts: Dict[str, Any] = fields.get("headers") or {}
        self._binary: Dict[str, Any] = fields.get("headers_b64") or {}

    def get_all(self, name: str) -> List[HeaderValue]:
        """All values of a name, in order; those that are no text come last."""
        values: List[HeaderValue] = []
        if name in self._texts:
            values += _listed(self._texts[name])
        if name in self._binary:
            values += (base64.b64decode(coded) for coded in _listed(self._binary[name]))
        return values

    def __getitem__(self, name: str) -> HeaderValue:
        values = self.get_all(name)
        if not values:
            raise KeyError(name)
        return values[-1]

    def __iter__(self) -> Iterator[str]:
        yield from self._texts
        yield from (name for name in self._binary if name not in self._texts)

    def __len__(self) -> int:
        return len(self._texts.keys() | self._binary.keys())

    def __repr__(self) -> str:
        return f"Headers({dict(self)!r})"


class Message:
    """One attempt at one message."""

    __slots__ = ("_began", "_fields", "_ms", "_session", "is_answered", "outputs")

    def __init__(self, fields: Dict[str, Any], session: Session) -> None:
        self._fields = fields
        self._session = session
        self._began = time.monotonic()
        self._ms: Optional[float] = fields.get("deadline_ms")
        self.is_answered = False
        self.outputs: Optional[List[Dict[str, Any]]] = None

    @property
    def number(self) -> int:
        """The id of this attempt in the conversation."""
        return int(self._fields["id"])

    # -- Content ------------------------------------------------------------------------------

    @property
    def value(self) -> Optional[bytes]:
        """The payload; None is a null (a tombstone)."""
        return _content(self._fields, "value")

    @property
    def text(self) -> str:
        """The payload as text, "" for a null. UnicodeDecodeError if it is none."""
        return _text(self._fields, "value") or ""

    def json(self) -> Any:
        """The payload read as JSON. ValueError if it is none, also for a null."""
        text = _text(self._fields, "value")
        if text is None:
            raise ValueError("the message has no payload")
        return json.loads(text)

    @property
    def key(self) -> Optional[bytes]:
        return _content(self._fields, "key")

    @property
    def key_text(self) -> Optional[str]:
        return _text(self._fields, "key")

    @property
    def ordering_key(self) -> Optional[bytes]:
        return _content(self._fields, "ordering_key")

    @property
    def headers(self) -> Headers:
        return Headers(self._fields)

    # -- Where it is from ---------------------------------------------------------------------

    @property
    def message_id(self) -> str:
        """The stable identity: the same in every retry. Remember it to notice duplicates."""
        return str(self._fields["message_id"])

    @property
    def topic(self) -> str:
        return str(self._fields["topic"])

    @property
    def partition(self) -> int:
        return int(self._fields["partition"])

    @property
    def offset(self) -> int:
        return int(self._fields["offset"])

    @property
    def subscription(self) -> str:
        return str(self._fields["subscription"])

    @property
    def pipeline(self) -> str:
        return str(self._fields["pipeline"])

    @property
    def timestamp(self) -> Optional[datetime.datetime]:
        return self._time("timestamp")

    @property
    def event_time(self) -> Optional[datetime.datetime]:
        return self._time("event_time")

    def _time(self, name: str) -> Optional[datetime.datetime]:
        text = self._fields.get(name)
        return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None

    # -- Attempts -----------------------------------------------------------------------------

    @property
    def attempt(self) -> int:
        """Runs in the service that sent it, from 1."""
        return int(self._fields["attempt"])

    @property
    def retries(self) -> int:
        """Republications through retry topics."""
        return int(self._fields["retries"])

    @property
    def redeliveries(self) -> int:
        """The broker's own count."""
        return int(self._fields["redeliveries"])

    def remaining(self) -> Optional[float]:
        """Seconds until the attempt times out; None if it has no timeout."""
        if self._ms is None:
            return None
        return self._began + self._ms / 1000 - time.monotonic()

    def extend(self, duration: Duration) -> None:
        """Still working: the attempt ends `duration` from now at the earliest."""
        text = duration_text(duration)
        left = self.remaining()
        self._session.extend(self, text)
        if left is not None and left * 1000 < int(text[:-2]):
            self._began = time.monotonic()
            self._ms = float(text[:-2])

    def publish(self, topic: str, value: Content = None, *, key: Union[str, bytes, None] = None,
                headers: Optional[OutputHeaders] = None,
                delay: Optional[Duration] = None) -> None:
        """Publishes a further message if the verdict is ok: confirmed before this one is settled.

        A dict or a list goes as JSON; None is a null.
        """
        output: Dict[str, Any] = {"topic": topic}
        if key is not None:
            output["key"] = key
        if value is not None and not isinstance(value, _Null):
            output["value"] = plain(value)
        if headers:
            output["headers"] = dict(headers)
        if delay is not None:
            output["delay"] = duration_text(delay)
        if self.outputs is None:
            self.outputs = []
        self.outputs.append(output)

    def __repr__(self) -> str:
        return f"Message({self._fields.get('message_id', '?')!r})"


_encode_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False,
                                separators=(",", ":")).encode


def plain(value: Any) -> Union[str, bytes]:
    """Text or bytes, of all that may be published."""
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, (dict, list)):
        return _encode_json(value)
    raise TypeError(f"a payload is text, bytes, a dict or a list, not {type(value).__name__}")


def split(value: Union[str, bytes]) -> Tuple[Optional[str], Optional[str]]:
    """(text, None) or (None, base64)."""
    if isinstance(value, str):
        return value, None
    try:
        return value.decode(), None
    except UnicodeDecodeError:
        return None, base64.b64encode(value).decode("ascii")
