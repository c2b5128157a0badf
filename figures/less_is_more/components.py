"""Figures 6 and 11 of Less is More: private principal components of swarms."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

from dpassay.figures import style
from dpassay.figures.description import Plots, Settings
from dpassay.figures.less_is_more import losses
from dpassay.figures.table import Table, columns_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpassay.figures.data import Swarms


DELTA = "1e-7"
COMPONENTS = 20
"""Number of principal components used for classification."""
EPSILONS: tuple[str, ...] = ("0.2", "0.4", "0.6", "0.8", "1.0", "1.2", "1.4", "1.6")
_FEWER = ("0.2", "0.4", "0.8", "1.2", "1.6")
_TRIALS = 5
"""Number of releases whose median and range are drawn."""
_TRAINING_SHARE = 0.6
"""Fraction of the records used for training."""
_KINDS = ("printed", "verified")
_RANGE = ("", "_least", "_most")
_EXACT = "Gaussian, exact"
_OFFSET = 0.008
"""Horizontal offset between the markers of two mechanisms, in nats."""
_PPCA = ("printed", "PPCA")
_SHARE = 0.576
"""R1SMG's ε in the paper is this number times the other mechanisms' ε, divided by M²."""
NAMES = ("R1SMG", "classic", "analytic", "MVG", "MGM", "PPCA", "MOD-SULQ", "Wishart")


def compute(settings: Settings, *, same_budget: bool) -> Table:
    """Tabulate total deviation and accuracy for both kinds of noise.

    With `same_budget` all mechanisms get R1SMG's printed budget, 0.576ε/M². BLAS is limited to one
    thread, which is fastest for matrices of this size.
    """
    from threadpoolctl import threadpool_limits

    from dpassay.figures.data import swarms

    boids, records = settings.pick((10, 1201), (20, 2402), (200, 24016))
    data = swarms(settings.data, settings.rng("swarms"), records=records, boids=boids)
    # threadpool_limits affects only loaded libraries; loading the data has imported numpy.
    with threadpool_limits(1):
        return _computed(settings, data, same_budget=same_budget)


def _computed(settings: Settings, data: Swarms, *, same_budget: bool) -> Table:
    epsilons = settings.pick(("0.2", "0.8", "1.6"), _FEWER, EPSILONS)
    trials = settings.pick(1, _TRIALS)
    truth = _Truth(data.features, data.classes, settings.rng("split"))
    factor = _SHARE / len(truth.covariance) ** 2
    rows: list[tuple[object, ...]] = [
        (kind, "non-private", epsilon, *_summary([truth.judge(truth.vectors)]))
        for kind in _KINDS
        for epsilon in (epsilons[0], epsilons[-1])
    ]
    for kind in _KINDS:
        for name in NAMES if kind == "printed" else ("R1SMG", _EXACT, *NAMES[5:]):
            for epsilon in epsilons:
                if (kind, name) == ("verified", "PPCA"):
                    rows += [("verified", *row[1:]) for row in rows if row[:3] == (*_PPCA, epsilon)]
                    continue
                small = same_budget or (kind, name) == ("printed", "R1SMG")
                budget = f"{float(epsilon) * factor:.6g}" if small else epsilon
                rng = settings.rng(f"components by {name} at {epsilon}")
                draw_one = release(kind, name, truth.covariance, truth.records, budget)
                # Gibbs sampling is slow, and its results hardly vary.
                count = 1 if name == "PPCA" else trials
                judged = [truth.judge(draw_one(rng)) for _ in range(count)]
                rows.append((kind, name, epsilon, *_summary(judged)))
    columns = columns_of(
        "kind", "mechanism", epsilon="nats",
        **{f"deviation{x}": ("features²", 1e-3, 1e-6) for x in _RANGE},
        **{f"accuracy{x}": ("share of the test records", 1e-9, 0.02) for x in _RANGE},
    )  # fmt: skip
    return Table.of(
        columns, rows, data=data.source, records=truth.records,
        features=len(truth.covariance), delta=DELTA, trials=trials, seed=settings.seed,
        factor=factor, same_budget=same_budget,
    )  # fmt: skip


def _summary(judged: list[tuple[float, float]]) -> list[float]:
    """Return the median, minimum and maximum of the deviations, then of the accuracies."""
    return [f(values) for values in zip(*judged, strict=True) for f in (median, min, max)]


class _Truth:
    """The exact covariance and its components, with which private components are compared."""

    def __init__(
        self, features: NDArray[np.float64], classes: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        import numpy as np

        self.records = len(features)
        self.covariance = features.T @ features / self.records
        values, vectors = np.linalg.eigh(self.covariance)
        self.values, self.vectors = values[::-1], vectors[:, ::-1]
        self._features, self._classes = features, classes
        order = rng.permutation(self.records)
        cut = round(_TRAINING_SHARE * self.records)
        self._train, self._test = order[:cut], order[cut:]

    def judge(self, components: NDArray[np.float64]) -> tuple[float, float]:
        """Return Σ|λᵢ − vᵢ'Cvᵢ| and the accuracy of a linear SVM on the first components."""
        import numpy as np
        from sklearn.svm import LinearSVC

        captured = np.einsum("ij,ij->j", components, self.covariance @ components)
        deviation = float(np.abs(self.values - captured).sum())
        projected = self._features @ components[:, :COMPONENTS]
        machine = LinearSVC(dual=False, C=1.0)
        machine.fit(projected[self._train], self._classes[self._train])
        return deviation, float(machine.score(projected[self._test], self._classes[self._test]))


