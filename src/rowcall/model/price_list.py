"""Looks up the prices of a model in the list of the package genai-prices; nothing is downloaded."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from rowcall.model.prices import NANO, Prices

_SAMPLE = 1000
"""Prices are asked for this many tokens, which is below any step of a price that rises with a call's length."""


class NoPrice(Exception):
    """The list is not installed, or the model is not in it; ``remedy`` says what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy


def look_up_prices(model: str, *, provider: str | None = None, base_url: str | None = None) -> Prices:
    """Return the prices of a model today; for short calls, if prices rise with a call's length.

    Args:
        model: its name, as requests write it.
        provider: the provider's id, such as ``openai``, ``anthropic`` or ``google``.
        base_url: the address of the API, which identifies the provider if ``provider`` is None. If the list does
            not know the address, the model's name alone decides.

    Raises:
        NoPrice: the package is not installed, or does not know the model.
    """
    try:
        import genai_prices
    except ImportError:
        remedy = "pip install 'rowcall[prices]', or write the prices: [price] input = ..., output = ..."
        raise NoPrice("the package genai-prices is not installed", remedy) from None

    def of(**tokens: int) -> int:
        usage = genai_prices.Usage(**tokens)
        return _a_million(_calculated(genai_prices.calc_price, usage, model, provider, base_url))

    return Prices(
        input=of(input_tokens=_SAMPLE),
        output=of(output_tokens=_SAMPLE),
        cached=of(input_tokens=_SAMPLE, cache_read_tokens=_SAMPLE),
    )


def _calculated(calculate: Any, usage: Any, model: str, provider: str | None, base_url: str | None) -> Decimal:
    whose = [{"provider_id": provider}] if provider else [{"provider_api_url": base_url}, {}]
    for where in whose:
        try:
            return Decimal(calculate(usage, model, **where).total_price)
        except LookupError:
            continue
    of_whom = f" of {provider}" if provider else ""
    remedy = 'name one that it knows: [price] model = "..." and provider = "...", or write the prices'
    raise NoPrice(f"genai-prices does not know the model {model!r}{of_whom}", remedy)


def _a_million(price: Decimal) -> int:
    return int(price * NANO * (1_000_000 // _SAMPLE))
