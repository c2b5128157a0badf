"""What a case of the zoo is: a mechanism, its neighbours, its claim, and what is true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, final

import numpy as np

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.audit.guarantees import Claim

EPSILON = 1.0
"""What most cases claim."""
Block: TypeAlias = Callable[[Any, int, np.random.Generator], Any]
"""Draws the outputs of so many runs on a dataset."""


@final
@dataclass(frozen=True)
class Case:
    """A mechanism with a claim that is true (a control) or false (a broken mechanism)."""

    name: str
    draw: Block
    pairs: tuple[tuple[Any, Any], ...]
    """Neighbouring datasets; on the first pair a broken mechanism breaks its claim."""
    claim: Claim
    broken: bool
    true_epsilon: float | None
    """The least ε for which the claim, with its δ, would be true on these pairs (∞ for none);
    for a control a value at most that of the claim. None where there is no closed form."""
    source: str
    samples: int = 20_000
    """Runs a side with which the audit is to find it."""

    @property
    def description(self) -> str:
        """What it does, and what is wrong with it."""
        return (self.draw.__doc__ or "").strip()

    def __call__(self, dataset: Any, rng: np.random.Generator) -> Any:
        """Run it once."""
        return self.draw(dataset, 1, rng)[0]

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Any:
        """Run it `size` times."""
        return self.draw(dataset, size, rng)


_CASES: dict[str, Case] = {}


def cases(*, broken: bool | None = None) -> list[Case]:
    """Return all cases, or those that are broken or not."""
    return [case for case in _CASES.values() if broken is None or case.broken == broken]


def case(name: str) -> Case:
    """Return a case by its name."""
    return _CASES[name]


def broken(
    name: str,
    claim: Claim,
    *pairs: tuple[Any, Any],
    true: float | None,
    source: str,
    samples: int = 20_000,
) -> Callable[[Block], Block]:
    """Register a mechanism whose claim is false; `true` is the ε that it reaches."""
    return _register(Case(name, _unset, pairs, claim, True, true, source, samples))


def control(
    name: str, claim: Claim, *pairs: tuple[Any, Any], true: float | None = None, source: str
) -> Callable[[Block], Block]:
    """Register a mechanism whose claim is true."""
    return _register(Case(name, _unset, pairs, claim, False, true, source))


def _register(described: Case) -> Callable[[Block], Block]:
    def note(draw: Block) -> Block:
        if described.name in _CASES:
            raise InvalidInputError(f"Two cases are named {described.name!r}.")
        _CASES[described.name] = replace(described, draw=draw)
        return draw

    return note


def _unset(dataset: Any, size: int, rng: np.random.Generator) -> Any:
    raise NotImplementedError
