"""Figures 7 and 8 of Less is More: private training, DP-SGD against R1SMG-SGD."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, final

from dpassay.figures import quantities, style
from dpassay.figures.description import Plots, Settings
from dpassay.figures.less_is_more import losses
from dpassay.figures.table import Table, columns_of

if TYPE_CHECKING:
    from dpassay.figures.baselines.private_sgd import Noise
    from dpassay.figures.data import Images


CLIP = 1.0
"""Clipping norm of gradients."""
RATE = 0.25
"""Learning rate."""
DELTA = "1e-5"
SAMPLING = Fraction(256, 60000)
_KINDS = ("printed", "verified")
_ABOUT = "exact ε (DP-SGD printed), σ (verified), least δ (R1SMG printed), σ_* (verified)"
_CURVES = ("non-private", "DP-SGD", "R1SMG-SGD")


@final
@dataclass(frozen=True, slots=True)
class Budget:
    """The parameters of one panel: DP-SGD's σ, the printed total ε, and R1SMG's (ε, δ) per step."""

    noise_multiplier: str
    total_epsilon: str
    step_epsilon: str
    step_delta: str


def compute(
    settings: Settings, name: str, data: Images, *, centre: float = 0.0,
    budgets: tuple[Budget, ...], all_epochs: int, epochs: int,
) -> Table:  # fmt: skip
    """Train with each mechanism for `epochs`; account for `all_epochs`, as printed.

    `name` is the figure's id. `centre` is subtracted from the pixels, which lie in [0, 1].
    """
    from threadpoolctl import threadpool_limits

    from dpassay.figures.baselines import private_sgd

    model = private_sgd.Softmax(data.train.shape[1], centre=centre)
    size = model.start(settings.rng(name)).size

    def accuracies(purpose: str, noise: Noise, clip: float | None) -> list[private_sgd.Epoch]:
        # A single thread is fastest for the small matrices of a batch.
        with threadpool_limits(1):
            return private_sgd.train(
                model, data, noise=noise, sampling_prob=float(SAMPLING), epochs=epochs, rate=RATE,
                clip=clip, rng=settings.rng(f"{name}: {purpose}"),
            )  # fmt: skip

    rows: list[tuple[object, ...]] = []
    plain = accuracies("non-private", private_sgd.no_noise, None)
    for budget in budgets:
        step = (size, budget.step_epsilon, budget.step_delta)
        stars = [losses.sigma_star(*step, printed=printed) for printed in (True, False)]
        steps = math.floor(all_epochs / SAMPLING)
        multiplier = exact_multiplier(budget.total_epsilon, steps)
        spent = exact_epsilon(budget.noise_multiplier, steps)
        leak = least_delta_of_a_step(size, stars[0], budget.total_epsilon)
        runs: dict[tuple[str, str], tuple[list[private_sgd.Epoch], float | None]] = {}
        for kind, deviation, star, told in (
            ("printed", float(budget.noise_multiplier), stars[0], (spent, leak)),
            ("verified", multiplier, stars[1], (multiplier, stars[1])),
        ):
            noises = private_sgd.gaussian(deviation), private_sgd.rank_one(star)
            names = f"Gaussian {budget.noise_multiplier}", f"rank one {budget.total_epsilon}"
            runs[kind, "non-private"] = (plain, None)
            for curve, purpose, noise, number in zip(_CURVES[1:], names, noises, told, strict=True):
                runs[kind, curve] = (accuracies(purpose, noise, CLIP), number)
        for (kind, curve), (found, about) in runs.items():
            for place, row in enumerate(found):
                rows.append(
                    (budget.total_epsilon, kind, curve, *row, about if place == 0 else None)
                )
    columns = columns_of(
        *("total epsilon", "kind", "curve"), epoch="passes over the records",
        **dict.fromkeys(("train", "test"), ("share of the records", 1e-9, 0.02)),
        about=(_ABOUT, 1e-5),
    )  # fmt: skip
    return Table.of(
        columns, rows, data=data.source, parameters=size, records=len(data.train),
        accounted_epochs=all_epochs, delta=DELTA, clip=CLIP, rate=RATE, seed=settings.seed,
    )  # fmt: skip


def exact_epsilon(noise_multiplier: str, steps: int) -> float:
    """Return ε of DP-SGD at δ = 1e-5 under add-remove."""
    from dpassay.accountant.mechanisms.additive.gaussian import Gaussian
    from dpassay.accountant.mechanisms.wrappers.composed import Composed
    from dpassay.accountant.mechanisms.wrappers.sampling import PoissonSubsampled
    from dpassay.accountant.questions import profile

    step = PoissonSubsampled(Gaussian(standard_deviation=noise_multiplier), SAMPLING)
    found = profile.epsilon(
        Composed(step, count=steps), DELTA, adjacency="add-remove",
        relative_width=Fraction(1, 10**7),
    )  # fmt: skip
    return float(found.upper)


def exact_multiplier(total_epsilon: str, steps: int) -> float:
    """Return the least σ, to six digits, for a total ε of DP-SGD at δ = 1e-5."""
    from dpassay.accountant.budget.calibrate import EpsilonDelta, calibrate

    found = calibrate(
        "Gaussian", EpsilonDelta(total_epsilon, DELTA), adjacency="add-remove", count=steps,
        sampling_prob=SAMPLING, relative_width=Fraction(1, 10**7),
    )  # fmt: skip
    return float(f"{float(found.least.upper) * (1 + 1e-6):.6g}")


def least_delta_of_a_step(size: int, sigma_star: float, epsilon: str) -> float:
    """Return δ(ε) of one sampled step with R1SMG noise, a lower bound for any number of steps.

    If the record is in the sample with probability q, then max_S qP(S) + (1 − q)Q(S) − e^ε Q(S) =
    q·δ(ε') with e^{ε'} = 1 + (e^ε − 1)/q, where δ is the profile of the step without sampling.
    """
    from dpassay.accountant.mechanisms.shapes.general_gaussian import RankOneGaussian
    from dpassay.accountant.questions import profile

    inner = math.log1p(math.expm1(float(epsilon)) / float(SAMPLING))
    mechanism = RankOneGaussian(size, Fraction(sigma_star))
    found = profile.delta(mechanism, inner, relative_width=quantities.WIDTH)
    return float(SAMPLING) * float(found.lower)


def draw(table: Table) -> style.Figure:
    """Draw the accuracies (solid: test, dashed: training), printed above verified noise."""
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    totals = [str(x) for x in table.distinct("total epsilon")]
    with style.panels(2, 2, height=5.2) as (figure, grid):
        for row, kind in enumerate(_KINDS):
            for column, total in enumerate(totals):
                axes = grid[2 * row + column]
                where = {"total epsilon": total, "kind": kind}
                for look, curve in zip(style.CURVES, _CURVES, strict=False):
                    for what, dashes in (("test", "solid"), ("train", (0, (3, 2)))):
                        xs, ys = table.points("epoch", what, curve=curve, **where)
                        drawn = look.marked(len(xs)) | {"linestyle": dashes}
                        if what == "train":
                            drawn |= {"linewidth": 0.8, "marker": ""}
                        axes.plot(xs, ys, **drawn)
                least = min(table.numbers("train", kind=kind) + table.numbers("test", kind=kind))
                bottom = max(0, math.floor(10 * least) - 1) / 10
                axes.set(ylim=(bottom, 1), xlabel="epochs", ylabel="accuracy (share)")
                axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        panels = [(kind, total) for kind in _KINDS for total in totals]
        words = [f"{losses.KINDS[k]}, ε = {t}\n{_about(table, k, t)}" for k, t in panels]
        style.letter(grid, map(style.powers, words))
        keys = [
            Line2D([], [], label=curve, color=look.colour, marker=look.marker)
            for look, curve in zip(style.CURVES, _CURVES, strict=False)
        ]
        keys += [
            Line2D([], [], color="0.3", label="test"),
            Line2D([], [], color="0.3", linestyle=(0, (3, 2)), linewidth=0.8, label="training"),
        ]
        figure.legend(handles=keys, loc="outside lower center", ncols=5)
        about = table.parameters
        last = max(table.numbers("epoch"))
        ends = {
            (kind, curve): table.value(
                "test", kind=kind, curve=curve, epoch=last, **{"total epsilon": totals[0]}
            )
            for kind in _KINDS
            for curve in _CURVES
        }
        whole = last == about["accounted_epochs"]
        why = "" if whole else ", too few for the paper's comparison"
        style.finding(
            figure,
            f"After {last:g} of {about['accounted_epochs']} epochs{why}, R1SMG-SGD has "
            f"{ends['printed', 'R1SMG-SGD']:.0%} on test with the noise of Theorem 5, DP-SGD "
            f"{ends['printed', 'DP-SGD']:.0%}. Private at ε = {totals[0]}: "
            f"{ends['verified', 'R1SMG-SGD']:.0%} and {ends['verified', 'DP-SGD']:.0%}",
            f"Data: {about['data']}; softmax regression with {about['parameters']} parameters",
        )
        return figure


def _about(table: Table, kind: str, total: str) -> str:
    where = {"total epsilon": total, "kind": kind}
    gaussian = table.numbers("about", curve="DP-SGD", **where)[0]
    rank_one = table.numbers("about", curve="R1SMG-SGD", **where)[0]
    if kind == "printed":
        return f"DP-SGD: ε = {gaussian:.4g}; R1SMG step: δ ≥ {rank_one:.2g}"
    return f"DP-SGD: σ = {gaussian:.4g}; R1SMG: σ_* = {rank_one:.2g} C²"


_BUDGETS = (Budget("1.1", "1.795", "0.71", "3.33e-7"), Budget("0.5", "16.983", "5.42", "3.33e-7"))


def _compute_7(settings: Settings) -> Table:
    from dpassay.figures.data import digits

    data = digits(settings.data, settings.rng("digits"))
    return compute(
        settings, "less-is-more/7", data, budgets=_BUDGETS, all_epochs=30,
        epochs=settings.pick(1, 6, 30),
    )  # fmt: skip


_BUDGETS_8 = (Budget("1.1", "2.673", "0.54", "1e-7"), Budget("0.5", "20.713", "3.52", "1e-7"))


def _compute_8(settings: Settings) -> Table:
    from dpassay.figures.data import colour_images, halved

    data = halved(colour_images(settings.data, settings.rng("colour images")))
    return compute(
        settings, "less-is-more/8", data, centre=0.5, budgets=_BUDGETS_8, all_epochs=100,
        epochs=settings.pick(1, 6, 100),
    )  # fmt: skip


PLOTS: Plots = {"7": (_compute_7, draw), "8": (_compute_8, draw)}
