"""Shuffled batches of an epoch (a lower bound of ε) and shuffled reports (bounds on both sides).

The comments before each section define the mathematics and have the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import Any, final

from flint import arb

from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.core.pair import Known, MirroredPair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball, enclose
from dpassay.accountant.numbers.precision import cached_property, ctx
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.between import Bound, inverse_between
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair
from dpassay.accountant.pairs.gaussian import normal_cdf

# --- A lower bound of ε for shuffled fixed batches, from one dataset and one event ----------------
# In each of E epochs N records are put in a new random order and divided into t = ⌊N/B⌋ batches of
# B; the last r = N − tB records are dropped or form a smaller batch. Consider gradients on a line,
# in units of the clipping norm: one record has 1 under P and 0 under Q, all others have −1. The sum
# of a full batch is −B, except −B + 2 under P and −B + 1 under Q for the batch of that record. With
# noise N(0, σ²) on each sum,
#
#     A = {some full batch has a noisy sum above c − B},
#     1 − P(A) = (1 − r/N) Φ((c − 2)/σ) Φ(c/σ)^{t−1} + (r/N) Φ(c/σ)^t,
#
# and Q(A) is the same with c − 1 for c − 2. Epochs are independent, so S = {A in at least k of E
# epochs} has binomial tails. An (ε, δ) guarantee requires P(S) ≤ e^ε Q(S) + δ, that is,
# ε ≥ ln((P(S) − δ)/Q(S)); and the same for the complement of S with P and Q exchanged. (For a
# record that is replaced or added, the shifts may be 2 and 0 instead of 2 and 1.) For E = 1 this is
# the bound of Chua, Ghazi, Kamath, Kumar, Manurangsi, Sinha and Zhang 2024. Floats choose c and k;
# the bound is then computed in ball arithmetic, and is valid for any choice.

_PRECISION = 192
"""Precision in bits of sums whose terms cancel."""
_GRID = 400
"""Number of values of c on each of two grids: one over the whole range, one around the best c."""
_MOST_VALUES = 4_000_000
"""Largest number of pairs (c, k), which limits memory."""
_CERTAIN = 1e-15
"""Least distance of a float probability from 1, so that the logarithm of its complement is finite.
"""


@final
@dataclass(frozen=True)
class ShuffledBatches:
    """E epochs of N records in batches of B, shuffled anew in each epoch, with noise N(0, σ²)."""

    sigma: ExactReal
    batch: int
    size: int
    epochs: int
    full: int | None = None
    """Number of full batches that the event considers; None for all."""
    moves: tuple[int, int] = (2, 1)
    """Shifts of the sum of the record's batch relative to other batches, under P and under Q."""

    @property
    def _batches(self) -> int:
        return self.size // self.batch if self.full is None else self.full

    def lower(self, delta: ExactReal) -> tuple[arb, str]:
        """Return a lower bound of ε(δ), at least ln(1 − δ), and a description of its event."""
        c, k, added = self._choose_event(float(delta))
        with ctx.workprec(_PRECISION):
            p, q = (self._tail(self._exceeds(Fraction(c), x), k, below=added) for x in self.moves)
            first, second = (q, p) if added else (p, q)
            ratio = (first - delta.ball()).lower() / second.upper()
            least = ball(Fraction(enclose(lambda: arb.log1p(-delta.ball())).lower))
            found = (ratio.log().max(least) if ratio > 0 else least).lower()
        often = f"fewer than {k}" if added else f"at least {k}"
        times = (
            f"{often} of {self.epochs} epochs have"
            if self.epochs > 1
            else ("no" if added else "some")
        )
        event = f"{times} batch with a noisy sum above {c - self.batch:.6g}*C"
        return found, event.replace("have batch", "have a batch")

    def _exceeds(self, c: Fraction, shift: int) -> arb:
        """Return P(A) if the record shifts the sum of its batch by `shift`."""
        t, sigma = self._batches, self.sigma.ball()
        rest = ball(1 - Fraction(t * self.batch, self.size))
        other, own = (normal_cdf((ball(c) - x) / sigma) for x in (0, shift))
        return 1 - other ** (t - 1) * ((1 - rest) * own + rest * other)

    def _tail(self, each: arb, k: int, *, below: bool) -> arb:
        """Return the probability of at least k events in E epochs, or of fewer if `below`."""
        most = self.epochs
        if below:
            return (1 - each).beta_lower(most - k + 1, k, regularized=True)
        return each.beta_lower(k, most - k + 1, regularized=True)

    def _choose_event(self, delta: float) -> tuple[float, int, bool]:
        """Return c, k and whether to use the complement of S; found in floats."""
        sigma = float(self.sigma)
        reach = sigma * (math.sqrt(-2 * math.log(max(delta, 1e-300))) + 3)
        low, high = 2 - reach, 2 + reach
        count = max(16, min(_GRID, _MOST_VALUES // (self.epochs + 1)))
        best = (-math.inf, high, 1, False)
        for _ in range(2):
            grid = np.linspace(low, high, count)
            best = max(best, *self._best_on_grid(grid, delta))
            low, high = best[1] - 2 * (high - low) / count, best[1] + 2 * (high - low) / count
        return best[1:]

    def _best_on_grid(
        self, grid: NDArray[Any], delta: float
    ) -> list[tuple[float, float, int, bool]]:
        """Return the best (ε, c, k, complement) on a grid of c, for S and for its complement."""
        most, t, sigma = self.epochs, self._batches, float(self.sigma)
        rest = 1 - t * self.batch / self.size
        k = np.arange(most + 1)
        factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, most + 1)))])
        choose = factorials[-1] - factorials - factorials[::-1]
        laws = []
        for shift in self.moves:
            other, own = (_normals((grid - x) / sigma) for x in (0, shift))
            none = np.clip(
                other ** (t - 1) * ((1 - rest) * own + rest * other), 1e-300, 1 - _CERTAIN
            )
            logs = choose[:, None] + np.outer(k, np.log1p(-none))
            laws.append(np.exp(logs + np.outer(most - k, np.log(none))))
        over_p, over_q = (np.cumsum(law[::-1], axis=0)[::-1][1:] for law in laws)
        under_p, under_q = (np.cumsum(law, axis=0)[:-1] for law in laws)
        found = []
        for first, second, added in ((over_p, over_q, False), (under_q, under_p, True)):
            gain = np.maximum(first - delta, 1e-300) / np.maximum(second, 1e-300)
            row, column = np.unravel_index(int(gain.argmax()), gain.shape)
            found.append((math.log(gain.max()), float(grid[column]), int(row) + 1, added))
        return found


