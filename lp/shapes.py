"""Gaussian noise of the best shape for a sensitivity space, with proof.

With X = Σ⁻¹ the program is min tr(W X⁻¹) subject to v'Xv ≤ 1: convex, with one linear constraint
for each vertex, which cvxpy solves in floating point. What it says is then proved:

* Upper bound. The covariance is rounded to rationals and scaled by the exact largest v'Σ⁻¹v, so
  that μ is exactly 1.
* Lower bound. For any law w on the vertices and M = Σ w_v vv', tr(Σ⁻¹M) ≤ 1, so by Cauchy and
  Schwarz tr(WΣ) ≥ (tr (W^{1/2} M W^{1/2})^{1/2})², the square of the sum of the roots of the
  eigenvalues of MW: those of an exact characteristic polynomial, isolated in balls. The largest
  weighted variance is at least Σ_i q_i weight_i Σ_ii for any law q on the coordinates, so its
  bound is one for other weights.

At the optimum for W = 1, Σ is M^{1/2} tr M^{1/2}, and v'M^{−1/2}v = tr M^{1/2} wherever w_v > 0.
Newton's method on these equations narrows the bounds beyond the solver's accuracy.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final

from flint import arb

from dpassay.accountant.errors import UndecidedError, require_type
from dpassay.accountant.geometry.ellipse import Covariance, Isotropic, Matrix
from dpassay.accountant.geometry.spaces import L2Ball
from dpassay.accountant.mechanisms.shapes.general_gaussian import GeneralGaussian
from dpassay.accountant.numbers.exact import flint_matrix
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.lp.shape_problem import GaussianShapeProblem, Vertex, vertices
from dpassay.lp.solve import SolverError, require_solver

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DIGITS = 17
"""Digits of a float as a rational number."""
_ACTIVE = 1e-6
"""Share of the largest weight from which on a point carries the solution."""
_STEPS = 12
"""Fixed-point steps on the points that do: they settle, or the guess is kept."""
_ROOM = Fraction(1, 10**30)
"""The lower end stays so far below the bound that a rational matrix root proves it, too."""


@final
@dataclass(frozen=True)
class GaussianShape:
    """The optimum, the mechanism that attains it, and what proves it.

    Parameters
    ----------
    problem
        What was asked.
    value
        An enclosure of the optimum; the upper end belongs to the mechanism.
    mechanism
        N(0, Σ) for the space, with μ = 1 exactly.
    vertices, law
        The differences with w_v > 0, and w, of sum 1.
    coordinate_weights
        The diagonal of W in the lower bound.
    seconds
        Running time.
    """

    problem: GaussianShapeProblem
    value: Interval
    mechanism: GeneralGaussian
    vertices: tuple[Vertex, ...]
    law: tuple[Fraction, ...]
    coordinate_weights: tuple[Fraction, ...]
    seconds: float


def optimal_gaussian_shape(
    problem: GaussianShapeProblem, *, solver: str = "CLARABEL"
) -> GaussianShape:
    """Solve a problem and prove the optimum.

    Parameters
    ----------
    solver
        The semidefinite solver that cvxpy calls.

    Raises
    ------
    InvalidInputError
        If the solver is not installed.
    SolverError
        If it stops without an answer.
    """
    import numpy as np

    require_type("problem", problem, GaussianShapeProblem)
    started = time.perf_counter()
    require_solver(solver)
    found = vertices(problem.space)
    points = np.array(
        [[float(e) * float(v.square) ** 0.5 for e in v.entries] for v in found], dtype=float
    )
    units = np.abs(points).max(axis=0)  # the solver sees coordinates of size 1
    points = points / units
    weights = np.array([float(weight) for weight in problem.weight_list()]) * units**2
    weights = weights / weights.max()
    covariance, law, parts = _guess(problem.objective, points, weights, solver)
    if problem.objective == "total":
        covariance, law = _polished(points, weights, covariance, law)
    mechanism, highest = _repaired(problem, covariance * np.outer(units, units))
    kept = [index for index, mass in enumerate(law.tolist()) if mass > 0]
    chosen = tuple(found[index] for index in kept)
    masses = _law([float(law[index]) for index in kept])
    if problem.objective == "total":
        exact_inner = problem.weight_list()
    else:
        shares = _law(parts.tolist())
        exact_inner = tuple(
            share * weight for share, weight in zip(shares, problem.weight_list(), strict=True)
        )
    proved = Fraction(shape_bound(chosen, masses, exact_inner).lower)
    lowest = Interval.of_exact(proved * (1 - _ROOM))
    upper = Interval.of_exact(highest).upper
    if lowest.lower > upper:
        raise UndecidedError(f"The bounds contradict each other: {lowest} and {upper}.")
    return GaussianShape(
        problem,
        Interval(lowest.lower, upper),
        mechanism,
        chosen,
        masses,
        exact_inner,
        time.perf_counter() - started,
    )


def shape_bound(
    found: Sequence[Vertex], law: Sequence[Fraction], weights: Sequence[Fraction]
) -> Interval:
    """Enclose (tr (W^{1/2} M W^{1/2})^{1/2})², which no tr(WΣ) is below.

    Parameters
    ----------
    found, law
        Vertices and their probabilities, of sum at most 1.
    weights
        The diagonal of W, ≥ 0.
    """
    size = len(weights)
    rows = [[Fraction(0)] * size for _ in range(size)]
    for vertex, mass in zip(found, law, strict=True):
        factor = mass * vertex.square
        for i, left in enumerate(vertex.entries):
            if left:
                for j, right in enumerate(vertex.entries):
                    rows[i][j] += factor * left * right * weights[j]
    polynomial = flint_matrix(tuple(map(tuple, rows))).charpoly()
    whole: Any = polynomial.numer()

    def square_of_trace() -> arb:
        total = arb(0)
        for root, multiplicity in whole.complex_roots():
            total += root.real.max(arb(0)).sqrt() * int(multiplicity)
        return total * total

    return enclose(square_of_trace, relative_width=Fraction(1, 10**25))


def _guess(
    objective: str, points: NDArray[np.float64], weights: NDArray[np.float64], solver: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return Σ, a law on the vertices, and a factor for each weight in the lower bound."""
    import cvxpy as cp
    import numpy as np

    size = points.shape[1]
    precision = cp.Variable((size, size), PSD=True)
    products = np.einsum("ni,nj->nij", points, points).reshape(len(points), -1)
    private = products @ cp.vec(precision, order="C") <= 1
    roots = np.diag(np.sqrt(weights))
    if objective == "total":
        program = cp.Problem(cp.Minimize(cp.matrix_frac(roots, precision)), [private])
        limits = []
    else:
        largest = cp.Variable()
        limits = [cp.matrix_frac(roots[i], precision) <= largest for i in range(size)]
        program = cp.Problem(cp.Minimize(largest), [private, *limits])
    try:
        program.solve(solver=solver)
    except cp.SolverError as error:
        raise SolverError(f"{solver} stopped without an answer: {error}") from error
    if precision.value is None or private.dual_value is None:
        raise SolverError(f"{solver} stopped with {program.status!r}.")
    law = np.maximum(np.array(private.dual_value, dtype=float), 0.0)
    if not law.sum() > 0:
        raise SolverError(f"{solver} returned no multipliers. Choose another solver.")
    parts = np.array([np.maximum(float(limit.dual_value), 0.0) for limit in limits])
    covariance = np.linalg.inv(precision.value)
    return covariance, law / law.sum(), parts / parts.sum() if limits else np.ones(size)


