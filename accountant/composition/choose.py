"""The choice of the engine that composes a product, given the families of its losses.

| families in the product | engines in order |
|---|---|
| *exact* | |
| finite and discrete Laplace laws with short sums | `exact.convolution`; first `blur` if long |
| discrete Gaussian laws of one parameter and shift | `pairs.discrete` |
| Laplace laws whose distances have rational ratios | `exact.laplace_product`; `blur` if many |
| exact sums, or any single pair, with finite laws | `Conditional`: a sum over the finite losses |
| *Fourier line* | |
| random allocations, and Gaussian laws with them | `pairs.allocation` |
| Gaussian laws and samples of them | `fourier.engine` |
| samples of Gaussian laws with Laplace laws, if the transform decays soon | `fourier.engine` |
| *lattice* | |
| Laplace, Gaussian and discrete Gaussian laws and short lists | `blur`, then `lattice` |
| few and rare Gaussian samples, to widths down to 1e-7 | `lattice`, then `fourier.engine` |
| everything else, and what other engines refuse | `lattice`: two laws that bracket it |
| rank-one Gaussian noise composed with anything | none: it is refused |

Gaussian laws compose by their μ alone; the mechanism combines them before they get here.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from flint import arb

from dpassay.accountant.composition import blur, lattice
from dpassay.accountant.composition.blur import BLURRED
from dpassay.accountant.composition.exact import convolution
from dpassay.accountant.composition.exact.convolution import Value
from dpassay.accountant.composition.fourier import engine as fourier
from dpassay.accountant.composition.fourier.engine import FOURIER
from dpassay.accountant.composition.fourier.measure import has_rare_jumps
from dpassay.accountant.composition.lattice import FINEST_WIDTH, GRID, Grid
from dpassay.accountant.composition.losses.transform import GaussianTransform
from dpassay.accountant.composition.product import (
    Engine,
    Factor,
    Product,
    T,
    exact_sum,
    expanded,
    is_numerical,
)
from dpassay.accountant.core.pair import Pair, Tails, refined
from dpassay.accountant.errors import NotApplicableError, UndecidedError
from dpassay.accountant.mechanisms.additive.laplace import LaplacePair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import COMPOSED_WIDTH, GRID_WIDTH, Interval, ball
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.allocation import RandomAllocationPair
from dpassay.accountant.pairs.discrete import DiscreteGaussianPair, is_long
from dpassay.accountant.pairs.finite import FinitePair, finite
from dpassay.accountant.pairs.invert import (
    ends,
    hockey_stick_at,
    inverse_by_values,
    rough_root,
    tails_at,
)
from dpassay.accountant.pairs.subsampled import SubsampledPair

METHODS = ("auto", "exact", "fourier", "grid")
"""Names of engines that a caller may require; with "auto" the losses determine the engine."""
RENAMED = {"saddle": "fourier", "atoms": "grid", "pieces": "grid", "lists": "exact"}
"""Former names of engines and their present names."""
FOR = {
    "exact": "A closed form or an exact sum is not known for these losses.",
    "fourier": "Fourier inversion is for (subsampled) Gaussian noise, alone or with Laplace noise.",
    "grid": "The grid has two laws of one product of worst pairs.",
}
"""The text of the error if an engine does not apply."""
MAX_LAPLACE = 100_000
"""Largest number of Laplace coordinates whose distances are listed."""
MOST_FEW, MOST_OF_SEVERAL, RARE = 24, 100, 2.0
"""Limits up to which a grid is faster than inversion: the number of samples if all are of one kind,
if they are of several kinds, and the mean number of draws."""
LEAST_NOISE = 1e-3
"""Share of the variance from which Gaussian noise shortens a line in spite of atoms."""
FEW_DRAWS = 0.003
"""Mean number of draws times their probability, up to which nine digits can take seconds, instead
of the 0.2 s that six digits take at most."""
QUICK_WIDTH = Fraction(1, 10**7)
"""The finest relative width that is requested of that grid."""
MOST_CELLS, MOST_POINTS = 1 << 25, 1 << 20
"""Limits on the grid points of all factors together, about two seconds; and of a single factor,
about a quarter of a second. With n factors the latter is n times as large, since contours take
longer too."""
LEAST_WIDTH = Fraction(1, 10**12)
"""No engine with float sums reaches a smaller relative width."""
_SMALL = -0.5
"""Largest ln δ for which ε is estimated: near δ(0) of few releases, ε is far more sensitive than δ.
"""
_ROUGH_WIDTH = Fraction(1, 10**8)
"""Relative width of the values for an estimate: H to 1e-8 gives ε to about as much."""
_CLOSE = 1 / 64
"""Last step of an estimate, divided by the root of the width: the next would be about its square.
"""
_ROUGH_BITS = 64
"""Precision, in bits, of a logarithm that is rounded to a float."""
_BETTER = 1e-4
"""If a refusal reached a smaller relative width than this, no grid is tried: it would hardly ever
do better."""


def product(factors: Sequence[Factor]) -> Pair:
    """Return the pair (⊗ P_i^{k_i}, ⊗ Q_i^{k_i}).

    It has an exact sum if there is a short one; else it has engines that reach a relative width.
    """
    found = _exactly(expanded(factors, coordinates=False))
    if found is None:
        single = expanded(factors)
        found = _exactly(single) or _numerically(tuple(single))
    if isinstance(found, Product) and isinstance(found.engine, Ladder) and _are_few(found):
        return found.asked(Ladder(found.engine.rungs, quick=_quick(found)))
    return found


def engine(method: str, factors: tuple[Factor, ...]) -> Pair | None:
    """Return the product with the engine of this name, or None if the engine does not apply."""
    if method == "grid":
        return Product(factors, GRID)
    if method == "fourier" and fourier.applies([pair for pair, _ in factors]):
        return _on_lines(factors)
    return None


def smooth(pair: Pair) -> Product | None:
    """Return a product of smooth losses for contour integrals, or None for any other pair."""
    if not (isinstance(pair, Product) and isinstance(pair.engine, Ladder)):
        return None
    first = pair.engine.rungs[0]
    return first if first.engine == FOURIER else None


def best_of(pair: Pair, width: Fraction, ask: Callable[[Pair], T]) -> T:
    """Return the first answer of a pair's engines for a width, or raise the best refusal."""
    return pair.engine.first_answer(pair, ask, width) if isinstance(pair, Product) else ask(pair)