def _normals(x: NDArray[Any]) -> NDArray[Any]:
    return np.array([math.erfc(-each / math.sqrt(2)) / 2 for each in x.tolist()])


# --- Bounds on both sides of the privacy loss of one user among many shuffled reports -------------
# Each of n users publishes one report, produced by an ε₀-DP randomiser, and only the number of
# reports of each kind is visible. User 1 changes from record a to b; R_a and R_b are the laws of
# the report. Let E = e^{ε₀}, x = e^ε and q = E/(E + 1).
#
# **Upper bound, by clones** (Feldman, McMillan and Talwar 2021, Theorem 3.1). There are laws Q_a
# and Q_b with R_a = q Q_a + (1 − q) Q_b and R_b = (1 − q) Q_a + q Q_b; they are nonnegative because
# R_a ≤ E R_b ≤ E² R_a. Suppose that the law of every other report is at least γ(Q_a + Q_b). Then
# each other user is, with probability 2γ, a clone, whose report is drawn from Q_a or Q_b by a fair
# coin. Reveal which users are clones and the reports of the rest; this can only increase δ. The
# remaining C + 1 reports are those of C ~ Bin(n − 1, 2γ) clones and of user 1. The number of clones
# with Q_a is S ~ Bin(C, ½). Given C = c, with F_c(j) = P(S ≥ j),
#
#     δ_c = max over J of (q − x(1 − q)) F_c(J − 1) + ((1 − q) − x q) F_c(J),   δ ≤ E δ_C
#
# (E δ_C is the expectation of δ_C). The likelihood ratio increases with the number A of reports
# from Q_a, and exceeds x if A > (c + 1) θ, θ = (xE − 1)/((E − 1)(x + 1)). δ_c decreases with c,
# because a further clone adds only an independent coin. γ = 1/(2E) is always valid: the law of a
# report is at least max(R_a, R_b)/E ≥ (R_a + R_b)/(2E), and Q_a + Q_b = R_a + R_b.
#
# *Randomised response* with k categories, p = 1/(E + k − 1): every report has probability at least
# p for each category. The report of user 1 is neither a nor b with probability (k − 2)p, under both
# R_a and R_b; reveal whether it is. Otherwise it is from Q_a or Q_b, the point masses at a and b,
# and γ = p. So δ ≤ (E + 1) p · E δ_C.
#
# *Reports of sets* whose loss is ε₀, 0 or −ε₀, such as unary encodings: the same, with p the
# probability of the loss ε₀ under R_b, and of −ε₀ under R_a. Q_a and Q_b are the conditional laws
# of reports of loss ε₀ and −ε₀; they are the same under R_a and R_b, whose ratio is E or 1/E there.
# Elsewhere R_a = R_b. The law of any report is at least R_a/E = pQ_a on the former and R_b/E = pQ_b
# on the latter reports.
#
# *Numbers in a range with Laplace noise*; ε₀ is the length of the range in noise scales. The
# decomposition is the variation-ratio reduction of Wang, Peng, Li, Lyu and Yang 2023, "Privacy
# amplification via shuffling: unified, simplified, and tightened". Let a and b be t scales apart,
# F = e^t, and let β = 1 − e^{−t/2} be the total variation distance of R_a and R_b. Put
# Q_a = (R_a − R_b)⁺/β, Q_b = (R_b − R_a)⁺/β and α = β/(F − 1). Where R_a > R_b,
#
#     R_a − Fα Q_a = R_b − α Q_a = (F R_b − R_a)/(F − 1) ≥ 0,
#
# and likewise elsewhere. So R_a = Fα Q_a + α Q_b + W and R_b = α Q_a + Fα Q_b + W with the same W;
# reveal whether the report of user 1 is from W. The law of any report is at least R_a/E and R_b/E,
# and R_a ≥ Fα Q_a. So γ = Fα/E is valid and δ ≤ (F + 1) α · E δ_C. This bound increases with β and
# decreases with α and γ, since (F + 1) α δ_c is the maximum over J of
# β (F_c(J − 1) − x F_c(J)) − (x − 1) α (F_c(J − 1) + F_c(J)). As t grows, β and γ grow and α falls.
# So β and α at the upper end of an interval and γ at its lower end bound δ for all t in it;
# intervals are subdivided until the bound is good. (The largest t need not be the worst one: a
# smaller t has a smaller effect but also fewer clones.)
#
# **Lower bound, by datasets.** All other users hold a, or all hold b, or all hold a third category,
# so all their reports have one law G. The reports are counted in three kinds: a, b and all others;
# for sets, those of loss ε₀, −ε₀ and 0; for numbers, those below one cut, above another, and
# between them. With h_o reports of kind o, P(h)/Q(h) = Σ h_o R_a(o)/G(o) / Σ h_o R_b(o)/G(o)
# (module `among`). It exceeds x if
#
#     Σ_o h_o w_o > 0,  w_o = (R_a(o) − x R_b(o))/G(o);
#
# that is, given the number of reports of the last kind, if the number of the first kind is at least
# some J. Every event gives a lower bound, so floats may choose J and the cuts.
#
# (For an arbitrary ε₀-DP randomiser the lower bound is the larger one of those for two and three
# categories, and the upper bound has γ = 1/(2E). The claim that clones with γ = 1/(E + 1) suffice
# for all randomisers was published and withdrawn: Feldman, McMillan and Talwar 2022, errata.)

