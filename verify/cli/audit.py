"""`dpassay audit`: run a mechanism and refute what is claimed of it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpassay.accountant.core.arrays import NDArray, np
from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.verifier.cli.shell import (
    OF_MECHANISMS,
    Command,
    ExitCode,
    answer,
    checked_path,
    note,
    require_folders,
)

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from dpassay.verifier.audit import AuditResult


_DESCRIPTION = """\
Run a mechanism on two neighbouring datasets. Without a claim: bounds and estimates of epsilon and
of delta(epsilon), with the histogram of both sides. With a claim: an exact test at the requested
confidence. The values of outputs decide; the last bits of floats get a separate verdict. TARGET is
a mechanism, such as "Laplace(scale=1)", or package.module:callable for a function
mechanism(dataset, rng), or (with --command) a command that prints one output per line and in which
{dataset}, {size} and {seed} are filled in.
"""
_EPILOG = """\
The claim: 1 (or epsilon=1), 1,1e-5 (or epsilon=1,delta=1e-5), mu=0.5, rho=0.1, order=8,renyi=0.5
or a mechanism whose whole profile is claimed. Datasets are Python literals: 0, [1, 2], "text".
A refutation at confidence 0.95 is a hint. To confirm it: --confidence 0.999999 and another seed.

examples:
  dpassay audit "Laplace(scale=1)" --plot laplace.png
  dpassay audit mypackage.release:mean --pair "[0.1]" "[0.1, 0.9]" --delta 1e-5
  dpassay audit "Laplace(scale=1)" --claim 0.9 --seed 7
  dpassay audit "Gaussian(standard_deviation=2)" --claim mu=0.4 --until-refuted
  dpassay audit mypackage.release:noisy_count --claim 1 --search count --samples 1000000
  dpassay audit mypackage.release:mean --claim 1,1e-6 --pair "[0.1]" "[0.1, 0.9]" --json
