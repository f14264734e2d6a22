"""Small pictures as SVG: bars over an axis, lines, bands. All text goes in escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

WIDTH, HEIGHT = 900, 220
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 12, 26
_STEPS = (1, 2, 2.5, 5, 10)
_MOST_TICKS = 5

Label = Callable[[float], str]
"""How a value of an axis is written."""


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of one colour, one for each slice; several lie on top of each other.

    Attributes:
        name: for the legend and the tooltip.
        style: the class of the stylesheet that colours it.
        values: one for each slice.
    """

    name: str
    style: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch of the horizontal axis, in slices, with what is said about it."""

    start: float
    end: float
    words: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across the picture: ``at`` is a value of the vertical axis, or a place in slices."""

    at: float
    words: str


@dataclass(frozen=True, slots=True)
class Picture:
    """What is drawn.

    Attributes:
        title: for those who cannot see it.
        bars: from the bottom up.
        x_label: what stands below slice ``n``.
        y_label: how a value is written.
        tooltip: what is said of slice ``n``.
        bands: behind the bars.
        across: horizontal marks.
        down: vertical marks.
        x_shift: where a label of the horizontal axis belongs in its slice: 0 at the begin, 0.5 in the middle.
    """

    title: str
    bars: Sequence[Bars]
    x_label: Label
    y_label: Label
    tooltip: Callable[[int], str]
    bands: Sequence[Band] = field(default=())
    across: Sequence[Mark] = field(default=())
    down: Sequence[Mark] = field(default=())
    x_shift: float = 0.0

    @property
    def slices(self) -> int:
        """How many bars there are side by side."""
        return max((len(bars.values) for bars in self.bars), default=0)


def draw(picture: Picture) -> Markup:
    """The picture."""
    frame = _Frame(max(1, picture.slices), _top(picture))
    parts = [
        *_bands(picture, frame),
        *_grid(picture, frame),
        *_bars(picture, frame),
        *_across(picture, frame),
        *_down(picture, frame),
        *_x_axis(picture, frame),
    ]
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, HEIGHT, picture.title, Markup("").join(parts)
    )


@dataclass(frozen=True, slots=True)
class _Frame:
    """From slices and values to the places of the picture."""

    slices: int
    top: float

    def x(self, place: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * min(max(place, 0), self.slices) / self.slices, 2)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(value / self.top, 1.0), 2)


def _top(picture: Picture) -> float:
    """The highest tick: a round number above all bars and marks."""
    highest = max((sum(column) for column in zip(*(bars.values for bars in picture.bars), strict=True)), default=0.0)
    return ticks(max([highest, *(mark.at for mark in picture.across)]))[-1]


def ticks(highest: float) -> list[float]:
    """Round numbers from 0 up to ``highest`` or just above it, at most six."""
    if highest <= 0:
        return [0.0, 1.0]
    power = 10.0 ** _floor_log10(highest / _MOST_TICKS)
    step = next(step * power for step in _STEPS if highest / (step * power) <= _MOST_TICKS)
    count = int(-(-highest // step))
    return [round(number * step, 12) for number in range(count + 1)]


def _floor_log10(number: float) -> int:
    return int(f"{number:e}".partition("e")[2])


def _grid(picture: Picture, frame: _Frame) -> Iterator[Markup]:
    for value in ticks(frame.top):
        y = frame.y(value)
        yield Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(LEFT, WIDTH - RIGHT, y, y)
        yield Markup('<text class="tick end" x="{}" y="{}">{}</text>').format(LEFT - 6, y + 4, picture.y_label(value))


def _bars(picture: Picture, frame: _Frame) -> Iterator[Markup]:
    for number in range(picture.slices):
        rects = list(_column(picture, frame, number))
        if rects:
            yield Markup("<g><title>{}</title>{}</g>").format(picture.tooltip(number), Markup("").join(rects))


def _column(picture: Picture, frame: _Frame, number: int) -> Iterator[Markup]:
    x, below = frame.x(number), 0.0
    width = max(0.5, round((frame.x(number + 1) - x) * 0.88, 2))
    for bars in picture.bars:
        if value := bars.values[number]:
            bottom, top = frame.y(below), frame.y(below + value)
            below += value
            shape = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>')
            yield shape.format(bars.style, x, top, width, max(0.8, round(bottom - top, 2)))


def _bands(picture: Picture, frame: _Frame) -> Iterator[Markup]:
    for band in picture.bands:
        x, width = frame.x(band.start), max(1.0, round(frame.x(band.end) - frame.x(band.start), 2))
        shape = Markup('<rect class="band" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>')
        yield shape.format(x, TOP, width, HEIGHT - TOP - BOTTOM, band.words)


def _across(picture: Picture, frame: _Frame) -> Iterator[Markup]:
    for mark in picture.across:
        y = frame.y(mark.at)
        yield Markup('<line class="mark" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(LEFT, WIDTH - RIGHT, y, y)
        yield Markup('<text class="tick end" x="{}" y="{}">{}</text>').format(WIDTH - RIGHT - 2, y - 4, mark.words)


def _down(picture: Picture, frame: _Frame) -> Iterator[Markup]:
    for row, mark in enumerate(picture.down):
        x = frame.x(mark.at)
        yield Markup('<line class="mark" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(x, x, TOP, HEIGHT - BOTTOM)
        yield Markup('<text class="tick" x="{}" y="{}">{}</text>').format(x + 3, TOP + 10 + 13 * row, mark.words)


def _x_axis(picture: Picture, frame: _Frame) -> Iterator[Markup]:
    every = max(1, -(-frame.slices // 8))
    for number in range(0, frame.slices, every):
        text = Markup('<text class="tick middle" x="{}" y="{}">{}</text>')
        yield text.format(frame.x(number + picture.x_shift), HEIGHT - 8, picture.x_label(number))


def legend(bars: Iterable[Bars]) -> Markup:
    """The names of the colours, those that occur."""
    entry = Markup('<span class="key"><i class="{}"></i><bdi>{}</bdi></span>')
    return Markup(" ").join(entry.format(each.style, each.name) for each in bars if any(each.values))
