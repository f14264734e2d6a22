"""One job through its stages: build the request, send it, read the reply, judge the outcome, hand it over."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from rowcall.client import Client, failure_of
from rowcall.errors import TemplateError
from rowcall.events import CallEnded, Listener
from rowcall.job import Job
from rowcall.judge import Judge, Ruling
from rowcall.outcome import Failure, FailureClass, Outcome, Reply
from rowcall.providers.base import Call, Provider, Request
from rowcall.settler import Settler


class Executor:
    """Carries claimed jobs through their one call.

    Args:
        provider: builds requests and reads replies.
        client: sends; one call is one HTTP request.
        judge: decides who pays.
        settler: takes what is to be written.
        emit: told of every call that ended.
        call_key: the key of a job's call, stable over tries, restarts and processes.
    """

    def __init__(
        self,
        provider: Provider,
        client: Client,
        judge: Judge,
        settler: Settler,
        *,
        emit: Listener,
        call_key: Callable[[Job], str],
    ) -> None:
        self._provider = provider
        self._client = client
        self._judge = judge
        self._settler = settler
        self._emit = emit
        self._call_key = call_key

    async def execute(self, job: Job, *, probe: bool = False) -> Ruling:
        """Make the job's call; its slot is free when this returns.

        Args:
            job: a claimed job.
            probe: the call asks whether the API is back, on a fresh connection.
        """
        number: int | None = None
        built = self._build(job)
        if isinstance(built, Failure):
            outcome: Outcome = built
        else:
            number = self._judge.gate.depart(monotonic())
            reply = await self._send(built, fresh=probe or self._judge.fresh_connection(job))
            outcome = self._read(reply)
        ruling = self._judge.rule(job, number, outcome, now=monotonic(), probe=probe)
        self._emit(CallEnded(job.key, outcome, ruling.decision))
        self._settler.put(ruling.settlements)
        await self._settler.room()
        return ruling

    def _build(self, job: Job) -> Request | Failure:
        try:
            return self._provider.build(job.data, Call(self._call_key(job)))
        except TemplateError as error:
            return Failure(FailureClass.RECORD, "template_error", error.message)

    async def _send(self, request: Request, *, fresh: bool) -> Reply | Failure:
        try:
            return await self._client.exchange(request, fresh=fresh)
        except Exception as error:  # noqa: BLE001  whatever the wire raises is an outcome; failure_of knows its class
            return failure_of(error)

    def _read(self, reply: Reply | Failure) -> Outcome:
        return reply if isinstance(reply, Failure) else self._provider.read(reply)
