"""The best of several runs: against every ranking and event of small tables, and simulation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import dpassay
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms import (
    Composed,
    DiscreteLaplace,
    Gaussian,
    Guaranteed,
    Laplace,
    PoissonSubsampled,
    RandomizedResponse,
    Tabulated,
    Tuned,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.numbers.precision import ctx
from dpassay.accountant.pairs.tuned import Runs, TunedPair
from dpassay.accountant.questions import guarantees, profile
from tests.quick import quick


def _gamma(mean: float, of: Callable[[float], float]) -> float:
    low, high = 1e-9, 1 - 1e-9
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if of(middle) > mean else (low, middle)
    return low


G2 = _gamma(3, lambda g: 2 * (1 - g) / (g * (1 - g**2)))
G0 = _gamma(3, lambda g: (1 - g) / (g * -math.log(g)))
LAWS: dict[str, tuple[int, Any, Callable[[float], float]]] = {
    "geometric": (4, 1, lambda z: z / 4 / (1 - 0.75 * z)),
    "negative binomial": (3, 2, lambda z: ((1 - (1 - G2) * z) ** -2 - 1) / (G2**-2 - 1)),
    "logarithmic": (3, 0, lambda z: math.log(1 - (1 - G0) * z) / math.log(G0)),
    "poisson": (3, "poisson", lambda z: math.exp(3 * (z - 1))),
    "fixed": (5, "fixed", lambda z: z**5),
}


def every_ranking(
    p: list[Fraction], q: list[Fraction], phi: Callable[[float], float], epsilon: float, parts: int
) -> float:
    """Return the largest P(S) − e^ε Q(S) over all rankings of parts of outcomes, and all events."""
    x, n = math.exp(epsilon), len(p)

    @cache
    def best(seen: tuple[int, ...]) -> float:
        """Over what ranks above those that are seen."""
        a, b = (sum(k * m / parts for k, m in zip(seen, law, strict=True)) for law in (p, q))
        found = []
        for i in range(n):
            if seen[i] < parts:
                more = (*seen[:i], seen[i] + 1, *seen[i + 1 :])
                gain = phi(float(a + p[i] / parts)) - phi(float(a))
                cost = phi(float(b + q[i] / parts)) - phi(float(b))
                found.append(max(gain - x * cost, 0.0) + best(more))
        return max(found, default=0.0)

    return best((0,) * n) + phi(0.0) * max(0.0, 1 - x)


def ends(mechanism: Tuned, epsilon: object) -> tuple[float, float]:
    pair = mechanism.worst_case(None).remove[0]
    assert isinstance(pair, TunedPair)
    at = exact(epsilon)  # type: ignore[arg-type]  # a number
    return float(pair.lower(at)), float(pair.upper(at))


@given(st.data(), st.sampled_from(sorted(LAWS)), st.sampled_from(["-1/2", "0", "1/2", "1", "2"]))
@settings(max_examples=5, deadline=None, phases=(Phase.generate,))
def test_no_ranking_and_no_event_of_a_small_table_shows_more(
    data: st.DataObject, law: str, epsilon: str
) -> None:
    n = data.draw(st.integers(2, 4))
    weights = st.lists(st.integers(1, 9), min_size=n, max_size=n)
    p, q = ([Fraction(w, sum(ws)) for w in ws] for ws in (data.draw(weights), data.draw(weights)))
    runs, shape, phi = LAWS[law]
    mechanism = Tuned(Tabulated(p, q), runs, shape)
    found = every_ranking(p, q, phi, float(Fraction(epsilon)), 2)
    low, high = ends(mechanism, epsilon)
    assert found <= high * (1 + 1e-9) + 1e-12
    assert low <= high <= low * 1.02 + 0.002
    assert found >= low - 0.1  # halves are coarse: a finer ranking shows more, but not much more


def test_the_worst_score_ranks_middle_losses_lowest() -> None:
    """Four outcomes as likely as each other under Q, all 24 rankings: in order of loss none is."""
    p = [Fraction(k, 20) for k in (1, 4, 6, 9)]
    q = [Fraction(1, 4)] * 4
    x, phi = math.exp(0.6), LAWS["geometric"][2]

    def shown(ranking: tuple[int, ...]) -> float:
        a = b = total = 0.0
        for i in ranking:
            gain = phi(a + float(p[i])) - phi(a) - x * (phi(b + 0.25) - phi(b))
            a, b, total = a + float(p[i]), b + 0.25, total + max(gain, 0.0)
        return total

    best = max(itertools.permutations(range(4)), key=shown)
    assert shown(best) > max(shown((0, 1, 2, 3)), shown((3, 2, 1, 0))) * 1.0001
    assert all(max(best[: k + 1]) - min(best[: k + 1]) == k for k in range(4)), (
        "those seen so far are neighbours by their loss"
    )
    low, high = ends(Tuned(Tabulated(p, q), 4), "0.6")
    assert shown(best) <= high
    assert low <= high


@pytest.mark.parametrize("law", quick(sorted(LAWS), 0, 1))
def test_the_two_ends_of_gaussian_noise_are_near(law: str) -> None:
    runs, shape, _ = LAWS[law]
    low, high = ends(Tuned(Gaussian(2), runs, shape), 1)
    assert 0 < low <= high <= low * 1.01
    assert low >= float(profile.delta(Gaussian(2), 1)) * 0.95


def test_one_run_is_the_mechanism() -> None:
    for once in (Tuned(Gaussian(2), 1), Tuned(Gaussian(2), 1, "fixed")):
        assert str(profile.delta(once, 1)) == str(profile.delta(Gaussian(2), 1))


def test_a_fixed_number_costs_less_than_a_composition() -> None:
    for epsilon in (0, 1, 2):
        low, high = ends(Tuned(Gaussian(2), 3, "fixed"), epsilon)
        assert high < float(profile.delta(Composed(Gaussian(2), 3), epsilon))
        assert low > float(profile.delta(Gaussian(2), epsilon))


@pytest.mark.parametrize(("shape", "factor"), [(1, 3), (0, 2), (2, 4)])
def test_pure_guarantees_stay_below_the_known_bound(shape: int, factor: int) -> None:
    """(2 + η) ε for the shape η, approached by many runs (Papernot and Steinke 2022)."""
    found = [
        float(profile.epsilon(Tuned(RandomizedResponse(1), runs, shape), 0).upper)
        for runs in (2, 10, 1000)
    ]
    assert found == sorted(found)
    assert 0.98 * factor < found[-1] <= factor


@pytest.mark.parametrize("noise", [Laplace(2), DiscreteLaplace(2)])
def test_losses_that_end_on_both_sides_are_tuned(noise: Any) -> None:
    """A sample's losses end at −ln(1 + q(e^½ − 1)) and at its negative, below (1 + 2) times it."""
    one = PoissonSubsampled(noise, "0.1")
    least = math.log1p(0.1 * math.expm1(0.5))
    single = profile.epsilon(one, "1e-3", adjacency="add-remove")
    found = profile.epsilon(Tuned(one, 10), "1e-3", adjacency="add-remove")
    assert float(single.lower) < float(found.lower)
    assert float(found.upper) <= min(3 * least, 1.12 * float(found.lower))
    assert float(profile.delta(Tuned(one, 10), "0.2", adjacency="add-remove").upper) == 0


