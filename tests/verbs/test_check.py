"""``rowcall check``: all problems at once, each with its place; nothing sent, nothing written."""

from __future__ import annotations

import csv
import subprocess
import sys

import pytest
from project import some_rows


async def test_check_of_a_sound_project(project):
    """All is well: exit 0, the first requests and one line of summary; no call, no store, no other file."""
    project.write(some_rows(10))
    before = sorted(file.name for file in project.folder.iterdir())
    ran = await project.run("check")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1] == "10 records, all keys unique, 10 valid requests"
    assert f"POST {project.api.url}/chat/completions" in ran.out
    assert "sentence number 0 is good" in ran.out
    assert not project.api.calls
    assert sorted(file.name for file in project.folder.iterdir()) == before


async def test_check_finds_all_problems_at_once(project):
    """Bad lines, an empty key, keys that clash and an unset variable: all at once, each with its place, exit 2."""
    rows = some_rows(8)
    rows[2][0] = ""
    rows[4][0] = "k1"
    rows[5] = rows[0]
    project.write(rows)
    project.replace('timeout = "5s"', 'timeout = "5s"\napi_key = { env = "NO_SUCH_VARIABLE" }')
    with (project.folder / "in.csv").open("a") as file:
        file.write("k8,too,many,cells\nk9,a last one,n\n")
    ran = await project.run("check")
    assert ran.code == 2
    assert "config.toml:10: api.api_key needs the variable NO_SUCH_VARIABLE" in ran.out
    assert "in.csv:4: the key 'id' is empty" in ran.out
    assert "in.csv:6: the key 'k1' is already that of a different record, at in.csv:3" in ran.out
    assert "in.csv:10: 4 cells, more than the 3 columns" in ran.out
    summary = "9 records, 1 key not unique, 1 without a key, 9 valid requests, 1 repeated, 4 problems"
    assert ran.out.splitlines()[-1] == summary
    assert not (project.folder / "in.csv.bad.jsonl").exists()
    assert not (project.folder / "t.db").exists()


async def test_check_renders_every_row(project):
    """A row for which a template fails is found wherever it stands, and named by its line."""
    rows = some_rows(50)
    rows[40][2] = "no number"
    project.write(rows)
    project.replace("{{ row.text }}", "{{ 1 / (row.note | length - 9) }} {{ row.text }}")
    ran = await project.run("check")
    assert ran.code == 2
    assert "in.csv:42: request.body.messages[1].content: division by zero" in ran.out
    assert ran.out.splitlines()[-1] == "50 records, all keys unique, 49 valid requests, 1 problem"


async def test_check_names_unknown_columns_and_reads_on(project):
    """A placeholder without a column is one problem, not one for each row; bad lines are found all the same."""
    project.write(some_rows(5))
    project.replace("row.text", "row.txet")
    with (project.folder / "in.csv").open("a") as file:
        file.write("k9,too,many,cells\n")
    ran = await project.run("check")
    assert ran.code == 2
    assert ran.out.count("txet") == 1
    assert "did you mean row.text" in ran.out
    assert "in.csv:7" in ran.out
    assert ran.out.splitlines()[-1].endswith("2 problems")


async def test_check_counts_lines_that_will_be_set_aside(project):
    """With on_bad = "skip" a bad line is no problem but is counted, and the quarantine file is left to the run."""
    project.write(some_rows(5))
    project.replace('key = "id"', 'key = "id"\non_bad = "skip"')
    with (project.folder / "in.csv").open("a") as file:
        file.write("k9,too,many,cells\n")
    ran = await project.run("check")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "5 records, all keys unique, 5 valid requests, 1 bad line to be set aside"
    assert not (project.folder / "in.csv.bad.jsonl").exists()


async def test_check_finds_every_fault_of_the_config(project):
    """Several faults of the config come together, each with its line, exit 2."""
    project.write(some_rows(1))
    project.replace("concurrency = 8", "concurency = 8")
    project.replace('preset = "openai"', 'preset = "opnai"')
    ran = await project.run("check")
    assert ran.code == 2
    assert "config.toml:7" in ran.err
    assert "config.toml:22" in ran.err


async def test_check_shows_no_secret(project):
    """The key stands in a request by the name of its variable, never by its value."""
    project.env["API_KEY"] = "very-secret-value"
    project.write(some_rows(2))
    project.replace('timeout = "5s"', 'timeout = "5s"\napi_key = { env = "API_KEY" }')
    ran = await project.run("check", "-v", "--probe")
    assert ran.code == 0, ran.out
    assert "authorization: Bearer $API_KEY" in ran.out
    assert "very-secret-value" not in ran.out + ran.err


async def test_check_v_says_where_each_setting_comes_from(project):
    """Flag, variable, line of the file, default: each setting says which; versions and the word on SQLite's WAL too."""
    project.write(some_rows(2))
    project.env["ROWCALL_RATE"] = "500/min"
    ran = await project.run("check", "-v", "-c", "3")
    assert ran.code == 0
    assert "pace.concurrency = 3   (--concurrency)" in ran.out
    assert 'pace.requests = "500/min"   (ROWCALL_RATE)' in ran.out
    assert 'input.path = "in.csv"   (config.toml:4)' in ran.out
    assert "store.lease = 60.0   (default)" in ran.out
    assert "SQLite" in ran.out
    assert "aiohttp " in ran.out


