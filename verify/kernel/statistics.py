"""Audits: what counts of runs say against a claim, with exact probabilities.

A claim of (ε, δ)-DP says P(E) ≤ e^ε Q(E) + δ for neighbours P, Q and every event E. An event fixed
before the runs is counted; the p-value bounds the probability of such counts under the claim.

**Guesses.** Each run is on the dataset that a fair coin chose, and guesses which, or none. The
claim says P(right) ≤ e^ε P(wrong) + δ; so among guesses made at the rate g, the share of right ones
is at most π = e^ε/(1 + e^ε), or 1 − (g − δ)/((1 + e^ε) g) where δ > 0, with a lower bound of g that
fails with probability s, a hundredth of the level. P(Bin(guesses, π) ≥ right) + s is the p-value.

**Sides.** a ~ Bin(n, p) runs are in E on one dataset, b ~ Bin(m, q) on the other, p ≤ e^ε q + δ.
With the statistic T(a, b) = a/n − δ − e^ε b/m over its standard deviation where p = e^ε q + δ, the
set R = {T ≥ t} of outcomes as extreme as the counts grows with a and falls with b; so P(R) is
largest on the boundary p = e^ε q + δ. There q is confined to an interval that fails with
probability s, and cut into cells; in each P(R) is at most that at its largest p and least q.
P(R) = Σ_b P(b) P(a ≥ k(b)), k increasing, is at most the sum over cells of b of P(b in the cell)
P(a ≥ k at its start). Tails of many runs are bounded by Zubkov and Serov (2013): with
r(k) = ±√(2n KL(k/n ‖ p)), Φ(r(k)) ≤ P(Bin(n, p) ≤ k) ≤ Φ(r(k + 1)). The sums are in doubles: each
has some thousand positive terms whose relative error is below 1e-12, and 1e-9 is added.

**Bets.** A stake θ in [0, 1/(e^ε + δ)] multiplies a capital by 1 + θ(1 − δ) for a right guess,
1 − θ(e^ε + δ) for a wrong one, 1 − θδ for none: of mean at most 1 under the claim. The evidence, a
mixture over the round in which betting begins, M_t = (M_{t−1} + 1/(t(t + 1))) F_t and
E_t = M_t + 1/(t + 1), exceeds 1/significance at any time with probability ≤ significance (Ville).

**One run.** m canaries, each included by a fair coin; of r guesses at least v are right with
probability ≤ min(1, β + mδβ(1 − β)/(vw)), where W ~ Bin(r, e^ε/(1 + e^ε)), β = P(W ≥ v),
w = P(W = v). A curve δ(ε) gives for points (ε_j, δ_j), j ≤ v, by weak duality of the inequalities
R_j ≤ e^{ε_j} H_{j−1} + δ_j (R_j, H_j: canary i guessed right, wrong, among ≥ j right guesses)
P(V ≥ v) ≤ (1 + Σ λ_j δ_j)/gain. Several numbers of guesses pay for each other (Bonferroni). Proofs:
the heads of `one_run_bound.py` and `curve_bound.py` in dpassay's `audit/statistics`.
"""

from __future__ import annotations

import bisect
import hashlib
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

from flint import arb

from .notation import parse
from .numbers import Budget, NotProved, Proof, Wrong, ball, precision, real
from .quantities import quantity

Data = Mapping[str, Any]
FAIR = 8.0
"""Standard deviations by which fair coins may differ: by more they do with probability 1.3e-15."""
SPARED = Fraction(1, 100)
"""Of its level, a test spares for the unknown rate: such tests are nested, so that the least level
that rejects is a p-value."""
BITS = 192
_REACH = 6.6
"""Standard deviations about a cell of rates in which counts are cut into cells of their own."""
_CELLS_OF_RATES, _CELLS_OF_COUNTS = 288, 480
"""More of them are sharper, and slower; the auditor uses half as many."""
_SMALL = 2000.0
"""Counts within reach up to which every outcome is summed."""
_MANY = 1000
"""Trials from which on a continued fraction is faster than Arb's incomplete beta function."""
_RANGES = {
    **dict.fromkeys(("p_value", "share", "delta", "delta_lower_bound"), 1),
    **dict.fromkeys(("epsilon_lower_bound", "mu_lower_bound"), 700),
}
RUNS = "that the runs were drawn from the audited program on neighbouring datasets"
FIXED = "that event and tested point were fixed before these runs"
_CANARIES = "that the scores are of one run, in which a fair coin of its own included each canary"
_NUMBERS = "that the numbers of guesses and the seed were fixed before the coins were known"


