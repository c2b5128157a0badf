"""Certificates of audits: what runs say as a theorem, and counts or scores as its witness."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Any

from dpassay.accountant.errors import InvalidInputError
from dpassay.verifier.audit.guarantees import Outcome, in_one_line
from dpassay.verifier.audit.runs import NOT_REPEATABLE
from dpassay.verifier.prover import completed

if TYPE_CHECKING:
    from dpassay.verifier.audit.guarantees import Guarantee
    from dpassay.verifier.audit.result import AuditResult

_DIGITS = 7
"""Of p-values and bounds: those of the result, rounded to the side on which they remain true."""
_LARGEST = 700.0
"""ε beyond cannot be distinguished from infinity."""
_ROOM = Decimal("1e-7")
"""Relative: a bound is lowered by so much, which is more than the rounding of what found it."""


def audit(result: AuditResult, replay: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the certificate of an audit; `replay` says how its runs were drawn."""
    tested, rule = result.tested, result.rule
    verdict = Outcome.of(tested.p_value, result.significance)
    theorem = {
        **_common("audit", verdict, result, result.guarantee),
        "target": result.target,
        "tested": rule.point.to_json(),
        "p_value": _up(tested.p_value),
        "share": _exactly(rule.share),
        "epsilon_lower_bound": _down(min(tested.epsilon, _LARGEST)),
    }
    event = {key: _plain(value) for key, value in rule.event().items()}
    witness = {
        **_drawn(result, replay),
        "design": tested.counts.design.value,
        "favours": rule.event()["favours"],
        "marks": rule.marks.tolist(),
        "histogram": tested.histogram.tolist(),
        "event": {**event, "partition": _plain(rule.partition.to_json())},
        "pairs_searched": result.pairs,
        "training_runs": result.training,
        "pair": [in_one_line(dataset) for dataset in result.pair],
    }
    return completed(theorem, witness)


def one_run(result: AuditResult) -> dict[str, Any]:
    """Return the certificate of one run with canaries.

    Raises InvalidInputError where nothing was claimed.
    """
    held = result.guesses
    if held is None or not result.claimed:
        raise InvalidInputError("A certificate needs a claim: name one, such as claim=(1, 1e-5).")
    verdict = Outcome.of(result.p_value, result.significance)
    theorem = {
        **_common("one-run-audit", verdict, result, result.guarantee),
        "p_value": _up(result.p_value),
        "delta": _exactly(held.bounded_at),
        "epsilon_lower_bound": _down(min(result.epsilon, _LARGEST)),
    }

    def steps(points: Any) -> list[dict[str, Any]]:
        return [{"epsilon": e, "delta": d, "reversed": bool(back)} for e, d, back in points]

    witness = {
        "seed": str(held.seed),
        "scores": [_exactly(score) for score in held.scores.tolist()],
        "included": "".join("01"[coin] for coin in held.included.tolist()),
        "guesses_tried": list(held.right),
        "guesses": held.number,
        "epsilon_guesses": held.best,
        "tested": steps(held.tested),
    }
    return completed(theorem, witness)


def _common(kind: str, verdict: Outcome, result: Any, claim: Guarantee) -> dict[str, Any]:
    return {
        "kind": kind,
        "verdict": verdict.value,
        "claim": claim.to_json(),
        "significance": _exactly(result.significance),
    }


def _drawn(result: Any, replay: Mapping[str, Any] | None) -> dict[str, Any]:
    how = {} if replay is None or NOT_REPEATABLE in result.notes else {"replay": dict(replay)}
    return {"seed": str(result.seed), **how}


def _plain(value: Any) -> Any:
    """Return nested data without numbers that have a point: they stand as texts."""
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    return str(value)


def _exactly(value: float) -> str:
    """Return a double as a decimal that reads as it is written elsewhere: 0.05, not 0.0500…28."""
    return _text(Decimal(repr(float(value))))


def _up(value: float) -> str:
    return _text(Context(prec=_DIGITS, rounding=ROUND_CEILING).create_decimal(repr(float(value))))


def _down(value: float) -> str:
    """Return a bound that is a little lower."""
    bound = Decimal(repr(min(float(value), 1e300))) * (1 - _ROOM)
    return _text(Context(prec=_DIGITS, rounding=ROUND_FLOOR).create_decimal(bound))


def _text(value: Decimal) -> str:
    return str(value).lower() if value else "0"
