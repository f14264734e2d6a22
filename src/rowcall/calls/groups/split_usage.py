"""What one reply was billed for, divided over its records so that the sum stays exact."""

from __future__ import annotations

from collections.abc import Sequence

from rowcall.model.outcome import Usage


def divided(usage: Usage, weights: Sequence[int]) -> list[Usage]:
    """The share of each record, by weights above 0, whatever is divided in whole numbers."""
    counts = (usage.input, usage.output, usage.cached, usage.reasoning)
    cost = [None] * len(weights) if usage.cost is None else shares(usage.cost, weights)
    return [Usage(*each) for each in zip(*(shares(count, weights) for count in counts), cost, strict=True)]


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """Whole numbers in the proportion of the weights that add up to the total, by the largest remainder."""
    whole = sum(weights)
    floors = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda n: -(total * weights[n] % whole))
    for n in by_remainder[: total - sum(floors)]:
        floors[n] += 1
    return floors
