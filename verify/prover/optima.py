"""Certificates of `dpassay optimal`: the problem is the theorem, law and multipliers its hints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mpmath import mp

from dpassay.accountant.errors import UndecidedError

if TYPE_CHECKING:
    from dpassay.lp.count_noise import Solution
    from dpassay.lp.integer_noise import IntegerNoiseSolution
    from dpassay.lp.shapes import GaussianShape

_KEYS = {"from": "first", "to": "last"}
"""What a certificate calls the counts of a law."""
_WIDEST_GAP = Fraction(1, 10**6)
"""Relative: what may be further from the optimum is none."""
_DIGITS = 90
"""Digits of roots and eigenvalues, which are then proved with room."""
_ROOM = 70
"""Digits of that room: it is far above what 90 digits lose, and far below any claim."""


def count_noise(solution: Solution) -> dict[str, Any]:
    """Return the certificate of optimal count noise.

    Raises UndecidedError where the optimum is known too widely.
    """
    from dpassay.lp.count_noise import listed, written

    problem = solution.problem
    program, bound = solution.dual
    start = 0 if problem.max_count is None else problem.min_count
    laws = range(program.equalities // 2)
    first = problem.support + 1 if problem.max_count is None else problem.min_count
    flows = [
        {
            "count": comparison.first + first,
            "other": comparison.first + first + comparison.shift,
            "noise": z,
            "flow": written(value),
        }
        for (comparison, z), value in zip(
            program.flows, bound.multipliers[program.equalities :], strict=True
        )
        if value != 0
    ]

    def multipliers(which: int) -> dict[str, str]:
        values = {law + start: bound.multipliers[2 * law + which] for law in laws}
        return {str(count): written(value) for count, value in values.items() if value != 0}

    return _certificate(
        "count-noise",
        solution,
        solution.delta,
        {
            "eta": str(problem.eta),
            "support": problem.support,
            "min_count": problem.min_count,
            "max_count": problem.max_count,
            "objective": problem.objective,
        },
        {
            "ratio": [written(solution.ratio.lower), written(solution.ratio.upper)],
            "laws": [
                {_KEYS.get(key, key): value for key, value in law.items()}
                for law in listed(solution)
            ],
            "mass": multipliers(0),
            "mean": multipliers(1),
            "flows": flows,
        },
    )


def integer_noise(solution: IntegerNoiseSolution) -> dict[str, Any]:
    """Return the certificate of optimal integer noise."""
    problem = solution.problem
    texts = {name: getattr(problem, name) for name in ("delta", "error_free")}
    return _certificate(
        "integer-noise",
        solution,
        solution.value,
        {
            "objective": problem.objective,
            "support": problem.support,
            "sensitivity": problem.sensitivity,
            "costs": [str(cost) for cost in problem.costs or ()],
            "monotone": problem.monotone,
            **{name: None if value is None else str(value) for name, value in texts.items()},
        },
        {
            "law": [str(mass) for mass in solution.mechanism.probabilities],
            "ratio": [str(bound) for bound in solution.ratio],
            "tests": [[str(entry) for entry in test] for test in solution.tests],
            "steps": [str(step) for step in solution.steps],
        },
    )


def gaussian_shape(found: GaussianShape) -> dict[str, Any]:
    """Return the certificate of the best covariance for a space of differences."""
    weights = [Fraction(str(weight)) for weight in found.problem.weight_list()]
    inner = [Fraction(str(weight)) for weight in found.coordinate_weights]
    scales = [_root_below(weight) for weight in inner]
    vectors = [
        (Fraction(str(v.square)), [Fraction(str(x)) for x in v.entries]) for v in found.vertices
    ]
    law = [Fraction(str(mass)) for mass in found.law]
    shares = [str(x / weight) for x, weight in zip(inner, weights, strict=True)]
    return {
        "version": 2,
        "theorem": {
            "kind": "gaussian-shape",
            "verdict": "OPTIMAL",
            "space": repr(found.problem.space).replace("'", '"'),
            "objective": found.problem.objective,
            "weights": [str(weight) for weight in weights],
            **found.value.to_json(),
        },
        "lemmas": ["gaussian-space"],
        "witness": {
            "covariance": [[str(x) for x in row] for row in found.mechanism.covariance.matrix()],
            "vertices": [
                {"square": str(square), "entries": [*map(str, entries)]}
                for square, entries in vectors
            ],
            "law": [*map(str, law)],
            "shares": shares,
            "scales": [*map(str, scales)],
            "root": [[*map(str, row)] for row in _root(vectors, law, scales)],
        },
    }


def _root(
    vectors: Sequence[tuple[Fraction, list[Fraction]]],
    law: Sequence[Fraction],
    scales: Sequence[Fraction],
) -> list[list[Fraction]]:
    """Return a symmetric B with B² just below Σ w_v (Sv)(Sv)', S the scales."""
    size = len(scales)
    used = [i for i in range(size) if scales[i]]
    points = [
        (mass * square, [scales[i] * entries[i] for i in used])
        for (square, entries), mass in zip(vectors, law, strict=True)
    ]
    root = [[Fraction(0)] * size for _ in range(size)]
    with mp.workdps(_DIGITS):
        matrix = mp.matrix(len(used))
        for i in range(len(used)):
            for j in range(len(used)):
                exact = sum((w * v[i] * v[j] for w, v in points), Fraction(0))
                matrix[i, j] = mp.mpf(exact.numerator) / exact.denominator
        values, axes = mp.eigsy(matrix)
        room = mp.sqrt(max(values)) * mp.mpf(10) ** -_ROOM  # (A^{1/2} − cI)² is below A
        lengths = [mp.sqrt(max(value, mp.mpf(0))) - room for value in values]
        for i, row in enumerate(used):
            for j, column in enumerate(used[: i + 1]):
                entry = mp.fsum(axes[i, k] * lengths[k] * axes[j, k] for k in range(len(used)))
                root[row][column] = root[column][row] = _rational(entry)
    return root


def _root_below(value: Fraction) -> Fraction:
    """Return a rational number whose square is at most the value, and near it."""
    scale = 10 ** (2 * _DIGITS)
    root = math.isqrt(value.numerator * value.denominator * scale * scale)
    return Fraction(root, value.denominator * scale)


def _rational(value: Any) -> Fraction:
    mantissa, exponent = abs(value).man_exp
    return Fraction(int(mp.sign(value)) * int(mantissa)) * Fraction(2) ** int(exponent)


def _certificate(
    kind: str,
    solution: Solution | IntegerNoiseSolution,
    value: Any,
    asked: Mapping[str, Any],
    witness: Mapping[str, Any],
) -> dict[str, Any]:
    exact = solution.exact
    ends = value.to_json() if exact is None else {"lower": str(exact), "upper": str(exact)}
    lower, upper = (Fraction(ends[end]) for end in ("lower", "upper"))
    if upper - lower > _WIDEST_GAP * upper:
        raise UndecidedError(
            f"The optimum is only known to be in {value}: too wide for a certificate."
        )
    problem = solution.problem
    power = {name: getattr(problem, name) for name in ("epsilon", "ratio")}
    texts = {name: None if entry is None else str(entry) for name, entry in power.items()}
    theorem = {"kind": kind, "verdict": "OPTIMAL", **ends, **texts, **asked}
    return {"version": 2, "theorem": theorem, "lemmas": [], "witness": dict(witness)}