def test_simulated_runs_have_the_probabilities_of_an_event() -> None:
    """Significance 1e-9: of 20,000 selections, by the largest output, six deviations at most."""
    rng, size = np.random.default_rng(3), 20_000
    for shape in (1, 0, 2, "fixed"):
        mechanism = Tuned(Gaussian(1), 4, shape)
        drawn = mechanism.outputs(0.0, size, rng=rng)
        law = mechanism.worst_case(None).remove[0].runs  # type: ignore[attr-defined]
        below = 0.5 * (1 + math.erf(1 / math.sqrt(2)))
        ball = exact(below).ball()
        true = float(law.growth(exact(0).ball(), ball))
        assert abs((drawn <= 1).mean() - true) < 6 * math.sqrt(true * (1 - true) / size)
    with pytest.raises(NotApplicableError, match="no run"):
        Tuned(Gaussian(1), 4, "poisson").sample(2, rng=rng)


@pytest.mark.parametrize("shape", [1, 0, 2, "-1/2"])
@pytest.mark.parametrize("mean", ["1.000000001", "10", "1000"])
def test_slopes_in_floats_are_as_accurate_as_stated(mean: str, shape: int | str) -> None:
    runs = Runs(exact(mean), exact(shape))
    found = float(runs.slope(1, np.array([0.25]), np.array([0.75]))[0])
    with ctx.workprec(256):
        true = runs.derivative(exact("1/4").ball(), exact("3/4").ball())
        assert abs(found / true - 1) < 2.0**-40


