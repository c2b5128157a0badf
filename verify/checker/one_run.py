"""The second look at a one-run audit: scores in order again, right guesses counted, bounds anew.

Of m fair coins and r guesses, fixed beforehand, at least v are right with probability at most
min(1, β + mδβ(1 − β)/(vw)) under (ε, δ)-DP, where W ~ Bin(r, e^ε/(1 + e^ε)), β = P(W ≥ v) and
w = P(W = v); under a curve also with a probability that follows from a point of it for each of the
counts v, v − 1, … The proofs are at the heads of `dpassay.verifier.audit.statistics.one_run_bound`
and `dpassay.verifier.audit.statistics.curve_bound`, of which no code is used here. The binomial law
is that of `dpassay.verifier.checker.audits`, in balls. That the scores are of one run, whose
canaries fair coins included, is not for arithmetic to show.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from flint import arb

from dpassay.accountant.numbers.precision import ctx
from dpassay.verifier.checker.arithmetic import settle
from dpassay.verifier.checker.audits import (
    BITS,
    FAIR,
    MALFORMED,
    SLACK,
    Problems,
    described,
    exact_point,
    shown,
    tested,
)
from dpassay.verifier.checker.laws import hockey_stick
from dpassay.verifier.checker.masses import binomial_mass, binomial_tail
from dpassay.verifier.checker.reals import ball

_SLACK_OF_MU = 1e-4
"""The same for a bound of μ, whose curve the auditor rounds up."""
_GIVEN = (
    "that the scores were computed from the output of one run, in which a fair coin of its own "
    "included each canary",
    "that the numbers of guesses and the seed were fixed before the coins were known",
)


def one_run_problems(data: Mapping[str, Any]) -> tuple[Problems, list[str]]:
    """Return what is wrong with the certificate of a one-run audit, and what was taken as given."""
    given = list(_GIVEN)
    problems: Problems = []
    with ctx.workprec(BITS):
        try:
            described(data, problems, given)
            if not problems:
                _listed(data, problems, given)
            if not problems:
                _recounted(data, problems)
        except MALFORMED as error:
            problems.append(("certificate", f"cannot be checked: {error}"))
    return problems, given


def _listed(data: Mapping[str, Any], problems: Problems, given: list[str]) -> None:
    """Require every point to belong to the claim."""
    unknown: list[str] = []
    for each in {(step["epsilon"], step["delta"]) for step in data["tested"]}:
        at = {"epsilon": each[0], "delta": each[1]}
        tested({"tested": at, "claim": data["claim"]}, problems, unknown)
        if problems:
            return
    if unknown:
        more = f" (and {len(unknown) - 1} more such points)" if len(unknown) > 1 else ""
        given.append(min(unknown) + more)


def _recounted(data: Mapping[str, Any], problems: Problems) -> None:
    scores = [float(each) for text in data["scores"] for each in text.split(" ")]
    coins = [coin == "1" for text in data["included"] for coin in text]
    m, tried = data["canaries"], data["guesses_tried"]
    if not len(scores) == len(coins) == m or not all(map(math.isfinite, scores)):
        problems.append(("scores", "are not one finite number for each canary and coin"))
    elif abs(2 * sum(coins) - m) > FAIR * math.sqrt(m):
        problems.append(("included", "has more or fewer canaries than fair coins give"))
    elif len(set(tried)) < len(tried) or not all(1 <= r <= m for r in tried):
        problems.append(("guesses_tried", "expected different numbers from 1 to the canaries"))
    for name in ("guesses", "epsilon_guesses", "mu_guesses"):
        if data[name] not in tried:
            problems.append((name, "is not among the numbers that were tried"))
    if problems:
        return
    lots = [hashlib.sha256(f"{data['seed']} {i}".encode()).digest() for i in range(m)]
    order = sorted(range(m), key=lambda i: (scores[i], lots[i]))
    right = {
        r: sum(coins[i] for i in order[m - r + r // 2 :])
        + sum(not coins[i] for i in order[: r // 2])
        for r in tried
    }
    if data["right"] != right[data["guesses"]]:
        problems.append(("right", f"the scores give {right[data['guesses']]}"))

    def found(r: int, points: list[tuple[Any, Any]]) -> Any:
        """Return the bound of one number of guesses, times how many were tried."""
        return (len(tried) * _bound(right[r], r, m, points)).min(arb(1))

    points = []
    for step in data["tested"]:
        eps, delta = map(ball, exact_point(step))
        points.append(_other_order(eps, delta) if step["reversed"] else (eps, delta))
    stated, level = data["p_value"], data["significance"]
    p_value = found(data["guesses"], points)
    if not p_value <= stated * (1 + SLACK):
        problems.append(("p_value", f"is at most {shown(p_value)} by this calculation"))
    if data["verdict"] != ("REFUTED" if stated <= level else "NOT_REFUTED"):
        problems.append(("verdict", "does not follow from p_value and significance"))
    bounded, mu = data["epsilon_lower_bound"], data["mu_lower_bound"]
    if bounded > 0:
        p_value = found(data["epsilon_guesses"], [(arb(bounded), arb(data["delta"]))])
        if not p_value <= level * (1 + SLACK):
            problems.append(("epsilon_lower_bound", f"is refuted only at {shown(p_value)}"))
    if mu > 0:
        law, points = {"law": "gaussian", "mu": Fraction(mu)}, []
        for step in data["mu_tested"]:
            at = exact_point(step)[0]
            if at < 0:
                problems.append(("mu_tested", "expected epsilon ≥ 0"))
                return
            least = settle(lambda at=at: [hockey_stick(law, at)])[0]  # type: ignore[misc]
            eps, least = ball(at), ball(least)
            if abs(least - ball(exact_point(step)[1])) > least * _SLACK_OF_MU:
                problems.append(("mu_tested", f"expected delta={shown(least)}"))
            points.append(_other_order(eps, least) if step["reversed"] else (eps, least))
        p_value = found(data["mu_guesses"], points)
        if not p_value <= level * (1 + _SLACK_OF_MU):
            problems.append(("mu_lower_bound", f"is refuted only at {shown(p_value)}"))


def _other_order(epsilon: Any, delta: Any) -> tuple[Any, Any]:
    """Return what (ε, δ)-DP says with the datasets exchanged, of the complement of an event."""
    return -epsilon, 1 - (-epsilon).exp() * (1 - delta)


def _bound(v: int, r: int, m: int, points: list[tuple[Any, Any]]) -> Any:
    """Return a bound of P(V ≥ v), from a point of the curve for j = v, v − 1, … of one alone."""
    if v <= 0:
        return arb(1)
    if len(points) > v:
        raise ValueError("more points than counts")
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
