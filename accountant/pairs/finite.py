"""Pairs of laws on finitely many outcomes, given by their probability masses."""

from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, TypeAlias, TypeVar, final

from flint import arb

from dpassay.accountant.core.pair import Known, Pair, Tails, exact_infinity_mass
from dpassay.accountant.errors import UndecidedError
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.pairs.discrete import DiscreteLaplacePair
from dpassay.accountant.pairs.invert import largest_known

Balls: TypeAlias = list[arb]
Fractions: TypeAlias = Sequence[Fraction]
_ZERO = ExactReal.of_rational(0)
_SHOWN = 12
_MOST_RATIOS = 1 << 10
"""Largest number of likelihood ratios in `largest_profile`; these take about a second."""
# --- Finite laws that a mechanism lists -----------------------------------------------------------


class FiniteLaws(ABC):
    """A source of pairs (P, Q) of laws on finitely many outcomes, numbered by `index`.

    A mechanism derives from this class and from `Mechanism`, and lists `FinitePair(self, index)`
    among its worst pairs; it must be hashable. All methods list the outcomes in the same order.
    """

    every_pair_listed: ClassVar[bool] = False
    """Whether the laws of any two neighbours are dominated by a single one of these pairs, rather
    than only by the maximum of their profiles."""

    @abstractmethod
    def outcomes(self, index: int) -> Sequence[object]:
        """Return the label of each outcome (an int or a short text)."""

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the masses of P and of Q, at flint's current precision.

        A zero mass must be the exact ball 0. The default reads `rational_masses`; a subclass
        overrides this method or that one.
        """
        exact = self.rational_masses(index)
        if exact is None:
            raise NotImplementedError(f"{type(self).__name__} states neither kind of masses.")
        return [ball(p) for p in exact[0]], [ball(q) for q in exact[1]]

    def rational_masses(self, index: int) -> tuple[Fractions, Fractions] | None:
        """Return the masses of P and of Q if all of them are rational, else None."""
        return None

    def table_above(self, index: int) -> tuple[Fractions, Fractions] | None:
        """Return rational masses of a pair that dominates this one, or None.

        The default is the pair itself, if its masses are rational.
        """
        return self.rational_masses(index)

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return, for each outcome, ln(p/q) if it is known as an exact number, else None.

        Exact losses decide ln(p/q) > ε in the case of equality, which balls cannot decide. The
        default, 0 where p = q and None elsewhere, is complete for rational masses. For an algebraic
        ε ≠ 0, e^ε is transcendental (Lindemann), so p/q ≠ e^ε and a sufficient precision decides.
        For ε the logarithm of a rational number, p/q is compared with that number. Entries of
        outcomes with p = 0 or q = 0 are ignored.
        """
        exact = self.rational_masses(index)
        if exact is None:
            return [None] * len(self.outcomes(index))
        return [_ZERO if p == q else None for p, q in zip(*exact, strict=True)]

    def exact_infinity_masses(self, index: int) -> tuple[ExactReal, ExactReal] | None:
        """Return the P-mass of {q = 0} and the Q-mass of {p = 0} if they are known exactly.

        It is used only if the masses are not all rational.
        """
        return None

    def exact_bound(self, index: int, epsilon: ExactReal) -> ExactReal | None:
        """Return an exact upper bound of H(ε), valid in both directions, that holds by design."""
        return None

    def is_mirrored(self, index: int) -> bool:
        """Whether the P-mass of outcome n − 1 − i equals the Q-mass of outcome i, for every i.

        Then the losses of these two outcomes are exactly opposite, even if not known exactly.
        """
        return False


