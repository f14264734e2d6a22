"""The charts of the report: calls, tokens and money over time, and the distribution of latencies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate

from rowcall.config.units import parse_rates
from rowcall.model.prices import usd
from rowcall.progress.number_text import clean, latency_text, short_number, short_time
from rowcall.report.report_data import ReportData, moment
from rowcall.report.svg import Band, Bars, Chart, ChartLine
from rowcall.store.call_history import STEP, Quiet, Slice

NAMED_REASONS = 5
"""The most failure reasons that get a colour of their own."""
NARROWEST = 40
"""The fewest classes of latencies in a chart."""
_EMPTY_SLICE = Slice()


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The time axis: when it begins, the width of a slice in seconds, and the number of slices."""

    start: datetime
    width: float
    count: int

    @classmethod
    def of(cls, data: ReportData) -> TimeAxis:
        """Return the time axis that all charts of a report share."""
        start, end = moment(data.span.since), moment(data.span.until)
        seconds = (end - start).total_seconds()
        return cls(start, data.span.width, max(1, int(-(-seconds // data.span.width))))

    def place(self, when: str) -> float:
        """Return the position of a time, in slices."""
        return (moment(when) - self.start).total_seconds() / self.width

    def label(self, number: float) -> str:
        """Return the local time at which a slice begins; with the date if the chart covers more than a day."""
        at = (self.start + timedelta(seconds=number * self.width)).astimezone()
        return at.strftime("%d %b %H:%M" if self.count * self.width > 86_400 else "%H:%M:%S")


def calls(data: ReportData) -> Chart:
    """Chart answers and failed calls per second, with quiet periods and the rate limit."""
    axis, slices = TimeAxis.of(data), _in_order(data)
    bars = [Bars("answered", "c-answered", [each.answered / axis.width for each in slices]), *_failures(slices, axis)]

    def tooltip(number: int) -> str:
        counts = [f"{each.name}: {each.values[number] * axis.width:.0f}" for each in bars if each.values[number]]
        return "\n".join([f"{axis.label(number)}, {short_time(axis.width)}", *counts])

    bands = [
        Band(axis.place(quiet.since), axis.place(quiet.until), f"no call ended for {short_time(quiet.seconds)}")
        for quiet in data.history.quiet
    ]
    return Chart(
        "Calls over time",
        bars,
        axis.label,
        lambda value: f"{value:g}/s",
        tooltip,
        bands,
        _limit(data),
        _starts(data, axis),
    )


def _in_order(data: ReportData) -> list[Slice]:
    return [data.history.slices.get(number, _EMPTY_SLICE) for number in range(TimeAxis.of(data).count)]


def _failures(slices: Sequence[Slice], axis: TimeAxis) -> list[Bars]:
    """Return one series for each of the most frequent reasons and one for all others."""
    totals: Counter[str] = Counter()
    for each in slices:
        totals.update(each.failed)
    named = [reason for reason, _ in totals.most_common(NAMED_REASONS)]
    bars = [
        Bars(clean(reason), f"c-failed{place}", [each.failed.get(reason, 0) / axis.width for each in slices])
        for place, reason in enumerate(named)
    ]
    others = [sum(n for reason, n in each.failed.items() if reason not in named) / axis.width for each in slices]
    return [*bars, Bars("other reasons", "c-other", others)]


def _limit(data: ReportData) -> list[ChartLine]:
    """Return ``[pace] requests`` of the last run; of several rates the slowest, because it limits a long run."""
    asked = (data.runs[-1].settings.get("pace") or {}).get("requests")
    try:
        slowest = min(parse_rates(asked), key=lambda rate: rate.count / rate.per)
    except ValueError:
        return []
    return [ChartLine(slowest.count / slowest.per, f"[pace] requests = {slowest}")]


def _starts(data: ReportData, axis: TimeAxis) -> list[ChartLine]:
    """Return a line at the start of each run but the first."""
    return [ChartLine(axis.place(run.started_at), f"run {run.id}") for run in data.runs[1:]][:_MOST_MARKED_RUNS]


_MOST_MARKED_RUNS = 12


def tokens(data: ReportData) -> Chart | None:
    """Chart input and output tokens per second; None if there were none."""
    axis, slices = TimeAxis.of(data), _in_order(data)
    bars = [
        Bars("tokens in", "c-input", [each.input_tokens / axis.width for each in slices]),
        Bars("tokens out", "c-output", [each.output_tokens / axis.width for each in slices]),
    ]

    def tooltip(number: int) -> str:
        each = slices[number]
        return f"{axis.label(number)}: {each.input_tokens:,} tokens in, {each.output_tokens:,} out"

    drawn = any(each.input_tokens or each.output_tokens for each in slices)
    return (
        Chart("Tokens over time", bars, axis.label, lambda value: f"{short_number(value)}/s", tooltip)
        if drawn
        else None
    )


def money(data: ReportData) -> Chart | None:
    """Chart the total cost over time; None if no price is known."""
    axis, slices = TimeAxis.of(data), _in_order(data)
    spent = list(accumulate(each.cost or 0 for each in slices))
    bars = [Bars("spent", "c-money", [float(nanos) for nanos in spent])]

    def tooltip(number: int) -> str:
        return f"{axis.label(number + 1)}: {usd(spent[number])} spent"

    known = any(each.cost is not None for each in slices)
    return Chart("Money over time", bars, axis.label, lambda nanos: usd(round(nanos)), tooltip) if known else None


def latencies(data: ReportData) -> Chart | None:
    """Chart the distribution of latencies; None if none is known."""
    counts = data.history.latencies
    if not counts:
        return None
    low, high = _at_least_wide(min(counts), max(counts))
    bars = [Bars("calls", "c-answered", [float(counts.get(number, 0)) for number in range(low, high + 1)])]

    def around(number: float) -> float:
        return float(STEP ** (low + number))

    def tooltip(number: int) -> str:
        half = STEP**0.5
        return (
            f"{latency_text(around(number) / half)} to {latency_text(around(number) * half)}: "
            f"{counts.get(low + number, 0):,} calls"
        )

    marks = [
        ChartLine(place - low + 0.5, f"p{share} {latency_text(STEP**place)}")
        for share, place in ((share, percentile(counts, share / 100)) for share in (50, 95, 99))
    ]
    return Chart(
        "Latencies", bars, lambda number: latency_text(around(number)), short_number, tooltip, down=marks, x_shift=0.5
    )


def _at_least_wide(low: int, high: int) -> tuple[int, int]:
    """Widen a range of classes on both sides to the minimum, so that bars do not become too wide."""
    missing = max(0, NARROWEST - (high - low))
    return low - missing // 2, high + missing - missing // 2


def failed_before(data: ReportData, quiet: Quiet) -> list[str]:
    """Return up to three reasons of calls that failed right before a quiet period, most frequent first."""
    number = int(TimeAxis.of(data).place(quiet.since))
    found: Counter[str] = Counter()
    for each in (number - 1, number):
        found.update(data.history.slices.get(each, _EMPTY_SLICE).failed)
    return [reason for reason, _ in found.most_common(3)]


def percentile(counts: Mapping[int, int], share: float) -> int:
    """Return the class of latencies that ``share`` (0 to 1) of the calls did not exceed.

    Raises:
        ValueError: there are no calls.
    """
    rank, seen = share * sum(counts.values()), 0
    for number, count in sorted(counts.items()):
        seen += count
        if seen >= rank:
            return number
    raise ValueError("no calls")