def release(
    kind: str, name: str, covariance: NDArray[np.float64], records: int, epsilon: str
) -> Callable[[np.random.Generator], NDArray[Any]]:
    """Return a function that draws private components, in order of decreasing eigenvalue."""
    from dpassay.figures.baselines import private_sgd, spectra

    size = len(covariance)
    budget, delta = float(epsilon), float(DELTA)
    printed = kind == "printed"
    if name == "PPCA":
        few = min(COMPONENTS, size - 1)
        about: dict[str, Any] = {"records": records, "epsilon": budget, "sweeps": 5}
        return lambda rng: spectra.completed(
            spectra.components(covariance / size, few, rng=rng, **about), rng
        )
    if name == "MOD-SULQ":
        claimed = spectra.claimed_deviation(size, records, budget, delta)
        deviation = claimed if printed else spectra.exact_deviation(records, epsilon, DELTA)
        return lambda rng: _leading(
            covariance + size * spectra.mod_sulq_noise(size, deviation, rng)
        )
    if name == "Wishart":
        stated = spectra.claimed_scale(records, budget)
        scale = stated if printed else spectra.exact_scale(records, delta)
        return lambda rng: _leading(covariance + size * spectra.wishart_noise(size, scale, rng))
    sensitivity = size * math.sqrt(2) / records
    if name == "R1SMG":
        amount = losses.sigma_star(size * size, epsilon, DELTA, printed=printed)
        draw_one = private_sgd.rank_one(amount)
        return lambda rng: _leading(
            covariance + sensitivity * draw_one(size * size, rng).reshape(size, size)
        )
    each = losses.independent_deviation(name, size, sensitivity, epsilon, DELTA)
    return lambda rng: _leading(covariance + each * rng.standard_normal((size, size)))


def _leading(noisy: NDArray[Any]) -> NDArray[Any]:
    """Return the eigenvectors of the symmetric part, in order of decreasing eigenvalue."""
    import numpy as np

    return np.asarray(np.linalg.eigh((noisy + noisy.T) / 2)[1][:, ::-1])


def draw(table: Table) -> style.Figure:
    """Draw deviation and accuracy for both kinds of noise."""
    looks = {"non-private": style.Curve("0.6", (0, (1, 1)), "")}
    looks |= dict(zip((*NAMES, _EXACT), style.CURVES, strict=True))
    factor = style.powers(f"{table.parameters['factor']:.2g}")
    with style.panels(2, 2, height=5.6) as (figure, grid):
        grid[2].sharey(grid[0])
        for row, kind in enumerate(_KINDS):
            for column, what in enumerate(("deviation", "accuracy")):
                axes = grid[2 * row + column]
                for place, name in enumerate(table.distinct("mechanism", kind=kind)):
                    if what == "deviation" and name == "non-private":
                        continue
                    xs, ys = table.points("epsilon", what, kind=kind, mechanism=name)
                    where = {"kind": kind, "mechanism": name}
                    least, most = (table.numbers(f"{what}{x}", **where) for x in _RANGE[1:])
                    below = [y - low for y, low in zip(ys, least, strict=True)]
                    above = [high - y for y, high in zip(ys, most, strict=True)]
                    look = looks[str(name)]
                    axes.errorbar(
                        [x + _OFFSET * (place - len(NAMES) / 2) for x in xs], ys, [below, above],
                        label=str(name), marker=look.marker, capsize=2, elinewidth=0.8,
                        **look.options(),
                    )  # fmt: skip
                axes.set_xlabel(
                    f"ε ({factor} nats)"
                    if table.parameters["same_budget"]
                    else f"ε (nats; R1SMG: {factor} of it)"
                    if kind == "printed"
                    else "ε (nats)"
                )
                if what == "deviation":
                    axes.set_ylim(bottom=0)
                    axes.set_ylabel("total deviation (features²)")
                else:
                    axes.set(ylim=(0.4, 1), ylabel="accuracy on test records")
        kinds = [losses.KINDS[kind] for kind in _KINDS]
        style.letter(grid, [f"{w}: {k}" for k in kinds for w in ("deviation", "accuracy")])
        style.key(figure, grid, 5)
        data, n, m, trials = (
            table.parameters[key] for key in ("data", "records", "features", "trials")
        )
        last = max(table.numbers("epsilon"))
        printed, needed, gaussian = (
            table.value("deviation", kind=kind, mechanism=name, epsilon=last)
            for kind, name in (("printed", "R1SMG"), ("verified", "R1SMG"), ("verified", _EXACT))
        )
        style.finding(
            figure,
            f"With the noise of Theorem 5 R1SMG's components deviate by {printed:.3g} at {factor} "
            f"of ε = {last:g}; with noise that is private at "
            f"{'this' if table.parameters['same_budget'] else 'all of'} ε by {needed:.3g}, "
            f"Gaussian noise by {gaussian:.3g}",
            f"Data: {data}, {n} records of {m} features; median and range of {trials} releases "
            "(PPCA: 1)",
        )
        return figure


PLOTS: Plots = {
    "6": (partial(compute, same_budget=False), draw),
    "11": (partial(compute, same_budget=True), draw),
}
