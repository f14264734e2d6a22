"""A value that must never be shown."""

from __future__ import annotations

from typing import Any

from pydantic_core import core_schema


class Secret:
    """A secret, with a name that is shown instead: ``<secret OPENAI_API_KEY>``.

    ``str``, ``repr``, ``format``, ``%s`` and the dump of a pydantic model show only the name. pickle refuses it. Two
    secrets are equal if their values are.
    """

    __slots__ = ("_value", "name")

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self._value = value

    def reveal(self) -> str:
        """Return the value. Only code that sends it may call this."""
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
        raise TypeError("a secret must not be pickled")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.is_instance_schema(cls, serialization=core_schema.to_string_ser_schema())