_LARGEST = 30.0
"""Largest ε₀ of which the exponential is taken for the first step of a search."""
_BITS = 192
"""Precision of the sums in bits; few are lost where tails are subtracted."""
_NEGLIGIBLE = arb(2) ** -90
"""Relative size of the terms that a sum may omit; an upper bound adds a bound of them."""
_WIDE = 13
"""Number of standard deviations above the mean at which sums over the number of clones begin; the
probability beyond is about e^−84."""
_MORE = 20
"""Further clones, for laws of small variance, which are not close to normal."""
_CUTS = 24
"""Number of parts of the range of numbers, at whose ends the cuts may lie."""
_LOOSE = 2.0**-3
"""Approximate relative error of δ at which an interval of distances t is no longer subdivided."""


@final
@dataclass(frozen=True)
class ShuffledReports(MirroredPair):
    """The worst pair of n shuffled reports, known between two bounds.

    The reports are randomised responses with k = `of` categories; for k = 0 they may come from any
    ε₀-DP randomiser; with `report` they are sets; with `numbers` they are numbers in a range of ε₀
    noise scales with Laplace noise. The pair is its own reverse, because a user may change from a
    to b or from b to a.
    """

    law_name = "shuffled-reports"

    epsilon: ExactReal
    of: int
    """The number of categories k, 0 for an arbitrary randomiser."""
    users: int
    report: FiniteLaws | None = None
    """For reports of sets, the probabilities of the losses ε₀, 0 and −ε₀."""
    numbers: bool = False

    def excess(self, epsilon: ExactReal) -> arb:
        """Return a ball that contains both bounds of δ(ε)."""
        return self.lower(epsilon).lower().max(arb(0)).union(self.upper(epsilon).upper())

    def lower(self, epsilon: ExactReal) -> arb:
        """Return a lower bound of δ(ε)."""
        return _either_side(self, epsilon, lambda at: self._best(at).excess())

    def upper(self, epsilon: ExactReal) -> arb:
        """Return an upper bound of δ(ε)."""
        return _either_side(self, epsilon, lambda at: _upper(self, at))

    def _best(self, at: ExactReal) -> OthersAlike:
        """Return the datasets and the event with the largest lower bound, for 0 ≤ ε < ε₀."""
        known = [OthersAlike(self, self.of or 2, held, at) for held in (0, 1)]
        if self.of != 2 and self.report is None and not self.numbers:
            known.append(OthersAlike(self, self.of or 3, 2, at))
        return max(known, key=lambda others: float(others.excess().mid()))

    def _attained(self, epsilon: ExactReal) -> FinitePair:
        """Return the pair of the best event and its complement, at ε or at 0 if ε ∉ [0, ε₀)."""
        inside = epsilon.sign >= 0 and epsilon < self.epsilon
        return FinitePair(self._best(epsilon if inside else ExactReal.of_rational(0)), 0)

    @property
    def known(self) -> Known:
        """Return the largest loss, the attained pair and the inverse."""
        return Known(
            refusal="Of the shuffled reports of many users only bounds of delta and of epsilon are "
            "known. Ask for these.",
            max_loss=lambda: self.epsilon,
            attained=self._attained,
            inverse=self._inverse,
        )

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) between the roots of both bounds; raise UndecidedError if it is too wide."""
        odds = math.exp(min(float(self.epsilon), _LARGEST))
        # roughly the μ of randomised response when all other users hold the same record
        step = Fraction(min(float(self.epsilon) / 2, (odds - 1) / math.sqrt(self.users * odds)))
        return inverse_between(
            (self.lower, self.upper),
            delta,
            step,
            relative_width,
            "below by datasets in which all others are alike, above by clones, a bound that is not "
            "attained",
        )


@final
@dataclass(frozen=True)
class OthersAlike(FiniteLaws):
    """An event and its complement, for shuffled reports of users who all hold the same record.

    The event is that of the lower bound above, at ε = `at`.
    """

    pair: ShuffledReports
    categories: int
    """Number of categories of randomised response, an example of an arbitrary randomiser."""
    held: int
    """The record of all other users, the old one of user 1 (0), its new one (1), or a third (2)."""
    at: ExactReal
    """The ε at which the event is chosen, 0 ≤ ε < ε₀."""

    def excess(self) -> arb:
        """Return P(S) − e^ε Q(S) of the event S."""
        p, q = _event(self)
        return p - self.at.ball().exp() * q

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the probabilities of the event and of its complement."""
        p, q = _event(self)
        return [p, 1 - p], [q, 1 - q]

    def outcomes(self, index: int) -> Sequence[object]:
        """Describe the dataset and the event."""
        held = ("the one that the user leaves", "the one that it turns to", "a third")[self.held]
        kinds = "of the two categories"
        if self.pair.report is not None:
            kinds = "that contain one of the two categories alone"
        if self.pair.numbers:
            low, high = (float(y) for y in self.cuts)
            kinds = f"below {low:.6g} and above {high:.6g} noise scales from the end left"
        event = f"the numbers of reports {kinds} whose loss exceeds {self.at}"
        return f"{event}, while the other {self.pair.users - 1} users hold {held}", "all else"

    @property
    def laws(self) -> tuple[Balls, Balls, Balls]:
        """R_a, R_b and G on the three kinds; with two kinds, the last one has probability 0."""
        if self.pair.numbers:
            first, second = _cut(self.cuts, self.pair.epsilon.ball().exp())
        else:
            first = _three_kinds(self.pair, self.categories)
            second = first[::-1]
        if first[1].is_zero():
            first, second = ([law[0], law[2], law[1]] for law in (first, second))
        third = [first[2], 1 - 2 * first[2], first[2]] if self.held == 2 else []
        return first, second, (first, second, third)[self.held]

    @cached_property
    def cuts(self) -> tuple[Fraction, Fraction]:
        """The two cuts on a grid with the largest Σ w²G, in noise scales from a, by floats."""
        whole, x = float(self.pair.epsilon), math.exp(float(self.at))
        found, best = (0.0, 0.0), -math.inf
        grid = [whole * i / _CUTS for i in range(_CUTS)]  # all within the range
        for low, high in combinations_with_replacement(grid, 2):
            near, far = (math.exp(-y) / 2 for y in (low, high))
            start, end = (math.exp(y - whole) / 2 for y in (low, high))
            laws = (1 - near, near - far, far), (start, end - start, 1 - end)
            gains = [p - x * q for p, q in zip(*laws, strict=True)]
            spread = sum(w * w / g for w, g in zip(gains, laws[self.held], strict=True) if g)
            if spread > best and (gains[0] > 0 or low == 0):
                found, best = (low, high), spread
        return Fraction(found[0]), Fraction(found[1])


