"""Twelve training recipes of tutorials: what their accountant says, what is true, and why.

    python -P benchmarks/recipes.py

Settings and loaders were read at the sources: tensorflow/privacy 03035d5, pytorch/opacus 4d0ebc8,
google-deepmind/jax_privacy 8967688. "RDP" and "PLD" are dp-accounting's accountants with the orders
and events of the recipe, "CLT" the formula of TF-Privacy's gdp_accountant. Opacus' own default,
PRV, is not installed here: PLD stands for it. What is true is `dpassay.dpsgd` with the batches that
the loader makes. A loader that shuffles a buffer only, or drops what does not fill a batch, is
covered: its upper end needs no random order, and the event of its lower end is equally likely in
every place of a full batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import dp_accounting
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from scipy.optimize import brentq
from scipy.stats import norm

import dpassay

_OLD = [1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 3.0, 3.5, 4.0, 4.5, *range(5, 64), 128, 256, 512]
_ORDERS = [*(1 + x / 10 for x in range(1, 100)), *range(12, 64)]
"""Those of compute_dp_sgd_privacy, and of the tutorials."""


@dataclass(frozen=True)
class Recipe:
    """One training run as its source has it."""

    source: str
    batch: int
    size: int
    epochs: int
    steps: int
    """That are accounted for."""
    sampling: str
    accountant: str
    delta: str = "1e-5"
    noise: str = ""
    target: float = 0.0
    """The ε for which the accountant chooses the noise."""
    loader: bool = False
    """Whether the rate is 1 over the number of batches, rounded up."""

    @property
    def rate(self) -> tuple[int, int]:
        """The share of the records in a batch, as it is accounted for."""
        return (1, math.ceil(self.size / self.batch)) if self.loader else (self.batch, self.size)

    def reported(self, noise: float) -> float:
        """Return what the accountant says."""
        q = self.rate[0] / self.rate[1]
        if self.accountant == "CLT":
            mu = math.sqrt(math.expm1(noise**-2) * self.epochs * self.size / self.batch) * q

            def excess(x: float) -> float:
                tail = math.exp(x) * norm.cdf(-x / mu - mu / 2)
                return float(norm.cdf(mu / 2 - x / mu) - tail) - float(self.delta)

            return float(brentq(excess, 0, 500))
        orders = _OLD if self.source.endswith("mnist_dpsgd_tutorial.py") else _ORDERS
        rdp = self.accountant == "RDP"
        accountant = RdpAccountant(orders) if rdp else PLDAccountant()
        release = dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(noise))
        accountant.compose(release, self.steps)
        return float(accountant.get_epsilon(float(self.delta)))

    def chosen(self) -> str:
        """Return the noise: as given, or what the accountant needs for its target."""
        if self.noise:
            return self.noise
        found = brentq(lambda x: self.reported(x) - self.target, 0.2, 20, rtol=1e-4)
        return f"{found:.4g}"

    def true(self, noise: str) -> dpassay.Interval:
        """Enclose ε of the run as it is done."""
        poisson = self.sampling == "poisson"
        batch, size = self.rate if poisson else (self.batch, self.size)
        length = {"steps": self.steps} if poisson else {"epochs": self.epochs}
        return dpassay.dpsgd(
            noise, batch, size, delta=self.delta, sampling=self.sampling, **length
        ).epsilon


_TABLE = """
TF-Privacy tutorials/mnist_dpsgd_tutorial.py        256   60000  30  7032 shuffle RDP 1e-5 1.1
TF-Privacy tutorials/mnist_dpsgd_tutorial_eager.py  250   60000  60 14400 shuffle RDP 1e-5 1.1
TF-Privacy tutorials/mnist_dpsgd_tutorial_keras.py  250   60000  60 14400 shuffle RDP 1e-5 0.1
TF-Privacy tutorials/movielens_tutorial.py        10000  800167  25  2000 poisson CLT 1e-6 0.55
Opacus examples/mnist.py                             64   60000  10  9380 poisson PLD 1e-5 1
Opacus examples/cifar10.py                         2000   50000  90  2250 poisson PLD 1e-5 1.5
Opacus examples/imdb.py                              64   25000  10  3910 shuffle PLD 1e-5 0.56
Opacus tutorials/ddp_tutorial.ipynb                 200   60000  10  3000 poisson PLD 1e-5 1
Opacus tutorials/building_image_classifier.ipynb    512   50000  20  1960 poisson PLD 1e-5 for:50
JAX-Privacy examples/jax_api_example.py             256   10000 100  3906 shuffle PLD 1e-5 for:1
JAX-Privacy examples/keras_api_example.py           512   59904   5   585 poisson PLD 1e-5 for:1.1
JAX-Privacy examples/dp_logistic_regression.py     4000    9000   0   125 poisson PLD 1e-5 for:1
"""
"""Library, file, batch, size, epochs, steps, sampling, accountant, δ and noise (or ε it is for).

The last one is BandMF with four bands: 125 rounds, of batches four times as large.
"""


def recipes() -> Iterator[Recipe]:
    """Yield what the table says."""
    for line in _TABLE.split("\n")[1:-1]:
        library, file, *numbers, sampling, accountant, delta, noise = line.split()
        target = noise.removeprefix("for:")
        yield Recipe(
            f"{library}, {file}",
            *map(int, numbers),
            sampling,
            accountant,
            delta,
            noise if target == noise else "",
            0.0 if target == noise else float(target),
            library == "Opacus",
        )


def cause(recipe: Recipe, reported: float, true: dpassay.Interval) -> str:
    """Return why a reported number is off."""
    shuffled = recipe.sampling == "shuffle"
    if reported > true.upper:
        share = 100 * (reported / float(true.upper) - 1)
        return (
            f"true, though batches are shuffled: {share:.2g} % above"
            if shuffled
            else (f"true: {share:.2g} % above")
        )
    if not shuffled:
        return "a central limit is no bound"
    times = float(true.lower) / reported
    return "shuffled, accounted for as Poisson samples: " + (
        f"{times:.2g} times as much, at least" if times > 1 else "neither proved nor refuted"
    )


def main() -> None:
    """Print a table."""
    print(
        "| recipe | σ | δ | batches | accountant | true ε | cause |\n|---|---|---|---|---|---|---|"
    )
    for recipe in recipes():
        noise = recipe.chosen()
        reported, true = recipe.reported(float(noise)), recipe.true(noise)
        print(
            f"| {recipe.source} | {noise} | {recipe.delta} | {recipe.sampling} | "
            f"{recipe.accountant}: {reported:.4g} | {true:.4g} | {cause(recipe, reported, true)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
