"""From a record to the values of a request, and which columns a request uses.

Templates are Jinja2 in its sandbox, with three names: ``row`` (the record), ``call`` (only where it is allowed) and
what Jinja defines itself. They know no clock and no chance, so that the same record gives the same request. Data
goes in as it is and is never evaluated again: a cell that holds ``{{ x }}`` stays that text. What values become is
sandbox.py's word.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jinja2
import jinja2.meta
from jinja2 import nodes
from jinja2.environment import TemplateExpression

from rowcall.model import json_values
from rowcall.model.errors import TemplateError
from rowcall.templates.sandbox import missing_name_message, plain, sandbox

Names = dict[str, Any]
"""What a template may see: ``row``, and ``call`` or None."""

Render = Callable[[Names], Any]

_LITERAL_BRACES = "Braces that are meant as text stand between {% raw %} and {% endraw %}."


@dataclass(frozen=True, slots=True)
class NameUse:
    """A name that one template uses: ``where`` it stands, the column, None where it is no column of ``row``."""

    where: str
    column: str | None
    name: str
    optional: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class TemplateTree:
    """Templates in tables and lists, ready to be rendered; the repr shows none of its values.

    Attributes:
        where: the place in the config, ``request.body``.
        columns: the columns that are used; None where a template uses the whole row.
        uses: every use, for messages.
        constant: it has no template, and is the same for every record.
    """

    where: str
    columns: frozenset[str] | None
    uses: tuple[NameUse, ...]
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


def compile_tree(
    tree: Any, *, where: str, call: bool = False, escape: Callable[[str], str] | None = None
) -> TemplateTree:
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
    return TemplateTree(where, None if whole else columns, tuple(compiler.uses), render)


def column_tree(name: str, *, where: str) -> TemplateTree:
    """A template that is one column, spaces in its name and all."""
    return TemplateTree(where, frozenset([name]), (NameUse(where, name, "row"),), _column(where, name))


def check_columns(trees: Iterable[TemplateTree], available: Sequence[str] | None) -> None:
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


def union(trees: Iterable[TemplateTree]) -> frozenset[str] | None:
    """The columns that several trees use; None where one of them uses the whole row."""
    used: frozenset[str] = frozenset()
    for tree in trees:
        if tree.columns is None:
            return None
        used |= tree.columns
    return used


def is_template(text: str) -> bool:
    """Whether a text has something of Jinja in it."""
    return "{{" in text or "{%" in text or "{#" in text


class _Compiler:
    """Compiles one tree and gathers what its templates use."""

    def __init__(self, call: bool, escape: Callable[[str], str] | None) -> None:
        self.uses: list[NameUse] = []
        self._names = {"row", "call"} if call else {"row"}
        self._escape = escape
        self._sandbox = sandbox(escape)

    def node(self, tree: Any, where: str) -> Render:
        if isinstance(tree, str):
            return self._string(tree, where)
        if isinstance(tree, dict):
            return _table({name: self.node(item, f"{where}.{name}") for name, item in tree.items()})
        if isinstance(tree, list):
            return _list([self.node(item, f"{where}[{at}]") for at, item in enumerate(tree)])
        return _Constant(tree)

    def _string(self, text: str, where: str) -> Render:
        if not is_template(text):
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
            self.uses.append(NameUse(where, None, name))


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


def _uses(node: nodes.Node, where: str, optional: bool = False) -> Iterator[NameUse]:
    """Columns as ``row.x`` and ``row["x"]``; any other use of ``row`` is one of the whole row."""
    column = _column_of(node)
    if column is not None:
        yield NameUse(where, column, "row", optional)
        return
    if isinstance(node, nodes.Name) and node.name == "row":
        yield NameUse(where, None, "row")
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


def _is_unknown(use: NameUse, available: Sequence[str] | None) -> bool:
    if use.column is None:
        return use.name != "row"
    return available is not None and use.column not in available and not use.optional


def _unknown(use: NameUse, available: Sequence[str]) -> str:
    if use.column is None and use.name in available:
        return f"unknown name {use.name!r}; the column is written {_written(use.name)}"
    name = use.name if use.column is None else use.column
    close = difflib.get_close_matches(name, available, n=1, cutoff=0.5)
    what = f"unknown name {name!r}" if use.column is None else f"no column {name!r}"
    return what + (f"; did you mean {_written(close[0])}?" if close else "")


def _written(column: str) -> str:
    return f"row.{column}" if column.isidentifier() else f"row[{json_values.dumps(column).decode()}]"


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
            return plain(row[name])
        except KeyError:
            raise TemplateError(f"{where}: {missing_name_message(row, name)}", remedy=_FILL_IN) from None
        except ValueError as error:
            raise TemplateError(f"{where}: {error}", remedy=_FILL_IN) from None

    return render


def _text(template: jinja2.Template, where: str) -> Render:
    return lambda names: _rendered(template.render, names, where)


def _expression(template: jinja2.Template, where: str) -> Render:
    evaluate = TemplateExpression(template, undefined_to_none=False)
    return lambda names: _rendered(lambda names: plain(evaluate(names)), names, where)


def _rendered(render: Callable[[Names], Any], names: Names, where: str) -> Any:
    try:
        return render(names)
    except Exception as error:
        what = str(error) or type(error).__name__
        raise TemplateError(f"{where}: {what}", remedy=_FILL_IN) from error


_FILL_IN = "Correct the record or the template; {{ row.NAME | default(...) }} allows for a column that may be missing."
