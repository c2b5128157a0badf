"""Shuffled reports, and batches of a shuffled epoch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

from flint import arb

from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.core.pair import Known, MirroredPair
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball, enclose
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.between import Bound, inverse_between
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair
from dpassay.accountant.pairs.gaussian import normal_cdf

"""A lower bound of ε for shuffled fixed batches, from one dataset and one event.

N records are put into an order anew in each of E epochs and cut into t = ⌊N/B⌋ batches of B, the
r = N − tB last ones being dropped or in a smaller batch. All gradients lie on a line, in units of
the clipping norm: that of one record is 1 under P and 0 under Q, all others are −1. A full batch
sum is −B, and in the record's batch −B + 2 under P, −B + 1 under Q. With noise N(0, σ²) and

    A = {some full batch has a noisy sum above c − B},
    1 − P(A) = (1 − r/N) Φ((c − 2)/σ) Φ(c/σ)^{t−1} + (r/N) Φ(c/σ)^t,

and the same with c − 1 for Q, epochs being independent, S = {A in at least k of E epochs} has
binomial tails. A guarantee (ε, δ) demands P(S) ≤ e^ε Q(S) + δ, that is, ε ≥ ln((P(S) − δ)/Q(S));
and as much for the complement of S with P and Q exchanged. (A record that is replaced, or added,
may have 2 and 0 for 2 and 1.) (For E = 1 this is the bound of Chua,
Ghazi, Kamath, Kumar, Manurangsi, Sinha and Zhang 2024.) c and k are chosen by floats, and the bound
is a ball for whatever they are.
"""

_PRECISION = 192
"""Bits of sums whose terms cancel."""
_GRID = 400
"""Values of c that are tried, twice: over all of them, and beside the best one."""
_MOST_VALUES = 4_000_000
"""Values of c and k together: memory."""
_CERTAIN = 1e-15
"""How near to 1 a probability may be in floats, so that its logarithm is finite."""


@final
@dataclass(frozen=True)
class ShuffledBatches:
    """E epochs of batches of B of N records, each in an order of its own, with noise σ."""

    sigma: ExactReal
    batch: int
    size: int
    epochs: int
    full: int | None = None
    """The full batches that are looked at; None for all."""
    moves: tuple[int, int] = (2, 1)
    """By how much more than another record the one adds to a sum, under P and under Q."""

    @property
    def _looked_at(self) -> int:
        return self.size // self.batch if self.full is None else self.full

    def lower(self, delta: ExactReal) -> tuple[arb, str]:
        """Return a lower bound of ε(δ), at least ln(1 − δ), and the event that gives it."""
        c, k, added = self._chosen(float(delta))
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
        """Return the probability of A where the record adds `shift` to the sum of its batch."""
        t, sigma = self._looked_at, self.sigma.ball()
        rest = ball(1 - Fraction(t * self.batch, self.size))
        other, own = (normal_cdf((ball(c) - x) / sigma) for x in (0, shift))
        return 1 - other ** (t - 1) * ((1 - rest) * own + rest * other)

    def _tail(self, each: arb, k: int, *, below: bool) -> arb:
        """Return the probability of at least k, or of fewer, events of E."""
        most = self.epochs
        if below:
            return (1 - each).beta_lower(most - k + 1, k, regularized=True)
        return each.beta_lower(k, most - k + 1, regularized=True)

    def _chosen(self, delta: float) -> tuple[float, int, bool]:
        """Return c, k and whether the complement is taken, by floats."""
        sigma = float(self.sigma)
        reach = sigma * (math.sqrt(-2 * math.log(max(delta, 1e-300))) + 3)
        low, high = 2 - reach, 2 + reach
        count = max(16, min(_GRID, _MOST_VALUES // (self.epochs + 1)))
        best = (-math.inf, high, 1, False)
        for _ in range(2):
            grid = np.linspace(low, high, count)
            best = max(best, *self._on(grid, delta))
            low, high = best[1] - 2 * (high - low) / count, best[1] + 2 * (high - low) / count
        return best[1:]

    def _on(self, grid: NDArray[Any], delta: float) -> list[tuple[float, float, int, bool]]:
        """Return the best (ε, c, k, complement) of a grid, for S and for its complement."""
        most, t, sigma = self.epochs, self._looked_at, float(self.sigma)
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


"""Bounds of what the shuffled reports of many users tell of one of them, from both sides.

