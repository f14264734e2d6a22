"""The commands that a run names when it ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from rowcall.cli.shared.flags import flags_to_resume
from rowcall.cli.shared.job_address import JobAddress


@dataclass(frozen=True, slots=True)
class NextCommands:
    """The commands that may come after a run.

    Attributes:
        resume: continues the work; without ``--max-cost``, which the end of the run may change.
        errors: lists what failed.
        address: where the job is, for commands within advice.
        max_cost: the value of ``--max-cost`` in dollars, if it was given.
    """

    resume: str
    errors: str
    address: JobAddress
    max_cost: float | None = None

    @classmethod
    def for_config(cls, config: Path, verb: str = "rowcall run") -> Self:
        """Return the commands for a config, its path as the user wrote it; ``verb`` resumes the work."""
        address = JobAddress(config)
        return cls(address.fill_in(verb), address.fill_in("rowcall errors"), address)

    def with_flags(self, flags: dict[str, Any]) -> Self:
        """Return the same commands, where resuming repeats the flags of this run that later runs need too."""
        return replace(self, resume=" ".join([self.resume, *flags_to_resume(flags)]), max_cost=flags["max_cost"])
