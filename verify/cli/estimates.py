"""`dpassay profile --estimate`: answers in floats, said to be estimates wherever they are shown."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any, final

from dpassay.verifier.cli.shell import say, say_json
from dpassay.verifier.tables import columns

if TYPE_CHECKING:
    from dpassay.accountant.core.mechanism import Mechanism

KEYS = {
    "epsilon": "delta",
    "delta": "epsilon",
    "alpha": "beta",
    "tpr_at_fpr": "true_positive_rate",
}
"""The options that have estimates, and the keys of their answers."""
_DIGITS_OF_LOGARITHMS = 6
"""Digits of a number of which a logarithm down to −1e6 is known in floats."""


@final
@dataclass(frozen=True)
class Estimate:
    """One number without proof."""

    option: str
    argument: str
    value: float | Decimal
    """A decimal below the smallest float."""
    error: float | Decimal
    """About how far it is from the true number."""

    def to_json(self) -> dict[str, Any]:
        """Return {option: argument, "estimate", "error"}; texts for what JSON has no number for."""
        return {
            self.option: self.argument,
            "estimate": _json(self.value),
            "error": _json(self.error),
        }

    def text(self, digits: int) -> str:
        """Return the value to so many digits, one from its logarithm to those that it has."""
        digits = _DIGITS_OF_LOGARITHMS if isinstance(self.value, Decimal) else digits
        return f"{self.value:.{digits}g}"


def _json(value: float | Decimal) -> float | str:
    finite = isinstance(value, float) and abs(value) < float("inf")
    return float(value) if finite else str(value)


def require_estimates(options: argparse.Namespace, questions: Iterable[str]) -> None:
    """Raise InvalidInputError for what has no estimate, or is about enclosures."""
    from dpassay.accountant.errors import InvalidInputError

    others = [name for name in questions if name not in KEYS]
    refused = [name for name in (*others, "export") if getattr(options, name)]
    refused += ["relative_width"] * (options.relative_width is not None)
    refused += ["method"] * (options.method != "auto")
    if refused:
        raise InvalidInputError(
            f"Expected no --{refused[0].replace('_', '-')} with --estimate: estimates are of "
            "--epsilon, --delta, --alpha and --tpr-at-fpr, and have no engine or width to name. "
            "Ask for the enclosure, without --estimate."
        )
    if not any(getattr(options, name) for name in KEYS) and options.plot is None:
        raise InvalidInputError(
            "Expected --epsilon, --delta, --alpha, --tpr-at-fpr or --plot with --estimate."
        )


def estimates(mechanism: Mechanism, options: argparse.Namespace) -> Iterator[Estimate]:
    """Ask every question that the options name."""
    from dpassay.accountant.core.validate import probability
    from dpassay.accountant.numbers.exact import exact
    from dpassay.accountant.questions import estimate

    ask: dict[str, Callable[..., Any]] = {
        "epsilon": estimate.estimate_delta,
        "delta": estimate.estimate_epsilon,
        "alpha": estimate.estimate_beta,
        "tpr_at_fpr": estimate.estimate_power,
    }
    for option in KEYS:
        for argument in getattr(options, option) or ():
            known = {"adjacency": options.adjacency}
            if option == "delta":  # its logarithm: 1e-400 is no float
                delta = probability("delta", argument)
                at = {"log_delta": float("-inf") if delta.sign == 0 else _log(delta)}
                value = ask[option](mechanism, **at, **known)
            else:
                point = float(exact(argument, option))
                value = ask[option](mechanism, point, **known)
                if option == "epsilon" and value == 0:
                    logarithm = estimate.estimate_log_delta(mechanism, point, **known)
                    yield Estimate(option, argument, *_below_floats(logarithm))
                    continue
            yield Estimate(option, argument, float(value), value.error)


def _below_floats(logarithm: Any) -> tuple[float | Decimal, float | Decimal]:
    """Return e^logarithm, which is below the smallest float, and its error."""
    if logarithm == float("-inf"):
        return 0.0, 0.0
    with localcontext(prec=_DIGITS_OF_LOGARITHMS):
        value = Decimal(float(logarithm)).exp()
        return value, value * Decimal(logarithm.error)


def _log(delta: Any) -> float:
    return float(delta.ball().log().mid())


def show_estimates(mechanism: Mechanism, options: argparse.Namespace) -> None:
    """Print the estimates, as JSON, as bare numbers or as a table."""
    found = list(estimates(mechanism, options))
    if options.json:
        result: dict[str, Any] = {
            "schema_version": 1,
            "mechanism": repr(mechanism),
            "adjacency": options.adjacency,
            "rigour": "estimate",
        }
        for option, key in KEYS.items():
            mine = [each.to_json() for each in found if each.option == option]
            if mine:
                result[f"{key}_estimate"] = mine[0] if len(mine) == 1 else mine
        say_json(result)
        return
    if options.quiet:
        for each in found:
            say(each.text(15))
        return
    say(repr(mechanism) + (f"  ({options.adjacency})" if options.adjacency else ""))
    rows = [
        (
            f"  {KEYS[each.option]}",
            f"at {each.option.replace('_', '-')} {each.argument}",
            f"estimate {each.text(12)} ± {each.error:.1g}",
        )
        for each in found
    ]
    if rows:
        say(columns(rows))
