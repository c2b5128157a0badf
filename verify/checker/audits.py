"""The second look at an audit: counts from the histogram, the p-value and the bounds anew.

What is recomputed shares no code with `dpassay.verifier.audit`. Guesses: the binomial tail is an
incomplete beta function, in a ball. Sides: the supremum over the boundary is bounded again, with
twice as many cells, by sums (small counts) or by the inequalities of Zubkov and Serov (large ones)
in double precision, whose error (below 1e-9 relative) is allowed for. A stated p-value stands if it
is not below what is found here. The curve of a claimed mechanism is computed again from its
notation, where the checker knows its laws. That the counts came from the mechanism is not for
arithmetic to show: they can be drawn again from the seed.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, TypeAlias

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.arithmetic import largest, settle
from dpassay.verifier.checker.facts import mechanism
from dpassay.verifier.checker.laws import hockey_stick
from dpassay.verifier.checker.masses import binomial_mass, binomial_tail
from dpassay.verifier.checker.mechanisms.pairs import fits, pairs
from dpassay.verifier.checker.notation import number as written
from dpassay.verifier.checker.outcome import guarantee, quoted
from dpassay.verifier.checker.reals import UnknownError, ball, compare

Problems: TypeAlias = list[tuple[str, str]]

FIXED_BEFORE = "that event and tested point were fixed before these runs"
"""What a certificate cannot show, and drawing the training runs again does."""
BITS, SLACK = 192, 1e-6
"""Bits of numbers that are found again, and the room for the rounding of stated ones."""
SPARED = 0.01
"""What a test spares for the nuisance parameter, as a part of its level, or of the p-value: tests
that spare a part of their level are nested, so that the least level that rejects is a p-value."""
FAIR = 8.0
"""Standard deviations by which fair coins may differ: by more they do with probability 1.3e-15.
Less would call an honest certificate invalid; more leaves a forger room."""
_REACH = 6.6
"""Standard deviations about a cell that sums cover one by one; what is beyond is bounded."""
_CELLS_OF_Q, _CELLS_OF_B = 288, 480
"""Cells of the rates, and of the counts within the reach: more are sharper, and slower."""
_SMALL = 2000.0
"""Counts within reach up to which every outcome is summed; cells of more are bounded."""
MALFORMED = (ValueError, TypeError, LookupError, ArithmeticError)


def audit_problems(data: Mapping[str, Any]) -> tuple[Problems, list[str]]:
    """Return what is wrong with the certificate of an audit, and what was taken as given."""
    given = [_drawn(data)]
    problems: Problems = []
    with ctx.workprec(BITS):
        for step in (described, tested, _counted, _decided, _bounded):
            try:
                step(data, problems, given)
            except MALFORMED as error:
                problems.append((step.__name__.strip("_"), f"cannot be checked: {error}"))
            if problems:
                break
    return problems, given


def sequential_problems(data: Mapping[str, Any]) -> tuple[Problems, list[str]]:
    """Return what is wrong with the certificate of a sequential audit, and what was given."""
    given = [f"{_drawn(data)}, and every bet chosen from the rounds before it"]
    problems: Problems = []
    with ctx.workprec(BITS):
        try:
            described(data, problems, given)
            _rounds(data, problems, given)
        except MALFORMED as error:
            problems.append(("rounds", f"cannot be checked: {error}"))
    return problems, given


def _drawn(data: Mapping[str, Any]) -> str:
    """Say what the runs have to be, and whether a seed is said to give them."""
    again = f" (--replay draws them again from seed {data['seed']})" if "replay" in data else ""
    coins = ""
    if data.get("counts", {}).get("design") == "guesses":
        coins = ", each on the one that a fair coin chose"
    return f"that the runs were drawn from {quoted(data['target'])} on neighbours{coins}{again}"


def described(data: Mapping[str, Any], problems: Problems, _: list[str]) -> None:
    """Require the headline of the claim to be what its fields say, and no field too many."""
    claim = data["claim"]
    if bool(claim["points"]) != (claim["kind"] == "epsilon-delta"):
        problems.append(("claim.points", "do not fit the kind"))
    if bool(claim["parameter"]) != (claim["kind"] in ("gaussian", "mechanism")):
        problems.append(("claim.parameter", "does not fit the kind"))
    elif claim["kind"] == "gaussian" and not compare(written(claim["parameter"]), ">", Fraction(0)):
        problems.append(("claim.parameter", "expected mu > 0"))
    if claim["kind"] != "profile" and claim["description"] != guarantee(claim):
        problems.append(("claim.description", f"expected {guarantee(claim)}"))


def _rounds(data: Mapping[str, Any], problems: Problems, given: list[str]) -> None:
    """Multiply the bets again: M_t = (M_{t−1} + 1/(t(t + 1))) F_t, evidence M_t + 1/(t + 1)."""
    capital, best = arb(0), arb(1)
    if sum(int(entry["runs"]) for entry in data["rounds"]) // 2 != data["samples"]:
        problems.append(("samples", "is not half of the runs of all rounds"))
    for number, entry in enumerate(data["rounds"], 1):
        if entry["pair"] >= len(data["pairs"]):
            problems.append((f"rounds[{number - 1}].pair", "is not listed"))
        stake, right, wrong = arb(entry["stake"]), int(entry["right"]), int(entry["wrong"])
        none = int(entry["runs"]) - right - wrong
        factor = arb(1)
        eps, delta = map(ball, exact_point(entry["tested"]))
        if min(right, wrong, none) < 0:
            problems.append((f"rounds[{number - 1}].runs", "are fewer than the guesses"))
            return
        if stake != 0:
            before = len(problems)
            tested({"tested": entry["tested"], "claim": data["claim"]}, problems, given)
            lost = eps.exp() + delta
            if len(problems) > before or not 0 <= stake * lost <= 1:
                problems.append((f"rounds[{number - 1}]", "is no bet against the claim"))
                return
            factor = (1 + stake * (1 - delta)) ** right * (1 - stake * lost) ** wrong
            factor *= (1 - stake * delta) ** none
        capital = (capital + arb(1) / (number * (number + 1))) * factor
        best = best.max(capital + arb(1) / (number + 1))
    stated, level = Fraction(data["evidence"]), Fraction(data["significance"])
    if not abs(best - ball(stated)) <= best * SLACK:
        problems.append(("evidence", f"is {shown(best)} by this calculation"))
    if abs(data["p_value"] * stated - 1) > SLACK:
        problems.append(("p_value", "is not the inverse of the evidence"))
    if data["verdict"] != ("REFUTED" if stated * level >= 1 else "NOT_REFUTED"):
        problems.append(("verdict", "does not follow from evidence and significance"))


def shown(value: Any) -> str:
    """Return eight digits of a number."""
    return str((value if isinstance(value, arb) else ball(value)).str(8, radius=False))


def tested(data: Mapping[str, Any], problems: Problems, given: list[str]) -> None:
    """Require the tested point to belong to the claim."""
    eps, delta = exact_point(data["tested"])
    claim = data["claim"]
    if eps < 0 or not 0 <= delta < 1:
        problems.append(("tested", "expected epsilon ≥ 0 and delta in [0, 1)"))
        return
    if claim["kind"] == "epsilon-delta":
        if (eps, delta) not in [exact_point(entry) for entry in claim["points"]]:
            problems.append(("tested", "is no point of the claim"))
        return
    least = _claimed(claim, eps)
    if least is None:
        given.append(f"that {claim['description']} claims delta = {data['tested']['delta']} there")
    elif not compare(delta, ">=", least):
        problems.append(("tested.delta", f"is below the claimed curve, {shown(least)}"))


def _claimed(claim: Mapping[str, Any], epsilon: Fraction) -> Any:
    """Return δ(ε) of a claimed curve, or None where the checker does not know its laws."""
    if claim["kind"] == "gaussian":
        law = {"law": "gaussian", "mu": written(claim["parameter"])}
        return settle(lambda: [hockey_stick(law, epsilon)])[0]
    if claim["kind"] != "mechanism":
        return None
    noise = mechanism(claim["parameter"])
    if not fits(noise, None):  # which relation is meant is not said
        return None
    try:
        return settle(lambda: [largest([hockey_stick(law, epsilon) for law in pairs(noise)])])[0]
    except UnknownError:
        return None


def _counted(data: Mapping[str, Any], problems: Problems, _: list[str]) -> None:
    """Require the counts of the histogram."""
    histogram, marks, counts = data["histogram"], data["event"]["marks"], data["counts"]
    favoured = {"first": 0, "second": 1}[data["event"]["favours"]]
    p, q = (list(map(int, histogram[side])) for side in (favoured, 1 - favoured))
    if not len(p) == len(q) == len(marks) or min(p + q) < 0:
        problems.append(("histogram", "has other cells than the event"))
        return
    if not min(sum(p), sum(q)) <= data["samples"] <= max(sum(p), sum(q)):
        problems.append(("samples", "are not the runs in the histogram"))
    hits, misses = _sum(p, marks, 1), _sum(q, marks, 1)
    found = {"hits": hits, "runs": sum(p), "misses": misses, "other_runs": sum(q)}
    if counts["design"] == "guesses":
        found["hits"] += _sum(q, marks, -1)
        found["misses"] += _sum(p, marks, -1)
        found["runs"] = found["other_runs"] = sum(p) + sum(q)
        if abs(sum(p) - sum(q)) > FAIR * math.sqrt(found["runs"]):
            problems.append(("histogram", "has more runs on one side than fair coins give"))
    elif counts["design"] != "sides":
        problems.append(("counts.design", "expected sides or guesses"))
    for name, value in found.items():
        if counts[name] != value:
            problems.append((f"counts.{name}", f"the histogram gives {value}"))


def _sum(row: Sequence[int], marks: Sequence[int], mark: int) -> int:
    return sum(count for count, own in zip(row, marks, strict=True) if own == mark)


def _decided(data: Mapping[str, Any], problems: Problems, given: list[str]) -> None:
    """Require a p-value not below what is found here, and the verdict that it gives."""
    stated, level, spared = (float(data[k]) for k in ("p_value", "significance", "spared"))
    if not 0 <= spared <= level / 50 or not 0 < level < 1:
        problems.append(("spared", "expected at most a fiftieth of the significance"))
        return
    eps, delta = exact_point(data["tested"])
    share = float(data.get("share", 1.0))
    of_a_few = "" if share == 1 else f", as one of a few: it has {share:.4g} of the risk"
    given.append(f"{FIXED_BEFORE}{of_a_few}")
    found = min(
        min(1.0, p_value(data["counts"], float(eps), float(delta), each) / share)
        for each in {spared, min(spared, stated * share * SPARED)}
    )
    if not found <= stated * (1 + SLACK):
        problems.append(
            ("p_value", f"is at most {found:.6g} by this calculation, not {stated:.6g}")
        )
    if data["verdict"] != ("REFUTED" if stated <= level else "NOT_REFUTED"):
        problems.append(("verdict", "does not follow from p_value and significance"))


def _bounded(data: Mapping[str, Any], problems: Problems, _: list[str]) -> None:
    """Require both bounds to be refuted at the significance."""
    eps, delta = (float(value) for value in exact_point(data["tested"]))
    level, spared = float(data["significance"]), float(data["spared"])
    level *= float(data.get("share", 1.0))
    for name, point in (
        ("epsilon_lower_bound", (float(data["epsilon_lower_bound"]), delta)),
        ("delta_lower_bound", (eps, float(data["delta_lower_bound"]))),
    ):
        if float(data[name]) > 0:
            found = p_value(data["counts"], *point, spared)
            if found > level * (1 + SLACK):
                problems.append((name, f"is refuted only at {found:.6g}"))
    mu = data.get("mu_lower_bound")
    if mu:
        law = {"law": "gaussian", "mu": Fraction(mu)}
        (least,) = settle(lambda: [hockey_stick(law, exact_point(data["tested"])[0])])
        if not compare(Fraction(data["delta_lower_bound"]), ">=", least):
            problems.append(("mu_lower_bound", "does not follow from the bound of delta"))


def p_value(counts: Mapping[str, Any], epsilon: float, delta: float, spared: float) -> float:
    """Return an upper bound of the p-value of one pair of counts."""
    a, n, b, m = (int(counts[k]) for k in ("hits", "runs", "misses", "other_runs"))
    with ctx.workprec(BITS):
        if counts["design"] == "guesses":
            return _guesses((a, b, n), epsilon, delta, spared)
        return _sides((a, n, b, m), epsilon, delta, spared)


def _guesses(counts: tuple[int, int, int], epsilon: float, delta: float, spared: float) -> float:
    """Sum P(Bin(G, π) ≥ right) for the largest π that the claim allows."""
    right, wrong, runs = counts
    guesses, factor = right + wrong, arb(epsilon).exp()
    chance = factor / (1 + factor)
    if delta > 0:
        rate = _least_rate(guesses, runs, spared)
        chance = arb(1) if not rate > delta else 1 - (rate - delta) / ((1 + factor) * rate)
    if not right > guesses * chance:
        return 1.0
    tail = float(binomial_tail(right, guesses, chance).upper())
    return min(1.0, tail + (spared if delta > 0 else 0.0))


def _least_rate(hits: int, runs: int, level: float) -> arb:
    """Return a rate at which P(Bin(runs, rate) ≥ hits) ≤ level, next to the largest one.

    Newton's method on the logarithm of the tail as a function of x = ln rate. The tail is the
    distribution function of x under a density ∝ e^{hits·x}(1 − e^x)^{runs−hits}, which is
    log-concave, and so is its distribution function: every step ends below the root.
    """
    if hits == 0:
        return arb(0)
    mean = arb(hits) / (runs + 1)
    rate = (mean * (-_deviations(level) * ((1 - mean) / hits).sqrt()).exp()).mid()
    for _ in range(100):
        tail = binomial_tail(hits, runs, rate)
        step = (arb(level) / tail).log() * tail / (hits * binomial_mass(hits, runs, rate))
        rate = (rate * step.exp()).mid()
        if abs(step) * rate < rate.min(1 - rate) * arb(1e-14):
            break
    rate -= rate.min(1 - rate) * arb(1e-12)
    return rate if binomial_tail(hits, runs, rate) <= level else arb(0)


def _deviations(level: float) -> float:
    """Return roughly the normal quantile of 1 − level."""
    return math.sqrt(max(0.0, -2 * math.log(min(level, 0.5)) - 1.5))


def _sides(counts: tuple[int, int, int, int], epsilon: float, delta: float, spared: float) -> float:
    """Bound the supremum of P(a ≥ k(b)) over the boundary, cell by cell."""
    _, n, b, m = counts
    factor = math.exp(epsilon)
    t = _statistic(counts, factor, delta)
    if t <= 0:
        return 1.0
    low = float(_least_rate(b, m, spared / 2)) * (1 - 1e-9)
    high = min(1.0, float(1 - _least_rate(m - b, m, spared / 2)) * (1 + 1e-9))
    top = (1 - delta) / factor
    if low >= top:
        return 1.0
    start, stop = math.asin(math.sqrt(low)), math.asin(math.sqrt(min(high, top, 1.0)))
    cuts = [math.sin(start + (stop - start) * i / _CELLS_OF_Q) ** 2 for i in range(_CELLS_OF_Q + 1)]
    cuts[0], cuts[-1] = min(low, cuts[0]), max(min(high, top), cuts[-1])
    region = (t, n, m, factor, delta)
    last = min(1.0, factor * cuts[-1] + delta)
    spread = math.sqrt(m * cuts[-2] * (1 - cuts[-2])) + math.sqrt(n * last * (1 - last))
    cells = [(min(1.0, factor * above + delta), below) for below, above in pairwise(cuts)]
    if 13.0 * spread < _SMALL:
        worst = max(_small(region, p, q) for p, q in cells)
    else:
        edges = _edges(region, start, stop)
        worst = max(_large(region, p, q, edges) for p, q in cells)
    return min(1.0, worst * (1 + 1e-9) + spared)


_Region: TypeAlias = tuple[float, int, int, float, float]


def _statistic(counts: tuple[int, int, int, int], factor: float, delta: float) -> float:
    """Return the score divided by its standard deviation on the boundary."""
    a, n, b, m = counts
    u, v = a - n * delta, factor * n / m * b
    s = (u + v) / 2
    p, q = s / n + delta, s / (n * factor)
    variance = n * p * (1 - p) + (factor * n / m) ** 2 * m * q * (1 - q)
    return (u - v) / math.sqrt(variance) if u > v and variance > 0 else 0.0


@functools.lru_cache(maxsize=1 << 18)
def _edge(region: _Region, b: int) -> int:
    """Return the least a of the region beside b, by bisection; n + 1 where there is none."""
    t, n, m, factor, delta = region
    start = n * delta + factor * n / m * b  # the statistic is 0 up to here

    def beyond(a: int) -> float:
        return _statistic((a, n, b, m), factor, delta) - t * (1 - 1e-9)

    if start >= n or beyond(n) < 0:
        return n + 1
    low, high = max(math.floor(start), -1), n
    step = max(1, math.ceil(t * math.sqrt(start * (1 + factor * n / m) + 1)))
    while low + step < high:  # the edge is a few steps away: do not halve the whole range
        if beyond(low + step) >= 0:
            high = low + step
        else:
            low += step
    return bisect.bisect_left(range(high), True, low + 1, high, key=lambda a: beyond(a) >= 0)


def _small(region: _Region, p: float, q: float) -> float:
    """Sum over every outcome within eight standard deviations, and what the rest may add."""
    _, n, m, _, _ = region
    survival = _survival(n, p)
    least = min(survival)
    total = 0.0
    for b, mass in _masses(m, q):
        k = _edge(region, b)
        total += mass * (1.0 if k < least else survival.get(k, 0.0))
    return total + 1e-13


def _masses(n: int, p: float) -> list[tuple[int, float]]:
    """Return the outcomes within reach with their probabilities."""
    spread = math.sqrt(n * p * (1 - p))
    start = max(0, math.floor(n * p - 8 * spread - 12))
    stop = min(n, math.ceil(n * p + 8 * spread + 24))
    if p <= 0:
        return [(0, 1.0)]
    if p >= 1:
        return [(n, 1.0)]
    middle = min(max(round(n * p), start), stop)
    found, odds = {middle: float(binomial_mass(middle, n, arb(p)))}, p / (1 - p)
    for k in range(middle, stop):
        found[k + 1] = found[k] * ((n - k) / (k + 1) * odds)
    for k in range(middle, start, -1):
        found[k - 1] = found[k] * (k / (n - k + 1) / odds)
    return sorted(found.items())


def _survival(n: int, p: float) -> dict[int, float]:
    counts, masses = zip(*reversed(_masses(n, p)), strict=True)
    return {k: min(1.0, total) for k, total in zip(counts, accumulate(masses), strict=True)}


def _edges(region: _Region, start: float, stop: float) -> list[tuple[int, int]]:
    """Return counts b with their edges, for rates between two angles and six deviations beyond.

    Equal steps of the angle arcsin √(b/m), of which a standard deviation of b is 1/(2√m) at any
    rate: the same steps serve every cell of rates.
    """
    m = region[2]
    spread = 1 / (2 * math.sqrt(m))
    low = max(0.0, start - _REACH * spread)
    high = min(math.pi / 2, stop + _REACH * spread)
    count = math.ceil((high - low) / spread * (_CELLS_OF_B / (2 * _REACH)))
    places = {math.floor(m * math.sin(low + (high - low) * i / count) ** 2) for i in range(count)}
    return [(b, _edge(region, b)) for b in sorted(places | {0})]


def _large(region: _Region, p: float, q: float, edges: list[tuple[int, int]]) -> float:
    """Sum by parts over cells of b, every tail bounded by Zubkov and Serov's inequalities.

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


def exact_point(entry: Mapping[str, str]) -> tuple[Fraction, Fraction]:
    """Return the point (ε, δ) of an entry."""
    return Fraction(entry["epsilon"]), Fraction(entry["delta"])
