"""What the engine says while it runs: frozen events, for the display, for ``--events`` and for tests.

An event carries facts, never markup; times are seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rowcall.model.outcome import Action, Decision, Outcome


@dataclass(frozen=True, slots=True)
class InputRead:
    """The input was read to its end; the counts are those of the store's ``Enqueued``."""

    total: int
    new: int
    changed: int
    restored: int
    done: int
    failed: int
    waiting: int
    cancelled: int
    repeated: int


@dataclass(frozen=True, slots=True)
class CallBegan:
    """A job's call has a slot; it ends with ``CallEnded`` or ``CallDropped``."""

    key: str


@dataclass(frozen=True, slots=True)
class CallDropped:
    """A call was dropped before it gave an outcome: the run ends, or a person cancelled its record."""

    key: str


@dataclass(frozen=True, slots=True)
class Joined:
    """Another process already works on this batch job: both do, each record goes to one of them."""

    pass_: int


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """One HTTP request ended: its status, or the reason where there was none. A handler's call may have several."""

    key: str
    status: int | None
    reason: str
    latency: float | None


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call gave an outcome, and this was decided about it."""

    key: str
    outcome: Outcome
    decision: Decision


@dataclass(frozen=True, slots=True)
class Settled:
    """A job's state is to be written: its own call ended, or evidence about an earlier one came in."""

    key: str
    action: Action
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class Shared:
    """So many records got the answer of another one that sends the same."""

    count: int


@dataclass(frozen=True, slots=True)
class GateClosed:
    """The API cannot be reached: calls wait, one probe at a time goes out, nothing is charged."""

    cause: str


@dataclass(frozen=True, slots=True)
class GateOpened:
    """The API answers again, after so many seconds."""

    after: float


@dataclass(frozen=True, slots=True)
class Resting:
    """The API asked for a rest: no call leaves for so many seconds."""

    seconds: float
    cause: str


@dataclass(frozen=True, slots=True)
class Slowed:
    """The API refused calls or was overloaded: fewer are in flight at a time from now on, until it takes more."""

    slots: int
    cause: str


@dataclass(frozen=True, slots=True)
class Exporting:
    """All calls have ended, and the export is being written."""

    path: str


@dataclass(frozen=True, slots=True)
class Stopping:
    """The run takes no more jobs; calls in flight may still end."""

    reason: str
    message: str
    in_flight: int


@dataclass(frozen=True, slots=True)
class LateOutcome:
    """A call ended after its claim had passed to somebody else; its answer is kept, nothing is overwritten."""

    key: str
    epoch: int


@dataclass(frozen=True, slots=True)
class LoopBlocked:
    """A handler held the event loop up, so that no other call could go on: for how long, and where."""

    seconds: float
    place: str


@dataclass(frozen=True, slots=True)
class HelperDied:
    """A process that helped the run is gone: how it ended, and whether another one takes its place.

    ``pid`` is 0 where it could not even be started.
    """

    pid: int
    how: str
    replaced: bool


@dataclass(frozen=True, slots=True)
class StoreWaits:
    """The store is held by somebody else; the run goes on as soon as it is free."""

    message: str


@dataclass(frozen=True, slots=True)
class Followed:
    """What a person set holds from now on: ``concurrency=5, pause=true``; empty: all is as the config says again."""

    settings: str


Event = (
    InputRead
    | CallBegan
    | CallDropped
    | Joined
    | RequestEnded
    | CallEnded
    | Settled
    | Shared
    | GateClosed
    | GateOpened
    | Exporting
    | Resting
    | Slowed
    | Stopping
    | LateOutcome
    | LoopBlocked
    | HelperDied
    | StoreWaits
    | Followed
)
Listener = Callable[[Event], None]
