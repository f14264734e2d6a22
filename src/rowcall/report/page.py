"""The page: one file, no network, no script. All that comes from the data or the API is escaped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import jinja2
from markupsafe import Markup

from rowcall.model.prices import nano, usd
from rowcall.progress.number_text import clean, latency_text, rate_text, short_number, short_time
from rowcall.report import charts
from rowcall.report.report_data import Facts, moment
from rowcall.report.svg import Picture, draw, legend
from rowcall.store.types import RunRow

MOST_RUNS = 20
"""Runs in the table."""
_SHOWN_SETTINGS = ("pace", "retry", "stop", "api")


def render(facts: Facts, hint: Callable[[str], str], *, version: str) -> str:
    """The page as HTML.

    Args:
        facts: what it shows.
        hint: what to do about a reason.
        version: of rowcall.
    """
    return (
        _environment()
        .get_template("page.html")
        .render(
            facts=facts,
            s=facts.summary,
            tiles=_tiles(facts),
            calls=_shown(charts.calls(facts)),
            latencies=_shown(charts.latencies(facts)),
            tokens=_shown(charts.tokens(facts)),
            money=_shown(charts.money(facts)),
            limits=_limits(facts.runs[-1]),
            runs=facts.runs[-MOST_RUNS:],
            quiet=[(stretch, charts.failed_before(facts, stretch)) for stretch in facts.history.quiet],
            hint=hint,
            version=version,
        )
    )


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("rowcall.report", "."), autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {
        "clean": lambda value: clean(str(value)),
        "time": lambda text: _local(moment(text)),
        "seconds": short_time,
        "latency": latency_text,
        "number": lambda number: f"{number:,}",
        "elapsed": _elapsed,
    }
    return environment


def _local(when: datetime) -> str:
    return when.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def _elapsed(run: RunRow) -> str:
    if run.ended_at is None:
        return "still running" if run.alive else "died"
    return short_time((moment(run.ended_at) - moment(run.started_at)).total_seconds())


def _shown(picture: Picture | None) -> dict[str, Markup] | None:
    """A picture with its legend."""
    return None if picture is None else {"svg": draw(picture), "legend": legend(picture.bars)}


def _tiles(facts: Facts) -> list[tuple[str, str]]:
    """The figures at the top: a name and a value each."""
    s = facts.summary
    left = s.pending + s.running
    tiles = [("done", f"{s.done:,}"), ("failed", f"{s.failed:,}"), ("left", f"{left:,}")]
    tiles += [("calls charged", f"{s.attempts:,}")]
    tiles += [("done a second", rate_text(s.rate_per_s))] * bool(s.rate_per_s) if s.rate_per_s else []
    p50, p95 = s.latency_ms.p50, s.latency_ms.p95
    if p50 is not None and p95 is not None:
        tiles += [("p50", latency_text(p50 / 1000)), ("p95", latency_text(p95 / 1000))]
    if s.tokens.input or s.tokens.output:
        tiles += [("tokens in", short_number(s.tokens.input)), ("tokens out", short_number(s.tokens.output))]
    if s.cost_usd is not None:
        tiles.append(("spent", usd(nano(s.cost_usd))))
    return tiles


def _limits(run: RunRow) -> list[tuple[str, Any]]:
    """Settings in force: those that say how fast, how often, until when; no table that holds what is sent."""
    settings = []
    for table in _SHOWN_SETTINGS:
        for name, value in (run.settings.get(table) or {}).items():
            if value is not None and not isinstance(value, dict | list) and name != "api_key":
                settings.append((f"{table}.{name}", value))
    return settings