@final
@dataclass(frozen=True)
class _Outcome:
    """One outcome with p > 0 or q > 0, and what is known about its loss."""

    label: object
    p: arb
    q: arb
    loss: ExactReal | None
    ratio: Fraction | None
    """p/q if both are rational and nonzero, else None."""

    def log_ratio(self) -> arb:
        """Return L = ln(p/q); ±∞ if one of the masses is the exact ball 0."""
        if self.q.is_zero():
            return arb.pos_inf()
        if self.p.is_zero():
            return arb.neg_inf()
        return (self.p / self.q).log() if self.loss is None else self.loss.ball()

    def above(self, epsilon: ExactReal) -> bool | None:
        """Whether L > ε; None if the current precision does not decide."""
        if self.q.is_zero() or self.p.is_zero():
            return self.q.is_zero()
        if self.loss is not None:
            return self.loss > epsilon
        threshold, log_ratio = epsilon.ball(), self.log_ratio()
        if log_ratio > threshold:
            return True
        if log_ratio <= threshold:
            return False
        limit = None if self.ratio is None else _rational_exp(epsilon)
        return None if limit is None or self.ratio is None else self.ratio > limit

    def excess(self, epsilon: ExactReal) -> arb:
        """Return (p − e^ε q)⁺."""
        above = self.above(epsilon)
        if above is False:
            return arb(0)
        if self.q.is_zero():
            return self.p
        # p(1 − e^{ε−L}) does not cancel if the loss is known exactly
        distance = self.log_ratio() - epsilon.ball()
        value = -self.p * (-distance).expm1()
        if above:
            return value
        return value.max(arb(0)) if value.is_finite() else arb(0).union(self.p)


