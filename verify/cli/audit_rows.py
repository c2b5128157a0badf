"""`dpassay audit-samples`, `audit-scores` and `audit-one-run`: audits of files of numbers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpassay.verifier.cli.audit import significance
from dpassay.verifier.cli.shell import (
    Command,
    ExitCode,
    add_output_options,
    checked_path,
    decimal,
    note,
    say,
    say_json,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dpassay.verifier.audit import AuditResult

_FILES = """
Files are .npy, .npz with one array, .csv and .txt with one run per line and no header, or .parquet
where pyarrow is installed."""
_CLAIM = "1, 1,1e-5, mu=0.5, rho=0.1, order=8,renyi=0.5, or a mechanism whose profile is claimed"
_SAMPLES = f"""\
Bound epsilon and delta(epsilon) of a mechanism from outputs of independent runs on two neighbouring
datasets, or test a claim. Randomly chosen rows propose an event; the others test it once.
{_FILES}
"""
_SCORES = f"""\
Bound epsilon from the scores of one canary in runs with it (IN) and without it (OUT).
{_FILES}
"""
_ONE_RUN = f"""\
Bound epsilon from many canaries in one run, each included by its own fair coin. SCORES has a number
for each canary, larger if it seems to be included; INCLUDED has 1 or 0 for each. Without files,
--plan prints how many canaries are needed.
{_FILES}
"""


def _configure(parser: argparse.ArgumentParser, *files: str) -> None:
    for name in files:
        parser.add_argument(name.lower(), metavar=name, type=Path, help="a file of numbers")
    parser.add_argument(
        "--confidence",
        type=decimal,
        default=0.95,
        metavar="C",
        help="confidence of a refutation (default 0.95)",
    )
    parser.add_argument("--seed", type=int, metavar="S", help="seed of the random split")
    add_output_options(parser, quiet="print nothing; the exit code is the answer")


def _add_bounds(parser: argparse.ArgumentParser, delta: float = 1e-5) -> None:
    """Add what an audit takes that bounds epsilon without a claim, too."""
    add = parser.add_argument
    add("--claim", metavar="CLAIM", help=_CLAIM)
    where = f"where epsilon is bounded ({delta:g})"
    add("--delta", type=decimal, default=delta, metavar="D", help=where)
    add("--certificate", type=Path, metavar="FILE", help="write the certificate")


def configure_samples(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `audit-samples`."""
    _configure(parser, "FIRST", "SECOND")
    _add_bounds(parser, delta=0.0)
    parser.add_argument(
        "--no-bits",
        dest="bits",
        action="store_false",
        default=None,
        help="ignore the last bits of floats",
    )
    _add_plot(parser)


def _add_plot(parser: argparse.ArgumentParser) -> None:
    help_ = "draw both sides and the trade-off function (.png, .pdf or .svg)"
    parser.add_argument("--plot", type=Path, metavar="FILE", help=help_)


