"""How far known integer noise is from the optimum at the same (ε, δ).

Run from the root of the repository: python -P benchmarks/integer_noise.py

The discrete Gaussian and the geometric law (`DiscreteLaplace`) get the least noise that is
(ε, δ)-DP, by the accountant. The truncated Laplace law is e^{−ε|z|/S} on −A..A, for the least A.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from flint import ctx

from dpassay.accountant.budget.calibrate import EpsilonDelta, calibrate
from dpassay.accountant.mechanisms.additive.integers import IntegerNoise
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.interval import Interval
from dpassay.accountant.questions import profile
from dpassay.lp.integer_noise import IntegerNoiseProblem, optimal_integer_noise

CASES = (
    (1, "0.1", "1e-2"),
    (1, "0.5", "1e-6"),
    (1, "1", "1e-2"),
    (1, "1", "1e-6"),
    (1, "2", "1e-6"),
    (2, "1", "1e-6"),
    (5, "1", "1e-4"),
)
SUPPORT = 60
WIDTH = Fraction(1, 10**9)


def truncated_laplace(epsilon: str, delta: str, sensitivity: int) -> IntegerNoise:
    """Return the truncated law of the least A, with masses rounded to 25 digits."""
    with ctx.workprec(128):
        shrink = exact(epsilon).ball() / -sensitivity
        decay = Fraction(Interval.of_ball(shrink.exp(), 30).lower)
    for largest in range(sensitivity, 400):
        side = [decay**z for z in range(1, largest + 1)]
        total = 1 + 2 * sum(side)
        side = [Fraction(int(mass / total * 10**25), 10**25) for mass in side]
        law = [*reversed(side), 1 - 2 * sum(side), *side]
        mechanism = IntegerNoise(law, -largest, sensitivity)
        if Fraction(profile.delta(mechanism, epsilon, adjacency=None).upper) <= Fraction(delta):
            return mechanism
    raise ValueError(f"The truncated law needs more than 400 at epsilon={epsilon}, delta={delta}.")


def rows() -> Iterator[tuple[str, ...]]:
    """Yield the optimum and the variances divided by it."""
    for sensitivity, epsilon, delta in CASES:
        optimum = optimal_integer_noise(
            IntegerNoiseProblem("variance", SUPPORT, delta, epsilon, sensitivity=sensitivity)
        )
        target = EpsilonDelta(epsilon, delta)
        mechanisms = [
            calibrate(
                name, target, sensitivity=sensitivity, digits=8, relative_width=WIDTH
            ).mechanism
            for name in ("DiscreteGaussian", "DiscreteLaplace")
        ]
        mechanisms.append(truncated_laplace(epsilon, delta, sensitivity))
        with ctx.workprec(128):
            variances = [float(mechanism.variances()[0].mid()) for mechanism in mechanisms]
        least = float(optimum.value.lower)
        yield (
            str(sensitivity),
            epsilon,
            delta,
            f"{least:.8g}",
            *(f"{variance / least:.4f}" for variance in variances),
            f"{optimum.seconds * 1000:.0f} ms",
        )


def main() -> None:
    """Print the table in Markdown."""
    print("| S | ε | δ | least variance | discrete Gaussian | geometric | truncated | time |")
    print("|---|---|---|---|---|---|---|---|")
    for row in rows():
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
