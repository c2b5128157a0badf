"""Audits: exact tests of a privacy claim on counts of runs.

A claim of (ε, δ)-DP says P(E) ≤ e^ε Q(E) + δ for neighbours P, Q and every event E. The event is
fixed before the runs, and the p-value bounds the probability of counts as extreme as the observed.

**Guesses.** Each run uses the dataset chosen by a fair coin, and guesses which one it was, or
abstains. The claim implies P(right) ≤ e^ε P(wrong) + δ. So if guesses are made at the rate g, each
is right with probability at most π = e^ε/(1 + e^ε) for δ = 0, or 1 − (g − δ)/((1 + e^ε) g) for
δ > 0. In the latter, g is replaced with a lower confidence bound that fails with probability s. The
p-value is P(Bin(guesses, π) ≥ right) + s.

**Sides.** a ~ Bin(n, p) runs are in E on one dataset and b ~ Bin(m, q) on the other, and the claim
is p ≤ e^ε q + δ. The statistic T(a, b) is a/n − δ − e^ε b/m over its standard deviation estimated
under p = e^ε q + δ. R = {T ≥ t}, the outcomes as extreme as the counts, is increasing in a and
decreasing in b, so P(R) is largest on the boundary p = e^ε q + δ. There q is restricted to a
confidence interval that fails with probability s, which is cut into cells. In a cell P(R) is at
most its value at the largest p and the least q. P(R) = Σ_b P(b) P(a ≥ k(b)) is summed in doubles
over a and b within eight standard deviations: fewer than 10⁶ positive terms, each with a relative
error below 1e-10. The relative amount 1e-9 and 1e-13 are added for rounding and for the tails.

**One run.** Each of m canaries is included by a fair coin. At least v of r guesses are right with
probability at most min(1, β + mδβ(1 − β)/(vw)), with W ~ Bin(r, e^ε/(1 + e^ε)), β = P(W ≥ v) and
w = P(W = v). For points (ε_j, δ_j), j ≤ v, of a curve, let R_j and H_j be the probabilities that a
canary is guessed right, or wrong, among at least j right guesses. Weak duality of the inequalities
R_j ≤ e^{ε_j} H_{j−1} + δ_j gives P(V ≥ v) ≤ (1 + Σ λ_j δ_j)/gain. If several numbers of guesses
were tried, the bound is multiplied by their number (Bonferroni). Proofs: the heads of dpassay's
`audit/exact_test` and `audit/one_run`.
"""

from __future__ import annotations

import bisect
import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

from flint import arb, fmpq

from .numbers import Budget, NotProved, Proof, Wrong, ball, precision, rational
from .theorem import Theorem, bracketed, formula, quoted

Data = Mapping[str, Any]
Counts = tuple[int, int, int, int]
"""Hits, runs, misses, other runs."""
FAIR = 8.0
"""Limit on the imbalance of fair coins, in standard deviations: failure 1.3e-15."""
SPARED = fmpq(1, 100)
"""s, as a share of the level. Tests at different levels are nested, so the least level that rejects
is a p-value."""
BITS = 192
_CELLS = 288
"""Number of cells of q: more give a sharper bound. The auditor uses half as many."""
_MOST_TERMS = 100_000
"""Limit on the terms of one sum."""
RUNS = "that the runs were drawn from the audited program on neighbouring datasets"
FIXED = "that event and tested point were fixed before these runs"
_CANARIES = "that the scores are of one run, in which a fair coin of its own included each canary"
_NUMBERS = "that the numbers of guesses and the seed were fixed before the coins were known"


def prove(theorem: Data, witness: Data, budget: Budget) -> Proof:
    """Recompute an audit from its counts or scores."""
    proof = Proof()
    with precision(BITS):
        level = rational(theorem["significance"])
        if not 0 < level < 1:
            raise Wrong("theorem.significance", "expected a number in (0, 1)")
        claim = _Claim(theorem["claim"], proof, budget)
        stated = _KINDS[theorem["kind"]](theorem, witness, claim, proof, budget)
    if theorem["verdict"] != ("REFUTED" if stated <= level else "NOT_REFUTED"):
        raise Wrong("theorem.verdict", "does not follow from the p-value and the significance")
    return proof


