"""The same question to a named engine, for comparison; the functions of `profile` choose it.

Composition is adaptive throughout: an engine is asked about the product of the worst pairs, which
dominates releases that depend on each other's outputs (`accountant.mechanisms.composed`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from accountant._validate import probability
from accountant.adjacency import Adjacency, Direction
from accountant.composition.atoms import AtomicPair, applies
from accountant.composition.grid import GridPair
from accountant.composition.saddle_pair import SmoothPair
from accountant.errors import NotApplicableError, expected
from accountant.interval import Interval, enclose
from accountant.mechanism import Mechanism
from accountant.mechanisms.composed import Composed
from accountant.number import Number, exact
from accountant.pair import Pair
from accountant.profile import most

METHODS = ("auto", "exact", "saddle", "atoms", "grid")
APART = ("atoms", "grid")
WIDTH = Fraction(1, 10**4)


def delta(
    mechanism: Mechanism,
    epsilon: Number,
    *,
    method: str = "auto",
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    relative_width: Fraction = WIDTH,
) -> Interval:
    """Enclose δ(ε) by one engine.

    Parameters
    ----------
    mechanism
        Any mechanism; with methods "atoms" and "grid", a `Composed` is taken apart.
    method
        "exact" (a closed form or an exact sum, else refused), "saddle" (the contour integral of
        smooth losses, else refused), "atoms" (Fourier inversion for lists of losses, Laplace and
        Gaussian noise, else refused), "grid" (two discretised laws), or "auto" (what
        `accountant.profile.delta` takes).

    Raises
    ------
    NotApplicableError
        If the engine does not apply.
    UndecidedError
        If the width is not reached; the message says what was, and what more would take.
    """
    eps = exact(epsilon, "epsilon")
    pairs = pairs_of(mechanism, method, Adjacency.read(adjacency), direction)

    def value() -> arb:
        return most([pair.hockey_stick(eps) for pair in pairs])

    return enclose(value, relative_width=relative_width)


def epsilon(
    mechanism: Mechanism,
    delta: Number,
    *,
    method: str = "auto",
    adjacency: Adjacency | str | None = None,
    direction: Direction | None = None,
    relative_width: Fraction = WIDTH,
) -> Interval:
    """Enclose ε(δ), δ in (0, 1), by one engine; arguments and errors as for `delta`."""
    from accountant import profile

    target = probability("delta", delta)
    relation = Adjacency.read(adjacency)
    if method not in APART:
        pairs_of(mechanism, method, relation, direction)
        return profile.epsilon(
            mechanism,
            target,
            adjacency=relation,
            direction=direction,
            relative_width=relative_width,
        )
    if target.sign == 0 or target.rational == 1:
        raise expected("delta", delta, "in (0, 1)")
    found = []
    for pair in pairs_of(mechanism, method, relation, direction):
        assert isinstance(pair, (AtomicPair, GridPair))
        found.append(pair.inverse(target, relative_width))
    return Interval(max(f.lower for f in found), max(f.upper for f in found))


def pairs_of(
    mechanism: Mechanism,
    method: str,
    adjacency: Adjacency | None,
    direction: Direction | None = None,
) -> tuple[Pair, ...]:
    """Return the worst pairs in the form that an engine takes."""
    if method not in METHODS:
        raise expected("method", method, f"to be one of {', '.join(METHODS)}")
    pairs = mechanism.worst_case(adjacency).pairs(direction)
    if method == "auto":
        return pairs
    if method == "exact":
        if any(isinstance(pair, (AtomicPair, GridPair, SmoothPair)) for pair in pairs):
            raise NotApplicableError(
                "No exact formula for the product of these losses. Ask with method='grid', "
                "'atoms' where they are listed, or 'saddle' where all of them are smooth."
            )
        return pairs
    if method == "saddle":
        if not all(isinstance(pair, SmoothPair) for pair in pairs):
            raise NotApplicableError(
                "The contour integral is for compositions of several smooth losses, one of them "
                "subsampled. Ask with method='exact' or 'grid'."
            )
        return pairs
    parts = Composed(mechanism).parts()
    cases = [(part.worst_case(adjacency), count) for part, count in parts]

    def product(choose: Callable[[int], tuple[Pair, ...]]) -> AtomicPair | GridPair:
        factors: dict[Pair, int] = {}
        for i, (_, count) in enumerate(cases):
            (pair,) = choose(i)
            factors[pair] = factors.get(pair, 0) + count
        if method == "grid":
            return GridPair(tuple(factors.items()))
        if not applies(tuple(factors)):
            raise NotApplicableError(
                "Fourier inversion is for losses of few values, Laplace and Gaussian noise. Ask "
                "with method='grid', or 'saddle' where all of them are smooth."
            )
        return AtomicPair(tuple(factors.items()))

    both = [product(lambda i: cases[i][0].remove), product(lambda i: cases[i][0].add)]
    if direction is not None:
        return (both[0] if direction is Direction.REMOVE else both[1],)
    return tuple(dict.fromkeys(both))