def prove(theorem: Data, witness: Data, budget: Budget) -> Proof:
    """Recompute an audit from its counts, rounds or scores."""
    proof = Proof()
    with precision(BITS):
        claim = _Claim(theorem["claim"], proof, budget)
        if not 0 < Fraction(theorem["significance"]) < 1:
            raise Wrong("theorem.significance", "expected a number in (0, 1)")
        for name, most in _RANGES.items():
            if not 0 <= Fraction(theorem.get(name, "0")) <= most:
                raise Wrong(f"theorem.{name}", f"expected a number in [0, {most}]")
        _KINDS[theorem["kind"]](theorem, witness, claim, proof, budget)
    return proof


def _point(entry: Mapping[str, str]) -> tuple[Fraction, Fraction]:
    return Fraction(entry["epsilon"]), Fraction(entry["delta"])


def _ball(value: Fraction | int) -> arb:
    exact = Fraction(value)
    return arb(exact.numerator) / arb(exact.denominator)


def _above(stated: Fraction, found: Any, field: str) -> None:
    """Require a stated number not to be below what is found."""
    least = found if isinstance(found, arb) else arb(found)
    if not least <= _ball(stated):
        raise Wrong(field, f"is {least.str(8, radius=False)} by this calculation")


class _Claim:
    """What is claimed: points (ε, δ), or a curve δ(ε)."""

    def __init__(self, data: Data, proof: Proof, budget: Budget) -> None:
        self.data, self._proof, self._budget = data, proof, budget
        kind, points, parameter = data["kind"], data["points"], data["parameter"]
        if bool(points) != (kind == "epsilon-delta"):
            raise Wrong("theorem.claim.points", "do not fit the kind")
        if bool(parameter) != (kind in ("gaussian", "mechanism")):
            raise Wrong("theorem.claim.parameter", "does not fit the kind")

    def require(self, epsilon: Fraction, delta: Fraction, where: str) -> None:
        """Require the claim to say that the mechanism is (ε, δ)-DP."""
        if epsilon < 0 or not 0 <= delta < 1:
            raise Wrong(where, "expected epsilon >= 0 and delta in [0, 1)")
        kind = self.data["kind"]
        if kind == "epsilon-delta":
            if (epsilon, delta) not in [_point(entry) for entry in self.data["points"]]:
                raise Wrong(where, "is no point of the claim")
        elif kind == "profile":
            _add(self._proof, "that the claimed profile has the tested points")
        else:
            least = self._curve(epsilon)
            if least is not None and _ball(delta) < least:
                raise Wrong(where, f"is below the claimed curve, {least.str(8, radius=False)}")
            if least is None or not _ball(delta) >= least:
                _add(self._proof, "that the profile of the claimed mechanism has the tested points")

    def _curve(self, epsilon: Fraction) -> arb | None:
        """Return δ(ε) of the claimed μ or mechanism; None where the kernel does not find it."""
        if self.data["kind"] == "gaussian":
            self._proof.lemmas.add("gaussian")
            mu = ball(real(self.data["parameter"]))
            if not mu > 0:
                raise Wrong("theorem.claim.parameter", "expected mu > 0")
            return gaussian_delta(mu, epsilon)
        try:
            found = quantity(
                "delta", parse(self.data["parameter"]), None, {"epsilon": epsilon}, self._budget
            )
        except NotProved:
            return None
        self._proof.lemmas |= found.lemmas
        return ball(found.value)


def gaussian_delta(mu: arb | Fraction, epsilon: Fraction) -> arb:
    """Return H(ε) of N(μ, 1) against N(0, 1): Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ)."""
    m, e = mu if isinstance(mu, arb) else _ball(mu), _ball(epsilon)
    root = arb(2).sqrt()
    return (((e / m - m / 2) / root).erfc() - e.exp() * ((e / m + m / 2) / root).erfc()) / 2


