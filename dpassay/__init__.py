"""dpassay: is this differential-privacy guarantee true, and how good is it?

This module is the public interface. `import dpassay` takes milliseconds, because each name is
imported on first use (PEP 562). The implementation is in `dpassay.accountant`, `.lp`, `.verifier`
and `.figures`. Drop-in accountants for other libraries are in `dpassay.integrations.opacus`,
`.dp_accounting` and `.jax_privacy`. Arguments may also have the names that other libraries use,
which are listed in `dpassay.accountant.aliases`.

>>> import dpassay
>>> noise = dpassay.Gaussian(standard_deviation=1)
>>> print(dpassay.delta(noise, epsilon=1))
0.126936737507
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from dpassay.accountant.core.asking import Askable, Drawable

_ROOMS = ("accountant", "lp", "verifier", "figures", "integrations")
_WHOLE = ("dpassay.accountant.ask", "dpassay.accountant.mechanisms", "dpassay.verifier.claims")
"""Modules whose `__all__` is public here."""
_PUBLIC = {
    "accountant.account": "Account BudgetError Spend",
    "accountant.core.adjacency": "Adjacency Direction",
    "accountant.core.asking": "Results",
    "accountant.counting.best_counter": "BestCounter best_counter",
    "accountant.budget.calibrate": "Calibration EpsilonDelta Mu Rho",
    "accountant.errors": "AdjacencyError DpassayError InvalidInputError NotApplicableError "
    "UndecidedError",
    "lp.problem": "CountNoiseProblem",
    "lp.count_noise": "optimal_count_noise",
    "lp.integer_noise": "IntegerNoiseProblem optimal_free_noise optimal_integer_noise",
    "lp.shapes": "GaussianShapeProblem optimal_gaussian_shape",
    "accountant.questions.convert": "convert",
    "accountant.numbers.interval": "Interval",
    "accountant.notation": "parse",
    "accountant.numbers.exact": "exact",
    "accountant.geometry.workload": "BoundedSum Count Counts GroupedCounts Histogram LinearQueries "
    "MatrixRelease Mean PrefixSums VectorSum",
    "verifier.audit": "AuditResult PrivacyError assert_private audit audit_one_run audit_samples "
    "audit_scores audit_until_refuted canaries_needed",
    "accountant.summary": "Profile profile",
    "accountant.training": "Training dpsgd dpsgd_noise training training_schemes",
    "verifier.compare": "Budget compare",
    "verifier.ask": "calibrate certify check verify",
    "figures.plot": "plot",
    "verifier.document": "read_file read_paper read_registry",
    "verifier.verdict": "Finding Rigour Verdict",
}
"""Further public names, by module."""
_DAILY = """
    epsilon delta beta power renyi mu rho total_variation profile convert
    membership posterior reconstruction
    variance mean_squared_error quantile
    Gaussian Laplace DiscreteGaussian DiscreteLaplace RandomizedResponse ExponentialMechanism
    ReportNoisyMax AboveThreshold Composed PoissonSubsampled Shuffled MatrixMechanism
    Account dpsgd dpsgd_noise training_schemes
    verify certify check audit audit_samples assert_private read_file read_paper
    calibrate compare Budget Count Counts Histogram Mean
    parse exact plot Adjacency Interval Results Verdict DpassayError
"""
"""The most used names, which `dir(dpassay)` lists; `__all__` has every public name."""
_HOME = {name: f"dpassay.{module}" for module, names in _PUBLIC.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a public name on first use and cache it."""
    value: Any
    if name == "__version__":
        value = import_module("importlib.metadata").version("dpassay")
    elif name == "__all__":
        value = sorted({*_HOME, *(each for module in _WHOLE for each in _listed(module))})
    elif name in _ROOMS:
        value = import_module(f"dpassay.{name}")
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        homes = () if name.startswith("_") else _WHOLE
        home = next((module for module in homes if name in _listed(module)), None)
        if home is None:
            text = f"module 'dpassay' has no attribute {name!r}{_hint(name)}"
            raise AttributeError(text, name=name)  # with obj=… Python would append a suggestion
        value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def _listed(module: str) -> list[str]:
    names: list[str] = import_module(module).__all__
    return names


def _hint(name: str) -> str:
    """Return a suggestion for an unknown name, to append to the error message."""
    if name.startswith("_"):
        return ""
    suggestion = import_module("dpassay.accountant.errors").suggestion
    found: str = suggestion(name, __getattr__("__all__"), listed=False)
    return f". {found}" if found else "; dpassay.__all__ lists the public names"


def __dir__() -> list[str]:
    return ["__all__", "__version__", *_DAILY.split()]


def main() -> int:
    """Run the command line and return its exit code."""
    above = ("dpassay.figures.cli", "dpassay.figures.comparison.cli")
    commands = (import_module(name).COMMAND for name in above)  # imported lazily, in run
    try:
        run = import_module("dpassay.verifier.cli").main
    except KeyboardInterrupt:
        sys.stderr.write("\ndpassay: interrupted\n")
        return 130
    exit_code: int = run(page=_write_page, commands=commands)
    return exit_code


def _draw(*arguments: Any, **options: Any) -> Any:
    """Draw an object for its method `plot`."""
    return import_module("dpassay.figures.plot").plot(*arguments, **options)


Drawable.drawer = _draw
Askable.asker = __getattr__


def _write_page(*arguments: Any) -> None:
    """Write the page of verdicts for the command line."""
    import_module("dpassay.figures.pages.verdict").write(*arguments)