Each of n users publishes one report, made by a randomiser that is ε₀-DP, and only how many reports
there are of each kind is seen. User 1 changes from record a to b; R_a, R_b are the laws of the
report. Let E = e^{ε₀}, x = e^ε and q = E/(E + 1).

**Above, by clones** (Feldman, McMillan and Talwar 2021, Theorem 3.1). There are laws Q_a, Q_b with
R_a = q Q_a + (1 − q) Q_b and R_b = (1 − q) Q_a + q Q_b (both are ≥ 0 as R_a ≤ E R_b ≤ E² R_a). If
the law of every other report is at least γ(Q_a + Q_b), each other user sends, with probability 2γ,
a report of Q_a or Q_b, of either by a fair coin. Tell who does, and what the rest sends. What is
left are C + 1 reports, C ~ Bin(n − 1, 2γ), of which S ~ Bin(C, ½) others and perhaps user 1 are of
Q_a: given C = c, with F_c(j) = P(S ≥ j),

    δ_c = max over J of (q − x(1 − q)) F_c(J − 1) + ((1 − q) − x q) F_c(J),   δ ≤ E δ_C.

The ratio of both laws rises with the number A of reports of Q_a, and exceeds x where
A > (c + 1) θ, θ = (xE − 1)/((E − 1)(x + 1)). One more clone is one more coin: δ_c falls with c.
γ = 1/(2E) always will do, as the law of a report is ≥ max(R_a, R_b)/E ≥ (R_a + R_b)/(2E), and
Q_a + Q_b = R_a + R_b.

*Randomised response* of k categories, p = 1/(E + k − 1): every report is at least p of each
category. User 1's report is neither a nor b with probability (k − 2)p, for a and for b: tell when.
Else it is of Q_a or Q_b, the reports a and b, and γ = p: δ ≤ (E + 1) p · E δ_C.

*Reports of sets* whose loss is ε₀, 0 or −ε₀, such as unary encodings: the same, with p the chance
of a report of loss ε₀ under R_b, and of −ε₀ under R_a. Q_a and Q_b are the laws of those reports,
under R_a and R_b alike, as their ratio is E or 1/E; elsewhere R_a = R_b. The law of any report is
at least R_a/E = pQ_a on the former, and R_b/E = pQ_b on the latter. Below, all others hold a, or
all b, and only the reports of loss ε₀ are counted.

**Below, by datasets**, with randomised response. *All others hold a, or all b*: the reports of a by
the others are S ~ Bin(n − 1, s), s = Ep or p, and user 1's is one more with chance Ep, or p. *All
others hold a third category*: C ~ Bin(n − 1, 2p) of them report a or b. With T of all reports a or
b, and A of these a, P(T, A) − x Q(T, A) is summed over A ≥ J_T, from where on it is positive; user
1's is a, b or neither with chances Ep, p, (k − 2)p, or p, Ep, (k − 2)p. Any event is a lower bound,
so that floats may choose J.

