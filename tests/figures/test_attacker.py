"""The picture of what an attacker gains, on the page of a verdict."""

from __future__ import annotations

import dpassay
from dpassay.figures import tradeoff


def test_the_picture_has_the_exact_probability_and_what_the_claim_allows() -> None:
    noise = dpassay.Gaussian(1)
    table = tradeoff.compute(noise, {"mu": "0.8"})
    assert table is not None
    rows = {prior: (true, claimed) for prior, true, claimed in tradeoff.guesses(table)}
    for prior in (0.125, 0.25, 0.5, 0.75):
        exact = float(dpassay.membership(noise, str(prior)))
        allowed = float(dpassay.membership(dpassay.Gaussian(1, "0.8"), str(prior)))
        # The best of some tests: below the best of all, by no more than their distance tells.
        assert exact - 2e-3 < rows[prior][0] < exact + 1e-12
        assert allowed - 2e-3 < rows[prior][1] < allowed + 1e-12
    legend = tradeoff.draw_guesses(table).axes[0].get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.texts]
    assert labels == ["true", "claimed 0.8-GDP", "without the release"]
