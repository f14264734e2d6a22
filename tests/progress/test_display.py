"""The live display: what a person sees at every width, and what a log holds."""

from __future__ import annotations

import asyncio
import io
import math
import re
from dataclasses import replace
from time import monotonic
from types import SimpleNamespace

import pytest
from plainjob import plain_job
from rich.console import Console
from terminal import Terminal

from rowcall.calls.door import DoorAnswer, Reason
from rowcall.engine.live_view import Delay, LiveView
from rowcall.engine.options import Options
from rowcall.mock import MockAPI
from rowcall.model.events import (
    CallBegan,
    CallDropped,
    CallEnded,
    GateClosed,
    GateOpened,
    Resting,
    Settled,
    Slowed,
    Stopping,
)
from rowcall.model.outcome import Action, Decision, Failure, FailureClass, Success, Usage
from rowcall.model.run_stats import RunStats
from rowcall.progress import ProgressDisplay
from rowcall.progress.event_counts import EventCounts, Speed
from rowcall.progress.number_text import clean, counted, rate_text, short_number, short_time
from rowcall.progress.screen import Screen
from rowcall.progress.terminal_block import block
from rowcall.progress.view import View, plain_line, view_of
from rowcall.store.types import Enqueued

VIEW = View(
    total=10_000,
    done=6_298,
    failed=12,
    in_flight=31,
    slots=32,
    waiting=3_641,
    retrying=18,
    reading=False,
    speed=7.6,
    left=492.0,
    p50=1.9,
    p95=4.4,
    usage=Usage(412_000, 88_000, 251_320, cost=1_210_000_000),
    expected=1_920_000_000,
    held_up="resting until 14:02:09, as the API asked: HTTP 429: slow down",
    slow=(("k17", 45.0),),
)


def drawn(view, width, **how):
    console = Console(file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False, **how)
    console.print(block(view, width))
    return console.file.getvalue().rstrip("\n").split("\n")


def test_the_whole_block():
    """At 120 columns: how far, the counts, the figures, what holds it up, and what is slow; a line each."""
    bar, *lines = drawn(VIEW, 120)
    assert "63%  6,310/10,000   8m12s left" in bar
    assert lines == [
        " done 6,298   failed 12   in flight 31/32   waiting 3,641   retrying 18",
        " 7.6/s   $1.21 of about $1.92   p50 1.9s  p95 4.4s   412k tokens in (61% cached), 88k out",
        " resting until 14:02:09, as the API asked: HTTP 429: slow down",
        " slow: k17 for 45s",
    ]


@pytest.mark.parametrize("width", [20, 40, 60, 69, 70, 71, 80, 120, 300])
def test_no_line_is_as_wide_as_the_terminal(width):
    """Whatever the width, no line reaches the last column, where it would wrap; below 70 there is one line."""
    lines = drawn(replace(VIEW, held_up="x" * 400, slow=(("k" * 300, 12.0),)), width)
    assert max(map(len, lines)) < width
    assert len(lines) == (1 if width < 70 else 5)


def test_no_number_is_cut():
    """Where there is no room for a figure it is left out as a whole: half a number would be a wrong one."""
    for width in range(20, 120):
        for line in drawn(replace(VIEW, held_up="", slow=()), width)[-2:]:
            for word in line.split():
                assert word in " ".join(drawn(replace(VIEW, held_up="", slow=()), 300)) or word == "31/32"


def test_a_narrow_terminal_sees_what_holds_the_run_up():
    """One line says how far, and instead of the speed what holds it up."""
    [line] = drawn(VIEW, 60)
    assert line.startswith(" 63%  6,310/10,000  failed 12  resting until 14:02:09")


