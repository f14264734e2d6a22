"""What a recipe would use of the machine that carries it out: variables, commands, files, code.

Whoever can write to a store can change its recipes. So a recipe is looked through before anything of it is followed.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from rowcall.config import KeyPath
from rowcall.config.key_lines import dotted
from rowcall.config.references import is_reference
from rowcall.model.errors import RowcallError
from rowcall.run.recipe import CONFIG, Recipe, stays_inside

WantKind = Literal["variable", "command", "file", "attachment", "handler"]
_FILE_KEYS = ("ca_file", "client_cert", "client_key")


@dataclass(frozen=True, slots=True)
class Want:
    """One thing of this machine that a recipe would use.

    Attributes:
        kind: what it is.
        name: the name of a variable, a command line, a path, or a handler's path.
        where: the key of the config that wants it.
    """

    kind: WantKind
    name: str
    where: str

    def __str__(self) -> str:
        doing = {
            "variable": "sends the variable",
            "command": "runs the command",
            "file": "reads the file",
            "attachment": "attaches the file",
            "handler": "runs the code of",
        }
        return f"{self.where} {doing[self.kind]} {self.name}"


def recipe_hash(recipe: Recipe) -> str:
    """Return the SHA-256 of all that a recipe would do."""
    return hashlib.sha256(json.dumps(dict(recipe.files), sort_keys=True).encode()).hexdigest()


def wants_of(recipe: Recipe) -> tuple[list[Want], str]:
    """Return what a recipe would use of this machine, and the URL that its calls go to.

    Raises:
        RowcallError: the recipe cannot be read.
    """
    try:
        settings = tomllib.loads(recipe.files[CONFIG])
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        raise RowcallError("the recipe in the store is damaged: its config is not valid TOML") from None
    api = settings.get("api")
    api = api if isinstance(api, dict) else {}
    wants = list(_wants(settings, ()))
    handler = settings.get("handler")
    if isinstance(handler, dict):
        wants.append(Want("handler", str(handler.get("path")), "handler.path"))
    named = [(key, str(api[key])) for key in _FILE_KEYS if key in api]
    wants += [Want("file", path, f"api.{key}") for key, path in named if not stays_inside(path)]
    return wants, str(api.get("base_url") or api.get("preset"))


def _wants(node: Any, path: KeyPath) -> Iterator[Want]:
    if is_reference(node):
        yield from _wants_of_reference(node, dotted(path))
        return
    if isinstance(node, dict) and isinstance(node.get("attach"), str):
        yield Want("attachment", node["attach"], dotted(path))
    children: Iterable[tuple[str | int, Any]] = ()
    if isinstance(node, dict):
        children = node.items()
    elif isinstance(node, list):
        children = enumerate(node)
    for name, value in children:
        yield from _wants(value, (*path, name))


def _wants_of_reference(reference: dict[str, str], where: str) -> Iterator[Want]:
    [(kind, name)] = reference.items()
    if kind == "env":
        yield Want("variable", name, where)
    elif kind == "command":
        yield Want("command", name, where)
    elif not stays_inside(name):
        yield Want("file", name, where)
