"""The pictures of the page: calls, tokens and money over time, latencies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate

from rowcall.config.units import parse_rates
from rowcall.model.prices import usd
from rowcall.progress.number_text import clean, latency_text, short_number, short_time
from rowcall.report.report_data import Facts, moment
from rowcall.report.svg import Band, Bars, Mark, Picture
from rowcall.store.call_history import STEP, Quiet, Slice

NAMED_REASONS = 5
"""Reasons that have a colour of their own."""
NARROWEST = 40
"""Classes of latencies that a picture has, at least."""
_NOTHING = Slice()


@dataclass(frozen=True, slots=True)
class Axis:
    """From slices to times: where the picture begins, how wide a slice is, how many there are."""

    begin: datetime
    width: float
    count: int

    @classmethod
    def of(cls, facts: Facts) -> Axis:
        """The time axis of all pictures of a page."""
        begin, end = moment(facts.span.since), moment(facts.span.until)
        seconds = (end - begin).total_seconds()
        return cls(begin, facts.span.width, max(1, int(-(-seconds // facts.span.width))))

    def place(self, when: str) -> float:
        """Where a time is, in slices."""
        return (moment(when) - self.begin).total_seconds() / self.width

    def label(self, number: float) -> str:
        """The local time at which a slice begins; with the day where the picture is long."""
        at = (self.begin + timedelta(seconds=number * self.width)).astimezone()
        return at.strftime("%d %b %H:%M" if self.count * self.width > 86_400 else "%H:%M:%S")


def calls(facts: Facts) -> Picture:
    """Answers and failed calls a second, with stretches in which nothing ended, and the limit in force."""
    axis, slices = Axis.of(facts), _in_order(facts)
    bars = [Bars("answered", "c-answered", [each.answered / axis.width for each in slices]), *_failures(slices, axis)]

    def tooltip(number: int) -> str:
        said = [f"{each.name}: {each.values[number] * axis.width:.0f}" for each in bars if each.values[number]]
        return "\n".join([f"{axis.label(number)}, {short_time(axis.width)}", *said])

    bands = [
        Band(axis.place(quiet.since), axis.place(quiet.until), f"nothing ended for {short_time(quiet.seconds)}")
        for quiet in facts.history.quiet
    ]
    return Picture(
        "Calls over time", bars, axis.label, _per_second, tooltip, bands, _limit(facts), _starts(facts, axis)
    )


def _in_order(facts: Facts) -> list[Slice]:
    return [facts.history.slices.get(number, _NOTHING) for number in range(Axis.of(facts).count)]


def _failures(slices: Sequence[Slice], axis: Axis) -> list[Bars]:
    """A colour for each of the most frequent reasons, one for all others."""
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


def _limit(facts: Facts) -> list[Mark]:
    """[pace] requests of the last run shown; of several rates the slowest, which is the one that is met in the end."""
    asked = (facts.runs[-1].settings.get("pace") or {}).get("requests")
    try:
        slowest = min(parse_rates(asked), key=lambda rate: rate.count / rate.per)
    except ValueError:
        return []
    return [Mark(slowest.count / slowest.per, f"[pace] requests = {slowest}")]


def _starts(facts: Facts, axis: Axis) -> list[Mark]:
    """Where further runs began."""
    return [Mark(axis.place(run.started_at), f"run {run.id}") for run in facts.runs[1:]][:_MARKED]


_MARKED = 12


def _per_second(value: float) -> str:
    return f"{value:g}/s"


def tokens(facts: Facts) -> Picture | None:
    """Tokens in and out a second; None where there were none."""
    axis, slices = Axis.of(facts), _in_order(facts)
    bars = [
        Bars("tokens in", "c-input", [each.input_tokens / axis.width for each in slices]),
        Bars("tokens out", "c-output", [each.output_tokens / axis.width for each in slices]),
    ]

    def tooltip(number: int) -> str:
        each = slices[number]
        return f"{axis.label(number)}: {each.input_tokens:,} tokens in, {each.output_tokens:,} out"

    drawn = any(each.input_tokens or each.output_tokens for each in slices)
    return Picture("Tokens over time", bars, axis.label, _tokens_a_second, tooltip) if drawn else None


def _tokens_a_second(value: float) -> str:
    return f"{short_number(value)}/s"


def money(facts: Facts) -> Picture | None:
    """What was spent so far, growing; None where no price is known."""
    axis, slices = Axis.of(facts), _in_order(facts)
    spent = list(accumulate(each.cost or 0 for each in slices))
    bars = [Bars("spent", "c-money", [float(nanos) for nanos in spent])]

    def tooltip(number: int) -> str:
        return f"{axis.label(number + 1)}: {usd(spent[number])} spent"

    known = any(each.cost is not None for each in slices)
    return Picture("Money over time", bars, axis.label, lambda nanos: usd(round(nanos)), tooltip) if known else None


def latencies(facts: Facts) -> Picture | None:
    """How many calls took how long; None where none is known."""
    counts = facts.history.latencies
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
        Mark(place - low + 0.5, f"p{share} {latency_text(STEP**place)}")
        for share, place in ((share, percentile(counts, share / 100)) for share in (50, 95, 99))
    ]
    return Picture(
        "Latencies", bars, lambda number: latency_text(around(number)), short_number, tooltip, down=marks, x_shift=0.5
    )


def _at_least_wide(low: int, high: int) -> tuple[int, int]:
    """The range of classes, made wider on both sides where it is so narrow that bars would be walls."""
    missing = max(0, NARROWEST - (high - low))
    return low - missing // 2, high + missing - missing // 2


def failed_before(facts: Facts, quiet: Quiet) -> list[str]:
    """The reasons of calls that failed right before a stretch in which nothing ended, most first."""
    number = int(Axis.of(facts).place(quiet.since))
    found: Counter[str] = Counter()
    for each in (number - 1, number):
        found.update(facts.history.slices.get(each, _NOTHING).failed)
    return [reason for reason, _ in found.most_common(3)]


def percentile(counts: Mapping[int, int], share: float) -> int:
    """The class of latencies that ``share`` (0 to 1) of the calls did not exceed.

    Raises:
        ValueError: there are no calls.
    """
    rank, seen = share * sum(counts.values()), 0
    for number, count in sorted(counts.items()):
        seen += count
        if seen >= rank:
            return number
    raise ValueError("no calls")