def test_the_data_is_never_markup():
    """Brackets, emoji codes and escapes in a message or a key are shown as they are, or as blanks."""
    hostile = "[red]x[/red] :smile: \x1b[2J\r\n[link=http://a]b[/link]"
    following = EventCounts()
    following.calls = {hostile: monotonic() - 60}
    view = view_of(stand_in(answer=offline(hostile, math.inf)), following, 0.0)
    text = "\n".join(drawn(view, 300))
    assert text.count("[red]x[/red] :smile:") == 2
    assert "\x1b" not in text
    assert "\r" not in text


def test_other_encodings_and_no_colour(monkeypatch):
    """A terminal that is not UTF-8 gets ASCII alone, and NO_COLOR no colour."""
    monkeypatch.setenv("NO_COLOR", "1")
    latin = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    console = Console(file=latin, width=80, force_terminal=True, color_system="standard")
    console.print(block(VIEW, 80))
    latin.flush()
    text = latin.buffer.getvalue().decode("ascii")
    assert "6,310/10,000" in text
    assert "\x1b[3" not in text


def test_a_block_is_drawn_over_the_one_before():
    """Redrawn with fewer lines and wiped at the end, it leaves nothing behind; what is said stays above."""
    terminal = Terminal()
    screen = Screen(terminal)
    terminal.write("said before\n")
    terminal.write(screen.draw(block(VIEW, 80)))
    assert [row.split()[0] for row in terminal.rows[:4] if row][::3] == ["said", "7.6/s"]
    terminal.write(screen.draw(block(replace(VIEW, held_up="", slow=(), done=7_000), 80)))
    assert len(terminal.rows) == 4
    assert "done 7,000" in terminal.rows[2]
    terminal.write(screen.wipe() + "said after\n")
    assert terminal.rows == ["said before", "said after", ""]


