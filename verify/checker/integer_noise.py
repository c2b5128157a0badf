"""Check a certificate of optimal integer noise, in fractions alone.

The law's divergence and cost are summed again, the tests are evaluated again, and the bounds of
E = e^ε are compared with an interval of mpmath. No solver and no ball arithmetic takes part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from mpmath import iv

_BITS = 2000


def integer_noise_problems(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the fields that are wrong and what is wrong with them; [] if the proof is valid.

    The certificate is what `dpassay optimal integer-noise --certificate` writes.
    """
    try:
        return _problems(data)
    except (KeyError, TypeError, ValueError, ZeroDivisionError, IndexError) as error:
        return [("certificate", f"not of the expected form: {type(error).__name__} {error}")]


def _problems(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    asked = data["given"]
    objective, shifts = asked["objective"], int(asked["sensitivity"])
    law = [Fraction(mass) for mass in data["law"]]
    tests = [[Fraction(entry) for entry in test] for test in data["tests"]]
    low, high = (Fraction(bound) for bound in data["ratio"])
    lower, upper = (Fraction(Decimal(data["optimum"][end])) for end in ("lower", "upper"))
    largest = int(asked["support"])
    found = []
    if not _encloses(asked, low, high):
        found.append(("ratio", "does not enclose e^epsilon"))
    if len(law) != 2 * largest + 1 or min(law) < 0 or sum(law) != 1:
        found.append(("law", "is no law on -support..support"))
    fixed = None if asked["error_free"] is None else Fraction(asked["error_free"])
    if fixed is not None and law[largest] != fixed:
        found.append(("law", "has another P(Z = 0)"))
    divergence = max(
        max(_divergence(law, shift, low), _divergence(law[::-1], shift, low))
        for shift in range(1, shifts + 1)
    )
    costs = [_cost(asked, z) for z in range(-largest, largest + 1)]
    if objective == "delta":
        reached = divergence
    else:
        reached = sum((c * p for c, p in zip(costs, law, strict=True)), start=Fraction(0))
        if divergence > Fraction(asked["delta"]):
            found.append(("law", "exceeds delta"))
    if reached > upper:
        found.append(("optimum.upper", f"the law attains only {float(reached):.17g}"))
    if len(tests) != shifts or any(len(t) != 2 * largest + 1 or min(t) < 0 for t in tests):
        return [*found, ("tests", "are not one list of numbers >= 0 for each shift")]
    proved = _bound(asked, costs, tests, high, fixed)
    if proved < lower:
        found.append(("optimum.lower", f"the tests prove only {float(proved):.17g}"))
    return found


def _encloses(asked: Mapping[str, Any], low: Fraction, high: Fraction) -> bool:
    if asked["ratio"] is not None:
        return low <= Fraction(asked["ratio"]) <= high
    text = str(asked["epsilon"])
    root = text.startswith("sqrt(")
    value = Fraction(text[5:-1] if root else text)
    before = iv.prec
    try:
        iv.prec = _BITS
        epsilon = iv.mpf(value.numerator) / value.denominator
        power = iv.exp(iv.sqrt(epsilon) if root else epsilon)
        below = iv.mpf(low.numerator) / low.denominator
        above = iv.mpf(high.numerator) / high.denominator
        return value == 0 if low == high == 1 else bool(below < power < above)
    finally:
        iv.prec = before


def _divergence(law: Sequence[Fraction], shift: int, ratio: Fraction) -> Fraction:
    """Return Σ max(0, p(z) − E p(z − shift))."""
    moved = [Fraction(0)] * shift + list(law)
    excess = (p - ratio * q for p, q in zip(law, moved, strict=False))
    return sum((entry for entry in excess if entry > 0), start=Fraction(0))


def _cost(asked: Mapping[str, Any], z: int) -> Fraction:
    if not z or asked["objective"] == "delta":
        return Fraction(0)
    if asked["objective"] == "cost":
        return Fraction(asked["costs"][abs(z) - 1])
    return Fraction(abs(z) ** {"variance": 2, "absolute": 1, "error": 0}[asked["objective"]])


def _bound(
    asked: Mapping[str, Any],
    costs: Sequence[Fraction],
    tests: Sequence[Sequence[Fraction]],
    ratio: Fraction,
    fixed: Fraction | None,
) -> Fraction:
    """Return what the tests prove; see `lp.integer_noise` for the inequality."""
    size = len(costs)
    values = [
        cost
        + sum(
            test[i] - (ratio * test[i + shift] if i + shift < size else 0)
            for shift, test in enumerate(tests, start=1)
        )
        for i, cost in enumerate(costs)
    ]
    means = [(a + b) / 2 for a, b in zip(values, reversed(values), strict=True)]
    centre, others = means[size // 2], min(means[: size // 2])
    least = min(centre, others) if fixed is None else fixed * centre + (1 - fixed) * others
    total = sum((max(test) for test in tests), start=Fraction(0))
    if asked["objective"] == "delta":
        return max(least, Fraction(0)) / total
    return least - Fraction(asked["delta"]) * total
