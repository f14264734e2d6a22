"""Every verb once as the real command, in a process of its own: what the other tests here call within theirs."""

from __future__ import annotations

import pytest

LOOKING = {
    ("check",): 0,
    ("status", "--json"): 0,
    ("errors",): 0,
    ("show", "k3", "--curl"): 0,
    ("show", "nobody"): 2,
    ("verify", "--json"): 0,
}
CHANGING = {
    ("retry", "k3", "--done", "--dry-run"): 0,
    ("cancel", "--pending"): 0,
    ("rollback", "--batch", "no-such"): 2,
    ("prune", "--done-before", "2020-01-01", "--dry-run"): 0,
}


@pytest.mark.parametrize("verbs", [LOOKING, CHANGING], ids=["looking", "changing"])
async def test_verbs_in_processes_of_their_own(finished, verbs):
    """Each verb ends with the exit code and the words that it has when it is called in the tests' process."""
    finished.fresh = True
    for args, code in verbs.items():
        alone, here = await finished.process(*args), await finished.run(*args)
        assert (alone.code, here.code) == (code, code), (args, alone.err)
        assert (alone.out, alone.err) == (here.out, here.err), args


async def test_verbs_that_leave_something(finished):
    """What a verb does in a process of its own is done."""
    finished.fresh = True
    assert (await finished.process("backup", "copy.db")).code == 0
    assert (finished.folder / "copy.db").stat().st_size
    assert (await finished.process("prune", "--done-before", "2020-01-01")).code == 0
