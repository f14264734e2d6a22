"""Which files a record can have sent: those beneath the folder that the config names, and no others."""

from __future__ import annotations

import json
import os

import pytest
from plainjob import plain_config

from rowcall.config import load
from rowcall.mock import MockAPI
from rowcall.model.errors import AttachmentError, ConfigError
from rowcall.model.job import Status
from rowcall.providers import CallContext
from rowcall.run.make_calls import provider_of
from rowcall.run.pipeline import Pipeline
from rowcall.system.open_beneath import open_beneath

CALL = CallContext("k")
CONFIG = plain_config("https://h.example/v1").replace('content = "{{ row.text }}"', "content = [{ text = ATTACHED }]")
TEMPLATE = '{ attach = "{{ row.text }}", as = "text" }'
IN_IMAGES = '{ attach = "images/{{ row.text }}", as = "text" }'


@pytest.fixture
def folder(tmp_path):
    """A job's folder with images, and with secrets in it and beside it."""
    job = tmp_path / "job"
    (job / "images" / "deep").mkdir(parents=True)
    (job / "images" / "cat.png").write_text("cat")
    (job / "images" / "deep" / "dog.png").write_text("dog")
    (tmp_path / "secret").write_text("SECRET")
    (job / "key.txt").write_text("SECRET")
    (job / ".env").write_text("KEY=SECRET")
    return job


def sender(folder, attached, more="", request=""):
    """Builds the text that is sent for a file's name."""
    text = CONFIG.replace("ATTACHED", attached).replace(
        "[request.body]", f"{more}\n[request]\n{request}\n[request.body]"
    )
    (folder / "config.toml").write_text(text)
    config = load(folder / "config.toml")
    provider = provider_of(config.masked(lambda reference: "SECRET-mark"))

    def send(name):
        body = json.loads(provider.build({"text": name}, CALL).content)
        return [part["text"] for part in body["messages"][0]["content"]]

    return send


def refusal(send, name):
    """Why a file is not sent."""
    with pytest.raises(AttachmentError) as refused:
        send(name)
    return refused.value.message


@pytest.mark.parametrize(
    "attached", [TEMPLATE, '{ attach = "img-{{ row.text }}.png" }', '{ attach = "{{ row.text }}/*" }']
)
def test_a_template_without_a_folder_is_refused(folder, attached):
    """A path that a record begins needs a folder from the config; the error says both ways to write it."""
    with pytest.raises(ConfigError) as refused:
        sender(folder, attached)
    text = str(refused.value)
    assert "begins with a value of the record" in text
    assert 'attachments = "images" below [request], or "images/{{ row.image }}"' in text


@pytest.mark.parametrize(
    ("attached", "request_keys"),
    [
        (TEMPLATE, 'attachments = "images"'),
        (IN_IMAGES, ""),
        ('{ attach = "./{{ row.text }}", as = "text" }', 'attachments = "images"'),
    ],
)
def test_files_of_the_folder_are_sent(folder, attached, request_keys):
    """Both ways to name the folder send what is in it and below it, and nothing that lies beside it."""
    send = sender(folder, attached, request=request_keys)
    assert (send("cat.png"), send("deep/dog.png"), send("deep/../cat.png")) == (["cat"], ["dog"], ["cat"])
    for name in ("../key.txt", "../../secret", "..", ".", "deep/../../key.txt", "../images2/x"):
        assert "outside the folder" in refusal(send, name)
    assert refusal(send, str(folder / "key.txt"))


