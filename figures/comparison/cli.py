"""`dpassay compare`: find the best mechanism under a privacy budget."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dpassay.accountant.core.asking import Drawable
from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.cli.shell import (
    Command,
    ExitCode,
    checked_path,
    note,
    require_folders,
    say,
    say_json,
)

if TYPE_CHECKING:
    from dpassay.verifier.compare import Comparison
    from dpassay.verifier.compare.comparison import Document

_DESCRIPTION = """\
Calibrate every mechanism that can release a workload to the least noise that a budget allows,
prove its guarantee, and compute its error exactly.

workloads:
  Count(sensitivity=1);
  Counts(dimension=d, sparsity=k), of which a person changes at most k;
  Histogram(bins=d), of which a person changes one;
  Mean(lower=0, upper=1, records=n), BoundedSum(bounds=[...]),
  GroupedCounts(groups=m, dimension=d), PrefixSums(steps=n),
  Training(batch_size=b, dataset_size=n, epochs=e),
  MatrixRelease(rows=m, columns=n),
  VectorSum(dimension=d, l1_sensitivity=, l2_sensitivity=, linf_sensitivity=),
  LinearQueries(matrix=[[...]], space=Box(bounds=[...])),
  Selection(candidates=k), Quantile(candidates=k)

metrics: variance, rmse, mean-absolute-error, bias, p-exact, quantile:P, max-quantile:P;
of choices regret:P

* marks the best value of each metric.
"""
_EPILOG = """\
examples:
  dpassay compare "Count()" --epsilon 1 --delta 1e-6
  dpassay compare "Count()" --epsilon 1 --delta 1e-6 --releases 16
  dpassay compare "Counts(dimension=1000, sparsity=100)" --mu 0.5 --html report.html
  dpassay compare budget.toml --json
"""
_OPTIONS = """\
question WORKLOAD ?  the query to release; or a file BUDGET.toml with workload and budget
--epsilon E  a budget of (E, D)-DP
--delta D  with --epsilon; 0 (pure) if left out
--mu M  a budget of M-Gaussian DP
--rho R  a budget of R-zCDP
--profile MECHANISM  a budget: the privacy profile of this mechanism
--adjacency RELATION  add-remove (the default) or replace-one; the workload's bounds are for it
--releases N :int  releases that share the budget
--sampling-prob Q  each release uses a Poisson sample
--workload WORKLOAD  the same as the argument
--candidate MECHANISM []  also judge this mechanism, with its own noise
--only NAME []  only candidates of this name
--metric METRIC []  metrics to compute; the first one ranks
--published  also judge noise by published formulas
--html FILE  write a report with plots and certificates
--plot FILE  draw the first two metrics
--details  explain why each other candidate is left out
--certificate FILE  write the certificates
"""
_HINTS = dict.fromkeys(
    ("--sparsity", "--dimension", "--bins", "--sensitivity", "--steps", "--bounds"),
    'A workload states its numbers: "Counts(dimension=1000, sparsity=5)"',
)
_BUDGET = [
    "epsilon",
    "delta",
    "mu",
    "rho",
    "profile",
    "adjacency",
    "releases",
    "sampling_prob",
    "workload",
]
"""Options that are not allowed with a file BUDGET.toml, which sets them itself."""


def run(options: argparse.Namespace) -> int:
    """Compare the candidates and print the result."""
    from dpassay.verifier.compare import compare
    from dpassay.verifier.terminal import Line

    question = _document(options).read()
    checked_path(options.plot, Drawable.drawer)
    require_folders(options.html, options.certificate)
    line = Line(sys.stderr, silent=options.quiet)
    judging = partial(line.say, "judging")
    found = compare(**question, published=options.published, progress=judging)
    line.close()
    _print(found, options)
    _write(found, options)
    return _exit_code(found)


def _document(options: argparse.Namespace) -> Document:
    """Return the question, from a file or from the options; using both is an error."""
    import msgspec

    from dpassay.verifier.compare.comparison import BudgetTable, Document, read_file

    flags = {name: value for name in _BUDGET if (value := getattr(options, name)) is not None}
    if options.question is not None and _is_file(options.question):
        if flags:
            option = next(iter(flags)).replace("_", "-")
            raise InvalidInputError(
                f"--{option} cannot be used with a file, which sets the budget and the workload. "
                f"Leave it out, or give a workload in place of {options.question}."
            )
        found = read_file(Path(options.question))
    else:
        named = flags.pop("workload", None)
        workloads = [text for text in (options.question, named) if text is not None]
        if len(workloads) != 1:
            raise InvalidInputError(
                "Expected one workload and a budget, such as "
                '"Count()" --epsilon 1 --delta 1e-6, or a file BUDGET.toml, '
                f"not {len(workloads)} workloads."
            )
        found = Document(schema_version=1, budget=BudgetTable(**flags), workload=workloads[0])
    return msgspec.structs.replace(
        found,
        candidates=[*found.candidates, *options.candidate],
        only=[*found.only, *options.only],
        metrics=options.metric or found.metrics,
    )


def _is_file(text: str) -> bool:
    """Whether the argument names a file and not a workload."""
    return text.endswith(".toml") or Path(text).is_file()


def _print(found: Comparison, options: argparse.Namespace) -> None:
    from dpassay.verifier.compare import output

    if options.json:
        say_json(found.to_json())
        return
    if options.quiet:
        if (row := output.advised(found)) is not None:
            say(repr(row.found.mechanism))
        return
    notes = output.notes(found, "--details says why", details=options.details)
    output.show(found, notes, sys.stdout)
    if not found.complete:
        note("interrupted: further candidates were not judged")


def _write(found: Comparison, options: argparse.Namespace) -> None:
    """Write the files that the options name."""
    if options.html is not None:
        from dpassay.figures.comparison import page

        text = page.page(found, ["dpassay", *sys.argv[1:]])
        options.html.write_text(text, encoding="utf-8")
        note(f"wrote {options.html}")
    if options.plot is not None:
        found.plot(options.plot)
        note(f"wrote {options.plot}")
    if options.certificate is not None:
        from dpassay.verifier import prover

        certificates = [row.certificate for row in found.rows if row.certificate is not None]
        prover.write(options.certificate, certificates)
        note(f"wrote {options.certificate} ({len(certificates)} certificates)")


def _exit_code(found: Comparison) -> int:
    """Return 130 after an interruption, 1 if a candidate given by the user is refuted, else 0."""
    from dpassay.verifier.verdict import Verdict

    if not found.complete:
        return ExitCode.INTERRUPTED
    judged = [row for row in found.rows if row.candidate.why == "as given"]
    refuted = any(row.verdict is Verdict.REFUTED for row in judged)
    return ExitCode.REFUTED if refuted else ExitCode.DONE


COMMAND = Command(
    "compare",
    "the best mechanism under a budget",
    _DESCRIPTION,
    _EPILOG,
    _OPTIONS,
    run,
    quiet="print the mechanism to use only",
    hints=_HINTS,
)