def test_a_terminal_made_narrower(monkeypatch):
    """The rows into which the old block was wrapped are taken away with it."""
    terminal = Terminal(columns=80)
    screen = Screen(terminal)
    terminal.write("above\n")
    terminal.write(screen.draw(block(VIEW, 80)))
    wrapped = terminal.rows[1:-1]
    monkeypatch.setattr(Screen, "width", 40)
    rows = sum(-(-len(row) // 40) for row in wrapped)
    assert screen.wipe() == f"\r\x1b[{rows}A\x1b[J"


def test_control_c_on_the_screen_leaves_nothing_behind():
    """The ``^C`` that a terminal writes at the cursor is wiped with the block, also below a line that is full."""
    terminal = Terminal()
    screen = Screen(terminal)
    terminal.write(screen.draw(block(replace(VIEW, slow=(), held_up="w" * 200), 80)))
    terminal.write("^C" + screen.wipe() + "Stopping\n")
    assert terminal.rows == ["Stopping", ""]


def test_a_dumb_terminal_gets_plain_lines(monkeypatch):
    """TERM=dumb and what is no terminal at all cannot be drawn on."""
    assert Screen(Terminal()).can_redraw
    assert not Screen(io.StringIO()).can_redraw
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert not Screen(io.StringIO()).can_redraw
    monkeypatch.setenv("TERM", "dumb")
    assert not Screen(Terminal()).can_redraw


def test_the_plain_line():
    """All of it on one line, without what is zero."""
    assert plain_line(VIEW) == (
        "63%  6,310/10,000  done 6,298  failed 12  in flight 31/32  retrying 18  7.6/s  8m12s left  " + VIEW.held_up
    )
    idle = replace(VIEW, retrying=0, speed=0.0, left=None, held_up="")
    assert plain_line(idle) == "63%  6,310/10,000  done 6,298  failed 12  in flight 31/32"


def test_hundred_per_cent_is_the_end():
    """One record of many that is left keeps it at 99 %."""
    assert plain_line(replace(VIEW, done=9_987, failed=12)).startswith("99%")
    assert plain_line(replace(VIEW, done=9_988, failed=12)).startswith("100%")
    assert plain_line(replace(VIEW, total=0, done=0, failed=0)).startswith("reading")


# From a pipeline to a view


def stand_in(**facts):
    """What a view reads of a pipeline, in a state that takes long to reach."""
    tally = facts.pop("tally", RunStats())
    usual = {"total": 100, "done": 40, "failed": 2, "enqueued": Enqueued(new=100), "reading": False, "in_flight": 8}
    live = LiveView(**{"concurrency": 8, "slots": 8} | usual | facts)
    return SimpleNamespace(view=live, tally=tally, config=SimpleNamespace(stop=SimpleNamespace(grace=30.0)))


def offline(cause, at):
    return DoorAnswer(0, at, Reason.OFFLINE, cause, monotonic(), alone=True)


def soon(seconds, reason, cause="", calls=0):
    return DoorAnswer(calls, monotonic() + seconds, reason, cause)


def refused(message="refused: api.example.com"):
    return Failure(FailureClass.NOT_SENT, "refused", message)


def settled(key, action):
    return Settled(key, action, None if action is Action.DONE else refused())


def test_time_left_is_that_of_the_records_left():
    """What was done before the run is no speed: time left is the rest over the speed, and unknown while it reads."""
    view = view_of(stand_in(), EventCounts(), 2.0)
    assert (view.total, view.done, view.failed, view.left) == (100, 40, 2, 29.0)
    assert view_of(stand_in(reading=True), EventCounts(), 2.0).left is None
    assert view_of(stand_in(), EventCounts(), 0.0).left is None
    assert view_of(stand_in(held_up=Delay("resting")), EventCounts(), 2.0).left is None
    assert view_of(stand_in(held_up=Delay("rate limit")), EventCounts(), 2.0).left == 29.0


def test_with_a_limit_the_limit_is_the_whole():
    """With -n the bar, the counts and the time left are of those N; of fewer where the input has no more."""
    pipeline = stand_in()
    pipeline.tally.settled[Action.DONE] = 3
    view = view_of(pipeline, EventCounts(), 1.0, limit=10)
    assert (view.total, view.done, view.failed, view.left) == (10, 3, 0, 7.0)
    assert view_of(pipeline, EventCounts(), 1.0, limit=1000).total == 61


def test_money_is_shown_where_it_is_known():
    """The cost at the end follows from the records left; without a price, or while it reads, none is said."""
    pipeline = stand_in()
    pipeline.tally.settled[Action.DONE] = 29
    assert view_of(pipeline, EventCounts(), 1.0).expected is None
    assert "$" not in "".join(drawn(replace(VIEW, usage=Usage(1, 1)), 120))
    pipeline.tally.usage = Usage(cost=1_000_000_000)
    assert view_of(pipeline, EventCounts(), 1.0).expected == 3_000_000_000
    assert view_of(stand_in(tally=pipeline.tally, reading=True), EventCounts(), 1.0).expected is None
    [shown] = [line for line in drawn(replace(VIEW, expected=None), 120) if "$" in line]
    assert "$1.21   p50" in shown


def test_cancelled_records_are_nothing_to_wait_for():
    """Records that were cancelled are no part of the whole."""
    assert view_of(stand_in(enqueued=Enqueued(new=90, cancelled=10)), EventCounts(), 1.0).total == 90


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (offline("refused: api.example.com", math.inf), "nothing lost: refused: api.example.com"),
        (offline("refused: api.example.com", math.inf), "trying now"),
        (offline("HTTP 503", monotonic() + 900), "next try in "),
        (soon(900.0, Reason.RESTING, "HTTP 429"), "resting until "),
        (soon(900.0, Reason.FIRST_CALL), "the first call goes alone"),
        (soon(900.0, Reason.API_USED_UP), "nothing is left of the API's limit until "),
        (soon(900.0, Reason.API_LIMIT), "paced by what the API allows"),
        (soon(900.0, Reason.RATE_LIMIT, "500/min"), "paced by the limit: 500/min"),
        (DoorAnswer(0, math.inf, Reason.PAUSED), "paused by hand. Resume with: rowcall set pause=false"),
    ],
)
def test_what_holds_it_up(answer, said):
    """Offline, a rest, the first call, the pace: each is named, with its end where it is known."""
    assert said in view_of(stand_in(answer=answer), EventCounts(), 0.0).held_up