def _exactly(factors: Sequence[Factor]) -> Pair | None:
    """Return a pair with exact sums, or contours of any precision, or None if none is known."""
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
        elif isinstance(pair, DiscreteGaussianPair) and pair.is_one:
            integers[pair] = integers.get(pair, 0) + count
        else:
            others.append((pair, count))
    if any(isinstance(pair, RandomAllocationPair) for pair, _ in others):
        from dpassay.accountant.composition.allocations import together

        others = together(others)
    others = _smooth(others)
    kinds = sum(count for _, count in others) + len(integers) + bool(laplace)
    if kinds > 1 or sum(count for _, count in laplace) > MAX_LAPLACE or not _commensurable(laplace):
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
    if others and isinstance(others[0][0], Product) and isinstance(others[0][0].engine, Ladder):
        return None  # a contour for all losses takes no longer
    if not others and len(listed) == 1 and sum(listed.values()) == 1:
        return next(iter(listed))
    sums = tuple(listed.items())
    most = MAX_VALUES if others else convolution.CONVOLUTION_MAX_VALUES
    size = convolution.size(sums)
    if size > most:
        return None
    if others:
        return Product((others[0], *sums), CONDITIONAL)
    whole = Product(sums, convolution.SUMS)
    if size > convolution.FEW_VALUES and blur.applies(whole.pairs):
        return whole.asked(Ladder((whole,), whole.asked(BLURRED)))  # sum if `blur` fails
    return whole


