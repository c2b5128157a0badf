"""`dpassay calibrate`: the mechanism with the least noise that has a guarantee."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, Any

from dpassay.accountant.errors import InvalidInputError, expected
from dpassay.verifier.cli.shell import Command, answer
from dpassay.verifier.terminal import working

if TYPE_CHECKING:
    from dpassay.accountant.budget.allotment import Share
    from dpassay.accountant.budget.target import Target


# --- `dpassay calibrate --find count|sampling-prob|epsilon`: how much fits into a budget ----------


def allot(options: argparse.Namespace, target: Target) -> int:
    """Find the largest count, sampling rate or share of ε, and print it."""
    from dpassay.accountant import notation
    from dpassay.accountant.budget import allotment

    if options.fixed or options.set or options.schedule:
        raise InvalidInputError(
            f"Expected no KEY=VALUE and no --schedule with --find {options.find}. Write the whole "
            "mechanism, such as 'Gaussian(standard_deviation=2)'."
        )
    if options.count < 1:
        raise expected("count", options.count, "≥ 1")
    if options.find == "epsilon":
        return _allot_epsilon(options, target)
    if options.shares:
        raise InvalidInputError("Expected --shares together with --find epsilon only.")
    if options.name is None or "(" not in options.name:
        raise InvalidInputError(
            f"Expected a mechanism with its noise for --find {options.find}, such as "
            "'Gaussian(standard_deviation=2)'."
        )
    mechanism = notation.parse(options.name)
    if options.find == "count":
        most = allotment.most_releases(mechanism, target, adjacency=options.adjacency)
        data = {**_head(options, target), "count": most}
        return answer(options, data, f"most releases  {most}", quiet=str(most))
    if options.adjacency not in (None, "add-remove"):
        raise InvalidInputError(
            f"Expected --adjacency add-remove with --find sampling-prob, not {options.adjacency}."
        )
    share = allotment.largest_sampling_prob(mechanism, target, options.count)
    name = f"largest sampling_prob of {options.count} releases"
    return _show(options, target, name, "sampling_prob", share)


def _allot_epsilon(options: argparse.Namespace, target: Target) -> int:
    """Split ε, equally or in the proportions that are given."""
    from dpassay.accountant.budget import allotment
    from dpassay.accountant.numbers.exact import ExactReal, exact

    if options.name is not None:
        raise InvalidInputError(
            "Expected --count or --shares, and no mechanism, with --find epsilon: the shares hold "
            "for all releases of that guarantee."
        )
    weights = [entry.strip() for entry in options.shares.split(",")] if options.shares else []
    if not weights:
        share = allotment.shares_of_epsilon(target, [1], count=options.count)
        return _show(options, target, f"epsilon of each of {options.count}", "epsilon", share)
    share = allotment.shares_of_epsilon(target, weights, count=options.count)
    found = [str(ExactReal.of_rational(share.safe) * exact(weight)) for weight in weights]
    data = {"shares": weights, "epsilon": found, "largest_unit": share.largest.to_json()}
    text = f"epsilon in proportion {', '.join(weights)}  {', '.join(found)}"
    return answer(options, {**_head(options, target), **data}, text, quiet="\n".join(found))


def _head(options: argparse.Namespace, target: Target) -> dict[str, Any]:
    return {"schema_version": 1, "adjacency": options.adjacency, "target": str(target)}


def _show(options: argparse.Namespace, target: Target, name: str, key: str, share: Share) -> int:
    from dpassay.accountant.numbers.exact import ExactReal

    safe = str(ExactReal.of_rational(share.safe))
    data = {**_head(options, target), key: safe, f"largest_{key}": share.largest.to_json()}
    text = f"{name}  {safe}  (proved to keep the budget; the largest is {share.largest})"
    return answer(options, data, text, quiet=safe)


_DESCRIPTION = """\
Find the least noise that gives a mechanism a guarantee. The printed number is rounded to more noise
and certified by evaluating it again.
"""
_EPILOG = """\
examples:
  dpassay calibrate Gaussian --epsilon 1 --delta 1e-5
  dpassay calibrate Laplace --epsilon 0.1 l1_sensitivity=2
  dpassay calibrate CorrelatedGaussian --mu 0.5 --adjacency add-remove dimension=1000
  dpassay calibrate Laplace --epsilon 1 --delta 1e-6 --count 16
  dpassay calibrate EllipticalGaussian --rho 0.1 sensitivities=[1,2,8]
  dpassay calibrate "Gaussian(standard_deviation=100)" --find count --epsilon 1 --delta 1e-5
  dpassay calibrate "Gaussian(standard_deviation=1)" --find sampling-prob --count 1000 \\
      --epsilon 1 --delta 1e-5
  dpassay calibrate --find epsilon --count 10 --epsilon 1 --delta 1e-6
  dpassay calibrate --find epsilon --shares 1,2,1/2 --mu 1
