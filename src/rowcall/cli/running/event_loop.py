"""The event loop of a run: asyncio's own, or uvloop where the config asks for it."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable

from rowcall.config import Config
from rowcall.model.errors import ConfigError, Problem


def loop_factory(config: Config) -> Callable[[], AbstractEventLoop] | None:
    """What makes the loop; None: asyncio does.

    Raises:
        ConfigError: uvloop is not installed.
    """
    if config.pace.loop == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        remedy = "pip install 'rowcall[fast]', or take the line out"
        raise ConfigError(Problem(config.where(("pace", "loop")), "uvloop is not installed", remedy)) from None
    make: Callable[[], AbstractEventLoop] = uvloop.new_event_loop
    return make
