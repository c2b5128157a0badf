"""Proposition 2 of Sadeghi, Asoodeh and Calmon as printed, for any solver of cvxpy.

This direct model is a reference for the certified solver. For each count n in 1..N the noise is a
mixture, eq. (3), of the two-point laws of Proposition 1 with weights α_{i1,i2,n}; the program (9)
to (13) is

    minimise δ   subject to   α ≥ 0,  Σ_{i1,i2} α_{i1,i2,n} = 1,
                              P(Y = y | n) ≤ E·P(Y = y | n ± 1) + δ   for all y in 0..N + D.

A two-point law, for i1 in −min(n, D)..−1 and i2 in 1..D, is by eq. (2)

    P(Z = i1) = (1 − η) i2/(i2 − i1),   P(Z = 0) = η,   P(Z = i2) = −(1 − η) i1/(i2 − i1).

With one law for all counts n ≥ D, it is Proposition 3 with the variables α_1, …, α_D:
p(±j) = α_j (1 − η)/2, Σ α_j = 1, and p(z) ≤ E·p(z ± 1) + δ for all z.

The result has the accuracy of a floating-point solver, an absolute error of about 1e-8, which
exceeds δ itself at the sizes of the paper. `dpassay.lp.count_noise` returns the proved optimum and
its weights.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from dpassay.accountant.core.validate import Description
from dpassay.accountant.errors import expected
from dpassay.lp.problem import CountNoiseProblem
from dpassay.lp.solve import SolverError, require_solver, stdout_closed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DEFAULT_SOLVER = "CLARABEL"
"""The default solver, which is installed with cvxpy."""
_MOST_VARIABLES = 1_000_000
"""Maximal number of weights α; this model is a reference and not built for speed."""


@final
@dataclass(frozen=True, repr=False)
class ReferenceModel(Description):
    """The program of Proposition 2 in cvxpy.

    Parameters
    ----------
    problem
        The problem, with min_count 1. Without max_count it is the program of Proposition 3.
    """

    problem: CountNoiseProblem

    def __post_init__(self) -> None:
        count = self.problem.max_count
        if count is None:
            return
        if self.problem.min_count != 1:
            raise expected(
                "min_count", self.problem.min_count, "to be 1", "The model starts there."
            )
        size = count * self.problem.support**2
        if size > _MOST_VARIABLES:
            raise expected(
                "max_count",
                count,
                f"to give at most {_MOST_VARIABLES} weights",
                f"It gives about {size}. optimal_count_noise does not use these weights.",
            )

    def build(self) -> Model:
        """Return the program in cvxpy."""
        import cvxpy as cp

        problem, count = self.problem, self.problem.max_count
        if count is None:
            return self._one_law()
        ratio, delta = ratio_of(problem), cp.Variable(nonneg=True)
        laws: list[Any] = []  # for each n the vector P(Y = y | n), y = 0..N + D
        alphas: list[Any] = []
        constraints: list[Any] = []
        for n in range(1, count + 1):
            matrix = mixtures(problem, n, count)
            weights = cp.Variable(matrix.shape[1], nonneg=True)
            constraints.append(cp.sum(weights) == 1)
            laws.append(matrix @ weights)
            alphas.append(weights)
        for own, other in itertools.pairwise(laws):
            constraints += [own <= ratio * other + delta, other <= ratio * own + delta]
        return Model(cp.Problem(cp.Minimize(delta), constraints), tuple(laws), tuple(alphas))

    def _one_law(self) -> Model:
        """Return the program of Proposition 3."""
        import cvxpy as cp

        ratio, eta = ratio_of(self.problem), float(self.problem.eta)
        delta, alpha = cp.Variable(nonneg=True), cp.Variable(self.problem.support, nonneg=True)
        law = cp.hstack([0, alpha[::-1] * (1 - eta) / 2, eta, alpha * (1 - eta) / 2, 0])
        constraints = [cp.sum(alpha) == 1]
        for own, other in ((law[1:], law[:-1]), (law[:-1], law[1:])):
            constraints.append(own <= ratio * other + delta)
        return Model(cp.Problem(cp.Minimize(delta), constraints), (law,), (alpha,))


@final
@dataclass(frozen=True)
class Model:
    """A cvxpy problem, with the expressions of its laws P(Y = y | n), n = 1, 2, …"""

    program: Any
    laws: tuple[Any, ...]
    alphas: tuple[Any, ...] = ()
    """The variables α of each count, in the order of `two_point_pairs`; or α_1, …, α_D."""

    def solve(self, solver: str = "HIGHS", **options: Any) -> float:
        """Solve the program in floating point and return δ.

        Parameters
        ----------
        solver
            A solver known to cvxpy: "HIGHS", "CLARABEL", "SCS", "OSQP", …
        options
            Options of the solver.

        Raises
        ------
        InvalidInputError
            If the solver is not installed; the message lists those that are.
        SolverError
            If it stops without an optimum.
        """
        import cvxpy as cp

        require_solver(solver, through_cvxpy=True)
        try:
            with stdout_closed():  # HiGHS prints a banner before cvxpy can silence it
                value = self.program.solve(solver=solver, **options)
        except cp.SolverError as error:
            raise SolverError(f"{solver} stopped: {error}") from error
        if self.program.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
            raise SolverError(f"{solver} stopped with status {self.program.status!r}.")
        return float(value)


@final
@dataclass(frozen=True)
class SolverAnswer:
    """The floating-point solution of the program as printed; it is not proved.

    Parameters
    ----------
    solver
        The solver that cvxpy called.
    delta
        The δ of single outcomes.
    alphas
        Maps a count n to {(i1, i2): α_{i1,i2,n}}, if each count has its own law.
    alpha_star
        α_1, …, α_D, if one law serves all counts n ≥ D.
    delta_off, alpha_off
        The absolute error of δ, and the largest one of the α's, compared with the proved solution
        of `optimal_count_noise`. The α's can differ although δ agrees, if several laws are optimal.
    """

    solver: str
    delta: float
    alphas: Mapping[int, Mapping[tuple[int, int], float]]
    alpha_star: tuple[float, ...] | None
    delta_off: float = 0.0
    alpha_off: float = 0.0


def answer_of(problem: CountNoiseProblem, solver: str) -> SolverAnswer:
    """Solve the program as printed; `solver` is "cvxpy" or "cvxpy:NAME".

    Raises
    ------
    InvalidInputError
        If `solver` has another form or is not installed, or the objective is not "singular".
    SolverError
        If the solver stops without an optimum.
    """
    route, _, name = solver.partition(":")
    if route != "cvxpy" or (":" in solver and not name):
        raise expected("solver", solver, "to be cvxpy or cvxpy:NAME", "Write cvxpy:CLARABEL.")
    if problem.objective != "singular":
        raise expected(
            "objective", problem.objective, "to be singular", "cvxpy solves Proposition 2."
        )
    model = ReferenceModel(problem).build()
    used = name.upper() or _DEFAULT_SOLVER
    delta = model.solve(used)
    weights = [[float(x) for x in alpha.value] for alpha in model.alphas]
    if problem.max_count is None:
        return SolverAnswer(used, delta, {}, tuple(weights[0]))
    pairs = {n: two_point_pairs(n, problem.support) for n in range(1, len(weights) + 1)}
    alphas = {n: dict(zip(pairs[n], each, strict=True)) for n, each in enumerate(weights, start=1)}
    return SolverAnswer(used, delta, alphas, None)


def ratio_of(problem: CountNoiseProblem) -> float:
    """Return E as a float."""
    if problem.ratio is not None:
        return float(problem.ratio)
    return math.exp(float(problem.epsilon or 0))


def mixtures(problem: CountNoiseProblem, count: int, largest: int) -> NDArray[np.float64]:
    """Return the matrix whose columns are the laws of Y = n + Z for the two-point laws of Z."""
    import numpy as np

    pairs = two_point_pairs(count, problem.support)
    matrix = np.zeros((largest + problem.support + 1, len(pairs)))
    for column, pair in enumerate(pairs):
        for value, probability in two_point_law(problem.eta, *pair).items():
            matrix[count + value, column] = float(probability)
    return matrix


def two_point_pairs(count: int, support: int) -> list[tuple[int, int]]:
    """Return the pairs (i1, i2) of Proposition 1: min(n, D)·D of them."""
    lowest = -min(count, support)
    return [(i1, i2) for i1 in range(lowest, 0) for i2 in range(1, support + 1)]


def two_point_law(eta: Fraction, i1: int, i2: int) -> dict[int, Fraction]:
    """Return P(Z = i1), P(Z = 0), P(Z = i2)."""
    width = i2 - i1
    return {i1: (1 - eta) * i2 / width, 0: eta, i2: (1 - eta) * -i1 / width}
