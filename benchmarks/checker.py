"""How long `dpassay check` takes for claims about compositions, and to how many digits it goes.

Each claim is decided and written as a certificate; then the checker, which shares no numerical code
with the first program, finds its numbers again. Prints a table; CPU seconds of one core.

    python -P benchmarks/checker.py
"""

from __future__ import annotations

import re
import time

from dpassay.verifier import checker, document
from dpassay.verifier.certificate import certify
from dpassay.verifier.checker import integrals
from dpassay.verifier.checker.compositions import composed, contour, grid, lists


def step(sigma: str, q: str) -> str:
    """Return the notation of a subsampled Gaussian release."""
    noise = f"Gaussian(standard_deviation='{sigma}')"
    return f"PoissonSubsampled(mechanism={noise}, sampling_prob='{q}')"


def times(inside: str, count: int) -> str:
    """Return the notation of a composition."""
    return f"Composed(mechanism={inside}, count={count})"


TRAINING = times(step("1.1", "256/60000"), 7032)
DIFFERENT = (
    f"Composed(mechanism=[{times(step('1.1', '0.01'), 500)}, {times(step('0.9', '0.002'), 3000)}, "
    "Gaussian(standard_deviation=5)])"
)
GROUP = (
    "MixtureOfGaussians(standard_deviation=2, sensitivities=[0, 1, 2], "
    "sampling_probs=['0.9', '0.08', '0.02'])"
)
COIN = "RandomizedResponse(epsilon='0.1'{})"
CLAIMS = [
    ("(1.1, 256/60000) × 7032", TRAINING, "1.63621226", "1e-5"),
    ("the same, refuted", TRAINING, "1.636212", "1e-5"),
    ("the same", TRAINING, "2.96542056", "1e-12"),
    ("the same", TRAINING, "10.586684", "1e-50"),
    ("the same", TRAINING, "39.819709", "1e-200"),
    ("(0.8, 0.01) × 1000", times(step("0.8", "0.01"), 1000), "8", "1e-12"),
    ("(2, 0.001) × 10⁶", times(step("2", "0.001"), 10**6), "3", "1e-8"),
    ("(20, 0.9) × 10⁵", times(step("20", "0.9"), 10**5), "150", "1e-5"),
    ("two kinds of steps and Gaussian noise", DIFFERENT, "2", "1e-5"),
    ("randomised response 0.1 × 100", times(COIN.format(""), 100), "1", "0.13"),
    ("randomised response 0.1 × 10⁴", times(COIN.format(""), 10**4), "100", "1e-6"),
    ("the same, three answers, × 200", times(COIN.format(", categories=3"), 200), "4", "1e-3"),
    ("discrete Laplace (10) × 1000", times("DiscreteLaplace(scale=10)", 1000), "10", "0.1"),
    ("discrete Gaussian (25) × 100", times("DiscreteGaussian(parameter=25)", 100), "5", "0.1"),
    ("Laplace (10) × 100", times("Laplace(scale=10)", 100), "5", "0.01"),
    ("Laplace (10) × 1000", times("Laplace(scale=10)", 1000), "20", "1e-6"),
    ("mixture of three normal laws × 2", times(GROUP, 2), "0.8", "2e-5"),
]
_CACHES = (
    contour.invert,
    contour._values,
    composed._answers,
    grid.enclose,
    lists._sums,
    integrals._laplace_weights,
)


def main() -> None:
    """Print the table."""
    print("| composition | ε | δ | verdict | digits | s |\n|---|---|---|---|---|---|")
    for name, mechanism, epsilon, delta in CLAIMS:
        adjacency = "replace-one" if "Randomized" in mechanism else "add-remove"
        text = (
            'schema_version = 1\n[[claims]]\nid = "c"\nstatement = "c"\nkind = "approximate-dp"\n'
            f'mechanism = "{mechanism}"\nepsilon = "{epsilon}"\ndelta = "{delta}"\n'
            f'adjacency = "{adjacency}"'
        )
        finding, data = certify(document.read_text(text).claims[0])
        if data is None:
            print(f"| {name} | {epsilon} | {delta} | {finding.verdict.value} | | |")
            continue
        for cached in _CACHES:
            cached.cache_clear()
        started = time.process_time()
        found = checker.check(data)
        seconds = time.process_time() - started
        digits = [int(n) for said in found.recomputed for n in re.findall(r"to (\d+) digits", said)]
        right = found.outcome.value
        said = "; ".join(found.taken_as_given) or (str(min(digits)) if digits else "38")
        row = (name, epsilon, delta, f"{finding.verdict.value}, {right}", said, f"{seconds:.2f}")
        print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
