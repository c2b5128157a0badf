"""`dpassay.plot` draws what it is given, with the numbers that were answered."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import dpassay
from accountant.core.drawing import Drawable
from accountant.errors import AdjacencyError, InvalidInputError, NotApplicableError
from accountant.mechanisms import Gaussian


def heights(figure: Any, line: int = 0) -> list[float]:
    return [float(y) for y in figure.axes[0].lines[line].get_ydata()]


def test_a_mechanism_is_drawn_from_its_enclosures(tmp_path: Path) -> None:
    figure = Gaussian(1).plot(tmp_path / "delta.png")
    drawn = heights(figure)
    assert drawn == sorted(drawn, reverse=True)
    assert drawn[0] == float(dpassay.delta("Gaussian(1)", 0))
    assert (tmp_path / "delta.png").stat().st_size > 10_000


def test_the_points_that_were_asked_are_marked() -> None:
    found = dpassay.profile("Gaussian(1)", epsilon=[1, 2])
    texts = [text.get_text() for text in dpassay.plot(found).axes[0].texts]
    assert texts == ["δ(1) = 0.1269", "δ(2) = 0.02092"]


def test_a_training_run_says_its_epsilon() -> None:
    run = dpassay.dpsgd(1, 10, 1000, steps=1000, delta="1e-5")
    assert f"ε = {run.epsilon:.4g} at δ = 1e-5" in run.plot().axes[0].get_title(loc="left")


def test_a_finding_is_drawn_beside_its_claim() -> None:
    finding = dpassay.verify("Gaussian(1)", epsilon=1, delta="1e-5")
    labels = finding.plot().axes[0].get_legend_handles_labels()[1]
    assert labels == ["true", "claimed (1, 1e-5)-DP"]


def test_the_bars_of_a_comparison_are_its_errors() -> None:
    found = dpassay.compare("Count()", epsilon=1, simulated=False)
    axes = found.plot().axes[0]
    bars: list[Any] = list(axes.patches)
    widths = [bar.get_width() for bar in bars]
    assert widths == [record[found.ranked_by.name] for record in found.to_records()]
    assert widths == sorted(widths)


def test_what_cannot_be_drawn_is_named() -> None:
    with pytest.raises(InvalidInputError, match="not int"):
        dpassay.plot(3)  # type: ignore[arg-type]
    with pytest.raises(AdjacencyError):
        dpassay.plot("PoissonSubsampled(Gaussian(1), 0.1)")
    with pytest.raises(NotApplicableError, match="no trade-off function"):
        dpassay.plot(dpassay.verify("Gaussian(1)", rho="0.4"))
    with pytest.raises(InvalidInputError, match=r"\.png"):
        dpassay.plot("Gaussian(1)", "picture.gif")


def test_without_the_public_face_nothing_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Drawable, "drawer", None)
    with pytest.raises(NotApplicableError, match="import dpassay"):
        Gaussian(1).plot()


def test_records_become_a_frame_where_pandas_is(monkeypatch: pytest.MonkeyPatch) -> None:
    found = dpassay.profile("Laplace(1)", epsilon=[0, 2], delta=0)
    assert [record["name"] for record in found.to_records()] == ["delta", "delta", "epsilon"]
    assert found.to_records()[1]["value"] == 0
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NotApplicableError, match="pip install pandas"):
        found.to_pandas()
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    assert found.to_pandas() == found.to_records()