def _add(proof: Proof, condition: str) -> None:
    if condition not in proof.conditions:
        proof.conditions.append(condition)


def _verdict(theorem: Data, p_value: Fraction) -> None:
    right = "REFUTED" if p_value <= Fraction(theorem["significance"]) else "NOT_REFUTED"
    if theorem["verdict"] != right:
        raise Wrong("theorem.verdict", "does not follow from the p-value and the significance")


# --- many runs ----------------------------------------------------------------------------------
def _audit(theorem: Data, witness: Data, claim: _Claim, proof: Proof, budget: Budget) -> None:
    epsilon, delta = _point(theorem["tested"])
    claim.require(epsilon, delta, "theorem.tested")
    counts = _counted(witness, proof)
    share, level = Fraction(theorem["share"]), Fraction(theorem["significance"])
    stated = Fraction(theorem["p_value"])
    if not 0 < share <= 1:
        raise Wrong("theorem.share", "expected a number in (0, 1]")
    coins = ", each on the one that a fair coin chose" if witness["design"] == "guesses" else ""
    part = "" if share == 1 else f", as one of a few: it has {float(share):.4g} of the risk"
    proof.conditions += [RUNS + coins, FIXED + part]

    def found(at: tuple[Fraction, Fraction], most: Fraction) -> arb:
        budget.check()
        spared = float(SPARED * most * share)
        epsilon, delta = (math.nextafter(float(x), math.inf) if x else 0.0 for x in at)
        return arb(p_value(witness["design"], counts, epsilon, delta, spared)) / _ball(share)

    if stated < 1:
        _above(stated, found((epsilon, delta), min(stated, level)), "theorem.p_value")
    _verdict(theorem, stated)
    for name, first in (("epsilon_lower_bound", True), ("delta_lower_bound", False)):
        bound = Fraction(theorem[name])
        at = (bound, delta) if first else (epsilon, bound)
        if bound > 0:
            _above(level, found(at, level), f"theorem.{name}")
    mu, least = Fraction(theorem["mu_lower_bound"]), Fraction(theorem["delta_lower_bound"])
    if mu > 0 and not gaussian_delta(mu, epsilon) <= _ball(least):
        raise Wrong("theorem.mu_lower_bound", "does not follow from the bound of delta")


def _counted(witness: Data, proof: Proof) -> tuple[int, int, int, int]:
    """Return hits, runs, misses and other runs, from the histogram."""
    marks, favoured = witness["marks"], {"first": 0, "second": 1}[witness["favours"]]
    p, q = witness["histogram"][favoured], witness["histogram"][1 - favoured]
    if not len(p) == len(q) == len(marks) or not (sum(p) and sum(q)):
        raise Wrong("witness.histogram", "has other cells than the event, or no runs")

    def count(row: Sequence[int], mark: int) -> int:
        return sum(entry for entry, own in zip(row, marks, strict=True) if own == mark)

    if witness["design"] == "sides":
        hits, runs, misses, others = count(p, 1), sum(p), count(q, 1), sum(q)
        proof.numbers["counts"] = f"{hits} of {runs} runs against {misses} of {others}"
        return hits, runs, misses, others
    right, wrong = count(p, 1) + count(q, -1), count(q, 1) + count(p, -1)
    runs = sum(p) + sum(q)
    if abs(sum(p) - sum(q)) > FAIR * math.sqrt(runs):
        raise Wrong("witness.histogram", "has more runs on one side than fair coins give")
    proof.numbers["counts"] = f"{right} right and {wrong} wrong guesses in {runs} runs"
    return right, runs, wrong, runs


def p_value(
    design: str, counts: tuple[int, int, int, int], epsilon: float, delta: float, spared: float
) -> float:
    """Return an upper bound of the p-value of hits, runs, misses and other runs."""
    return (_guesses if design == "guesses" else _sides)(counts, epsilon, delta, spared)


