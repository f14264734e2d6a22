"""Commands in advice, as they must be typed where the config is not ``config.toml``."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from rowcall.model.store_location import StoreLocation

USUAL = Path("config.toml")
"""The config that needs no name."""

_TAKES_CONFIG = re.compile(r"rowcall (?:run|check|enqueue|work)\b")
_TAKES_STORE = re.compile(r"rowcall run\b(?! --|,)")
_TAKES_OPTION = re.compile(r"rowcall (?:errors\b|(?:retry|show) [^\s;,]+)")


@dataclass(frozen=True, slots=True)
class Located:
    """Where a person said that a batch job is: by its config, or by its store, which only workers can do with."""

    config: Path = USUAL
    store: StoreLocation | None = None

    def __call__(self, advice: str) -> str:
        """The advice with the config or the store in each of its commands that need it."""
        if self.store:
            named = f" --store {shlex.quote(str(self.store))}"
            working = _TAKES_STORE.sub(lambda _: "rowcall work" + named, advice)
            return _with(_TAKES_OPTION, working, named)
        if self.config == USUAL:
            return advice
        named = shlex.quote(str(self.config))
        return _with(_TAKES_CONFIG, _with(_TAKES_OPTION, advice, f" --config {named}"), f" {named}")


def _with(commands: re.Pattern[str], advice: str, words: str) -> str:
    return commands.sub(lambda found: found[0] + words, advice)
