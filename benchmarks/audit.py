"""How close black-box audits come to the theoretical limit, and what they cost.

    python -P benchmarks/audit.py bounds [--samples 1e5 1e6 1e7] [--repeats 9] [--only Laplace]
    python -P benchmarks/audit.py level [--audits 10000] [--processes 2] [--kept FILE]
    python -P benchmarks/audit.py anytime | speed | rank-one

`bounds` (`audit_bounds.py`) audits nine pairs (`audit_pairs.py`) as black boxes. It compares the
median 95 % lower bound on ε with

- the limit: the bound by the best event of the exact laws, if all runs are used for the exact
  one-sided test (`dpassay.verifier.audit.exact_test`), at the expected counts;
- DP-Sniper's rule (Bichsel et al. 2021): the event of mass 0.01 with the largest exact likelihood
  ratio, all runs used for two Clopper–Pearson bounds, each at half the significance;
- a histogram of 20 cells of equal mass with two Clopper–Pearson bounds each, the significance
  divided among all cells and both orders.

The last two are given the exact likelihood ratio, which they would have to learn. The gap is
(ε − bound)/(ε − limit). The bound of a single audit varies by most of its gap; the bound of its
event at the expected counts (`expected`) varies little. The median gap is printed with two order
statistics that enclose the median of its distribution with confidence 95 %.

`level` is in `audit_level.py`, the other commands in `audit_speed.py`.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.audit_bounds import bounds, print_row
from benchmarks.audit_level import level
from benchmarks.audit_speed import anytime, rank_one, speed


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["bounds", "level", "anytime", "speed", "rank-one"])
    parser.add_argument("--samples", type=float, nargs="+", default=[1e5, 1e6])
    parser.add_argument("--repeats", type=int, default=0, help="audits a row")
    parser.add_argument("--audits", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--kept",
        type=Path,
        default=Path(tempfile.gettempdir()) / "dpassay-level.jsonl",
        help="finished parts of level are kept here, and the same command continues there",
    )
    parser.add_argument("--only", default="", help="pairs whose name holds this")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    found = {
        "bounds": lambda: bounds([int(n) for n in options.samples], options.repeats, options.only),
        "level": lambda: level(options.audits, options.kept, options.processes),
        "anytime": anytime,
        "speed": speed,
        "rank-one": rank_one,
    }[options.what]()
    if options.what == "level":
        print_row(found[0], heading=True)
        for row in found:
            print_row(row)
    if options.json:
        data = {"machine": platform.processor() or platform.machine(), "rows": found}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=2)


if __name__ == "__main__":
    main()