"""
_OPTIONS = """\
target TARGET  the mechanism, callable or command to audit
--claim CLAIM  the claim to test; without one, an estimate
--delta D :decimal  without a claim: bound epsilon at this delta (0)
--pair DATASET NEIGHBOUR ...  two neighbouring datasets; repeatable
--search KIND  try neighbours that often break mechanisms: count, number, vector, table or rows
--samples N :decimal =1e5  runs on each side (default 100000)
--until-refuted, --until  audit with more and more runs, up to N a side, until the claim is refuted
--confidence
--no-bits
| --bits @  make the last bits part of the claim
--plot FILE  plot the result (.png, .pdf or .svg)
--html FILE  write the result as a page
--seed S :int  seed of all randomness
--workers W :int  processes (default: all cores)
--timeout SECONDS :decimal  limit for one block of runs
--certificate FILE  write the certificate
--command  TARGET is a command
--adjacency
"""
_HINTS = {
    **OF_MECHANISMS,
    **dict.fromkeys(("--epsilon", "--eps"), "Write the claim as --claim 1,1e-5"),
}
_QUIET = "print nothing; the exit code is the answer"
_MANY = 500_000
"""Samples from which on all processors draw: fewer are drawn sooner than processes start."""


def run(options: argparse.Namespace) -> int:
    """Audit and print."""
    from dpassay.accountant.core.asking import Drawable
    from dpassay.verifier.ask import read_claim, read_sentence, split_neighbours

    claim = None if options.claim is None else read_claim(options.claim)
    if not options.command:
        options.target, said = read_sentence(options.target)
        if said and claim is not None:
            raise InvalidInputError("TARGET states its own claim; leave --claim out.")
        claim = said or claim
    claim, options.adjacency = split_neighbours(claim, options.adjacency)
    if claim is None and options.until_refuted:
        raise InvalidInputError("Expected a claim: --claim 1, --claim 1,1e-5 or --claim mu=0.5.")
    if claim is not None and options.delta is not None:
        raise InvalidInputError("A claim has its own delta. Write --claim 1,1e-5.")
    picture = checked_path(options.plot, Drawable.drawer)
    require_folders(options.certificate, options.html)
    result = _audited(options, _mechanism(options), claim, _pairs(options))
    recipe = _recipe(options, claim, result.training + result.samples)
    code = _report(result, options, picture, recipe)
    if options.html is not None:
        options.html.write_text(page(result), "utf-8")
        note(f"wrote {options.html}")
    return code


_STYLE = (
    "body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; "
    "padding: 1.2rem 1rem; } table { display: block; overflow-x: auto; } "
    "td:only-of-type { overflow-wrap: anywhere; } "
    "svg { max-width: 100%; height: auto; }"
)
"""Of the page of an audit."""
_INCHES = (4.6, 7.0)
"""Its picture: the letters are readable where a phone shows it at its own width."""


def page(result: Any) -> str:
    """Return an audit as a page of HTML that needs no other file, its picture within it."""
    import io

    figure, drawn = result.plot(), io.StringIO()
    figure.set_size_inches(_INCHES)
    figure.savefig(drawn, format="svg")
    picture = drawn.getvalue()
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width, initial-scale=1"><title>dpassay audit</title>'
        f"<style>{_STYLE}</style></head><body>{result._repr_html_()}"
        f"{picture[picture.index('<svg') :]}</body></html>\n"
    )


def _audited(
    options: argparse.Namespace, mechanism: Any, claim: Any, pairs: list[tuple[Any, Any]] | None
) -> AuditResult:
    from dpassay.verifier.audit import audit, audit_until_refuted
    from dpassay.verifier.terminal import Line

    arguments: dict[str, Any] = {
        "pairs": pairs,
        "samples": options.samples,
        "significance": significance(options.confidence),
        "bits": options.bits,
    }
    for name in ("seed", "adjacency", "timeout"):
        arguments[name] = getattr(options, name)
    if not options.until_refuted:
        arguments["delta"] = str(options.delta or 0)
    line = Line(sys.stderr, silent=options.quiet)
    if pairs is not None and len(pairs) > 1 and not options.quiet:
        note(f"trying {len(pairs)} pairs of datasets; --samples 1e4 is a first look")
    try:
        with _workers(options) as executor:
            return (audit_until_refuted if options.until_refuted else audit)(
                mechanism,
                claim,
                executor=executor,
                progress=lambda done, total: line.say(f"{done} of {total} blocks"),
                **arguments,
            )
    finally:
        line.close()


def _mechanism(options: argparse.Namespace) -> Any:
    from dpassay.verifier.audit import Command as Printing
    from dpassay.verifier.audit.runs import named

    return Printing(options.target, options.timeout) if options.command else named(options.target)


def _recipe(options: argparse.Namespace, claim: Any, samples: int) -> dict[str, Any] | None:
    """Return what `dpassay check --replay` needs; None for what it does not draw again."""
    unusual = options.bits is not None or claim is None
    if options.command or unusual:
        return None
    return {
        "target": options.target,
        "samples": samples,
        "pairs": options.pair,
        "search": options.search,
        "adjacency": options.adjacency,
    }


def _pairs(options: argparse.Namespace) -> list[tuple[Any, Any]] | None:
    from dpassay.verifier.ask import is_notation
    from dpassay.verifier.audit import neighbours
    from dpassay.verifier.audit.auditor import literal

    pairs = [(literal(first), literal(second)) for first, second in options.pair or ()]
    if options.search:
        relation = options.adjacency or "add-remove"
        pairs += neighbours(options.search, adjacency=relation)
    if not pairs and not is_notation(options.target):
        raise InvalidInputError(
            "Expected neighbouring datasets: --pair DATASET NEIGHBOUR, such as "
            '--pair "[0]" "[0, 1]", or --search count, number, vector, table or rows.'
        )
    return pairs or None


def significance(confidence: float) -> float:
    """Return 1 − confidence, without the rounding of floats."""
    if not 0 < confidence < 1:
        raise expected("confidence", confidence, "in (0, 1)", "Write 0.95 for 95 %.")
    return float(f"{1 - confidence:.12g}")


@contextmanager
def _workers(options: argparse.Namespace) -> Iterator[Executor | None]:
    """Hold a pool of processes for a long audit of something that can be sent to them."""
    count = options.workers or (os.cpu_count() or 1 if options.samples > _MANY else 1)
    if count < 2 or options.command:
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor

    executor = ProcessPoolExecutor(count, initializer=_begin, initargs=(os.getpid(),))
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def _begin(parent: int) -> None:
    """Let a worker end with its parent, and draw other numbers: a forked one has its generators."""
    from dpassay.verifier.processes import end_with

    end_with(parent)
    sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()


COMMAND = Command(
    "audit",
    "run a mechanism: estimate epsilon, or test a claim",
    _DESCRIPTION,
    _EPILOG,
    _OPTIONS,
    run,
    quiet=_QUIET,
    hints=_HINTS,
)


# --- `dpassay audit-samples`, `audit-scores` and `audit-one-run`: audits of files of numbers ------

_FILES = """
Files are .npy, .npz with one array, or .csv and .txt with one run per line and no header."""
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


_BOUNDS = """\
--confidence
--seed S :int  seed of the random split
--claim CLAIM  1, 1,1e-5, mu=0.5, rho=0.1, order=8,renyi=0.5, or a mechanism whose profile is
    claimed