(For every ε₀-DP randomiser the bound from below is the larger of those of two and three
categories, and that from above has γ = 1/(2E). That clones with γ = 1/(E + 1) are enough for all of
them was published and withdrawn: Feldman, McMillan and Talwar 2022, errata.)
"""

_LARGEST = 30.0
"""ε₀ up to which a first step is chosen by its exponential."""
_BITS = 192
"""Bits of the sums: few digits are lost where tails are subtracted."""
_NEGLIGIBLE = arb(2) ** -90
"""The part of a sum that may be left out of it (an upper bound has it added)."""
_WIDE = 13
"""Standard deviations above the mean at which the numbers of clones begin: e^−84 is beyond."""
_MORE = 20
"""Clones besides: where the deviation is small, the law is not normal."""


_REFUSAL = (
    "Of the shuffled reports of many users only bounds of delta and of epsilon are known. Ask for "
    "these."
)


@final
@dataclass(frozen=True)
class ShuffledReports(MirroredPair):
    """Neighbours of n shuffled reports: of k categories, or (k = 0) of any ε₀-DP randomiser.

    They are their own reverse: a user may change from a to b or from b to a.
    """

    law_name = "shuffled-reports"

    epsilon: ExactReal
    of: int
    """The categories k."""
    users: int
    report: FiniteLaws | None = None
    """Of reports of sets: their laws by the losses ε₀, 0 and −ε₀."""

    def excess(self, epsilon: ExactReal) -> arb:
        """Return a ball around both bounds."""
        return self.lower(epsilon).lower().max(arb(0)).union(self.upper(epsilon).upper())

    def lower(self, epsilon: ExactReal) -> arb:
        """Return a lower bound of δ(ε)."""
        return _either_side(self, epsilon, lambda at: self._best(at).excess())

    def upper(self, epsilon: ExactReal) -> arb:
        """Return an upper bound of δ(ε)."""
        return _either_side(self, epsilon, lambda at: _upper(self, at))

    def _best(self, at: ExactReal) -> OthersAlike:
        """Return the datasets whose event shows most, for 0 ≤ ε < ε₀."""
        k, e, n = self.of, self.epsilon, self.users
        known = [OthersAlike(e, k, k or 2, n, held, at, self.report) for held in (0, 1)]
        if k != 2 and self.report is None:
            known.append(OthersAlike(e, k, k or 3, n, 2, at))
        return max(known, key=lambda others: float(others.excess().mid()))

    def _attained(self, epsilon: ExactReal) -> FinitePair:
        """Return the event that shows most, and its complement."""
        inside = epsilon.sign >= 0 and epsilon < self.epsilon
        return FinitePair(self._best(epsilon if inside else ExactReal.of_rational(0)), 0)

    @property
    def known(self) -> Known:
        """Return closed forms, and where a search may start."""
        return Known(
            refusal=_REFUSAL,
            max_loss=lambda: self.epsilon,
            attained=self._attained,
            inverse=self._inverse,
        )

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        """Enclose ε(δ) by where both bounds pass δ; UndecidedError where that is too wide."""
        odds = math.exp(min(float(self.epsilon), _LARGEST))
        # about the μ of randomised response among others who are all alike
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
    """Randomised response among others who all hold one category: an event of the module at an ε.

    It is one of the reports of a (and of b, where the others hold a third category), which no other
    betters at this ε but by rounding; its complement is the other outcome.
    """

    epsilon: ExactReal
    of: int
    """The categories of the mechanism, 0 for any randomiser."""
    categories: int
    users: int
    held: int
    """What the others hold: what user 1 leaves (0), what it turns to (1), or a third (2)."""
    at: ExactReal
    """The ε, 0 ≤ ε < ε₀, at which the event is chosen."""
    report: FiniteLaws | None = None
    """Of reports of sets, as in `ShuffledReports`."""

    def excess(self) -> arb:
        """Return P − e^ε Q of the event."""
        p, q = _event(self)
        return p - self.at.ball().exp() * q

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the probabilities of the event and of its complement."""
        p, q = _event(self)
        return [p, 1 - p], [q, 1 - q]

    def outcomes(self, index: int) -> Sequence[object]:
        """Say who reports, and which histograms make up the event."""
        held = ("the one that the user leaves", "the one that it turns to", "a third")[self.held]
        least = _Sums(self, self.at).least_alike(self.held)
        kind = "of the category left"
        if self.report is not None:
            kind = "that contain the category left, and not the one turned to"
        event = f"at least {least} reports {kind}"
        if self.held == 2:
            event = f"the numbers of reports of the two categories whose loss exceeds {self.at}"
        return f"{event}, while the other {self.users - 1} users hold {held}", "all else"


def _either_side(pair: ShuffledReports, epsilon: ExactReal, value: Bound) -> arb:
    """Return H at any ε by that at 0 ≤ ε < ε₀: H(ε) = 1 − e^ε + e^ε H(−ε), and 0 from ε₀ on."""
    if epsilon.sign < 0:
        x = epsilon.ball().exp()
        return 1 - x + x * _either_side(pair, -epsilon, value)
    return value(epsilon) if epsilon < pair.epsilon else arb(0)


