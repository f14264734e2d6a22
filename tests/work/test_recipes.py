"""Config and handler travel with the records, and no secret does."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
from workkit import until

from rowcall.calls.handlers.imported_files import companions
from rowcall.config import load
from rowcall.config.toml_text import as_toml
from rowcall.model.errors import RowcallError
from rowcall.run.recipe import Recipe, recipe_of

HANDLER = """
name = "t"
[input]
path = "in.csv"
key = "id"
[api]
preset = "openai"
base_url = "{url}"
api_key = {{ env = "THE_KEY" }}
[handler]
path = "tasks.py:label"
"""
TASKS = """
import helpers

async def label(row, call):
    judged = (await call.get("/sentiment", params={"text": row["text"]})).json()
    return {"label": helpers.shout(judged["label"])}
"""
SECRET = "sk-proj-0123456789abcdefghij"


@pytest.fixture
def handled(project):
    """A project with a handler, a module beside it, and a key."""
    project.config(HANDLER.format(url=project.api.url))
    (project.folder / "tasks.py").write_text(TASKS)
    (project.folder / "helpers.py").write_text("def shout(text):\n    return text.upper()\n")
    project.env["THE_KEY"] = SECRET
    return project


def recipe(project, **options):
    return recipe_of(load(project.folder / "config.toml"), **({"attaches": False} | options))


def kept(project):
    return Recipe.of(json.loads(project.sql("SELECT recipe FROM recipes")[0][0]))


async def away(project, tmp_path_factory, *args):
    """``rowcall work --store`` in a folder that holds nothing, as another machine would that trusts the store."""
    store, project.folder = project.folder / "t.db", tmp_path_factory.mktemp("elsewhere")
    try:
        return await project.work("--store", str(store), "--trust-store", *args)
    finally:
        project.folder = store.parent


async def test_a_worker_without_a_config_takes_it_from_the_store(project, tmp_path_factory):
    """Where only the store is at hand a worker sends the same requests; its settings are those of the enqueue."""
    await project.run("enqueue", "--set", "request.body.model=other")
    ran = await away(project, tmp_path_factory, "--name", "t", "-c", "2")
    assert ran.code == 0, ran.err
    assert "(2 at a time)" in ran.err
    assert project.statuses() == {"done": 40}
    bodies = [json.loads(call.body) for call in project.api.calls]
    assert {body["model"] for body in bodies} == {"other"}
    assert {body["messages"][0]["content"] for body in bodies} == {"Judge the sentence.\n"}


async def test_a_handler_travels_with_the_modules_beside_it(handled, tmp_path_factory):
    """A handler's code is run from the store; the key comes from where the worker is, and is nowhere in the store."""
    await handled.run("enqueue")
    ran = await away(handled, tmp_path_factory)
    assert ran.code == 0, ran.err
    assert handled.sql("SELECT DISTINCT answer FROM records") == [('{"label":"POSITIVE"}',)]
    assert {call.headers["authorization"] for call in handled.api.calls} == {f"Bearer {SECRET}"}
    assert SECRET.encode() not in (handled.folder / "t.db").read_bytes()


def test_what_is_written_out_is_the_same_recipe(project, tmp_path):
    """The files of a recipe, loaded as any config, make the very same recipe, whatever the config says."""
    project.replace(
        'parse = "json"', 'parse = "json"\nschema = { file = "s/a.json" }\nassert = ["length(label) > `0`"]'
    )
    (project.folder / "s").mkdir()
    (project.folder / "s/a.json").write_text('{"type": "object"}')
    made = recipe(project)
    assert set(made.files) == {"config.toml", "prompt.md", "s/a.json"}
    folder = tmp_path / "away"
    folder.mkdir()
    config = load(made.write(folder))
    assert recipe_of(config, attaches=False) == made
    assert config.name == "t"
    assert (config.output.path, config.store.path) == (None, "t.db")