def _guesses(
    counts: tuple[int, int, int, int], epsilon: float, delta: float, spared: float
) -> float:
    """Bound P(Bin(G, π) ≥ right) for the largest π that the claim allows."""
    right, runs, wrong, _ = counts
    guesses, factor = right + wrong, arb(epsilon).exp()
    chance = factor / (1 + factor)
    if delta > 0:
        rate = least_rate(guesses, runs, spared)
        chance = arb(1) if not rate > delta else 1 - (rate - delta) / ((1 + factor) * rate)
    if not right > guesses * chance:
        return 1.0
    tail = float(binomial_tail(right, guesses, chance).upper())
    return min(1.0, tail * (1 + 1e-15) + (spared if delta > 0 else 0.0))


def _sides(counts: tuple[int, int, int, int], epsilon: float, delta: float, spared: float) -> float:
    """Bound the supremum of P(R) over the boundary, cell by cell."""
    _, n, b, m = counts
    factor = math.exp(epsilon)
    t = _statistic(counts, factor, delta)
    if t <= 0:
        return 1.0
    low = float(least_rate(b, m, spared / 2)) * (1 - 1e-9)
    high = min(1.0, float(1 - least_rate(m - b, m, spared / 2)) * (1 + 1e-9))
    top = (1 - delta) / factor
    if low >= top:
        return 1.0
    start, stop = math.asin(math.sqrt(low)), math.asin(math.sqrt(min(high, top, 1.0)))
    step = (stop - start) / _CELLS_OF_RATES
    cuts = [math.sin(start + step * i) ** 2 for i in range(_CELLS_OF_RATES + 1)]
    cuts[0], cuts[-1] = min(low, cuts[0]), max(min(high, top), cuts[-1])
    region = (t, n, m, factor, delta)
    last = min(1.0, factor * cuts[-1] + delta)
    spread = math.sqrt(m * cuts[-2] * (1 - cuts[-2])) + math.sqrt(n * last * (1 - last))
    cells = [(min(1.0, factor * above + delta), below) for below, above in pairwise(cuts)]
    if 13.0 * spread < _SMALL:
        worst = max(_summed(region, p, q) for p, q in cells)
    else:
        edges = _edges(region, start, stop)
        worst = max(_by_parts(region, p, q, edges) for p, q in cells)
    return min(1.0, worst * (1 + 1e-9) + spared)


_Region = tuple[float, int, int, float, float]


def _statistic(counts: tuple[int, int, int, int], factor: float, delta: float) -> float:
    a, n, b, m = counts
    u, v = a - n * delta, factor * n / m * b
    s = (u + v) / 2
    p, q = s / n + delta, s / (n * factor)
    variance = n * p * (1 - p) + (factor * n / m) ** 2 * m * q * (1 - q)
    return (u - v) / math.sqrt(variance) if u > v and variance > 0 else 0.0


@lru_cache(maxsize=1 << 18)
def _edge(region: _Region, b: int) -> int:
    """Return k(b), the least a with T(a, b) ≥ t, by bisection; n + 1 where there is none."""
    t, n, m, factor, delta = region
    start = min(math.floor(n * delta + factor * n / m * b), n)  # T is 0 up to here

    def beyond(a: int) -> bool:
        return _statistic((a, n, b, m), factor, delta) >= t * (1 - 1e-9)

    return bisect.bisect_left(range(n + 1), True, start, n + 1, key=beyond)


def _summed(region: _Region, p: float, q: float) -> float:
    """Sum over every outcome within eight standard deviations, and what the rest may add."""
    _, n, m, _, _ = region
    counts, masses = zip(*reversed(_masses(n, p)), strict=True)
    survival = {k: min(1.0, s) for k, s in zip(counts, accumulate(masses), strict=True)}
    least, total = min(survival), 0.0
    for b, mass in _masses(m, q):
        k = _edge(region, b)
        total += mass * (1.0 if k < least else survival.get(k, 0.0))
    return total + 1e-13


