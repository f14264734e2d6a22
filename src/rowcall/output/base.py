"""The contract of an export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Export(Protocol):
    """Takes rows in order, one at a time. The file is complete once ``finish`` has returned."""

    def write(self, row: Mapping[str, Any]) -> None:
        """Write one row.

        Raises:
            OutputError: a value that the format cannot hold, no space left.
        """

    def finish(self) -> None:
        """Write what comes after the last row.

        Raises:
            OutputError: as ``write``.
        """