def _point(entry: Mapping[str, str]) -> tuple[fmpq, fmpq]:
    return rational(entry["epsilon"]), rational(entry["delta"])


def _above(stated: fmpq, found: arb, field: str) -> None:
    """Raise Wrong unless the stated number is at least the computed one."""
    if not found <= ball(stated):
        raise Wrong(field, f"is {found.str(8, radius=False)} by this calculation")


class _Claim:
    """The audited claim: points (ε, δ), or a curve δ(ε)."""

    def __init__(self, data: Data, proof: Proof, budget: Budget) -> None:
        self.data, self._proof, self._budget = data, proof, budget
        if bool(data["points"]) != (data["kind"] == "epsilon-delta"):
            raise Wrong("theorem.claim.points", "do not fit the kind")
        if bool(data["parameter"]) != (data["kind"] in ("gaussian", "mechanism")):
            raise Wrong("theorem.claim.parameter", "does not fit the kind")

    def require(self, epsilon: fmpq, delta: fmpq, where: str) -> None:
        """Require that the claim implies (ε, δ)-DP, or record this as a condition."""
        if epsilon < 0 or not 0 <= delta < 1:
            raise Wrong(where, "expected epsilon >= 0 and delta in [0, 1)")
        if self.data["kind"] == "epsilon-delta":
            if (epsilon, delta) not in map(_point, self.data["points"]):
                raise Wrong(where, "is not a point of the claim")
            return
        least = None if self.data["kind"] == "profile" else self._curve(epsilon)
        if least is not None and ball(delta) < least:
            raise Wrong(where, f"is below the claimed curve, {least.str(8, radius=False)}")
        condition = "that the claimed profile has the tested points"
        if (least is None or not ball(delta) >= least) and condition not in self._proof.conditions:
            self._proof.conditions.append(condition)

    def _curve(self, epsilon: fmpq) -> arb | None:
        """Return δ(ε) of the claimed μ or mechanism, or None if the kernel does not compute it."""
        from .expressions import real
        from .laws import gaussian
        from .notation import parse
        from .questions import quantity

        if self.data["kind"] == "gaussian":
            self._proof.lemmas.add("gaussian")
            mu = ball(real(self.data["parameter"], self._budget))
            if not mu > 0:
                raise Wrong("theorem.claim.parameter", "expected mu > 0")
            return ball(gaussian(mu).delta(epsilon))
        try:
            noise = parse(self.data["parameter"])
            found, rows = quantity("delta", noise, None, [epsilon], self._budget)
        except NotProved:
            return None
        self._proof.lemmas |= rows
        return ball(found)


# --- many runs ----------------------------------------------------------------------------------
def _audit(theorem: Data, witness: Data, claim: _Claim, proof: Proof, budget: Budget) -> fmpq:
    epsilon, delta = _point(theorem["tested"])
    claim.require(epsilon, delta, "theorem.tested")
    counts = _counted(witness, proof)
    stated, share, level, bound = (
        rational(theorem[name])
        for name in ("p_value", "share", "significance", "epsilon_lower_bound")
    )
    if not 0 < share <= 1 or not 0 <= bound <= 700:
        raise Wrong("theorem.share", "expected a share in (0, 1], and a bound in [0, 700]")
    coins = ", each on the one that a fair coin chose" if witness["design"] == "guesses" else ""
    part = "" if share == 1 else f", as one of a few: it has {_double(share, 0.0):.4g} of the risk"
    proof.conditions += [RUNS + coins, FIXED + part]

    def found(at: fmpq, most: fmpq) -> arb:
        budget.check()
        spared = _double(SPARED * most * share, 0.0)
        factor, most_delta = (_double(x, math.inf) for x in (ball(at).exp(), delta))
        test = guesses if witness["design"] == "guesses" else sides
        return arb(test(counts, factor, most_delta if delta else 0.0, spared)) / ball(share)

    if stated < 1:
        _above(stated, found(epsilon, min(stated, level)), "theorem.p_value")
    if bound > 0:
        _above(level, found(bound, level), "theorem.epsilon_lower_bound")
    return stated


