"""Claimed jobs whose twin is being called: they wait for it instead of being called themselves."""

from __future__ import annotations

from rowcall.model.job import Job

MOST_WAITING = 1000
"""Jobs that wait, at most, before no more are claimed."""


class DuplicateJobs:
    """The calls of one process by what they ask. Twins have the same request and the same input."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, str], list[Job]] = {}
        self._callers: dict[tuple[int, str], int] = {}

    @property
    def waiting(self) -> list[Job]:
        """Jobs that wait for a twin."""
        return [job for jobs in self._waiting.values() for job in jobs]

    @property
    def crowded(self) -> bool:
        """So many wait that no more should be claimed."""
        return sum(map(len, self._waiting.values())) >= MOST_WAITING

    def join(self, job: Job) -> bool:
        """Whether the job has to wait; if not, it is the one that is called."""
        twin = (job.request, job.input_hash)
        if twin in self._callers:
            self._waiting.setdefault(twin, []).append(job)
            return True
        self._callers[twin] = job.row
        return False

    def part(self, job: Job) -> list[Job]:
        """The job's call is over, whatever it gave: those that waited for it."""
        twin = (job.request, job.input_hash)
        if self._callers.get(twin) != job.row:
            return []
        del self._callers[twin]
        return self._waiting.pop(twin, [])
