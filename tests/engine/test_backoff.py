"""The failure table, row by row."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowcall.failures.gate import Verdict
from rowcall.failures.retries import LONGEST_WAIT, Evidence, RetryPolicy, decide, retry_after
from rowcall.model.job import Job
from rowcall.model.outcome import Action, Failure, FailureClass

POLICY = RetryPolicy(jitter=lambda: 0.0)
C, V, A = FailureClass, Verdict, Action


def job(*, attempts=0, rejected=()):
    return Job(1, "k", 1, attempts, 0, rejected, True, 1, "h", {})


def fail(cls, **more):
    return Failure(cls, more.pop("reason", "reason"), "message", **more)


SCHEMA = fail(C.ANSWER, reason="schema")
LATER = Evidence(succeeded=True)
FIRST = Evidence()
KNOWN = Evidence(request_known=True)


def proven(**more):
    return Evidence(verdict=V.PROVEN, succeeded=True, **more)


EXCUSED = Evidence(verdict=V.EXCUSED, succeeded=True)

TABLE = {
    "not sent, open": (fail(C.NOT_SENT), job(), LATER, A.HOLD, 0, False),
    "not sent, excused": (fail(C.NOT_SENT), job(), EXCUSED, A.RELEASE, 1, False),
    "not sent, proven: released, not charged": (fail(C.NOT_SENT), job(), proven(), A.RELEASE, 1, False),
    "not sent, proven: each wait is longer": (fail(C.NOT_SENT), job(), proven(releases=3), A.RELEASE, 8, False),
    "not sent, proven 10 times before": (fail(C.NOT_SENT), job(), proven(releases=10), A.FAIL, 0, False),
    "not sent, excused, however often": (
        fail(C.NOT_SENT),
        job(),
        Evidence(verdict=V.EXCUSED, releases=10),
        A.RELEASE,
        60,
        False,
    ),
    "reused, first time": (fail(C.REUSED), job(), LATER, A.RELEASE, 0, False),
    "reused, again: as maybe sent": (fail(C.REUSED), job(), Evidence(reused=True), A.HOLD, 0, False),
    "maybe sent, open": (fail(C.MAYBE_SENT), job(), LATER, A.HOLD, 0, False),
    "maybe sent, excused": (fail(C.MAYBE_SENT), job(), EXCUSED, A.RELEASE, 1, False),
    "maybe sent, proven": (fail(C.MAYBE_SENT), job(), proven(), A.RETRY, 1, False),
    "server, open": (fail(C.SERVER, status=503), job(), FIRST, A.HOLD, 0, False),
    "server, excused, asked to wait": (fail(C.SERVER, retry_after=7.0), job(), EXCUSED, A.RELEASE, 7, False),
    "server, proven: second try": (fail(C.SERVER), job(attempts=1), proven(), A.RETRY, 2, False),
    "server, proven: Retry-After is kept": (fail(C.SERVER, retry_after=9.0), job(), proven(), A.RETRY, 9, False),
    "server, proven: attempts used up": (fail(C.SERVER), job(attempts=2), proven(), A.FAIL, 0, False),
    "server, proven: told not to retry": (fail(C.SERVER, retry=False), job(), proven(), A.FAIL, 0, False),
    "pace": (fail(C.PACE, retry_after=4.0), job(), LATER, A.RELEASE, 4, False),
    "pace, nothing said": (fail(C.PACE), job(), Evidence(streak=3), A.RELEASE, 4, False),
    "pace, 100 times while others passed": (fail(C.PACE), job(), Evidence(rests=100), A.FAIL, 0, False),
    "money": (fail(C.MONEY), job(), LATER, A.RELEASE, 0, True),
    "setup, nothing succeeded yet": (fail(C.SETUP, status=401), job(), FIRST, A.RELEASE, 0, True),
    "setup, 404 first": (fail(C.SETUP, status=404), job(), FIRST, A.RELEASE, 0, True),
    "setup, 404 first, request known": (fail(C.SETUP, status=404), job(), KNOWN, A.FAIL, 0, False),
    "setup, 404 later": (fail(C.SETUP, status=404), job(), LATER, A.FAIL, 0, False),
    "setup, TLS first": (fail(C.SETUP, reason="tls_untrusted"), job(), FIRST, A.RELEASE, 0, True),
    "setup, TLS later: not sent": (fail(C.SETUP, reason="tls_untrusted"), job(), LATER, A.HOLD, 0, False),
    "setup, redirect later: somebody in between": (fail(C.SETUP, status=302), job(), LATER, A.HOLD, 0, False),
    "setup, 401 later": (fail(C.SETUP, status=401), job(), LATER, A.HOLD, 0, False),
    "setup, 403 proven": (fail(C.SETUP, status=403), job(), proven(), A.FAIL, 0, False),
    "setup, 403 excused": (fail(C.SETUP, status=403), job(), EXCUSED, A.RELEASE, 0, False),
    "record, nothing succeeded yet": (fail(C.RECORD, status=400), job(), FIRST, A.HOLD, 0, False),
    "record, request known": (fail(C.RECORD, status=400), job(), KNOWN, A.FAIL, 0, False),
    "record, later": (fail(C.RECORD, status=422), job(), LATER, A.FAIL, 0, False),
    "record, excused": (fail(C.RECORD), job(), Evidence(verdict=V.EXCUSED), A.RELEASE, 0, False),
    "record, given up by its handler": (fail(C.RECORD, final=True), job(), FIRST, A.FAIL, 0, False),
    "later": (fail(C.LATER, retry_after=30.0), job(), FIRST, A.RELEASE, 30, False),
    "later, put off 100 times before": (fail(C.LATER, retry_after=30.0), job(), Evidence(rests=100), A.FAIL, 0, False),
    "answer, nothing succeeded yet": (fail(C.ANSWER), job(), FIRST, A.HOLD, 0, False),
    "answer, later: one more try": (fail(C.ANSWER), job(), LATER, A.RETRY, 1, False),
    "answer, its own budget used up": (SCHEMA, job(attempts=1, rejected=["schema"]), LATER, A.FAIL, 0, False),
    "answer, another reason's budget used up": (SCHEMA, job(attempts=1, rejected=["empty"]), LATER, A.RETRY, 1, False),
    "answer, attempts used up": (SCHEMA, job(attempts=2, rejected=["empty"]), LATER, A.FAIL, 0, False),
    "answer, told not to retry": (fail(C.ANSWER, retry=False), job(), LATER, A.FAIL, 0, False),
    "answer, truncated: no use": (fail(C.ANSWER, reason="truncated"), job(), LATER, A.FAIL, 0, False),
    "answer, filtered: no use": (fail(C.ANSWER, reason="filtered"), job(), LATER, A.FAIL, 0, False),
}


@pytest.mark.parametrize(("failure", "of", "standing", "action", "wait", "stop"), TABLE.values(), ids=TABLE)
def test_the_table(failure, of, standing, action, wait, stop):
    """Each row of the failure table gives its decision."""
    decision = decide(failure, of, standing, POLICY)
    assert (decision.action, decision.wait, decision.stop) == (action, wait, stop)


def test_each_reason_of_an_answer_has_its_budget():
    """A budget of its own goes before the usual one, also for what is not asked for again without it."""
    policy = RetryPolicy(attempts=9, answers={"schema": 2, "empty": 0, "truncated": 1}, jitter=lambda: 0.0)
    more = {
        reason: next(n for n in range(9) if decided(policy, reason, [reason] * n) is A.FAIL)
        for reason in ("schema", "empty", "not_json", "truncated", "filtered")
    }
    assert more == {"schema": 2, "empty": 0, "not_json": 1, "truncated": 1, "filtered": 0}


def decided(policy, reason, rejected):
    return decide(fail(C.ANSWER, reason=reason), job(attempts=len(rejected), rejected=rejected), LATER, policy).action


def test_every_class_has_rows():
    """No class is left out of the table above."""
    assert {row[0].cls for row in TABLE.values()} == set(FailureClass)


def test_a_pace_failure_rests_the_whole_target():
    """A 429 that asks for four seconds rests everything for four seconds."""
    assert decide(fail(C.PACE, retry_after=4.0), job(), LATER, POLICY).rest == 4.0


@given(jitter=st.floats(0, 0.999), number=st.integers(1, 40), asked=st.none() | st.floats(0, 7200))
def test_jitter_only_lengthens(jitter, number, asked):
    """A wait is never shorter than its backoff or than what the server asked, and at most a quarter of it longer."""
    wait = RetryPolicy(jitter=lambda: jitter).wait(number, asked)
    least = max(min(2.0 ** (number - 1), 60.0), asked or 0.0)
    assert least <= wait <= least * 1.25


DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"retry-after": "1"}, b"", 1.0),
        ({"retry-after": "0.5"}, b"", 0.5),
        ({"retry-after": "-5"}, b"", 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, b"", 1.5),
        ({"retry-after": "Wed, 21 Oct 2015 07:29:30 GMT", "date": DATE}, b"", 90.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:00:00 GMT", "date": DATE}, b"", 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:29:30 GMT"}, b"", 0.0),
        ({"retry-after": "soon"}, b"", None),
        ({"retry-after": "nan"}, b"", None),
        ({"retry-after": "inf"}, b"", None),
        ({"retry-after": ""}, b"", None),
        ({"retry-after": "1e99"}, b"", LONGEST_WAIT),
        ({}, b'{"error":{"details":[{"@type":"google.rpc.RetryInfo","retryDelay":"38s"}]}}', 38.0),
        ({}, b'{"retryDelay": "1.5s"}', 1.5),
        ({}, b"\xff\xfe not json", None),
    ],
)
def test_retry_after(headers, body, seconds):
    """Retry-After is read in every form; a past date is 0, garbage is nothing."""
    assert retry_after(headers, body) == seconds


@given(st.text(max_size=60))
def test_retry_after_never_raises(text):
    """Whatever a server writes, the result is nothing or a wait from 0 to the longest one."""
    seconds = retry_after({"retry-after": text, "retry-after-ms": text, "date": text})
    assert seconds is None or 0 <= seconds <= LONGEST_WAIT
