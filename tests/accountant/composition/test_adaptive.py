"""Releases that choose among several worst pairs: what is attained, and what dominates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from dpassay.accountant.composition import choose
from dpassay.accountant.composition.adaptive import Adaptive
from dpassay.accountant.composition.product import Product
from dpassay.accountant.core.adjacency import Adjacency, Direction
from dpassay.accountant.core.pair import Pair, upper_bound
from dpassay.accountant.errors import NotApplicableError
from dpassay.accountant.mechanisms import (
    Channel,
    Composed,
    Gaussian,
    IntegerNoise,
    SampledWithoutReplacement,
)
from dpassay.accountant.numbers.exact import exact
from dpassay.accountant.pairs.finite import FinitePair
from dpassay.accountant.pairs.subsampled import EnvelopePair, envelope
from dpassay.accountant.questions import guarantees, profile, tradeoff
from tests.near import narrow
from tests.quick import slow

SKEW = IntegerNoise(["1/16", "1/8", "5/16", "1/4", "3/16", "1/16"], lowest=-2)
WIDE = IntegerNoise(["1/20", "3/10", "3/20", "3/20", "3/10", "1/20"], lowest=-2, sensitivity=2)
RARE = SampledWithoutReplacement(Gaussian(standard_deviation=1), 1, 4)


def laws(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """Return the masses of a listed pair."""
    assert isinstance(pair, FinitePair)
    rational = pair.source.rational_masses(pair.index)
    assert rational is not None
    p, q = (np.array([float(mass) for mass in law]) for law in rational)
    return (q, p) if pair.flipped else (p, q)


def best_adaptive_delta(pairs: Iterable[Pair], count: int, epsilon: float) -> float:
    """Return the largest δ of all adaptive choices, by brute force over histories."""
    listed = [laws(pair) for pair in pairs]

    def best(left: int, eps: float) -> float:
        if left == 0:
            return max(0.0, -math.expm1(eps))
        found = 0.0
        for p, q in listed:
            total = 0.0
            for a, b in zip(p, q, strict=True):
                if a > 0:
                    total += a * (best(left - 1, eps - math.log(a / b)) if b > 0 else 1.0)
            found = max(found, total)
        return found

    return best(count, epsilon)


@pytest.mark.parametrize("epsilon", [slow("0"), "0.2", slow("1"), slow("2.5")])
@pytest.mark.parametrize(("mechanism", "relation"), [(SKEW, "replace-one"), (WIDE, "add-remove")])
def test_the_enclosure_holds_the_best_adaptive_choice(
    mechanism: IntegerNoise, relation: str, epsilon: str
) -> None:
    whole = Composed(mechanism, 3)
    worst = whole.worst_case(Adjacency.read(relation))
    case = mechanism.worst_case(None)
    families = {
        Direction.REMOVE: case.pairs(None) if relation == "replace-one" else case.remove,
        Direction.ADD: case.pairs(None) if relation == "replace-one" else case.add,
    }
    for direction, family in families.items():
        (pair,) = worst.pairs(direction)
        assert isinstance(pair, Product)
        assert isinstance(pair.engine, Adaptive)
        with ctx.workprec(256):
            value = pair.hockey_stick(exact(epsilon))
        truth = best_adaptive_delta(family, 3, float(epsilon))
        assert float(value.lower()) <= truth + 1e-12
        assert float(value.upper()) >= truth - 1e-12
        assert value.rad() < 0.05


def test_the_envelope_has_the_largest_profile_and_its_slope() -> None:
    pairs = RARE.worst_case(Adjacency.REPLACE_ONE).pairs(None)
    both = envelope(pairs)
    assert isinstance(both, EnvelopePair)
    for at in ("-0.7", "0", "0.3", "1.2"):
        eps = exact(at)
        values = [pair.hockey_stick(eps) for pair in pairs]
        assert both.hockey_stick(eps).overlaps(values[0].max(values[1]))
        tails = both.tails(eps)
        assert (tails.p_above - eps.ball().exp() * tails.q_above).overlaps(both.hockey_stick(eps))
        step = Fraction(1, 10**6)
        right = both.hockey_stick(exact(Fraction(at) + step))
        width = eps.ball().exp() * arb(1e-6)
        slope = (both.hockey_stick(eps) - right) / width
        assert abs(float(slope.mid() - tails.q_above.mid())) < 1e-5
    assert envelope(pairs[:1]) is pairs[0]
    reverse = both.reverse()
    ahead, back = both.hockey_stick(exact("0.4")), reverse.hockey_stick(exact("-0.4"))
    factor = arb("0.4").exp()
    assert (1 - factor + factor * back).overlaps(ahead)
    with pytest.raises(NotApplicableError, match="Ask for delta"):
        both.renyi(arb(2))


@pytest.mark.parametrize("order", ["1", "3/2", "7"])
def test_divergences_add_up_the_largest_of_every_release(order: str) -> None:
    """Below: each release with its own worst pair. Above: E[e^{(a−1)L}] whatever came before."""
    one = Channel([["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["1/3", "1/3", "1/3"]])
    other = Channel([["2/3", "1/3"], ["1/2", "1/2"], ["3/4", "1/4"]])
    whole = guarantees.renyi(Composed([Composed(one, 3), other]), order, adjacency="replace-one")
    apart = [guarantees.renyi(part, order, adjacency="replace-one") for part in (one, other)]
    assert abs(whole.upper / (3 * apart[0].upper + apart[1].upper) - 1) < Decimal("1e-10")
    three, two = (guarantees.rho(Composed(one, n), adjacency="replace-one") for n in (3, 2))
    assert three.overlaps(two * 3 / 2)


def test_a_sample_without_replacement_has_one_relation() -> None:
    """Its composition needs none to be named, as it needs none itself."""
    from dpassay.accountant.mechanisms import Gaussian, SampledWithoutReplacement

    whole = Composed(SampledWithoutReplacement(Gaussian(standard_deviation=1), 10, 100), 2)
    found, named = (
        profile.delta(whole, 1, adjacency=relation, relative_width=Fraction(1, 2))
        for relation in (None, "replace-one")
    )
    assert found == named


@pytest.mark.parametrize("epsilon", ["0.2", "1", slow("2")])
def test_ends_farther_apart_than_half_are_an_answer(epsilon: str) -> None:
    """20 samples: δ is at least that of samples in one direction alone, within a factor of 1.7."""
    sample = SampledWithoutReplacement(Gaussian(standard_deviation=2), 10, 100)
    found = profile.delta(Composed(sample, 20), epsilon)
    for pair in sample.worst_case(None).pairs(None):
        at = exact(epsilon, "epsilon")
        assert float(found.upper) >= float(choose.product([(pair, 20)]).hockey_stick(at).lower())
    assert 0 < found.lower < found.upper < Decimal("1.7") * found.lower


@pytest.mark.slow
def test_beta_of_choices_has_two_ends() -> None:
    """A table: the least β of fixed choices is near both ends, and not below the lower one."""
    found = tradeoff.beta(Composed(SKEW, 2), "0.1", adjacency="replace-one")
    pairs = [laws(pair) for pair in SKEW.worst_case(Adjacency.REPLACE_ONE).pairs(None)]
    best = 1.0
    for (p, q), (r, s) in itertools.product(pairs, repeat=2):
        one, two = np.outer(p, r).ravel(), np.outer(q, s).ravel()
        order = np.argsort(two / np.maximum(one, 1e-300))  # most likely under P first
        level, power = np.cumsum(two[order]), np.cumsum(one[order])
        best = min(best, 1 - float(np.interp(0.1, level, power)))
    assert float(found.lower) <= best * (1 + 1e-12)
    assert found.upper < Decimal("1.3") * found.lower


@pytest.mark.slow
def test_losses_that_are_all_beyond_what_matters() -> None:
    """Every finite loss of a choice may exceed what a sum needs to be above ε: none is cut."""
    steps = IntegerNoise(["3/7", "3/7", "1/7"], 0, sensitivity=2)
    pairs = steps.worst_case(Adjacency.REPLACE_ONE).pairs(None)
    found = profile.delta(Composed(steps, 2), "0.4", adjacency="replace-one")
    true = best_adaptive_delta(pairs, 2, 0.4)
    assert float(found.lower) <= true * (1 + 1e-12)
    assert true <= float(found.upper) * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", ["0", "1/3", "log(2)", "log(3)"])
def test_a_few_choices_among_tables_have_an_exact_profile(epsilon: str) -> None:
    rows = [
        ["1/2", "1/2", 0, 0],
        ["49/100", "49/100", "1/100", "1/100"],
        ["0.48", "0.51", "0.01", 0],
    ]
    for channel in (Channel(rows), Channel([["3/4", "1/4"], ["1/4", "3/4"], ["2/5", "3/5"]])):
        pairs = channel.worst_case(None).pairs(None)
        for count in (1, 2, 3):
            whole = Composed(channel, count).worst_case(None).pairs(None)
            known = [pair.known.exact(exact(epsilon)) for pair in whole]
            largest = max(float(value) for value in known if value is not None)
            truth = best_adaptive_delta(pairs, count, float(exact(epsilon)))
            assert largest == pytest.approx(truth, rel=1e-12, abs=0)


def test_few_sums_of_tables_are_exact_and_at_most_basic_composition() -> None:
    """Either record of three leaks 1/50 at most, one of them all of it: δ = 1 − (1 − 1/50)^k."""
    rows = [["1/2", "1/2", 0, 0], ["49/100", "49/100", "1/100", "1/100"]]
    leaky = Channel([*rows, ["12/25", "51/100", "1/100", 0]])
    for count in (2, 5):
        true = 1 - Fraction(49, 50) ** count
        found = profile.delta(Composed(leaky, count), 0)
        assert Fraction(found.lower) <= true <= Fraction(found.upper)
        assert narrow(found, Fraction(1, 10**9))
        assert profile.epsilon(Composed(leaky, count), true + Fraction(1, 1000)).upper == 0
        assert profile.epsilon(Composed(leaky, count), true - Fraction(1, 1000)).lower.is_infinite()


@pytest.mark.parametrize("count", [2, 300])
def test_no_bound_of_choices_is_above_basic_composition(count: int) -> None:
    """Also where sums are too many to be exact."""
    pair = Composed(SKEW, count).worst_case(Adjacency.REPLACE_ONE).pairs(None)[0]
    assert isinstance(pair, Product)
    for epsilon in (exact(0), exact("0.1"), exact(50)):
        assert upper_bound(pair, epsilon).upper() <= pair.basic_bound(epsilon) * (1 + arb(2) ** -40)