"""
_OPTIONS = """\
name NAME ?  the mechanism's name, such as Gaussian; with --find, a whole mechanism
fixed KEY=VALUE *  the other arguments of the mechanism
--set KEY=VALUE []  the same as an option
--epsilon E  for (epsilon, delta)-DP
--delta D  with --epsilon; 0 (pure) if left out
--mu M  for mu-Gaussian DP
--rho R  for rho-zCDP
--find {noise,count,sampling-prob,epsilon} =noise  the least noise, or the most releases, the
    largest sampling rate, the largest shares of epsilon that keep the guarantee
--shares W1,W2,… =  with --find epsilon: in these proportions
--digits N :int =12  significant digits (default 12)
--count N :int =1  releases that share the guarantee
--sampling-prob Q =1  Poisson-subsample each release
--direction {add,remove}  with --epsilon: this direction only
--schedule F1,F2,… =  releases with these multiples of the spread
--adjacency
"""
_TARGETS = ("epsilon", "delta", "mu", "rho")
"""Options that are easily written like the arguments of a mechanism."""
_NOTATION = re.compile(r"\s*(\[|[A-Z]\w*\()")


def run(options: argparse.Namespace) -> int:
    """Calibrate and print."""
    from dpassay.accountant import notation
    from dpassay.accountant.budget.calibrate import calibrate
    from dpassay.accountant.budget.target import read_target
    from dpassay.accountant.mechanisms import DESCRIPTIONS

    if options.find != "noise":
        return allot(options, read_target(vars(options)))
    if options.shares:
        raise InvalidInputError("Expected --shares together with --find epsilon only.")
    if options.name is None:
        raise InvalidInputError("Expected the name of a mechanism, such as Gaussian.")
    asked = read_target(vars(options))
    fixed = fixed_arguments([*options.fixed, *options.set])
    known = notation.argument_names(options.name) if options.name in DESCRIPTIONS else fixed
    for key in _TARGETS:
        if key in fixed and key not in known:
            raise InvalidInputError(
                f"{key} is not an argument of {options.name}. For the guarantee, write it as an "
                f"option: --{key} {fixed[key]}."
            )
    with working(sys.stderr, silent=options.quiet):
        found = calibrate(
            options.name,
            asked,
            adjacency=options.adjacency,
            direction=options.direction,
            digits=options.digits,
            count=options.count,
            sampling_prob=options.sampling_prob,
            schedule=[entry for entry in options.schedule.split(",") if entry],
            **fixed,
        )
    data = {"schema_version": 1, "adjacency": options.adjacency, **found.to_json()}
    return answer(options, data, str(found), quiet=repr(found.mechanism))


def fixed_arguments(entries: list[str]) -> dict[str, Any]:
    """Read KEY=VALUE entries; a value is a number, a truth value, a list or a description."""
    found: dict[str, Any] = {}
    for entry in entries:
        key, equals, value = entry.partition("=")
        if not equals or not key.isidentifier():
            raise InvalidInputError(
                f"Expected KEY=VALUE, not {entry!r}. Write an argument such as l2_sensitivity=2."
            )
        if key in found:
            raise InvalidInputError(f"Argument {key!r} is given twice.")
        if key in _TAKEN:
            raise InvalidInputError(f"Write {key} as the option --{key.replace('_', '-')}.")
        found[key] = _value(value)
    return found


_TAKEN = ("adjacency", "count", "digits", "direction", "sampling_prob", "schedule")


def _value(text: str) -> object:
    from dpassay.accountant import notation

    if text in ("True", "False"):
        return text == "True"
    return notation.parse_value(text) if _NOTATION.match(text) else text


COMMAND = Command(
    "calibrate",
    "the least noise for a guarantee",
    _DESCRIPTION,
    _EPILOG,
    _OPTIONS,
    run,
    quiet="print the mechanism only",
)