@final
@dataclass(frozen=True)
class FinitePair(Pair):
    """The pair (P, Q) number `index` of a source of finite laws, or (Q, P) if `flipped`.

    Every quantity is a finite sum over the outcomes, such as H(ε) = Σ (p − e^ε q)⁺. If the current
    precision does not decide on which side of ε the loss of an outcome lies, each tail gets a ball
    from 0 to the mass of the outcome.
    """

    source: FiniteLaws
    index: int
    flipped: bool = False

    @cached_property
    def _kept(self) -> dict[int, list[_Outcome]]:
        """Cache of the outcomes at the last precision; a search evaluates them many times."""
        return {}

    def _outcomes(self) -> list[_Outcome]:
        bits = ctx.prec
        if bits not in self._kept:
            self._kept.clear()
            self._kept[bits] = self._enclosed()
        return self._kept[bits]

    def _enclosed(self) -> list[_Outcome]:
        p, q = self.source.masses(self.index)
        losses = self.source.exact_losses(self.index)
        labels = self.source.outcomes(self.index)
        exact = self.source.rational_masses(self.index)
        ratios: list[Fraction | None] = [None] * len(p)
        if exact is not None:
            above, below = exact[::-1] if self.flipped else exact
            ratios = [x / y if x and y else None for x, y in zip(above, below, strict=True)]
        if self.flipped:
            p, q = q, p
            losses = [None if loss is None else -loss for loss in losses]
        rows = zip(labels, p, q, losses, ratios, strict=True)
        return [_Outcome(*row) for row in rows if not (row[1].is_zero() and row[2].is_zero())]

    def masses(self) -> list[tuple[float, float, float]]:
        """Return p, q and the loss of every outcome as floats, without proof."""
        return [
            (float(each.p.mid()), float(each.q.mid()), float(each.log_ratio().mid()))
            for each in self._outcomes()
        ]

    def by_loss(self) -> list[tuple[arb, arb]]:
        """Return (p, q) of the outcomes by increasing loss; [] if the order is not certain."""
        found = sorted(self._outcomes(), key=lambda each: float(each.log_ratio().mid()))
        for one, two in pairwise(found):
            known = one.loss is not None and two.loss is not None and one.loss <= two.loss
            ratios = one.ratio is not None and two.ratio is not None and one.ratio <= two.ratio
            if not (known or ratios or one.p * two.q <= two.p * one.q):
                return []
        return [(each.p, each.q) for each in found]

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return Σ (p − e^ε q)⁺."""
        return _total(outcome.excess(epsilon) for outcome in self._outcomes())

    def tails(self, epsilon: ExactReal) -> Tails:
        """Return the masses of {L > ε} and {L ≤ ε}, each summed by itself."""
        sides: dict[bool, tuple[Balls, Balls]] = {True: ([], []), False: ([], [])}
        for outcome in self._outcomes():
            above = outcome.above(epsilon)
            for side, (p, q) in sides.items():
                if above is None:
                    p.append(arb(0).union(outcome.p))
                    q.append(arb(0).union(outcome.q))
                elif above is side:
                    p.append(outcome.p)
                    q.append(outcome.q)
        return Tails(
            p_above=_total(sides[True][0]),
            p_below=_total(sides[False][0]),
            q_above=_total(sides[True][1]),
            q_below=_total(sides[False][1]),
        )

    def renyi(self, order: arb) -> arb:
        """Return ln(Σ p e^{(a−1)L})/(a − 1) = ln(1 + Σ p (e^{(a−1)L} − 1))/(a − 1)."""
        if order == 1:
            return self._expectation(lambda outcome: outcome.p * outcome.log_ratio(), lambda t: t)
        less = order - 1

        def moment(outcome: _Outcome) -> arb:
            return outcome.p * (less * outcome.log_ratio()).expm1()

        return self._expectation(moment, lambda total: total.log1p() / less)

    def _expectation(self, term: Callable[[_Outcome], arb], finish: Callable[[arb], arb]) -> arb:
        charged = [outcome for outcome in self._outcomes() if not outcome.p.is_zero()]
        if any(outcome.q.is_zero() and outcome.p > 0 for outcome in charged):
            return arb.pos_inf()
        value = finish(_total(term(outcome) for outcome in charged))
        return arb(0).union(arb.pos_inf()) if value.is_nan() else value

    def max_loss(self) -> arb:
        """Return the largest ln(p/q) among the outcomes with p > 0."""
        charged = [outcome for outcome in self._outcomes() if not outcome.p.is_zero()]
        if any(outcome.q.is_zero() for outcome in charged):
            return arb.pos_inf()
        return _largest_loss(charged)

    @property
    def known(self) -> Known:
        """Return the quantities that are known exactly."""
        return Known(
            max_loss=self._exact_max_loss,
            finite_loss=lambda: _largest_loss(
                each for each in self._outcomes() if not (each.p.is_zero() or each.q.is_zero())
            ),
            exact=self._exact_bound,
            infinity_mass=self._exact_infinity_mass,
        )

    def _exact_max_loss(self) -> ExactReal | None:
        """Return ln max p/q if it is finite and the masses or all losses are known exactly."""
        masses = self.source.rational_masses(self.index)
        if masses is None:
            losses = [each.loss for each in self._outcomes() if not each.p.is_zero()]
            return largest_known(losses) if self.infinity_mass().is_zero() else None
        charged = _charged(*(masses[::-1] if self.flipped else masses))
        if not all(q for _, q in charged):
            return None
        try:
            return ExactReal.of_rational(max(p / q for p, q in charged)).log()
        except ArithmeticError:
            return None

    def infinity_mass(self) -> arb:
        """Return the P-mass of the outcomes with q = 0."""
        return _total(outcome.p for outcome in self._outcomes() if outcome.q.is_zero())

    def _exact_bound(self, epsilon: ExactReal) -> ExactReal | None:
        """Return an exact upper bound of H(ε) if one is known, else None.

        It is the bound of the source, if there is one. Otherwise it is H(ε) itself, for rational
        masses or if no finite loss exceeds ε.
        """
        known = self.source.exact_bound(self.index, epsilon)
        if known is not None:
            return known
        if (listed := tables([self])) is not None:
            return largest_profile([(listed, 1)], epsilon)
        finite = (each for each in self._outcomes() if not each.q.is_zero())
        if any(each.above(epsilon) is not False for each in finite):
            return None
        return exact_infinity_mass(self)

    def _exact_infinity_mass(self) -> ExactReal | None:
        """Return the P-mass of the outcomes with q = 0 if it is known exactly, else None."""
        exact = self.source.rational_masses(self.index)
        if exact is None:
            known = self.source.exact_infinity_masses(self.index)
            if known is not None:
                return known[self.flipped]
            return _ZERO if self.infinity_mass().is_zero() else None
        p, q = exact[::-1] if self.flipped else exact
        mass = sum((p for p, q in zip(p, q, strict=True) if q == 0), start=Fraction(0))
        return ExactReal.of_rational(mass)

    def reverse(self) -> FinitePair:
        """Return the pair (Q, P)."""
        return FinitePair(self.source, self.index, not self.flipped)

    def law(self) -> dict[str, object]:
        """Return {"law": "finite", "outcomes", "p", "q"}.

        A mass is a string such as "1/3" if all masses are rational, else an enclosure.
        """
        exact = self.source.rational_masses(self.index)
        p: Sequence[object]
        q: Sequence[object]
        if exact is not None:
            p, q = [str(mass) for mass in exact[0]], [str(mass) for mass in exact[1]]
        else:
            balls = self.source.masses(self.index)
            p, q = ([Interval.of_ball(m, 60).to_json() for m in masses] for masses in balls)
        if self.flipped:
            p, q = q, p
        named = self.source.outcomes(self.index)
        labels = [label if isinstance(label, int) else str(label) for label in named]
        return {"law": "finite", "outcomes": labels, "p": p, "q": q}

    def describe_event(self, epsilon: ExactReal) -> str:
        """List the outcomes in {L > ε}, with consecutive integers as ranges."""
        chosen = [outcome.label for outcome in self._outcomes() if outcome.above(epsilon)]
        runs = _runs(chosen)
        shown = ", ".join(runs[:_SHOWN])
        more = f" and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
        return f"the outcomes {{{shown}{more}}}" if chosen else "the empty event"


def tables(family: Sequence[Pair]) -> list[tuple[Fractions, Fractions]] | None:
    """Return rational masses (P, Q) of each pair, or of a pair that dominates it.

    None if some pair has none, or if the laws of two neighbours need not be dominated by a single
    pair of the family.
    """
    found = []
    for pair in family:
        if not isinstance(pair, FinitePair):
            return None
        known = pair.source.table_above(pair.index)
        if known is None or (len(family) > 1 and not pair.source.every_pair_listed):
            return None
        found.append(known[::-1] if pair.flipped else known)
    return found


def largest_profile(
    factors: Sequence[tuple[Sequence[tuple[Fractions, Fractions]], int]], epsilon: ExactReal
) -> ExactReal | None:
    """Return H(ε) of an adaptive composition, exactly.

    Each factor is a list of tables (P, Q) and a number of releases; for each release earlier
    outputs may choose any table of the list.

    Dynamic programming: after outputs of total masses p and q the remaining releases have the
    profile value V(z) at z = e^ε q/p. After the last release V(z) = (1 − z)⁺. Before a release,
    V(z) is the maximum over its tables of Σ_o p_o V'(z q_o/p_o), where V' is the function after it.
    Returns None if there are too many ratios q/p, or if two exact sums cannot be compared.
    """
    if sum(count for _, count in factors) > _MOST_RATIOS:
        return None
    releases = [listed for listed, count in factors for _ in range(count)]
    reached = [{Fraction(1)}]
    for listed in releases:
        ratios = {r * b / a for r in reached[-1] for p, q in listed for a, b in _charged(p, q)}
        reached.append(ratios)
        if sum(map(len, reached)) > _MOST_RATIOS:
            return None
    try:
        scale, one = epsilon.exp(), ExactReal.of_rational(1)
        values = {r: max(_ZERO, one - scale.times(r)) for r in reached.pop()}
        for listed in reversed(releases):
            before = {}
            for r in reached.pop():
                sums = []
                for p, q in listed:
                    terms = (values[r * b / a].times(a) for a, b in _charged(p, q))
                    sums.append(functools.reduce(operator.add, terms))
                before[r] = max(sums)
            values = before
    except (ArithmeticError, UndecidedError):
        return None
    return values[Fraction(1)]


def _charged(p: Fractions, q: Fractions) -> list[tuple[Fraction, Fraction]]:
    return [(a, b) for a, b in zip(p, q, strict=True) if a]


@functools.lru_cache(maxsize=64)
def _rational_exp(value: ExactReal) -> Fraction | None:
    """Return e^value if it is known to be rational; for an algebraic value ≠ 0 it never is."""
    return None if value.formula is None else value.exp().rational


def _largest_loss(outcomes: Iterable[_Outcome]) -> arb:
    """Return the largest ln(p/q) of some outcomes; −∞ if there is none."""
    known, enclosed = [], []
    for outcome in outcomes:
        if outcome.loss is None:
            enclosed.append(outcome.log_ratio())
        else:
            known.append(outcome.loss)
    if known:
        enclosed.append(max(known).ball())
    return functools.reduce(lambda most, loss: most.max(loss), enclosed, arb.neg_inf())


def _total(values: Iterable[arb]) -> arb:
    return sum(values, start=arb(0))


def _runs(labels: Sequence[object]) -> list[str]:
    """Return the labels as strings, runs of at least three consecutive integers as "a..b"."""
    shown: list[str] = []
    start = 0
    while start < len(labels):
        end, first = start + 1, labels[start]
        if isinstance(first, int):
            while end < len(labels) and labels[end] == first + (end - start):
                end += 1
        if end - start >= 3:
            shown.append(f"{first}..{labels[end - 1]}")
        else:
            shown += [str(label) for label in labels[start:end]]
        start = end
    return shown


# --- Pairs whose loss takes finitely many values, as finite laws ----------------------------------

T = TypeVar("T", arb, Fraction)

MAX_VALUES = 1 << 12
"""Largest number of values of the loss of a discrete Laplace release that are listed."""


def finite(pair: Pair) -> FinitePair | None:
    """Return a pair on finitely many outcomes with the same law of the loss, or None."""
    if isinstance(pair, FinitePair):
        return pair
    if isinstance(pair, DiscreteLaplacePair) and pair.shift < MAX_VALUES:
        return FinitePair(DiscreteLaplaceLosses(pair), 0)
    return None


@final
@dataclass(frozen=True)
class DiscreteLaplaceLosses(FiniteLaws):
    """Two discrete Laplace laws at distance s, with outcomes of equal loss merged.

    The loss takes the values (2j − s)/b, j = 0, …, s. With r = e^{−1/b}, the Q-mass of the value is
    1/(1 + r) for j = 0, tanh(1/2b) r^j for 0 < j < s, and r^s/(1 + r) for j = s. The P-mass at j is
    the Q-mass at s − j.
    """

    pair: DiscreteLaplacePair

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the labels j = min(max(z, 0), s), with z relative to the true answer under Q."""
        return range(self.pair.shift + 1)

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the masses of the values of the loss, by increasing value."""
        rate, s = 1 / self.pair.scale.ball(), self.pair.shift
        outer, centre = 1 + (-rate).exp(), (rate / 2).tanh()
        q = [centre * (-rate * j).exp() for j in range(s + 1)]
        q[0], q[s] = 1 / outer, (-rate * s).exp() / outer
        return q[::-1], q

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return (2j − s)/b."""
        s = self.pair.shift
        return [ExactReal.of_rational(2 * j - s) / self.pair.scale for j in range(s + 1)]


