"""The contract of an export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Export(Protocol):
    """Takes rows in order, one at a time; what was written is there once ``finish`` was called."""

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row.

        Raises:
            OutputError: a value that the format cannot hold, no space left.
        """

    def finish(self) -> None:
        """Write what belongs after the last row.

        Raises:
            OutputError: as ``write``.
        """
