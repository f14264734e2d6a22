"""From a record to the values of a request, and which columns a request uses.

Templates are Jinja2 in its sandbox, with three names: ``row`` (the record), ``call`` (only where it is allowed) and
what Jinja defines itself. They know no clock and no chance, so that the same record gives the same request. Data
goes in as it is and is never evaluated again: a cell that holds ``{{ x }}`` stays that text.

Where a value becomes text: null is nothing, booleans are ``true`` and ``false``, numbers are as they were written,
lists and tables are JSON; NaN, Infinity and what is no JSON are an error, never a word.
"""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import jinja2
import jinja2.meta
from jinja2 import nodes
from jinja2.environment import TemplateExpression
from jinja2.sandbox import ImmutableSandboxedEnvironment

from rowcall import values
from rowcall.errors import TemplateError
from rowcall.job import Record

Names = dict[str, Any]
"""What a template may see: ``row``, and ``call`` or None."""

Render = Callable[[Names], Any]

FilePrints = Callable[[Mapping[str, Any]], list[Any]]
"""What the files that are attached for a record are known by: path, size and time of change. Blocks."""

_LITERAL_BRACES = "Braces that are meant as text stand between {% raw %} and {% endraw %}."


@dataclass(frozen=True, slots=True)
class Use:
    """A name that one template uses: ``where`` it stands, the column, None where it is no column of ``row``."""

    where: str
    column: str | None
    name: str
    optional: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Tree:
    """Templates in tables and lists, ready to be rendered; the repr shows none of its values.

    Attributes:
        where: the place in the config, ``request.body``.
        columns: the columns that are used; None where a template uses the whole row.
        uses: every use, for messages.
        constant: it has no template, and is the same for every record.
    """

    where: str
    columns: frozenset[str] | None
    uses: tuple[Use, ...]
    _render: Render

    @property
    def constant(self) -> bool:  # noqa: D102  the class says it
        return isinstance(self._render, _Constant)

    def render(self, row: Mapping[str, Any], call: Mapping[str, Any] | None = None) -> Any:
        """The values for one record. Parts without a template are shared between records: do not change them.

        Raises:
            TemplateError: a value is missing, or an expression fails for this record.
        """
        return self._render({"row": row, "call": call})

    def __repr__(self) -> str:
        return f"<Tree {self.where}>"


def compile_tree(tree: Any, *, where: str, call: bool = False, escape: Callable[[str], str] | None = None) -> Tree:
    """Compile the strings in tables, lists and scalars; keys are not templates.

    A string that is one ``{{ expression }}`` and nothing else keeps the type of its value. What is neither text,
    number, boolean, null, table nor list (a secret) goes through untouched.

    Args:
        tree: what the config holds.
        where: its place in the config, ``request.body``, for messages.
        call: whether the name ``call`` is known.
        escape: applied to the text of every value, where the result is part of a URL; all strings stay text then.

    Raises:
        TemplateError: a syntax error, or something a template may not use.
    """
    compiler = _Compiler(call, escape)
    render = compiler.node(tree, where)
    whole = any(use.column is None and use.name == "row" for use in compiler.uses)
    columns = frozenset(use.column for use in compiler.uses if use.column is not None)
    return Tree(where, None if whole else columns, tuple(compiler.uses), render)


def check_columns(trees: Iterable[Tree], available: Sequence[str] | None) -> None:
    """See that every name is known before a record is read; ``available`` is None where the input does not say.

    Columns under ``| default(...)`` or ``is defined`` may be missing.

    Raises:
        TemplateError: lists all unknown names, with a suggestion each, and the columns there are.
    """
    unknown = [use for tree in trees for use in tree.uses if _is_unknown(use, available)]
    if not unknown:
        return
    lines = [f"{use.where}: {_unknown(use, available or ())}" for use in unknown]
    listed = ", ".join((available or ())[:50]) + (", ..." if available and len(available) > 50 else "")
    remedy = f"The columns are: {listed}" if available else "A column is written {{ row.NAME }}."
    raise TemplateError("\n".join(lines), remedy=remedy)


def union(trees: Iterable[Tree]) -> frozenset[str] | None:
    """The columns that several trees use; None where one of them uses the whole row."""
    used: frozenset[str] = frozenset()
    for tree in trees:
        if tree.columns is None:
            return None
        used |= tree.columns
    return used