def _double(x: fmpq | arb, towards: float) -> float:
    """Return a double beyond x, rounded in the direction of `towards`."""
    return math.nextafter(float(ball(x).mid()) * (1 + (1e-15 if towards else -1e-15)), towards)


def _counted(witness: Data, proof: Proof) -> Counts:
    """Return the counts of the event in the histogram."""
    marks, swap = witness["marks"], -1 if witness["favours"] == "second" else 1
    if len(witness["histogram"]) != 2:
        raise Wrong("witness.histogram", "expected two rows")
    p, q = witness["histogram"][::swap]
    if not len(p) == len(q) == len(marks) or not (sum(p) and sum(q)):
        raise Wrong("witness.histogram", "has other cells than the event, or no runs")

    def count(row: Sequence[int], mark: int) -> int:
        return sum(entry for entry, own in zip(row, marks, strict=True) if own == mark)

    if witness["design"] == "sides":
        hits, runs, misses, others = count(p, 1), sum(p), count(q, 1), sum(q)
        proof.numbers["counts"] = f"{hits} of {runs} runs against {misses} of {others}"
        return hits, runs, misses, others
    right, wrong, runs = count(p, 1) + count(q, -1), count(q, 1) + count(p, -1), sum(p) + sum(q)
    if abs(sum(p) - sum(q)) > FAIR * math.sqrt(runs):
        raise Wrong("witness.histogram", "has more runs on one side than fair coins give")
    proof.numbers["counts"] = f"{right} right and {wrong} wrong guesses in {runs} runs"
    return right, runs, wrong, runs


def guesses(counts: Counts, factor: float, delta: float, spared: float) -> float:
    """Return the p-value of the design `guesses`."""
    right, runs, wrong, _ = counts
    guesses, odds = right + wrong, arb(factor)
    chance = odds / (1 + odds)
    if delta > 0:
        rate = least_rate(guesses, runs, spared)
        chance = arb(1) if not rate > delta else 1 - (rate - delta) / ((1 + odds) * rate)
    if not right > guesses * chance:
        return 1.0
    tail = float(binomial_tail(right, guesses, chance).upper())
    return min(1.0, tail * (1 + 1e-15) + (spared if delta > 0 else 0.0))


def sides(counts: Counts, factor: float, delta: float, spared: float) -> float:
    """Return the p-value of the design `sides`."""
    _, n, b, m = counts
    t = _statistic(counts, factor, delta)
    if t <= 0:
        return 1.0
    low = float(least_rate(b, m, spared / 2)) * (1 - 1e-9)
    high = min(1.0, float(1 - least_rate(m - b, m, spared / 2)) * (1 + 1e-9))
    top = (1 - delta) / factor
    if low >= top:
        return 1.0
    start, stop = math.asin(math.sqrt(low)), math.asin(math.sqrt(min(high, top, 1.0)))
    step = (stop - start) / _CELLS
    cuts = [math.sin(start + step * i) ** 2 for i in range(_CELLS + 1)]
    cuts[0], cuts[-1] = min(low, cuts[0]), max(min(high, top), cuts[-1])
    region = (t, n, m, factor, delta)
    worst = max(_summed(region, min(1.0, factor * q + delta), p) for p, q in pairwise(cuts))
    return min(1.0, worst * (1 + 1e-9) + spared)


_Region = tuple[float, int, int, float, float]


def _statistic(counts: Counts, factor: float, delta: float) -> float:
    a, n, b, m = counts
    u, v = a - n * delta, factor * n / m * b
    s = (u + v) / 2
    p, q = s / n + delta, s / (n * factor)
    variance = n * p * (1 - p) + (factor * n / m) ** 2 * m * q * (1 - q)
    return (u - v) / math.sqrt(variance) if u > v and variance > 0 else 0.0


