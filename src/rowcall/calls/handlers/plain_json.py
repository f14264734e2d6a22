"""Copies a program's values into plain JSON values, or refuses them and names the path of what is not JSON."""

from __future__ import annotations

import math
from typing import Any

from rowcall.model.json_values import Number

DEEPEST = 200
"""Levels to which a value may be nested."""

_LONGEST_PATH = 200
_WIDEST = range(-(2**63), 2**64)  # a larger integer is kept as text, so that no digit is lost


class NotPlain(ValueError):
    """A value that JSON cannot hold; its text says where the value is and what it is."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self._path = ""

    def within(self, step: str) -> NotPlain:
        """Add a step to the front of the path, seen from one level further out."""
        self._path = step + self._path
        return self

    def __str__(self) -> str:
        path = self._path if len(self._path) <= _LONGEST_PATH else f"{self._path[:_LONGEST_PATH]}..."
        return f"{path} {self.args[0]}"


def plain(value: Any, name: str) -> Any:
    """Return a copy in plain values; tuples become lists, and integers of any size keep all their digits.

    Args:
        value: anything.
        name: what messages call it: with ``result`` they say ``result.items[3].when is a datetime``.

    Raises:
        NotPlain: a date, a set, a key that is no text, NaN, a value that contains itself, a lone surrogate.
    """
    try:
        return _copy(value, ())
    except NotPlain as error:
        raise error.within(name) from None


def _copy(value: Any, around: tuple[int, ...]) -> Any:
    if value is None or isinstance(value, bool | Number):
        return value
    if isinstance(value, str):
        return _text(str.__str__(value))
    if isinstance(value, int):
        whole = int(value)
        return whole if whole in _WIDEST else Number(str(whole))
    if isinstance(value, float):
        return _finite(float(value))
    if isinstance(value, dict | list | tuple):
        return _container(value, around)
    raise NotPlain(f"is a {type(value).__name__}, which JSON cannot represent")


def _container(value: dict[Any, Any] | list[Any] | tuple[Any, ...], around: tuple[int, ...]) -> Any:
    if id(value) in around:
        raise NotPlain("contains itself")
    if len(around) >= DEEPEST:
        raise NotPlain("is nested too deeply")
    inside = (*around, id(value))
    return _table(value, inside) if isinstance(value, dict) else _list(value, inside)


def _table(table: dict[Any, Any], inside: tuple[int, ...]) -> dict[str, Any]:
    copied = {}
    for name, item in table.items():
        if not isinstance(name, str):
            raise NotPlain(f"has the key {name!r:.40}, which is not text")
        try:
            copied[_text(str.__str__(name))] = _copy(item, inside)
        except NotPlain as error:
            raise error.within(f".{name}") from None
    return copied


def _list(items: list[Any] | tuple[Any, ...], inside: tuple[int, ...]) -> list[Any]:
    copied = []
    for at, item in enumerate(items):
        try:
            copied.append(_copy(item, inside))
        except NotPlain as error:
            raise error.within(f"[{at}]") from None
    return copied


def _text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotPlain("is not valid text (a lone surrogate)") from None
    return text


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise NotPlain(f"is {number}, which JSON cannot represent")
    return number
