"""Draws charts as SVG: stacked bars over a horizontal axis, lines and bands. All text is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

WIDTH, HEIGHT = 900, 220
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 26
_STEPS = (1, 2, 2.5, 5, 10)
_MOST_TICKS = 5

Label = Callable[[float], str]
"""Formats a value of an axis."""


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of one colour, one per slice. Several series are stacked.

    Attributes:
        name: the name in the legend and the tooltip.
        style: the CSS class that colours them.
        values: the heights, one per slice.
    """

    name: str
    style: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Band:
    """A marked part of the horizontal axis, in slices, with its tooltip."""

    start: float
    end: float
    words: str


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A labelled line across the chart: ``at`` is a value of the vertical axis, or a position in slices."""

    at: float
    words: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart to draw.

    Attributes:
        title: the description for screen readers.
        bars: the series, from the bottom up.
        x_label: formats the label below slice ``n``.
        y_label: formats a value of the vertical axis.
        tooltip: returns the tooltip of slice ``n``.
        bands: drawn behind the bars.
        across: horizontal lines.
        down: vertical lines.
        x_shift: the position of a label within its slice: 0 at its start, 0.5 in its middle.
    """

    title: str
    bars: Sequence[Bars]
    x_label: Label
    y_label: Label
    tooltip: Callable[[int], str]
    bands: Sequence[Band] = field(default=())
    across: Sequence[ChartLine] = field(default=())
    down: Sequence[ChartLine] = field(default=())
    x_shift: float = 0.0

    @property
    def slices(self) -> int:
        """The number of slices."""
        return max((len(bars.values) for bars in self.bars), default=0)


def draw(chart: Chart) -> Markup:
    """Draw a chart."""
    frame = _Frame(max(1, chart.slices), _top(chart))
    parts = [
        *_bands(chart, frame),
        *_grid(chart, frame),
        *_bars(chart, frame),
        *_across(chart, frame),
        *_down(chart, frame),
        *_x_axis(chart, frame),
    ]
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, chart.title, Markup("").join(parts)
    )


@dataclass(frozen=True, slots=True)
class _Frame:
    """Converts slices and values to coordinates."""

    slices: int
    top: float

    def x(self, position: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * min(max(position, 0), self.slices) / self.slices, 2)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(value / self.top, 1.0), 2)


def _top(chart: Chart) -> float:
    """Return the highest tick: a round number above all bars and lines."""
    highest = max((sum(column) for column in zip(*(bars.values for bars in chart.bars), strict=True)), default=0.0)
    return ticks(max([highest, *(mark.at for mark in chart.across)]))[-1]


def ticks(highest: float) -> list[float]:
    """Return at most six round numbers from 0 to the first one that is not below ``highest``."""
    if highest <= 0:
        return [0.0, 1.0]
    power = 10.0 ** int(f"{highest / _MOST_TICKS:e}".partition("e")[2])  # exact, unlike math.log10
    step = next(step * power for step in _STEPS if highest / (step * power) <= _MOST_TICKS)
    count = int(-(-highest // step))
    return [round(number * step, 12) for number in range(count + 1)]


def _grid(chart: Chart, frame: _Frame) -> Iterator[Markup]:
    for value in ticks(frame.top):
        y = frame.y(value)
        yield Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(LEFT, WIDTH - RIGHT, y, y)
        yield Markup('<text class="tick end" x="{}" y="{}">{}</text>').format(LEFT - 6, y + 4, chart.y_label(value))


def _bars(chart: Chart, frame: _Frame) -> Iterator[Markup]:
    for number in range(chart.slices):
        rects = list(_column(chart, frame, number))
        if rects:
            yield Markup("<g><title>{}</title>{}</g>").format(chart.tooltip(number), Markup("").join(rects))


def _column(chart: Chart, frame: _Frame, number: int) -> Iterator[Markup]:
    x, below = frame.x(number), 0.0
    width = max(0.5, round((frame.x(number + 1) - x) * 0.88, 2))
    for bars in chart.bars:
        if value := bars.values[number]:
            bottom, top = frame.y(below), frame.y(below + value)
            below += value
            shape = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>')
            yield shape.format(bars.style, x, top, width, max(0.8, round(bottom - top, 2)))


def _bands(chart: Chart, frame: _Frame) -> Iterator[Markup]:
    for band in chart.bands:
        x, width = frame.x(band.start), max(1.0, round(frame.x(band.end) - frame.x(band.start), 2))
        shape = Markup('<rect class="band" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>')
        yield shape.format(x, TOP, width, HEIGHT - TOP - BOTTOM, band.words)


def _across(chart: Chart, frame: _Frame) -> Iterator[Markup]:
    for mark in chart.across:
        y = frame.y(mark.at)
        yield Markup('<line class="mark" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(LEFT, WIDTH - RIGHT, y, y)
        yield Markup('<text class="tick end" x="{}" y="{}">{}</text>').format(WIDTH - RIGHT - 2, y - 4, mark.words)


def _down(chart: Chart, frame: _Frame) -> Iterator[Markup]:
    for row, mark in enumerate(chart.down):
        x = frame.x(mark.at)
        yield Markup('<line class="mark" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(x, x, TOP, HEIGHT - BOTTOM)
        yield Markup('<text class="tick" x="{}" y="{}">{}</text>').format(x + 3, TOP + 10 + 13 * row, mark.words)


def _x_axis(chart: Chart, frame: _Frame) -> Iterator[Markup]:
    every = max(1, -(-frame.slices // 8))
    for number in range(0, frame.slices, every):
        text = Markup('<text class="tick middle" x="{}" y="{}">{}</text>')
        yield text.format(frame.x(number + chart.x_shift), HEIGHT - 8, chart.x_label(number))


def legend(bars: Iterable[Bars]) -> Markup:
    """Return the names and colours of the series that have any bars."""
    entry = Markup('<span class="key"><i class="{}"></i><bdi>{}</bdi></span>')
    return Markup(" ").join(entry.format(each.style, each.name) for each in bars if any(each.values))
