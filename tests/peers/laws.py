"""Rows about one law: what dp-accounting's privacy-loss classes and distributions say of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
from flint import arb, ctx

from dpassay.accountant.budget.calibrate import calibrate
from dpassay.accountant.budget.target import EpsilonDelta
from dpassay.accountant.core.adjacency import Adjacency
from dpassay.accountant.core.mechanism import Mechanism
from dpassay.accountant.core.pair import Pair
from dpassay.accountant.errors import DpassayError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    IntegerNoise,
    Laplace,
    MixtureOfGaussians,
    PoissonSubsampled,
    Tabulated,
)
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.numbers.interval import Interval, ball, enclose
from dpassay.accountant.pairs.subsampled import GaussianMixturePair, mixture
from dpassay.accountant.questions import accuracy, profile, tradeoff
from dpassay.accountant.questions.least_mu import mu as least_mu
from dpassay.verifier.foreign import events
from tests.peers.discretised import discretised
from tests.peers.rows import FLOAT, WIDTH, Row, first, narrowest, near, tolerance

BOTH = Adjacency.ADD_REMOVE


def mechanism_of(law: Row) -> Mechanism:
    """Return the mechanism of a privacy-loss class of dp-accounting."""
    family, noise = law["family"], law["noise"]
    if family == "Mixture":
        weights = [Fraction(weight) for weight in law["sampling_probs"]]
        total = sum(weights, start=Fraction(0))
        if abs(total - 1) < Fraction(1, 10**12):
            weights = [weight / total for weight in weights]
        return MixtureOfGaussians(noise, law["sensitivities"], weights)
    if family == "RandomizedResponse":
        event = type("RandomizedResponseDpEvent", (), {})()
        event.noise_parameter, event.num_buckets = noise, law["buckets"]
        return events.mechanism_of(event, "REPLACE_ONE")
    moved, q = law["sensitivity"], law["sampling_prob"]
    if law["direction"] == "REPLACE":
        moved = 2 * Fraction(moved)
    one: Mechanism
    match family:
        case "Gaussian":
            one = Gaussian(noise, moved)
        case "Laplace":
            one = Laplace(noise, moved)
        case "DiscreteLaplace":
            one = DiscreteLaplace(1 / Fraction(noise) if Fraction(noise) else 0, moved)
        case _:
            one = _discrete_gaussian(law, moved)
    return one if Fraction(q) == 1 else PoissonSubsampled(one, q)


def _discrete_gaussian(law: Row, moved: Any) -> Mechanism:
    """Return discrete Gaussian noise; truncated where the row says so, as a table of a pair.

    σ² has the sign of σ, so that a negative σ is refused.
    """
    sigma = Fraction(law["noise"])
    if "truncation" not in law:
        return DiscreteGaussian(sigma * abs(sigma), moved)
    masses, shift = truncated_masses(sigma, law["truncation"]), [Fraction(0)] * int(moved)
    return Tabulated([*shift, *masses], [*masses, *shift])


def truncated_masses(sigma: Fraction, bound: int) -> list[Fraction]:
    """Return the masses ∝ e^{−z²/(2σ²)} on |z| ≤ bound, each to 40 digits, of sum 1."""
    with ctx.workprec(200):
        weights = [
            Fraction((ball(-(z * z) / (2 * sigma * sigma))).exp().str(40, radius=False))
            for z in range(-bound, bound + 1)
        ]
    return [weight / sum(weights) for weight in weights]


def pair_of(law: Row) -> Pair:
    """Return the pair of the direction that the row names."""
    if law["direction"] == "REPLACE" and Fraction(law["sampling_prob"]) != 1:
        q, sigma = Fraction(law["sampling_prob"]), exact(law["noise"])
        step = exact(law["sensitivity"]) / sigma
        zero, share = ExactReal.of_rational(0), [1 - q, q]
        return GaussianMixturePair(mixture(share, [zero, step]), mixture(share, [zero, -step]))
    worst = mechanism_of(law).worst_case(BOTH)
    (found,) = worst.add if law["direction"] == "ADD" else worst.remove
    return found


def _delta(row: Row) -> str | None:
    pair = pair_of(row["law"])
    return first(
        near(row, _hockey_stick(pair, at), expected, f"delta({at})")
        for at, expected in zip(row["at"], row["expected"], strict=True)
    )


def _hockey_stick(pair: Pair, at: Any) -> Interval:
    return enclose(lambda: pair.hockey_stick(exact(at)))


def _above(pair: Pair, at: Fraction) -> Interval:
    return enclose(
        lambda: pair.tails(ExactReal.of_rational(at)).p_above, relative_width=Fraction(1, 10**20)
    )


def _loss(row: Row) -> str | None:
    """P(L > l + t) ≤ P(X ≤ x) ≤ P(L > l − t), where the loss falls with the output x."""
    pair = pair_of(row["law"])
    if math.isinf(float(row["loss"])):
        return None if pair.infinity_mass() > 0 else "no loss is infinite"
    loss = Fraction(row["loss"])
    slack = Fraction(row["tolerance"])
    cumulative = _output_cdf(row["law"], row["x"])
    least, most = _above(pair, loss + slack), _above(pair, loss - slack)
    agrees = Fraction(least.lower) <= cumulative + FLOAT and cumulative - FLOAT <= Fraction(
        most.upper
    )
    said = f"P(L > {loss}) in [{least.lower}, {most.upper}], P(X <= {row['x']}) = {cumulative}"
    return None if agrees else said


def _output_cdf(law: Row, x: Any) -> Fraction:
    """Return P(X ≤ x) of the first law of a pair, to 30 digits, by its formula."""
    if math.isinf(float(x)):
        return Fraction(int(float(x) > 0))
    at = Fraction(x)
    moves = [Fraction(0)]
    weights = [Fraction(1)]
    if law["family"] == "Mixture" and law["direction"] == "REMOVE":
        moves = [Fraction(s) for s in law["sensitivities"]]
        weights = [Fraction(w) for w in law["sampling_probs"]]
    elif law["family"] != "Mixture" and law["direction"] != "ADD":
        q = Fraction(law["sampling_prob"])
        moves, weights = [Fraction(0), Fraction(law["sensitivity"])], [1 - q, q]
    return sum(
        (w * _noise_cdf(law, at + s) for w, s in zip(weights, moves, strict=True)),
        start=Fraction(0),
    )


def _noise_cdf(law: Row, x: Fraction) -> Fraction:
    with ctx.workprec(200):
        noise = ball(Fraction(law["noise"]))
        match law["family"]:
            case "Laplace":
                tail = (-ball(abs(x)) / noise).exp() / 2
                value = tail if x < 0 else 1 - tail
            case "DiscreteLaplace":
                odds, steps = (-noise).exp(), math.floor(x)
                tail = odds ** (-steps if steps < 0 else steps + 1) / (1 + odds)
                value = tail if steps < 0 else 1 - tail
            case "DiscreteGaussian":
                reach = int(20 * float(law["noise"])) + 40
                masses = {
                    z: (-(arb(z) ** 2) / (2 * noise**2)).exp() for z in range(-reach, reach + 1)
                }
                value = sum(
                    (m for z, m in masses.items() if z <= x), start=arb(0)
                ) / sum(masses.values(), start=arb(0))  # fmt: skip
            case _:
                value = (-ball(x) / noise / arb(2).sqrt()).erfc() / 2
        return Fraction(value.str(40, radius=False))


def _tail(row: Row, *, below: bool) -> str | None:
    """The loss of a tail is stated to 1e-5 of itself, as its probability is."""
    pair = pair_of(row["law"])

    def found(at: Any) -> Interval:
        middle = Fraction(at)
        around = [middle + sign * abs(middle) / 10**5 for sign in (-1, 1)]
        ends = [pair.tails(ExactReal.of_rational(end)) for end in around]
        low, high = sorted(t.p_below if below else t.p_above for t in ends)
        return Interval.of_ball(low.union(high))

    def message(at: Any, expected: Any) -> str | None:
        value = found(at)
        slack = tolerance(row, expected)
        low, high = Fraction(value.lower) - slack, Fraction(value.upper) + slack
        inside = low <= Fraction(expected) <= high
        return None if inside else f"the tail at {at} is {value}, expected {expected}"

    return first(
        message(at, expected) for at, expected in zip(row["at"], row["expected"], strict=True)
    )


def _atoms(row: Row) -> str | None:
    pair, nudge = pair_of(row["law"]), Fraction(1, 10**7)

    def found(at: Any) -> Interval:
        if math.isinf(float(at)):
            return enclose(pair.infinity_mass)
        low, high = _above(pair, Fraction(at) - nudge), _above(pair, Fraction(at) + nudge)
        return enclose(lambda: low.ball() - high.ball(), relative_width=Fraction(1, 10**9))

    return first(
        near(row, found(at), expected, f"the atom at {at}")
        for at, expected in zip(row["at"], row["expected"], strict=True)
    )


def _ends(row: Row) -> str | None:
    pair = pair_of(row["law"])
    found = [enclose(lambda: -pair.reverse().max_loss()), enclose(pair.max_loss)]
    return first(
        near(row, value, expected) for value, expected in zip(found, row["expected"], strict=True)
    )


def _dots(row: Row) -> str | None:
    """Compare masses on a grid: between its ends, `connect the dots` is one law for one grid.

    What the ends have depends on where the library cuts the loss off.
    """
    lowest, size = row["first"], len(row["expected"])
    with ctx.workprec(128):
        masses = discretised(pair_of(row["law"]), Fraction(row["step"]), lowest, lowest + size - 1)
    found = [Interval.of_ball(mass) for mass in masses]
    rows = list(enumerate(zip(found, row["expected"], strict=True)))
    return first(
        near(row, value, expected, f"mass {lowest + i}") for i, (value, expected) in rows[1:-1]
    )


def _noise(row: Row) -> str | None:
    """The least noise is within the tolerance: δ is met at one end and missed at the other."""
    middle, slack = Fraction(row["expected"]), Fraction(row["tolerance"])
    more = -1 if row["law"]["family"] == "DiscreteLaplace" else 1

    def delta(noise: Fraction) -> Interval:
        law = {**row["law"], "noise": noise}
        if law["direction"] != "BOTH":
            pair = pair_of(law)
            return enclose(lambda: pair.hockey_stick(exact(row["epsilon"])))
        whole = Composed(mechanism_of(law), row["count"])
        return narrowest(
            {},
            lambda width: profile.delta(
                whole, row["epsilon"], adjacency=BOTH, relative_width=width
            ),
        )

    target = Fraction(row["delta"])
    enough = delta(middle + more * slack)
    too_little = delta(middle - more * slack)
    if Fraction(enough.upper) <= target <= Fraction(too_little.lower):
        return None
    return f"delta is {enough} and {too_little} at the ends of the tolerance, not around {target}"


def _refused(row: Row) -> str | None:
    try:
        mechanism_of(row["law"])
    except DpassayError:
        return None
    return "the parameters are accepted"


def _target_refused(row: Row) -> str | None:
    try:
        target = EpsilonDelta(row["epsilon"], row["delta"])
        if Fraction(row["delta"]) == 0 and row["law"]["family"].endswith("Gaussian"):
            calibrate(row["law"]["family"], target)
        mechanism_of(row["law"])
    except DpassayError:
        return None
    return "the target is accepted"


def _deviation(row: Row) -> str | None:
    masses = truncated_masses(Fraction(row["law"]["noise"]), row["law"]["truncation"])
    variance = accuracy.variance(IntegerNoise(masses, -row["law"]["truncation"]))[0]
    return near(row, enclose(lambda: variance.ball().sqrt(), relative_width=WIDTH), row["expected"])


def _power(row: Row) -> str | None:
    mechanism = mechanism_of(row["law"])
    return first(
        near(row, tradeoff.power(mechanism, at), expected, f"power at {at}")
        for at, expected in zip(row["at"], row["expected"], strict=True)
    )


def _mu(row: Row) -> str | None:
    found = least_mu(mechanism_of(row["law"]))
    return near(row, found, row["expected"], "mu")


def _log_moment(row: Row) -> str | None:
    """ln E_Q[(dP/dQ)^order] = (order − 1) D_order, against the integral of its definition."""
    pair, order = pair_of(row["law"]), exact(row["order"])

    def log_moment() -> arb:
        return (order.ball() - 1) * pair.renyi(order.ball())

    found = enclose(log_moment, relative_width=Fraction(1, 10**6))
    with mpmath.workdps(40):
        a, mu = order.mpf(), (exact(row["law"]["sensitivity"]) / exact(row["law"]["noise"])).mpf()
        q = exact(row["law"]["sampling_prob"]).mpf()

        def density(x: Any) -> Any:
            return mpmath.npdf(x) * (1 - q + q * mpmath.exp(mu * x - mu * mu / 2)) ** a

        places = sorted({x + side for x in (0, mu, a * mu) for side in (-20, -5, 0, 5, 20)})
        expected = mpmath.log(mpmath.quad(density, places))
    return near(row, found, mpmath.nstr(expected, 25), "log A")


QUESTIONS: dict[str, Callable[[Row], str | None]] = {
    "above": lambda row: _tail(row, below=False),
    "atoms": _atoms,
    "below": lambda row: _tail(row, below=True),
    "delta": _delta,
    "deviation": _deviation,
    "dots": _dots,
    "ends": _ends,
    "log-moment": _log_moment,
    "loss": _loss,
    "mu": _mu,
    "noise": _noise,
    "power": _power,
    "refused": _refused,
    "target-refused": _target_refused,
}
