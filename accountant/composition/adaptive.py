"""Compositions in which every release may choose among several worst pairs, none worst everywhere.

Let release i be dominated at every ε by one of the pairs of a family F_i (which one may depend on
ε). An adversary chooses the pair of every release, also by the earlier outputs. Its best profile W
is the largest of the profiles of all such sequences, and it is bracketed:

*Below*: independent releases with fixed pairs from the families are attained, so the profile of
each product of chosen pairs is a lower bound of W.

*Above*: max over F_i of the profiles H is convex in e^ε, non-increasing, at least (1 − e^ε)⁺ and at
most 1, so that it is the profile of a pair, the *envelope* of F_i, which dominates release i on
every history (Zhu, Dong and Wang 2022, Proposition 7 and Theorem 10). The product of the
envelopes dominates all releases together.

So a guarantee that holds for the product of envelopes holds, and one that fails for a sequence
fails; between the two nothing is said. The two ends meet where one pair is the worst at all ε that
matter, which many releases bring about: they do not close at any precision in general.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

from flint import arb

from accountant.composition.argument import hull
from accountant.composition.grid import CELLS, GridPair
from accountant.composition.joint import Factor, JointPair
from accountant.composition.product import product
from accountant.errors import NotApplicableError, UndecidedError
from accountant.interval import Interval, asked_width, ball, narrowed
from accountant.number import ExactReal
from accountant.pair import Pair, Tails
from accountant.precision import ctx
from accountant.profile import least, most

if TYPE_CHECKING:
    from accountant.reference import Reference

Family: TypeAlias = tuple[Pair, ...]

MOST_SEQUENCES = 24
"""Most products of chosen pairs whose profiles bound from below."""
_ENOUGH = Fraction(1, 10**6)
_PRECISION = 128
_LEVELS = CELLS[:2]
_GAIN = 0.9
_SPARE = arb("0.9")
_STEPS = 48
_NO_FORM = (
    "Releases that choose among several worst pairs have no known Rényi or Kullback–Leibler "
    "divergence. Ask for delta, epsilon or the trade-off function, which are enclosed."
)


@final
@dataclass(frozen=True)
class EnvelopePair(Pair):
    """The pair whose profile is the largest of those of the pairs of a family."""

    family: Family

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return max H_i(ε)."""
        return most([pair.hockey_stick(epsilon) for pair in self.family])

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the tails of the pair with the largest H; of all that may be it, their hull.

        −Q(L > ε) is the derivative of H to the right, as a function of e^ε. A pair and its reverse
        have the same H(0): there the derivative is the larger one.
        """
        values = [pair.hockey_stick(epsilon) for pair in self.family]
        largest = most(values)
        near = [p for p, v in zip(self.family, values, strict=True) if not v < largest]
        tails = [pair.tails(epsilon) for pair in near]
        if epsilon.sign == 0 and len(near) == 2 and near[0].reverse() == near[1]:
            first, second = tails
            if first.q_above < second.q_above:
                return first
            if second.q_above < first.q_above:
                return second
        result = tails[0]
        for other in tails[1:]:
            result = hull(result, other)
        return result

    def max_loss(self) -> arb:
        """Return the largest of all losses."""
        return most([pair.max_loss() for pair in self.family])

    def max_finite_loss(self) -> arb:
        """Return a ball for the loss beyond which H is level.

        It is at least the largest finite loss of the pairs with the largest mass at infinity, and
        at most that of all.
        """
        masses = [pair.exact_infinity_mass() for pair in self.family]
        losses = [pair.max_finite_loss() for pair in self.family]
        known = [mass for mass in masses if mass is not None]
        if len(known) < len(masses):
            return most(losses).union(least(losses))
        largest_mass = max(known)
        certain = [loss for loss, mass in zip(losses, known, strict=True) if mass == largest_mass]
        low, high = most(certain), most(losses)
        return low if len(certain) == len(losses) else low.union(high)

    def infinity_mass(self) -> arb:
        """Return the largest mass at infinity."""
        return most([pair.infinity_mass() for pair in self.family])

    def exact_infinity_mass(self) -> ExactReal | None:
        """Return the same where it is known."""
        known = [pair.exact_infinity_mass() for pair in self.family]
        masses = [mass for mass in known if mass is not None]
        return max(masses) if len(masses) == len(known) else None

    def renyi(self, order: arb) -> arb:
        """Raise NotApplicableError: it is that of no pair of the family."""
        raise NotApplicableError(_NO_FORM)

    def kullback_leibler(self) -> arb:
        """Raise NotApplicableError: it is that of no pair of the family."""
        raise NotApplicableError(_NO_FORM)

    def reverse(self) -> EnvelopePair:
        """Return the envelope of the reversed pairs: H of (Q, P) is 1 − e^ε + e^ε H(−ε)."""
        return EnvelopePair(tuple(pair.reverse() for pair in self.family))

    def law(self) -> dict[str, object]:
        """Return {"law": "envelope", "pairs"}, each pair's law as a JSON text."""
        return {"law": "envelope", "pairs": [json.dumps(pair.law()) for pair in self.family]}

    def reference(self) -> Reference:
        """Raise NotApplicableError: the envelope has no densities of its own."""
        raise NotApplicableError("The envelope of several pairs has no densities to integrate.")