@final
@dataclass(frozen=True)
class SubsampledLaws(FiniteLaws):
    """A Poisson-subsampled finite pair: ((1−q)Q + qP, Q) if `mixed_first`, else (P, (1−q)P + qQ).

    An outcome of loss l in (P, Q) has the loss ln(1 − q + q e^l), or −ln(1 − q + q e^{−l}). For
    algebraic l and q it is not algebraic unless it is 0 (Lindemann and Weierstrass), so a
    sufficient precision distinguishes it from every algebraic ε ≠ 0.
    """

    pair: FinitePair
    sampling_prob: ExactReal
    mixed_first: bool

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the outcomes of the pair that is subsampled."""
        return self.pair.source.outcomes(self.pair.index)

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the masses, one side mixed."""
        p, q = self.pair.source.masses(self.pair.index)
        share = self.sampling_prob.ball()
        return self._mixed(p, q, share, 1 - share)

    def rational_masses(self, index: int) -> tuple[list[Fraction], list[Fraction]] | None:
        """Return the masses if they and q are rational, else None."""
        exact = self.pair.source.rational_masses(self.pair.index)
        share = self.sampling_prob.rational
        if exact is None or share is None:
            return None
        return self._mixed(list(exact[0]), list(exact[1]), share, 1 - share)

    def exact_losses(self, index: int) -> Sequence[ExactReal | None]:
        """Return 0 for the outcomes where the loss of the pair is 0, None for the others."""
        known = self.pair.source.exact_losses(self.pair.index)
        return [loss if loss is not None and not loss.sign else None for loss in known]

    def _mixed(self, p: list[T], q: list[T], share: T, rest: T) -> tuple[list[T], list[T]]:
        """Return the laws of the pair in its order, one side mixed with this share of the other."""
        p, q = (q, p) if self.pair.flipped else (p, q)
        if self.mixed_first:
            return [rest * b + share * a for a, b in zip(p, q, strict=True)], q
        return p, [rest * a + share * b for a, b in zip(p, q, strict=True)]