@lru_cache(maxsize=256)
def _event(others: OthersAlike) -> tuple[arb, arb]:
    """Return P and Q of the event."""
    with ctx.workprec(_BITS):
        sums = _Sums(others, others.at)
        return sums.third_category() if others.held == 2 else sums.all_alike(others.held)


@lru_cache(maxsize=256)
def _upper(pair: ShuffledReports, epsilon: ExactReal) -> arb:
    """Return the bound by clones, for 0 ≤ ε < ε₀."""
    with ctx.workprec(_BITS):
        sums, k = _Sums(pair, epsilon), pair.of
        if k == 0:
            return sums.clones(1 / (2 * sums.odds))
        p = sums.lie
        found = (sums.odds + 1) * p * sums.clones(p)
        # where p exceeds 1/(2E), this is the better bound
        return found if p > 1 / (2 * sums.odds) else found.min(sums.clones(1 / (2 * sums.odds)))


class _Sums:
    """The sums of the module for one ε in [0, ε₀)."""

    def __init__(self, pair: ShuffledReports | OthersAlike, epsilon: ExactReal) -> None:
        self.users, self.others = pair.users, pair.users - 1
        self.odds, self.x = pair.epsilon.ball().exp(), epsilon.ball().exp()
        self.truth = self.odds / (self.odds + 1)
        self.gain = self.truth - self.x * (1 - self.truth)
        """How much P exceeds x Q where user 1's report is of Q_a."""
        self.loss = self.x * self.truth - (1 - self.truth)
        """How much x Q exceeds P where it is of Q_b."""
        self.unit = (self.odds - 1) * (self.x + 1)
        self.categories = pair.categories if isinstance(pair, OthersAlike) else pair.of
        self.lie = 1 / (self.odds + self.categories - 1)
        """p of the module."""
        if pair.report is not None:
            self.lie = pair.report.masses(0)[0][-1]

    def clones(self, gamma: arb) -> arb:
        """Return an upper bound of E δ_C for C ~ Bin(n − 1, 2γ)."""
        theta = (self.x * self.odds - 1) / self.unit
        low, high = fraction(theta.lower()), fraction(theta.upper())
        share, total, last = 2 * gamma, arb(0), arb(0)
        top = _top(self.others, share)
        for c, place, tail, point in _coins(top, lambda c: min(math.floor((c + 1) * high), c) + 1):
            weight = _mass(self.others, c, share) if c == top else last
            each = self.gain * (tail + point) - self.loss * tail
            if place > 1 and math.floor((c + 1) * low) + 1 < place:  # it may be the place before
                before = point * (place - 1) / (c - place + 2)
                each = each.max(self.gain * (tail + point + before) - self.loss * (tail + point))
            total += weight * each
            if c == top:
                total += _beyond(self.others, c, share, weight) * each
            if c == 0:
                break
            last = weight * c * (1 - share) / ((self.others - c + 1) * share)
            rest = _under(self.others, c, share, last) * self.gain
            if rest < total * _NEGLIGIBLE:
                return total + rest
        return total

    def least_alike(self, held: int) -> int:
        """Return from how many reports of a on the loss exceeds ε, by floats.

        With g the law of those of the others, P > x Q where Ep g(A − 1) + (1 − Ep) g(A) exceeds
        x (p g(A − 1) + (1 − p) g(A)).
        """
        lie = self.lie
        ratio = (self.x * (1 - lie) - (1 - self.odds * lie)) / (lie * (self.odds - self.x))
        odds = ratio * self._share(held) / (1 - self._share(held))
        return math.floor(float((self.users * odds / (1 + odds)).mid())) + 1

    def _share(self, held: int) -> arb:
        """Return the chance of a report of a, for the others."""
        return self.lie if held else self.odds * self.lie

    def all_alike(self, held: int) -> tuple[arb, arb]:
        """Return P and Q of {A ≥ J} where the others all hold a, or all b."""
        share, least = self._share(held), self.least_alike(held)
        above = _tail(self.others, least, share)
        point = _mass(self.others, least - 1, share)
        return above + self._share(0) * point, above + self._share(1) * point

    def third_category(self) -> tuple[arb, arb]:
        """Return P and Q of {T in a window, A ≥ J_T} where the others hold a third of k."""
        k = self.categories
        p = self.lie
        ratio = (k - 2) / (self.odds + k - 3)
        fixed = fraction(((self.x - 1) * ratio * self.users / self.unit).mid())
        slope = fraction(((self.x * self.odds - 1 - (self.x - 1) * ratio) / self.unit).mid())

        def least(reports: int) -> int:
            return math.floor(fixed + slope * reports) + 1

        share, weight = 2 * p, arb(0)
        first, second = arb(0), arb(0)
        top = _top(self.others, share)
        for c, place, tail, point in _coins(top, least):
            weight = _mass(self.others, c, share) if c == top else weight
            both = weight * (k - 2) * p * tail  # c reports of a or b, user 1's being neither
            before = above = arb(0)
            if c < top:  # c + 1 of them
                before, above = tail + point, tail
                if least(c + 1) > place:
                    before, above = tail, tail - point * (c - place + 1) / place
            if c < top and weight * before < first * _NEGLIGIBLE:
                break
            first += weight * p * (self.odds * before + above) + both
            second += weight * p * (before + self.odds * above) + both
            weight = weight * c * (1 - share) / ((self.others - c + 1) * share)
        return first, second


