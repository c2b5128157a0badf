"""How a callable wants to be called: what is passed to which of its parameters.

The first parameter takes the dataset. Of the others one gets an argument if its name says what it
is for (`rng`, `generator`, `random_state`, `seed`; `size`, `n`, `n_samples`, `num_samples`), and a
number of runs only if it is required: a `size` with a default may be the size of one output. One
required parameter of another name takes the generator. All else keeps its default, so that a switch
such as `exact=False` is never thrown; and what is required and cannot be told is asked for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, final

import numpy as np

from dpassay.accountant.errors import InvalidInputError


class Role(Enum):
    """What an argument is."""

    SIZE = "size"
    GENERATOR = "numpy.random.Generator"
    STATE = "numpy.random.RandomState"
    SEED = "a fresh seed"


_NAMES = {
    "rng": Role.GENERATOR,
    "generator": Role.GENERATOR,
    "random_state": Role.STATE,
    "seed": Role.SEED,
    "size": Role.SIZE,
    "n": Role.SIZE,
    "n_samples": Role.SIZE,
    "num_samples": Role.SIZE,
}
_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_SEEDS = 1 << 32
"""Seeds that every library takes: 32 bits."""


@final
@dataclass(frozen=True)
class Binding:
    """The arguments after the dataset, each by its name; by position where that is empty."""

    arguments: tuple[tuple[str, Role], ...] = ()

    @property
    def takes_size(self) -> bool:
        """Whether one call is many runs."""
        return any(role is Role.SIZE for _, role in self.arguments)

    @property
    def takes_randomness(self) -> bool:
        """Whether the auditor chooses the randomness."""
        return any(role is not Role.SIZE for _, role in self.arguments)

    def call(
        self, function: Callable[..., Any], dataset: Any, size: int, rng: np.random.Generator
    ) -> Any:
        """Call the function."""
        given = [(name, _argument(role, size, rng)) for name, role in self.arguments]
        placed = [value for name, value in given if not name]
        return function(dataset, *placed, **{name: value for name, value in given if name})

    def described(self, name: str) -> str:
        """Say how the function of a name is called."""
        shown = (f"{own}={role.value}" if own else role.value for own, role in self.arguments)
        often = "once a block of runs" if self.takes_size else "once a run"
        own = "" if self.takes_randomness else ", with randomness of its own"
        return f"{name}({', '.join(['dataset', *shown])}), {often}{own}"


def _argument(role: Role, size: int, rng: np.random.Generator) -> Any:
    match role:
        case Role.SIZE:
            return size
        case Role.GENERATOR:
            return rng
        case Role.STATE:
            return np.random.RandomState(int(rng.integers(_SEEDS)))
    return int(rng.integers(_SEEDS))


RUN = Binding((("", Role.GENERATOR),))
"""mechanism(dataset, rng)."""
BLOCK = Binding((("", Role.SIZE), ("", Role.GENERATOR)))
"""mechanism(dataset, size, rng)."""


def binding(function: Callable[..., Any], name: str) -> Binding:
    """Tell by its parameters how a callable wants to be called.

    Raises
    ------
    InvalidInputError
        If it takes no dataset, needs an argument that cannot be told, or gives no output at once.
    """
    _require_outputs(function, name)
    try:
        known = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a built-in that says nothing of itself
        return Binding()
    if not known or known[0].kind not in (*_PLACED, inspect.Parameter.VAR_POSITIONAL):
        raise InvalidInputError(
            f"Expected {name} to take the dataset first, as in {name}(dataset, rng)."
        )
    roles: list[tuple[inspect.Parameter, Role]] = []
    unknown: list[inspect.Parameter] = []
    for parameter in known[1:]:
        required = parameter.default is parameter.empty and parameter.kind not in _VARIABLE
        role = None if parameter.kind in _VARIABLE else _NAMES.get(parameter.name)
        if role is None:
            unknown += [parameter] * required
        elif required or (role is not Role.SIZE and not _has_randomness(roles)):
            roles.append((parameter, role))
    if len(unknown) == 1 and not _has_randomness(roles) and unknown[0].kind in _PLACED:
        roles.append((unknown.pop(), Role.GENERATOR))
    if unknown:
        needed = " and ".join(parameter.name for parameter in unknown)
        fixed = ", ".join(f"{parameter.name}=…" for parameter in unknown)
        raise InvalidInputError(
            f"{name} needs {needed}, which the audit cannot know. Fix what is not random, "
            f"functools.partial({name}, {fixed}), and call the others size and rng."
        )
    roles.sort(key=lambda entry: known.index(entry[0]))
    return Binding(
        tuple(("" if p.kind is p.POSITIONAL_ONLY else p.name, role) for p, role in roles)
    )


def _has_randomness(roles: list[tuple[inspect.Parameter, Role]]) -> bool:
    return any(role is not Role.SIZE for _, role in roles)


def _require_outputs(function: Callable[..., Any], name: str) -> None:
    """Refuse what returns no output but a promise of one."""
    for called in (function, getattr(function, "func", None), type(function).__call__):
        if inspect.iscoroutinefunction(called):
            raise InvalidInputError(
                f"{name} is a coroutine function. Audit what it returns: "
                f"lambda dataset, rng: asyncio.run({name}(dataset, rng))."
            )
        if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
            raise InvalidInputError(
                f"{name} is a generator function. Audit what it yields: "
                f"lambda dataset, rng: list({name}(dataset, rng))."
            )
