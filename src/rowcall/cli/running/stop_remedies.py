"""What to do about the failure that stopped a run, with the place in the config."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rowcall.cli.shared.hints import stop_hint
from rowcall.cli.shared.located_commands import Located
from rowcall.config import Config, KeyPath
from rowcall.engine.stop_reasons import Ending
from rowcall.progress import clean

_KEY: KeyPath = ("api", "api_key")
_URL: KeyPath = ("api", "base_url")
_PLACES: dict[str, tuple[KeyPath, ...]] = {
    "bad_key": (_KEY,),
    "forbidden": (_KEY,),
    "no_credit": (_KEY,),
    "not_found": (_URL, ("request", "path")),
    "redirected": (_URL,),
    "unreachable": (_URL,),
    "offline": (_URL, ("stop", "offline_for")),
    "max_failures": (("stop", "max_failures"),),
    "html_reply": (_URL,),
    "model_not_found": (("request", "body", "model"),),
}
"""The settings to look at, by the reason of the stop."""
_SECRETS = {"env": "the variable {}", "file": "the text of {}", "command": "what {} prints"}


def what_to_do(ending: Ending, config: Config, located: Located) -> Iterator[str]:
    """Lines of advice about a stop, with ``located`` commands; none for what a person wanted."""
    if hint := stop_hint(ending.reason):
        yield located(hint)
    for path in _PLACES.get(ending.reason, ()):
        if config.handler is None or path[0] != "request":
            yield f"{_place(config, path)}: {_setting(config, path)}"


def _place(config: Config, path: KeyPath) -> str:
    where = config.source_of(path)
    return clean(f"not in {config.file}") if where == "default" else clean(where)


def _setting(config: Config, path: KeyPath) -> str:
    value = _value(config, path)
    name = f"[{path[0]}] {'.'.join(map(str, path[1:]))}"
    if path == _KEY:
        return f"{name} is {_secret(value)}"
    return f"{name} = {clean(str(value))}" if value else f"{name} is not set"


def _value(config: Config, path: KeyPath) -> Any:
    node: Any = config.settings()
    for part in path:
        node = node.get(part) if isinstance(node, dict) else None
    return node


def _secret(value: Any) -> str:
    """A key by its name; it is never shown."""
    if not isinstance(value, dict):
        return "hidden" if value else 'not set: api_key = { env = "NAME" }'
    [(kind, name)] = value.items()
    return clean(_SECRETS.get(kind, "{}").format(name))
