"""Drawings of laws show every positive probability and nothing else."""

from __future__ import annotations

import numpy as np

from figures import law


def test_every_positive_probability_is_shown() -> None:
    figure = law.draw([("a", -1, [0.25, 0.5, 0.25]), ("b", 0, [0.9, 0.0, 0.1])], title="two")
    axes = figure.axes[0]
    first, second = axes.lines
    np.testing.assert_array_equal(np.asarray(first.get_xdata()), [-1, 0, 1])
    np.testing.assert_array_equal(np.asarray(second.get_xdata()), [0, 2])
    np.testing.assert_array_equal(np.asarray(second.get_ydata()), [0.9, 0.1])
    assert axes.get_yscale() == "log"
    assert axes.get_ylabel() == "P(Z = z)"
    assert [line.get_label() for line in axes.lines] == ["a", "b"]
    assert axes.get_legend() is not None