def _either_side(pair: ShuffledReports, epsilon: ExactReal, value: Bound) -> arb:
    """Return H at any ε from values on [0, ε₀): H(ε) = 1 − e^ε + e^ε H(−ε), H = 0 for ε ≥ ε₀."""
    if epsilon.sign < 0:
        x = epsilon.ball().exp()
        return 1 - x + x * _either_side(pair, -epsilon, value)
    return value(epsilon) if epsilon < pair.epsilon else arb(0)


def _three_kinds(pair: ShuffledReports, categories: int) -> Balls:
    """Return the probabilities of the losses ε₀, 0 and −ε₀ under R_a."""
    if pair.report is not None:
        return pair.report.masses(0)[0]
    odds = pair.epsilon.ball().exp()
    lie = 1 / (odds + categories - 1)
    return [odds * lie, (categories - 2) * lie, lie]


def _cut(cuts: tuple[Fraction, Fraction], odds: arb) -> tuple[Balls, Balls]:
    """Return the probabilities below, between and above the cuts, for noise centred at 0 and ε₀."""
    near, far = (ball(-y).exp() / 2 for y in cuts)
    first, second = (ball(y).exp() / (2 * odds) for y in cuts)
    between = (arb(0), arb(0)) if cuts[0] == cuts[1] else (near - far, second - first)
    return [1 - near, between[0], far], [first, between[1], 1 - second]


