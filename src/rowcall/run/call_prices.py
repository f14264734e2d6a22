"""Finds out from ``[price]`` what a call costs."""

from __future__ import annotations

from dataclasses import replace

from rowcall.config import Config
from rowcall.model.errors import ConfigError, Problem
from rowcall.model.price_list import NoPrice, look_up_prices
from rowcall.model.prices import Prices, nano


def make_prices(config: Config) -> Prices | None:
    """Return the prices of a call; None if ``[price]`` is empty.

    Raises:
        ConfigError: the price list is not installed or does not know the model.
    """
    table = config.price
    known = {name: getattr(table, name) for name in ("input", "output", "cached", "reasoning", "per_call")}
    written = {name: nano(dollars) for name, dollars in known.items() if dollars is not None}
    if table.source == "genai-prices":
        return replace(_listed_prices(config), **written)
    return Prices(**written) if written else None


def _listed_prices(config: Config) -> Prices:
    table, where = config.price, config.where(("price", "from"))
    body = config.request.body
    model = table.model or (body.get("model") if isinstance(body, dict) and not config.handler else None)
    if not isinstance(model, str) or "{{" in model:
        raise ConfigError(Problem(where, "price.model is missing", 'name it: model = "gpt-5-mini"'))
    try:
        return look_up_prices(model, provider=table.provider, base_url=config.api.base_url)
    except NoPrice as error:
        raise ConfigError(Problem(where, str(error), error.remedy)) from None
