"""Verbs that change jobs: cancel, retry by batch, rollback, and runs of batches and of what was left behind."""

from __future__ import annotations

import asyncio

from project import some_rows


async def test_cancel_takes_pending_records_out(project):
    """Cancelled records are not called; ``retry`` brings them back."""
    project.write(some_rows(10))
    await project.run("run", "-n", "4")
    ran = await project.run("cancel", "--pending", "--yes")
    assert ran.code == 0
    assert "selected: 6 pending (k4, k5, k6, k7, k8, ...)" in ran.err
    assert "6 records are cancelled; rowcall retry KEY brings them back" in ran.err
    assert (await project.run("run")).code == 0
    assert project.statuses() == {"done": 4, "cancelled": 6}
    assert len(project.api.calls) == 4
    await project.run("retry", "k7")
    await project.run("run")
    assert project.statuses() == {"done": 5, "cancelled": 5}


async def test_cancel_by_key_and_dry_run(project):
    """``--dry-run`` shows the selection and changes nothing; without it, exactly that is cancelled."""
    project.write(some_rows(10))
    await project.run("run", "-n", "4")
    ran = await project.run("cancel", "k1", "k5", "k8", "--dry-run")
    assert "selected: 2 pending (k5, k8)" in ran.err
    assert project.statuses() == {"done": 4, "pending": 6}
    await project.run("cancel", "k1", "k5", "k8")
    assert project.statuses() == {"done": 4, "pending": 4, "cancelled": 2}


async def test_cancel_drops_running_calls(project):
    """The calls of cancelled records are dropped at the next beat, and the run ends at once without them."""
    process = await running(project, latency=60)
    keys = [key_of(call) for call in project.api.calls[-8:]]
    assert (await project.run("cancel", "--batch", "pass-1")).code == 0
    assert (await asyncio.wait_for(project.end(process), 10)).code == 0
    assert set(project.statuses()) == {"done", "cancelled"}
    assert [answers(project, key) for key in keys] == [0] * 8
    assert {project.attempts()[key] for key in keys} == {0}


async def test_cancelling_one_running_record_lets_the_others_end(project):
    """Only the cancelled call is dropped; its neighbours in flight get their answers, and the rest is called."""
    process = await running(project, latency=1.5)
    key = key_of(project.api.calls[-1])
    assert (await project.run("cancel", key)).code == 0
    project.api.latency = 0.005
    ran = await project.end(process)
    assert ran.code == 0, ran.err
    assert project.statuses() == {"done": 29, "cancelled": 1}
    assert answers(project, key) == 0


def key_of(call):
    return f"k{call.text.split()[2]}"


def answers(project, key):
    [(count,)] = project.sql("SELECT count(*) FROM results JOIN jobs ON jobs.rowid = job WHERE jobs.id = ?", key)
    return count


async def running(project, latency):
    """A run with all its slots in calls that take so long."""
    project.write(some_rows(30))
    project.replace("[stop]", '[store]\nlease = "1s"\n[stop]')
    project.replace('timeout = "5s"', 'timeout = "90s"')
    project.api.latency = 0.05
    process = await project.start("run")
    await asyncio.wait_for(project.api.wait_for_calls(2), 20)
    project.api.latency = latency
    await asyncio.wait_for(project.api.wait_for_calls(len(project.api.calls) + 8), 20)
    return process


async def test_nothing_selected(finished):
    """A verb without a selection, and words that match nothing, are errors with exit 2."""
    for words in (["cancel"], ["retry"], ["cancel", "nobody"], ["retry", "nobody"], ["rollback"]):
        ran = await finished.run(*words)
        assert ran.code == 2, words
    assert "nobody" in (await finished.run("cancel", "nobody")).err


async def test_batches_have_names(project):
    """``run --batch`` names what comes in with it; ``retry --batch --done`` sets back exactly that."""
    project.write(some_rows(5))
    await project.run("run", "--batch", "monday")
    project.rows(some_rows(8))
    await project.run("run", "--batch", "tuesday")
    assert project.sql("SELECT batch, count(*) FROM jobs GROUP BY batch") == [("monday", 5), ("tuesday", 3)]
    assert "batch tuesday" in (await project.run("show", "k6")).out
    ran = await project.run("retry", "--batch", "tuesday", "--done")
    assert "selected: 3 done" in ran.err
    assert (await project.run("run")).code == 0
    assert len(project.api.calls) == 11


