"""Figure 10: maps of pickups, ε = 1e-5 for every mechanism."""

from __future__ import annotations

from dpassay.figures import style
from dpassay.figures.description import Description, Settings
from dpassay.figures.less_is_more import maps
from dpassay.figures.table import Table

DESCRIPTION = Description(
    number="Figure 10",
    title="Pickups on 89×89 cells: ε = 1e-5 for every mechanism",
    plotted="As Figure 4 with ε = 1e-5 for the classic and analytic Gaussian, MVG, MGM, DAWA and "
    "H_b; non-private counts and R1SMG's are repeated. Last row: R1SMG and Gaussian noise that "
    "are really (ε, δ)-DP, and simplified DAWA and H_b at half of ε, for a move.",
    says="At R1SMG's ε the other mechanisms release nothing of use: largest counts of an order of "
    "10⁵ and more.",
    quote="under extreme restricted privacy guarantee, these mechanisms achieve very poor "
    "utility as the number of pickups are on the order of 10⁵",
    where="Appendix D",
    alt="Twelve maps of a city. Only the non-private one and the printed R1SMG show the city; in "
    "all others, the verified R1SMG among them, the cells are saturated noise or one even colour.",
    claims=("appendix-d/order-1e5", "theorem-5/needed", "theorem-5/needed/against-gaussian"),
    assumptions=maps.ASSUMPTIONS,
    differs="Non-private counts, R1SMG and the last row are added.",
)
_OTHERS = ("classic", "analytic", "MVG", "MGM", "DAWA", "H_b")
_REQUESTS: tuple[maps.Request, ...] = (
    ("printed", "R1SMG", "1e-5"),
    *(("printed", name, "1e-5") for name in _OTHERS),
    ("verified", "R1SMG", "1e-5"),
    ("verified", maps.EXACT, "1e-5"),
    ("verified", "DAWA", "1e-5"),
    ("verified", "H_b", "1e-5"),
)


def compute(settings: Settings) -> Table:
    """Release the counts by each mechanism."""
    return maps.compute(settings, _REQUESTS)


def draw(table: Table) -> style.Figure:
    """Draw the printed maps in two rows, the verified ones in a third."""
    requests = [("data", "non-private", ""), *_REQUESTS]
    return maps.draw(table, 3, 4, dict(zip(requests, range(12), strict=True)))
