"""Files that go along with a request: found, read, left out, refused."""

import base64
import json
import os
import threading
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from presetkit import CHAT
from providerkit import make_provider

from rowcall.calls.requests import CallResources, RequestCaller
from rowcall.model.errors import AttachmentError, ConfigError, TemplateError
from rowcall.model.job import Job, Status
from rowcall.providers import CallContext
from rowcall.sources.keys import input_hash

PLAIN = CallContext("k")
CAT, DOG = b"\x89PNG cat", b"\xff\xd8 dog"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "cat.png").write_bytes(CAT)
    (tmp_path / "images" / "dog.jpg").write_bytes(DOG)
    (tmp_path / ".env").write_text("KEY=sk-1")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a[1].txt").write_text("one é")
    return tmp_path


def provider(folder, body, **keys):
    return make_provider("http", base_url="https://h", body=body, folder=folder, **{"attachments": folder} | keys)


def sent(folder, body, call=PLAIN, **row):
    return json.loads(provider(folder, body).build(row, call).content)


def encoded(content):
    return base64.b64encode(content).decode()


IMAGE = {"attach": "{{ row.image }}"}
ALL = {"attach": "images/*"}


@pytest.mark.parametrize(
    ("form", "image", "value"),
    [
        (None, "images/cat.png", f"data:image/png;base64,{encoded(CAT)}"),
        ("data-url", "images/dog.jpg", f"data:image/jpeg;base64,{encoded(DOG)}"),
        ("base64", "images/cat.png", encoded(CAT)),
        ("media-type", "images/cat.png", "image/png"),
        ("name", "./images/cat.png", "cat.png"),
        ("text", "a[1].txt", "one é"),
        ("data-url", "a[1].txt", f"data:text/plain;base64,{encoded('one é'.encode())}"),
    ],
)
def test_a_file_stands_in_its_form(folder, form, image, value):
    """A file goes out as a data URL, or as what ``as`` says; a name with brackets in it is a name."""
    body = {"x": {**IMAGE, "as": form} if form else IMAGE, "y": "{{ row.image }}"}
    assert sent(folder, body, image=image) == {"x": value, "y": image}


def parts(file):
    """A list whose second item has one file in two forms."""
    source = {"media": {**file, "as": "media-type"}, "data": {**file, "as": "base64"}}
    return [{"type": "text", "text": "{{ row.text }}"}, {"source": source}]


def test_a_pattern_repeats_the_item_around_it(folder):
    """A list's item comes once for each file, in the order of names, with both of its forms from the same file."""
    found = sent(folder, {"content": parts({"attach": "{{ row.at }}/*"})}, at="images", text="what?")["content"]
    cat, dog = ("image/png", encoded(CAT)), ("image/jpeg", encoded(DOG))
    assert found == [
        {"type": "text", "text": "what?"},
        *({"source": {"media": media, "data": data}} for media, data in (cat, dog)),
    ]


def test_a_record_without_a_file(folder):
    """An empty path leaves the item out; where no list stands around it there is nothing to leave out."""
    assert sent(folder, {"content": parts(IMAGE)}, image="", text="what?")["content"] == [
        {"type": "text", "text": "what?"}
    ]
    with pytest.raises(AttachmentError, match="matches 0 files, but exactly one is needed"):
        sent(folder, {"x": IMAGE}, image=" ")


def test_several_files_for_one_place(folder):
    """A pattern that matches two files where one can stand is refused."""
    with pytest.raises(AttachmentError, match=r"'images/\*' matches 2 files, but exactly one is needed"):
        sent(folder, {"x": ALL})