def _coins(top: int, least: Callable[[int], int]) -> Iterator[tuple[int, int, arb, arb]]:
    """Yield (c, J, F_c(J), f_c(J − 1)) for c = top, …, 0, with J = least(c) in 1, …, c + 1.

    f_c is the law of the heads among c fair coins. J falls by 1 or not at all as c does, and

        F_{c−1}(J) = F_c(J) − h,   F_{c−1}(J − 1) = F_c(J) + h,   h = f_c(J − 1) (c − J + 1)/c.
    """
    place = least(top)
    if place > top + 1:
        return
    half = arb(1) / 2
    tail, point = _tail(top, place, half), _mass(top, place - 1, half)
    for c in range(top, 0, -1):
        yield c, place, tail, point
        step = point * (c - place + 1) / c
        if least(c - 1) == place:
            tail, point = tail - step, 2 * step
        else:
            tail, point = tail + step, 2 * point * (place - 1) / c
            place -= 1
        if place > c:  # J > (c − 1) + 1: from here on nothing is left
            return
    yield 0, place, tail, point


def _top(trials: int, share: arb) -> int:
    """Return a number that Bin(trials, share) hardly ever exceeds."""
    mean = trials * float(share.mid())
    return min(trials, int(mean) + _WIDE * (math.isqrt(int(mean)) + 1) + _MORE)


def _mass(trials: int, hits: int, share: arb) -> arb:
    """Return P(Bin(trials, share) = hits)."""
    if not 0 <= hits <= trials:
        return arb(0)
    choose = arb(trials + 1).lgamma() - arb(hits + 1).lgamma() - arb(trials - hits + 1).lgamma()
    return (choose + hits * share.log() + (trials - hits) * (1 - share).log()).exp()


def _tail(trials: int, least: int, share: arb) -> arb:
    """Return P(Bin(trials, share) ≥ least): terms, and a geometric series above what is left."""
    if least <= 0:
        return arb(1)
    total, term = arb(0), _mass(trials, least, share)
    for hits in range(least, trials + 1):
        total += term
        rest = _beyond(trials, hits, share, term)
        if rest < total * _NEGLIGIBLE:
            return total.union(total + rest)
        term = term * (trials - hits) * share / ((hits + 1) * (1 - share))
    return total


def _beyond(trials: int, hits: int, share: arb, mass: arb) -> arb:
    """Return an upper bound of P(Bin > hits), whose mass at `hits` is known: ratios fall."""
    if hits == trials:
        return arb(0)
    ratio = (trials - hits) * share / ((hits + 1) * (1 - share))
    return mass * ratio / (1 - ratio) if ratio < 1 else arb(1)


def _under(trials: int, hits: int, share: arb, mass: arb) -> arb:
    """Return an upper bound of P(Bin < hits), whose mass at hits − 1 is `mass`."""
    ratio = (hits - 1) * (1 - share) / ((trials - hits + 2) * share)
    return mass / (1 - ratio) if ratio < 1 else arb(1)
