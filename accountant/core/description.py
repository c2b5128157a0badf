"""Frozen data with a notation: mechanisms, sensitivity spaces, covariances."""

from __future__ import annotations

import inspect
from abc import ABCMeta
from collections.abc import Collection
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, TypeVar, dataclass_transform

from dpassay.accountant.aliases import ALIASES, translated
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.errors import InvalidInputError, suggestion
from dpassay.accountant.numbers.exact import ExactReal, as_floats

Kind = TypeVar("Kind")
_BUDGETS = ("epsilon", "eps", "delta", "rho")
"""What users give instead of the noise; where it is an argument it is known as one."""


class Described(ABCMeta):
    """The class of a description: a call with wrong arguments is answered with the right ones."""

    def __call__(cls, *positional: Any, **named: Any) -> Any:
        """Make the description; raise InvalidInputError where an argument is unknown or missing.

        What other libraries call an argument is read too (`dpassay.accountant.aliases`).
        """
        if not ALIASES.keys().isdisjoint(named):
            named = translated(named, list(inspect.signature(cls).parameters), len(positional))
        try:
            return super().__call__(*positional, **named)
        except TypeError:
            if inspect.isabstract(cls):
                raise
            if (problem := cls._misfit(len(positional), named)) is None:
                raise
            raise InvalidInputError(problem) from None

    @property
    def __signature__(cls) -> inspect.Signature:
        """The arguments of the class: `inspect` would show those of `__call__`."""
        own = inspect.signature(cls.__init__)  # type: ignore[misc]  # of this very class
        return own.replace(parameters=list(own.parameters.values())[1:])

    def _misfit(cls, positional: int, named: Collection[str]) -> str | None:
        """Say which arguments do not fit, and which ones there are; None if all do."""
        parameters = inspect.signature(cls).parameters
        known, name = list(parameters), cls.__name__
        listed = f"Arguments: {', '.join(known)}."
        if positional > len(known):
            return f"{name} has {len(known)} arguments, not {positional}. {listed}"
        given = known[:positional]
        for argument in named:
            if argument not in known:
                if argument in _BUDGETS and hasattr(cls, "worst_case"):
                    return (
                        f"{name} has no argument {argument!r}: a mechanism states its noise. "
                        f'Calibrate it: dpassay.calibrate("{name}", {argument}=…). {listed}'
                    )
                return f"{name} has no argument {argument!r}. {suggestion(argument, known)}"
            if argument in given:
                return f"Argument {argument!r} of {name} is given twice."
        missing = [
            argument
            for argument, parameter in parameters.items()
            if parameter.default is parameter.empty and argument not in {*given, *named}
        ]
        return f"{name} needs {', '.join(missing)}. {listed}" if missing else None


@dataclass_transform(frozen_default=True)
def declared(kind: type[Kind]) -> type[Kind]:
    """Make a class a frozen dataclass; its annotated fields are the arguments of its notation."""
    return dataclass(frozen=True, repr=False)(kind)


class Description(metaclass=Described):
    """A frozen dataclass whose fields are the arguments of its notation."""

    def __repr__(self) -> str:
        """Return the notation, which reads back as an equal object; floats are float(…)."""
        return as_floats(str(self))

    def __str__(self) -> str:
        """Return the notation with all digits of every number, as certificates have it."""
        shown = []
        for field in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, field.name)
            if value is not None and value != field.default:
                shown.append(f"{field.name}={notation(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        """Return the notation and the law, for notebooks."""
        from dpassay.accountant.core.asking import describe_html

        return describe_html(self)

    def _repr_markdown_(self) -> str:
        """Return the same as Markdown."""
        from dpassay.accountant.core.asking import describe_markdown

        return describe_markdown(self)


def notation(value: object) -> str:
    """Print a field in the notation: nested lists in brackets, numbers exactly."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(notation(entry) for entry in value)}]"
    if isinstance(value, Adjacency):
        return repr(value.value)
    if isinstance(value, Fraction):
        return repr(ExactReal.of_rational(value))
    return str(value) if isinstance(value, Description) else repr(value)
