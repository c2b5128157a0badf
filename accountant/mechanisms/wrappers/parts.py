"""Fields that hold mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, final

from accountant.core.mechanism import Mechanism
from accountant.core.validate import Field
from accountant.errors import InvalidInputError, NotApplicableError, expected

Parts: TypeAlias = Mechanism | tuple[Mechanism, ...]
_REMEDY = 'Write one such as Gaussian(standard_deviation="1.1").'


@final
class OneMechanism(Field[Mechanism, Mechanism]):
    """A mechanism."""

    def read(self, value: Mechanism) -> Mechanism:
        """Require a mechanism."""
        return _mechanism(self._name, value)


@final
class Mechanisms(Field[Parts, Mechanism | Sequence[Mechanism]]):
    """A mechanism, or a non-empty list of them."""

    def read(self, value: Mechanism | Sequence[Mechanism]) -> Parts:
        """Require mechanisms, naming the entry that is none."""
        if not isinstance(value, (list, tuple)):
            return _mechanism(self._name, value, enclosed=True)
        if not value:
            raise InvalidInputError(f"Expected {self._name} to have at least one entry. Give one.")
        return tuple(
            _mechanism(f"{self._name}[{i}]", entry, enclosed=True) for i, entry in enumerate(value)
        )


def _mechanism(name: str, value: object, *, enclosed: bool = False) -> Mechanism:
    """Require a mechanism that is known among others, or `enclosed` between two ends."""
    if isinstance(value, str):
        remedy = f"Write it without quotation marks, or read it: dpassay.parse({value!r})."
        raise expected(name, value, "to be a mechanism, not a text", remedy)
    if not isinstance(value, Mechanism):
        raise expected(name, value, f"to be a mechanism, not {type(value).__name__}", _REMEDY)
    if value.only_alone and not (enclosed and value.dominated_by is not None):
        raise NotApplicableError(f"{name}={value!r}: {value.only_alone}")
    return value
