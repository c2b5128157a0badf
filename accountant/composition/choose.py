"""Which engine answers for a product: one table, from the families of losses to engines.

| families in the product | engines in order |
|---|---|
| finite and discrete Laplace laws, whose sums are few | `exact.convolution`: the law of the sum |
| the same on one lattice, or discrete Gaussian laws of a small parameter | `exact.circle` |
| discrete Gaussian laws of one parameter and shift | `pairs.discrete_gaussian_product` |
| Laplace laws whose distances have rational ratios | `exact.laplace_product` |
| random allocations, and Gaussian laws with them | `allocations`: one sum on a line |
| Gaussian laws, samples of them, and one of the former | `fourier.pair` |
| one of the former, or any single pair, and finite laws | `conditional`: a sum over these |
| Laplace noise or bounded losses, and discrete Gaussian noise | `conditional`, over the latter |
| lists of losses, few draws | `exact.paired`: sums over pairs of partial sums |
| rank-one Gaussian noise, and all that is composed with it | `heavy`: two quick bounds |
| few and rare Gaussian samples, to widths down to 1e-7 | `grid`, then `fourier.pair` |
| everything else, and what the former refuse | `grid`: two discretised laws that bracket it |

Gaussian laws compose by their μ alone; the mechanism adds those up before it comes here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar, final

from flint import arb

from accountant.composition.allocations import together
from accountant.composition.fourier import pair as fourier
from accountant.composition.fourier.pair import SmoothPair, transform
from accountant.composition.invert import inverse_by_values
from accountant.composition.joint import Factor, JointPair, UnsuitedError, apart
from accountant.composition.losses.finite import finite
from accountant.core.pair import Pair, Tails
from accountant.errors import UndecidedError
from accountant.mechanisms.additive.laplace import LaplacePair
from accountant.numbers.exact import ExactReal
from accountant.numbers.interval import Interval, asked_width
from accountant.pairs.discrete_gaussian import DiscreteGaussianPair
from accountant.pairs.discrete_gaussian_product import DiscreteGaussianProductPair, is_long
from accountant.pairs.finite import FinitePair

if TYPE_CHECKING:
    from accountant.composition.conditional import MixedPair

METHODS = ("auto", "exact", "fourier", "grid")
"""Names of engines that a question may insist on; "auto" lets the losses choose."""
RENAMED = {"saddle": "fourier", "atoms": "grid", "pieces": "grid", "lists": "exact"}
"""Former names of engines, and what they are called now."""
FOR = {
    "exact": "A closed form or an exact sum is not known for these losses.",
    "fourier": "Fourier inversion is for (subsampled) Gaussian noise, Laplace noise, lists of "
    "losses composed with them, and lattices.",
    "grid": "The grid has two laws of one product of worst pairs.",
}
"""Why an engine may not apply."""
MAX_LAPLACE = 100_000
"""Most Laplace coordinates whose distances are listed."""
FEW = 80
"""Releases up to which a sum over integers is faster than inversion."""
T = TypeVar("T")

LEAST_WIDTH = Fraction(1, 10**12)
"""No engine of sums in floats reaches less."""
_BETTER = 1e-4
"""Relative width of a refusal from which on an engine that hardly ever does better is not asked."""


def product(factors: Sequence[Factor]) -> Pair:
    """Return the pair (⊗ P_i^{k_i}, ⊗ Q_i^{k_i}).

    Exactly where the losses have an exact sum that is short; else for an engine that reaches a
    width.
    """
    found = _exactly(apart(factors, coordinates=False))
    if found is None:
        single = apart(factors)
        found = _exactly(single) or _numerically(tuple(single))
    return found.with_grid_first() if isinstance(found, SmoothPair) else found


def engine(method: str, factors: tuple[Factor, ...]) -> Pair | None:
    """Return the product for the engine of a name; None where it does not apply."""
    pairs = tuple(pair for pair, _ in factors)
    if method == "grid":
        return _on_grid(factors)
    if method == "exact":
        return _paired(factors)
    return SmoothPair(factors) if fourier.applies(pairs) else _on_circle(factors)


def is_numerical(pair: Pair) -> bool:
    """Whether an engine answers to a width that it reaches, not to any width."""
    return isinstance(pair, JointPair) and pair.is_numerical


def _exactly(factors: Sequence[Factor]) -> Pair | None:
    """Return a pair with exact sums, or contours of any precision; None where none is known."""
    laplace: list[tuple[LaplacePair, int]] = []
    integers: dict[DiscreteGaussianPair, int] = {}
    listed: dict[FinitePair, int] = {}
    others: list[Factor] = []
    for pair, count in factors:
        small = finite(pair)
        if small is not None:
            listed[small] = listed.get(small, 0) + count
        elif isinstance(pair, LaplacePair):
            laplace.append((pair, count))
        elif isinstance(pair, DiscreteGaussianPair):
            integers[pair] = integers.get(pair, 0) + count
        else:
            others.append((pair, count))
    others = _smooth(together(others))
    kinds = sum(count for _, count in others) + len(integers) + bool(laplace)
    if kinds > 1 or _coordinates(laplace) > MAX_LAPLACE or not _commensurable(laplace):
        return None
    for integer, count in integers.items():
        if is_long(integer.parameter, count):
            return None
        whole = _discrete_gaussians(integer, count)
        if whole is None:
            return None
        others.append((whole, 1))
    if laplace:
        others.append((_laplace(laplace), 1))
    if not listed:
        return others[0][0]
    if not others and len(listed) == 1 and sum(listed.values()) == 1:
        return next(iter(listed))
    from accountant.composition.conditional import MAX_VALUES as MAX_MIXED
    from accountant.composition.conditional import MixedPair
    from accountant.composition.exact.convolution import MAX_VALUES, ConvolvedPair

    sums = ConvolvedPair(tuple(listed.items()))
    if sums.size() > (MAX_MIXED if others else MAX_VALUES):
        return None
    return MixedPair(others[0][0], sums) if others else sums


def _numerically(factors: tuple[Factor, ...]) -> Pair:
    """Return the product for engines that reach a width, not any width."""
    each = tuple(pair for pair, _ in factors)
    rungs: list[JointPair] = []
    if fourier.applies(each):
        rungs.append(SmoothPair(factors))
    elif (on_circle := _on_circle(factors)) is not None:
        rungs.append(on_circle)
    integer = _with_integers(factors)
    few = sum(count for _, count in factors) <= FEW
    if integer is not None and few:
        rungs.append(integer)
    if (in_pairs := _paired(factors)) is not None:
        rungs.append(in_pairs)
    rungs.append(_last(factors))
    if integer is not None and not few:
        rungs.append(integer)
    return rungs[0] if len(rungs) == 1 else LadderPair(tuple(rungs))


def _last(factors: tuple[Factor, ...]) -> JointPair:
    """Return the product for the engine that applies to all losses."""
    from accountant.composition import heavy

    is_heavy = heavy.applies(tuple(pair for pair, _ in factors))
    return heavy.HeavyPair(factors) if is_heavy else _on_grid(factors)


def _on_grid(factors: tuple[Factor, ...]) -> JointPair:
    from accountant.composition.grid.pair import GridPair

    return GridPair(factors)


def _on_circle(factors: tuple[Factor, ...]) -> JointPair | None:
    """Return the product for sums over the circle, None where it is on no lattice."""
    from accountant.composition.exact import circle

    applies = circle.applies(tuple(pair for pair, _ in factors))
    return circle.CirclePair(factors) if applies else None


def _paired(factors: tuple[Factor, ...]) -> JointPair | None:
    """Return the product for sums over pairs of lists, None where there are none, or long ones."""
    from accountant.composition.exact import paired

    return paired.PairedPair(factors) if paired.applies(factors) else None


def _with_integers(factors: tuple[Factor, ...]) -> MixedPair | None:
    """Return discrete Gaussian noise of one kind composed with Laplace noise, or bounded losses."""
    if not any(isinstance(pair, DiscreteGaussianPair) for pair, _ in factors):
        return None
    from accountant.composition.conditional import IntegerSums, MixedPair, meets_few, split
    from accountant.composition.grid.pair import GridPair

    found = split(factors)
    if found is None:
        return None
    others, (integer, count) = found
    assert isinstance(integer, DiscreteGaussianPair)
    sums = IntegerSums(integer, count)
    if all(isinstance(pair, LaplacePair) for pair, _ in others):
        first = _exactly(others)
        return None if first is None else MixedPair(first, sums)
    first = _numerically(tuple(others))
    quick = not isinstance(first, GridPair) and meets_few(first, integer)
    return MixedPair(first, sums) if quick else None


def _coordinates(factors: Sequence[tuple[LaplacePair, int]]) -> int:
    return sum(count for _, count in factors)


def _commensurable(factors: Sequence[tuple[LaplacePair, int]]) -> bool:
    """Whether all distances have rational ratios."""
    sizes = [pair.distance for pair, _ in factors]
    return all((size / sizes[0]).rational is not None for size in sizes)


def _smooth(factors: list[Factor]) -> list[Factor]:
    """Put smooth losses together, where there are several."""
    smooth = [factor for factor in factors if transform(factor[0]) is not None]
    if sum(count for _, count in smooth) < 2:
        return factors
    rest = [factor for factor in factors if transform(factor[0]) is None]
    return [(SmoothPair(tuple(smooth)), 1), *rest]


def _laplace(factors: Sequence[tuple[LaplacePair, int]]) -> Pair:
    if len(factors) == 1 and factors[0][1] == 1:
        return factors[0][0]
    from accountant.composition.exact.laplace_product import LaplaceProductPair

    distances: Counter[ExactReal] = Counter()
    for pair, count in factors:
        distances[pair.distance] += count
    return LaplaceProductPair.of_counts(distances)


def _discrete_gaussians(pair: DiscreteGaussianPair, count: int) -> Pair | None:
    """Return the product; None for several of an irrational parameter."""
    if count == 1:
        return pair
    if pair.parameter.rational is None:
        return None
    return DiscreteGaussianProductPair(pair.parameter.rational, count, pair.shift, 1, 0)


@final
@dataclass(frozen=True)
class LadderPair(JointPair):
    """A product in the forms that its engines take, the best first."""

    rungs: tuple[JointPair, ...]

    @property
    def is_numerical(self) -> bool:
        """Return True: the last rung is one that reaches a width."""
        return True

    @property
    def factors(self) -> Sequence[Factor]:
        """The pairs and their counts."""
        return self.rungs[0].factors

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball around H(ε). Raises UndecidedError where every engine does."""
        asked = asked_width.get()
        return self._first(lambda rung: rung.hockey_stick(epsilon), asked or Fraction(1))

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval | None:
        """Enclose ε(δ). Raises UndecidedError where every engine does."""

        def ask(rung: JointPair) -> Interval:
            known = rung.inverse(delta, relative_width)
            return known or inverse_by_values([rung], delta, relative_width)

        return self._first(ask, relative_width)

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails. Raises UndecidedError where every engine does."""
        return self._first(lambda rung: rung.tails(epsilon), asked_width.get() or Fraction(1))

    def estimate_log_delta(self, epsilon: float) -> float | None:
        """Return what the best engine estimates."""
        return self.rungs[0].estimate_log_delta(epsilon)

    def estimate_epsilon(self, log_delta: float) -> float | None:
        """Return what the best engine estimates."""
        return self.rungs[0].estimate_epsilon(log_delta)

    def bound(self, epsilon: ExactReal) -> arb:
        """Return the bound of the best engine."""
        return self.rungs[0].bound(epsilon)

    def _first(self, ask: Callable[[JointPair], T], relative_width: Fraction) -> T:
        """Return the first answer, or raise the refusal that reached the narrowest enclosure.

        Of several that say of none, the last one. A rung is not asked for a width that it hardly
        ever has, after minutes, where another one has reached more than its first refusal says.
        """
        refusals: list[UndecidedError] = []
        for rung in self.rungs:
            hopeless = relative_width < rung.seldom_below
            if hopeless and any(refusal.reached < _BETTER for refusal in refusals):
                break
            try:
                return ask(rung)
            except UndecidedError as refusal:
                refusals.append(refusal)
            if relative_width < LEAST_WIDTH and not isinstance(refusals[-1], UnsuitedError):
                break
        known = [refusal for refusal in refusals if not isinstance(refusal, UnsuitedError)]
        raise min(reversed(known or refusals), key=lambda refusal: refusal.reached)

    def reverse(self) -> LadderPair:
        """Return the product of the reversed pairs."""
        turned = [rung.reverse() for rung in self.rungs]
        return LadderPair(tuple(rung for rung in turned if isinstance(rung, JointPair)))
