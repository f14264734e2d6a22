"""In a notebook a run is shown in its cell; in a script nothing is shown unless it is asked for."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from cellkit import Cell

import rowcall
from rowcall.model.outcome import Usage
from rowcall.progress.notebook_cell import html
from rowcall.progress.view import View

ROWS = [{"id": n, "text": f"number {n} is good"} for n in range(60)]


async def label(row, call):
    reply = await call.post(
        "/chat/completions", json={"model": "m", "messages": [{"role": "user", "content": row["text"]}]}
    )
    return reply.json()["choices"][0]["message"]["content"]


@pytest.fixture
def notebook(monkeypatch):
    """IPython as a program finds it in a notebook's kernel."""
    monkeypatch.setattr("rowcall.progress.notebook_cell.UPDATED", 0.02)
    cell = Cell()
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: type("ZMQInteractiveShell", (), {})()
    display.display = cell.display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return cell


def run(tmp_path, **options):
    return rowcall.map(label, ROWS, key="id", store=tmp_path / "s.db", api="mock", concurrency=8, **options)


def test_a_cell_shows_the_run(notebook, tmp_path, capsys):
    """One output of the cell is updated while the run works, and says at the end how it ended; nothing on stderr."""
    assert len(run(tmp_path)) == 60
    assert notebook.outputs == 1
    shown = [bundle["text/html"] for bundle in notebook.shown]
    assert any("<progress" in html and "in flight 8/8" in html for html in shown)
    assert "s: 60 records: 60 done, 0 failed, 0 left; " in shown[-1]
    assert "<progress" not in shown[-1]
    assert capsys.readouterr() == ("", "")


def test_it_can_be_switched_off(notebook, tmp_path):
    """``display=False`` shows nothing."""
    run(tmp_path, display=False)
    assert notebook.outputs == 0


def test_a_script_shows_nothing(tmp_path, capsys):
    """Without a notebook nothing is shown; ``display=True`` shows it on stderr, and results are the same."""
    run(tmp_path)
    assert capsys.readouterr() == ("", "")
    run(tmp_path, display=True)
    said = capsys.readouterr()
    assert "s: 60 records: 60 done, 0 failed, 0 left" in said.err
    assert not said.out


def test_a_shell_is_no_notebook(monkeypatch, notebook, tmp_path):
    """IPython in a terminal has no cells to draw in."""
    sys.modules["IPython"].get_ipython = lambda: type("TerminalInteractiveShell", (), {})()
    run(tmp_path)
    assert notebook.outputs == 0


async def test_listeners_still_hear(notebook, tmp_path):
    """A listener of one's own is told beside the display."""
    heard = []
    async with rowcall.open(tmp_path / "s.db", api="mock", on_event=heard.append) as job:
        await job.add(ROWS[:5], key="id")
        await job.run(label)
    assert "CallEnded" in {type(event).__name__ for event in heard}
    assert notebook.outputs == 1


def test_the_data_is_no_markup():
    """Words of the API are text in the cell."""
    view = View(10, 3, 1, 2, 8, 4, 0, False, 1.5, 4.0, 0.05, 0.06, Usage(10, 5, cost=10**9), None, "<script>x</script>")
    shown = html(view)
    assert "<script>" not in shown
    assert "&lt;script&gt;x" in shown
    assert 'max="10" value="4"' in shown
    assert "$1.00" in shown
