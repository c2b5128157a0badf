"""Two discretised laws of one release: the profile of one is above, that of the other below."""

from __future__ import annotations

from flint import arb

from accountant.mechanisms import Staircase
from accountant.numbers.exact import exact
from verify.foreign.discretised import discretise, reach

STAIRCASE = Staircase(epsilon=1, gamma="1/3")


def test_one_release_is_bracketed_everywhere() -> None:
    (pair,) = STAIRCASE.worst_case(None).remove
    low, high = reach(pair, -60)
    laws = discretise(pair, high, (high - low) / 64, -64, 0)
    for law in (laws.above, laws.below):
        assert not sum(law.masses, start=arb(0)) + law.infinity > 1
    for eps in ("-1/2", "0", "1/3", "9/10"):
        sums = []
        for law in (laws.above, laws.below):
            total = law.infinity
            for i, mass in enumerate(law.masses):
                loss = arb(str(float(high))) + (law.first + i) * float((high - low) / 64)
                total += mass * (1 - (exact(eps).ball() - loss - law.shift).exp()).max(arb(0))
            sums.append(float(total))
        true = float(pair.hockey_stick(exact(eps)))
        assert sums[1] - 1e-9 <= true <= sums[0] + 1e-9
        assert sums[0] - sums[1] < 1e-2