def configure_scores(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `audit-scores`."""
    _configure(parser, "IN", "OUT")
    _add_bounds(parser)
    _add_plot(parser)


def configure_one_run(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `audit-one-run`."""
    add = parser.add_argument
    _configure(parser)
    add("scores", nargs="?", type=Path, metavar="SCORES", help="a file of numbers")
    add("included", nargs="?", type=Path, metavar="INCLUDED", help="1 or 0 for each")
    _add_bounds(parser)
    add(
        "--guesses",
        metavar="R1,R2,…",
        help="numbers of guesses, fixed in advance; they share the significance",
    )
    add(
        "--plan",
        nargs=2,
        type=decimal,
        metavar=("EPSILON", "TRUTH"),
        help="print how many canaries refute EPSILON if the truth is TRUTH",
    )


def run_samples(options: argparse.Namespace) -> int:
    """Audit rows and print."""
    from dpassay.accountant.core.asking import Drawable
    from dpassay.verifier.audit import audit_samples

    path = checked_path(options.plot, Drawable.drawer)
    result = audit_samples(
        _read(options.first),
        _read(options.second),
        _claim(options),
        significance=significance(options.confidence),
        delta=options.delta,
        bits=options.bits,
        seed=options.seed,
        names=(options.first.name, options.second.name),
    )
    return _drawn(result, options, path)


def run_scores(options: argparse.Namespace) -> int:
    """Audit scores and print."""
    from dpassay.accountant.core.asking import Drawable
    from dpassay.verifier.audit import audit_scores

    path = checked_path(options.plot, Drawable.drawer)
    result = audit_scores(
        _read(getattr(options, "in")),
        _read(options.out),
        _claim(options),
        delta=options.delta,
        significance=significance(options.confidence),
        seed=options.seed,
    )
    return _drawn(result, options, path)


def _drawn(result: AuditResult, options: argparse.Namespace, path: Path | None) -> int:
    """Print a result, draw it where a path is given, and return the exit code."""
    code = _told(result, options)
    if path is not None:
        result.plot(path)
        note(f"wrote {path}")
    return code


def run_one_run(options: argparse.Namespace) -> int:
    """Audit one run, or plan it, and print."""
    from dpassay.accountant.errors import InvalidInputError
    from dpassay.verifier.audit import audit_one_run, canaries_needed

    level = significance(options.confidence)
    if options.plan is not None:
        needed = canaries_needed(*options.plan, delta=options.delta, significance=level)
        if options.json:
            say_json({"schema_version": 1, "canaries": needed})
        else:
            say(str(needed))
        return ExitCode.DONE
    if options.included is None:
        raise InvalidInputError("Expected SCORES and INCLUDED, or --plan EPSILON TRUTH.")
    result = audit_one_run(
        _read(options.scores),
        _read(options.included),
        _claim(options),
        delta=options.delta,
        guesses=_whole_numbers(options.guesses),
        significance=level,
        seed=options.seed or 0,
    )
    return _told(result, options)


def _claim(options: argparse.Namespace) -> Any:
    from dpassay.verifier.ask import read_claim

    return None if options.claim is None else read_claim(options.claim)


def _told(result: Any, options: argparse.Namespace) -> int:
    """Print a result and return the exit code: 1 where what was claimed is refuted."""
    if getattr(options, "certificate", None) is not None:
        from dpassay.verifier.prover import write

        write(options.certificate, [result.certificate()])
    if options.json:
        say_json(result.to_json())
    elif not options.quiet:
        say(str(result))
    return ExitCode.REFUTED if result.refuted else ExitCode.DONE


def _whole_numbers(text: str | None) -> list[int] | None:
    from dpassay.accountant.errors import expected

    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise expected("guesses", text, "to be whole numbers", "Write 1000,100.") from None


def _read(path: Path) -> NDArray[Any]:
    """Return the array in a file; nothing in it is run.

    Raises InvalidInputError where there is none.
    """
    import numpy as np

    from dpassay.accountant.errors import InvalidInputError

    try:
        if path.suffix in (".npy", ".npz"):
            found = np.load(path, allow_pickle=False)
            if path.suffix == ".npy":
                return np.asarray(found)
            names = list(found)
            if len(names) != 1:
                raise InvalidInputError(
                    f"{path}: expected one array, not {len(names)}. Save each in a file of its own."
                )
            return np.asarray(found[names[0]])
        if path.suffix in (".csv", ".txt"):
            if not path.read_text().strip():
                return np.empty(0)
            rows = np.loadtxt(path, delimiter="," if path.suffix == ".csv" else None, ndmin=2)
            return rows[:, 0] if rows.shape[1] == 1 else rows
        if path.suffix == ".parquet":
            return _read_parquet(path)
    except InvalidInputError:
        raise
    except (ValueError, EOFError) as error:
        why = f"expected numbers, one run a line and no header: {error}"
        if path.suffix in (".npy", ".npz"):
            why = (
                "expected an array of numbers (arrays of objects are not read: they are programs)."
            )
        raise InvalidInputError(f"{path}: {why}") from None
    raise InvalidInputError(
        f"{path}: expected a file that ends in .npy, .npz, .csv, .txt or .parquet."
    )


def _read_parquet(path: Path) -> NDArray[Any]:
    """Return the columns of a table; a single one as a list of values."""
    import importlib

    import numpy as np

    from dpassay.accountant.errors import InvalidInputError

    try:
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InvalidInputError(
            f"{path}: reading .parquet needs pyarrow: pip install pyarrow, or save it as .npy."
        ) from None
    with path.open("rb") as file:
        columns = parquet.read_table(file).columns
    if not columns:
        raise ValueError("there is no column")
    if nulls := sum(column.null_count for column in columns):
        raise ValueError(f"{nulls} entries are missing")
    rows = np.column_stack([column.to_numpy() for column in columns])
    return rows[:, 0] if rows.shape[1] == 1 else rows


COMMANDS = (
    Command(
        "audit-samples",
        "bound epsilon, or test a claim, by outputs of runs that were made",
        _SAMPLES,
        "examples:\n  dpassay audit-samples a.npy b.npy --claim 1,1e-5\n"
        "  dpassay audit-samples a.npy b.npy --delta 1e-5 --plot audit.png\n",
        configure_samples,
        run_samples,
    ),
    Command(
        "audit-scores",
        "bound epsilon by scores of a canary",
        _SCORES,
        "examples:\n  dpassay audit-scores in.npy out.npy --delta 1e-5 --plot roc.png\n",
        configure_scores,
        run_scores,
    ),
    Command(
        "audit-one-run",
        "bound epsilon by many canaries of one run",
        _ONE_RUN,
        "examples:\n  dpassay audit-one-run scores.npy included.npy --claim 1,1e-5\n"
        "  dpassay audit-one-run --plan 8 16\n",
        configure_one_run,
        run_one_run,
    ),
)
