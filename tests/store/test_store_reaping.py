"""Who is taken for dead: nobody who has given a sign of life since."""

from __future__ import annotations

from rowcall.store.liveness import BEATS_A_LEASE


async def silent(desk):
    """Another process at the desk's store that has a job, and has been silent for as long as a lease lasts."""
    other = await desk.other()
    await desk.bring("a")
    job = await other.one()
    for _ in range(BEATS_A_LEASE + 1):
        await desk.store.beat(desk.session)
    return other, job


async def test_silence_is_death(desk):
    """What a silent session had is put back."""
    await silent(desk)
    assert await desk.store.reap() == 1


async def test_a_sign_of_life_after_the_last_look(desk):
    """A session that was silent for as long as it takes, and beats before it is buried, keeps what it has."""
    other, job = await silent(desk)
    await other.store.beat(other.session)
    assert await desk.store.reap() == 0
    assert await other.done(job) == []