async def test_probe_makes_one_call(project):
    """``--probe`` makes exactly one call and shows its answer; a refused key is shown as that, exit 2."""
    project.write(some_rows(5))
    ran = await project.run("check", "--probe")
    assert ran.code == 0
    assert len(project.api.calls) == 1
    assert "probe: HTTP 200" in ran.out
    assert "positive" in ran.out
    project.api.poison = {"sentence number 0 is good"}
    ran = await project.run("check", "--probe")
    assert ran.code == 2
    assert len(project.api.calls) == 2
    assert "probe: failed" in ran.out
    assert "http_500" in ran.out
    assert not (project.folder / "t.db").exists()


@pytest.mark.parametrize(
    ("store", "says"),
    [
        ('"postgresql://u:s3cret@127.0.0.1:9/jobs"', "127.0.0.1:9/jobs: nothing listens there"),
        ('{ env = "NOT_SET" }', "store.path needs the variable NOT_SET"),
        ('"in.csv"', "in.csv: "),
    ],
)
async def test_a_store_that_cannot_be_reached_is_found(project, store, says):
    """A run would end at its store before anything is called, so check says it; the rest is shown all the same."""
    project.write(some_rows(2))
    project.config((project.folder / "config.toml").read_text() + f"[store]\npath = {store}\n")
    ran = await project.run("check")
    assert ran.code == 2
    assert "2 records, all keys unique" in ran.out
    assert says in ran.err
    assert "s3cret" not in ran.out + ran.err


async def test_a_probe_that_reaches_nobody_says_what_to_look_at(project):
    """Where nobody listens, the advice is about network and URL; nothing is stored that could be retried."""
    project.write(some_rows(1))
    project.replace(project.api.url, "http://127.0.0.1:9")
    ran = await project.run("check", "--probe")
    assert ran.code == 2
    assert "\n  No server answers there. Check the network" in ran.out
    assert "retry" not in ran.out


async def test_a_changed_request_is_told_before_a_run_asks(finished):
    """Once the prompt differs from that of done records, check and preview say that a run would stop for it."""
    for verb in ("check", "preview"):
        assert "has changed" not in (await finished.run(verb)).out
    (finished.folder / "prompt.md").write_text("Another question.\n")
    for verb in ("check", "preview"):
        ran = await finished.run(verb)
        assert ran.code == 0
        assert "the request has changed since 10 records were done: add --if-changed" in ran.out


async def test_a_variable_that_cannot_be_used_is_named(project):
    """A flag that was set by its variable is blamed by the variable's name, exit 2."""
    project.write(some_rows(1))
    project.env["ROWCALL_CONCURRENCY"] = "abc"
    ran = await project.run("check")
    assert ran.code == 2
    assert "Invalid value for ROWCALL_CONCURRENCY: 'abc'" in ran.err


async def test_probe_is_not_made_where_something_is_wrong(project):
    """With a problem in the input nothing is sent."""
    rows = some_rows(3)
    rows[2][0] = "k1"
    project.write(rows)
    assert (await project.run("check", "--probe")).code == 2
    assert not project.api.calls


async def test_check_shows_a_limited_number_of_problems(project):
    """A file with a problem in each row shows the first hundred, and how many more there are."""
    rows = some_rows(300)
    for row in rows:
        row[0] = ""
    project.write(rows)
    ran = await project.run("check")
    assert ran.code == 2
    assert "... and 200 more problems" in ran.out
    assert ran.out.splitlines()[-1] == "300 records, 300 without a key, 300 valid requests, 300 problems"


@pytest.mark.slow
def test_check_keeps_memory_flat(tmp_path):
    """Sixty thousand more rows of keys and problems cost no memory to speak of."""
    small, large = (_peak(tmp_path / str(rows), rows) for rows in (2_000, 60_000))
    assert large - small < 12 * 2**20


def _peak(folder, rows):
    folder.mkdir()
    (folder / "config.toml").write_text(
        '[input]\npath = "in.csv"\nkey = "id"\n[api]\npreset = "http"\nbase_url = "http://127.0.0.1:9"\n'
        '[request]\npath = "/{{ row.id }}"\n'
    )
    with (folder / "in.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text"])
        writer.writerows([f"key-{n % (rows - rows // 10)}", f"some text {n} " * 5] for n in range(rows))
    script = (
        "import resource, sys; from pathlib import Path; from rowcall.config import load\n"
        "from rowcall.cli.setup.check_findings import find_problems\n"
        "found = find_problems(load(Path(sys.argv[1])))\n"
        "print(found.clashes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, folder / "config.toml"], check=True, capture_output=True, text=True
    )
    clashes, peak = map(int, ran.stdout.split())
    assert clashes == rows // 10
    return peak * (1 if sys.platform == "darwin" else 1024)
