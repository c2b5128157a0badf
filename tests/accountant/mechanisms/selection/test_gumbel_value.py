"""The largest noisy score with Gumbel noise, and which it is, against its law."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms import AdditiveNoise, Composed, PoissonSubsampled, ReportNoisyMax
from dpassay.accountant.numbers.exact import ExactReal, exact
from dpassay.accountant.pairs.gumbel_tables import GumbelTables
from dpassay.accountant.pairs.gumbel_value import GumbelValuePair
from dpassay.accountant.questions import guarantees, profile
from dpassay.verifier.checker.laws import tails
from dpassay.verifier.checker.reals import UnknownError
from tests.quick import quick


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("epsilon", [0, 0.25, 0.5, 1])
def test_the_value_with_gumbel_noise_against_its_law(epsilon: float, monotone: bool) -> None:
    """Index i and w = e^{−value} have the density e^{u_i} e^{−Sw}, S = Σ e^{u_i}."""
    about = ReportNoisyMax("Gumbel", 2, 3, monotone=monotone, returns="value")
    found = profile.delta(about, str(epsilon))
    rng, best = np.random.default_rng(3), 0.0
    step = 5e-4
    w = (np.arange(60_000) + 0.5) * step
    for _ in range(150):
        u, signs = rng.normal(scale=3, size=3), rng.integers(0, 2, 3)
        move = signs / 2 if monotone else signs - 0.5
        first, second = np.exp(u), np.exp(u + move)
        w_here = w / first.sum()
        p, q = (np.outer(e, np.exp(-e.sum() * w_here)) for e in (first, second))
        for one, other in ((p, q), (q, p)):
            excess = np.maximum(one - math.exp(epsilon) * other, 0).sum() * step / first.sum()
            best = max(best, float(excess))
    assert best <= float(found.upper) + 1e-5
    assert best >= 0.99 * float(found.lower)
    assert float(found.upper) <= float(found.lower) * (1 + 1e-3)


def test_what_is_known_of_values_with_gumbel_noise() -> None:
    about = ReportNoisyMax("Gumbel", 2, 7, returns="value")
    alone = AdditiveNoise("exp(-x-exp(-x))", scale=2)
    assert profile.epsilon(about, 0).lower.is_infinite()
    far = profile.delta(about, 2)
    assert far.lower <= profile.delta(alone, 2).upper <= far.upper * Decimal("1.001")
    with pytest.raises(NotApplicableError, match="only enclosed"):
        PoissonSubsampled(about, "1/2")


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("scale", ["1/1000", "1e-6"])
def test_scores_that_move_far_are_no_traceback(scale: str, monotone: bool) -> None:
    about = ReportNoisyMax("Gumbel", scale, 3, monotone=monotone, returns="value")
    assert profile.delta(about, 1).lower > Decimal("0.999999")
    assert profile.epsilon(about, "1e-5").upper.is_infinite()


def test_epsilon_of_scores_that_move_far() -> None:
    """One candidate far above the others: ε = (e^t − 1) ln((1 − e^{−t})/δ) − t or so."""
    about = ReportNoisyMax("Gumbel", "1/100", 3, returns="value")
    near = Decimal(100).exp() * Decimal("1e5").ln()
    found = profile.epsilon(about, "1e-5")
    assert near * Decimal("0.999") < found.lower <= found.upper < near * Decimal("1.001")


@pytest.mark.parametrize(("scale", "epsilon"), [(100, 10), ("1e6", 1)])
def test_values_that_floats_do_not_tell_from_0_keep_both_ends(
    scale: int | str, epsilon: int
) -> None:
    """One candidate far above the others shows most: δ(ε) = (1 − e^{−t}) e^{−(ε + t)/(e^t − 1)}."""
    t = 1 / Decimal(scale)
    alone = (1 - (-t).exp()) * (-(epsilon + t) / (t.exp() - 1)).exp()
    for monotone in (False, True):
        about = ReportNoisyMax("Gumbel", scale, 3, monotone=monotone, returns="value")
        found = profile.delta(about, epsilon)
        assert found.lower > alone * Decimal("0.999")
        assert alone * Decimal("0.999999") < found.upper < alone * Decimal("1.001")


def test_an_event_of_scores_that_hardly_move_is_not_made_up() -> None:
    """δ(0) is about 5e-41; a sum of rates that is moved aside by 2^{−60} has no event."""
    about = ReportNoisyMax("Gumbel", "1e40", 3, returns="value")
    (pair,) = about.worst_case(None).remove
    found = pair.tails(ExactReal.of_rational(0))
    assert not found.p_above - found.q_above > arb("1e-30")
    law = {"law": "gumbel-value", "distance": Fraction(1, 10**40), "monotone": False}
    with pytest.raises(UnknownError):
        tails(law, Fraction(0))


@pytest.mark.parametrize(
    ("distance", "monotone"),
    quick([("1/2", True), ("1/10", False), ("1e-12", False), ("800", False)], 0),
)
def test_tables_of_losses_are_above_all_scores_and_below(distance: str, monotone: bool) -> None:
    """At points of the table and between them; δ of neighbours is below that of all."""
    pair = GumbelValuePair(exact(distance), monotone)
    tables = GumbelTables(pair)
    for at in (-0.7, 0, 1 / 3, 1, 2.5, 40):
        epsilon = exact(str(at * float(Fraction(distance))))
        most = pair.hockey_stick(epsilon)
        here = tables.above.hockey_stick(epsilon)
        assert here.upper() >= most.lower()
        assert not here > (most.upper() * arb("1.01")).max(arb("1e-12")) or distance == "800"
        assert all(not each.hockey_stick(epsilon) > most for each in tables.below)


@pytest.mark.parametrize("monotone", [False, True])
def test_several_values_with_gumbel_noise_have_two_ends(monotone: bool) -> None:
    """Two releases, of a share p that rises: H(ε) = E[H₁(ε − L)], on midpoints of e^{−w}."""
    epsilon, d, count = 1.0, 0.5, 1500
    one = ReportNoisyMax("Gumbel", 2, 3, monotone=monotone, returns="value")
    found = profile.delta(Composed(one, 2), 1)
    w = -np.log((np.arange(count) + 0.5) / count)
    best = 0.0
    for low, high in [(0, d), (-d, 0)] if monotone else [(-d, d)]:
        for p in (0.0, 0.3, 0.5, 0.8, 1.0):
            s = p * math.exp(-high) + (1 - p) * math.exp(-low)
            loss = np.concatenate([low + (s - 1) * w, high + (s - 1) * w])
            mass = np.repeat([1 - p, p], count) / count
            order = np.argsort(loss)
            loss, mass = loss[order], mass[order]
            above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)
            ratio = np.append(np.cumsum((mass * np.exp(-loss))[::-1])[::-1], 0.0)
            at = np.searchsorted(loss, epsilon - loss)
            best = max(best, float((mass * (above[at] - np.exp(epsilon - loss) * ratio[at])).sum()))
    assert best <= float(found.upper) + 2 / count
    assert best >= float(found.lower) * 0.99 - 2 / count
    assert float(found.upper) <= 1.35 * float(found.lower)


def test_what_is_known_of_several_values_with_gumbel_noise() -> None:
    about = ReportNoisyMax("Gumbel", 10, 3, returns="value")
    several = Composed(about, 3)
    epsilon = profile.epsilon(several, "1e-6")
    assert profile.epsilon(about, "1e-6").upper < epsilon.lower < epsilon.upper
    assert epsilon.upper < epsilon.lower * Decimal("1.1")
    assert profile.epsilon(several, 0).lower.is_infinite()
    assert guarantees.rho(several).lower.is_infinite()


@pytest.mark.parametrize("scale", quick(["1e-3", "1e20"], 0))
def test_several_values_beyond_floats(scale: str) -> None:
    found = profile.delta(Composed(ReportNoisyMax("Gumbel", scale, 3, returns="value"), 2), 1)
    assert 0 <= found.lower <= found.upper <= 1
