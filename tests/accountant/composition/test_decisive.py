"""Losses that decide alone, cut away: enclosures beside other engines and an integral."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from flint import acb, arb, ctx

from accountant import profile
from accountant.adjacency import Adjacency, Direction
from accountant.composition.apart import apart
from accountant.composition.atoms import AtomicPair
from accountant.composition.cut_line import best_line
from accountant.composition.decisive import (
    Cut,
    cut_laws,
    decided,
    least_loss,
    log_large,
    lowest_threshold,
    small_parts,
    small_threshold,
    threshold_of,
)
from accountant.composition.joint import Factor
from accountant.composition.laws import ListedLaw
from accountant.composition.line import choose_line, known_laws
from accountant.composition.mixture_law import MixtureLaw
from accountant.composition.node_values import ROW
from accountant.mechanism import Mechanism
from accountant.mechanisms import (
    Composed,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    MixtureOfGaussians,
    PoissonSubsampled,
)
from accountant.number import ExactReal, exact
from accountant.pairs.gaussian_mixture import GaussianMixturePair

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDTH = Fraction(1, 10**9)
GROUP = MixtureOfGaussians(1, [0, 1, 2], ["0.9801", "0.0198", "0.0001"])
WIDE = MixtureOfGaussians(1, [0, 1, 2, 3, 4], ["0.8", "0.1", "0.05", "0.03", "0.02"])
UNEVEN = MixtureOfGaussians("0.5", [0, "0.3", "0.7", "1.1"], ["0.97", "0.01", "0.01", "0.01"])
SAMPLE = PoissonSubsampled(Gaussian(standard_deviation=1), "0.01")
LAPLACE = PoissonSubsampled(Laplace(scale=1), "0.01")
INTEGERS = PoissonSubsampled(DiscreteGaussian(4), "0.01")


def factors(mechanism: Mechanism, count: int = 1) -> tuple[Factor, ...]:
    pair = Composed(mechanism, count).worst_case(Adjacency.ADD_REMOVE).remove[0]
    return apart([(pair, 1)])


@pytest.mark.parametrize(
    ("mechanism", "near"),
    [
        (Composed(GROUP, 10), 1.24390880),
        (Composed(UNEVEN, 10), 7.0673802),
        (Composed([LAPLACE, SAMPLE], 10), 0.597477721),
        (Composed([INTEGERS, SAMPLE], 10), 0.59404431),
        (Composed([LAPLACE, INTEGERS], 10), 0.141858173),
    ],
)
def test_mixed_compositions_to_1e_9(mechanism: Mechanism, near: float) -> None:
    """The inverse, and H there beside the line through the saddle of all losses, if rougher."""
    found = profile.epsilon(mechanism, "1e-6", adjacency="add-remove", relative_width=WIDTH)
    assert (found.relative_width or 0) <= WIDTH
    assert float(found.lower) == pytest.approx(near, rel=1e-8, abs=0)
    parts = factors(mechanism)
    pair, middle = AtomicPair(parts), exact(near)
    with ctx.workprec(192):
        cut = best_line(parts, near, 1e-8)
        assert cut.cut is not None
        narrow = pair._value(middle, cut, 1e-8)[0]
        whole = pair._value(middle, choose_line(parts, near, 1e-6), 1e-6)[0]
    assert narrow.rad() < 1e-8 * narrow.mid()
    assert whole.rad() < 0.1 * whole.mid()
    assert narrow.overlaps(whole)


def integrated(pair: GaussianMixturePair, epsilon: arb) -> arb:
    """Return H(ε) of two releases: the profile of one, a closed form, over the loss of the other.

    With X on the axis of the second release and t(X) where its loss is ε less that of the first,
    H = E_P[P(X > t)] − e^ε E_Q[Q(X > t)], to 1e-12: the trapezoidal rule in floats, as 1e-6 is.
    """
    w, a = np.array([float(w) for w, _ in pair.p]), np.array([float(m) for _, m in pair.p])

    def log_density(x: NDArray[Any]) -> NDArray[Any]:
        terms = np.log(w)[:, None] + a[:, None] * (x[None, :] - a[:, None] / 2)
        found: NDArray[Any] = np.logaddexp.reduce(terms, axis=0)
        return found

    low = np.log(w[a == 0][0])
    nodes = np.linspace(-14.0, 22.0, 36_001)
    losses = log_density(nodes)
    rest = float(epsilon) - losses
    reached = rest > low
    left, right = np.full(reached.sum(), -40.0), np.full(reached.sum(), 60.0)
    for _ in range(70):
        middle = (left + right) / 2
        above = log_density(middle) > rest[reached]
        left, right = np.where(above, left, middle), np.where(above, middle, right)
    from scipy.special import ndtr

    first = np.ones_like(nodes)
    second = np.ones_like(nodes)
    first[reached] = (w[:, None] * ndtr(a[:, None] - right[None, :])).sum(axis=0)
    second[reached] = ndtr(-right)
    bell = np.exp(-nodes * nodes / 2) / np.sqrt(2 * np.pi) * (nodes[1] - nodes[0])
    return arb(float((bell * (np.exp(losses) * first - np.exp(float(epsilon)) * second)).sum()))


@pytest.mark.parametrize(("mechanism", "near"), [(GROUP, 0.92209211), (WIDE, 24.0458126)])
def test_two_releases_beside_an_integral(mechanism: Mechanism, near: float) -> None:
    found = profile.epsilon(
        Composed(mechanism, 2), "1e-6", adjacency="add-remove", relative_width=WIDTH
    )
    assert (found.relative_width or 0) <= WIDTH
    assert float(found.lower) == pytest.approx(near, rel=3e-9, abs=0)
    pair = mechanism.worst_case(Adjacency.ADD_REMOVE).remove[0]
    assert isinstance(pair, GaussianMixturePair)
    for end in (found.lower, found.upper):
        value = AtomicPair(((pair, 2),)).hockey_stick(exact(end))
        true = float(integrated(pair, exact(end).ball()))
        assert float(value) == pytest.approx(true, rel=1e-9, abs=0)


@pytest.mark.parametrize(
    ("deviation", "q", "count", "delta"),
    [
        ("1", "0.01", 2, "1e-9"),
        ("1", "0.01", 4, "1e-20"),
        ("0.5", "0.05", 2, "1e-4"),
        ("4", "0.001", 2, "1e-9"),  # losses far smaller than the angle of one component
    ],
)
def test_beside_contours_of_balls(deviation: str, q: str, count: int, delta: str) -> None:
    rest = str(1 - Fraction(q))
    mixture = MixtureOfGaussians(deviation, [0, 1], [rest, q])
    sample = PoissonSubsampled(Gaussian(standard_deviation=deviation), q)
    pair = AtomicPair(factors(mixture, count))
    found = pair.inverse(exact(delta), WIDTH)
    assert (found.relative_width or 0) <= WIDTH
    known = profile.epsilon(
        Composed(sample, count),
        delta,
        adjacency="add-remove",
        direction=Direction.REMOVE,
        relative_width=Fraction(1, 10**11),
    )
    assert found.lower <= known.upper
    assert known.lower <= found.upper


def test_the_line_is_cut_where_large_losses_cancel() -> None:
    with ctx.workprec(192):
        both = best_line(factors(GROUP, 2), 0.922, 1e-9)
        assert both.cut is not None
        assert both.cut.small is not None
        assert best_line(factors(GROUP, 1000), 4.55, 1e-9).cut is None
        assert best_line(factors(Gaussian(standard_deviation=1), 10), 4.0, 1e-9).cut is None


def test_what_is_decided_beside_all_outcomes_of_two_lists() -> None:
    """H of what is left, summed over all pairs of values, and what decides make up H."""
    found = factors(PoissonSubsampled(DiscreteGaussian(1), "0.05"), 2)
    with ctx.workprec(192):
        whole = known_laws(found, -120.0)
        (law,) = whole
        assert isinstance(law, ListedLaw)
        cut = Cut(2.0, 0.0, 48.0)
        (left,) = cut_laws(whole, cut)
        assert isinstance(left, ListedLaw)
        epsilon = exact("1.8")
        sure, rest = decided([left], found, cut, epsilon)

        assert rest == 0
        missing = 2 * law.missing
        assert (summed(left, epsilon) + sure).overlaps(summed(law, epsilon) + arb(0).union(missing))
        assert 0.2 < sure / summed(law, epsilon) < 1
        # of a law whose losses have no known bound below, nothing is known of a low threshold
        (blind,) = cut_laws([ListedLaw(law._law, 2)], cut)
        assert not decided([blind], found, cut, exact("1.95"))[1].is_finite()


def summed(law: ListedLaw, epsilon: ExactReal) -> arb:
    """Return H(ε) of two losses on a list, over all pairs of values."""
    rows = list(zip(law._law.losses, law._law.p, strict=True))
    total = arb(0)
    for (a, p), (b, r) in itertools.product(rows, rows):
        if a + b > epsilon.ball():
            total += p * r * (1 - (epsilon.ball() - a - b).exp())
    return total


@pytest.mark.parametrize("epsilon", ["1.93", "1.97"])
def test_sums_that_come_back_below_epsilon(epsilon: str) -> None:
    """A threshold below ε + m: R by hand is below its bound, and makes up the rest of H."""
    found = factors(PoissonSubsampled(DiscreteGaussian(1), "0.05"), 2)
    at = exact(epsilon)
    with ctx.workprec(192):
        (law,) = whole = known_laws(found, -120.0)
        assert isinstance(law, ListedLaw)
        cut = Cut(1.95, 0.0, 48.0)
        assert not cut.threshold >= at.ball() - least_loss(found)
        (left,) = cut_laws(whole, cut)
        sure, rest = decided([left], found, cut, at)
        rows = list(zip(law._law.losses, law._law.p, strict=True))
        back = arb(0)
        for (a, p), (b, r) in itertools.product(rows, rows):
            below = at.ball() - a - b
            if (a > cut.threshold or b > cut.threshold) and below > 0:
                back += p * r * below.expm1()
        assert rest.is_finite()
        assert back <= rest
        assert isinstance(left, ListedLaw)
        parts = summed(left, at) + sure + back
        assert parts.overlaps(summed(law, at) + arb(0).union(2 * law.missing))
        assert rest < (0.2 if epsilon == "1.93" else 0.5) * sure


def test_falling_moments() -> None:
    """E[e^{−sL}] of a whole law, from above, whether it is cut or not; nearly met for small s."""
    found = factors(PoissonSubsampled(DiscreteGaussian(4), "0.01"), 2)
    with ctx.workprec(192):
        (law,) = known_laws(found, -120.0)
        assert isinstance(law, ListedLaw)
        (left,) = cut_laws([law], Cut(0.25, 0.0, 48.0))
        assert left is not law
        for s in (arb("1.5"), arb(20), arb(400)):
            terms = zip(law._law.losses, law._law.p, strict=True)
            true = sum((p * (-s * loss).exp() for loss, p in terms), start=arb(0)).log()
            for one in (law, left):
                bound = one.log_falling(s)
                assert bound is not None
                assert bound >= true.lower()
                assert bound - true < 1e-3
    assert ListedLaw(law._law, 1).log_falling(arb(2)) is None


@pytest.mark.parametrize(
    ("parameter", "count", "near"), [(25, 10, 0.0721491199), (4, 1000, 1.6310219)]
)
def test_samples_of_integers_far_out(parameter: int, count: int, near: float) -> None:
    mechanism = Composed(PoissonSubsampled(DiscreteGaussian(parameter), "0.01"), count)
    found = profile.epsilon(mechanism, "1e-20", adjacency="add-remove", relative_width=WIDTH)
    assert (found.relative_width or 0) <= WIDTH
    assert float(found.lower) == pytest.approx(near, rel=1e-8, abs=0)
    parts, middle = factors(mechanism), exact(near)
    pair = AtomicPair(parts)
    with ctx.workprec(192):
        narrow = pair._value(middle, best_line(parts, near, 1e-8), 1e-8)[0]
        whole = pair._value(middle, choose_line(parts, near, 1e-4), 1e-4)[0]
    assert narrow.rad() < 1e-7 * narrow.mid()
    assert whole.rad() < 1e-3 * whole.mid()
    assert narrow.overlaps(whole)


def test_low_thresholds_are_for_lists_alone() -> None:
    found = factors(GROUP, 2)
    with ctx.workprec(192):
        laws = known_laws(found, -80.0)
        assert lowest_threshold(laws, found, 1.0, Cut(2.0, 0.1, 48.0), -40.0) is None


def test_no_threshold_where_losses_are_not_bounded_below() -> None:
    with ctx.workprec(192):
        assert least_loss(factors(Gaussian(standard_deviation=1))) == arb.neg_inf()
        assert threshold_of(factors(Gaussian(standard_deviation=1)), 1.0) is None
        assert threshold_of(factors(SAMPLE, 100_000), 1.0) is None
        found = threshold_of(factors(SAMPLE, 10), 1.0)
        assert found is not None
        assert 1 - 10 * np.log(0.99) < found < 1.15
        assert small_threshold(factors(LAPLACE, 10), 1.0) is None


@pytest.mark.parametrize("threshold", [0.5, 1.5])
def test_moments_values_and_falls_of_laws_with_ends(threshold: float) -> None:
    found = factors(GROUP, 3)
    with ctx.workprec(192):
        (law,) = known_laws(found, -80.0)
        assert isinstance(law, MixtureLaw)
        cut = Cut(threshold, 0.125, 48.0, threshold / 4)
        (left,) = cut_laws([law], cut)
        parts = small_parts([left], cut)
        assert isinstance(left, MixtureLaw)
        assert parts is not None
        small = parts[0].law
        assert isinstance(small, MixtureLaw)
        p = [(arb("0.9801"), 0), (arb("0.0198"), 1), (arb("0.0001"), 2)]

        def moment(z: acb, part: MixtureLaw, other: MixtureLaw | None = None) -> acb:
            """Return M(z), or the difference of two, by flint's quadrature."""

            def kept(one: MixtureLaw, x: acb) -> acb:
                product = acb(1)
                for end in one._cuts:
                    product *= ((x - end.at) / (arb(end.width) * arb(2).sqrt())).erfc() / 2
                return product

            def integrand(x: acb, _: bool) -> acb:
                density = sum((w * (m * (x - arb(m) / 2)).exp() for w, m in p), start=acb(0))
                whole = kept(part, x) - (kept(other, x) if other else 0)
                return ((1 + z) * density.log() - x * x / 2).exp() * whole

            total = acb(0)
            for k in range(-60, 60):
                total += acb.integral(integrand, k / 4, (k + 1) / 4, rel_tol=1e-30, abs_tol=1e-30)
            return total / (2 * arb.pi()).sqrt()

        for c in (arb(3), arb(14)):
            for one in (left, small):
                true = moment(acb(c), one).real
                assert one.moment(c).overlaps(true + arb(0, 1e-25))
                assert one.moment(c).rad() < 1e-30 * one.moment(c).mid()
                assert one.log_moment(float(c)) == pytest.approx(float(true.log()), abs=2e-3)
                values, error = one.factor(c, 2.0, 1).rows(0, 1)
                errors = np.broadcast_to(error, ROW)
                for k in (1, 7, 40):
                    ratio = moment(acb(c, 2 * k), one) / one.moment(c)
                    ratio *= acb(0, -2 * k * one.mean(c)).exp()
                    near = complex(float(ratio.real), float(ratio.imag))
                    assert abs(values[k] - near) <= errors[k] + 1e-15
            for omega in (10.0, 60.0, 200.0):
                size = float(abs(moment(acb(c, omega), left)) / left.moment(c))
                assert size <= left.beyond(c, omega) * (1 + 1e-9)
                size = float(abs(moment(acb(c, omega), left, small)) / left.moment(c))
                assert size <= np.exp(log_large([left], parts, float(c), omega)) * (1 + 1e-9)
        # at a low tilt, where the bulk counts: what is not small falls faster
        whole = np.log(left.beyond(arb(3), 2000.0))
        assert log_large([left], parts, 3.0, 2000.0) < min(whole - 5, -15)


def test_a_difference_is_not_taken_with_a_law_of_unbounded_losses() -> None:
    """Discrete Gaussian losses beside a mixture: no part of them is small but what is listed."""
    found = factors(Composed([INTEGERS, GROUP], 1))
    with ctx.workprec(192):
        line = choose_line(found, 1.0, 1e-6)
        cut = Cut(1.25, 0.0625, 48.0, 0.25)
        parts = small_parts(cut_laws(line.laws(found), cut), cut)
        assert parts is not None
        listed = next(part for part in parts if isinstance(part.law, ListedLaw))
        assert all(loss <= 0.25 for loss in listed.law._law.losses)  # type: ignore[attr-defined]  # a list