def envelope(family: Family) -> Pair:
    """Return the pair with the largest profile of a family, itself where there is one only."""
    return family[0] if len(family) == 1 else EnvelopePair(family)


@final
@dataclass(frozen=True)
class AdaptivePair(JointPair):
    """The pair with the profile W: every release may be any pair of its family.

    Its balls contain W; they do not get narrower than the two bounds of the module. Largest losses
    and masses at infinity are exact: the worst choice for each is one choice.
    """

    is_product = False

    families: tuple[tuple[Family, int], ...]

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The envelopes and their counts."""
        found: dict[Pair, int] = {}
        for family, count in self.families:
            pair = envelope(family)
            found[pair] = found.get(pair, 0) + count
        return tuple(found.items())

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball around both bounds of W(ε).

        Raises UndecidedError, with what was reached, where a width is asked for that is not.
        """
        wanted = asked_width.get()
        if wanted is None:
            level = max(0, min(len(_LEVELS) - 1, (ctx.prec // 128).bit_length() - 1))
            lower, upper = self.bounds(epsilon, _LEVELS[level])
            return lower.lower().max(arb(0)).union(upper.upper())
        sequences = list(self.sequences())
        for cells in _LEVELS:
            least, upper = GridPair(self.factors).bounds(epsilon, cells)
            if upper.is_zero():
                return arb(0)
            lower = self._below(epsilon, cells, sequences)
            scale = lower if lower > 0 else least.min(arb(1))
            if upper - lower <= ball(wanted) * _SPARE * scale:
                return lower.lower().max(arb(0)).union(upper.upper())
            if not least - lower < ball(wanted) * _SPARE * scale:  # no grid will do
                break
        width = float((upper - lower) / lower) if lower > 0 else math.inf
        raise _refusal("delta", float(lower.lower()), float(upper.upper()), width)

    def bounds(self, epsilon: ExactReal, cells: int) -> tuple[arb, arb]:
        """Return a lower bound by the sequences, and an upper one by the product of envelopes."""
        above = GridPair(self.factors).bounds(epsilon, cells)[1]
        return self._below(epsilon, cells, list(self.sequences())), above

    def inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose the ε with W(ε) = δ, by the points at which both bounds pass δ.

        Raises UndecidedError as for `hockey_stick`.
        """
        last = math.inf
        for cells in _LEVELS:
            high = GridPair(self.factors).upper_epsilon(delta, cells)
            low = self._lower_epsilon(delta, cells, high)
            size = max(min(abs(low), abs(high)), Fraction(1, 10**9))
            width = float((high - low) / size)
            if width <= relative_width:
                return Interval.of_exact(low, 20).hull(Interval.of_exact(high, 20))
            if width > _GAIN * last:
                break
            last = width
        raise _refusal("epsilon", float(low), float(high), width)

    def _lower_epsilon(self, delta: ExactReal, cells: int, high: Fraction) -> Fraction:
        """Return a point at which a sequence certainly has more than δ, near the largest one."""
        target = delta.ball()
        best = self._best(ExactReal.of_rational(high), cells)[:2]

        def exceeds(at: Fraction) -> bool:
            return bool(self._below(ExactReal.of_rational(at), cells, best) > target)

        step = max(abs(high), Fraction(1)) / 1024
        low = high - step
        while not exceeds(low):
            low, step = low - step, 2 * step
            if low < -(1 << 30):
                raise UndecidedError("No sequence of worst pairs was told from delta.")
        for _ in range(_STEPS):
            middle = Fraction((low + high) / 2).limit_denominator(1 << 60)
            if not low < middle < high or high - low < abs(low) / 10**9:
                break
            low, high = (middle, high) if exceeds(middle) else (low, middle)
        return low

    def attained(self, epsilon: ExactReal) -> Pair:
        """Return the product of pairs with the largest H(ε) of those that are tried."""
        return product(self._best(epsilon, _LEVELS[0])[0])

    def _best(self, epsilon: ExactReal, cells: int) -> list[tuple[Factor, ...]]:
        """Return the sequences, those with the largest H(ε) first."""
        rated = [(float(self._below(epsilon, cells, [s])), s) for s in self.sequences()]
        rated.sort(key=lambda entry: entry[0], reverse=True)
        return [sequence for _, sequence in rated]

    @staticmethod
    def _below(epsilon: ExactReal, cells: int, sequences: Sequence[tuple[Factor, ...]]) -> arb:
        """Return a lower bound of the largest H(ε) among sequences."""
        found = arb(0)
        with ctx.workprec(_PRECISION), narrowed(_ENOUGH):
            for factors in sequences:
                try:
                    value = product(factors).hockey_stick(epsilon)
                except (NotApplicableError, UndecidedError):
                    value = GridPair(factors).bounds(epsilon, cells)[0]
                if value.is_finite():
                    found = found.max(value.lower())
        return found

    def sequences(self) -> Iterator[tuple[Factor, ...]]:
        """Return some choices of a pair for every release, as products: all where they are few.

        Else in every family one pair throughout, or two in equal shares.
        """
        choices = [list(_splits(len(family), count)) for family, count in self.families]
        if math.prod(map(len, choices)) > MOST_SEQUENCES:
            choices = [list(_even_splits(len(family), count)) for family, count in self.families]
        for chosen in itertools.islice(itertools.product(*choices), MOST_SEQUENCES):
            found: dict[Pair, int] = {}
            for (family, _), split in zip(self.families, chosen, strict=True):
                for pair, count in zip(family, split, strict=True):
                    if count:
                        found[pair] = found.get(pair, 0) + count
            yield tuple(found.items())

    def reverse(self) -> AdaptivePair:
        """Return the same with every pair reversed."""
        return AdaptivePair(
            tuple((tuple(pair.reverse() for pair in family), n) for family, n in self.families)
        )

    def reference(self) -> Reference:
        """Raise NotApplicableError: there is no second route to these products."""
        raise NotApplicableError("The mpmath route does not choose among worst pairs.")


def _splits(kinds: int, count: int) -> Iterator[tuple[int, ...]]:
    """Return every way to share `count` releases among the kinds; stop where they are too many."""
    ways = math.comb(count + kinds - 1, kinds - 1)
    if ways > MOST_SEQUENCES:
        yield from itertools.repeat((), MOST_SEQUENCES + 1)
        return
    for bars in itertools.combinations(range(count + kinds - 1), kinds - 1):
        ends = (-1, *bars, count + kinds - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def _even_splits(kinds: int, count: int) -> Iterator[tuple[int, ...]]:
    for kind in range(kinds):
        yield tuple(count if i == kind else 0 for i in range(kinds))
    for one, other in itertools.combinations(range(kinds), 2):
        shares = {one: count - count // 2, other: count // 2}
        yield tuple(shares.get(i, 0) for i in range(kinds))


def _refusal(what: str, low: float, high: float, width: float) -> UndecidedError:
    return UndecidedError(
        f"Reached {what} in [{low:.8g}, {high:.8g}], of relative width {width:.1e}: below by "
        "releases that each keep to one of their worst pairs, above by a pair that dominates every "
        "choice of them. Ask for a larger relative_width.",
        reached=width,
    )
