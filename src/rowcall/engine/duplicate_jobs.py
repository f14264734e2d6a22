"""Claimed jobs that would send what another job is sending: they wait for its answer instead of being called."""

from __future__ import annotations

from rowcall.model.job import Job

MOST_WAITING = 1000
"""Jobs that may wait before no more are claimed."""


class DuplicateJobs:
    """The calls of one process by what they send. Duplicates have the same request and the same input."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[int, str], list[Job]] = {}
        self._called: dict[tuple[int, str], int] = {}

    @property
    def waiting(self) -> list[Job]:
        """Jobs that wait for another job's answer."""
        return [job for jobs in self._waiting.values() for job in jobs]

    @property
    def crowded(self) -> bool:
        """So many jobs wait that no more should be claimed."""
        return sum(map(len, self._waiting.values())) >= MOST_WAITING

    def join(self, job: Job) -> bool:
        """Return whether the job has to wait; if not, it is the one to call."""
        content = (job.request, job.input_hash)
        if content in self._called:
            self._waiting.setdefault(content, []).append(job)
            return True
        self._called[content] = job.row
        return False

    def end(self, job: Job) -> list[Job]:
        """Note that the job's call is over, whatever came of it; returns the jobs that waited for it."""
        content = (job.request, job.input_hash)
        if self._called.get(content) != job.row:
            return []
        del self._called[content]
        return self._waiting.pop(content, [])
