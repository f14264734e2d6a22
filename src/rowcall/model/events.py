"""The events that the engine emits during a run, for the display, for ``--events`` and for tests.

Events are frozen and hold plain values, never markup. Times are in seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rowcall.model.outcome import Action, Decision, Outcome


@dataclass(frozen=True, slots=True)
class InputRead:
    """The whole input has been read; the counts are those of the store's ``Enqueued``."""

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
    """A job's call has begun; it ends with ``CallEnded`` or ``CallDropped``."""

    key: str


@dataclass(frozen=True, slots=True)
class CallDropped:
    """A call was dropped before it had an outcome, because the run ends or somebody cancelled its record."""

    key: str


@dataclass(frozen=True, slots=True)
class Joined:
    """Another process already works on this batch job; they share it, and each record goes to one of them."""

    pass_: int


@dataclass(frozen=True, slots=True)
class RequestEnded:
    """One HTTP request ended, with a status or with the reason why there is none. A handler's call may send several."""

    key: str
    status: int | None
    reason: str
    latency: float | None


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call has an outcome and a decision."""

    key: str
    outcome: Outcome
    decision: Decision


@dataclass(frozen=True, slots=True)
class Settled:
    """A job's new state is about to be written, after its call ended or after evidence about an earlier failure."""

    key: str
    action: Action
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class Shared:
    """``count`` records received the answer of another record that sends the same."""

    count: int


@dataclass(frozen=True, slots=True)
class GateClosed:
    """The API cannot be reached. Calls wait, one probe at a time is sent, and nothing is charged."""

    cause: str


@dataclass(frozen=True, slots=True)
class GateOpened:
    """The API answers again, ``after`` seconds."""

    after: float


@dataclass(frozen=True, slots=True)
class Resting:
    """The API asked for a rest: no call leaves for ``seconds``."""

    seconds: float
    cause: str


@dataclass(frozen=True, slots=True)
class Slowed:
    """The API refused calls or was overloaded, so fewer calls are in flight until it accepts more."""

    slots: int
    cause: str


@dataclass(frozen=True, slots=True)
class Exporting:
    """All calls have ended, and the export is being written."""

    path: str


@dataclass(frozen=True, slots=True)
class Stopping:
    """The run claims no more jobs; calls in flight may still end."""

    reason: str
    message: str
    in_flight: int


@dataclass(frozen=True, slots=True)
class LateOutcome:
    """A call ended after another session had taken over its claim. Its answer is kept; nothing is overwritten."""

    key: str
    epoch: int


@dataclass(frozen=True, slots=True)
class LoopBlocked:
    """A handler blocked the event loop, so that no other call could continue: for how long, and where."""

    seconds: float
    place: str


@dataclass(frozen=True, slots=True)
class HelperDied:
    """A helper process of the run has died: how it ended, and whether another one replaces it.

    ``pid`` is 0 if it could not be started.
    """

    pid: int
    how: str
    replaced: bool


@dataclass(frozen=True, slots=True)
class StoreWaits:
    """Another process is using the store; the run continues as soon as it is free."""

    message: str


@dataclass(frozen=True, slots=True)
class Followed:
    """Settings made by hand apply from now on, such as ``concurrency=5, pause=true``; empty: the config again."""

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