def test_patterns_of_one_item_match_alike(folder):
    """Two patterns in one item that match different numbers of files fit no pairs."""
    item = {"a": ALL, "b": IMAGE}
    with pytest.raises(AttachmentError, match="match different numbers of files"):
        sent(folder, [item], image="images/cat.png")
    [pair] = sent(folder, [{**item, "a": {"attach": "images/*.png"}}], image="images/dog.jpg")
    assert pair["a"].endswith(encoded(CAT))
    assert pair["b"].endswith(encoded(DOG))


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("images/cow.png", "'images/cow.png' cannot be read: No such file"),
        ("images", "'images' cannot be read: it is not a regular file"),
        ("pipe", "'pipe' cannot be read: it is not a regular file"),
        ("images/*", r"'images/\*' cannot be read: No such file"),
        ("images/c?t.png", "cannot be read: No such file"),
        ("images/cat.png\0", "cannot be read: embedded null"),
        ("../secret", "outside the folder"),
        ("/etc/passwd", "outside the folder"),
        ("images/../../x", "outside the folder"),
        ("~/.ssh/id_rsa", "outside the folder"),
        (".env", "is a hidden file"),
        (".", "is a hidden file"),
    ],
)
def test_what_is_not_attached(folder, image, message):
    """A file that is not there, and one that no record may name, is refused with the place and the path."""
    with pytest.raises(AttachmentError, match=message) as refused:
        sent(folder, {"x": [IMAGE]}, image=image)
    assert "request.body.x[0]" in refused.value.message


# No input gives a lone surrogate: sources refuse it.
NASTY = st.text(st.sampled_from("ac.*?[]/~\0- ") | st.characters(codec="utf-8"), max_size=20) | st.just("x" * 5000)


@given(image=NASTY | NASTY.map("images/{}".format) | st.integers(-9, 9) | st.none() | st.lists(NASTY))
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_a_record_names(folder, image):
    """Any value gives a request or a clear refusal, and no secret of the folder goes out; its print is always made."""
    made = provider(folder, {"x": [{**IMAGE, "as": "text"}]})
    assert input_hash({"image": image}, made.columns, made.files)
    with suppress(TemplateError):
        assert b"sk-1" not in made.build({"image": image}, PLAIN).content


def test_hidden_files_match_no_pattern(folder):
    """A star does not mean the file with the keys."""
    (folder / "images" / ".key").write_text("secret")
    assert len(sent(folder, [ALL])) == 2
    assert "KEY" not in json.dumps(sent(folder, [{"attach": "*", "as": "text"}]))


def test_the_folder_that_a_template_names(folder):
    """What stands before the first placeholder is the folder that a record cannot leave; it may be anywhere."""
    body = {"x": {"attach": f"{folder}/images/{{{{ row.image }}}}", "as": "base64"}}
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    assert sent(elsewhere, body, image="cat.png")["x"] == encoded(CAT)
    with pytest.raises(AttachmentError, match="outside the folder"):
        sent(elsewhere, body, image="../a[1].txt")


def test_a_path_below_home(folder, monkeypatch):
    """A tilde at the beginning is the home folder where the config has it, and a name where a record has it."""
    monkeypatch.setenv("HOME", str(folder / "images"))
    body = {"x": {"attach": "~/{{ row.image }}", "as": "base64"}}
    assert sent(folder, body, image="cat.png")["x"] == encoded(CAT)
    with pytest.raises(AttachmentError, match="No such file"):
        sent(folder, {"x": IMAGE}, image="~/cat.png")


def test_a_path_that_is_written_out(folder):
    """The config itself may name any file."""
    body = {"x": {"attach": str(folder / ".env"), "as": "text"}}
    assert sent(folder / "images", body)["x"] == "KEY=sk-1"


def test_size_limit(folder):
    """A file above the limit is refused with both sizes; one that meets it goes."""
    with pytest.raises(AttachmentError, match=r"cat\.png has 8 bytes; \[request\] max_attachment is 7"):
        provider(folder, {"x": IMAGE}, max_attachment=7).build({"image": "images/cat.png"}, CallContext("k"))
    assert provider(folder, {"x": IMAGE}, max_attachment=8).build({"image": "images/cat.png"}, CallContext("k"))


