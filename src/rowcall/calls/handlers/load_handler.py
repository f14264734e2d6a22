"""Loads a handler from the user's file, as in ``tasks.py:label``."""

from __future__ import annotations

import difflib
import hashlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from rowcall.calls.handlers.handler_caller import Function
from rowcall.model.errors import ConfigError, Problem

_SIGNATURE = "async def {name}(row, call): or def {name}(row, call):"


class _Loader(SourceFileLoader):
    """Reads a file as it is now, and writes no compiled copy beside it."""

    def get_code(self, fullname: str) -> CodeType:
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def load_function(written: str, *, folder: Path, where: str) -> Function:
    """Return the function that ``[handler] path`` names. Its file is imported under a private name.

    During the import, modules beside the file can be imported too; ``sys.path`` is restored afterwards.

    Args:
        written: ``tasks.py:label``.
        folder: the folder that the path is relative to.
        where: the setting's place in the config, for messages.

    Raises:
        ConfigError: the file or function does not exist, the import fails, or the function takes other arguments.
    """
    file_name, _, name = written.rpartition(":")
    module = _imported(folder / Path(file_name).expanduser(), where)
    function = getattr(module, name, None)
    if not callable(function):
        raise ConfigError(Problem(where, f"{file_name} has no function {name!r}", _there_is(module, name)))
    check_signature(function, name, where)
    return function  # type: ignore[no-any-return]  # whatever the user wrote


def check_signature(function: Function, name: str, where: str) -> None:
    """Check that a handler takes a row and a call.

    Raises:
        ConfigError: it does not.
    """
    try:
        inspect.signature(function).bind({}, None)
    except TypeError as error:
        what = f"{name} does not take (row, call): {error}"
        raise ConfigError(Problem(where, what, _SIGNATURE.format(name=name))) from None
    except ValueError:  # a function written in C has no signature
        return


def _imported(path: Path, where: str) -> ModuleType:
    if not path.is_file():
        remedy = f"paths are relative to the config file; looked for {path}"
        raise ConfigError(Problem(where, f"there is no file {path.name}", remedy))
    name = f"_rowcall_handler_{hashlib.blake2b(str(path).encode(), digest_size=8).hexdigest()}"
    loader = _Loader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, path, loader=loader))  # type: ignore[arg-type]  # a file always has a spec
    sys.modules[name] = module
    try:
        with _importable(path.parent):
            loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ConfigError(_import_problem(error, path, where)) from error
    return module


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _import_problem(error: BaseException, path: Path, where: str) -> Problem:
    """The exception as a problem, with the line of the user's file that it came from."""
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == str(path)), None)
    if isinstance(error, SyntaxError) and error.filename == str(path):
        line = error.lineno
    place = f"{path.name}:{line}" if line else path.name
    message = str(error).strip().partition("\n")[0]
    return Problem(where, f"{place} cannot be imported: {type(error).__name__}" + (f": {message}" if message else ""))


def _there_is(module: ModuleType, name: str) -> str:
    functions = [
        other
        for other, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not other.startswith("_")
    ]
    close = difflib.get_close_matches(name, functions, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it has: {', '.join(functions) or 'none'}"
