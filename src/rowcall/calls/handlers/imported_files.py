"""Finds the files that a handler consists of: its own, and the modules beside it that it imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def companions(file: Path) -> list[Path]:
    """Return a handler's file and the files beside it that it imports, directly or not; in order, each once.

    Modules from elsewhere have to be installed where the handler runs. Nothing is imported or run here.

    Raises:
        OSError, SyntaxError, UnicodeDecodeError: a file cannot be read.
    """
    found: dict[Path, None] = {file: None}
    waiting = [file]
    while waiting:
        for path in _imported_by(waiting.pop(), file.parent):
            if path not in found:
                found[path] = None
                waiting.append(path)
    return list(found)


def _imported_by(file: Path, folder: Path) -> Iterator[Path]:
    for name in sorted(_names(ast.parse(file.read_text(encoding="utf-8"), file.name))):
        path = folder / name
        if path.with_suffix(".py").is_file():
            yield path.with_suffix(".py")
        elif (path / "__init__.py").is_file():
            yield from sorted(path.rglob("*.py"))


def _names(tree: ast.AST) -> set[str]:
    """The first parts of the names of imported modules; relative imports are found with their package."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
