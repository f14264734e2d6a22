"""``--where COLUMN=VALUE``: a selection by what the records hold."""

from __future__ import annotations

from project import some_rows


async def test_the_verbs_take_it(project):
    """``cancel --where`` and ``retry --where`` change exactly what they show; an unknown column is named, exit 2."""
    rows = [[key, text, "de" if number % 2 else "en"] for number, (key, text, _) in enumerate(some_rows(6))]
    project.write(rows)
    await project.run("run", "-n", "2")
    ran = await project.run("cancel", "--where", "note=de", "--dry-run")
    assert "selected: 2 pending (k3, k5)" in ran.err
    assert (await project.run("cancel", "--where", "note=de")).code == 0
    assert project.statuses() == {"done": 2, "pending": 2, "cancelled": 2}
    ran = await project.run("retry", "--where", "note=de", "--where", "id=k5")
    assert "selected: 1 cancelled (k5)" in ran.err
    ran = await project.run("retry", "--where", "lang=de")
    assert ran.code == 2
    assert "there is no column 'lang'" in ran.err
    assert "id, text, note" in ran.err
    assert (await project.run("cancel", "--where", "note")).code == 2