--certificate FILE  write the certificate
"""
_DRAWN = "--plot FILE  draw both sides and the trade-off function (.png, .pdf or .svg)"
_OF_SAMPLES = f"""\
first FIRST :path  a file of numbers
second SECOND :path  a file of numbers
{_BOUNDS}
--delta D :decimal =0  where epsilon is bounded (0)
--no-bits
{_DRAWN}
"""
_OF_SCORES = f"""\
in IN :path  a file of numbers
out OUT :path  a file of numbers
{_BOUNDS}
--delta D :decimal =1e-5  where epsilon is bounded (1e-05)
{_DRAWN}
"""
_OF_ONE_RUN = f"""\
scores SCORES :path ?  a file of numbers
included INCLUDED :path ?  1 or 0 for each
{_BOUNDS}
--delta D :decimal =1e-5  where epsilon is bounded (1e-05)
--guesses R1,R2,…  numbers of guesses, fixed in advance; they share the significance
--plan EPSILON TRUTH :decimal  print how many canaries refute EPSILON if the truth is TRUTH
{_DRAWN}
"""


def run_samples(options: argparse.Namespace) -> int:
    """Audit rows and print."""
    from dpassay.verifier.audit import audit_samples

    words = {"bits": options.bits, "names": (options.first.name, options.second.name)}
    return _of_files(audit_samples, options, options.first, options.second, **words)


def run_scores(options: argparse.Namespace) -> int:
    """Audit scores and print."""
    from dpassay.verifier.audit import audit_scores

    return _of_files(audit_scores, options, getattr(options, "in"), options.out)


def run_one_run(options: argparse.Namespace) -> int:
    """Audit one run, or plan it, and print."""
    from dpassay.verifier.audit import audit_one_run, canaries_needed

    if options.plan is not None:
        level = significance(options.confidence)
        needed = canaries_needed(*options.plan, delta=options.delta, significance=level)
        data = {"schema_version": 1, "canaries": needed}
        return answer(options, data, str(needed), quiet=str(needed))
    if options.included is None:
        raise InvalidInputError("Expected SCORES and INCLUDED, or --plan EPSILON TRUTH.")
    options.seed = options.seed or 0
    guesses = _whole_numbers(options.guesses)
    return _of_files(audit_one_run, options, options.scores, options.included, guesses=guesses)


def _of_files(
    audited: Callable[..., AuditResult],
    options: argparse.Namespace,
    first: Path,
    second: Path,
    **words: Any,
) -> int:
    """Audit what two files hold, and print."""
    from dpassay.accountant.core.asking import Drawable
    from dpassay.verifier.ask import read_claim

    path = checked_path(options.plot, Drawable.drawer)
    result = audited(
        _read(first),
        _read(second),
        None if options.claim is None else read_claim(options.claim),
        delta=str(options.delta),
        significance=significance(options.confidence),
        seed=options.seed,
        **words,
    )
    return _report(result, options, path)


def _report(
    result: Any, options: argparse.Namespace, picture: Path | None = None, *recipe: Any
) -> int:
    """Write a certificate, print a result and draw it; return 1 where a claim is refuted."""
    if options.certificate is not None:
        from dpassay.verifier.prover import write

        write(options.certificate, [result.certificate(*recipe)])
    answer(options, result.to_json(), str(result))
    if picture is not None:
        result.plot(picture)
        note(f"wrote {picture}")
    return ExitCode.REFUTED if result.refuted else ExitCode.DONE


def _whole_numbers(text: str | None) -> list[int] | None:
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
    except InvalidInputError:
        raise
    except (ValueError, EOFError) as error:
        why = f"expected numbers, one run a line and no header: {error}"
        if path.suffix in (".npy", ".npz"):
            why = (
                "expected an array of numbers (arrays of objects are not read: they are programs)."
            )
        raise InvalidInputError(f"{path}: {why}") from None
    raise InvalidInputError(f"{path}: expected a file that ends in .npy, .npz, .csv or .txt.")


COMMANDS = (
    Command(
        "audit-samples",
        "bound epsilon, or test a claim, from given outputs",
        _SAMPLES,
        "examples:\n  dpassay audit-samples a.npy b.npy --claim 1,1e-5\n"
        "  dpassay audit-samples a.npy b.npy --delta 1e-5 --plot audit.png\n",
        _OF_SAMPLES,
        run_samples,
        quiet=_QUIET,
    ),
    Command(
        "audit-scores",
        "bound epsilon from the scores of a canary",
        _SCORES,
        "examples:\n  dpassay audit-scores in.npy out.npy --delta 1e-5 --plot roc.png\n",
        _OF_SCORES,
        run_scores,
        quiet=_QUIET,
    ),
    Command(
        "audit-one-run",
        "bound epsilon from many canaries in one run",
        _ONE_RUN,
        "examples:\n  dpassay audit-one-run scores.npy included.npy --claim 1,1e-5\n"
        "  dpassay audit-one-run --plan 8 16\n",
        _OF_ONE_RUN,
        run_one_run,
        quiet=_QUIET,
    ),
)
