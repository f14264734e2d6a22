"""Estimates how many tokens a call will take, by its characters and a ratio that replies correct."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

RATIO = 4.0
"""Characters of a request's body per token of input, before the first reply."""
_SHARE = 0.1
"""The weight of the latest reply in an estimate."""
_LIMITS = frozenset(("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "num_predict"))
"""Names of an output limit in a request's body, at its top or one level below."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated tokens of a call, and the characters that they were estimated from."""

    input: float = 0.0
    output: float = 0.0
    characters: int = 0


class Estimator:
    """Estimates tokens, and learns from the usage that replies report."""

    def __init__(self) -> None:
        self._ratio = RATIO
        self._output = 0.0

    def estimate(self, body: bytes) -> Estimate:
        """Estimate input by the body's characters, output by the limit in the body or else by recent replies."""
        characters = len(body.decode("utf-8", "replace"))
        limit = _limit_of(body)
        return Estimate(characters / self._ratio, self._output if limit is None else limit, characters)

    def learn(self, estimate: Estimate, input_tokens: int, output_tokens: int) -> None:
        """Take in the usage of a reply; zeros are ignored, since the reply reported nothing."""
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