def test_own_files_are_never_sent(folder):
    """Config, key files, certificates, .env and store stay here, by whatever name or hard link a record calls them."""
    more = 'client_cert = "cert.pem"\napi_key = { file = "key.txt" }\n[store]\npath = "jobs.db"'
    for name in ("cert.pem", "jobs.db", "jobs.db-wal", "jobs.db-turn"):
        (folder / name).write_text("SECRET")
    text = sender(folder, TEMPLATE, more, 'attachments = "."')
    os.link(folder / ".env", folder / "plain")
    (folder / "link").symlink_to("key.txt")
    for name in ("config.toml", "key.txt", "cert.pem", "jobs.db", "jobs.db-wal", "jobs.db-turn", "plain", "link"):
        assert "one of rowcall's own files" in refusal(text, name)
    assert text("images/cat.png") == ["cat"]
    (folder / "notes.png").write_text("notes")
    assert sender(folder, '{ attach = "*", as = "text" }', more)("x") == ["notes"]


def test_a_record_gives_no_pattern(folder):
    """Signs of a pattern in a record are part of a name, alone and inside a pattern of the config's own."""
    send = sender(folder, IN_IMAGES)
    for name in ("*", "c?t.png", "[c]at.png", "deep/*"):
        assert "No such file" in refusal(send, name)
    own = sender(folder, '{ attach = "images/{{ row.text }}*.png", as = "text" }')
    assert own("c") == ["cat"]
    assert own("deep/d") == ["dog"]
    for name in ("*", "?", "[c]", "deep/*"):
        assert "no file matches" in refusal(own, name)
    (folder / "images" / "*.png").write_text("star")
    assert (send("*.png"), own("*")) == (["star"], ["star"])


def test_links(folder):
    """A link that stays beneath the folder is followed; one that leads out, straight or by another, is not."""
    images = folder / "images"
    (images / "same.png").symlink_to("deep/../cat.png")
    (images / "below").symlink_to("deep")
    (images / "out.png").symlink_to("../../secret")
    (images / "absolute.png").symlink_to(folder / "key.txt")
    (images / "up").symlink_to("..")
    (images / "twice.png").symlink_to("out.png")
    (images / "loop.png").symlink_to("loop.png")
    send = sender(folder, IN_IMAGES)
    assert (send("same.png"), send("below/dog.png")) == (["cat"], ["dog"])
    for name in ("out.png", "absolute.png", "up/key.txt", "twice.png"):
        assert "a link leads out of the folder" in refusal(send, name)
    assert "Too many levels of symbolic links" in refusal(send, "loop.png")


def test_the_folder_itself_may_be_a_link(folder):
    """The config names the folder, so it may lead anywhere."""
    (folder / "elsewhere").symlink_to("images")
    assert sender(folder, TEMPLATE, request='attachments = "elsewhere"')("cat.png") == ["cat"]


def test_a_pipe_is_not_waited_for(folder):
    """A pipe that nobody writes to is refused at once."""
    os.mkfifo(folder / "images" / "pipe.png")
    assert "not a regular file" in refusal(sender(folder, IN_IMAGES), "pipe.png")


def test_open_beneath_ends_with_a_folder_or_nothing(tmp_path):
    """A path that ends with a step up opens no file, and a missing part is what is reported."""
    (tmp_path / "a").mkdir()
    with pytest.raises(IsADirectoryError):
        open_beneath(str(tmp_path), "a/..")
    with pytest.raises(FileNotFoundError):
        open_beneath(str(tmp_path), "b/c")


async def test_a_run_over_hostile_rows(folder):
    """In a run each hostile row fails alone with the reason attachment, and the others' files are sent."""
    names = ["cat.png", "../key.txt", "/etc/passwd", "*", "../jobs.db", "deep/dog.png"]
    async with MockAPI() as api:
        text = CONFIG.replace("https://h.example/v1", api.url).replace("ATTACHED", IN_IMAGES)
        (folder / "config.toml").write_text(text + '[store]\npath = "jobs.db"\n')
        (folder / "in.csv").write_text("id,text\n" + "".join(f"{n},{name}\n" for n, name in enumerate(names)))
        report = await Pipeline(load(folder / "config.toml")).run()
        sent = sorted(call.json()["messages"][0]["content"][0]["text"] for call in api.calls)
    assert sent == ["cat", "dog"]
    assert (report.counts.of(Status.DONE), report.counts.of(Status.FAILED)) == (2, 4)