@lru_cache(maxsize=1 << 20)
def _edge(region: _Region, b: int) -> int:
    """Return k(b), the least a with T(a, b) ≥ t, or n + 1 if there is none."""
    t, n, m, factor, delta = region
    start = min(math.floor(n * delta + factor * n / m * b), n)  # T is 0 up to here

    def beyond(a: int) -> bool:
        return _statistic((a, n, b, m), factor, delta) >= t * (1 - 1e-9)

    return bisect.bisect_left(range(n + 1), True, start, n + 1, key=beyond)


def _summed(region: _Region, p: float, q: float) -> float:
    """Return an upper bound of P(R), up to rounding, for a ~ Bin(n, p) and b ~ Bin(m, q)."""
    _, n, m, _, _ = region
    counts, masses = zip(*reversed(_masses(n, p)), strict=True)
    survival = {k: min(1.0, s) for k, s in zip(counts, accumulate(masses), strict=True)}
    least, total = min(survival), 0.0
    for b, mass in _masses(m, q):
        k = _edge(region, b)
        total += mass * (1.0 if k < least else survival.get(k, 0.0))
    return total + 1e-13


def _masses(n: int, p: float) -> list[tuple[int, float]]:
    """Return the outcomes of Bin(n, p) near its mean, with their probabilities."""
    if p <= 0 or p >= 1:
        return [(0 if p <= 0 else n, 1.0)]
    spread = math.sqrt(n * p * (1 - p))
    if spread * 16 > _MOST_TERMS:
        raise NotProved(f"the p-value of {n} runs has a sum of more than {_MOST_TERMS} terms")
    start = max(0, math.floor(n * p - 8 * spread - 12))
    stop = min(n, math.ceil(n * p + 8 * spread + 24))
    middle = min(max(round(n * p), start), stop)
    found, odds = {middle: float(binomial_mass(middle, n, arb(p)))}, p / (1 - p)
    for k in range(middle, stop):
        found[k + 1] = found[k] * ((n - k) / (k + 1) * odds)
    for k in range(middle, start, -1):
        found[k - 1] = found[k] * (k / (n - k + 1) / odds)
    return sorted(found.items())


# --- binomial laws ------------------------------------------------------------------------------
def binomial_tail(k: int, n: int, p: arb) -> arb:
    """Return P(Bin(n, p) ≥ k).

    For k ≥ (n + 1)p this is the continued fraction of DiDonato and Morris (1992), equation 9. Its
    entries are positive, so odd convergents are upper bounds and even ones lower bounds.
    """
    if k <= 0 or k > n or p >= 1 or p <= 0:
        return arb(k <= 0 or (p >= 1 and k <= n))
    if k < (n + 1) * p:  # the complement, for small k
        return 1 - binomial_tail(n - k + 1, n, 1 - p)
    a, b = arb(k), arb(n - k + 1)
    front = binomial_mass(k, n, p) * a * (1 - p)
    excess = a - (a + b) * p + 1
    if not excess > 0:
        raise NotProved("the probability of a binomial law is not known precisely enough")
    above, below = (arb(1), a * excess / (a + 1)), (arb(0), arb(1))
    for i in range(1, 5000):
        numerator = (a + i - 1) * (a + b + i - 1) * i * (b - i) * (p / (a + 2 * i - 1)) ** 2
        if b == i:
            return front * above[0] / above[1]
        denominator = i + i * (b - i) * p / (a + 2 * i - 1)
        denominator += (a + i) * (excess + i * (2 - p)) / (a + 2 * i + 1)
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
    """Return a lower confidence bound of a rate: P(Bin(runs, rate) ≥ hits) ≤ level."""
    low, high = arb(0), arb(hits) / (runs + 1)
    for _ in range(60 if hits and level > 0 else 0):
        middle = ((low + high) / 2 if low > 0 else high / 4).mid()
        under = binomial_tail(hits, runs, middle) <= level
        low, high = (middle, high) if under else (low, middle)
    return low