def _numerically(factors: tuple[Factor, ...]) -> Product:
    """Return the product with engines that reach some relative widths, but not every one."""
    from dpassay.accountant.pairs.rank_one import RankOnePair

    pairs, last = [pair for pair, _ in factors], Product(factors, GRID)
    for pair in pairs:
        if isinstance(pair.inner if isinstance(pair, SubsampledPair) else pair, RankOnePair):
            raise NotApplicableError(
                "Releases with rank-one Gaussian noise are not composed: the tails of their losses "
                "are too heavy for every engine. Ask about one release."
            )
    if blur.applies(pairs):
        return Product(factors, Ladder((last,), Product(factors, BLURRED)))
    if fourier.applies(pairs) and _falls(lines := _on_lines(factors)):
        return lines
    return last


def _on_lines(factors: tuple[Factor, ...]) -> Product:
    """Return a product of smooth losses with contours, and with a grid if they are too long."""
    return Product(factors, Ladder((Product(factors, FOURIER), Product(factors, GRID))))


def _falls(pair: Product) -> bool:
    """Whether Gaussian noise or samples make the transform decay soon, in spite of atoms."""
    if (drawn := _drawn(pair)[0]) < math.inf:
        return round(drawn, 3) >= RARE
    parts = [(part.estimate().cumulants(0.0)[2], part, n) for part, n in FOURIER.loss(pair).factors]
    noise = sum(n * variance for variance, part, n in parts if isinstance(part, GaussianTransform))
    return noise >= LEAST_NOISE * sum(n * variance for variance, _, n in parts)


def _are_few(pair: Product) -> bool:
    """Whether all factors are few, rare samples, whose transforms decay slowly."""
    most = MOST_FEW if len(pair.factors) == 1 else MOST_OF_SEVERAL
    return _drawn(pair)[0] <= RARE and sum(n for _, n in pair.factors) <= most


def _drawn(pair: Product) -> tuple[float, float]:
    """Return the mean number of samples with the record, and the largest sampling probability.

    The mean is infinite unless all factors are samples that contours apply to, or Laplace noise.
    """
    samples = [(each, n) for each, n in pair.factors if isinstance(each, SubsampledPair)]
    laplace = sum(isinstance(each, LaplacePair) for each in pair.pairs)
    if smooth(pair) is None or len(samples) + laplace < len(pair.factors):
        return math.inf, 1.0
    shares = [(float(each.sampling_prob.ball().mid()), n) for each, n in samples]
    return sum(n * p for p, n in shares), max(p for p, _ in shares)