async def test_the_next_command_names_the_store_where_the_environment_does_not(project, tmp_path_factory):
    """Beside ``--store`` the command that goes on has it; where ``ROWCALL_STORE`` says it, that says it again."""
    await project.run("enqueue")
    store = str(project.folder / "t.db")
    project.folder = tmp_path_factory.mktemp("elsewhere")
    ran = await project.work("--store", store, "-n", "2")
    assert ran.err.endswith(f"Resume with: rowcall work --store {store} --name t\n")
    project.env["ROWCALL_STORE"] = store
    ran = await project.work("-n", "2")
    assert ran.err.endswith("Resume with: rowcall work --name t\n")


async def test_a_worker_without_its_key_is_told_where_it_belongs(handled, tmp_path_factory):
    """A key that is missing belongs into ``.env`` of the worker's folder, not beside a config that it does not have."""
    await handled.run("enqueue")
    del handled.env["THE_KEY"]
    ran = await away(handled, tmp_path_factory)
    assert ran.code == 2
    assert re.search(r"rowcall: the config stored in /.*/t\.db: api\.api_key needs the variable THE_KEY", ran.err)
    assert re.search(r"add it to /.*/elsewhere\d+/.env\n", ran.err)


@pytest.mark.parametrize("schema", ['{ file = "label.json" }', '{ type = "object" }'])
async def test_a_schema_is_the_same_for_who_brings_in_and_who_calls(project, schema):
    """The config of an enqueue fits the work that follows it, wherever the schema stands; another schema does not."""
    (project.folder / "label.json").write_text('{"type": "object"}')
    project.replace('parse = "json"', f'parse = "json"\nschema = {schema}')
    await project.run("enqueue")
    assert (await project.work_off()).done == 40
    await project.run("enqueue", "--retry-failed")
    project.replace(schema, '{ type = "array" }')
    with pytest.raises(RowcallError, match=r"enqueued with: .*\[response\]"):
        await project.work_off()


@pytest.mark.parametrize("name", ["../x.py", "/tmp/x.py", "~/x.py"])
def test_no_file_of_a_recipe_leaves_its_folder(tmp_path, name):
    """A name that leads elsewhere is refused, whoever wrote it."""
    with pytest.raises(ValueError, match="out of the folder"):
        Recipe({}, {name: "x"}).write(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (
            'model = "m"',
            'model = "m"\napi_key = "0123456789ab"',
            "config.toml:12: request.body.api_key looks like a key",
        ),
        ('model = "m"', f'model = "{SECRET}"', "config.toml:11: request.body.model looks like a key"),
        ('timeout = "5s"', 'headers = { X-Token = "0123456789" }', "api.headers.X-Token looks like a key"),
        ('timeout = "5s"', 'api_key = { file = "key.txt" }', "config.toml:9 names a file of this machine"),
        ('/v1"', '/v1?api-version=2&subscription-key=0123456789ab"', "api.base_url looks like a key"),
        ('timeout = "5s"', 'ca_file = "ca.pem"', "config.toml:9 names a file of this machine"),
        ('"prompt.md"', '"../prompt.md"', "../prompt.md is not beside config.toml"),
    ],
)
def test_what_may_not_travel_is_withheld(project, old, new, says):
    """A key that is written out, or a file of this machine, keeps the whole at home, with the place that says why."""
    project.replace(old, new)
    (project.folder.parent / "prompt.md").write_text("Judge.")
    made = recipe(project)
    assert says in made.withheld
    assert not made.files
    assert made.prints["[request]"]


def test_a_key_in_a_prompt_or_a_handler_is_found(project, handled):
    """Files that travel are looked through too; so is what records would attach."""
    (project.folder / "helpers.py").write_text(f'x = 1\nKEY = "{SECRET}"\n')
    assert "helpers.py:2 looks like a key" in recipe(project).withheld
    assert "name files to attach" in recipe(project, attaches=True).withheld


def test_absolute_files_of_secrets_and_templates_may_travel(project):
    """What each machine has in its own place, a template, and a comment withhold nothing; the comment stays at home."""
    project.replace('timeout = "5s"', 'api_key = { file = "/run/secrets/key" }\nheaders = { X-Token = "{{ row.id }}" }')
    project.replace('name = "t"', f'name = "t"  # {SECRET}')
    made = recipe(project)
    assert (made.withheld, set(made.files)) == ("", {"config.toml", "prompt.md"})
    assert SECRET not in str(made.to_keep())


