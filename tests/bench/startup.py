"""CPU of verbs that do next to nothing: what each start costs."""

from __future__ import annotations

from clients.meter import config
from machinery import markdown, middle, rowcall, serving, write_rows
from rows import OUTPUT

VERBS = (("--help",), ("status",), ("errors",), ("show", "k1"), ("check",), ("preview",), ("run", "-q"))


def bench(folder, rounds):
    """The table: one line a verb."""
    folder = folder / "startup"
    folder.mkdir()
    write_rows(folder / "in.csv", 10)
    with serving(0.0) as server:
        (folder / "config.toml").write_text(config(server.url, more=OUTPUT))
        rowcall("run", "-q", cwd=folder)
        used = {verb: [rowcall(*verb, cwd=folder) for _ in range(rounds)] for verb in VERBS}
    lines = [
        [
            f"`rowcall {' '.join(verb)}`",
            f"{middle(u.cpu for u in all_):.2f} s",
            f"{middle(u.memory for u in all_):.0f} MB",
        ]
        for verb, all_ in used.items()
    ]
    return markdown(["start of a verb", "CPU", "memory"], lines)