# --- Rational pairs that dominate a pair of tables with enclosed masses, or are dominated by it ---
# The power function of a pair maps x to the largest P(S) over randomised tests S with Q(S) ≤ x. It
# is concave and ends at (1, 1). If the power function of one pair is nowhere above that of another,
# neither is its H, at every ε (Blackwell). Masses in [p⁻, p⁺] and [q⁻, q⁺] give points below the
# power function, and points whose hull is above it. Such a hull is piecewise linear, and the
# increments of its pieces are the masses of a pair.

Ends: TypeAlias = tuple[Fraction, Fraction]
Point: TypeAlias = tuple[Fraction, Fraction]
Masses: TypeAlias = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]
_ORIGIN: Point = (Fraction(0), Fraction(0))
_ONE = Fraction(1)


def hull(points: Iterable[Point]) -> list[Point]:
    """Return the vertices of the upper hull of (0, 0), (1, 1) and points (Q, P), left to right."""
    found: list[Point] = []
    for x, y in sorted({(_ONE, _ONE), *points}):
        while found and (
            found[-1][0] == x
            or (
                len(found) > 1
                and (found[-1][1] - found[-2][1]) * (x - found[-2][0])
                <= (y - found[-2][1]) * (found[-1][0] - found[-2][0])
            )
        ):
            found.pop()
        found.append((x, y))
    return [_ORIGIN, *found]


def masses(corners: Sequence[Point]) -> Masses:
    """Return the masses of P and Q of the pair whose power function has these vertices."""
    steps = [(y - b, x - a) for (a, b), (x, y) in pairwise(corners)]
    kept = [step for step in steps if any(step)]
    return tuple(p for p, _ in kept), tuple(q for _, q in kept)


def over(p: Sequence[Ends], q: Sequence[Ends]) -> list[Point]:
    """Return points whose hull is above the power functions of all pairs within the enclosures.

    `p` and `q` are the ends (p⁻, p⁺) and (q⁻, q⁺) of each mass. The points are partial sums of
    (q⁻, p⁺) by decreasing p⁺/q⁻, stopped where P = 1.
    """
    points = [_ORIGIN]
    ends = [(most, least) for (_, most), (least, _) in zip(p, q, strict=True) if most]
    for most, least in sorted(ends, key=lambda o: _ratio(*o), reverse=True):
        x, y = points[-1]
        share = min(_ONE, (1 - y) / most)
        points.append((x + share * least, y + share * most))
    return points


def _ratio(p: Fraction, q: Fraction) -> tuple[bool, Fraction]:
    """Return a sort key for p/q that places infinite ratios last."""
    return (True, p) if not q else (False, p / q)