@lru_cache(maxsize=256)
def _event(others: OthersAlike) -> tuple[arb, arb]:
    """Return the probabilities of the event under P and under Q.

    The sum runs over the number m of the other users' reports of the last kind, from a large m
    down to where the terms are negligible. For each m the event requires at least J reports of the
    first kind; the report of user 1 adds one to the first, the second or the last kind.
    """
    with ctx.workprec(_BITS):
        first, second, law = others.laws
        x, n, last = others.at.ball().exp(), others.pair.users, law[2]
        w = [
            (p - x * q) / g if g > 0 else arb(0) for p, q, g in zip(first, second, law, strict=True)
        ]
        rise = w[0] - w[1]
        fixed, slope = (fraction((part / rise).mid()) for part in (-w[1] * n, w[1] - w[2]))
        slope = max(slope, Fraction(0))
        p, q, ended = arb(0), arb(0), False
        top = 0 if last.is_zero() else _most_clones(n - 1, last)
        weight = _mass(n - 1, top, last) if top else arb(1)
        rows = _tails(
            n - 1, top, law[0] / (law[0] + law[1]), lambda m: math.floor(fixed + slope * m) + 1
        )
        for m, above, tail, before in rows:
            p, q = p + weight * first[2] * above, q + weight * second[2] * above
            if ended:
                break
            p += weight * (first[0] * before + first[1] * tail)
            q += weight * (second[0] * before + second[1] * tail)
            ended = weight * before < p * _NEGLIGIBLE
            if m:
                weight = weight * m * (1 - last) / ((n - m) * last)
        return p, q