def test_divergences_lie_below_those_of_dp_accounting() -> None:
    """Its bound at the same orders; ours minimises over more."""
    rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
    orders = np.array([1 + 2.0 ** (k / 2) for k in range(-4, 24)])
    one = orders / 8
    for shape, theirs in ((1, 1.0), (0, 0.0), (3, 3.0), ("poisson", math.inf)):
        bound = rdp._compute_rdp_repeat_and_select(orders, one, 10.0, theirs)
        for index in (4, 8, 12):
            found = guarantees.renyi(Tuned(Gaussian(2), 10, shape), orders[index])
            assert float(orders[index]) / 8 <= float(found.upper) <= bound[index] * (1 + 1e-8)


@pytest.mark.slow
def test_epsilon_lies_below_what_divergences_give() -> None:
    """dp-accounting reports 4.3150722993888255 for ten geometric runs of N(0, 4)."""
    found = profile.epsilon(Tuned(Gaussian(2), 10), "1e-5")
    assert 3.0 < found.lower <= found.upper < 3.02
    low, high = (ends(Tuned(Gaussian(2), 10), end) for end in (found.lower, found.upper))
    assert high[1] <= 1e-5 * (1 + 1e-9)
    assert low[1] >= 1e-5 >= high[0]


@pytest.mark.slow
def test_a_training_is_tuned() -> None:
    step = PoissonSubsampled(Gaussian(1), "1/100")
    found = profile.epsilon(Tuned(Composed(step, 1000), 10), "1e-5", adjacency="add-remove")
    assert 2.66 < found.lower <= found.upper < 2.69


@pytest.mark.parametrize(
    ("mechanism", "low", "high"),
    [
        (Tuned(Laplace(1), 1000), 2.943, 2.946),
        (Tuned(Laplace(1), "3/2", "-1/2"), 1.249, 1.25),  # γ = 1/4 exactly
        (Tuned(Gaussian("0.05"), 10), 298.6, 299),
        (Tuned(Gaussian(2), 50, "fixed"), 11.4, 11.6),
    ],
)
def test_many_runs_and_large_losses_are_enclosed(mechanism: Tuned, low: float, high: float) -> None:
    found = dpassay.epsilon(mechanism, "1e-5")
    assert found.lower > low
    assert found.upper < high


def test_epsilon_has_a_lower_end_where_the_upper_bound_of_delta_stays_above_it() -> None:
    assert dpassay.epsilon(Tuned(Gaussian(10), 5, "fixed"), "1e-12").lower > 1.3


def test_a_coarse_answer_encloses_a_fine_one() -> None:
    mechanism = Tuned(Gaussian(2), 10)
    coarse, fine = (dpassay.epsilon(mechanism, "1e-5", relative_width=w) for w in ("0.1", "1e-4"))
    assert coarse.lower <= fine.lower <= fine.upper <= coarse.upper
    assert float(coarse.upper - coarse.lower) > 0.02, "few losses are enough for it"


def test_rare_samples_are_tuned() -> None:
    mechanism = Tuned(PoissonSubsampled(Gaussian(1), "1e-9"), 10)
    found = dpassay.delta(mechanism, 0, adjacency="add-remove")
    single = dpassay.delta(PoissonSubsampled(Gaussian(1), "1e-9"), 0, adjacency="add-remove")
    assert single.lower < found.upper < 1e-4


def test_infinite_losses_are_preferred() -> None:
    mechanism = Tuned(Guaranteed(1, "0.01"), 3, "fixed")
    low, high = ends(mechanism, 9)
    assert low * (1 - 1e-9) <= 1 - 0.99**3 <= high * (1 + 1e-9)
    assert high < 0.06
    mass = mechanism.worst_case(None).remove[0].infinity_mass()
    assert mass.overlaps(exact("0.029701").ball())
    assert mass.rad() < 1e-12


def test_above_all_finite_losses_only_infinite_ones_count() -> None:
    """Of a geometric number of runs, 20 in the mean: 1 − φ(1 − m) with φ(z) = z/(20 − 19 z)."""
    mechanism, m = Tuned(Guaranteed(1, "1e-6"), 20), Fraction(1, 10**6)
    true = 1 - (1 - m) / (20 - 19 * (1 - m))
    found = dpassay.delta(mechanism, 3)  # each run has a loss below 1, each best one below 3
    assert found.lower <= true <= found.upper
    assert float(found.upper / found.lower) - 1 < 1e-9
    assert dpassay.delta(mechanism, "2.7").lower > true
    spent = dpassay.epsilon(mechanism, "1e-4", relative_width=1)
    assert 2.7 < spent.lower <= spent.upper < 2.8
    assert dpassay.epsilon(mechanism, "1e-5").lower == math.inf
