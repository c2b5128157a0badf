"""Figure 6: private principal components, R1SMG at a ten-millionth of the others' ε."""

from __future__ import annotations

from functools import partial

from dpassay.figures.description import Description
from dpassay.figures.less_is_more import pca

DESCRIPTION = Description(
    number="Figure 6",
    title="Principal components of swarms against ε, δ = 1e-7",
    plotted="Total deviation Σ|λᵢ − vᵢ'Cvᵢ| of private components, and accuracy of a linear SVM on "
    "the first 20. Top as printed: each mechanism by its claimed formula, R1SMG at 0.576/M² of ε. "
    "Bottom as verified: R1SMG at the whole ε, Gaussian noise (classic, analytic, MVG and MGM are "
    "then one law), MOD-SULQ and Wishart at the least noise that is really (ε, δ)-DP; PPCA is "
    "unchanged.",
    says="R1SMG's total deviation is around 50 and its accuracy near the non-private 96.89 %, at a "
    "ten-millionth of the budget; similar to PPCA, MOD-SULQ and Wishart.",
    quote="the R1SMG mechanism has high utility although its the privacy budget is extremely "
    "limited, e.g., ϵ < 10⁻⁷, which is also close to the non-private baselines (i.e., Δ = 0 and "
    "96.89 % accuracy)",
    where="Section 7.2",
    alt="Top left: R1SMG's deviation is the lowest, at half of that of random directions; classic, "
    "analytic and MGM fall with ε, MVG, MOD-SULQ, PPCA and Wishart stay near random directions. "
    "Bottom left: the exact Gaussian and MOD-SULQ fall with ε, R1SMG and Wishart are as bad as "
    "random directions. Right: accuracies between 0.65 and 0.83, the non-private line at 0.96.",
    claims=(
        "section-7-2/sensitivity", "section-7-2/epsilon", "section-7-2/one-ten-millionth",
        "section-7-2/classic-above-one", "section-7-2/mvg-0.011",
        "section-7-2/mvg-0.011/corrected", "section-7-2/dp-claim",
        "section-7-2/total-deviation-2041", "section-7-2/nonprivate-zero",
        "section-7-2/accuracy-96.89", "section-7-2/figure-6", "section-7-2/symmetrise",
        "section-7-2/mod-sulq", "section-7-2/ppca", "section-7-2/wishart/cited",
        "section-7-2/wishart/corrected", "theorem-5/needed/pca",
    ),
    assumptions=pca.ASSUMPTIONS,
    differs="By default 20 boids and 2402 records (the paper: 200 and 24016, --full): the same "
    "M/n, and R1SMG's share of ε grows with 1/M² as its bound on ε does. Relative to the trace of "
    "the covariance R1SMG's noise is then √10 times stronger than at M = 2400, and its accuracy is "
    "0.76 to 0.79: with the noise of Theorem 5 divided by √10 it is 0.78 (ε = 0.2) to 0.89 "
    "(ε = 1.6) on the same records. That the paper's 0.97 does not appear is due to the size of "
    "the stand-in first, then to its spectrum, in which three components stand out. Wishart noise "
    "is not ε-DP at any scale; what is verified is (0, δ)-DP.",
    needs=("sklearn",),
)  # fmt: skip


compute = partial(pca.compute, same_budget=False)
draw = pca.draw
