"""The engines of a composition by name: "auto" lets the losses choose, a name insists on one.

Composition is adaptive throughout: an engine is asked about the product of the worst pairs, which
dominates releases that depend on each other's outputs (`accountant.mechanisms.composed`).

- "exact": a closed form or an exact sum;
- "saddle": the contour integral of Gaussian losses, subsampled or not, and of many others with
  a density, Laplace noise and lists beside them; and sums over the circle for lattices;
- "lists": sums over pairs of partial sums, for lists of losses;
- "atoms": Fourier inversion for lists of losses, (subsampled) Laplace noise and mixtures of normal
  laws;
- "pieces": polynomials between breaks, for a few releases of one subsampled Laplace noise;
- "grid": two discretised laws, one above and one below, for all losses.
"""

from __future__ import annotations

from collections.abc import Callable

from accountant.adjacency import Adjacency, Direction
from accountant.composition.apart import apart
from accountant.composition.atoms import AtomicPair, applies
from accountant.composition.circle import CirclePair
from accountant.composition.circle import applies as on_circle
from accountant.composition.contour import ContourPair
from accountant.composition.grid import GridPair
from accountant.composition.halved import HalvedPair
from accountant.composition.halved import applies as are_listed
from accountant.composition.heavy import HeavyPair
from accountant.composition.joint import Factor
from accountant.composition.ladder import LadderPair
from accountant.composition.mixture import MixedPair
from accountant.composition.paired import PairedPair
from accountant.composition.paired import applies as are_few
from accountant.composition.pieces import PiecewisePair
from accountant.composition.pieces import applies as in_pieces
from accountant.composition.saddle_pair import SmoothPair
from accountant.composition.saddle_pair import applies as on_contour
from accountant.errors import InvalidInputError, NotApplicableError, suggestion
from accountant.mechanism import Mechanism
from accountant.mechanisms.composed import Composed
from accountant.pair import Pair

METHODS = ("auto", "exact", "saddle", "lists", "atoms", "pieces", "grid")
_FOR = {
    "exact": "A closed form or an exact sum is not known for these losses.",
    "saddle": "Contour integrals are for (subsampled) Gaussian noise, Laplace noise and lattices.",
    "lists": "Sums over pairs of partial sums are for lists of losses.",
    "atoms": "Fourier inversion is for lists of losses, Laplace noise and mixtures of normal laws.",
    "pieces": "Polynomials are for a few releases of one subsampled Laplace noise.",
    "grid": "The grid has two laws of one product of worst pairs.",
}


def pairs_of(
    mechanism: Mechanism,
    method: str,
    adjacency: Adjacency | None,
    direction: Direction | None = None,
) -> tuple[Pair, ...]:
    """Return the worst pairs in the form that an engine takes.

    Raises
    ------
    InvalidInputError
        If there is no engine of that name.
    NotApplicableError
        If the engine does not apply; the message says which ones do.
    """
    if method not in METHODS:
        raise InvalidInputError(
            f"Expected method={method!r} to be one of {list(METHODS)}. "
            f"{suggestion(method, METHODS)}".strip()
        )
    found = _pairs(mechanism, method, adjacency, direction)
    if found is None:
        others = [f"'{name}'" for name in applicable(mechanism, adjacency)]
        raise NotApplicableError(f"{_FOR[method]} Ask with method={' or '.join(others)}.")
    return found


def applicable(mechanism: Mechanism, adjacency: Adjacency | None) -> list[str]:
    """Return the names of the engines that apply, "auto" first."""
    return [name for name in METHODS if _pairs(mechanism, name, adjacency, None) is not None]


def _pairs(
    mechanism: Mechanism, method: str, adjacency: Adjacency | None, direction: Direction | None
) -> tuple[Pair, ...] | None:
    """Return the same, None where the engine does not apply."""
    pairs = mechanism.worst_case(adjacency).pairs(direction)
    if method == "auto":
        return pairs
    if method == "exact":
        return None if any(map(_is_numerical, pairs)) else pairs
    engine = _ENGINES[method]
    cases = [(part.worst_case(adjacency), n) for part, n in Composed(mechanism).parts()]
    remove = engine(apart([(case.remove[0], count) for case, count in cases]))
    add = engine(apart([(case.add[0], count) for case, count in cases]))
    if remove is None or add is None:
        return None
    both = {Direction.REMOVE: (remove,), Direction.ADD: (add,)}
    return both[direction] if direction else tuple(dict.fromkeys((remove, add)))


def _is_numerical(pair: Pair) -> bool:
    """Whether a width is reached, not any width."""
    if isinstance(pair, MixedPair):
        return _is_numerical(pair.first)
    return isinstance(
        pair, (AtomicPair, GridPair, HalvedPair, HeavyPair, LadderPair, PiecewisePair, ContourPair)
    )


def _by_contour(factors: tuple[Factor, ...]) -> Pair | None:
    pairs = tuple(pair for pair, _ in factors)
    if on_contour(pairs):
        return SmoothPair(factors)
    return CirclePair(factors) if on_circle(pairs) else None


def _by_inversion(factors: tuple[Factor, ...]) -> Pair | None:
    return AtomicPair(factors) if applies(tuple(pair for pair, _ in factors)) else None


def _by_lists(factors: tuple[Factor, ...]) -> Pair | None:
    if not are_listed(tuple(pair for pair, _ in factors)):
        return None
    halved = HalvedPair(factors)
    return LadderPair((PairedPair(factors), halved)) if are_few(factors) else halved


def _by_pieces(factors: tuple[Factor, ...]) -> Pair | None:
    return PiecewisePair(factors) if in_pieces(factors) else None


_ENGINES: dict[str, Callable[[tuple[Factor, ...]], Pair | None]] = {
    "saddle": _by_contour,
    "lists": _by_lists,
    "atoms": _by_inversion,
    "pieces": _by_pieces,
    "grid": GridPair,
}
