"""From the basis that floats find to the optimal one: corrections by the same solver, magnified.

Iterative refinement of linear programs (Gleixner, Steffy and Wolter, 2016), from basic solutions:
the solution of a basis is computed over balls; what it violates is magnified by powers of two and
put in the place of bounds and costs; the solver, warm from this basis, then finds a better one.
Costs come first, with the violated bounds moved out to where the point is; then the true bounds.
Where floats stay far from the optimum `dpassay.lp.pivot` finishes. The answer is still a guess;
`dpassay.lp.certificate` makes bounds of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flint import arb

from dpassay.accountant.errors import UndecidedError
from dpassay.lp.elimination import basic_solution
from dpassay.lp.pivot import Limits, Optimal, finished
from dpassay.lp.problem import Value
from dpassay.lp.program import Evaluated
from dpassay.lp.solve import Basis, Highs, InfeasibleError, SolverError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PATIENCE = 5
"""Corrections without a gain before the best basis is taken; most programs need two in all."""
_LESS = 4
"""log₂ of how much less is magnified after each of them: the solver failed at more."""


def optimal_basis(
    program: Evaluated, solver: Highs, basis: Basis, bits: int, *, visible: int | None = None
) -> Optimal:
    """Return a basis no value and no reduced cost of which is below −2^−bits in the scaling.

    With `visible`, those that are above −2^−visible in the unit of the objective stay: the
    optimum does not show them. Where the solver gains no more, `dpassay.lp.pivot` goes on.

    Raises UndecidedError where the first basis is not seen to be regular.
    """
    import numpy as np

    form, free, fixed = solver.form, solver.inequalities, solver.equalities
    columns, unit = np.array(form.column_exponents), form.cost_exponent
    rows = np.array(form.row_exponents)
    scales = np.concatenate([columns, rows[free]])  # of the variables: columns, then slacks
    finest = np.full(len(scales), -bits)
    low, cheap = finest, finest
    if visible is not None:
        low, cheap = unit - scales - visible, scales - visible
    found = best = Optimal(basis, *basic_solution(program, *basis))
    least, stalled, gain = math.inf, 0, 0
    while True:
        loose = np.ones(len(rows), dtype=bool)
        loose[found.basis.tight] = False
        slacks = np.where(loose, _floats(program.slacks(found.point), -rows), 0)
        values = np.concatenate([_floats(found.point, -columns), slacks[free]])
        costs = np.concatenate(
            [
                _floats(program.reduced_costs(found.multipliers), columns - unit),
                _floats(found.multipliers, rows - unit)[free],
            ]
        )
        basic = np.isin(np.arange(len(scales)), found.basis.columns)
        basic[len(columns) :] = loose[free]
        costs[basic] = 0
        wrong = max(_size(-values, low), _size(abs(slacks[fixed]), finest[: len(fixed)]))
        dear = _size(-costs, cheap)
        if max(wrong, dear) < least:
            best, least, stalled = found, max(wrong, dear), 0
        else:
            stalled += 1
        if least == -math.inf:
            return best
        if stalled == _PATIENCE:
            break
        if dear > -math.inf:
            gain = max(gain, -int(dear)) - _LESS * stalled
            lower, sides = np.minimum(-values, 0), np.zeros(len(fixed))
        else:
            lower, sides = (_magnified(-each, -int(wrong)) for each in (values, slacks[fixed]))
        try:
            basis = solver.correct(lower, sides, _magnified(costs, gain))
            found = Optimal(basis, *basic_solution(program, *basis))
        except (SolverError, InfeasibleError, UndecidedError):
            break
    return finished(program, form, best, Limits(low.tolist(), cheap.tolist(), -bits))


def _floats(values: Sequence[Value], exponents: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the values times powers of two."""
    import numpy as np

    return _magnified(np.array([float(arb(value).mid()) for value in values]), exponents)


def _magnified(
    values: NDArray[np.float64], exponents: NDArray[np.int64] | int
) -> NDArray[np.float64]:
    import numpy as np

    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(values, exponents)


def _size(violations: NDArray[np.float64], limits: NDArray[np.int64]) -> float:
    """Return log₂ of the largest violation beyond its limit, rounded up; −∞ if there is none."""
    import numpy as np

    sizes = np.frexp(violations)[1]
    return float(max(sizes[(violations > 0) & (sizes > limits)], default=-math.inf))