def test_what_the_events_tell():
    """Calls under way with their age, records that wait for another try, and that it stops."""
    following = EventCounts()
    for key in "ab":
        following(CallBegan(key))
    following(CallEnded("a", Success(1), Decision(Action.DONE)))
    assert list(following.calls) == ["b"]
    following(CallDropped("b"))
    assert not following.calls
    following(settled("a", Action.RETRY))
    following(settled("b", Action.RELEASE))
    assert following.retrying == {"a", "b"}
    following(CallBegan("a"))
    following(settled("b", Action.DONE))
    assert not following.retrying
    following(Stopping("interrupted", "", 3))
    assert view_of(stand_in(), following, 0.0).held_up == "stopping: waiting for calls in flight, up to 30s"


def test_what_fails_before_anything_succeeded_is_named():
    """Until the first success the display says what the latest call failed with; afterwards the counts do."""
    following = EventCounts()
    failed = CallEnded("a", refused("refused:\x1b[2J 127.0.0.1:9"), Decision(Action.RELEASE))
    following(failed)
    assert view_of(stand_in(), following, 0.0).held_up == "nothing has succeeded yet: refused: [2J 127.0.0.1:9"
    following(CallEnded("b", Success(1), Decision(Action.DONE)))
    following(failed)
    assert not view_of(stand_in(), following, 0.0).held_up


def test_fewer_calls_at_a_time_are_explained():
    """Once the API has slowed a run, the display says to how many and why, until all slots are in use again."""
    following = EventCounts()
    following(Slowed(3, "HTTP 429: slow down"))
    assert view_of(stand_in(slots=3), following, 0.0).held_up == "slowed to 3 at a time: HTTP 429: slow down"
    assert not view_of(stand_in(slots=8), following, 0.0).held_up
    assert not view_of(stand_in(slots=3), EventCounts(), 0.0).held_up


def test_slow_calls_are_named():
    """The oldest calls, once they take thrice as long as most did and at least ten seconds."""
    following = EventCounts()
    following.calls = {"old": monotonic() - 45, "young": monotonic() - 9}
    assert [key for key, _ in view_of(stand_in(), following, 0.0).slow] == ["old"]
    pipeline = stand_in()
    pipeline.tally.latencies.add(20.0)
    assert not view_of(pipeline, following, 0.0).slow


def test_speed_is_of_the_last_half_minute():
    """A minute without anything ends the speed, and two samples close together have none."""
    speed = Speed()
    speed.note(0.0, 0)
    assert speed.per_second == 0.0
    speed.note(0.1, 50)
    assert speed.per_second == 0.0
    for second in range(1, 11):
        speed.note(float(second), second * 5)
    assert speed.per_second == 5.0
    for second in range(11, 90):
        speed.note(float(second), 50)
    assert speed.per_second == 0.0


async def test_an_outage_or_a_pause_is_no_slowness(monkeypatch):
    """The time in which nothing could be done is left out of the speed, so that time left is right soon after it."""
    progress = ProgressDisplay(Terminal())
    clock = iter([0.0, 10.0, 500.0, 501.0])
    monkeypatch.setattr("rowcall.progress.display.monotonic", lambda: next(clock))
    for done, answer in (
        (0, DoorAnswer(1, 0.0)),
        (50, DoorAnswer(1, 0.0)),
        (50, offline("no", 0.0)),
        (55, DoorAnswer(1, 0.0)),
    ):
        progress._look(LiveView(8, 8, ended=done, answer=answer))
    assert progress._speed.per_second == 5.0


# A real run


