"""Where a store is: a file or a URL, in the config, in a variable, and in what people see."""

from __future__ import annotations

import json

import pytest

from rowcall.config import load
from rowcall.model.errors import ConfigError
from rowcall.model.store_location import StoreLocation

CONFIG = """
name = "t"
[input]
path = "in.csv"
[api]
preset = "http"
base_url = "http://localhost"
[store]
path = {store}
"""


@pytest.fixture
def loaded(tmp_path):
    def loaded(store, **options):
        (tmp_path / "config.toml").write_text(CONFIG.format(store=store))
        return load(tmp_path / "config.toml", **options)

    return loaded


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:s3cret@db:5433/jobs", "postgresql://u@db:5433/jobs"),
        ("postgres://u@db/jobs", "postgresql://u@db/jobs"),
        ("POSTGRESQL://db", "postgresql://db"),
        ("postgresql:///jobs?host=/run/pg&password=s3cret", "postgresql:///jobs?host=%2Frun%2Fpg"),
        ("postgresql://u:s3c%40ret@a:1,b:2/jobs", "postgresql://u@a:1,b:2/jobs"),
        ("postgresql://u:s3?c#ret@db/jobs?sslpassword=s3cret&sslmode=require", "postgresql://u@db/jobs"),
        ("postgresql://?service=jobs", "postgresql://?service=jobs"),
    ],
)
def test_a_place_shows_where_it_is_and_no_secret(url, shown):
    """The text of a URL has neither its password nor parameters that may be secret, however the password is written."""
    place = StoreLocation.of(url)
    assert str(place) == shown
    assert place.url == url
    assert "s3" not in repr(place)


@pytest.mark.parametrize(
    "written",
    [
        "mysql://u:s3cret@db/jobs",
        "postgresql://u:s3/cret@db/jobs",
        "postgresql://u:s3@s3cret@db/jobs",  # libpq would take what follows the first @ for a host, and name it
        "sqlite:///x.db",
        "postgresql://a b/c",
    ],
)
def test_what_is_no_place_is_refused_without_repeating_it(written):
    """Another scheme, or a password whose slash or @ is not escaped, is refused; the words repeat nothing of it."""
    with pytest.raises(ValueError, match="must be a file, or a URL") as caught:
        StoreLocation.of(written)
    assert "s3" not in str(caught.value)


def test_a_file_is_relative_to_the_config(loaded, tmp_path):
    """A path in the config stands beside it, wherever the command is started."""
    assert loaded('"sub/t.db"').store_location == StoreLocation(tmp_path / "sub/t.db")


def test_a_url_with_a_password_is_hidden_in_the_settings(loaded):
    """What a run writes about its settings, and the config's own text, never hold the password."""
    config = loaded('"postgresql://u:s3cret@db/jobs"')
    assert config.store_location.url == "postgresql://u:s3cret@db/jobs"
    assert "s3cret" not in json.dumps(config.settings()) + repr(config)
    assert config.settings()["store"]["path"] == "<secret postgresql://u@db/jobs>"


@pytest.mark.parametrize("kind", ["env", "file"])
def test_a_url_comes_from_a_variable_or_a_file(loaded, monkeypatch, tmp_path, kind):
    """``{ env }`` and ``{ file }`` in the place of the path hold the whole URL, as keys do."""
    url = "postgresql://u:s3cret@db/jobs"
    monkeypatch.setenv("DB", url)
    (tmp_path / "DB").write_text(f"{url}\n")
    config = loaded(f'{{ {kind} = "DB" }}')
    assert config.store_location == StoreLocation.of(url)
    assert "s3cret" not in json.dumps(config.settings())


def test_the_variable_is_looked_up_in_the_env_file_too(loaded, tmp_path):
    """``.env`` beside the config serves the store as it serves a key."""
    (tmp_path / ".env").write_text("DB=postgresql://u@db/jobs\n")
    assert loaded('{ env = "DB" }').store_location.url == "postgresql://u@db/jobs"


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (None, "store.path needs the variable DB, which is not set"),
        ("mysql://u:s3cret@db", "store.path must be a file, or a URL"),
    ],
)
def test_a_variable_that_holds_no_place_names_its_line(loaded, monkeypatch, tmp_path, value, says):
    """A variable that is missing or means nothing is said with the line of the config, and never repeated."""
    if value:
        monkeypatch.setenv("DB", value)
    config = loaded('{ env = "DB" }')
    with pytest.raises(ConfigError) as caught:
        _ = config.store_location
    assert f"config.toml:9: {says}" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("store", ['"mysql://u:s3cret@db/j"', '{ command = "s3cret" }', "8", "['s3cret']"])
def test_a_wrong_place_is_a_fault_of_the_config(loaded, store):
    """What is neither file, URL nor reference is refused at the start, and never repeated."""
    with pytest.raises(ConfigError, match=r"config.toml:9: store.path must be a file") as caught:
        loaded(store)
    assert "s3cret" not in str(caught.value)


def test_a_store_is_at_its_own_file_alone(tmp_path, monkeypatch):
    """The output may not be the store, by whatever name; a store on a server is no file."""
    monkeypatch.chdir(tmp_path)
    assert StoreLocation.of("t.db").is_at(tmp_path / "x" / ".." / "t.db")
    assert not StoreLocation.of("t.db").is_at(tmp_path / "u.db")
    assert not StoreLocation.of("postgresql://db/t.db").is_at(tmp_path / "t.db")


def test_a_home_that_nobody_has_is_no_place(loaded):
    """``~nobody`` is a fault of the config, not of rowcall."""
    with pytest.raises(ConfigError, match=r"store.path must be a file; the home folder that ~ stands for"):
        loaded('"~nobody-at-all/t.db"')
