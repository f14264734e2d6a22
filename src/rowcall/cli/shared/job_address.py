"""Where the user said that a batch job is, and the commands of a message as they must be typed for it."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from rowcall.model.store_location import StoreLocation

DEFAULT_CONFIG = Path("config.toml")
"""The config that commands read when none is named."""

_TAKES_CONFIG = re.compile(r"rowcall (?:run|check|enqueue|work)\b")
_TAKES_STORE = re.compile(r"rowcall run\b(?! --|,)")
_TAKES_OPTION = re.compile(r"rowcall (?:errors\b|(?:retry|show) [^\s;,]+)")


@dataclass(frozen=True, slots=True)
class JobAddress:
    """Where the user said that a batch job is.

    Attributes:
        config: the config file that describes it.
        store: its store, if that was named instead; only workers can do without a config.
        name: which job of the store is meant, if that was named.
    """

    config: Path = DEFAULT_CONFIG
    store: StoreLocation | None = None
    name: str | None = None

    def fill_in(self, text: str) -> str:
        """Add the config or the store to each command in a text that needs it."""
        if self.store:
            named = f" --store {shlex.quote(str(self.store))}"
            working = _TAKES_STORE.sub(lambda _: "rowcall work" + named, text)
            return _append(_TAKES_OPTION, working, named)
        if self.config == DEFAULT_CONFIG:
            return text
        named = shlex.quote(str(self.config))
        return _append(_TAKES_CONFIG, _append(_TAKES_OPTION, text, f" --config {named}"), f" {named}")


def _append(commands: re.Pattern[str], text: str, words: str) -> str:
    return commands.sub(lambda found: found[0] + words, text)