async def test_an_unknown_batch_is_named(finished):
    """A mistyped batch is an error that lists the batches there are, exit 2."""
    for verb in ("retry", "cancel", "rollback"):
        ran = await finished.run(verb, "--batch", "no-such")
        assert ran.code == 2
        assert "pass-1" in ran.err


async def test_rollback_to_the_previous_answers(project):
    """Rollback of a new prompt's batch brings the old answers back; with the old prompt nothing is called."""
    project.write(some_rows(6))
    project.replace('parse = "json"', 'extract = "{text: @.choices[0].message.content, model: @.model}"')
    project.replace('label = "label"', 'label = "model"')
    project.replace('model = "m"', 'model = "old"')
    await project.run("run", "--batch", "old")
    project.replace('model = "old"', 'model = "new"')
    await project.run("run", "--batch", "new", "--if-changed", "redo")
    assert {row["label"] for row in project.exported()} == {"new"}
    ran = await project.run("rollback", "--batch", "new", "--dry-run")
    assert "6 with a previous answer, 0 without one" in ran.err
    ran = await project.run("rollback", "--batch", "new")
    assert ran.code == 0
    assert "6 records got the previous answer back" in ran.err
    assert project.statuses() == {"done": 6}
    project.replace('model = "new"', 'model = "old"')
    assert (await project.run("run")).code == 0
    assert {row["label"] for row in project.exported()} == {"old"}
    assert len(project.api.calls) == 12


async def test_rollback_without_a_previous_answer(project):
    """Records that have no other answer are pending again, those of other batches stay as they are."""
    project.write(some_rows(4))
    await project.run("run", "--batch", "first")
    project.rows(some_rows(6))
    await project.run("run", "--batch", "second")
    ran = await project.run("rollback", "--batch", "second")
    assert "0 records got the previous answer back, 2 pending again" in ran.err
    assert project.statuses() == {"done": 4, "pending": 2}
    assert (await project.run("run")).code == 0
    assert len(project.api.calls) == 8


async def test_rollback_of_an_edit(project):
    """An edited record falls back to the answer to what it was; the edit in the input is then called anew, rightly."""
    project.write(some_rows(3))
    await project.run("run", "--batch", "first")
    rows = some_rows(3)
    rows[1][1] = "this is terrible and awful"
    project.rows(rows)
    await project.run("run", "--batch", "edit")
    await project.run("rollback", "--batch", "edit")
    assert project.statuses() == {"done": 3}
    project.rows(some_rows(3))
    await project.run("run")
    assert len(project.api.calls) == 4
    assert project.exported()[1]["label"] == "positive"
    await project.run("retry", "k1", "--done")
    await project.run("run")
    assert project.exported()[1]["label"] == "positive"
    project.rows(rows)
    await project.run("run")
    assert len(project.api.calls) == 6
    assert project.exported()[1]["label"] == "negative"


async def test_run_all_calls_what_left_the_input(project):
    """``run`` leaves records alone that left the input; ``run --all`` calls them too, with their own data."""
    project.write(some_rows(10))
    await project.run("run", "-n", "2")
    project.rows(some_rows(4))
    ran = await project.run("run")
    assert "6 records are no longer in the input and were skipped" in ran.err
    assert project.statuses() == {"done": 4, "pending": 6}
    ran = await project.run("run", "--all")
    assert ran.code == 0, ran.err
    assert "no longer in the input" not in ran.err
    assert project.statuses() == {"done": 10}
    assert len(project.api.calls) == 10
    assert len(project.exported()) == 4


async def test_run_all_with_another_request(project):
    """What left the input is called with the request of now, and its answer is that request's."""
    project.write(some_rows(6))
    await project.run("run", "-n", "2")
    project.rows(some_rows(2))
    (project.folder / "prompt.md").write_text("Another question.\n")
    ran = await project.run("run", "--all", "--if-changed", "keep")
    assert ran.code == 0, ran.err
    assert project.statuses() == {"done": 6}
    assert (await project.run("run", "--all")).code == 0
    assert len(project.api.calls) == 6
    [(latest,)] = project.sql("SELECT id FROM requests ORDER BY used DESC LIMIT 1")
    assert project.sql("SELECT DISTINCT request FROM results WHERE job > 2") == [(latest,)]
