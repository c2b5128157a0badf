"""The best of a random number of runs (private selection): both bounds of δ(ε) over all scores.

A mechanism is run K times independently on the same data, and the run with the best score is
released, or nothing if K = 0. K is drawn first; φ(z) = E z^K and E K < ∞. The score is any function
of the output and of independent coins. P and Q are the laws of one run, and x = e^ε.

**It suffices to study one dominating pair.** If (P, Q) dominates the laws of two neighbours, these
laws are the images of P and Q under one Markov kernel (Blackwell 1953), that is, functions of an
outcome and coins. We may release the outcome and the coins, and let the score depend on both, since
this releases more. Ties are broken by a further coin, which gives the same law as a uniform choice
among them. So a score is a strict ranking of all outcomes. The bound is attained if the outputs
of the mechanism contain such coins.

**The law of the best run.** The best of k runs is below a place in the ranking exactly if all runs
are. So it is between two places with probability φ(A′) − φ(A) under P and φ(B′) − φ(B) under Q,
where A and B (A′ and B′) are the probabilities of one run below the lower (upper) place.

**The worst ranking.** Divide a ranking into chunks that alternate between inside and outside of an
event S. P*(S), the probability that the best run is in S, is the sum of φ(A′) − φ(A) over the
chunks inside. Its derivative with respect to the P-mass of chunk k is φ′(A′_k) + R_k if the chunk
is inside and R_k if it is outside, where R_k is the sum of φ′(A′) − φ′(A) over all later chunks
inside. Since φ′ is increasing, these derivatives always order the chunks in the same way: first, by
increasing derivative, those outside from the last to the first, then those inside from the first to
the last. Fix the Q-mass of every chunk, and so Q*(S). Redistribute P: give the last chunk inside
the outcomes of largest loss, the one before it the next largest, and so on down this order. No
outcomes of a given Q-mass have more P-mass, so this choice has the largest partial sums of P-mass
from the top of the order. By summation by parts, P*(S) does not decrease along the straight line to
it. Hence there is a worst ranking in which, at each place, the outcomes ranked so far are those
with losses in an *interval* (i, j). The interval starts anywhere, grows upwards by outcomes inside
S and downwards by outcomes outside. Sufficiently fine chunks approximate any ranking, as E K < ∞.
So

    δ(ε) = sup over paths (i, j) of Σ over steps up of φ(A′) − φ(A) − x (φ(B′) − φ(B)).

**Discretisation.** Put f(b) = φ′(0) (p − x q), a density in b, and D = φ″(A) p p′ − x φ″(B) q q′, a
density in (a, b). The value of a path is the integral of f over the b inside S plus the integral of
D over the (a, b) with b inside and a ranked before b, inside or outside. This is the fundamental
theorem of calculus: φ′(A) grows from φ′(0) with every a before b. So the value is linear in the
indicators of these two sets. Here a has a smaller loss than b. The indicators satisfy order
relations: if b is inside and a is before b, the same holds for any a, and any b, of larger loss;
if a and b are both inside, a is before b. Now divide the outcomes into finitely many pieces.
Take the fraction of these sets in each piece and in each cell (pair of pieces), and the mean of D
over each cell. Numbers in [0, 1] that satisfy these order relations are mixtures of zeros and ones
that do. So the fractions have no larger value than the best path of whole pieces that differs from
them only in cells that are partly in the set. In such a cell the integrals of D and of its mean
over a part of the cell differ by at most ½ E|D − ED|, which is at most half the standard deviation;
for φ″(A) p p′ the standard deviation is at most φ‴ p p′ √((p² + p′²)/12). All these cells touch the
best path of whole pieces, so their errors are added to its value. Finally, a single piece may have
a fraction f inside. Then the path starts with this piece in a part f of the mixture. The diagonal
cell of the piece adds at most f (φ″(A) p² + ½ x φ″(B) q²) to the mixture, so this term is added to
the paths that start with it.

**Both bounds.** The best path of whole pieces is found by dynamic programming over the intervals.
Lower bound: let each piece consist of all outcomes with losses in (s, t]; this is a coarser
release. Upper bound: replace these outcomes by two outcomes with the losses s and t and the same
total masses; this pair dominates every law with these masses on (s, t].

**The largest loss** is the largest loss of one run plus the largest ln φ′(A)/φ′(B). (A, B) lies on
the trade-off curve (Neyman and Pearson). On its straight pieces φ′(A)/φ′(B) is a power of a
quotient of linear functions, or an exponential, so only their ends matter. If there are infinite
losses, of P-mass m, and φ′(0) > 0, the same sum with the largest finite loss of one run is the
largest finite loss. From there on δ(ε) = 1 − φ(1 − m), attained by a score that prefers infinite
losses: only these contribute, and no score selects them more often.

**Rényi divergences** are bounded by those of one run: Papernot and Steinke 2022, "Hyperparameter
tuning with Rényi differential privacy", Theorems 2 and 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial, reduce
from itertools import accumulate, pairwise
from typing import TypeAlias, final

from flint import arb

from dpassay.accountant.core.arrays import Array, np
from dpassay.accountant.core.pair import Known, Pair, refined
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.accountant.numbers.interval import Interval, ball
from dpassay.accountant.numbers.precision import cached_property, ctx, note
from dpassay.accountant.numbers.solve import fraction
from dpassay.accountant.pairs.between import narrow_enough, passes
from dpassay.accountant.pairs.finite import Balls, FiniteLaws, FinitePair

_BITS = 448
"""Precision of the sums in bits; tails are subtracted from each other."""
_TAILS = 192
"""Precision of the tails of one run in bits. Less widens tails of compositions, more is slow."""
_LOSSES = 512
"""Number of intervals of losses; the two bounds differ by about the square of their length."""
_PIECE = 384
"""A piece has a mass of at most about 1 over this number."""
_SAMPLES = 33
"""Number of losses at which tails are sampled; the grid has equal steps of their logarithms."""
_SCALE = 10
"""Step of −ln δ in the depth, which decides where the range of losses is truncated."""
_DEEPEST = 12
"""Largest depth; for δ below e^−120 the two bounds are far apart."""
_LEFT_OUT = 2.0**-14
"""Fraction of δ that the losses beyond the grid, which are not distinguished, may add."""
_WIDTH = Fraction(1, 10**6)
"""Relative width of the tails of one run if they have no closed form."""
_ENDS = Fraction(1, 10**4)
"""Relative width to which each bound is inverted; the two roots differ by more."""
_HALVINGS, _DOUBLINGS = 10, 40
"""Steps of the search for a loss with little mass above it."""
_SLACK = 2.0**-40
"""Relative rounding error of one term in floats: that of up to 1000 operations of 2^−52 each."""
_LARGEST = ExactReal.of_rational(100)
"""For larger ε the upper bound at this ε is used, because e^ε becomes too large for floats."""
_ORDERS = tuple(1 + 2.0 ** (k / 2) for k in range(-4, 24))
"""Orders of the divergences of one run in the bounds of a Rényi divergence."""
_UNIT = 2.0**-52
"""Upper bound of the relative rounding error of a float operation."""

Path: TypeAlias = list[tuple[int, int]]
"""Steps up of a path, which add the piece j to the interval of pieces i, …, j − 1."""


@final
@dataclass(frozen=True)
class Runs:
    """The law of the number of runs K.

    Parameters
    ----------
    mean
        E K.
    shape
        "poisson"; "fixed" for K = E K; or the number η > −1 of the truncated negative binomial
        law, P(K = k) ∝ (1 − γ)^k Γ(k + η)/k! for k ≥ 1. η = 1 is the geometric law, η = 0 the
        logarithmic one.
    """

    mean: ExactReal
    shape: ExactReal | str

    @cached_property
    def gamma(self) -> arb:
        """The parameter γ of a truncated negative binomial law, to `_BITS` bits.

        Found by bisection: the mean η(1 − γ)/(γ(1 − γ^η)) decreases in γ.
        """
        assert isinstance(self.shape, ExactReal)
        if self.shape == ExactReal.of_rational(1):
            return 1 / self.mean.ball()
        low, high = Fraction(0), Fraction(1)
        with ctx.workprec(3 * _BITS):
            for _ in range(_BITS):
                middle = (low + high) / 2
                value = _mean(ball(middle), self.shape)
                if value > self.mean.ball():
                    low = middle
                elif value < self.mean.ball():
                    high = middle
                else:
                    break
            return ball(low).union(ball(high))

    def derivative(self, order: int, below: arb, above: arb) -> arb:
        """Return φ, φ′ or φ″ at the probability `below`; `above` is its complement."""
        if self.shape == "poisson":
            mean = self.mean.ball()
            return mean**order * (-mean * above).exp()
        if self.shape == "fixed":
            k = int(float(self.mean))
            factor, power = ((1, k), (k, k - 1), (k * (k - 1), k - 2))[order]
            return factor * below**power if factor else arb(0)
        assert isinstance(self.shape, ExactReal)
        eta, gamma = self.shape.ball(), self.gamma
        y, w = gamma + (1 - gamma) * above, 1 - gamma
        if order == 0:
            if self.shape.sign == 0:
                return y.log() / gamma.log()
            return (y**-eta - 1) / (gamma**-eta - 1)
        unit = -1 / gamma.log() if self.shape.sign == 0 else eta / (gamma**-eta - 1)
        first = unit * w * y ** (-eta - 1)
        return first if order == 1 else first * (eta + 1) * w / y

    def growth(self, within: Array, outside: Array, step: Array) -> Array:
        """Return φ(within) − φ(within − step) in floats; outside = 1 − within.

        Nothing cancels: the relative error is below `_SLACK`.
        """
        share = np.minimum(step / within, 1.0)
        mean = float(self.mean)
        if self.shape == "poisson":
            return -np.exp(-mean * outside) * np.expm1(-mean * step)
        if self.shape == "fixed":
            return -(within**mean) * np.expm1(mean * np.log1p(-share))
        eta, gamma, unit = self._floats
        y = gamma + (1 - gamma) * outside
        logs = np.log1p((1 - gamma) * step / y)
        return unit * logs if eta == 0 else -unit / eta * y**-eta * np.expm1(-eta * logs)

    def bend(self, order: int, within: Array, outside: Array) -> Array:
        """Return φ″ or φ‴ at `within` in floats, with a relative error below `_SLACK`."""
        mean = float(self.mean)
        if self.shape == "poisson":
            return mean**order * np.exp(-mean * outside)
        if self.shape == "fixed":
            factor = math.perm(int(mean), order)
            return factor * within ** (mean - order) if factor else np.zeros_like(within)
        eta, gamma, unit = self._floats
        rising = unit * math.prod((eta + k) * (1 - gamma) for k in range(1, order)) * (1 - gamma)
        return rising * (gamma + (1 - gamma) * outside) ** (-eta - order)

    @cached_property
    def _floats(self) -> tuple[float, float, float]:
        """η, γ and φ′(1) γ^{η + 1}/(1 − γ) of a truncated negative binomial law."""
        assert isinstance(self.shape, ExactReal)
        eta, gamma = self.shape.ball(), self.gamma
        unit = -1 / gamma.log() if self.shape.sign == 0 else eta / (gamma**-eta - 1)
        return float(eta.mid()), float(gamma.mid()), float(unit.mid())

    def never(self) -> arb:
        """Return P(K = 0)."""
        return self.derivative(0, arb(0), arb(1)) if self.shape == "poisson" else arb(0)

    def draw(self, size: int, rng: np.random.Generator) -> Array:
        """Draw `size` numbers of runs, for simulation; computed in floats."""
        mean = float(self.mean)
        if self.shape == "poisson":
            return rng.poisson(mean, size)
        if self.shape == "fixed":
            return np.full(size, int(mean))
        assert isinstance(self.shape, ExactReal)
        levels = np.sort(rng.random(size))[::-1]
        found, gamma, eta = (
            np.ones(size, dtype=np.int64),
            float(self.gamma.mid()),
            float(self.shape),
        )
        mass = eta * (1 - gamma) / (gamma**-eta - 1) if eta else (1 - gamma) / -math.log(gamma)
        total, k, left = mass, 1, size
        while left := int((levels[:left] > total).sum()):  # those that run more than k times
            mass *= (1 - gamma) * (k + eta) / (k + 1)
            k, before, total = k + 1, total, total + mass
            if total == before:
                break
            found[:left] = k
        return rng.permutation(found)


def _mean(gamma: arb, shape: ExactReal) -> arb:
    if shape.sign == 0:
        return (1 - gamma) / (gamma * -gamma.log())
    eta = shape.ball()
    return eta * (1 - gamma) / (gamma * (1 - gamma**eta))


@final
@dataclass(frozen=True)
class TunedPair(Pair):
    """The pair whose profile is the largest profile of the best of several runs, over all scores.

    Parameters
    ----------
    base
        The pair that dominates one run.
    runs
        The law of the number of runs.
    """

    law_name = "tuned"

    base: Pair
    runs: Runs

    def hockey_stick(self, epsilon: ExactReal) -> arb:
        """Return a ball that contains both bounds of H(ε)."""
        low, high = self.lower(epsilon), self.upper(epsilon)
        return low.lower().max(arb(0)).union(high.upper())

    def lower(self, epsilon: ExactReal, depth: int | None = None) -> arb:
        """Return a lower bound of H(ε), from one ranking and one event.

        `depth` decides where the range of losses is truncated; None takes that of `_depth`.
        """
        if epsilon.sign < 0:
            x = epsilon.ball().exp()
            return 1 - x + x * self.reverse().lower(-epsilon, depth)
        shown = _event(self, epsilon, depth or _depth(self, epsilon))[0]
        return shown.max(self.infinity_mass())

    def upper(self, epsilon: ExactReal, depth: int | None = None) -> arb:
        """Return an upper bound of H(ε); `depth` as for `lower`."""
        if epsilon.sign < 0:
            x = epsilon.ball().exp()
            return 1 - x + x * self.reverse().upper(-epsilon, depth)
        largest = self.max_loss()
        if largest.is_finite() and epsilon.ball() >= largest:
            return arb(0)
        if not largest.is_finite() and epsilon.ball() >= _largest_finite(self):
            return self.infinity_mass()
        return arb(_pieces(self, depth or _depth(self, epsilon)).most(epsilon)).min(arb(1))

    def max_loss(self) -> arb:
        """Return the largest loss of one run plus the largest ln φ′(A)/φ′(B), or +∞."""
        largest = self.base.max_loss()
        return _largest(self) if largest.is_finite() else arb.pos_inf()

    def infinity_mass(self) -> arb:
        """Return 1 − φ(1 − m), that of a score that prefers the outcomes of infinite loss."""
        mass = self.base.infinity_mass()
        if mass.is_zero():
            return arb(0)
        return 1 - self.runs.derivative(0, 1 - mass, mass)

    def renyi(self, order: arb) -> arb:
        """Return a ball from D_a of a constant score up to the bounds named in the module."""
        with ctx.workprec(_BITS):
            return _divergence(self, order)

    @property
    def known(self) -> Known:
        """Return the upper bound, the attained pair and the inverse."""
        return Known(
            refusal="Of the best of several runs only bounds of delta and of epsilon are known, "
            "which hold for every score. Ask for these.",
            upper=self.upper,
            attained=lambda epsilon: FinitePair(TunedEvent(self, epsilon), 0),
            inverse=self._inverse,
        )

    def _inverse(self, delta: ExactReal, relative_width: Fraction) -> Interval:
        depth = min(max(1, math.ceil(-float(delta.ball().log().mid()) / _SCALE)), _DEEPEST)
        low, high = (
            passes(partial(end, depth=depth), delta, Fraction(1), _ENDS)
            for end in (self.lower, self.upper)
        )
        return narrow_enough(
            low.hull(high),
            relative_width,
            "below by a score, above by all scores, both of losses in finitely many intervals",
        )

    def reverse(self) -> TunedPair:
        """Return the pair for the reversed pair of one run."""
        return TunedPair(self.base.reverse(), self.runs)

    def law(self) -> dict[str, object]:
        """Return the law of the pair of one run, and mean and shape of the number of runs."""
        found = {"law": self.law_name, **{f"run_{k}": v for k, v in self.base.law().items()}}
        return found | {"mean": str(self.runs.mean), "shape": str(self.runs.shape)}

    def describe_event(self, epsilon: ExactReal) -> str:
        """Describe the event of the lower bound."""
        return "the runs of large loss, where the score ranks middle losses lowest"


@final
@dataclass(frozen=True)
class TunedEvent(FiniteLaws):
    """The event of the lower bound at ε = `at`, and its complement, as a pair of two outcomes."""

    pair: TunedPair
    at: ExactReal

    def masses(self, index: int) -> tuple[Balls, Balls]:
        """Return the probabilities of the event and of its complement."""
        at = self.at if self.at.sign >= 0 else ExactReal.of_rational(0)
        _, p, q = _event(self.pair, at, _depth(self.pair, at))
        return [p, 1 - p], [q, 1 - q]

    def outcomes(self, index: int) -> Sequence[object]:
        """Return the names of the event and of its complement."""
        return "a run of large loss", "any other"


class _Pieces:
    """Pieces of outcomes by increasing loss, and the quantities that do not depend on ε."""

    def __init__(self, masses: list[tuple[arb, arb]], runs: Runs) -> None:
        self.pieces: list[tuple[arb, arb]] = []
        for p, q in masses:
            parts = max(1, math.ceil(_PIECE * max(float(p.mid()), float(q.mid()))))
            self.pieces += [(p / parts, q / parts)] * parts
        self.size, self.runs = len(self.pieces), runs
        self.sums = [list(accumulate(piece[side] for piece in self.pieces)) for side in (0, 1)]

    @cached_property
    def gains(self) -> tuple[Array, Array, Array, Array]:
        """φ(A′) − φ(A) and its cell errors, then φ(B′) − φ(B) and its cell errors.

        φ(B′) − φ(B) is rounded down, all others are rounded up.
        """
        return *self._floats(0, above=True), *self._floats(1, above=False)

    def _floats(self, side: int, *, above: bool) -> tuple[Array, Array]:
        """Return the gains of adding the piece j to (i, j), and the errors of the cells (i, j).

        Both arrays are indexed [j, i], since they are read row by row. Gains increase with each
        mass of the pieces i, …, j and decrease with each other mass, so rounding the masses
        accordingly bounds them.
        """
        n, listed = self.size, [piece[side] for piece in self.pieces]
        i, j = np.ogrid[:n, :n]

        def sums(above: bool) -> tuple[Array, Array, Array]:
            """Return the piece masses, the masses of pieces i to j, and those of all others.

            All are rounded so that the gains are bounded from above, or from below.
            """
            inside = np.array([_end(mass, above) for mass in listed])
            lows = np.array([0.0, *(_end(mass, not above) for mass in self.sums[side])])
            rests = accumulate(reversed(listed))
            highs = np.array([0.0, *(_end(mass, not above) for mass in rests)])[::-1]
            within = np.cumsum(np.where(j >= i, inside[None, :], 0.0), axis=1)
            within *= 1 + n * _UNIT if above else 1 - n * _UNIT
            return inside, within, lows[:n, None] + highs[None, 1:]

        with np.errstate(all="ignore"):
            masses, within, outside = sums(above)
            gains = np.nan_to_num(self.runs.growth(within, outside, masses[None, :]))
            masses, within, outside = sums(True)
            third = self.runs.bend(3, within, outside)
            second = np.diagonal(self.runs.bend(2, within, outside))
        one, other = masses[:, None], masses[None, :]
        cells = one * other * np.sqrt((one**2 + other**2) / 48) * third
        cells[np.arange(n), np.arange(n)] = masses**2 * second * (1 if above else 0.5)
        gains *= 1 + _SLACK if above else 1 - _SLACK
        kept = np.where(j >= i, gains, 0.0), np.where(j >= i, cells * (1 + _SLACK), 0.0)
        return kept[0].T.copy(), kept[1].T.copy()

    def most(self, epsilon: ExactReal) -> float:
        """Return an upper bound of the value of every path at ε ≥ 0, by dynamic programming.

        The error of a cell that touches a path is added at the step that reaches the cell.
        """
        note("tuned")
        n, (up, cells_up, down, cells_down) = self.size, self.gains
        x = float(min(epsilon, _LARGEST).ball().exp().lower()) * (1 - _SLACK)
        more = np.zeros((n + 2, n + 3))  # the error of the cell (k, l) is at [l, k + 2]
        more[:n, 2 : n + 2] = cells_up + x * (1 + 3 * _SLACK) * cells_down
        best = np.full(n + 1, -np.inf)
        for j in range(n + 1):
            best[j] = more[j, j + 2] + (more[j, j + 1] if j else 0.0)
            if j:  # a step down from i reaches the cells (i − 2, j) and (i − 2, j − 1)
                each = more[j, 1 : j + 1] + more[j - 1, 1 : j + 1]
                left = np.concatenate(([0.0], np.cumsum(each)))
                value = np.maximum.accumulate((best[: j + 1] + left)[::-1])[::-1] - left
                best[: j + 1] = value + 4 * n * _UNIT * left[-1] + 4 * _UNIT * np.abs(value)
            if j < n:  # a step up from (i, j) reaches the cells (i − 1, j + 1) and (i, j + 1)
                above, below = up[j, : j + 1], x * down[j, : j + 1]
                beyond = more[j + 1, 1 : j + 2] + more[j + 1, 2 : j + 3]
                best[: j + 1] += above - below + _SLACK * (above + below) + beyond
                best[: j + 1] += 4 * _UNIT * np.abs(best[: j + 1])
        return float(best[0])

    def path(self, epsilon: ExactReal) -> Path:
        """Return approximately the best path of whole pieces; found in floats."""
        up, _, down, _ = self.gains
        x = math.exp(float(min(epsilon, _LARGEST)))
        best, froms = np.zeros(self.size + 1), []
        for j in range(self.size):
            value = best[: j + 1] + up[j, : j + 1] - x * down[j, : j + 1]
            highest = np.maximum.accumulate(value[::-1])[::-1]
            places = np.where(value == highest, np.arange(j + 1), self.size)
            froms.append(np.minimum.accumulate(places[::-1])[::-1])
            froms[-1] = np.where(highest > 0, froms[-1], -1)
            best[: j + 1] = np.maximum(highest, 0.0)
        found: Path = []
        i = int(best.argmax())
        for j in range(self.size - 1, -1, -1):
            if i > j or froms[j][i] < 0:
                break
            i = int(froms[j][i])
            found.append((i, j))
        return found

    def shown(self, path: Path) -> tuple[arb, arb]:
        """Return the probabilities of the event of a path under P and under Q."""
        p, q = (
            sum((self._at(0, s, i, j + 1) - self._at(0, s, i, j) for i, j in path), start=arb(0))
            for s in (0, 1)
        )
        return p, q

    def _at(self, order: int, side: int, i: int, j: int) -> arb:
        """Return φ, φ′ or φ″ at the mass of the pieces i, …, j − 1 under P (side 0) or Q (1)."""
        sums = self.sums[side]
        low = sums[i - 1] if i else arb(0)
        inside = sums[j - 1] - low if j > i else arb(0)
        return self.runs.derivative(order, inside, 1 - inside)

    def largest(self) -> arb:
        """Return the maximum of φ′(A)/φ′(B), and at least 1, over the pieces i, …, n − 1."""
        slopes = [[self._at(1, side, i, self.size) for i in range(self.size)] for side in (0, 1)]
        ratios = (p / q for p, q in zip(*slopes, strict=True) if q > 0)
        return reduce(arb.max, ratios, arb(1))


def _end(mass: arb, above: bool) -> float:
    """Return a float above the mass, or a float ≥ 0 below it."""
    end = float((mass.upper() if above else mass.lower()).mid())
    return max(math.nextafter(end, math.inf if above else -math.inf), 0.0)


@lru_cache(maxsize=8)
def _pieces(pair: TunedPair, depth: int, *, above: bool = True) -> _Pieces:
    """Return pieces of a pair that dominates one run, or else of a coarser release of it."""
    with ctx.workprec(_BITS):
        listed = _listed(pair.base)
        return _Pieces(listed or _cut(pair, depth, above), pair.runs)


def _listed(base: Pair) -> list[tuple[arb, arb]]:
    """Return (p, q) of finitely many outcomes by increasing loss.

    [] if there are too many, or if their order is not known.
    """
    if not isinstance(base, FinitePair):
        return []
    found = base.by_loss()
    return found if len(found) <= _LOSSES else []


def _cut(pair: TunedPair, depth: int, above: bool) -> list[tuple[arb, arb]]:
    """Return the masses of intervals of losses, or of their end points with the same totals."""
    base = refined(pair.base, _WIDTH)
    never = base.infinity_mass()
    losses = _grid(pair, depth)
    with ctx.workprec(_TAILS):
        tails = [base.tails(loss) for loss in losses]
    p = [one.p_above - two.p_above for one, two in pairwise(tails)]
    q = [one.q_above - two.q_above for one, two in pairwise(tails)]
    p = [tails[0].p_below, *p, tails[-1].p_above - never]
    q = [tails[0].q_below, *q, tails[-1].q_above]
    if not above:
        return [*zip(p, q, strict=True), (never, arb(0))]
    ratios = [loss.ball().exp() for loss in losses]
    atoms = [[arb(0), arb(0)] for _ in range(len(losses) + 2)]
    atoms[-1][0] += never
    for k, (mass, other) in enumerate(zip(p, q, strict=True)):
        # solve q = low + high, p = low e^s + high e^t for the Q-masses at s and t
        if k == len(losses):  # t = ∞
            low, rest = other, mass - ratios[-1] * other
            atoms[k + 1][0] += rest
            atoms[k][0] += mass - rest
            atoms[k][1] += low
            continue
        least = ratios[k - 1] if k else arb(0)
        high = (mass - least * other) / (ratios[k] - least)
        low = (ratios[k] * other - mass) / (ratios[k] - least)
        atoms[k][0] += least * low
        atoms[k][1] += low
        atoms[k + 1][0] += ratios[k] * high
        atoms[k + 1][1] += high
    return [(one, two) for one, two in atoms]


def _grid(pair: TunedPair, depth: int) -> list[ExactReal]:
    """Return increasing losses, with about equal steps of ln(Q(L ≤ s)/P(L > s)).

    Beyond the first and the last one little mass is left.
    """
    mean = float(pair.runs.derivative(1, arb(1), arb(0)).mid())
    high = _place(pair.base, _LEFT_OUT * math.exp(-_SCALE * depth) / mean)
    low = -_place(pair.base.reverse(), _LEFT_OUT / mean)
    places = np.linspace(float(low), float(high), _SAMPLES)
    rough = refined(pair.base, Fraction(1, 100))
    rises = []
    with ctx.workprec(64):
        for place in places[:-1]:
            tails = rough.tails(ExactReal.of_rational(Fraction(float(place))))
            known = tails.q_below > 0 and tails.p_above > 0
            rises.append(float((tails.q_below / tails.p_above).log().mid()) if known else -math.inf)
    for k in reversed(range(len(rises) - 2)):
        if k == 0 or math.isinf(rises[k]):  # there may be no losses below this place
            rises[k] = max(rises[k], 2 * rises[k + 1] - rises[k + 2])
    rises.append(2 * rises[-1] - rises[-2])
    inner = np.interp(np.linspace(rises[0], rises[-1], _LOSSES + 1)[1:-1], rises, places)
    found = sorted({Fraction(float(place)) for place in inner} - {Fraction(float(low))})
    exact = map(ExactReal.of_rational, found)
    return [low, *(each for each in exact if low < each < high), high]


def _place(base: Pair, mass: float) -> ExactReal:
    """Return a loss above which the finite losses have about this P-mass, or the largest loss."""
    known, never = base.known.max_loss(), float(base.infinity_mass().mid())
    rough = refined(base, Fraction(1, 100))

    def little(at: Fraction) -> bool:
        with ctx.workprec(64):
            return float(rough.tails(ExactReal.of_rational(at)).p_above.mid()) - never <= mass

    low, high = Fraction(-1), Fraction(1)
    for _ in range(_DOUBLINGS):
        if little(high) or (known is not None and ExactReal.of_rational(high) >= known):
            break
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if little(middle) else (middle, high)
    found = ExactReal.of_rational(high)
    return found if known is None else min(found, known)


@lru_cache(maxsize=256)
def _depth(pair: TunedPair, epsilon: ExactReal) -> int:
    """Return the depth for δ(ε): about −ln δ(ε) in steps of `_SCALE`."""
    depth, largest = 1, pair.max_loss()
    if epsilon.ball() >= largest.lower() or _listed(pair.base):
        return depth
    while depth < _DEEPEST:
        value = float(_event(pair, epsilon, depth)[0].mid())
        needed = 2 * depth if value <= 0 else math.ceil(-math.log(value) / _SCALE)
        if needed <= depth:
            break
        depth = min(needed, _DEEPEST)
    return depth


@lru_cache(maxsize=256)
def _event(pair: TunedPair, epsilon: ExactReal, depth: int) -> tuple[arb, arb, arb]:
    """Return P(S) − e^ε Q(S), P(S) and Q(S) of about the best event S of whole pieces."""
    pieces = _pieces(pair, depth, above=False)
    with ctx.workprec(_BITS):
        p, q = pieces.shown(pieces.path(epsilon))
        return p - epsilon.ball().exp() * q, p, q


@lru_cache(maxsize=64)
def _largest(pair: TunedPair) -> arb:
    """Return the largest loss; the largest loss of one run must be finite."""
    with ctx.workprec(_BITS):
        low = _pieces(pair, 1, above=False).largest()
        high = _pieces(pair, 1).largest()
        return pair.base.max_loss() + low.log().union(high.log())


@lru_cache(maxsize=64)
def _largest_finite(pair: TunedPair) -> arb:
    """Return an upper bound of the largest finite loss if there are infinite ones, or +∞."""
    with ctx.workprec(_BITS):
        listed = _listed(pair.base)
        if not (listed and pair.runs.derivative(1, arb(0), arb(1)) > 0):
            return arb.pos_inf()
        found = arb.neg_inf()
        for p, q in listed:
            if not (q.is_zero() or p.is_zero()):
                found = found.max((p / q).log())
        return found + _pieces(pair, 1).largest().log()


def _divergence(pair: TunedPair, order: arb) -> arb:
    """Enclose the Rényi divergence of an order; see the module and `TunedPair.renyi`."""
    base, runs = pair.base, pair.runs
    one, never = base.renyi(order), runs.never()
    if order == 1:
        low = (1 - never) * one
        order, one = arb(2), base.renyi(arb(2))  # D_a grows with a
    else:
        low = (never + (1 - never) * ((order - 1) * one).exp()).log() / (order - 1)
    if runs.shape == "fixed":  # releasing all runs has at least this divergence
        return low.union(int(float(runs.mean)) * one)
    mean, most = runs.derivative(1, arb(1), arb(0)), arb(0)
    if runs.shape != "poisson":
        assert isinstance(runs.shape, ExactReal)
        bounds = []
        for a in _ORDERS:
            second = base.renyi(arb(a)).max(base.reverse().renyi(arb(a)))
            bounds.append(((1 - 1 / arb(a)) * second - runs.gamma.log() / a).upper())
        most = (1 + runs.shape.ball()) * min(bounds)
    high = arb.pos_inf()
    for a in (
        order,
        *(order + arb(more) for more in _ORDERS),
    ):  # a bound of a larger order is valid too
        one, less = base.renyi(a), a - 1
        if runs.shape == "poisson":
            near = ExactReal.of_rational(fraction((1 / less).log1p().lower()))
            most = mean * base.hockey_stick(near).max(base.reverse().hockey_stick(near))
        high = high.min((one + most + mean.log() / less).upper())
    return low.union(high)
