"""Check a certificate of optimal integer noise, in fractions alone.

The law's divergence and cost are summed again, the tests are evaluated again, and the bounds of
E = e^ε are compared with a ball. No solver takes part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpassay.verifier.checker.optima.rationals import (
    best,
    encloses_exponential,
    gap_problems,
    number,
)
from dpassay.verifier.checker.outcome import Theorem


def integer_noise_theorem(data: Mapping[str, Any]) -> Theorem:
    """Say what a certificate without problems proves."""
    asked = data["given"]
    quantity = {
        "variance": "variance",
        "absolute": "mean absolute error",
        "error": "P(Z != 0)",
        "cost": "mean cost",
        "delta": "delta",
    }[asked["objective"]]
    if asked["objective"] == "cost":
        quantity += f" [{', '.join(asked['costs'])}] of |Z| = 1, 2, ..."
    power = f"epsilon = {asked['epsilon']}" if asked["ratio"] is None else f"E = {asked['ratio']}"
    limit = "" if asked["objective"] == "delta" else f", delta = {asked['delta']}"
    law = "law that falls with |z|" if asked["monotone"] else "law"
    if asked["error_free"] is not None:
        law += f" with P(Z = 0) = {asked['error_free']}"
    what = (
        f"the least {quantity} of a {law} on -{asked['support']}..{asked['support']} at "
        f"{power}{limit}, sensitivity {asked['sensitivity']},"
    )
    return best(what, data["optimum"])


def integer_noise_problems(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the fields of a certificate that are wrong, and what is wrong with them."""
    asked = data["given"]
    objective, shifts = asked["objective"], asked["sensitivity"]
    law = [number(mass) for mass in data["law"]]
    tests = [[number(entry) for entry in test] for test in data["tests"]]
    low, high = (number(bound) for bound in data["ratio"])
    lower, upper = (number(data["optimum"][end]) for end in ("lower", "upper"))
    largest = asked["support"]
    found = gap_problems("optimum", lower, upper)
    if (asked["delta"] is None) != (objective == "delta"):
        found.append(("given.delta", "does not fit the objective"))
    if (len(asked["costs"] or ()) != largest) if objective == "cost" else asked["costs"]:
        found.append(("given.costs", "do not fit the objective"))
    if not encloses_exponential(asked["epsilon"], asked["ratio"], low, high):
        found.append(("ratio", "does not enclose e^epsilon"))
    if len(law) != 2 * largest + 1 or min(law) < 0 or sum(law) != 1:
        found.append(("law", "is no law on -support..support"))
    fixed = None if asked["error_free"] is None else number(asked["error_free"])
    if fixed is not None and law[largest] != fixed:
        found.append(("law", "has another P(Z = 0)"))
    side = law[largest:]
    if asked["monotone"] and any(
        half[z] < half[z + 1] for half in (side, law[largest::-1]) for z in range(largest)
    ):
        found.append(("law", "does not fall with |z|"))
    divergence = max(
        max(_divergence(law, shift, low), _divergence(law[::-1], shift, low))
        for shift in range(1, shifts + 1)
    )
    costs = [_cost(asked, z) for z in range(-largest, largest + 1)]
    if objective == "delta":
        reached = divergence
    else:
        reached = sum((c * p for c, p in zip(costs, law, strict=True)), start=Fraction(0))
        if divergence > number(asked["delta"]):
            found.append(("law", "exceeds delta"))
    if reached > upper:
        found.append(("optimum.upper", f"the law attains only {float(reached):.17g}"))
    if len(tests) != shifts or any(len(t) != 2 * largest + 1 or min(t) < 0 for t in tests):
        return [*found, ("tests", "are not one list of numbers >= 0 for each shift")]
    steps = [number(step) for step in data["steps"]]
    if len(steps) != (largest if asked["monotone"] else 0) or any(step < 0 for step in steps):
        return [*found, ("steps", "are not one number >= 0 for each z that the law must fall at")]
    means = _means(costs, tests, high)
    proved = _bound(asked, means, tests, steps)
    if proved < lower:
        found.append(("optimum.lower", f"the tests prove only {float(proved):.17g}"))
    if data["exact"] is not None and not proved == reached == number(data["exact"]):
        found.append(("exact", "is not what both the law and the tests give"))
    return found


def _divergence(law: Sequence[Fraction], shift: int, ratio: Fraction) -> Fraction:
    """Return Σ max(0, p(z) − E p(z − shift))."""
    moved = [Fraction(0)] * shift + list(law)
    excess = (p - ratio * q for p, q in zip(law, moved, strict=False))
    return sum((entry for entry in excess if entry > 0), start=Fraction(0))


def _cost(asked: Mapping[str, Any], z: int) -> Fraction:
    if not z or asked["objective"] == "delta":
        return Fraction(0)
    if asked["objective"] == "cost":
        return number(asked["costs"][abs(z) - 1])
    return Fraction(abs(z) ** {"variance": 2, "absolute": 1, "error": 0}[asked["objective"]])


def _means(
    costs: Sequence[Fraction], tests: Sequence[Sequence[Fraction]], ratio: Fraction
) -> list[Fraction]:
    """Return (h(z) + h(−z))/2 for z = 0..D; see `dpassay.lp.integer_noise`."""
    size = len(costs)
    values = [
        cost
        + sum(
            test[i] - (ratio * test[i + shift] if i + shift < size else 0)
            for shift, test in enumerate(tests, start=1)
        )
        for i, cost in enumerate(costs)
    ]
    return [(values[i] + values[size - 1 - i]) / 2 for i in range(size // 2, size)]


def _bound(
    asked: Mapping[str, Any],
    means: list[Fraction],
    tests: Sequence[Sequence[Fraction]],
    steps: Sequence[Fraction],
) -> Fraction:
    """Return what the tests and steps prove; see `dpassay.lp.integer_noise` for the inequality."""
    for z, step in enumerate(steps):
        means[z] -= step / (2 if z else 1)
        means[z + 1] += step / 2
    centre, others = means[0], min(means[1:])
    fixed = None if asked["error_free"] is None else number(asked["error_free"])
    least = min(centre, others) if fixed is None else fixed * centre + (1 - fixed) * others
    total = sum((max(test) for test in tests), start=Fraction(0))
    if asked["objective"] == "delta":
        return max(least, Fraction(0)) / total
    return least - number(asked["delta"]) * total
