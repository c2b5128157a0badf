"""Questions that no engine answers: refused soon, with what was reached."""

from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb

from accountant import profile
from accountant.adjacency import Adjacency
from accountant.composition.bent import Piece, Planner
from accountant.composition.grid import CELLS, GridPair
from accountant.composition.saddle_list import FloatDiscreteGaussian
from accountant.composition.saddle_pair import SmoothPair
from accountant.composition.sure import sure_cut
from accountant.errors import UndecidedError
from accountant.mechanisms import Composed, Gaussian, Laplace, PoissonSubsampled
from accountant.number import ExactReal, exact

NEAR = Fraction(1, 10**9)


def removal(sigma: str, q: str, count: int) -> SmoothPair:
    pair = releases(sigma, q, count).worst_case(Adjacency.ADD_REMOVE).remove[0]
    assert isinstance(pair, SmoothPair)
    return pair


def releases(sigma: str, q: str, count: int) -> Composed:
    return Composed(PoissonSubsampled(Gaussian(standard_deviation=sigma), q), count)


def test_a_grid_that_says_nothing_is_not_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took a minute to refuse a δ of about e^−3730, as one in [0, 0]."""
    sizes = []
    bounds = GridPair.bounds

    def counted(self: GridPair, epsilon: ExactReal, cells: int) -> tuple[arb, arb]:
        sizes.append(cells)
        return bounds(self, epsilon, cells)

    monkeypatch.setattr(GridPair, "bounds", counted)
    with pytest.raises(
        UndecidedError, match=r"Reached delta in \[0, [1-9].*e-[0-9]+\] on"
    ) as refusal:
        profile.delta(
            releases("24.7", "0.0003669", 157), "69.43", adjacency="add-remove", relative_width=NEAR
        )
    assert set(sizes) == {CELLS[0]}
    assert refusal.value.reached == float("inf")


def test_tails_of_a_profile_that_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ball wider than floats reach was a ValueError."""
    monkeypatch.setattr(GridPair, "hockey_stick", lambda self, epsilon: arb(0, "1e400"))
    tails = GridPair(removal("28.45", "2.414e-5", 8).factors).tails(exact("1"))
    assert tails.p_above.contains(arb("0.5"))
    assert tails.q_above.contains(arb("0.5"))


def test_a_contour_that_hardly_falls_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """All 120 pieces were planned, though |f| fell by a hundredth of what was needed on them."""
    found: list[Piece] = []
    ask = Planner._piece

    def kept(self: Planner, start: complex, length: float) -> Piece:
        found.append(ask(self, start, length))
        return found[-1]

    monkeypatch.setattr(Planner, "_piece", kept)
    width = Fraction(1, 10**300)
    with pytest.raises(UndecidedError, match="pieces"):
        profile.delta(
            releases("1.1", "256/60000", 2), "1", adjacency="add-remove", relative_width=width
        )
    assert len(found) < 60


def test_losses_beyond_which_floats_have_no_grid() -> None:
    """A grid of gigabytes was formed."""
    loss = removal("27.68", "1.186e-6", 293_958_126).loss()
    with pytest.raises(UndecidedError, match="sure to decide"):
        sure_cut(loss, 11_670.0, -250.0, 1.0)


def test_a_bent_contour_is_not_planned_again_for_hardly_fewer_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []

    def refused(self: SmoothPair, kernel: object, strip: object, epsilon: object, bits: int) -> arb:
        tried.append(bits)
        raise UndecidedError("No contour was found.")

    monkeypatch.setattr(SmoothPair, "_bent", refused)
    with pytest.raises(UndecidedError):
        profile.delta(
            releases("0.4173", "4.194e-5", 4), "1e-5", adjacency="add-remove", relative_width=NEAR
        )
    assert len(tried) == 2
    assert tried[1] < 0.8 * tried[0]


@pytest.mark.parametrize("epsilon", ["1e200", "1e300"])
def test_losses_that_nothing_tells_from_zero_beside_epsilon(epsilon: str) -> None:
    mechanism = Composed([Laplace("1"), Gaussian(standard_deviation="1")], 2)
    with pytest.raises(UndecidedError, match="nearer to 0"):
        profile.delta(mechanism, epsilon)


def test_tilts_beyond_which_integers_are_not_told_apart() -> None:
    with pytest.raises(UndecidedError, match="beyond floats"):
        FloatDiscreteGaussian(3.0, 1).cumulants(1e30)
