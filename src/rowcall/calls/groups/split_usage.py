"""Divides what one reply was billed for among its records, so that the sum stays exact."""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.model.outcome import Usage


def divided(usage: Usage, weights: Sequence[int]) -> list[Usage]:
    """Return each record's share of the usage, in whole numbers, in the proportion of the weights (all above 0)."""
    counts = (usage.input, usage.output, usage.cached, usage.reasoning)
    cost = [None] * len(weights) if usage.cost is None else shares(usage.cost, weights)
    return [Usage(*each) for each in zip(*(shares(count, weights) for count in counts), cost, strict=True)]


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """Return whole numbers in the proportion of the weights that add up to ``total`` (largest remainder method)."""
    whole = sum(weights)
    floors = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda n: -(total * weights[n] % whole))
    for n in by_remainder[: total - sum(floors)]:
        floors[n] += 1
    return floors
