"""Chooses how a run that a program starts shows its progress: in the notebook's cell, on stderr, or not at all."""

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

if TYPE_CHECKING:  # imports rich, which is needed only if something is shown
    from rowcall.progress import ProgressDisplay


@dataclass(frozen=True, slots=True)
class LiveDisplay:
    """The display, if there is one, and the program's own listener."""

    progress: ProgressDisplay | None
    emit: Listener | None

    @classmethod
    def here(cls, display: bool | None, emit: Listener | None) -> Self:
        """Choose the display; ``display`` has the same meaning as in ``rowcall.open``."""
        progress = None if display is False else _in_cell()
        if display and progress is None:
            from rowcall.progress import ProgressDisplay

            progress = ProgressDisplay(sys.stderr)
        return cls(progress, emit)

    def hear(self, event: Event) -> None:
        """Pass an event to the listener and the display."""
        if self.emit:
            self.emit(event)
        if self.progress:
            self.progress.hear(event)

    @asynccontextmanager
    async def during(self, pipeline: Pipeline, limit: int | None) -> AsyncIterator[None]:
        """Show the pipeline's progress during the block."""
        if self.progress:
            self.progress.start(pipeline, limit=limit)
        try:
            yield
        finally:
            if self.progress:
                await self.progress.close()

    def ended(self, report: Report) -> None:
        """Show one line about how the run ended."""
        if self.progress:
            whole = f"{counted(report.total, 'record')}: {report.done:,} done, {report.failed:,} failed"
            why = "" if report.ending.reason == "done" else f"; {report.ending.message or report.ending.reason}"
            self.progress.say(f"{report.kind}: {whole}, {report.left:,} left{why}; {short_time(report.elapsed)}")


def _in_cell() -> ProgressDisplay | None:
    """Return a display in the running cell; None outside a notebook."""
    if "IPython" not in sys.modules:
        return None
    from rowcall.progress.notebook_cell import CellProgress, cell_output

    handle = cell_output()
    return CellProgress(handle) if handle else None
