"""What a run shows of itself where a program makes it: a notebook's cell, stderr where asked, else nothing."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from rowcall.engine.options import Report
from rowcall.model.events import Event, Listener
from rowcall.progress import counted, short_time
from rowcall.run.pipeline import Pipeline

if TYPE_CHECKING:  # what draws is imported where something is drawn
    from rowcall.progress import ProgressDisplay


@dataclass(frozen=True, slots=True)
class LiveDisplay:
    """A display, if there is one, and who else listens."""

    progress: ProgressDisplay | None
    emit: Listener | None

    @classmethod
    def here(cls, display: bool | None, emit: Listener | None) -> Self:
        """The display that fits this place; ``display`` as ``rowcall.open`` takes it."""
        progress = None if display is False else _in_cell()
        return cls(progress or (_on_stderr() if display else None), emit)

    def hear(self, event: Event) -> None:
        """Pass an event on."""
        if self.emit:
            self.emit(event)
        if self.progress:
            self.progress.hear(event)

    @asynccontextmanager
    async def during(self, pipeline: Pipeline, limit: int | None) -> AsyncIterator[None]:
        """Show a pipeline at work."""
        if self.progress:
            self.progress.start(pipeline, limit=limit)
        try:
            yield
        finally:
            if self.progress:
                await self.progress.close()

    def ended(self, report: Report) -> None:
        """Say how a run ended."""
        if self.progress:
            whole = f"{counted(report.total, 'record')}: {report.done:,} done, {report.failed:,} failed"
            why = "" if report.ending.reason == "done" else f"; {report.ending.message or report.ending.reason}"
            self.progress.say(f"{report.kind}: {whole}, {report.left:,} left{why}; {short_time(report.elapsed)}")


def _in_cell() -> ProgressDisplay | None:
    """A display in the cell that runs; None where this is no notebook."""
    if "IPython" not in sys.modules:
        return None
    from rowcall.progress.notebook_cell import CellProgress, cell_output

    handle = cell_output()
    return CellProgress(handle) if handle else None


def _on_stderr() -> ProgressDisplay:
    from rowcall.progress import ProgressDisplay

    return ProgressDisplay(sys.stderr)
