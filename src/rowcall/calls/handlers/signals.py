"""Exceptions that a handler may raise to say what is to be done.

    Classed
    |-- Fail            this record fails at once
    |-- RetryLater      this record is tried again later; no attempt is charged
    '-- StopRun         the run stops; no record fails and no attempt is charged

The engine also finds them if another exception was raised from them.
"""

from __future__ import annotations

from rowcall.failures.retries import LONGEST_WAIT
from rowcall.model.outcome import Classed, Failure, FailureClass


class Fail(Classed):
    """The record cannot be done: it fails and is not tried again.

    Args:
        message: why, for a person; one line.
        reason: the stable code under which ``rowcall errors`` counts it and ``rowcall retry`` finds it.
    """

    def __init__(self, message: str = "", *, reason: str = "failed_by_handler") -> None:
        super().__init__(message)
        self.reason = str(reason)

    @property
    def failure(self) -> Failure:
        """The failure that the exception stands for."""
        return Failure(FailureClass.RECORD, self.reason, str(self) or "the handler gave it up", final=True)


class RetryLater(Classed):
    """The record is put back uncharged and called again after a wait.

    A record that is put off more than 100 times in a run fails.

    Args:
        seconds: how long to wait, at least.
        message: why, for a person; one line.

    Raises:
        ValueError: the wait is negative.
    """

    def __init__(self, seconds: float, message: str = "") -> None:
        super().__init__(message)
        self.seconds = float(seconds)
        if not self.seconds >= 0:
            raise ValueError(f"a wait is 0 seconds or more, not {seconds}")

    @property
    def failure(self) -> Failure:
        """The failure that the exception stands for."""
        wait = min(self.seconds, LONGEST_WAIT)
        message = str(self) or f"put off for {wait:g} s by the handler"
        return Failure(FailureClass.LATER, "put_off", message, retry_after=wait)


class StopRun(Classed):
    """The run stops and can be resumed later; this record and those not called yet stay pending.

    Args:
        message: why, for a person; one line.
    """

    @property
    def failure(self) -> Failure:
        """The failure that the exception stands for."""
        return Failure(FailureClass.MONEY, "stopped_by_handler", str(self) or "stopped by the handler")
