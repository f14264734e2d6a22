"""Computes what calls cost, in whole nano-dollars (10^-9 $), so that sums stay exact.

A call is priced once, when its reply is read, and rounded once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from rowcall.model.outcome import Failure, Outcome, Usage

NANO = 10**9
"""Nano-dollars in a dollar."""

_MILLION = 10**6
_CHARACTERS_A_TOKEN = 4
_USUAL_ANSWER = 500
_MOST_TOKENS = re.compile(
    rb'"(?:max_tokens|max_completion_tokens|max_output_tokens|maxOutputTokens|num_predict)"\s*:\s*(\d{1,9})'
)


def nano(dollars: float) -> int:
    """Convert dollars to nano-dollars."""
    return round(dollars * NANO)


def dollars(cost: int | None) -> float | None:
    """Convert nano-dollars to dollars; exact up to nine million dollars, where a float runs out of digits."""
    return None if cost is None else cost / NANO


def usd(cost: int) -> str:
    """Format nano-dollars: ``$12.30``, ``$0.0415``, ``$0.0000210``."""
    places = 2 if cost >= NANO or not cost else 4 if cost >= NANO // 100 else 7
    return f"${cost / NANO:,.{places}f}"


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in nano-dollars for a million tokens of each kind, and for an answered call.

    Attributes:
        input: for input tokens that were not cached.
        output: for output tokens other than reasoning.
        cached: for cached input tokens; None: the price of input.
        reasoning: for reasoning tokens; None: the price of output.
        per_call: for each reply with a 2xx status.
    """

    input: int = 0
    output: int = 0
    cached: int | None = None
    reasoning: int | None = None
    per_call: int = 0

    def cost(self, usage: Usage, *, calls: int = 0) -> int:
        """Return the cost of tokens and of answered calls."""
        cached = self.input if self.cached is None else self.cached
        reasoning = self.output if self.reasoning is None else self.reasoning
        tokens = (
            max(0, usage.input - usage.cached) * self.input
            + usage.cached * cached
            + max(0, usage.output - usage.reasoning) * self.output
            + usage.reasoning * reasoning
        )
        return (tokens + _MILLION // 2) // _MILLION + calls * self.per_call

    def priced(self, usage: Usage, *, answered: bool) -> Usage:
        """Return the usage of a reply with its cost; a cost that the reply itself states is kept."""
        return usage if usage.cost is not None else replace(usage, cost=self.cost(usage, calls=int(answered)))


def priced(outcome: Outcome, prices: Prices | None) -> Outcome:
    """Return the outcome with its cost, if prices are known; a failure with a 2xx status counts as answered."""
    if prices is None:
        return outcome
    answered = not isinstance(outcome, Failure) or 200 <= (outcome.status or 0) < 300
    return replace(outcome, usage=prices.priced(outcome.usage, answered=answered))


def guess(body: bytes) -> Usage:
    """Estimate the usage of a request: four characters a token, and the output tokens that it allows (else 500)."""
    most = _MOST_TOKENS.search(body)
    return Usage(input=len(body) // _CHARACTERS_A_TOKEN, output=int(most[1]) if most else _USUAL_ANSWER)