def _masses(n: int, p: float) -> list[tuple[int, float]]:
    """Return the outcomes of Bin(n, p) within reach with their probabilities."""
    if p <= 0 or p >= 1:
        return [(0 if p <= 0 else n, 1.0)]
    spread = math.sqrt(n * p * (1 - p))
    start = max(0, math.floor(n * p - 8 * spread - 12))
    stop = min(n, math.ceil(n * p + 8 * spread + 24))
    middle = min(max(round(n * p), start), stop)
    found, odds = {middle: float(binomial_mass(middle, n, arb(p)))}, p / (1 - p)
    for k in range(middle, stop):
        found[k + 1] = found[k] * ((n - k) / (k + 1) * odds)
    for k in range(middle, start, -1):
        found[k - 1] = found[k] * (k / (n - k + 1) / odds)
    return sorted(found.items())


def _edges(region: _Region, start: float, stop: float) -> list[tuple[int, int]]:
    """Return counts b with k(b), at equal steps of arcsin √(b/m), whose deviation is 1/(2√m)."""
    m = region[2]
    spread = 1 / (2 * math.sqrt(m))
    low, high = max(0.0, start - _REACH * spread), min(math.pi / 2, stop + _REACH * spread)
    count = math.ceil((high - low) / spread * (_CELLS_OF_COUNTS / (2 * _REACH)))
    places = {math.floor(m * math.sin(low + (high - low) * i / count) ** 2) for i in range(count)}
    return [(b, _edge(region, b)) for b in sorted(places | {0})]


def _by_parts(region: _Region, p: float, q: float, edges: list[tuple[int, int]]) -> float:
    """Sum P(b < b') (tail before − tail after) over cells of b, each tail an upper bound.

    P(b < b') falls from 1 and P(a ≥ k) from 1 as b grows: cells in which one of them has vanished
    are taken as one, which only raises the bound.
    """
    _, n, m, _, _ = region
    centre, reach = m * q, _REACH * math.sqrt(m * q * (1 - q))
    first = max(0, bisect.bisect(edges, (centre - reach, 0)) - 1)
    last = bisect.bisect(edges, (centre + reach, 0)) + 1
    total, below, previous = 0.0, 0.0, 1.0
    for b, k in [(0, edges[0][1]), *edges[max(first, 1) : last]]:
        if b:
            below = 1.0 if b >= m else _normal(_root(b, m, q))
        tail = 0.0 if k > n else 1.0 if k <= 1 else _normal(-_root(k - 1, n, p))
        tail = min(previous, tail)
        total += below * (previous - tail)
        previous = tail
        if tail == 0.0:
            break
    return total + previous


def _root(k: int, n: int, p: float) -> float:
    """Return ±√(2n KL(k/n ‖ p)), with the sign of k/n − p."""
    if p <= 0 or p >= 1:
        return math.inf if p <= 0 else -math.inf
    shift = k - n * p
    divergence = k * math.log1p(shift / (n * p)) if k else 0.0
    if k < n:
        divergence += (n - k) * math.log1p(-shift / (n * (1 - p)))
    return math.copysign(math.sqrt(max(2 * divergence, 0.0)), shift)