def _polished(
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    covariance: NDArray[np.float64],
    law: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Solve v'M^{−1/2}v = tr M^{1/2} on the active vertices; see the module.

    Where that does not reduce the largest v'Σ⁻¹v for the same trace, keep the guess.
    """
    import numpy as np

    roots = np.sqrt(weights)
    scaled = points * roots
    active = np.flatnonzero(law > _ACTIVE * law.max())
    vectors, masses = scaled[active], law[active]
    best = _price(covariance, points, weights), covariance, law
    for _ in range(_STEPS):
        values, axes = np.linalg.eigh((vectors.T * masses) @ vectors)
        if values[0] <= 0:
            break
        root = np.sqrt(values)
        shape = root.sum() * (axes * root) @ axes.T / np.outer(roots, roots)
        full = np.zeros(len(points))
        full[active] = masses / masses.sum()
        best = min(best, (_price(shape, points, weights), shape, full), key=lambda entry: entry[0])
        along = vectors @ axes
        slope = -1 / (np.outer(root, root) * np.add.outer(root, root))
        norms = (along**2 / root).sum(axis=1)
        outer = np.einsum("nk,nl->nkl", along, along).reshape(len(active), -1)
        jacobian = (outer * slope.ravel()) @ outer.T - norms / 2
        step = np.linalg.lstsq(jacobian, root.sum() - norms, rcond=1e-12)[0]
        masses = np.maximum(masses + step, 0.0)
    return best[1], best[2]


def _price(
    covariance: NDArray[np.float64], points: NDArray[np.float64], weights: NDArray[np.float64]
) -> float:
    """Return tr(WΣ) after scaling to μ = 1."""
    import numpy as np

    largest = np.einsum("ni,ni->n", points, np.linalg.solve(covariance, points.T).T).max()
    return float(largest * (weights * covariance.diagonal()).sum())


def _repaired(
    problem: GaussianShapeProblem, guess: NDArray[np.float64]
) -> tuple[GeneralGaussian, Fraction]:
    """Round Σ, scale it to μ = 1 exactly, and return the mechanism and its objective."""
    size = len(guess)
    rounded = [
        [_rounded(float(guess[max(i, j)][min(i, j)])) for j in range(size)] for i in range(size)
    ]
    norm = problem.space.largest_norm(Matrix(rounded)).exact
    covariance: Covariance
    if isinstance(problem.space, L2Ball):  # all directions are alike
        covariance = Isotropic(size, problem.space.radius.square)
    elif norm is None:
        raise UndecidedError("The largest norm over the space is not known exactly.")
    else:
        covariance = Matrix([[entry * norm.square for entry in row] for row in rounded])
    mechanism = GeneralGaussian(covariance, problem.space)
    terms: list[Fraction] = [
        weight * row[i]
        for i, (weight, row) in enumerate(
            zip(problem.weight_list(), covariance.matrix(), strict=True)
        )
    ]
    return mechanism, sum(terms, start=Fraction(0)) if problem.objective == "total" else max(terms)


def _rounded(value: float) -> Fraction:
    return Fraction(f"{value:.{_DIGITS - 1}e}")


def _law(masses: Sequence[float]) -> tuple[Fraction, ...]:
    """Return rational probabilities of sum exactly 1, near to the given ones."""
    exact = [_rounded(mass) for mass in masses]
    total = sum(exact, start=Fraction(0))
    return tuple(mass / total for mass in exact)