def _tails(
    others: int, top: int, share: arb, least: Callable[[int], int]
) -> Iterator[tuple[int, arb, arb, arb]]:
    """Yield (m, F(J'), F(J), F(J − 1)) for m = top, …, 0, with J = least(m) and J' = least(m + 1).

    F is the upper tail of Bin(others − m, share); for m = top, F(J') is replaced by 0. J must not
    increase as m decreases. When m decreases by 1, F(J) increases by share·f(J − 1), with f the
    probability mass function, so no terms are subtracted.
    """
    place, above = max(least(top), 0), arb(0)
    tail, point = _tail(others - top, place, share), _mass(others - top, place - 1, share)
    for m in range(top, -1, -1):
        yield m, above, tail, tail + point
        trials, after = others - m + 1, max(least(m - 1), 0)
        above = tail = tail + share * point
        if place - after > _MORE + math.isqrt(trials) or place > trials:
            place = after
            tail, point = _tail(trials, place, share), _mass(trials, place - 1, share)
            continue
        point = point * trials * (1 - share) / (trials - place + 1)
        while place > after:
            tail, place = tail + point, place - 1
            point = point * place * (1 - share) / ((trials - place + 1) * share)


@lru_cache(maxsize=256)
def _upper(pair: ShuffledReports, epsilon: ExactReal) -> arb:
    """Return the upper bound by clones, for 0 ≤ ε < ε₀."""
    with ctx.workprec(_BITS):
        x, odds, others = epsilon.ball().exp(), pair.epsilon.ball().exp(), pair.users - 1
        if pair.numbers:
            return _of_numbers(pair, x)
        anyone = 1 / (2 * odds)
        if pair.of == 0:
            return _clones(odds, x, others, anyone)
        p = _three_kinds(pair, pair.of)[2]
        found = (odds + 1) * p * _clones(odds, x, others, p)
        # for p > 1/(2E) the first bound is the better one
        return found if p > anyone else found.min(_clones(odds, x, others, anyone))


def _of_numbers(pair: ShuffledReports, x: arb) -> arb:
    """Return the upper bound for Laplace noise: the largest over intervals of t.

    The interval with the largest bound is subdivided until that bound is tight enough.
    """
    whole = pair.epsilon.ball()

    def bound(low: Fraction, high: Fraction) -> tuple[float, arb, Fraction, Fraction, float]:
        start, end = ((whole * ball(share) / 2).exp() for share in (low, high))
        least, most = (s / ((s + 1) * whole.exp()) for s in (start, end))
        found = arb(0)
        if not end**2 <= x:
            found = (end**2 + 1) / (end * (end + 1)) * _clones(end**2, x, pair.users - 1, least)
        size = float(found.upper().log().mid()) if found.upper() > 0 else -math.inf
        return size, found, low, high, float((most / least - 1).mid()) * max(1.0, -size)

    cells = [bound(Fraction(0), Fraction(1))]
    while True:
        size, found, low, high, loose = cells.pop(cells.index(max(cells, key=lambda cell: cell[0])))
        if loose < _LOOSE or size == -math.inf:
            for cell in cells:  # floats may not distinguish the two largest cells
                found = found.max(cell[1])
            return found.min(1 - (x / whole.exp()).sqrt())  # δ of a single report
        middle = (low + 3 * high) / 4
        cells += [bound(low, middle), bound(middle, high)]