def _quick(pair: Product) -> Product:
    """Return the product with a grid that takes about two seconds."""
    kinds = len(pair.factors)
    most = min(MOST_CELLS // kinds, MOST_POINTS * kinds)
    return pair.asked(Grid(1 << (most.bit_length() - 1)))


def _commensurable(factors: Sequence[tuple[LaplacePair, int]]) -> bool:
    """Whether all ratios of distances are rational."""
    sizes = [pair.distance for pair, _ in factors]
    return all((size / sizes[0]).rational is not None for size in sizes)


def _smooth(factors: list[Factor]) -> list[Factor]:
    """Combine the smooth losses into one factor if there are several."""
    known, rest = list[Factor](), list[Factor]()
    for factor in factors:
        (known if fourier.applies([factor[0]]) else rest).append(factor)
    if sum(count for _, count in known) < 2:
        return factors
    return [(_on_lines(tuple(known)), 1), *rest]


def _laplace(factors: Sequence[tuple[LaplacePair, int]]) -> Pair:
    if len(factors) == 1 and factors[0][1] == 1:
        return factors[0][0]
    from dpassay.accountant.composition.exact.laplace_product import of_counts

    distances: Counter[ExactReal] = Counter()
    for pair, count in factors:
        distances[pair.distance] += count
    return of_counts(distances)


def _discrete_gaussians(pair: DiscreteGaussianPair, count: int) -> Pair | None:
    """Return the product, or None for several discrete Gaussians of an irrational parameter."""
    if count == 1:
        return pair
    known = pair.parameter.rational is not None
    return DiscreteGaussianPair(pair.parameter, pair.shift, count) if known else None


@final
@dataclass(frozen=True)
class Ladder(Engine):
    """An engine that tries several engines in order, perhaps after a grid of limited cost.

    Each rung is tried if those before it refuse. For a width that grids hardly ever reach, even in
    minutes, a grid is not tried if another rung came closer than a grid would.
    """

    rungs: tuple[Product, ...]
    quick: Product | None = None
    """The product to try before all rungs, for instance a grid for widths down to `QUICK_WIDTH`."""

    on_contours = numerical = True

    def width(self, product: Product) -> Fraction:
        """Return the relative width that is reached within about 0.2 s."""
        if self.quick is None:
            mean, largest = _drawn(product)
            return GRID_WIDTH if mean * largest <= FEW_DRAWS else super().width(product)
        return self.quick.engine.width(self.quick)

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return a ball around H(ε). Raises UndecidedError if every engine does."""
        asked = product.relative_width

        def ask(rung: Product) -> arb:
            fine = asked is not None and asked < FINEST_WIDTH
            if fine and isinstance(rung.engine, Grid) and smooth(product) is not None:
                lattice.refuse_fine_width(rung, epsilon)
                rung = self.quick or rung
            return rung.to_width(asked).hockey_stick(epsilon)

        return self.ask(ask, asked)

    def inverse(
        self, product: Product, delta: ExactReal, relative_width: Fraction
    ) -> Interval | None:
        """Enclose ε(δ); None if values are as fast. Raises UndecidedError if all engines do."""
        if smooth(product) is not None:
            quick = self.quick_for(relative_width)
            if quick is not None and isinstance(quick.engine, Grid):
                start = self.rungs[0].known.epsilon(_log(delta))
                with contextlib.suppress(UndecidedError):
                    return quick.engine.inverse(quick, delta, relative_width, start)
            if self._has_no_estimate(product, delta):
                try:
                    return self._by_grid(delta, relative_width)
                except UndecidedError as refusal:
                    if refusal.interval is not None:
                        raise
            return None

        def ask(rung: Product) -> Interval:
            known = rung.known.inverse(delta, relative_width)
            return known or inverse_by_values([rung], delta, relative_width)

        return self.ask(ask, relative_width)

    def fallback(
        self, product: Product, delta: ExactReal, relative_width: Fraction
    ) -> Interval | None:
        """Enclose ε(δ) on a grid if contours near it are too long."""
        if smooth(product) is None:
            return None
        if self._has_no_estimate(product, delta):  # `inverse` has tried a grid
            raise UndecidedError(
                "epsilon was not found: contours are too long, and a grid is too coarse. Ask for a "
                "larger relative_width."
            )
        return self._by_grid(delta, relative_width)

    def _by_grid(self, delta: ExactReal, relative_width: Fraction) -> Interval | None:
        """Enclose ε(δ) on a grid; refuse a width that grids seldom reach, with what they reach."""
        if relative_width >= FINEST_WIDTH:
            return self.rungs[-1].known.inverse(delta, relative_width)
        found = (self.quick or self.rungs[-1]).known.inverse(delta, GRID_WIDTH)
        if found is None:
            return None
        raise UndecidedError(
            f"Reached epsilon in {found} on a grid; contours, which are more accurate, are too "
            "long here. Ask for a larger relative_width.",
            reached=float(found.relative_width or GRID_WIDTH),
            interval=found,
        )

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return the tails. Raises UndecidedError if every engine does."""
        asked = product.relative_width
        return self.ask(lambda rung: rung.to_width(asked).tails(epsilon), asked, tails=True)

    def estimate_log_delta(self, product: Product, epsilon: float) -> float | None:
        """Return the estimate of the best engine."""
        return self.rungs[0].known.log_delta(epsilon)

    def estimate_epsilon(self, product: Product, log_delta: float) -> float | None:
        """Return the estimate of the best engine, else that of a grid, refined by values near it.

        A coarse grid gives about six digits. Secant steps then take about three values.
        """
        first = self.rungs[0]
        known = first.known.epsilon(log_delta)
        if known is not None or not (first.engine.on_contours and log_delta < _SMALL):
            return known
        width = product.relative_width or _ROUGH_WIDTH
        return _estimate(first, self.rungs[-1], log_delta, width)

    def _has_no_estimate(self, product: Product, delta: ExactReal) -> bool:
        """Whether no contour reaches ε(δ), so that each value of H would take a grid."""
        log_delta = _log(delta)
        return log_delta < _SMALL and self.estimate_epsilon(product, log_delta) is None

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the bound of `quick` if there is one, else that of the best engine."""
        return (self.quick or self.rungs[0]).known.bound(epsilon)

    def closed_bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return that of contours; 1 if they do not apply."""
        return self.rungs[0].known.closed_bound(epsilon)

    def ask(self, ask: Callable[[Product], T], asked: Fraction | None, *, tails: bool = False) -> T:
        """Return the first answer to a width, or raise the refusal that reached the narrowest one.

        If none reached any width, raise the last one. For tails, `quick` is not tried first.
        """
        relative_width, refusals = asked or Fraction(1), list[UndecidedError]()
        quick = None if tails or not asked else self.quick_for(asked)
        for rung in self.rungs if quick is None else (quick, *self.rungs):
            hopeless = isinstance(rung.engine, Grid) and relative_width < FINEST_WIDTH
            if hopeless and any(refusal.reached < _BETTER for refusal in refusals):
                break
            try:
                return ask(rung)
            except UndecidedError as refusal:
                refusals.append(refusal)
            if relative_width < LEAST_WIDTH:
                break
        raise min(reversed(refusals), key=lambda refusal: refusal.reached)

    def quick_for(self, relative_width: Fraction) -> Product | None:
        """Return `quick` if it reaches this width, else None."""
        if self.quick is None:
            return None
        finest = QUICK_WIDTH if isinstance(self.quick.engine, Grid) else COMPOSED_WIDTH
        return self.quick if relative_width >= finest else None

    def first_answer(self, product: Product, ask: Callable[[Pair], T], width: Fraction) -> T:
        """Return the first answer of a rung, or raise the best refusal."""
        return self.ask(ask, width)

    def reverse(self) -> Ladder:
        """Return the ladder for the product of the reversed pairs."""
        quick = None if self.quick is None else self.quick.reverse()
        return Ladder(tuple(rung.reverse() for rung in self.rungs), quick)


def _log(delta: ExactReal) -> float:
    with ctx.workprec(_ROUGH_BITS):
        return float(delta.ball().log())


@functools.lru_cache(maxsize=64)
def _estimate(first: Product, last: Product, log_delta: float, width: Fraction) -> float | None:
    """Return ε with ln H(ε) = log_delta by secant steps of one engine, starting from a grid.

    Values of few digits come first, which suffice far from the root.
    """
    from dpassay.accountant.composition.fourier import jumps

    with contextlib.suppress(UndecidedError, ArithmeticError):
        loss = FOURIER.loss(first)
        if has_rare_jumps(loss) and (known := jumps.estimate_epsilon(loss, log_delta)) is not None:
            return known
        found: float | None = lattice.estimate(last, log_delta)
        for asked in sorted({max(width, _ROUGH_WIDTH), width}, reverse=True):
            if found is None:
                break
            values, close = first.to_width(asked).hockey_stick, _CLOSE * math.sqrt(asked)
            found = rough_root(values, log_delta, found, close)
        return found
    return None


# --- Sums over the values of a loss with few values -----------------------------------------------
# Let the second loss have the values l_j with masses p_j and q_j = p_j e^{−l_j}. Conditionally on
# its value,
#
#     H(ε) = P₂(L₂ = ∞) + Σ_j p_j H₁(ε − l_j),
#
# and each tail is a sum over the values in the same way.
#
# The first loss is that of a single release, or one with exact sums. For losses with a transform,
# together with lists, a contour is faster.

MAX_VALUES = 1 << 12
"""Largest number of values of the finite loss: the other profile is evaluated at each."""
_ENOUGH = 2
"""n terms that are only bounded may each take 1/(2n) of the width: together half of it."""
_PRECISION = 128
"""Precision, in bits, of the ends of a loss, which only choose between engines and bounds."""


@final
@dataclass(frozen=True)
class Conditional(Engine):
    """An engine that sums over the values of all losses but the first.

    Every factor but the first is a finite pair; their sum must have few values. Terms that are
    negligible compared with the sum so far are bounded, not computed.
    """

    def is_numerical(self, product: Product) -> bool:
        """Whether the engine of the first pair is."""
        return is_numerical(product.pairs[0])

    def profile(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the sum over the values of the other losses, starting with the largest masses.

        Of n terms, a term below 1/(2n) of the width of the sum so far is only bounded.
        """
        asked = product.relative_width
        first = refined(product.pairs[0], asked)
        share = arb(2) ** -ctx.prec if asked is None else ball(asked)
        total, values = _infinity(product), _listed(product)
        for value in sorted(values, key=lambda value: -float(value.p)):
            if value.p <= total.lower() * share / (_ENOUGH * len(values)):
                total += arb(0).union(value.p.upper())
            else:
                total += value.p * _at(first, _difference(epsilon, value))
        return total

    def bound(self, product: Product, epsilon: ExactReal) -> arb:
        """Return the sum of the first pair's bounds, at most 1."""
        total = _infinity(product)
        for value in _listed(product):
            total += value.p * _bound_at(product.pairs[0], _difference(epsilon, value))
        return total.upper().min(arb(1))

    def tails(self, product: Product, epsilon: ExactReal) -> Tails:
        """Return the tails, each as a sum over the values of the other losses."""
        first = refined(product.pairs[0], product.relative_width)
        p_above, q_below = _infinity(product), _infinity(product.reverse())
        p_below = q_above = arb(0)
        for value in _listed(product):
            inner = _tails_at(first, _difference(epsilon, value))
            p_above += value.p * inner.p_above
            p_below += value.p * inner.p_below
            q_above += value.q * inner.q_above
            q_below += value.q * inner.q_below
        return Tails(p_above, p_below, q_above, q_below)


CONDITIONAL = Conditional()


def _infinity(product: Product) -> arb:
    """Return the mass at infinity of all losses but the first."""
    return Product(product.factors[1:], CONDITIONAL).infinity_mass()


def _at(first: Pair, rest: ExactReal | arb) -> arb:
    """Return H₁ at ε − l."""
    least, largest = _ends(first)
    at = rest.ball() if isinstance(rest, ExactReal) else rest
    if at >= largest:
        return first.infinity_mass()
    if at <= least:
        return -at.expm1()
    return first.hockey_stick(rest) if isinstance(rest, ExactReal) else hockey_stick_at(first, rest)


@functools.lru_cache(maxsize=64)
def _ends(first: Pair) -> tuple[arb, arb]:
    """Return a lower and an upper bound on the first loss."""
    with ctx.workprec(_PRECISION):
        least, largest = -first.reverse().max_loss(), first.max_loss()
    return least.lower(), largest.upper()


def _bound_at(first: Pair, rest: ExactReal | arb) -> arb:
    return first.known.bound(ends(rest)[0] if isinstance(rest, arb) else rest).min(arb(1))


def _tails_at(first: Pair, rest: ExactReal | arb) -> Tails:
    """Return the tails of the first loss at ε − l."""
    least, largest = _ends(first)
    at = rest.ball() if isinstance(rest, ExactReal) else rest
    if at >= largest:
        return Tails(arb(0), arb(1), arb(0), arb(1))
    if at < least:
        return Tails(arb(1), arb(0), arb(1), arb(0))
    return first.tails(rest) if isinstance(rest, ExactReal) else tails_at(first, rest)


def _listed(product: Product) -> Sequence[Value]:
    """Return the values of all losses but the first; raise NotApplicableError if they are many."""
    values = convolution.values(convolution.of_finite(product.factors[1:]))
    if len(values) > MAX_VALUES:
        raise NotApplicableError(
            f"The finite losses of this composition have {len(values)} values, more than the "
            f"{MAX_VALUES} that can be combined with another loss. Compose fewer releases of "
            "finite laws."
        )
    return values


def _difference(epsilon: ExactReal, value: Value) -> ExactReal | arb:
    """Return ε − l, exactly if l is exact and the difference has a closed form, else as a ball."""
    if value.exact is not None:
        difference = exact_sum([epsilon, -value.exact])
        if difference is not None:
            return difference
    return epsilon.ball() - value.loss
