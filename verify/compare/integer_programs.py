"""The least integer noise for one count, by linear programs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from dpassay.accountant.errors import InvalidInputError, NotApplicableError
from dpassay.accountant.geometry.workload import Count
from dpassay.accountant.numbers.exact import ExactReal
from dpassay.verifier.compare.budget import Budget
from dpassay.verifier.compare.candidate import Calibrated, Candidate, Layout, LeftOut
from dpassay.verifier.rules import LONGEST

_SUPPORTS = 4
"""Doublings of a support: longer laws gain nothing, or take too long."""


def integer_programs(workload: Count, budget: Budget) -> Iterator[Candidate | LeftOut]:
    """Yield the integer laws of least error, or why there are none."""
    names = {
        "variance": "optimal integer noise",
        "absolute": "optimal integer noise, for E|Z|",
        "error": "optimal integer noise, for P(Z = 0)",
    }
    spent = budget.epsilon_delta
    why_not = ""
    if spent is None or spent.delta.sign == 0 or spent.delta.rational is None:
        why_not = "the linear program is about (epsilon, delta)-DP with a rational delta > 0"
    elif budget.total_releases > 1 or budget.is_sampled:
        why_not = "the linear program is about one release; composition is not linear in the law"
    elif spent.epsilon.sign < 0:
        why_not = "the linear program is about epsilon >= 0"
    for objective, name in names.items():
        if why_not:
            yield LeftOut(name, why_not)
        else:
            yield Candidate(
                name,
                f"the integer law of least {_COSTS[objective]}, by a linear program with a "
                "certificate",
                partial(_integer_noise, objective=objective, sensitivity=workload.sensitivity),
            )


_COSTS = {"variance": "variance", "absolute": "mean absolute error", "error": "P(Z ≠ 0)"}


def _integer_noise(budget: Budget, *, objective: str, sensitivity: int) -> Calibrated:
    """Solve the linear program on supports that double until a longer one gains nothing."""
    from dpassay.lp.integer_noise import IntegerNoiseProblem, optimal_integer_noise

    spent = budget.epsilon_delta
    assert spent is not None
    support = _first_support(spent.epsilon, spent.delta, sensitivity)
    for _ in range(_SUPPORTS):
        try:
            problem = IntegerNoiseProblem(
                objective=objective,
                support=support,
                epsilon=spent.epsilon,
                delta=spent.delta.rational,
                sensitivity=sensitivity,
            )
        except InvalidInputError as error:
            raise NotApplicableError(f"Its linear program is too large here: {error}") from error
        solution = optimal_integer_noise(problem)
        if len(repr(solution.mechanism)) > LONGEST:
            raise NotApplicableError(
                "Its law is too large for a claim: its probabilities, as exact fractions, have "
                f"more than {LONGEST} characters."
            )
        if solution.every_support:
            break
        support *= 2
    bounded = objective == "variance"
    return Calibrated(
        solution.mechanism,
        budget.whole(solution.mechanism),
        Layout.EACH,
        bound=solution.value if bounded else None,
        bound_for=(
            "integer noise"
            if solution.every_support
            else f"integer noise of support at most {solution.problem.support}"
        ),
    )


def _first_support(epsilon: ExactReal, delta: ExactReal, sensitivity: int) -> int:
    """Return about where a geometric law has fallen to δ."""
    size = max(float(epsilon), 1e-3)
    return max(2, math.ceil(sensitivity * (1.2 + math.log(1 / float(delta)) / size)))