def _clones(odds: arb, x: arb, others: int, gamma: arb) -> arb:
    """Return an upper bound of the expectation of δ_C for C ~ Bin(others, 2γ)."""
    truth = odds / (odds + 1)
    gain = truth - x * (1 - truth)  # P − xQ if the report of user 1 is from Q_a
    loss = x * truth - (1 - truth)  # xQ − P if it is from Q_b
    theta = (x * odds - 1) / ((odds - 1) * (x + 1))
    low, high = fraction(theta.lower()), fraction(theta.upper())
    share, total, last = 2 * gamma, arb(0), arb(0)
    top = _most_clones(others, share)
    for c, place, tail, point in _coins(top, lambda c: min(math.floor((c + 1) * high), c) + 1):
        weight = _mass(others, c, share) if c == top else last
        each = gain * (tail + point) - loss * tail
        if place > 1 and math.floor((c + 1) * low) + 1 < place:  # the best J may be one less
            before = point * (place - 1) / (c - place + 2)
            each = each.max(gain * (tail + point + before) - loss * (tail + point))
        total += weight * each
        if c == top:
            total += _upper_tail(others, c, share, weight) * each
        if c == 0:
            break
        last = weight * c * (1 - share) / ((others - c + 1) * share)
        # P(Bin < c) is P(Bin ≥ others − c + 1) of the other outcome
        rest = (last + _upper_tail(others, others - c + 1, 1 - share, last)) * gain
        if rest < total * _NEGLIGIBLE:
            return total + rest
    return total


def _coins(top: int, least: Callable[[int], int]) -> Iterator[tuple[int, int, arb, arb]]:
    """Yield (c, J, F_c(J), f_c(J − 1)) for c = top, …, 0, with J = least(c) in 1, …, c + 1.

    f_c is the probability mass function of the number of heads of c fair coins, F_c its upper tail.
    When c decreases by 1, J must stay or decrease by 1, and

        F_{c−1}(J) = F_c(J) − h,   F_{c−1}(J − 1) = F_c(J) + h,   h = f_c(J − 1) (c − J + 1)/c.
    """
    place, half = least(top), arb(1) / 2
    tail, point = _tail(top, place, half), _mass(top, place - 1, half)
    for c in range(top, 0, -1):
        yield c, place, tail, point
        step = point * (c - place + 1) / c
        if least(c - 1) == place:
            tail, point = tail - step, 2 * step
        else:
            tail, point = tail + step, 2 * point * (place - 1) / c
            place -= 1
    yield 0, place, tail, point


def _most_clones(trials: int, share: arb) -> int:
    """Return a number that Bin(trials, share) exceeds with negligible probability."""
    mean = trials * float(share.mid())
    return min(trials, int(mean) + _WIDE * (math.isqrt(int(mean)) + 1) + _MORE)


def _mass(trials: int, hits: int, share: arb) -> arb:
    """Return P(Bin(trials, share) = hits)."""
    if not 0 <= hits <= trials:
        return arb(0)
    choose = arb(trials + 1).lgamma() - arb(hits + 1).lgamma() - arb(trials - hits + 1).lgamma()
    return (choose + hits * share.log() + (trials - hits) * (1 - share).log()).exp()


def _tail(trials: int, least: int, share: arb) -> arb:
    """Return P(Bin(trials, share) ≥ least); a geometric series bounds the terms left out."""
    if least <= 0:
        return arb(1)
    total, term = arb(0), _mass(trials, least, share)
    for hits in range(least, trials + 1):
        total += term
        rest = _upper_tail(trials, hits, share, term)
        if rest < total * _NEGLIGIBLE:
            return total.union(total + rest)
        term = term * (trials - hits) * share / ((hits + 1) * (1 - share))
    return total


def _upper_tail(trials: int, hits: int, share: arb, mass: arb) -> arb:
    """Return an upper bound of P(Bin > hits), given the mass at `hits`.

    The ratios of successive masses decrease, so a geometric series bounds the tail.
    """
    if hits == trials:
        return arb(0)
    ratio = (trials - hits) * share / ((hits + 1) * (1 - share))
    return mass * ratio / (1 - ratio) if ratio < 1 else arb(1)
