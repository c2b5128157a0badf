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
    multipliers: NDArray[np.float64]
    basic_columns: list[int]
    tight_rows: list[int]


@final
class Highs:
    """HiGHS's simplex method, called directly.

    Each inequality a·x ≥ b is written a·x − s = b with a slack s ≥ 0 of its own.
    """

    def __init__(self, program: Scaled) -> None:
        """Load the program.

        Raises InvalidInputError if highspy is not installed.
        """
        require_solver("HIGHS")
        import highspy
        import numpy as np

        self._columns = len(program.column_exponents)
        self._inequalities = np.flatnonzero(~program.equalities)
        count = len(self._inequalities)
        total = self._columns + count
        ends = program.starts[self._inequalities + 1]  # a slack goes to the end of its row
        slacks = np.arange(self._columns, total)
        starts = program.starts + np.concatenate([[0], np.cumsum(~program.equalities)])
        make: Any = highspy.Highs  # its stubs know neither its constructor nor all its methods
        self._solver = make()
        for option, value in _OPTIONS.items():
            self._solver.setOptionValue(option, value)
        if len(program.bounds) > _MANY_ROWS:  # pays for itself only there; a correction has none
            self._solver.setOptionValue("presolve", "on")
        model = highspy.HighsLp()
        model.num_row_, model.num_col_ = len(program.bounds), total
        model.col_cost_ = np.concatenate([program.cost, np.zeros(count)])
        model.col_lower_ = np.zeros(total)
        model.col_upper_ = np.full(total, _LARGEST)
        model.row_lower_ = model.row_upper_ = program.bounds
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = starts
        model.a_matrix_.index_ = np.insert(program.indices, ends, slacks)
        model.a_matrix_.value_ = np.insert(program.values, ends, -1.0)
        self._solver.passModel(model)

    def run(self) -> Guess:
        """Solve, and return point, multipliers and basis."""
        import highspy
        import numpy as np

        for strategy in _STRATEGIES:
            for option, value in strategy.items():
                self._solver.setOptionValue(option, value)
            self._solver.run()
            status = self._solver.getModelStatus()
            if status == highspy.HighsModelStatus.kInfeasible:
                raise InfeasibleError("The constraints contradict each other.")
            if status in (
                highspy.HighsModelStatus.kOptimal,
                highspy.HighsModelStatus.kUnknown,  # it did not meet its own tolerances
            ):
                break
            self._solver.clearSolver()
        else:
            raise SolverError(f"HiGHS stopped with {self._solver.modelStatusToString(status)!r}.")
        solution = self._solver.getSolution()
        basis = self._solver.getBasis()
        basic, loose = (
            np.array([status == highspy.HighsBasisStatus.kBasic for status in statuses])
            for statuses in (basis.col_status, basis.row_status)
        )
        loose[self._inequalities] |= basic[self._columns :]
        return Guess(
            np.array(solution.col_value)[: self._columns],
            np.array(solution.row_dual),
            np.flatnonzero(basic[: self._columns]).tolist(),
            np.flatnonzero(~loose).tolist(),
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
