"""Conversions between privacy notions: what a guarantee alone implies, for any mechanism.

Every answer encloses the best statement that follows from the guarantee. Its upper end (for β the
lower end) holds for every mechanism with the guarantee.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, final

from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.errors import InvalidInputError, NotApplicableError, expected, forgiving
from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
from dpassay.accountant.mechanisms.wrappers.composed import Guaranteed
from dpassay.accountant.numbers.exact import Number, exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import guarantees, notions, profile, tradeoff
from dpassay.accountant.questions.least_mu import mu as least_mu

Answers: TypeAlias = Mapping[str, Callable[[Number], Interval]]
"""The functions that compute what follows, by the name of the quantity."""


@final
@dataclass(frozen=True)
class Given:
    """A kind of guarantee that can be converted."""

    name: str
    parts: tuple[str, ...]
    """Short names of its parameters."""
    answers: Callable[..., Answers]
    """Function from its parameters to the quantities that follow."""

    def numbers(self, given: object) -> list[Number]:
        """Return its parameters, which may be given as one string.

        Raises InvalidInputError if their number is wrong.
        """
        if isinstance(given, str):
            text = given.strip()
            text = text[1:-1] if text.startswith("(") and text.endswith(")") else text
            # split at commas and spaces, but not inside brackets as in sqrt( 2 )
            listed: object = re.split(r"[\s,]+(?![^(]*\))", text.strip(" ,"))
        else:
            listed = [given] if len(self.parts) == 1 and not isinstance(given, Sequence) else given
        if not isinstance(listed, Sequence) or len(listed) != len(self.parts):
            raise InvalidInputError(
                f"Expected {self.name}=({', '.join(self.parts)}), not {given!r} (on the command "
                f"line: --{self.name} {','.join(self.parts)})."
            )
        return list(listed)

    def answer(self, numbers: Sequence[Number], asked: str, at: Number) -> Interval:
        """Return the quantity `asked` at `at`; raise NotApplicableError if none follows."""
        answers = self.answers(*numbers)
        if asked not in answers:
            raise NotApplicableError(
                f"No finite {asked} follows from this {self.name} guarantee alone: for some "
                f"mechanism with this guarantee there is none. What follows: {', '.join(answers)}."
            )
        return answers[asked](at)


ASKED = {
    "epsilon": "delta",
    "delta": "epsilon",
    "alpha": "beta",
    "tpr_at_fpr": "true_positive_rate",
    "order": "renyi",
    "rho": "rho",
    "to_mu": "mu",
}
"""The quantity that each argument of `convert` asks for."""


@forgiving
def convert(
    *,
    mu: Number | None = None,
    pure: Number | None = None,
    approximate: Sequence[Number] | None = None,
    renyi: Sequence[Number] | None = None,
    zcdp: Number | None = None,
    epsilon: Number | None = None,
    delta: Number | None = None,
    alpha: Number | None = None,
    tpr_at_fpr: Number | None = None,
    order: Number | None = None,
    rho: bool | Number = False,
    to_mu: bool = False,
) -> Interval:
    """Enclose the best guarantee of another kind that follows from a given one, for any mechanism.

    Parameters
    ----------
    mu, pure, approximate, renyi, zcdp
        The given guarantee, exactly one of: μ-GDP; ε-DP; (ε, δ)-DP; Rényi (order, divergence);
        ρ-zCDP.
    epsilon, delta, alpha, tpr_at_fpr, order, rho, to_mu
        The question, exactly one of: δ at this ε; ε at this δ; β at this α; the largest power at
        this false positive rate; the Rényi divergence of this order; the least ρ (rho=True); the
        least μ (to_mu=True).

    Raises
    ------
    InvalidInputError
        If there is not exactly one guarantee and one question, or a number is out of range.
    NotApplicableError
        If no finite answer follows.

    Examples
    --------
    >>> print(convert(mu=1, epsilon=1))
    0.126936737507
    """
    if not isinstance(rho, bool) and zcdp is None:
        zcdp, rho = rho, False
    given = {"mu": mu, "pure": pure, "approximate": approximate, "renyi": renyi, "zcdp": zcdp}
    asked = {
        "epsilon": epsilon,
        "delta": delta,
        "alpha": alpha,
        "tpr_at_fpr": tpr_at_fpr,
        "order": order,
        "rho": 0 if rho else None,
        "to_mu": 0 if to_mu else None,
    }
    if not isinstance(rho, bool) or not isinstance(to_mu, bool):
        raise InvalidInputError(
            "rho=True and to_mu=True are questions. To give rho or mu, write zcdp=… or mu=…."
        )
    known = [entry for entry in GIVEN if given[entry.name] is not None]
    wanted = [name for name, at in asked.items() if at is not None]
    if len(known) != 1 or len(wanted) != 1:
        raise InvalidInputError(
            f"Expected one guarantee ({', '.join(given)}) and one question ({', '.join(asked)}). "
            'Write convert(zcdp="0.1", delta="1e-5").'
        )
    (entry,), (name,) = known, wanted
    return entry.answer(entry.numbers(given[entry.name]), ASKED[name], asked[name])  # type: ignore[arg-type]  # is not None


def _of_mechanism(mechanism: Mechanism) -> Answers:
    """Return the answers for a mechanism that is the worst one with the guarantee."""
    return {
        "delta": lambda at: profile.delta(mechanism, at),
        "epsilon": lambda at: profile.epsilon(mechanism, at),
        "beta": lambda at: tradeoff.beta(mechanism, at),
        "true_positive_rate": lambda at: tradeoff.power(mechanism, at),
        "renyi": lambda at: guarantees.renyi(mechanism, at),
        "rho": lambda _: guarantees.rho(mechanism),
        "mu": lambda _: least_mu(mechanism),
    }


def _of_mu(mu: Number) -> Answers:
    shift = exact(mu, "mu")
    if shift.sign < 0:
        raise expected("mu", mu, "≥ 0")
    return _of_mechanism(Gaussian(1, shift) if shift.sign else Guaranteed(0))


def _of_pure(epsilon: Number) -> Answers:
    return _of_mechanism(Guaranteed(epsilon))


def _of_approximate(epsilon: Number, delta: Number) -> Answers:
    worst = Guaranteed(epsilon, delta)
    answers = _of_mechanism(worst)
    infinite = ("mu", "rho", "renyi") if worst.delta.sign else ()  # its largest loss is infinite
    return {name: answer for name, answer in answers.items() if name not in infinite}


def _of_renyi(order: Number, divergence: Number) -> Answers:
    most, value = exact(order, "order"), exact(divergence, "divergence")

    def renyi(at: Number) -> Interval:
        if exact(at, "order") <= most and exact(at, "order").rational != 0:
            return notions.exactly(value)
        raise NotApplicableError(
            f"A divergence of order {most} bounds those of smaller orders only, not of {at}."
        )

    return {
        "delta": lambda at: notions.delta_of_renyi(most, value, at),
        "epsilon": lambda at: notions.epsilon_of_renyi(most, value, at),
        "beta": lambda at: _beta(notions.power_of_renyi(most, value, at)),
        "true_positive_rate": lambda at: notions.power_of_renyi(most, value, at),
        "renyi": renyi,
    }


def _of_zcdp(rho: Number) -> Answers:
    slope = exact(rho, "rho")

    def renyi(at: Number) -> Interval:
        order = exact(at, "order")
        if order < exact(1):
            raise expected("order", at, "≥ 1")
        return notions.exactly(slope * order)

    return {
        "delta": lambda at: notions.delta_of_zcdp(slope, at),
        "epsilon": lambda at: notions.epsilon_of_zcdp(slope, at),
        "beta": lambda at: _beta(notions.power_of_zcdp(slope, at)),
        "true_positive_rate": lambda at: notions.power_of_zcdp(slope, at),
        "renyi": renyi,
        "rho": lambda _: notions.exactly(slope),
    }


def _beta(power: Interval) -> Interval:
    """Return 1 − power, rounded outward."""
    low, high = (Interval.of_exact(1 - Fraction(end), 40) for end in (power.upper, power.lower))
    return low.hull(high)


GIVEN = (
    Given("mu", ("M",), _of_mu),
    Given("pure", ("E",), _of_pure),
    Given("approximate", ("E", "D"), _of_approximate),
    Given("renyi", ("R", "V"), _of_renyi),
    Given("zcdp", ("R",), _of_zcdp),
)
