"""``--store``: a file or a URL, for every verb that finds the store by it."""

from __future__ import annotations

import asyncio
import sys

import pytest
from project import some_rows

import rowcall
from rowcall.model.errors import ConfigError


@pytest.mark.parametrize("verb", ["status", "errors", "retry x", "cancel x", "set pause=true", "report", "backup"])
async def test_a_url_of_another_server_is_refused_and_not_repeated(project, verb):
    """A ``--store`` that is no place is a usage error that names the flag and never repeats what may be secret."""
    ran = await project.run(*verb.split(), "--store", "mysql://u:s3cret@db/jobs")
    assert ran.code == 2
    assert "--store" in ran.err
    assert "must be a file, or a URL such as postgresql://user@host/database" in ran.err
    assert "s3cret" not in ran.err


async def test_a_file_is_named_as_it_was_typed(project):
    """A store that is not there is named as the person named it."""
    ran = await project.run("status", "--store", "sub/none.db")
    assert ran.code == 2
    assert "rowcall: sub/none.db: there is no store yet" in ran.err


async def test_the_environment_names_the_store_too(finished):
    """``ROWCALL_STORE`` is the flag's variable."""
    finished.env["ROWCALL_STORE"] = "t.db"
    (finished.folder / "config.toml").unlink()
    assert "10 records: 10 done" in (await finished.run("status")).out


async def test_a_config_that_is_named_goes_before_the_variable(finished):
    """A config may take the store from ``ROWCALL_STORE`` itself; named, it says which batch job is meant."""
    finished.env["ROWCALL_STORE"] = "t.db"
    text = (finished.folder / "config.toml").read_text() + '[store]\npath = { env = "ROWCALL_STORE" }\n'
    (finished.folder / "more.toml").write_text(text.replace('name = "t"', 'name = "more"'))
    assert (await finished.run("enqueue", "more.toml")).code == 0
    assert "name one of them with --name: more, t" in (await finished.run("status")).err
    assert "more: stopped (enqueued)" in (await finished.run("status", "--config", "more.toml")).out
    ran = await finished.process("work", "more.toml")
    assert ran.code == 0, ran.err
    assert "more: finished" in ran.err


async def test_the_config_may_take_the_place_from_a_variable(project):
    """A run and the verbs after it find the store by a variable."""
    project.write(some_rows(3))
    project.config((project.folder / "config.toml").read_text() + '[store]\npath = { env = "PLACE" }\n')
    project.env["PLACE"] = "other.db"
    assert (await project.run("run")).code == 0
    assert "3 records: 3 done" in (await project.run("status", "--store", "other.db")).out
    assert "3 records: 3 done" in (await project.run("status")).out
    ran = await project.run("export", "-o", "other.db")
    assert (ran.code, "other.db is the store" in ran.err) == (2, True)


def test_the_library_refuses_what_is_no_place():
    """``rowcall.open`` raises a ConfigError, as for every other value, and repeats no URL."""
    with pytest.raises(ConfigError, match=r"rowcall.open: store must be a file, or a URL") as caught:
        rowcall.open("mysql://u:s3cret@db/jobs")
    assert "s3cret" not in str(caught.value)


def test_a_job_in_a_database_is_called_after_it():
    """Without a name, a job has that of its file or its database; its repr shows no password."""
    job = rowcall.open("postgresql://u:s3cret@db/jobs", name=None)
    assert repr(job) == "<rowcall jobs in postgresql://u@db/jobs>"


async def test_a_missing_driver_is_named_with_what_installs_it(project):
    """Where the extra is not installed a URL says so, exit 2; a file needs none of it."""
    code = "import sys; sys.modules['psycopg'] = None; sys.argv[1:] = {}; import rowcall.cli; rowcall.cli.main()"
    args = ["status", "--store", "postgresql://u:s3cret@127.0.0.1/jobs"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code.format(args), stdout=-1, stderr=-1, cwd=project.folder
    )
    _, err = await process.communicate()
    assert process.returncode == 2
    assert "postgresql://u@127.0.0.1/jobs: the driver for PostgreSQL is not installed" in err.decode()
    assert "pip install 'rowcall[postgres]'" in err.decode()
    assert "s3cret" not in err.decode()
