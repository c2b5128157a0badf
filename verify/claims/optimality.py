"""Claims that nothing of a family does better."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, final

import msgspec

from dpassay.accountant.errors import InvalidInputError
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import enclose
from dpassay.verifier.claims import Claim, Decision, Scope, holds, truth
from dpassay.verifier.claims.privacy import VERDICT_WIDTH, in_brackets
from dpassay.verifier.expression import Expression
from dpassay.verifier.verdict import Verdict

# --- What no rival can beat, and what a rival reaches: as expressions, with their conditions ------
# Rivals are of a family, given as plain data whose numbers are expressions:
#
# * `{type = "Gaussian", space, mu, objective}`: noise N(0, Σ) with v'Σ⁻¹v ≤ μ² for every v of a
#   space; its objective is the `total` of the variances, or their `mean`. For a law on the space
#   and M = E[vv'], tr(Σ⁻¹M) ≤ μ² and, by Cauchy and Schwarz, (tr M^{1/2})² ≤ μ² tr Σ. The spaces
#   are `{type = "Box", bounds}`, |v_i| ≤ bounds_i, with independent uniform signs of a corner for
#   the law `{law = "corners"}`, M = diag(bounds²); and `{type = "SparseBox", dimension, sparsity,
#   bound, signed}`, at most `sparsity` entries other than 0, in [0, bound], or in [−bound, bound]
#   if `signed`, with the law `{law = "sparse", ones}`: `ones` entries of size `bound` in uniform
#   places, with uniform signs if `signed`. Without signs M/bound² has the eigenvalue j²/d once and
#   shares (d − 1)(j − j²/d)/(d − 1) among the others, for j = `ones` and d = `dimension`.
# * `{type = "IntegerNoise", E, eta, support}`: laws of Z on −support..support with P(Z = 0) = eta,
#   added to an integer that neighbours change by 1; the objective is the δ of all events, at E =
#   e^ε. A rival is `{probabilities, lowest}`.

OBJECTIVES = ("total", "mean")


class Bound(NamedTuple):
    """An expression for a number, and the comparisons that must be true for it to be one."""

    text: str
    conditions: tuple[str, ...]


def compared(claim: Mapping[str, Any]) -> Bound:
    """Return what a claim of optimality compares its value with: of its rival, or of its dual.

    Raises
    ------
    ValueError
        If the family, or the law on its space, is not known.
    """
    if claim.get("rival"):
        return _reached(claim["among"], claim["rival"])
    return _lower_bound(claim["among"], claim["dual"])


def _lower_bound(among: Mapping[str, Any], dual: Mapping[str, Any]) -> Bound:
    """Return a number that the objective of no member of a Gaussian family falls below."""
    _require_keys("among", among, "type", "space", "mu", "objective")
    space, mu, objective = among["space"], _inner(among["mu"]), among["objective"]
    if among["type"] != "Gaussian" or objective not in OBJECTIVES:
        raise ValueError("expected a family of Gaussians, its objective total or mean")
    if space.get("type") == "Box":
        _require_keys("space", space, "type", "bounds")
        if dual != {"law": "corners"} or not isinstance(space["bounds"], list):
            raise ValueError('expected bounds and the law "corners" for a Box')
        size = str(len(space["bounds"]))
        bounds = [_inner(bound) for bound in space["bounds"]]
        trace, conditions = f"({' + '.join(bounds)})**2", [f"{bound} >= 0" for bound in bounds]
    else:
        _require_keys("space", space, "type", "dimension", "sparsity", "bound", "signed")
        _require_keys("dual", dual, "law", "ones")
        if space["type"] != "SparseBox" or dual["law"] != "sparse":
            raise ValueError('expected a Box, or a SparseBox with the law "sparse"')
        size = _inner(space["dimension"])
        trace, conditions = _sparse(space, _inner(dual["ones"]))
    share = f"/{size}" if objective == "mean" else ""
    return Bound(f"{trace}/{mu}**2{share}", (f"{mu} > 0", *conditions))


def _sparse(space: Mapping[str, Any], ones: str) -> tuple[str, list[str]]:
    size, most, bound = (_inner(space[key]) for key in ("dimension", "sparsity", "bound"))
    conditions = [f"floor({number}) == {number}" for number in (size, most, ones)]
    conditions += [f"1 <= {ones}", f"{ones} <= {most}", f"{most} <= {size}", f"{bound} >= 0"]
    if space["signed"] is True:
        return f"{ones}*{size}*{bound}**2", conditions
    if space["signed"] is not False:
        raise ValueError("expected signed to be true or false")
    along = f"{ones}**2/{size}"
    across = f"({size} - 1)*({ones} - {along})"
    return f"({along} + {across} + 2*sqrt({along}*({across})))*{bound}**2", conditions


def _reached(among: Mapping[str, Any], rival: Mapping[str, Any]) -> Bound:
    """Return the δ of a member of a family of integer noise."""
    _require_keys("among", among, "type", "E", "eta", "support")
    _require_keys("rival", rival, "probabilities", "lowest")
    law, lowest = rival["probabilities"], int(rival["lowest"])
    if among["type"] != "IntegerNoise" or not isinstance(law, list):
        raise ValueError("expected a law of a family of integer noise")
    if not 0 <= -lowest < len(law):
        raise ValueError("expected a law with 0 in its support")
    ratio, eta, support = (_inner(among[key]) for key in ("E", "eta", "support"))
    masses = [_inner(mass) for mass in law]
    conditions = [f"{ratio} >= 1", f"{' + '.join(masses)} == 1"]
    conditions += [f"{mass} >= 0" for mass in masses]
    conditions += [f"{masses[-lowest]} == {eta}", f"{-lowest} <= {support}"]
    conditions += [f"{lowest + len(law) - 1} <= {support}"]
    ways = (_excess(masses, ratio), _excess(masses[::-1], ratio))
    return Bound(f"max({ways[0]}, {ways[1]})", tuple(conditions))


def _excess(law: Sequence[str], ratio: str) -> str:
    """Return Σ max(0, p(z) − E p(z + 1))."""
    following = [*law[1:], "0"]
    terms = zip(law, following, strict=True)
    return " + ".join(f"max(0, {p} - {ratio}*{q})" for p, q in terms)


def _inner(text: object) -> str:
    """Return an expression in brackets; one that would break out of them is refused."""
    try:
        ast.parse(str(text), mode="eval")
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError(f"expected an expression, not {str(text)[:60]!r}") from None
    return f"({text})"


def _require_keys(name: str, data: object, *keys: str) -> None:
    if not isinstance(data, Mapping) or set(data) != set(keys):
        raise ValueError(f"expected {name} to have {', '.join(keys)}, and nothing else")


_MAX_PRECISION = 1 << 11
"""Bits after which a comparison is left undecided."""


@final
class Optimality(Claim, frozen=True, kw_only=True, tag="optimality"):
    """No rival does better than `value`, or than value/(1 + tolerance).

    `among` is the family of the rivals (see the head of this file). A `dual`, a law on the space,
    proves the claim if its bound for all rivals reaches the value; a `rival` that does better
    refutes it.
    """

    value: str
    among: dict[str, Any]
    dual: dict[str, Any] = msgspec.field(default_factory=dict)
    rival: dict[str, Any] = msgspec.field(default_factory=dict)
    tolerance: str = "0"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.among and bool(self.dual) != bool(self.rival):
            self._compared()  # what else is wrong, the rules say
        if exact(self.tolerance, "tolerance").sign < 0:
            raise InvalidInputError(f"Expected tolerance={self.tolerance} ≥ 0.")

    def certified(self, verdict: Verdict) -> dict[str, Any]:
        """Return the claim with its dual, which proves it; else the comparison with the rival."""
        data = super().certified(verdict)
        if self.dual or verdict is Verdict.HOLDS:
            return data
        found = self._compared()
        claim = f"{self.value} <= {self._raised(Expression(found.text)).text}"
        data["assume"] = [*self.assume, *found.conditions]
        return {**data, "kind": "relation", "claim": claim}

    def assertion(self) -> str:
        """Say which rivals have no smaller number."""
        if exact(self.tolerance).sign == 0:
            return f"{self._family()} below {self.value}"
        factor = f"1 + {self.tolerance}"
        return (
            f"{self._family()} below ({self.value})/({factor}): the value is within a factor "
            f"{factor} of optimal"
        )

    def _family(self) -> str:
        match self.among:
            case {"type": "Gaussian", "space": space, "mu": mu, "objective": objective}:
                inner = ", ".join(f"{k}={_text(v)}" for k, v in space.items() if k != "type")
                return (
                    f"no noise N(0, Σ) that is {in_brackets(str(mu))}-GDP over the space "
                    f"{space['type']}({inner}) has a {objective} variance"
                )
            case {"type": "IntegerNoise", "E": ratio, "eta": eta, "support": support}:
                return (
                    f"no law of integer noise on −{support}..{support} with P(0) = {eta} has a "
                    f"delta at exp(epsilon) = {ratio}"
                )
        raise InvalidInputError(f"Expected a known family of rivals, not {self.among}.")

    def decide(self, scope: Scope) -> Decision:
        """Compare the value with that of the rival, or with the bound of the dual."""
        other, value = self._other(scope), Expression(self.value)
        if self.rival:
            beaten = truth(self._raised(other), "<", value, scope)
            verdict = Verdict.REFUTED if beaten else Verdict.UNDECIDED
            reason = f"The rival {'does' if beaten else 'does not certainly do'} better."
        elif not self._reaches(value, other, scope):
            verdict = Verdict.UNDECIDED
            reason = "The lower bound is not shown to reach the value."
        else:
            verdict = Verdict.HOLDS
            reason = "The bound of the dual, for every rival, reaches the value."
        sides = {"value": value, "competitor" if self.rival else "lower_bound": other}
        return Decision(
            verdict=verdict,
            true={
                name: enclose(partial(side.ball, scope), relative_width=VERDICT_WIDTH)
                for name, side in sides.items()
            },
            claimed={"optimal": self.value},
            reason=reason,
        )

    def _reaches(self, value: Expression, bound: Expression, scope: Scope) -> bool | None:
        """Decide value ≤ (1 + tolerance)·bound, exactly where both are exact."""
        met = truth(value, "<=", bound, scope, _MAX_PRECISION)
        if met or exact(self.tolerance).sign == 0:
            return met
        return truth(value, "<=", self._raised(bound), scope, _MAX_PRECISION)

    def _raised(self, bound: Expression) -> Expression:
        """Return (1 + tolerance) times a number."""
        if exact(self.tolerance).sign == 0:
            return bound
        return Expression(f"({bound.text})*(1 + {self.tolerance})")

    def _other(self, scope: Scope) -> Expression:
        """Return what the value is compared with, after checking its conditions."""
        found = self._compared()
        for condition in found.conditions:
            if not holds(condition, scope):
                raise InvalidInputError(f"Expected {condition} for the optimum to be checked.")
        return Expression(found.text)

    def _compared(self) -> Bound:
        try:
            return compared(msgspec.to_builtins(self))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise InvalidInputError(f"The optimum cannot be checked: {error}.") from error


def _text(value: Any) -> str:
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)
