"""Few releases of subsampled Laplace noise: closed form, quadrature, the grid and inversion."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from accountant import profile
from accountant.adjacency import Adjacency
from accountant.composition import engines, pieces, product
from accountant.composition.atoms import AtomicPair
from accountant.composition.grid import CELLS, GridPair
from accountant.composition.joint import Factor, UnsuitedError
from accountant.composition.ladder import LadderPair
from accountant.composition.pieces import PiecewisePair
from accountant.errors import NotApplicableError, UndecidedError
from accountant.interval import enclose
from accountant.mechanisms import Composed, Gaussian, Laplace, PoissonSubsampled
from accountant.number import ExactReal, exact

RELATION = Adjacency.ADD_REMOVE
WIDTH = Fraction(1, 10**9)
LAWS = [("1", "0.01"), ("2", "0.3"), ("0.7", "0.002")]


def factors(number: int, count: int, *, add: bool = False) -> tuple[Factor, ...]:
    scale, share = LAWS[number]
    case = PoissonSubsampled(Laplace(scale=scale), share).worst_case(RELATION)
    return (((case.add if add else case.remove)[0], count),)


def sides(count: int, number: int = 0) -> list[PiecewisePair]:
    return [PiecewisePair(factors(number, count, add=add)) for add in (False, True)]


@pytest.mark.parametrize("number", range(len(LAWS)))
@pytest.mark.parametrize("share", ["-0.9", "-0.2", "0.1", "0.5", "0.999"])
def test_one_release_has_a_closed_form(number: int, share: str) -> None:
    for pair in sides(1, number):
        with ctx.workprec(192):
            end = pair.max_loss() if float(share) > 0 else pair.reverse().max_loss()
            at = exact(Fraction(share) * Fraction(float(end)).limit_denominator(10**9))
            found = pair.hockey_stick(at)
            assert found.contains(pair.factors[0][0].hockey_stick(at))
            assert 0 < found.rad() < 1e-9 * found.mid()


def test_two_releases_are_an_integral_over_one() -> None:
    """In floats, by a dense sum over the noise of the first, with the closed form of the second."""
    distance, share, epsilon = 1.0, 0.01, 0.012
    (first, second), (one, _) = sides(2), factors(0, 1)[0]

    def single(at: np.ndarray) -> np.ndarray:
        """H of ((1 − q)B + qA, B): q H_Laplace(ln(1 + (e^ε − 1)/q)), closed."""
        inside = 1 + np.expm1(at) / share
        level = np.log(np.where(inside > 0, inside, 1.0))
        laplace = np.where(level >= distance, 0.0, -np.expm1((level - distance) / 2))
        low = np.where(level <= -distance, -np.expm1(level), laplace)
        return np.where(inside > 0, share * low, -np.expm1(at))

    with ctx.workprec(128):
        near = float(one.hockey_stick(exact("0.005")))
    assert single(np.array([0.005]))[0] == pytest.approx(near, rel=1e-12)
    loss = (np.arange(2_000_000) + 0.5) / 1_000_000 * distance - distance
    w = 1 - share + share * np.exp(loss)
    mass = np.exp(-(loss + distance) / 2) / 4 * w * distance / 1_000_000
    total = float((mass * single(epsilon - np.log(w))).sum())
    for end, atom in ((-distance, 0.5), (distance, np.exp(-distance) / 2)):
        w_end = 1 - share + share * np.exp(end)
        total += atom * w_end * float(single(np.array([epsilon - np.log(w_end)]))[0])
    with ctx.workprec(192):
        found = first.hockey_stick(exact("0.012"))
    assert float(found) == pytest.approx(total, rel=1e-8)
    assert second.hockey_stick(exact("0.012")) > 0


@pytest.mark.parametrize(("number", "count", "epsilon"), [(0, 3, "0.02"), (1, 5, "0.4")])
def test_the_grid_contains_it(number: int, count: int, epsilon: str) -> None:
    for pair in sides(count, number):
        with ctx.workprec(192):
            found = pair.hockey_stick(exact(epsilon))
        lower, upper = GridPair(pair.factors).bounds(exact(epsilon), CELLS[0])
        assert lower.lower() <= found.upper()
        assert found.lower() <= upper.upper()
        assert found.is_zero() or float(found.rad() / found.mid()) < 1e-9


def test_inversion_says_the_same() -> None:
    for pair in sides(60):
        eps = exact("0.2")
        found, other = (
            enclose(lambda: one.hockey_stick(eps), relative_width=WIDTH)  # noqa: B023
            for one in (pair, AtomicPair(pair.factors))
        )
        assert found.overlaps(other)


@pytest.mark.parametrize(
    ("count", "delta", "known"),
    [
        (2, "1e-5", "0.0337895451"),
        (10, "1e-5", "0.0993847295"),
        (10, "1e-100", "0.170368632"),
        (20, "1e-20", "0.340733649"),
        (20, "1e-100", "0.3407372647"),
        (100, "1e-100", "1.70368632"),
    ],
)
def test_deep_tails(count: int, delta: str, known: str) -> None:
    whole = Composed(PoissonSubsampled(Laplace(scale=1), "0.01"), count)
    found = profile.epsilon(whole, delta, adjacency=RELATION, relative_width=WIDTH)
    assert found.relative_width is not None
    assert found.relative_width <= WIDTH
    assert str(found) == known
    # all at the upper atom, less than which no bound can be
    with ctx.workprec(192):
        (pair, _) = factors(0, 1)[0]
        top = count * pair.max_loss()
        atom = pair.tails(exact(Fraction(float(pair.max_loss())) * (1 - Fraction(1, 10**12))))
        gap = 1 - (exact(found.upper).ball() - top).exp()
        assert atom.p_above**count * gap <= exact(delta).ball() * 2


def test_narrow_widths_and_reversed_pairs() -> None:
    (pair, _) = sides(4)
    with ctx.workprec(192):
        there, back = pair.hockey_stick(exact("0.01")), pair.reverse().hockey_stick(exact("-0.01"))
        shrink = (-exact("0.01").ball()).exp()
        assert back.overlaps(1 - shrink + shrink * there)
    narrow = enclose(lambda: pair.hockey_stick(exact("0.02")), relative_width=Fraction(1, 10**18))
    assert narrow.relative_width is not None
    assert narrow.relative_width <= Fraction(1, 10**18)
    with pytest.raises(UndecidedError, match="Reached delta in"):
        enclose(lambda: pair.hockey_stick(exact("0.02")), relative_width=Fraction(1, 10**60))
    with ctx.workprec(192):
        lowest = pair.hockey_stick(exact(-1))
        assert lowest.overlaps(1 - arb(-1).exp())
        assert pair.hockey_stick(exact(1)) == 0


def test_a_step_is_a_mean() -> None:
    """A function that is 1 everywhere stays 1."""
    for add in (False, True):
        ((pair, _),) = factors(1, 1, add=add)
        with ctx.workprec(192):
            law = pieces._Law(pair.inner.distance, pair.sampling_prob, pair.mixed_first, 3.0)  # type: ignore[attr-defined]  # the pair of the engine
            density, _ = law.density(-60.0)
            step = pieces._Step.of(law, density, len(density))
            step = step.over(step.moment)
            one = [arb(1)] + [arb(0)] * len(density)
            columns, cut = step.apply([one, one])
            assert abs(columns[0][0] - 1) < 1e-40
            assert all(abs(x) < 1e-40 for x in columns[0][1:])
            assert cut < 1e-12


def test_steep_densities_go_to_other_engines() -> None:
    case = PoissonSubsampled(Laplace(scale="1/12"), "0.01").worst_case(RELATION)
    pair = PiecewisePair(((case.remove[0], 5),))
    with pytest.raises(UnsuitedError, match="too steep"):
        pair.hockey_stick(exact("0.5"))
    assert not pieces.applies(((case.remove[0], 1000),))
    ladder = product(((case.remove[0], 5),))
    assert isinstance(ladder, LadderPair)
    assert isinstance(ladder.rungs[0], PiecewisePair)
    few = Composed(PoissonSubsampled(Laplace(scale=1), "0.1"), 3)
    assert "pieces" in engines.applicable(few, RELATION)
    with pytest.raises(NotApplicableError, match="Polynomials are for a few releases"):
        profile.delta(Composed(Gaussian(standard_deviation=1), 3), 1, method="pieces")
    with pytest.raises(NotApplicableError, match="mpmath"):
        pair.reference()


@pytest.mark.parametrize(("square", "side"), [(10**9 + 4, -1), (10**9 + 7, 1)])
def test_losses_beside_a_root_lie_on_their_side(square: int, side: int) -> None:
    """The float next to the root is farther from it than the step."""
    root, step = ExactReal.of_root(Fraction(square)), Fraction(side, 1 << 40)
    with ctx.workprec(192):
        beside, _ = sides(2)[0]._beside(root, step)
        assert (beside - root.ball()) * side > 0
