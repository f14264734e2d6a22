"""A value that must never be seen."""

from __future__ import annotations

from typing import Any

from pydantic_core import core_schema


class Secret:
    """A secret with the name that may be shown for it: ``<secret OPENAI_API_KEY>``.

    Text made from it, by ``str``, ``repr``, ``format``, ``%s``, or a dump of a model, shows the name alone, and
    pickle refuses it. Two secrets are equal when their values are.
    """

    __slots__ = ("_value", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._value = value

    def reveal(self) -> str:
        """The value, for the one place that sends it."""
        return self._value

    def __repr__(self) -> str:
        return f"<secret {self.name}>"

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __deepcopy__(self, memo: dict[int, Any]) -> Secret:
        return self

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written anywhere")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.is_instance_schema(cls, serialization=core_schema.to_string_ser_schema())
