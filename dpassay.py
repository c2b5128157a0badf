"""dpassay: is this differential-privacy guarantee true, and how good is it?

The public face. `import dpassay` loads none of the parts: a name is imported when it is first
used (PEP 562), so the import costs milliseconds and a question pays for what it asks.

>>> import dpassay
>>> noise = dpassay.Gaussian(standard_deviation=1)
>>> print(dpassay.delta(noise, epsilon=1))
0.126936737507
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from accountant.core.drawing import Drawable

_MECHANISMS = "accountant.mechanisms"  # all of its own list is public here too
_HOME = {
    "Adjacency": "accountant.core.adjacency",
    "Direction": "accountant.core.adjacency",
    "BestCounter": "accountant.counting.best_counter",
    "best_counter": "accountant.counting.best_counter",
    "Calibration": "accountant.budget.calibrate",
    "EpsilonDelta": "accountant.budget.calibrate",
    "Mu": "accountant.budget.calibrate",
    "ProfileBelow": "accountant.budget.calibrate",
    "Rho": "accountant.budget.calibrate",
    "AdjacencyError": "accountant.errors",
    "DpassayError": "accountant.errors",
    "InvalidInputError": "accountant.errors",
    "NotApplicableError": "accountant.errors",
    "UndecidedError": "accountant.errors",
    **dict.fromkeys(
        (
            "absolute_quantile",
            "beta",
            "covariance",
            "delta",
            "delta_complement",
            "epsilon",
            "estimate_beta",
            "estimate_delta",
            "estimate_epsilon",
            "estimate_log_delta",
            "estimate_log_loss_cdf",
            "estimate_log_loss_survival",
            "estimate_power",
            "estimate_slope",
            "gaussian_bounds",
            "log_delta",
            "loss_cdf",
            "loss_survival",
            "maximum_quantile",
            "mean_absolute_error",
            "mean_squared_error",
            "mu",
            "power",
            "probability_exact",
            "quantile",
            "renyi",
            "rho",
            "total_variation",
            "variance",
        ),
        "accountant.ask",
    ),
    "CountNoiseProblem": "lp.problem",
    "GaussianShapeProblem": "lp.shape_problem",
    "IntegerNoiseProblem": "lp.integer_problem",
    "optimal_count_noise": "lp.count_noise",
    "optimal_free_noise": "lp.integer_noise",
    "optimal_gaussian_shape": "lp.shapes",
    "optimal_integer_noise": "lp.integer_noise",
    "convert": "accountant.questions.convert",
    "Interval": "accountant.numbers.interval",
    "parse": "accountant.notation",
    "exact": "accountant.numbers.exact",
    **dict.fromkeys(
        (
            "BoundedSum",
            "Count",
            "Counts",
            "GroupedCounts",
            "Histogram",
            "LinearQueries",
            "MatrixRelease",
            "Mean",
            "PrefixSums",
            "VectorSum",
        ),
        "accountant.geometry.workload",
    ),
    **dict.fromkeys(
        (
            "AuditResult",
            "OneRunResult",
            "PrivacyError",
            "SequentialResult",
            "audit_one_run",
            "audit_scores",
            "audit_step",
            "canaries_needed",
        ),
        "verify.audit",
    ),
    "Profile": "accountant.summary",
    "profile": "accountant.summary",
    "Training": "accountant.training",
    "dpsgd": "accountant.training",
    "dpsgd_noise": "accountant.training",
    "training": "accountant.training",
    "training_schemes": "accountant.training",
    "Budget": "verify.compare",
    "sweep": "verify.compare",
    **dict.fromkeys(
        (
            "assert_private",
            "audit",
            "audit_samples",
            "audit_until_refuted",
            "calibrate",
            "certify",
            "check",
            "compare",
            "verify",
        ),
        "verify.ask",
    ),
    **dict.fromkeys(
        (
            "ApproximateDP",
            "GaussianDP",
            "Limit",
            "Minimiser",
            "Monotone",
            "Optimality",
            "Pending",
            "PrintedNumber",
            "ProfileBound",
            "PureDP",
            "Relation",
            "RenyiDP",
            "TradeoffBound",
            "ZeroConcentratedDP",
        ),
        "verify.claims",
    ),
    "plot": "figures.plot",
    "read_file": "verify.document",
    "read_paper": "verify.document",
    "Finding": "verify.verdict",
    "Rigour": "verify.verdict",
    "Verdict": "verify.verdict",
}


def __getattr__(name: str) -> Any:
    """Import a public name, and keep it: the next use does not come here."""
    value: Any
    if name == "__version__":
        value = import_module("importlib.metadata").version("dpassay")
    elif name == "__all__":
        value = sorted({*_HOME, *import_module(_MECHANISMS).__all__})
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif not name.startswith("_") and name in import_module(_MECHANISMS).__all__:
        value = getattr(import_module(_MECHANISMS), name)
    else:
        raise AttributeError(f"module 'dpassay' has no attribute {name!r}{_hint(name)}")
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    """Suggest a public name for one that is not."""
    if name.startswith("_"):
        return ""
    found: str = import_module("accountant.errors").suggestion(name, __getattr__("__all__"))
    return f". {found}" if found.startswith("Did you mean") else ": dir(dpassay) lists what it has"


def __dir__() -> list[str]:
    return ["__version__", "main", *__getattr__("__all__")]


def main() -> int:
    """Run the command line; return its exit code."""
    above = ("figures.cli", "figures.comparison.cli")
    commands = (import_module(name).COMMAND for name in above)  # errors are caught below
    exit_code: int = import_module("verify.cli").main(
        plot=_plot_profile, laws=_draw_laws, page=_write_page, commands=commands
    )
    return exit_code


def _plot_profile(*arguments: Any, **options: Any) -> None:
    """Draw for the command line, which lies on a floor below the figures."""
    import_module("figures.profile").plot(*arguments, **options)


def _draw_laws(*arguments: Any, **options: Any) -> None:
    """Draw laws for the command line."""
    import_module("figures.law").plot(*arguments, **options)


def _draw(*arguments: Any, **options: Any) -> Any:
    """Draw what has `plot`."""
    return import_module("figures.plot").plot(*arguments, **options)


Drawable.drawer = _draw


def _write_page(*arguments: Any) -> None:
    """Write the page of a verdict for the command line."""
    import_module("figures.pages.verdict").write(*arguments)


if __name__ == "__main__":
    raise SystemExit(main())
