"""The event loop of a run: that of asyncio, or uvloop if the config asks for it."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections.abc import Callable

from rowcall.config import Config
from rowcall.model.errors import ConfigError, Problem


def loop_factory(config: Config) -> Callable[[], AbstractEventLoop] | None:
    """Return what creates the event loop; None means that of asyncio.

    Raises:
        ConfigError: uvloop is not installed.
    """
    if config.pace.loop == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        remedy = "install it with: pip install 'rowcall[fast]'; or remove the line"
        raise ConfigError(Problem(config.where(("pace", "loop")), "uvloop is not installed", remedy)) from None
    make: Callable[[], AbstractEventLoop] = uvloop.new_event_loop
    return make
