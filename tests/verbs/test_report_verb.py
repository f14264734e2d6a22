"""``rowcall report``: where the page goes."""

from __future__ import annotations


async def test_a_page_is_written(finished):
    """The page goes to a file or to stdout; where it cannot be written, exit 2."""
    ran = await finished.run("report", "-o", "run.html")
    assert ran.code == 0, ran.err
    assert "run.html: written; open it in a browser" in ran.err
    page = (finished.folder / "run.html").read_text()
    assert page.startswith("<!doctype html>")
    assert (await finished.run("report", "-o", "-", "--store", "t.db", "--all")).out.startswith("<!doctype html>")
    assert (await finished.run("report", "-o", "no/such/folder.html")).code == 2
