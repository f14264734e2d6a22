"""Renders the report as one HTML page without scripts or links. Text from the data or the API is escaped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jinja2
from markupsafe import Markup

from rowcall.model.prices import nano, usd
from rowcall.progress.number_text import clean, latency_text, rate_text, short_number, short_time
from rowcall.report import charts
from rowcall.report.report_data import ReportData, moment
from rowcall.report.svg import Chart, draw, legend
from rowcall.store.types import RunRow

MOST_RUNS = 20
"""The most runs in the table."""
_SHOWN_SETTINGS = ("pace", "retry", "stop", "api")


def render(data: ReportData, hint: Callable[[str], str], *, version: str) -> str:
    """Return the page as HTML.

    Args:
        data: the contents.
        hint: returns what to do about a failure reason.
        version: rowcall's version.
    """
    return (
        _environment()
        .get_template("page.html")
        .render(
            data=data,
            s=data.summary,
            tiles=_tiles(data),
            calls=_shown(charts.calls(data)),
            latencies=_shown(charts.latencies(data)),
            tokens=_shown(charts.tokens(data)),
            money=_shown(charts.money(data)),
            limits=_limits(data.runs[-1]),
            runs=data.runs[-MOST_RUNS:],
            quiet=[(quiet, charts.failed_before(data, quiet)) for quiet in data.history.quiet],
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
        "time": lambda text: moment(text).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z"),
        "seconds": short_time,
        "latency": latency_text,
        "number": lambda number: f"{number:,}",
        "elapsed": _elapsed,
    }
    return environment


def _elapsed(run: RunRow) -> str:
    if run.ended_at is None:
        return "still running" if run.alive else "died"
    return short_time((moment(run.ended_at) - moment(run.started_at)).total_seconds())


def _shown(chart: Chart | None) -> dict[str, Markup] | None:
    """Draw a chart and its legend."""
    return None if chart is None else {"svg": draw(chart), "legend": legend(chart.bars)}


def _tiles(data: ReportData) -> list[tuple[str, str]]:
    """Return the names and values of the figures at the top."""
    s = data.summary
    tiles = [("done", f"{s.done:,}"), ("failed", f"{s.failed:,}"), ("left", f"{s.pending + s.running:,}")]
    tiles.append(("attempts", f"{s.attempts:,}"))
    if s.rate_per_s:
        tiles.append(("rate", rate_text(s.rate_per_s)))
    p50, p95 = s.latency_ms.p50, s.latency_ms.p95
    if p50 is not None and p95 is not None:
        tiles += [("p50", latency_text(p50 / 1000)), ("p95", latency_text(p95 / 1000))]
    if s.tokens.input or s.tokens.output:
        tiles += [("tokens in", short_number(s.tokens.input)), ("tokens out", short_number(s.tokens.output))]
    if s.cost_usd is not None:
        tiles.append(("cost", usd(nano(s.cost_usd))))
    return tiles


def _limits(run: RunRow) -> list[tuple[str, Any]]:
    """Return the settings of rates, retries and stops. Tables that hold what is sent are left out."""
    settings = []
    for table in _SHOWN_SETTINGS:
        for name, value in (run.settings.get(table) or {}).items():
            if value is not None and not isinstance(value, dict | list) and name != "api_key":
                settings.append((f"{table}.{name}", value))
    return settings
