"""Compiles the templates of the config, and finds out which columns they use.

A template sees ``row`` (the record), ``call`` (where that is allowed) and the names that Jinja defines. It has no clock
and no random numbers, so that the same record always gives the same request. Data is filled in and never evaluated: a
cell that contains ``{{ x }}`` stays that text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jinja2
import jinja2.meta
from jinja2 import nodes
from jinja2.environment import TemplateExpression

from rowcall.model.errors import TemplateError
from rowcall.templates.sandbox import missing_name_message, sandbox
from rowcall.templates.values import plain

Names = dict[str, Any]
"""What a template sees: ``row``, and ``call`` or None."""

Render = Callable[[Names], Any]

_LITERAL_BRACES = "To send braces as text, put them between {% raw %} and {% endraw %}."


@dataclass(frozen=True, slots=True)
class NameUse:
    """A name that a template uses.

    Attributes:
        where: the place of the template in the config.
        column: the column of ``row``; None for any other name, and for the whole row.
        name: the name itself; ``row`` for columns.
        optional: the template allows for a missing column.
    """

    where: str
    column: str | None
    name: str
    optional: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class TemplateTree:
    """A compiled tree of tables, lists and templates. Its repr shows no value, because values may be secret.

    Attributes:
        where: its place in the config, ``request.body``.
        columns: the columns it uses; None if a template uses the whole row.
        uses: every use of a name, for messages.
        constant: it has no template and is the same for every record.
    """

    where: str
    columns: frozenset[str] | None
    uses: tuple[NameUse, ...]
    _render: Render

    @property
    def constant(self) -> bool:  # noqa: D102  the class says it
        return isinstance(self._render, _Constant)

    def render(self, row: Mapping[str, Any], call: Mapping[str, Any] | None = None) -> Any:
        """Return the values for one record. Parts without a template are shared between records: do not change them.

        Raises:
            TemplateError: a value is missing, or an expression fails for this record.
        """
        return self._render({"row": row, "call": call})

    def __repr__(self) -> str:
        return f"<Tree {self.where}>"


def compile_tree(
    tree: Any, *, where: str, call: bool = False, escape: Callable[[str], str] | None = None
) -> TemplateTree:
    """Compile the strings in a tree of tables and lists; keys are not templates.

    A string that is one ``{{ expression }}`` and nothing else keeps the type of its value. An object of any other
    type, such as a secret, stays as it is.

    Args:
        tree: the part of the config.
        where: its place in the config, ``request.body``, for messages.
        call: whether templates may use the name ``call``.
        escape: applied to the text of every value, for parts of a URL. With it, every string stays a text.

    Raises:
        TemplateError: a syntax error, or a name that a template may not use.
    """
    compiler = _Compiler(call, escape)
    render = compiler.node(tree, where)
    whole = any(use.column is None and use.name == "row" for use in compiler.uses)
    columns = frozenset(use.column for use in compiler.uses if use.column is not None)
    return TemplateTree(where, None if whole else columns, tuple(compiler.uses), render)


def column_tree(name: str, *, where: str) -> TemplateTree:
    """Return a template that is one column. Its name may contain spaces."""
    return TemplateTree(where, frozenset([name]), (NameUse(where, name, "row"),), _column(where, name))


def is_template(text: str) -> bool:
    """Return whether a text contains Jinja syntax."""
    return "{{" in text or "{%" in text or "{#" in text


class _Compiler:
    """Compiles one tree and collects the names that its templates use."""

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
            return _list([self.node(item, f"{where}[{number}]") for number, item in enumerate(tree)])
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
        # Jinja gives no access to the value of an expression, only to its text; so the template assigns it to a name
        # from which TemplateExpression reads it, as Environment.compile_expression does.
        result = nodes.Assign(nodes.Name("result", "store"), expression, lineno=1)
        return _expression(self._sandbox.from_string(_with_text_joined(nodes.Template([result], lineno=1))), where)

    def _note(self, tree: nodes.Template, where: str) -> None:
        _refuse_includes_and_reassignment(tree, where)
        self.uses += _uses(tree, where)
        for name in sorted(jinja2.meta.find_undeclared_variables(tree) - self._names):
            if name == "call":
                raise TemplateError(f"{where}: call can be used only in headers", remedy="Use columns of row here.")
            self.uses.append(NameUse(where, None, name))


def _only_expression(tree: nodes.Template) -> nodes.Expr | None:
    """Return the expression of a template that is one ``{{ expression }}`` and nothing else."""
    match tree.body:
        case [nodes.Output(nodes=[nodes.TemplateData()])]:
            return None
        case [nodes.Output(nodes=[expression])]:
            return expression
    return None


def _with_text_joined(tree: nodes.Template) -> nodes.Template:
    """Turn the operands of ``a ~ b`` into text by our own filter: Jinja would write null as the word None."""
    for concat in tree.find_all(nodes.Concat):
        concat.nodes = [nodes.Filter(item, "string", [], [], None, None, lineno=concat.lineno) for item in concat.nodes]
    return tree


def _refuse_includes_and_reassignment(tree: nodes.Template, where: str) -> None:
    if any(jinja2.meta.find_referenced_templates(tree)):
        what = f"{where}: a template cannot include another one"
        raise TemplateError(what, remedy='Use { file = "..." } in the config.')
    for name in tree.find_all(nodes.Name):
        if name.name in ("row", "call") and name.ctx != "load":
            raise TemplateError(f"{where}: the name {name.name} is reserved", remedy="Choose another name.")


def _uses(node: nodes.Node, where: str, optional: bool = False) -> Iterator[NameUse]:
    """Yield the columns used as ``row.x`` and ``row["x"]``. Any other use of ``row`` uses the whole row."""
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
"""Filters and tests of Jinja whose operand may be missing."""


def _column_of(node: nodes.Node) -> str | None:
    match node:
        case nodes.Getattr(node=nodes.Name(name="row"), attr=str(column)):
            return column
        case nodes.Getitem(node=nodes.Name(name="row"), arg=nodes.Const(value=str(column))):
            return column
    return None


@dataclass(frozen=True, slots=True)
class _Constant:
    """A part without a template, which is the same for every record."""

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
    """Return the value of one column without Jinja: most requests and keys are that, and it is ten times as fast."""

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


_FILL_IN = "Correct the record or the template. For a column that may be missing write {{ row.NAME | default(...) }}."
