"""Floating-point solvers, which only guess: what they say is proved elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, final

from accountant.errors import DpassayError, InvalidInputError, suggestion
from lp.program import Scaled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class InfeasibleError(DpassayError):
    """No law satisfies all the side constraints."""


class SolverError(DpassayError):
    """A solver stopped without an answer."""


@final
@dataclass(frozen=True)
class Guess:
    """What a solver returned, in its own scaling.

    `basic_columns` and `tight_rows` are the indices of the basis: the columns that are not at
    their bound, and the rows that hold with equality. They are equally many.
    """

    point: NDArray[np.float64]
    basic_columns: list[int]
    tight_rows: list[int]


def guess(program: Scaled) -> Guess:
    """Solve a program by HiGHS's simplex method, called directly.

    Raises
    ------
    InvalidInputError
        If highspy is not installed.
    InfeasibleError
        If HiGHS says that the constraints contradict each other.
    SolverError
        If it stops without an answer.
    """
    require_solver("HIGHS")
    import highspy
    import numpy as np

    columns, rows = len(program.column_exponents), len(program.bounds)
    make: Any = highspy.Highs  # its stubs know neither its constructor nor all its methods
    solver = make()
    for option, value in _OPTIONS.items():
        solver.setOptionValue(option, value)
    if rows > _MANY_ROWS:
        solver.setOptionValue("presolve", "on")
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = rows, columns
    model.col_cost_ = program.cost
    model.col_lower_, model.col_upper_ = np.zeros(columns), np.full(columns, _LARGEST)
    model.row_lower_ = program.bounds
    model.row_upper_ = np.where(program.equalities, program.bounds, highspy.kHighsInf)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = program.starts
    model.a_matrix_.index_ = program.indices
    model.a_matrix_.value_ = program.values
    solver.passModel(model)
    for strategy in _STRATEGIES:
        for option, value in strategy.items():
            solver.setOptionValue(option, value)
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            raise InfeasibleError("The constraints contradict each other.")
        if status in (
            highspy.HighsModelStatus.kOptimal,
            highspy.HighsModelStatus.kUnknown,  # it did not meet its own tolerances
        ):
            break
        solver.clearSolver()
    else:
        raise SolverError(f"HiGHS stopped with {solver.modelStatusToString(status)!r}.")
    basis, basic = solver.getBasis(), highspy.HighsBasisStatus.kBasic
    return Guess(
        np.array(solver.getSolution().col_value),
        [index for index, own in enumerate(basis.col_status) if own == basic],
        [index for index, own in enumerate(basis.row_status) if own != basic],
    )


_LARGEST = 1e6
"""Upper end of the solver's columns, which are scaled to about 1."""
_MANY_ROWS = 10_000
"""Rows from which on the solver's presolve saves time."""
_OPTIONS: dict[str, Any] = {
    "output_flag": False,
    "threads": 1,
    "solver": "simplex",
    "presolve": "off",
    "time_limit": 60.0,
    "small_matrix_value": 1e-12,
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
}
_STRATEGIES: tuple[dict[str, Any], ...] = (
    {"simplex_strategy": 1, "simplex_scale_strategy": 0},  # the programs come scaled
    {"simplex_strategy": 1, "simplex_scale_strategy": 2},
    {"simplex_strategy": 4, "simplex_scale_strategy": 2},
)


def installed_solvers() -> list[str]:
    """Return the names of the solvers that can be asked for."""
    import cvxpy

    return sorted(str(name) for name in cvxpy.installed_solvers())


def require_solver(name: str, *, through_cvxpy: bool = False) -> None:
    """Raise InvalidInputError, naming what is installed, unless this solver is."""
    if name == "HIGHS" and not through_cvxpy:
        if find_spec("highspy") is None:
            raise InvalidInputError("Solver HIGHS is not installed. Install highspy.")
        return
    known = installed_solvers()
    if name not in known:
        raise InvalidInputError(
            f"Expected solver={name!r} to be installed. {suggestion(name, known)} "
            f"Installed: {', '.join(known)}."
        )
