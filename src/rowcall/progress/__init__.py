"""Shows the progress of a run. Importing the text helpers does not import rich, which takes time."""

from typing import TYPE_CHECKING, Any

from rowcall.progress.number_text import clean, counted, latency_text, rate_text, short_number, short_time

if TYPE_CHECKING:
    from rowcall.progress.display import ProgressDisplay

__all__ = ["ProgressDisplay", "clean", "counted", "latency_text", "rate_text", "short_number", "short_time"]


def __getattr__(name: str) -> Any:
    if name != "ProgressDisplay":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rowcall.progress.display import ProgressDisplay

    return ProgressDisplay
