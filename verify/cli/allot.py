"""`dpassay calibrate --find count|sampling-prob|epsilon`: how much fits into a budget."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from dpassay.verifier.cli.shell import ExitCode, say, say_json

if TYPE_CHECKING:
    from dpassay.accountant.budget.allotment import Share
    from dpassay.accountant.budget.target import Target

FOUND = ("noise", "count", "sampling-prob", "epsilon")


def allot(options: argparse.Namespace, target: Target) -> int:
    """Find the largest count, sampling rate or share of ε, and print it."""
    from dpassay.accountant import notation
    from dpassay.accountant.budget import allotment
    from dpassay.accountant.errors import InvalidInputError, expected

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
        if options.json:
            say_json({**_head(options, target), "count": most})
        else:
            say(str(most) if options.quiet else f"most releases  {most}")
        return ExitCode.DONE
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
    from dpassay.accountant.budget.target import EpsilonDelta
    from dpassay.accountant.errors import InvalidInputError
    from dpassay.accountant.numbers.exact import ExactReal, exact

    if options.name is not None:
        raise InvalidInputError(
            "Expected --count or --shares, and no mechanism, with --find epsilon: the shares hold "
            "for all releases of that guarantee."
        )
    weights = [entry.strip() for entry in options.shares.split(",")] if options.shares else []
    if not weights:
        share = (
            allotment.equal_epsilon(target, options.count)
            if isinstance(target, EpsilonDelta)
            else allotment.shares_of_epsilon(target, [1], count=options.count)
        )
        return _show(options, target, f"epsilon of each of {options.count}", "epsilon", share)
    share = allotment.shares_of_epsilon(target, weights, count=options.count)
    found = [str(ExactReal.of_rational(share.safe) * exact(weight)) for weight in weights]
    if options.json:
        unit = {"largest_unit": share.largest.to_json()}
        say_json({**_head(options, target), "shares": weights, "epsilon": found, **unit})
    elif options.quiet:
        say("\n".join(found))
    else:
        say(f"epsilon in proportion {', '.join(weights)}  {', '.join(found)}")
    return ExitCode.DONE


def _head(options: argparse.Namespace, target: Target) -> dict[str, Any]:
    return {"schema_version": 1, "adjacency": options.adjacency, "target": str(target)}


def _show(options: argparse.Namespace, target: Target, name: str, key: str, share: Share) -> int:
    from dpassay.accountant.numbers.exact import ExactReal

    safe = str(ExactReal.of_rational(share.safe))
    if options.json:
        say_json({**_head(options, target), key: safe, f"largest_{key}": share.largest.to_json()})
    elif options.quiet:
        say(safe)
    else:
        say(f"{name}  {safe}  (proved to keep the budget; the largest is {share.largest})")
    return ExitCode.DONE