def input_hash(data: Mapping[str, Any], columns: frozenset[str] | None, files: FilePrints | None = None) -> str:
    """32 hex digits over the values of the used columns; a missing column is another than a null one.

    Args:
        data: the record.
        columns: those that are used; None: all of them.
        files: what the record's attached files are known by; None where none are attached.
    """
    used = dict(data) if columns is None else {name: data[name] for name in columns if name in data}
    return _digest(used if files is None else [used, files(data)])


def request_hash(fingerprint: Any) -> str:
    """32 hex digits over what all records of a kind send, as written."""
    return _digest(fingerprint)


def record_key(data: Mapping[str, Any]) -> str:
    """The key of a record that has none of its own: 32 hex digits over its columns, in whatever order they come."""
    return _digest(dict(data))


def _digest(value: Any) -> str:
    return blake2b(values.canonical(value), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Key:
    """Makes a record's key. ``tree`` is the template behind it, None where the key is a hash."""

    spec: str | None
    tree: Tree | None

    def __call__(self, data: Mapping[str, Any]) -> str:
        """The key of one record.

        Raises:
            ValueError: missing, empty, or no text or number; the message says what to do.
        """
        if self.tree is None:
            return record_key(data)
        try:
            key = self.tree.render(data)
        except TemplateError as error:
            raise ValueError(f"the record has no key ({error.message}); {_NAME_ANOTHER}") from error
        return self._checked(key)

    def of(self, record: Record) -> str:
        """The key of a record: where the config names none, the one that it came with.

        Raises:
            ValueError: as a call.
        """
        return record.key if self.tree is None and record.key is not None else self(record.data)

    def _checked(self, key: Any) -> str:
        text = key if type(key) is str else self._text(key)
        if not text.strip():
            raise ValueError(f"the key {self.spec!r} is empty; fill it in, or {_NAME_ANOTHER}")
        if "\0" in text:
            raise ValueError(f"the key {self.spec!r} holds a NUL character; take it out, or {_NAME_ANOTHER}")
        return text

    def _text(self, key: Any) -> str:
        if isinstance(key, dict | list | bool):
            raise ValueError(f"the key {self.spec!r} is a {type(key).__name__}, not text or a number; {_NAME_ANOTHER}")
        return text_of(key)


_NAME_ANOTHER = "name another column in [input] key, or leave it out: the key is then a hash of the record"


def compile_key(spec: str | None) -> Key:
    """What makes keys: a bare name is a column (spaces and all), ``{{ }}`` a template, None a hash of the record.

    Raises:
        TemplateError: a syntax error.
    """
    if spec is None:
        return Key(None, None)
    if _is_template(spec):
        return Key(spec, compile_tree(spec, where="input.key"))
    use = Use("input.key", spec, "row")
    return Key(spec, Tree("input.key", frozenset([spec]), (use,), _column("input.key", spec)))


def text_of(value: Any) -> str:
    """A value as the text that goes into a template.

    Raises:
        ValueError: NaN, Infinity, and what is no JSON.
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, jinja2.Undefined):
        return str(value)  # raises: it is a strict one
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(_finite(value))
    return values.dumps(_plain(value)).decode()


def _finite(number: float) -> float:
    if type(number) is float and not math.isfinite(number):
        raise ValueError(f"the value is {number}, which is no number that JSON has")
    return number


def _plain(value: Any) -> Any:
    """What an expression gave, as JSON: generators become lists, a missing value is an error."""
    if type(value) is str or value is None or isinstance(value, bool):
        return value
    if isinstance(value, str | jinja2.Undefined):
        return text_of(value)
    if isinstance(value, int | float):
        return _finite(value)
    if isinstance(value, Mapping):
        return {text_of(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | range | Iterator):
        return [_plain(item) for item in value]
    raise ValueError(f"the value is a {type(value).__name__}, which is no JSON")


class _Sandbox(ImmutableSandboxedEnvironment):
    """Looks up keys, and never the methods of a table: ``row.items`` is the column."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Mapping):
            return self.getitem(obj, attribute)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if not isinstance(obj, Mapping):
            return super().getitem(obj, argument)
        try:
            return obj[argument]
        except (KeyError, TypeError):
            return self.undefined(_absent(obj, argument), obj, argument)


def _absent(table: Mapping[str, Any], name: Any) -> str:
    there = ", ".join(map(str, list(table)[:20])) or "nothing"
    return f"there is no {name!r}; there is: {there}"


def _as_json(value: Any, indent: int | None = None) -> str:
    """The filter ``tojson``: JSON with its characters as they are, not escaped for HTML."""
    plain = _plain(value)
    return values.dumps(plain).decode() if indent is None else _indented(plain, " " * indent, "\n")


def _indented(value: Any, step: str, margin: str) -> str:
    inner = margin + step
    if isinstance(value, dict) and value:
        lines = (f"{values.dumps(name).decode()}: {_indented(item, step, inner)}" for name, item in value.items())
        return "{" + ",".join(inner + line for line in lines) + margin + "}"
    if isinstance(value, list) and value:
        return "[" + ",".join(inner + _indented(item, step, inner) for item in value) + margin + "]"
    return values.dumps(value).decode()


def _joined(value: Iterable[Any], d: str = "", attribute: str | int | None = None) -> str:
    """The filter ``join``, with values as text the way this module has it."""
    items = value if attribute is None else (_sandbox(None).getitem(item, attribute) for item in value)
    return text_of(d).join(map(text_of, items))


def _formatted(value: Any, *args: Any, **kwargs: Any) -> str:
    """The filter ``format``, where null is nothing."""
    named = {name: "" if item is None else item for name, item in kwargs.items()}
    return text_of(value) % (named or tuple("" if item is None else item for item in args))


def _on_text(filter_: Callable[..., Any]) -> Callable[..., Any]:
    """A filter of Jinja that makes text of its value first, with null as nothing."""
    place = 1 if hasattr(filter_, "jinja_pass_arg") else 0

    @functools.wraps(filter_)
    def on_text(*args: Any, **kwargs: Any) -> Any:
        return filter_(*args[:place], text_of(args[place]), *args[place + 1 :], **kwargs)

    return on_text


_TEXT_FILTERS = (
    *("capitalize", "center", "e", "escape", "forceescape", "indent", "lower", "replace", "string", "striptags"),
    *("title", "trim", "truncate", "upper", "urlize", "wordcount", "wordwrap"),
)


@functools.cache
def _sandbox(escape: Callable[[str], str] | None) -> _Sandbox:
    sandbox = _Sandbox(
        undefined=jinja2.StrictUndefined,
        finalize=text_of if escape is None else lambda value: escape(text_of(value)),
        keep_trailing_newline=True,
        autoescape=False,
        cache_size=0,
    )
    del sandbox.globals["lipsum"], sandbox.filters["random"]
    sandbox.filters |= {name: _on_text(sandbox.filters[name]) for name in _TEXT_FILTERS}
    sandbox.filters |= {"tojson": _as_json, "join": _joined, "format": _formatted}
    return sandbox


def _is_template(text: str) -> bool:
    return "{{" in text or "{%" in text or "{#" in text


class _Compiler:
    """Compiles one tree and gathers what its templates use."""

    def __init__(self, call: bool, escape: Callable[[str], str] | None) -> None:
        self.uses: list[Use] = []
        self._names = {"row", "call"} if call else {"row"}
        self._escape = escape
        self._sandbox = _sandbox(escape)

    def node(self, tree: Any, where: str) -> Render:
        if isinstance(tree, str):
            return self._string(tree, where)
        if isinstance(tree, dict):
            return _table({name: self.node(item, f"{where}.{name}") for name, item in tree.items()})
        if isinstance(tree, list):
            return _list([self.node(item, f"{where}[{at}]") for at, item in enumerate(tree)])
        return _Constant(tree)

    def _string(self, text: str, where: str) -> Render:
        if not _is_template(text):
            return _Constant(text)
        try:
            return self._template(text, where)
        except jinja2.TemplateSyntaxError as error:
            line = f", line {error.lineno}" if "\n" in text else ""
            raise TemplateError(f"{where}{line}: {error.message}", remedy=_LITERAL_BRACES) from error

    def _template(self, text: str, where: str) -> Render:
        tree = self._sandbox.parse(text)
        self._note(tree, where)
        expression = None if self._escape else _only_expression(tree)
        if expression is None:
            return _text(self._sandbox.from_string(_with_text_joined(tree)), where)
        column = _column_of(expression)
        if column is not None:
            return _column(where, column)
        result = nodes.Assign(nodes.Name("result", "store"), expression, lineno=1)
        return _expression(self._sandbox.from_string(_with_text_joined(nodes.Template([result], lineno=1))), where)

    def _note(self, tree: nodes.Template, where: str) -> None:
        _refuse_foreign(tree, where)
        self.uses += _uses(tree, where)
        for name in sorted(jinja2.meta.find_undeclared_variables(tree) - self._names):
            if name == "call":
                raise TemplateError(f"{where}: call is known only in headers", remedy="Use columns of row here.")
            self.uses.append(Use(where, None, name))


def _only_expression(tree: nodes.Template) -> nodes.Expr | None:
    """The expression of a template that is one ``{{ expression }}`` and nothing else."""
    match tree.body:
        case [nodes.Output(nodes=[nodes.TemplateData()])]:
            return None
        case [nodes.Output(nodes=[expression])]:
            return expression
    return None


def _with_text_joined(tree: nodes.Template) -> nodes.Template:
    """``a ~ b`` makes text of its operands the way this module has it (Jinja's own writes null as a word)."""
    for concat in tree.find_all(nodes.Concat):
        concat.nodes = [nodes.Filter(item, "string", [], [], None, None, lineno=concat.lineno) for item in concat.nodes]
    return tree


def _refuse_foreign(tree: nodes.Template, where: str) -> None:
    if any(jinja2.meta.find_referenced_templates(tree)):
        raise TemplateError(f"{where}: a template cannot use another", remedy='Use { file = "..." } in the config.')
    for name in tree.find_all(nodes.Name):
        if name.name in ("row", "call") and name.ctx != "load":
            raise TemplateError(f"{where}: the name {name.name} is taken", remedy="Choose another name.")


def _uses(node: nodes.Node, where: str, optional: bool = False) -> Iterator[Use]:
    """Columns as ``row.x`` and ``row["x"]``; any other use of ``row`` is one of the whole row."""
    column = _column_of(node)
    if column is not None:
        yield Use(where, column, "row", optional)
        return
    if isinstance(node, nodes.Name) and node.name == "row":
        yield Use(where, None, "row")
    lenient = node.node if isinstance(node, nodes.Filter | nodes.Test) and node.name in _LENIENT else None
    for child in node.iter_child_nodes():
        yield from _uses(child, where, child is lenient)


_LENIENT = ("default", "d", "defined", "undefined")


def _column_of(node: nodes.Node) -> str | None:
    match node:
        case nodes.Getattr(node=nodes.Name(name="row"), attr=str(column)):
            return column
        case nodes.Getitem(node=nodes.Name(name="row"), arg=nodes.Const(value=str(column))):
            return column
    return None


def _is_unknown(use: Use, available: Sequence[str] | None) -> bool:
    if use.column is None:
        return use.name != "row"
    return available is not None and use.column not in available and not use.optional


def _unknown(use: Use, available: Sequence[str]) -> str:
    if use.column is None and use.name in available:
        return f"unknown name {use.name!r}; the column is written {_written(use.name)}"
    name = use.name if use.column is None else use.column
    close = difflib.get_close_matches(name, available, n=1, cutoff=0.5)
    what = f"unknown name {name!r}" if use.column is None else f"no column {name!r}"
    return what + (f"; did you mean {_written(close[0])}?" if close else "")


def _written(column: str) -> str:
    return f"row.{column}" if column.isidentifier() else f"row[{values.dumps(column).decode()}]"


@dataclass(frozen=True, slots=True)
class _Constant:
    """A part without a template: the same value for every record."""

    value: Any = field(repr=False)

    def __call__(self, names: Names) -> Any:
        return self.value


def _table(items: dict[str, Render]) -> Render:
    if all(isinstance(item, _Constant) for item in items.values()):
        return _Constant({name: item({}) for name, item in items.items()})
    return lambda names: {name: item(names) for name, item in items.items()}


def _list(items: list[Render]) -> Render:
    if all(isinstance(item, _Constant) for item in items):
        return _Constant([item({}) for item in items])
    return lambda names: [item(names) for item in items]


def _column(where: str, name: str) -> Render:
    """The value of one column, without Jinja: ten times as fast, and what most requests and keys are."""

    def render(names: Names) -> Any:
        row = names["row"]
        try:
            return _plain(row[name])
        except KeyError:
            raise TemplateError(f"{where}: {_absent(row, name)}", remedy=_FILL_IN) from None
        except ValueError as error:
            raise TemplateError(f"{where}: {error}", remedy=_FILL_IN) from None

    return render


def _text(template: jinja2.Template, where: str) -> Render:
    return lambda names: _rendered(template.render, names, where)


def _expression(template: jinja2.Template, where: str) -> Render:
    evaluate = TemplateExpression(template, undefined_to_none=False)
    return lambda names: _rendered(lambda names: _plain(evaluate(names)), names, where)


def _rendered(render: Callable[[Names], Any], names: Names, where: str) -> Any:
    try:
        return render(names)
    except Exception as error:
        what = str(error) or type(error).__name__
        raise TemplateError(f"{where}: {what}", remedy=_FILL_IN) from error


_FILL_IN = "Correct the record or the template; {{ row.NAME | default(...) }} allows for a column that may be missing."