async def test_what_is_withheld_is_said_to_both(project):
    """The enqueue says why workers need the config; a worker without it is told so, and one with it works."""
    project.replace('model = "m"', 'model = "m"\napi_key = "0123456789ab"')
    ran = await project.run("enqueue")
    assert (
        "The config could not be stored for workers, who need a copy of it: "
        "config.toml:12: request.body.api_key looks like a key" in ran.err
    )
    assert "0123456789ab" not in str(project.sql("SELECT * FROM recipes"))
    ran = await project.run("work", "--store", "t.db")
    assert ran.code == 2
    assert "request.body.api_key looks like a key that is written out" in ran.err
    _, working = project.worker()
    assert (await working).done == 40


@pytest.mark.parametrize(
    ("file", "old", "new", "named"),
    [
        (
            "config.toml",
            'path = "tasks.py:label"',
            'path = "tasks.py:label"\nversion = "2"',
            r"\[request\], \[handler\]",
        ),
        ("helpers.py", "upper", "lower", r"helpers.py\n"),
        ("config.toml", "[handler]", "[retry]\nattempts = 9\n[handler]", r"\[retry\]\n"),
    ],
)
async def test_a_worker_with_another_version_is_refused(handled, monkeypatch, file, old, new, named):
    """A worker whose request, handler or config differs does not begin, and names what differs."""
    monkeypatch.setenv("THE_KEY", SECRET)
    await handled.run("enqueue")
    path = handled.folder / file
    path.write_text(path.read_text().replace(old, new))
    _, working = handled.worker()
    with pytest.raises(RowcallError, match=f"differs from the config its records were enqueued with: {named}"):
        await working
    assert not handled.api.calls


async def test_how_fast_a_worker_goes_is_its_own(handled, monkeypatch):
    """Pace, stops and the place of the store may differ from worker to worker."""
    monkeypatch.setenv("THE_KEY", SECRET)
    await handled.run("enqueue")
    _, working = handled.worker(**{"pace.concurrency": 3, "stop.grace": "1s", "api.timeout": "9s"})
    assert (await working).done == 40


async def test_no_records_come_that_workers_would_call_in_another_way(handled, monkeypatch):
    """While workers are at work, an enqueue of another version is refused, names what differs, and changes nothing."""
    monkeypatch.setenv("THE_KEY", SECRET)
    await handled.run("enqueue")
    before = kept(handled)
    worker, working = handled.worker(wait=True)
    await until(lambda: worker.tally.done == 40)
    (handled.folder / "helpers.py").write_text("def shout(text):\n    return text.lower()\n")
    ran = await handled.run("enqueue")
    assert ran.code == 2
    assert "live workers were started with another config; it differs in: helpers.py" in ran.err
    assert kept(handled) == before
    worker.stop("interrupted")
    await working
    assert (await handled.run("enqueue")).code == 0
    assert kept(handled) != before


def test_companions_are_what_a_handler_imports_from_beside_it(tmp_path):
    """Modules and packages beside the handler are found, through each other, also where they are imported late."""
    for name, text in {
        "tasks.py": "import os, one\ndef f(row, call):\n    from pack.inner import x\n",
        "one.py": "import two, tasks",
        "two.py": "import json.decoder",
        "pack/__init__.py": "",
        "pack/inner.py": "from . import other",
        "pack/other.py": "import three",
        "three.py": "",
        "json.txt": "",
        "unused.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = [path.relative_to(tmp_path).as_posix() for path in companions(tmp_path / "tasks.py")]
    assert found[0] == "tasks.py"
    assert set(found) == {
        "tasks.py",
        "one.py",
        "two.py",
        "pack/__init__.py",
        "pack/inner.py",
        "pack/other.py",
        "three.py",
    }


def test_settings_survive_as_toml():
    """Whatever a config can say is the same after it was written out and read again."""
    settings = {
        "name": 'quote " back \\ line \n tab \t bell \x07 del \x7f ü 😀',
        "input": {"path": "a", "header": ["x", 'y"']},
        "request": {"body": {"a b": [1, -2, 3.5, 1e30, True, False, {"x.y": {}}], "deep": {"er": [[], [{}]]}}},
        "odd name": {"": "empty"},
    }
    assert tomllib.loads(as_toml(settings)) == settings