# --- one run -------------------------------------------------------------------------------------
def _one_run(theorem: Data, witness: Data, claim: _Claim, proof: Proof, budget: Budget) -> fmpq:
    proof.conditions += [_CANARIES, _NUMBERS]
    points = []
    for index, step in enumerate(witness["tested"]):
        epsilon, delta = _point(step)
        claim.require(epsilon, delta, f"witness.tested[{index}]")
        e, d = ball(epsilon), ball(delta)  # reversed: the inequality of the complements
        points.append((-e, 1 - (-e).exp() * (1 - d)) if step["reversed"] else (e, d))
    scores, tried = [rational(text) for text in witness["scores"]], witness["guesses_tried"]
    coins, m = [coin == "1" for coin in witness["included"]], len(scores)
    if len(coins) != m or abs(2 * sum(coins) - m) > FAIR * math.sqrt(m):
        raise Wrong("witness.included", "expected one fair coin for each score")
    used = (witness["guesses"], witness["epsilon_guesses"])
    if len({*tried}) < len(tried) or max(tried, default=0) > m or not {*used} <= {*tried}:
        raise Wrong(
            "witness.guesses_tried", f"expected different numbers up to {m}, those used too"
        )
    lots = [hashlib.sha256(f"{witness['seed']} {i}".encode()).digest() for i in range(m)]
    order = sorted(range(m), key=lambda i: (scores[i], lots[i]))

    def right(r: int) -> int:
        included, excluded = order[m - r + r // 2 :], order[: r // 2]
        return sum(1 for i in included if coins[i]) + sum(1 for i in excluded if not coins[i])

    def p_value(r: int, at: list[tuple[arb, arb]]) -> arb:
        """Return the bound for r guesses, times the number of values of r that were tried."""
        budget.check()
        return (len(tried) * one_run_bound(right(r), r, m, at)).min(arb(1))

    stated, level, bound, delta = (
        rational(theorem[name])
        for name in ("p_value", "significance", "epsilon_lower_bound", "delta")
    )
    _above(stated, p_value(used[0], points), "theorem.p_value")
    if bound > 0:
        if bound > 700 or not 0 <= delta < 1:
            raise Wrong("theorem.epsilon_lower_bound", "expected at most 700, and delta in [0, 1)")
        at = [(ball(bound), ball(delta))]
        _above(level, p_value(used[1], at), "theorem.epsilon_lower_bound")
    proof.numbers["counts"] = f"{right(used[0])} of {used[0]} guesses right, of {m} canaries"
    return stated


def one_run_bound(v: int, r: int, m: int, points: list[tuple[arb, arb]]) -> arb:
    """Return a bound of P(V ≥ v) from points of the curve for j = v, v − 1, …, or one alone."""
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


_KINDS = {"audit": _audit, "one-run-audit": _one_run}


# --- audits in words ---
def in_words(theorem: Data, _: Data, proof: Proof) -> Theorem:
    """Return the result of an audit in the kernel's words."""
    parts, delta = [], theorem.get("delta")
    if at := theorem.get("tested"):
        delta = at["delta"]
        parts.append(f"tested at ({formula(at['epsilon'])}, {formula(delta)})")
    parts.append(f"p-value at most {formula(theorem['p_value'])}")
    parts.append(proof.numbers.get("counts", "its counts"))
    text = f"{theorem['verdict']} at significance {formula(theorem['significance'])}"
    text += f" ({', '.join(parts)})"
    if (bound := theorem.get("epsilon_lower_bound", "0")) != "0":
        text += f"; with that confidence epsilon({formula(delta)}) >= {formula(bound)}"
    target = quoted(theorem["target"]) if "target" in theorem else "one run with canaries"
    return Theorem(target, "", guarantee(theorem["claim"]), text)


def guarantee(claim: Data) -> str:
    """Return the audited claim in the kernel's words, from checked fields."""
    kind, parameter = claim["kind"], claim["parameter"]
    if kind == "epsilon-delta":
        points = (f"({formula(p['epsilon'])}, {formula(p['delta'])})" for p in claim["points"])
        return f"{', '.join(points)}-DP"
    if kind == "gaussian":
        return f"{bracketed(parameter)}-GDP"
    if kind == "mechanism":
        return f"as private as {formula(parameter)}"
    return f"of the profile that is called {quoted(claim['description'])}"
