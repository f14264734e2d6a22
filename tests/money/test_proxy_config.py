"""Proxies and authorities of a config, from the first word to the last."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from project import some_rows
from proxy_server import ProxyServer

from rowcall.cli.setup.check import check
from rowcall.config import load
from rowcall.model.errors import ConfigError
from rowcall.run.pipeline import Pipeline

BASIC = "Basic bWU6cHItc2VjcmV0"  # me:pr-secret


@pytest.fixture
async def proxy(till):
    async with ProxyServer(int(till.origin.rpartition(":")[2])) as proxy:
        yield proxy


@pytest.fixture
def project(project):
    """Its API has a name that only a proxy knows."""
    project.write(some_rows(5), concurrency=2)
    project.replace(project.api.url, "http://api.test/v1")
    return project


def said_by(project, *more):
    project.replace('timeout = "5s"', "\n".join(['timeout = "5s"', *more]))


async def test_the_environment_names_the_proxy(project, proxy, till, monkeypatch):
    """HTTP_PROXY is enough, in ``.env`` too; a run says nothing of its password."""
    (project.folder / ".env").write_text(f"HTTP_PROXY={proxy.url.replace('//', '//me:pr-secret@')}\n")
    proxy.wants = BASIC
    report = await project.go()
    assert report.done == 5
    assert {given for _, given in proxy.asked} == {BASIC}
    assert not [path for path in project.folder.glob("t.db*") if b"pr-secret" in path.read_bytes()]


async def test_a_reference_names_the_proxy(project, proxy, monkeypatch):
    """With its password, which no message shows, and which goes before the environment's."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("MY_PROXY", proxy.url.replace("//", "//me:pr-secret@"))
    said_by(project, 'proxy = { env = "MY_PROXY" }')
    proxy.wants = BASIC
    assert (await project.go()).done == 5


async def test_a_password_that_is_asked_for_stops_the_run(project, proxy):
    """One call, nothing charged, and the words say where the password goes."""
    said_by(project, f'proxy = "{proxy.url}"')
    proxy.wants = BASIC
    report = await project.go()
    assert (report.ending.reason, report.left, len(proxy.asked)) == ("proxy_auth", 5, 1)
    assert "HTTPS_PROXY" in project.said(report)


async def test_a_proxy_that_is_down_costs_nothing(project):
    """The run waits for it as for the API, and no record pays."""
    said_by(project, 'proxy = "http://127.0.0.1:9"')
    report = await project.go(stop__first_success=0.3)
    assert (report.ending.reason, report.left) == ("unreachable", 5)
    assert set(project.attempts().values()) == {0}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['proxy = "http://me:pr-secret@p:1"'], "api.proxy must not contain a user name or password"),
        (['proxy = "socks5://127.0.0.1:1080"'], "SOCKS proxies are not supported"),
        (['ca_file = "none.pem"'], "none.pem cannot be read"),
        (['client_key = "me.key"'], "api.client_key needs its certificate"),
    ],
)
async def test_what_cannot_be_used_is_said_at_the_start(project, lines, said):
    """With the line, before anything is sent, and never with a password."""
    said_by(project, *lines)
    with pytest.raises(ConfigError, match=said) as caught:
        await project.go()
    assert "config.toml:" in str(caught.value)
    assert "pr-secret" not in str(caught.value)


def test_check_says_where_the_proxy_comes_from(project, monkeypatch):
    """The variable's name, and the URL without its password."""
    monkeypatch.setenv("HTTP_PROXY", "http://me:pr-secret@127.0.0.1:9")
    ran = CliRunner().invoke(check, [str(project.folder / "config.toml"), "-v"])
    assert 'api.proxy = "http://127.0.0.1:9"   (HTTP_PROXY)' in ran.output
    assert "pr-secret" not in ran.output


def test_check_finds_what_cannot_be_used(project):
    """A file that is missing is found beforehand."""
    said_by(project, 'ca_file = "none.pem"')
    ran = CliRunner().invoke(check, [str(project.folder / "config.toml")])
    assert "none.pem cannot be read" in ran.output


async def test_the_fake_api_is_reached_directly(tmp_path, monkeypatch):
    """No proxy stands between a process and itself."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTPS_PROXY", "socks5://127.0.0.1:9")
    (tmp_path / "in.csv").write_text("id,text\n1,good\n")
    (tmp_path / "config.toml").write_text(
        '[input]\npath = "in.csv"\n[api]\npreset = "mock"\n[request.body]\nmodel = "m"\n'
        'messages = [{ role = "user", content = "{{ row.text }}" }]\n[store]\npath = "t.db"\n'
    )
    assert (await Pipeline(load(tmp_path / "config.toml")).run()).done == 1
