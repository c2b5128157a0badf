"""The laws of single releases, a row each. What is asked of every row is in test_laws.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import mpmath
import pytest
from mpmath import mpf

from dpassay.accountant.numbers.exact import ExactReal, exact


@final
@dataclass(frozen=True, kw_only=True)
class Law:
    """A law: mechanisms that have it, where they are asked, and what is known of them."""

    notation: str
    """With {} for each argument, the sensitivity last."""
    cases: Sequence[tuple[object, ...]]
    """Arguments of the mechanisms that every run asks."""
    slow: Sequence[tuple[object, ...]] = ()
    """Those that the run of slow tests asks as well."""
    adjacency: str | None = None
    """The relation that is asked, where the others have another pair."""
    epsilons: str = ""
    """Where δ and tails are compared with `accountant/reference.py`, atoms of the loss included."""
    finite: bool = True
    """Whether every Rényi divergence is finite, and compared with that file too."""
    largest: Callable[[Any], ExactReal] | None = None
    """The largest loss, where that is the least ε with δ = 0."""
    grows: bool = False
    """Whether more sensitivity is never better: δ at 1, …, 5 does not fall."""
    density: Callable[[Any, mpf], mpf] | None = None
    """Of symmetric noise: the density, or the mass of integers, at x ≥ 0 up to a factor."""
    kinks: Callable[[Any], Iterable[mpf]] | None = None
    """Of such a density; the last one ends it, or stands where no more than 1e-20 is left."""
    integers: bool = False
    """Whether the noise is."""
    program: bool = True
    """Whether a refutation is told with a program (`_DESCRIPTIONS` of `verify/refutation.py`)."""

    @property
    def text(self) -> str:
        """The notation of its first mechanism."""
        return self.notation.format(*[*self.cases, *self.slow][0])


def _staircase(noise: Any, x: mpf) -> mpf:
    """From the definition of its authors: [0, γ), [γ, 1) and on, in units of the sensitivity."""
    x = x / noise.sensitivity.mpf()
    step, b = mpmath.floor(x), mpmath.exp(-noise.epsilon.mpf())
    return b**step * (1 if x - step < noise.gamma.mpf() else b)


def _steps(noise: Any) -> list[mpf]:
    unit, gamma = noise.sensitivity.mpf(), noise.gamma.mpf()
    return [unit * place for step in range(90) for place in (step + gamma, mpf(step + 1))]


LAWS = [
    Law(
        notation="Gaussian(standard_deviation={}, l2_sensitivity={})",
        cases=[(1, 1)],
        slow=[("'sqrt(50)'", "'sqrt(2)'"), (40, "'1/3'")],
        epsilons="-1 0 0.3 2",
        grows=True,
        density=lambda noise, x: mpmath.exp(-((x / noise.standard_deviation.mpf()) ** 2) / 2),
    ),
    Law(
        notation="Laplace(scale={}, l1_sensitivity={})",
        cases=[(1, 1)],
        slow=[("0.3", 2), ("'sqrt(2)'", "'1/3'")],
        epsilons="-9 -0.1 0 0.2 0.9 9",
        largest=lambda noise: noise.l1_sensitivity / noise.scale,
        grows=True,
        density=lambda noise, x: mpmath.exp(-x / noise.scale.mpf()),
    ),
    Law(
        notation="Logistic(scale={}, sensitivity={})",
        cases=[("0.3", 2)],
        slow=[("'sqrt(2)'", "'1/3'")],
        epsilons="-0.1 0 0.2 9",
        largest=lambda noise: noise.sensitivity / noise.scale,
        grows=True,
        density=lambda noise, x: mpmath.sech(x / noise.scale.mpf() / 2) ** 2,
    ),
    Law(
        notation="TruncatedLaplace(scale={}, bound={}, sensitivity={})",
        cases=[(2, 5, 1)],
        slow=[("'1/3'", "'4/3'", "'4/3'"), ("'sqrt(2)'", 9, 2)],
        epsilons="-5 -0.1 0 0.3 0.6",
        finite=False,
        grows=True,
        density=lambda noise, x: mpmath.exp(-x / noise.scale.mpf()) * (x <= noise.bound.mpf()),
        kinks=lambda noise: [noise.bound.mpf()],
        program=False,
    ),
    Law(
        notation="Staircase(epsilon={}, gamma={}, sensitivity={})",
        cases=[(2, "0.9", "'sqrt(2)'"), (1, 0, 1)],
        slow=[(1, "'1/4'", 1), (4, 1, 2)],
        epsilons="-5 -0.3 0 0.1 0.29",
        largest=lambda noise: noise.epsilon,
        density=_staircase,
        kinks=_steps,
    ),
    Law(
        notation="DiscreteLaplace(scale={}, sensitivity={})",
        cases=[(2, 3)],
        slow=[("0.3", 1), ("'sqrt(2)'", 4)],
        epsilons="0 0.3 -0.7 -3 1/7 1.01 sqrt(1/2)",
        largest=lambda noise: exact(noise.sensitivity) / noise.scale,
        grows=True,
        density=lambda noise, z: mpmath.exp(-z / noise.scale.mpf()),
        integers=True,
    ),
    Law(
        notation="DiscreteGaussian(parameter={}, sensitivity={})",
        cases=[("0.05", 1), (1, 1)],
        slow=[("'sqrt(2)'", 3), (40, 7)],
        epsilons="0 0.3 -0.7 1/7 3.01 sqrt(1/2)",
        grows=True,
        density=lambda noise, z: mpmath.exp(-z * z / noise.parameter.mpf() / 2),
        integers=True,
    ),
    Law(
        notation="Skellam(variance={}, sensitivity={})",
        cases=[("0.25", 1)],
        slow=[("'sqrt(2)'", 2), (40, 7), (1000, 1)],
        epsilons="0 0.3 -0.7 1/7 2.5 sqrt(1/2)",
        finite=False,
        grows=True,
        density=lambda noise, z: mpmath.besseli(z, noise.variance.mpf()),
        integers=True,
        program=False,
    ),
    Law(
        notation="IntegerNoise(probabilities=['1/8', 0, '1/2', '1/4', '1/8'], lowest=-2, "
        "sensitivity={})",
        cases=[(1,)],
        slow=[(2,)],
        epsilons="0.3 -0.6 1/3 2 sqrt(2)",
        finite=False,
        program=False,
    ),
    Law(
        notation="MixtureOfGaussians(standard_deviation={}, sensitivities={}, sampling_probs={})",
        cases=[],
        slow=[(1, [0, 1, 2], ["0.2", "0.6", "0.2"]), ("'3/2'", [1, "sqrt(2)"], ["0.2", "0.8"])],
        adjacency="add-remove",
        epsilons="1/3",
        finite=False,
        program=False,
    ),
    Law(
        notation="RandomizedResponse(epsilon={}, categories={})",
        cases=[("1.5", 4)],
        epsilons="-3 -1 0 1 1.4",
        largest=lambda response: response.epsilon,
    ),
    Law(
        notation="LaplaceVector(scale={}, shifts={})",
        cases=[(2, [1, "1/2"])],
        slow=[(4, [1, "1/3", "-1/2"])],
        largest=lambda noise: exact(sum(abs(s.rational) for s in noise.shifts)) / noise.scale,
        program=False,
    ),
    Law(
        notation="TruncatedGeometric(scale={}, low={}, high={}, sensitivity={})",
        cases=[(3, 0, 10, 2)],
        finite=False,
        largest=lambda noise: exact(noise.sensitivity) / noise.scale,
    ),
    Law(
        notation="Tabulated(p={}, q={})",
        cases=[(["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"])],
        epsilons="-1/2 0 1",
        largest=lambda _: exact("log(3)"),
    ),
]


def each(holds: Callable[[Law], object]) -> pytest.MarkDecorator:
    """Ask a test of every mechanism of the laws for which this holds, as `law` and `text`."""
    found = []
    for law in filter(holds, LAWS):
        for arguments in [*law.cases, *law.slow]:
            text, late = law.notation.format(*arguments), arguments in law.slow
            found.append(pytest.param(law, text, marks=[pytest.mark.slow] * late, id=text))
    return pytest.mark.parametrize(("law", "text"), found)