def test_a_form_that_is_none(folder):
    """An unknown form is refused at the start."""
    with pytest.raises(ConfigError, match=r"request\.body\.x\.as: must be one of data-url, base64"):
        provider(folder, {"x": {**IMAGE, "as": "hex"}})
    with pytest.raises(ConfigError, match="must be one of"):
        provider(folder, {"x": {**IMAGE, "as": ["text"]}})


def test_data_attaches_nothing(folder):
    """A value of a record that looks like an attachment is a value, and other keys beside it make a plain table."""
    assert sent(folder, {"x": "{{ row.image }}"}, image={"attach": ".env"})["x"] == {"attach": ".env"}
    assert sent(folder, {"x": {"attach": "a", "to": "b"}})["x"] == {"attach": "a", "to": "b"}


def test_a_guess_reads_nothing(folder):
    """A bare call has empty texts for the files, also for those that are not there."""
    bare = CallContext("k", bare=True)
    assert sent(folder, {"x": IMAGE, "y": [IMAGE]}, bare, image="nowhere.png") == {"x": "", "y": [""]}


def test_columns_and_prints(folder):
    """The path's columns are used ones, and path, size and time of change make another hash."""
    made = provider(folder, {"x": [IMAGE]})
    assert made.columns == {"image"}
    assert provider(folder, {"x": "{{ row.image }}"}).files is None
    row, path = {"image": "images/cat.png"}, folder / "images" / "cat.png"

    def hashed():
        return input_hash(row, made.columns, made.files)

    before = hashed()
    assert hashed() == before
    path.write_bytes(CAT + b"!")
    longer = hashed()
    os.utime(path, ns=(0, 0))
    older = hashed()
    path.unlink()
    assert len({before, longer, older, hashed()}) == 4


async def test_files_are_read_in_a_thread():
    """Where files are attached a request is built beside the event loop, which goes on meanwhile."""

    class Provider:
        files = list

        def build(self, data, call):
            raise TemplateError(f"built by {threading.get_ident()}")

    wire = CallResources(None, None, lambda job: "k", lambda event: None)
    failure = await RequestCaller(Provider(), wire).call(Job(1, "k", 1, 0, 0, (), True, 1, "h", {}), None)
    assert failure.message.startswith("built by ")
    assert failure.message != f"built by {threading.get_ident()}"


ATTACHED = CHAT.replace(
    'content = "{{ row.text }}"',
    'content = [{ type = "text", text = "good" }, { type = "image_url", '
    'image_url = { url = { attach = "images/{{ row.text }}" } } }]',
)


async def test_a_run_with_files(batch, api, folder):
    """Each record sends its own file; one whose file is missing fails alone, and nothing is sent for it."""
    batch.folder = folder
    report = await batch.run(["cat.png", "cow.png", "dog.jpg"], request=ATTACHED)
    assert (report.counts.of(Status.DONE), report.counts.of(Status.FAILED)) == (2, 1)
    urls = sorted(call.json()["messages"][0]["content"][1]["image_url"]["url"] for call in api.calls)
    assert urls == [f"data:image/jpeg;base64,{encoded(DOG)}", f"data:image/png;base64,{encoded(CAT)}"]
    [(reason, message)] = batch.sql("SELECT reason, error FROM jobs WHERE status = 'failed'")
    assert reason == "attachment"
    assert "'images/cow.png' cannot be read: No such file or directory" in message
    assert encoded(CAT) not in "".join(batch.sql("SELECT group_concat(record) FROM payloads")[0])


async def test_a_changed_file_is_called_for_again(batch, api, folder):
    """Nothing is called again until a file has changed, and then its record alone."""
    batch.folder = folder
    for calls in (2, 2):
        await batch.run(["cat.png", "dog.jpg"], request=ATTACHED)
        assert len(api.calls) == calls
    (folder / "images" / "dog.jpg").write_bytes(DOG + b"!")
    await batch.run(["cat.png", "dog.jpg"], request=ATTACHED)
    assert len(api.calls) == 3
    assert encoded(DOG + b"!") in api.calls[-1].body.decode()
