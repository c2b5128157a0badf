"""Fields that hold mechanisms, and what a mechanism on chosen records takes from its own."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Sequence
from typing import Any, TypeAlias, final

from flint import arb

from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.validate import Field
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected, no_mechanism
from dpassay.accountant.numbers.exact import ExactReal

Parts: TypeAlias = Mechanism | tuple[Mechanism, ...]
_NUMBER = re.compile(r"[-+.e/]*[0-9][-+0-9.e/]*")
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
        if _NUMBER.fullmatch(value):
            remedy = "Write one such as Gaussian(3) or RandomizedResponse(2)."
            raise InvalidInputError(f"Expected {name} to be a mechanism, not {value}. {remedy}")
        remedy = f"Write it without quotation marks, or read it: dpassay.parse({value!r})."
        raise expected(name, value, "to be a mechanism, not a text", remedy)
    if not isinstance(value, Mechanism):
        raise no_mechanism(name, value, _REMEDY)
    if value.only_alone and not (enclosed and value.dominated_by is not None):
        raise NotApplicableError(f"{name}={value!r}: {value.only_alone}")
    return value


def _asked(name: str) -> Any:
    """Return a method that asks the inner mechanism."""

    def ask(self: OnChosenRecords, *args: Any, **named: Any) -> Any:
        return getattr(self.mechanism, name)(*args, **named)

    return ask


class OnChosenRecords(Mechanism, ABC):
    """A mechanism that is run on records chosen at random: noise and error are those of its own."""

    mechanism: OneMechanism

    sample = _asked("sample")
    variances = _asked("variances")
    mean_squared_error = _asked("mean_squared_error")
    mean_absolute_error = _asked("mean_absolute_error")
    probability_exact = _asked("probability_exact")
    covariance_matrix = _asked("covariance_matrix")
    quantile = _asked("quantile")

    @property
    def dimension(self) -> int:
        """That of the mechanism."""
        return self.mechanism.dimension

    @property
    def is_symmetric(self) -> bool:
        """Whether the noise of the mechanism is."""
        return self.mechanism.is_symmetric

    @property
    def unchanged(self) -> Mechanism | None:
        """What it is where every record takes part for sure, else None."""
        return None

    def enclosed_gaussian_mu(self, adjacency: Adjacency | None) -> arb:
        """Return that of the mechanism where every record takes part."""
        if self.unchanged is None:
            return super().enclosed_gaussian_mu(adjacency)
        return self.unchanged.gaussian_mu(adjacency)

    def exact_gaussian_mu(self, adjacency: Adjacency | None) -> ExactReal | None:
        """Return that of the mechanism where every record takes part, else None."""
        return None if self.unchanged is None else self.unchanged.exact_gaussian_mu(adjacency)
