"""A statement that is executed for every job."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

_NAME = re.compile(r":(\w+)")


class PositionalStatement:
    """SQL with two or more named parameters that are bound by position, which is much faster in sqlite3."""

    def __init__(self, text: str) -> None:
        names = _NAME.findall(text)
        assert len(names) > 1, "one name gives a value, not a tuple"
        self._text = _NAME.sub("?", text)
        self._values: Callable[[Mapping[str, Any]], tuple[Any, ...]] = itemgetter(*names)

    def execute(self, connection: sqlite3.Connection, parameters: Mapping[str, Any]) -> sqlite3.Cursor:
        """Execute it; ``parameters`` may hold more than it names."""
        return connection.execute(self._text, self._values(parameters))
