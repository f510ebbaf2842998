# SPDX-License-Identifier: Apache-2.0
"""What a handler may say beside "done": raised or returned, as it suits the handler.

Durations are seconds, a timedelta, or a text with units as in the configuration ("1m30s"); they
are checked here, where the mistake is made, and not by the service.
"""
from __future__ import annotations

import datetime
import re
from typing import Optional, Union

Duration = Union[int, float, str, datetime.timedelta]

_PART = r"(\d+(?:\.\d+)?)(ms|[smhd])"
_DURATION = re.compile(f"(?:{_PART})+")
_PARTS = re.compile(_PART)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SECONDS_MAX = 366 * 24 * 3600
_CODE_MAX = 2**31 - 1


class _Null:
    """Publishes a null (a tombstone), where None publishes nothing."""

    def __repr__(self) -> str:
        return "laneway.NULL"


NULL = _Null()


def _seconds(value: Duration) -> float:
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if not isinstance(value, str):
        return value
    if not _DURATION.fullmatch(value):
        raise ValueError(f'{value!r} is no duration such as "5s" or "1m30s"')
    return sum(float(number) * _SECONDS[unit] for number, unit in _PARTS.findall(value))


def duration_text(value: Duration) -> str:
    """Gives it as the protocol wants it: a number with a unit."""
    seconds = _seconds(value)
    if not 0 <= seconds <= _SECONDS_MAX:  # also false for what is no number
        raise ValueError(f"a duration of {value!r} is out of range")
    return f"{round(seconds * 1000)}ms"


class Verdict(Exception):
    """What the four have in common: `result`, `reason`, `delay`, `code`."""

    result = "error"
    reason: str = ""  # here, too, for classes that do not call the one below
    delay: Optional[str] = None
    code: Optional[int] = None

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = str(reason)


class Retry(Verdict):
    """It may work later: after `delay`, or after the backoff of the pipeline."""

    result = "retry"

    def __init__(self, reason: str = "", delay: Optional[Duration] = None) -> None:
        super().__init__(reason)
        self.delay = None if delay is None else duration_text(delay)


class Dead(Verdict):
    """It can never work: a dead letter, with the reason."""

    result = "dead"


class Drop(Verdict):
    """Ignored on purpose: settled, and counted apart."""

    result = "drop"


class Error(Verdict):
    """No usable result. The pipeline decides, by its `errors` if there is a `code`."""

    def __init__(self, reason: str = "", code: Optional[int] = None) -> None:
        super().__init__(reason)
        if code is not None and not (isinstance(code, int) and abs(code) <= _CODE_MAX):
            raise ValueError(f"a code is a whole number of 32 bits, not {code!r}")
        self.code = code