def _normal(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


# --- binomial laws ------------------------------------------------------------------------------
def binomial_tail(k: int, n: int, p: arb) -> arb:
    """Return P(Bin(n, p) ≥ k), the incomplete beta function I_p(k, n − k + 1)."""
    if k <= 0 or p >= 1:
        return arb(1)
    if k > n or p <= 0:
        return arb(0)
    if k < (n + 1) * p:  # nearly 1 where k is far below the mean
        return 1 - binomial_tail(n - k + 1, n, 1 - p)
    return p.beta_lower(k, n - k + 1, 1) if n < _MANY else _by_fraction(k, n, p)


def _by_fraction(k: int, n: int, p: arb) -> arb:
    """Return P(Bin(n, p) ≥ k) for k ≥ (n + 1)p, by DiDonato and Morris (1992), equation 9.

    All entries of this continued fraction are positive here, so that its convergents of odd number
    are above the value, those of even number below.
    """
    a, b = arb(k), arb(n - k + 1)
    front = binomial_mass(k, n, p) * a * (1 - p)
    excess = a - (a + b) * p + 1
    if not excess > 0:
        raise NotProved("a tail of a binomial law of so uncertain a probability")
    above, below = (arb(1), a * excess / (a + 1)), (arb(0), arb(1))
    for i in range(1, 5000):
        numerator = (a + i - 1) * (a + b + i - 1) * i * (b - i) * (p / (a + 2 * i - 1)) ** 2
        if b == i:
            return front * above[0] / above[1]
        denominator = (
            i
            + i * (b - i) * p / (a + 2 * i - 1)
            + (a + i) * (excess + i * (2 - p)) / (a + 2 * i + 1)
        )
        top, bottom = (denominator * x + numerator * y for x, y in zip(above, below, strict=True))
        above, below = (top / bottom, arb(1)), (above[0] / bottom, above[1] / bottom)
        ends = above[0], below[0] / below[1]
        if abs(ends[0] - ends[1]) < abs(ends[0]) * arb(2) ** -100:
            break
    return front * ends[0].union(ends[1])


def binomial_mass(k: int, n: int, p: arb) -> arb:
    """Return P(Bin(n, p) = k)."""
    log = arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma()
    return (log + k * p.log() + ((n - k) * (-p).log1p() if n > k else 0)).exp()


def least_rate(hits: int, runs: int, level: float) -> arb:
    """Return a rate at which P(Bin(runs, rate) ≥ hits) ≤ level, next to the largest one.

    Newton's method on the logarithm of the tail as a function of ln rate, which is log-concave:
    every step ends below the root. What it ends with is tested; else 0, which always serves.
    """
    if hits == 0 or level <= 0:
        return arb(0)
    mean = arb(hits) / (runs + 1)
    away = math.sqrt(max(0.0, -2 * math.log(min(level, 0.5)) - 1.5))
    rate = (mean * (-away * ((1 - mean) / hits).sqrt()).exp()).mid()
    for _ in range(100):
        tail = binomial_tail(hits, runs, rate)
        step = (arb(level) / tail).log() * tail / (hits * binomial_mass(hits, runs, rate))
        rate = (rate * step.exp()).mid()
        if abs(step) * rate < rate.min(1 - rate) * arb(1e-14):
            break
    rate -= rate.min(1 - rate) * arb(1e-12)
    return rate if binomial_tail(hits, runs, rate) <= level else arb(0)


# --- bets, and one run --------------------------------------------------------------------------
def _sequential(theorem: Data, witness: Data, claim: _Claim, proof: Proof, budget: Budget) -> None:
    proof.conditions.append(
        f"{RUNS}, each on the one that a fair coin chose, and that every bet was chosen before"
    )
    capital, best = arb(0), arb(1)
    for number, entry in enumerate(witness["rounds"], 1):
        budget.check()
        where, stake = f"witness.rounds[{number - 1}]", Fraction(entry["stake"])
        right, wrong = entry["right"], entry["wrong"]
        none = entry["runs"] - right - wrong
        if none < 0 or entry["pair"] >= len(witness["pairs"]):
            raise Wrong(where, "has more guesses than runs, or a pair that is not listed")
        factor = arb(1)
        if stake != 0:
            epsilon, delta = _point(entry["tested"])
            claim.require(epsilon, delta, f"{where}.tested")
            theta, d, lost = _ball(stake), _ball(delta), _ball(epsilon).exp() + _ball(delta)
            if not 0 <= theta * lost <= 1:
                raise Wrong(f"{where}.stake", "is more than can be lost")
            factor = (
                (1 + theta * (1 - d)) ** right
                * (1 - theta * lost) ** wrong
                * (1 - theta * d) ** none
            )
        capital = (capital + arb(1) / (number * (number + 1))) * factor
        best = best.max(capital + arb(1) / (number + 1))
    stated = Fraction(theorem["evidence"])
    if stated <= 0 or not best >= _ball(stated):
        raise Wrong("theorem.evidence", f"is {best.str(8, radius=False)} by this calculation")
    _verdict(theorem, 1 / stated)
    proof.numbers["counts"] = f"{len(witness['rounds'])} rounds of bets"


def _one_run(theorem: Data, witness: Data, claim: _Claim, proof: Proof, budget: Budget) -> None:
    proof.conditions += [_CANARIES, _NUMBERS]
    points = []
    for index, step in enumerate(witness["tested"]):
        epsilon, delta = _point(step)
        claim.require(epsilon, delta, f"witness.tested[{index}]")
        points.append(_order(_ball(epsilon), _ball(delta), step["reversed"]))
    scores = [Fraction(text) for text in witness["scores"]]
    coins = [coin == "1" for coin in witness["included"]]
    m, tried = len(scores), witness["guesses_tried"]
    if len(coins) != m or abs(2 * sum(coins) - m) > FAIR * math.sqrt(m):
        raise Wrong("witness.included", "expected one fair coin for each score")
    used = [witness[name] for name in ("guesses", "epsilon_guesses", "mu_guesses")]
    if len(set(tried)) < len(tried) or max(tried) > m or not set(used) <= set(tried):
        raise Wrong(
            "witness.guesses_tried", f"expected different numbers up to {m}, those used too"
        )
    lots = [hashlib.sha256(f"{witness['seed']} {i}".encode()).digest() for i in range(m)]
    order = sorted(range(m), key=lambda i: (scores[i], lots[i]))

    def p_value(r: int, at: list[tuple[arb, arb]]) -> arb:
        """Return the bound for r guesses, times how many numbers of guesses were tried."""
        budget.check()
        return (len(tried) * one_run_bound(right(r), r, m, at)).min(arb(1))

    def right(r: int) -> int:
        included, excluded = order[m - r + r // 2 :], order[: r // 2]
        return sum(coins[i] for i in included) + sum(not coins[i] for i in excluded)

    stated, level = Fraction(theorem["p_value"]), Fraction(theorem["significance"])
    _above(stated, p_value(used[0], points), "theorem.p_value")
    _verdict(theorem, stated)
    proof.numbers["counts"] = f"{right(used[0])} of {used[0]} guesses right, of {m} canaries"
    bound, mu = Fraction(theorem["epsilon_lower_bound"]), Fraction(theorem["mu_lower_bound"])
    if bound > 0:
        at = [(_ball(bound), _ball(Fraction(theorem["delta"])))]
        _above(level, p_value(used[1], at), "theorem.epsilon_lower_bound")
    if mu > 0:
        at = []
        for index, step in enumerate(witness["mu_tested"]):
            epsilon = Fraction(step["epsilon"])
            if epsilon < 0:
                raise Wrong(f"witness.mu_tested[{index}]", "expected epsilon >= 0")
            at.append(_order(_ball(epsilon), gaussian_delta(mu, epsilon), step["reversed"]))
        _above(level, p_value(used[2], at), "theorem.mu_lower_bound")


def _order(epsilon: arb, delta: arb, reverse: bool) -> tuple[arb, arb]:
    """Return the point; or what it says of complements, with the datasets exchanged."""
    return (-epsilon, 1 - (-epsilon).exp() * (1 - delta)) if reverse else (epsilon, delta)


def one_run_bound(v: int, r: int, m: int, points: list[tuple[arb, arb]]) -> arb:
    """Bound P(V ≥ v), from a point of the curve for each of j = v, v − 1, …, or from one alone."""
    if v <= 0 or not points:
        return arb(1)
    if len(points) > v:
        raise Wrong("witness.tested", "has more points than right guesses")
    best = arb(1)
    if len(points) == 1 and points[0][0] >= 0:
        factor, delta = points[0][0].exp(), points[0][1]
        chance = factor / (1 + factor)
        beta, rest = binomial_tail(v, r, chance), binomial_tail(r - v + 1, r, 1 - chance)
        best = beta + m * delta * beta * rest / (v * binomial_mass(v, r, chance))
    sums = paid = equal = arb(0)
    for j, (epsilon, delta) in enumerate(reversed(points), v - len(points) + 1):
        # equality at k = j − 1: 0 = 1 + A(j − 1)/m − B(r − j + 1)/m, with B the new sum
        needed = (m + sums * (j - 1)) / (r - j + 1)
        weight = (needed - equal) * (-epsilon).exp()
        sums, paid, equal = sums + weight, paid + weight * delta, needed
    gain = 1 + sums * v / m - equal * (r - v) / m
    return best.min((1 + paid) / gain if gain > 0 else arb(1)).min(arb(1))


_KINDS = {"audit": _audit, "sequential-audit": _sequential, "one-run-audit": _one_run}
