"""The Gaussian covariance of least variance for a sensitivity space, with certified optimum.

With X = Σ⁻¹ the program is to minimise tr(W X⁻¹) subject to v'Xv ≤ 1 for each vertex v of the
space. It is convex with linear constraints. cvxpy solves it in floating point, and the result is
proved:

* Upper bound. The covariance is rounded to rationals and scaled by the exact maximum of v'Σ⁻¹v, so
  that μ = 1 exactly.
* Lower bound. For any probabilities w on the vertices and M = Σ_v w_v vv', feasibility implies
  tr(Σ⁻¹M) ≤ 1. By the Cauchy-Schwarz inequality tr(WΣ) ≥ (tr (W^{1/2} M W^{1/2})^{1/2})², the
  square of the sum of the square roots of the eigenvalues of MW. They are the roots of an exact
  characteristic polynomial, isolated in balls. The largest weighted variance is at least
  Σ_i q_i weight_i Σ_ii for any probabilities q on the coordinates, which reduces it to the first
  case with other weights.

For W = 1 the optimum satisfies Σ = M^{1/2} tr M^{1/2}, and v'M^{−1/2}v = tr M^{1/2} for all v with
w_v > 0. Newton's method on these equations makes the bounds narrower than the solver's accuracy.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, final

from flint import arb, fmpq, fmpq_mat

from dpassay.accountant.core.validate import Description, Instance, OneOf, OptionalRationals
from dpassay.accountant.errors import (
    InvalidInputError,
    NotApplicableError,
    UndecidedError,
    expected,
    require_type,
)
from dpassay.accountant.geometry.ellipse import Covariance, Isotropic, Matrix
from dpassay.accountant.geometry.spaces import (
    Box,
    DisjointGroups,
    FiniteSet,
    L2Ball,
    Space,
    SparseBox,
    common_root,
    space_field,
)
from dpassay.accountant.mechanisms.shapes.general_gaussian import GeneralGaussian
from dpassay.accountant.numbers.exact import flint_matrix, vertex_count
from dpassay.accountant.numbers.interval import Interval, enclose
from dpassay.lp.solve import SolverError, require_solver

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_VERTICES = 4096
"""Maximal number of vertices of a sensitivity space."""


class Vertex(NamedTuple):
    """The vector √square·entries. Only its outer product is used, which is rational."""

    square: Fraction
    entries: tuple[Fraction, ...]


@final
@dataclass(frozen=True, repr=False)
class GaussianShapeProblem(Description):
    """The problem to find the Σ of least variance with v'Σ⁻¹v ≤ 1 for all v in a space.

    Noise N(0, Σ) is then 1-GDP; for μ-GDP the optimum is Σ/μ².

    Parameters
    ----------
    space
        The sensitivity space, which must span all coordinates: a `Box`, `SparseBox`, `L2Ball` or
        `FiniteSet` (equivalent to the symmetric polytope with these vertices), or `DisjointGroups`
        of these.
    objective
        "total" minimises Σ_i weight_i Σ_ii, "worst" minimises max_i weight_i Σ_ii.
    weights
        A positive weight for each coordinate; by default all are 1.
    """

    space: Instance[Space] = space_field()
    objective: OneOf = OneOf("total", "worst", default="total")
    weights: OptionalRationals = OptionalRationals(strict=True)

    def __post_init__(self) -> None:
        dimension = self.space.dimension
        if self.weights is not None and len(self.weights) != dimension:
            raise expected(
                "len(weights)",
                len(self.weights),
                f"to be {dimension}",
                "Give one weight for each coordinate of the space.",
            )
        found = vertices(self.space)
        entries = [[fmpq(e.numerator, e.denominator) for e in v.entries] for v in found]
        rank = fmpq_mat(entries).rref()[1]
        if rank < dimension:
            raise InvalidInputError(
                f"Expected the space to span all {dimension} coordinates, not {rank}. Some linear "
                "combination of the answers is the same on all neighbours and needs no noise: "
                "leave it out."
            )

    def weight_list(self) -> tuple[Fraction, ...]:
        """Return the weights, all 1 by default."""
        return self.weights or (Fraction(1),) * self.space.dimension


def vertices(space: Space) -> list[Vertex]:
    """Return the vertices of a space, one of each pair ±v.

    For a ball these are vectors along the axes: the optimal Σ for them is optimal for the ball too.

    Raises
    ------
    NotApplicableError
        If the space is not a polytope whose vertices can be listed.
    InvalidInputError
        If there are more than 4096 vertices, or a vector has entries with irrational ratio.
    """
    dimension = space.dimension
    if isinstance(space, FiniteSet):
        return [
            Vertex(unit.square, tuple(ratios))
            for index, vector in enumerate(space.vectors)
            if any(entry.sign for entry in vector)
            for unit, ratios in [common_root(f"vectors[{index}]", vector)]
        ]
    if isinstance(space, Box):
        _require_few(1 << (dimension - 1))
        unit, ratios = common_root("bounds", space.bounds)
        signs = itertools.product((1, -1), repeat=dimension - 1)
        return [
            Vertex(unit.square, tuple(s * r for s, r in zip((1, *sign), ratios, strict=True)))
            for sign in signs
        ]
    if isinstance(space, SparseBox):
        k = space.sparsity
        _require_few(vertex_count(dimension, k, signed=space.signed))
        supports = itertools.chain.from_iterable(
            itertools.combinations(range(dimension), ones)
            for ones in ([k] if space.signed else range(1, k + 1))
        )
        return [
            Vertex(space.bound.square, _spread(dimension, support, (1, *sign)))
            for support in supports
            for sign in itertools.product(
                (1, -1) if space.signed else (1,), repeat=len(support) - 1
            )
        ]
    if isinstance(space, L2Ball):
        axes = range(dimension)
        return [Vertex(space.radius.square, _spread(dimension, [axis], [1])) for axis in axes]
    if isinstance(space, DisjointGroups):
        inner, size = vertices(space.space), space.space.dimension
        _require_few(space.groups * len(inner))
        padding = [Fraction(0)] * size
        return [
            Vertex(
                vertex.square,
                (*padding * group, *vertex.entries, *padding * (space.groups - 1 - group)),
            )
            for group in range(space.groups)
            for vertex in inner
        ]
    raise NotApplicableError(
        f"{type(space).__name__} has no list of vertices. Give a Box, a SparseBox, an L2Ball or a "
        "FiniteSet, or DisjointGroups of them."
    )


def _spread(dimension: int, support: Sequence[int], signs: Sequence[int]) -> tuple[Fraction, ...]:
    entries = [Fraction(0)] * dimension
    for index, sign in zip(support, signs, strict=True):
        entries[index] = Fraction(sign)
    return tuple(entries)


def _require_few(count: int) -> None:
    if count > _MOST_VERTICES:
        raise InvalidInputError(
            f"Expected at most {_MOST_VERTICES} vertices, not {count}. Give fewer dimensions; "
            "OptimalEllipse and EllipticalGaussian have closed forms for any number."
        )


_DIGITS = 17
"""Significant digits to which floats are rounded to rationals."""
_ACTIVE = 1e-6
"""A vertex is active if its weight exceeds this fraction of the largest weight."""
_STEPS = 12
"""Newton steps on the active vertices."""
_ROOM = Fraction(1, 10**30)
"""Relative reduction of the lower end, so that a rational matrix root can prove it as well."""


@final
@dataclass(frozen=True)
class GaussianShape:
    """The optimum, the mechanism that attains it, and its proof.

    Parameters
    ----------
    problem
        The problem.
    value
        An enclosure of the optimum. The upper end is attained by the mechanism.
    mechanism
        N(0, Σ) for the space, with μ = 1 exactly.
    vertices, law
        The vertices v with w_v > 0, and the probabilities w_v.
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
    """Minimise the variance of Gaussian noise for a sensitivity space, and prove the optimum.

    Parameters
    ----------
    problem
        The problem.
    solver
        The semidefinite solver that cvxpy calls.

    Raises
    ------
    InvalidInputError
        If the solver is not installed.
    SolverError
        If it stops without a solution.
    """
    import numpy as np

    require_type("problem", problem, GaussianShapeProblem)
    started = time.perf_counter()
    require_solver(solver)
    found = vertices(problem.space)
    points = np.array(
        [[float(e) * float(v.square) ** 0.5 for e in v.entries] for v in found], dtype=float
    )
    units = np.abs(points).max(axis=0)  # scale all coordinates to size 1
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
    """Enclose (tr (W^{1/2} M W^{1/2})^{1/2})², a lower bound on tr(WΣ) for every feasible Σ.

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
    """Return approximations of Σ, of probabilities on the vertices, and of q on the coordinates."""
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
    """Improve Σ and the probabilities by Newton's method, as in the module docstring.

    Returns the iterate of least tr(WΣ) after scaling to μ = 1, which may be the starting point.
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
    """Round Σ, scale it to μ = 1 exactly, and return the mechanism and its objective value."""
    size = len(guess)
    rounded = [
        [_rounded(float(guess[max(i, j)][min(i, j)])) for j in range(size)] for i in range(size)
    ]
    norm = problem.space.largest_norm(Matrix(rounded)).exact
    covariance: Covariance
    if isinstance(problem.space, L2Ball):  # the constraint is Σ ⪰ r²·I, whatever the weights
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
    """Return rational probabilities of sum exactly 1, close to the given ones."""
    exact = [_rounded(mass) for mass in masses]
    total = sum(exact, start=Fraction(0))
    return tuple(mass / total for mass in exact)
