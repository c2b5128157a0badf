"""Floating-point solvers. Their results are only guesses, which other modules verify."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, final

from dpassay.accountant.errors import DpassayError, InvalidInputError, suggestion
from dpassay.lp.program import Scaled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class InfeasibleError(DpassayError):
    """No law satisfies all constraints."""


class SolverError(DpassayError):
    """A solver stopped without a solution."""


class Basis(NamedTuple):
    """A basis: the basic columns, and the same number of rows that hold with equality."""

    columns: list[int]
    tight: list[int]


@final
class Highs:
    """The simplex method of HiGHS for one program; each solve starts from the previous basis.

    Each inequality a·x ≥ b is passed as a·x − s = b with a slack s ≥ 0. The slacks follow the
    columns.
    """

    def __init__(self, form: Scaled) -> None:
        """Load the program.

        Raises InvalidInputError if highspy is not installed.
        """
        require_solver("HIGHS")
        import highspy
        import numpy as np

        self.form = form
        self.inequalities = np.flatnonzero(~form.equalities)
        self.equalities = np.flatnonzero(form.equalities)
        columns, slacks = len(form.column_exponents), len(self.inequalities)
        ends = form.starts[self.inequalities + 1]  # a slack is the last entry of its row
        self._solver = _silent_solver()
        for option, value in _OPTIONS.items():
            self._solver.setOptionValue(option, value)
        if len(form.bounds) > _MANY_ROWS:
            self._solver.setOptionValue("presolve", "on")
        most = _ITERATIONS * (len(form.bounds) + len(form.column_exponents))
        self._solver.setOptionValue("simplex_iteration_limit", most)
        model = highspy.HighsLp()
        model.num_row_, model.num_col_ = len(form.bounds), columns + slacks
        model.col_cost_ = np.concatenate([form.cost, np.zeros(slacks)])
        model.col_lower_ = np.zeros(columns + slacks)
        model.col_upper_ = np.full(columns + slacks, _LARGEST)
        model.row_lower_ = model.row_upper_ = form.bounds
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = form.starts + np.concatenate([[0], np.cumsum(~form.equalities)])
        model.a_matrix_.index_ = np.insert(form.indices, ends, columns + np.arange(slacks))
        model.a_matrix_.value_ = np.insert(form.values, ends, -1.0)
        self._solver.passModel(model)

    def run(self) -> tuple[float, Basis]:
        """Solve the program; return the scaled value of the first column, and the basis.

        Raises
        ------
        InfeasibleError
            If HiGHS reports that the program is infeasible.
        SolverError
            If it stops without a solution.
        """
        import highspy
        import numpy as np

        for strategy in _STRATEGIES:
            for option, value in strategy.items():
                self._solver.setOptionValue(option, value)
            self._solver.run()
            status = self._solver.getModelStatus()
            if status == highspy.HighsModelStatus.kInfeasible:
                raise InfeasibleError("The linear program is infeasible.")
            if status in (
                highspy.HighsModelStatus.kOptimal,
                highspy.HighsModelStatus.kUnknown,  # solved, but not to its own tolerances
            ):
                break
            self._solver.clearSolver()
        else:
            raise SolverError(f"HiGHS stopped with {self._solver.modelStatusToString(status)!r}.")
        found = self._solver.getBasis()
        basic, loose = (
            np.array([status == highspy.HighsBasisStatus.kBasic for status in statuses])
            for statuses in (found.col_status, found.row_status)
        )
        columns = len(self.form.column_exponents)
        loose[self.inequalities] |= basic[columns:]
        basis = Basis(np.flatnonzero(basic[:columns]).tolist(), np.flatnonzero(~loose).tolist())
        return float(self._solver.getSolution().col_value[0]), basis

    def correct(
        self, lower: NDArray[np.float64], sides: NDArray[np.float64], cost: NDArray[np.float64]
    ) -> Basis:
        """Solve again from the last basis, with other lower bounds and costs for all variables.

        `sides` are the right-hand sides of the equalities; those of the inequalities become 0.
        """
        import numpy as np

        bounds = np.zeros(len(self.form.bounds))
        bounds[self.equalities] = np.clip(sides, -_FAR, _FAR)
        every, upper = np.arange(len(lower)), np.full(len(lower), _FURTHEST)
        self._solver.changeColsBounds(len(lower), every, np.clip(lower, -_FAR, _FURTHEST), upper)
        self._solver.changeColsCost(len(lower), every, np.minimum(cost, _LARGEST_COST))
        self._solver.changeRowsBounds(len(bounds), np.arange(len(bounds)), bounds, bounds)
        return self.run()[1]


def _silent_solver() -> Any:
    """Return a HiGHS solver that never writes to stdout.

    Since version 1.16 the constructor installs callbacks, which prints a banner, before any option
    can be set. The subclass therefore sets the option as soon as the constructor does this.
    """
    import highspy

    base: Any = highspy.Highs  # its stubs know neither its constructor nor all its methods

    class Silent(base):  # type: ignore[misc]  # a base of type Any
        def enableCallbacks(self) -> None:  # noqa: N802 (its name in highspy)
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

    return Silent()


@contextmanager
def stdout_closed() -> Iterator[None]:
    """Discard everything that native code writes to the process's stdout in the `with` block.

    It is for a solver that another library creates, whose options cannot be set in time.
    """
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


_LARGEST = 1e6
"""Upper bound of the solver's columns, which are scaled to about 1."""
_FURTHEST = 1e12
"""Upper bound of variables in a correction."""
_FAR = 1e30
"""A number that the solver treats as infinite."""
_LARGEST_COST = 1e10
"""Largest cost in a correction; larger ones would lose precision in the solver."""
_ITERATIONS = 5
"""Simplex iterations per row and column after which the solver is assumed to cycle."""
_MANY_ROWS = 10_000
"""Number of rows above which the solver's presolve saves time."""
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
    {"simplex_strategy": 1, "simplex_scale_strategy": 0},  # the programs are already scaled
    {"simplex_strategy": 1, "simplex_scale_strategy": 2},
    {"simplex_strategy": 4, "simplex_scale_strategy": 2},
)


def installed_solvers() -> list[str]:
    """Return the names of the installed solvers that cvxpy can call."""
    import cvxpy

    return sorted(str(name) for name in cvxpy.installed_solvers())


def require_solver(name: str, *, through_cvxpy: bool = False) -> None:
    """Raise InvalidInputError, with the list of installed solvers, unless this one is installed."""
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