@pytest.fixture
async def pipeline(tmp_path):
    async with MockAPI(latency=0.05) as api:
        yield lambda emit: plain_job(tmp_path, api.url, 60, emit=emit)


@pytest.mark.parametrize("limit", [None, 40])
async def test_a_run_is_shown_while_it_works(pipeline, limit, monkeypatch):
    """A run on a terminal draws its block and leaves nothing of it behind."""
    monkeypatch.setattr("rowcall.progress.display.REDRAW", 0.01)
    terminal = Terminal(columns=80)
    progress = ProgressDisplay(terminal)
    run = pipeline(progress.hear)
    progress.start(run, limit=limit)
    report = await run.run(Options(limit=limit))
    await progress.close()
    progress.say("the end")
    assert report.tally.done == (limit or 60)
    assert f"/{limit or 60}\n" in terminal.getvalue()
    assert re.search(r"in flight (\d+)/\1 ", terminal.getvalue())
    assert terminal.rows == ["the end", ""]
    assert "\x1b[?25l" not in terminal.getvalue()


async def test_a_log_gets_plain_lines(pipeline):
    """What is no terminal gets whole lines and no escapes; with ``quiet`` nothing."""
    log, silent = io.StringIO(), io.StringIO()
    for stream, quiet in ((log, False), (silent, True)):
        progress = ProgressDisplay(stream, quiet=quiet, plain_every=0.02)
        run = pipeline(progress.hear)
        progress.start(run)
        await run.run()
        await progress.close()
        progress.say("the end")
    assert "/60  done " in log.getvalue()
    assert log.getvalue().endswith("the end\n")
    assert "\x1b" not in log.getvalue()
    assert not silent.getvalue()


async def test_a_reader_that_has_gone_stops_nothing(pipeline):
    """Where nobody reads any more the display falls silent and the run goes on."""

    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    progress = ProgressDisplay(Gone(), plain_every=0.01)
    run = pipeline(progress.hear)
    progress.start(run)
    assert (await run.run()).done == 60
    await progress.close()


def test_what_is_worth_a_line():
    """An outage and its end are said once; a rest once for as long as it lasts, and a short one not at all."""
    log = io.StringIO()
    progress = ProgressDisplay(log)
    for event in (
        GateClosed("refused\x1b[2J"),
        GateOpened(80.0),
        Resting(2.0, "short"),
        Resting(60.0, "HTTP 429"),
        Resting(61.0, "HTTP 429"),
        Stopping("no_credit", "HTTP 402", 1),
        Stopping("max_cost", "", 2),
        Stopping("interrupted", "", 3),
    ):
        progress.hear(event)
    assert log.getvalue().splitlines() == [
        "offline: refused [2J; nothing lost, no attempts used",
        "back after 1m20s",
        "resting for 1m00s: HTTP 429",
        "stopping: HTTP 402; 1 call in flight",
        "stopping: max_cost; 2 calls in flight",
    ]


async def test_a_display_that_is_closed_before_anything_happens():
    """Closing right after the start is no error."""
    progress = ProgressDisplay(Terminal())
    progress.start(stand_in())
    await asyncio.sleep(0)
    await progress.close()


def test_texts():
    """Numbers as people read them."""
    assert [short_time(s) for s in (0.44, 40, 492, 3900)] == ["0.4s", "40s", "8m12s", "1h05m"]
    assert [short_number(n) for n in (0, 950, 4_100, 412_000, 999_700, 1_240_000)] == [
        "0", "950", "4.1k", "412k", "1.0M", "1.2M",
    ]  # fmt: skip
    assert [rate_text(r) for r in (190.3, 7.6, 0.2, 0.001)] == ["190/s", "7.6/s", "12.0/min", "3.6/h"]
    assert [counted(n, "record") for n in (0, 1, 2_000)] == ["0 records", "1 record", "2,000 records"]
    assert clean("a\x1b[31m\nb\u202e") == "a [31m b "
