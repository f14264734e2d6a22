"""How many tokens a call will take, before anybody has counted them: characters, by a ratio that replies correct."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

RATIO = 4.0
"""Characters of a request's body to a token of input, before the first reply."""
_SHARE = 0.1
"""How much of what is believed the latest reply changes."""
_LIMITS = frozenset(("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "num_predict"))
"""The names under which APIs take their limit on output, at the top of a body or one level below."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a call is thought to take, and the characters it is thought from."""

    input: float = 0.0
    output: float = 0.0
    characters: int = 0


class Estimator:
    """Learns from the usage that replies report."""

    def __init__(self) -> None:
        self._ratio = RATIO
        self._output = 0.0

    def estimate(self, body: bytes) -> Estimate:
        """Input by the body's characters; output as its own limit says, else what replies have had lately."""
        characters = len(body.decode("utf-8", "replace"))
        limit = _limit_of(body)
        return Estimate(characters / self._ratio, self._output if limit is None else limit, characters)

    def learn(self, estimate: Estimate, input_tokens: int, output_tokens: int) -> None:
        """Take in what a reply reported; a report of nothing is none."""
        if input_tokens and estimate.characters:
            self._ratio += _SHARE * (estimate.characters / input_tokens - self._ratio)
        if input_tokens or output_tokens:
            self._output += _SHARE * (output_tokens - self._output)


def _limit_of(body: bytes) -> float | None:
    try:
        document = orjson.loads(body)
    except ValueError:
        return None
    tables = [document, *document.values()] if isinstance(document, dict) else []
    found = (limit for table in tables if isinstance(table, dict) for limit in map(_positive, _named(table)))
    return next((limit for limit in found if limit is not None), None)


def _named(table: dict[str, Any]) -> list[Any]:
    return [value for name, value in table.items() if name in _LIMITS]


def _positive(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None
