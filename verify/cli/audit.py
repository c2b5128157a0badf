"""`dpassay audit`: run a mechanism and refute what is claimed of it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpassay.verifier.cli.shell import (
    OF_MECHANISMS,
    Command,
    ExitCode,
    add_adjacency,
    add_output_options,
    checked_path,
    decimal,
    note,
    say,
    say_json,
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
_MANY = 500_000
"""Samples from which on all processors draw: fewer are drawn sooner than processes start."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add = parser.add_argument
    add("target", metavar="TARGET", help="the mechanism, callable or command to audit")
    parser.hints = {  # type: ignore[attr-defined]  # is a `Parser`
        **OF_MECHANISMS,
        **dict.fromkeys(("--epsilon", "--eps"), "Write the claim as --claim 1,1e-5"),
    }
    add("--claim", metavar="CLAIM", help="the claim to test; without one, an estimate")
    add(
        "--delta",
        type=decimal,
        metavar="D",
        help="without a claim: bound epsilon at this delta (0)",
    )
    add(
        "--pair",
        nargs=2,
        action="append",
        metavar=("DATASET", "NEIGHBOUR"),
        help="two neighbouring datasets; repeatable",
    )
    add(
        "--search",
        metavar="KIND",
        help="try neighbours that often break mechanisms: count, number, vector, table or rows",
    )
    add(
        "--samples",
        type=decimal,
        default=1e5,
        metavar="N",
        help="runs on each side (default 100000)",
    )
    add(
        "--until-refuted",
        "--until",
        action="store_true",
        help="audit with more and more runs, up to N a side, until the claim is refuted",
    )
    add(
        "--confidence",
        type=decimal,
        default=0.95,
        metavar="C",
        help="confidence of a refutation (default 0.95)",
    )
    bits = parser.add_mutually_exclusive_group()
    bits.add_argument(
        "--no-bits",
        dest="bits",
        action="store_false",
        default=None,
        help="ignore the last bits of floats",
    )
    bits.add_argument(
        "--bits", action="store_true", default=None, help="make the last bits part of the claim"
    )
    add("--plot", type=Path, metavar="FILE", help="plot the result (.png, .pdf or .svg)")
    add("--html", type=Path, metavar="FILE", help="write the result as a page")
    add("--seed", type=int, metavar="S", help="seed of all randomness")
    add("--workers", type=int, metavar="W", help="processes (default: all cores)")
    add("--timeout", type=decimal, metavar="SECONDS", help="limit for one block of runs")
    add("--certificate", type=Path, metavar="FILE", help="write the certificate")
    add(
        "--errors-are-outputs",
        action="store_true",
        help="count a run that raises as an output, instead of ending",
    )
    add("--command", action="store_true", help="TARGET is a command")
    add_adjacency(parser)
    add_output_options(parser, quiet="print nothing; the exit code is the answer")


def run(options: argparse.Namespace) -> int:
    """Audit and print."""
    from dpassay.accountant.core.asking import Drawable
    from dpassay.accountant.errors import InvalidInputError
    from dpassay.verifier.ask import apart, read_claim
    from dpassay.verifier.sentence import read_sentence

    claim = None if options.claim is None else read_claim(options.claim)
    if not options.command:
        options.target, said = read_sentence(options.target)
        if said and claim is not None:
            raise InvalidInputError("TARGET states its own claim; leave --claim out.")
        claim = said or claim
    claim, options.adjacency = apart(claim, options.adjacency)
    if claim is None and options.until_refuted:
        raise InvalidInputError("Expected a claim: --claim 1, --claim 1,1e-5 or --claim mu=0.5.")
    if claim is not None and options.delta is not None:
        raise InvalidInputError("A claim has its own delta. Write --claim 1,1e-5.")
    picture = checked_path(options.plot, Drawable.drawer)
    for path in (options.certificate, options.html):
        if path is not None and not path.parent.is_dir():
            raise InvalidInputError(f"Cannot write {path}: there is no folder {path.parent}.")
    result = _audited(options, _mechanism(options), claim, _pairs(options))
    if options.certificate is not None:
        from dpassay.verifier.prover import write

        recipe = _recipe(options, claim, result.training + result.samples)
        write(options.certificate, [result.certificate(recipe)])
    if options.json:
        say_json(result.to_json())
    elif not options.quiet:
        say(str(result))
    if picture is not None:
        result.plot(picture)
        note(f"wrote {picture}")
    if options.html is not None:
        options.html.write_text(page(result), "utf-8")
        note(f"wrote {options.html}")
    return ExitCode.REFUTED if result.refuted else ExitCode.DONE


def page(result: Any) -> str:
    """Return an audit as a page of HTML that needs no other file, its picture within it."""
    import io

    figure, drawn = result.plot(), io.StringIO()
    figure.savefig(drawn, format="svg")
    picture = drawn.getvalue()
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>dpassay audit</title>'
        f"</head><body>{result._repr_html_()}{picture[picture.index('<svg') :]}</body></html>\n"
    )


def _audited(
    options: argparse.Namespace, mechanism: Any, claim: Any, pairs: list[tuple[Any, Any]] | None
) -> AuditResult:
    from dpassay.verifier.audit import audit, audit_until_refuted
    from dpassay.verifier.progress import Line

    arguments: dict[str, Any] = {
        "pairs": pairs,
        "samples": _samples(options.samples),
        "significance": significance(options.confidence),
        "bits": options.bits,
    }
    for name in ("seed", "adjacency", "timeout", "errors_are_outputs"):
        arguments[name] = getattr(options, name)
    if not options.until_refuted:
        arguments["delta"] = options.delta or 0
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
    from dpassay.verifier.audit.runs.target import named

    return Printing(options.target, options.timeout) if options.command else named(options.target)


def _recipe(options: argparse.Namespace, claim: Any, samples: int) -> dict[str, Any] | None:
    """Return what `dpassay check --replay` needs; None for what it does not draw again."""
    unusual = options.bits is not None or claim is None
    if options.command or options.errors_are_outputs or unusual:
        return None
    return {
        "target": options.target,
        "samples": samples,
        "pairs": options.pair,
        "search": options.search,
        "adjacency": options.adjacency,
    }


def _pairs(options: argparse.Namespace) -> list[tuple[Any, Any]] | None:
    from dpassay.accountant.errors import InvalidInputError
    from dpassay.verifier.audit import neighbours
    from dpassay.verifier.audit.kinds.replay import literal
    from dpassay.verifier.audit.runs.target import is_notation

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


def _samples(value: float) -> int:
    from dpassay.accountant.errors import expected

    if not value >= 1 or not value < 1e15 or value != int(value):
        raise expected("samples", value, "to be an integer", "Write 100000 or 1e5.")
    return int(value)


def significance(confidence: float) -> float:
    """Return 1 − confidence, without the rounding of floats."""
    from dpassay.accountant.errors import expected

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
    from dpassay.verifier.workers import end_with

    end_with(parent)
    sys.modules["numpy"].random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()


COMMAND = Command(
    "audit",
    "run a mechanism: estimate epsilon, or test a claim",
    _DESCRIPTION,
    _EPILOG,
    configure,
    run,
)
