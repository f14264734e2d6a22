"""Says what to do about the failure that stopped a run, with the line of the config to look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rowcall.cli.shared.failure_hints import stop_hint
from rowcall.cli.shared.job_address import JobAddress
from rowcall.config import Config, KeyPath
from rowcall.engine.stop_reasons import Ending
from rowcall.progress import clean

_KEY: KeyPath = ("api", "api_key")
_URL: KeyPath = ("api", "base_url")
_SETTINGS: dict[str, tuple[KeyPath, ...]] = {
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
_SECRETS = {"env": "from the variable {}", "file": "from the file {}", "command": "from the command {}"}


def stop_advice(ending: Ending, config: Config, address: JobAddress) -> Iterator[str]:
    """Yield lines of advice about a stop; none if the user stopped the run."""
    if hint := stop_hint(ending.reason):
        yield address.fill_in(hint)
    for path in _SETTINGS.get(ending.reason, ()):
        if config.handler is None or path[0] != "request":
            where = config.source_of(path)
            place = f"{config.file} does not set it" if where == "default" else where
            yield f"{clean(place)}: {_setting(config, path)}"


def _setting(config: Config, path: KeyPath) -> str:
    value = _value(config, path)
    name = f"[{path[0]}] {'.'.join(map(str, path[1:]))}"
    if path == _KEY:
        return f"{name} {_secret(value)}"
    return f"{name} = {clean(str(value))}" if value else f"{name} is not set"


def _value(config: Config, path: KeyPath) -> Any:
    node: Any = config.settings()
    for part in path:
        node = node.get(part) if isinstance(node, dict) else None
    return node


def _secret(value: Any) -> str:
    """Say where an API key comes from; the key is never shown."""
    if not isinstance(value, dict):
        return "is hidden" if value else 'is not set; set it with api_key = { env = "NAME" }'
    [(kind, name)] = value.items()
    return f"is {clean(_SECRETS.get(kind, '{}').format(name))}"
