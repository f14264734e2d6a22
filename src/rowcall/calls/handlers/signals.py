"""What a handler may raise to say what is to be done.

    Classed
    |-- Fail            this record is failed, at once
    |-- RetryLater      this record is tried again later, nothing charged
    '-- StopRun         the run stops; nothing is failed, nothing charged

The engine finds them also where another exception was raised on top of them.
"""

from __future__ import annotations

from rowcall.failures.retries import LONGEST_WAIT
from rowcall.model.outcome import Classed, Failure, FailureClass


class Fail(Classed):
    """The record cannot be done: it is failed, and not tried again.

    Args:
        message: why, for a person; one line.
        reason: the stable code under which ``rowcall errors`` counts it and ``rowcall retry`` finds it.
    """

    def __init__(self, message: str = "", *, reason: str = "failed_by_handler") -> None:
        super().__init__(message)
        self.reason = str(reason)

    @property
    def failure(self) -> Failure:
        """It as an outcome."""
        return Failure(FailureClass.RECORD, self.reason, str(self) or "the handler gave it up", final=True)


class RetryLater(Classed):
    """The record goes back, nothing is charged, and it is called again after a wait.

    A record that is put off more than 100 times in a run is failed.

    Args:
        seconds: how long to wait, at least.
        message: why, for a person; one line.

    Raises:
        ValueError: a negative wait.
    """

    def __init__(self, seconds: float, message: str = "") -> None:
        super().__init__(message)
        self.seconds = float(seconds)
        if not self.seconds >= 0:
            raise ValueError(f"a wait is 0 seconds or more, not {seconds}")

    @property
    def failure(self) -> Failure:
        """It as an outcome."""
        wait = min(self.seconds, LONGEST_WAIT)
        message = str(self) or f"put off for {wait:g} s by the handler"
        return Failure(FailureClass.LATER, "put_off", message, retry_after=wait)


class StopRun(Classed):
    """The run stops and can go on later; this record and those not called yet stay pending.

    Args:
        message: why, for a person; one line.
    """

    @property
    def failure(self) -> Failure:
        """It as an outcome."""
        return Failure(FailureClass.MONEY, "stopped_by_handler", str(self) or "stopped by the handler")
