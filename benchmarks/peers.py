"""Computing times of dpassay and other accountants on the same questions.

    python -P benchmarks/peers.py [--peer-python PYTHON] [--only TEXT] [--width W]
                                  [--limit SECONDS] [--json FILE] [--plots FOLDER]

PYTHON is an interpreter with (some of) `pip install dp-accounting prv-accountant opake riskcal`.
Each program is asked the questions that it supports, and the ratio is to the fastest one. Every
question is answered in its own process, forked after all imports and one small question, so that
time and memory are those of a first answer. The last row is the time of a cold command. The plots
show the time against the number of different Laplace scales, and against the number of steps of a
DP-SGD run.

dp-accounting discretises pessimistically at its default, 1e-4, and returns an upper bound, up to
rounding (for β a lower bound, from its δ at 400 values of ε). "best" is the ε of the best of a
geometric number of runs, for which it has a Rényi bound (`RepeatAndSelectDpEvent`). opake does the
same in Rust. prv-accountant, the engine of Opacus, aims at an error of 0.01 in ε, the default
there. dpassay returns an enclosure of relative width W (1e-6), or the narrowest one reached; for
"estimates" it returns a float. A program that cannot be imported is skipped, with a message on
stderr; opake 0.16.1 needs Python 3.13.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import math
import os
import pkgutil
import platform
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

if sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
    sys.path.pop(0)

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

GRID = 1e-4
USUAL = [
    ("0.6", "0.05", 3), ("0.6", "0.05", 100), ("0.7", "0.01", 1000), ("0.8", "0.01", 2),
    ("0.8", "0.01", 1000), ("0.8", "0.01", 100000), ("1", "1e-4", 10000), ("1", "0.001", 50000),
    ("1.1", "256/60000", 7032), ("1.3", "0.02", 3000), ("2", "0.001", 1000000),
    ("4", "0.1", 2000), ("10", "0.5", 5000),
]  # fmt: skip


def hundred() -> list[list[Any]]:
    """Return 40 Gaussian, 40 sampled Gaussian and 20 Laplace releases, all different."""
    parts: list[list[Any]] = [["gaussian", f"{5 + 15 * i / 39:.6g}", "1", 1] for i in range(40)]
    parts += [
        ["gaussian", f"{0.8 + 2.2 * i / 39:.6g}", f"{1e-3 * 50 ** (i / 39):.6g}", 1]
        for i in range(40)
    ]
    return parts + [["laplace", f"{5 + 25 * i / 19:.6g}", "1", 1] for i in range(20)]


def singles() -> list[list[Any]]:
    """Return 30 different sampled Gaussian releases."""
    return [["gaussian", f"{0.7 + i / 20:.6g}", f"{0.001 * (i + 1):.6g}", 1] for i in range(30)]


def questions() -> list[dict[str, Any]]:
    """Return the forty questions."""
    rows = []

    def ask(name: str, parts: list[list[Any]], question: str, at: str, **more: Any) -> None:
        rows.append({"name": name, "parts": parts, "question": question, "at": at, **more})

    for sigma, q, count in USUAL:
        ask(f"σ {sigma}, q {q}, × {count}", [["gaussian", sigma, q, count]], "epsilon", "1e-5")
    for sigma, q, count in (USUAL[4], USUAL[6], USUAL[8]):
        ask(f"σ {sigma}, q {q}, × {count}", [["gaussian", sigma, q, count]], "delta", "1")
        ask(f"σ {sigma}, q {q}, × {count}", [["gaussian", sigma, q, count]], "beta", "1e-3")
        ask(f"σ {sigma}, q {q}, × {count}", [["gaussian", sigma, q, count]], "tv", "0")
    for question, at in (("epsilon", "1e-6"), ("delta", "2"), ("beta", "0.01"), ("tv", "0")):
        ask("100 different releases", hundred(), question, at)
        ask("30 different single ones", singles(), question, at)
    ask("seven rare ones", [["gaussian", "0.595", "2.05e-5", 7]], "delta", "0")
    ask("replace-one × 1000", [["gaussian", "1", "0.01", 1000]], "epsilon", "1e-5", replace=True)
    for scale, count in (("20", 20), ("100", 1000)):
        ask(f"Laplace {scale} × {count}", [["laplace", scale, "1", count]], "epsilon", "1e-5")
        ask(f"Laplace {scale} × {count}", [["laplace", scale, "1", count]], "beta", "1e-3")
    ask("sampled Laplace × 20", [["laplace", "1", "0.01", 20]], "epsilon", "1e-6")
    ask("sampled Laplace × 1000", [["laplace", "1", "0.01", 1000]], "epsilon", "1e-6")
    both = [["gaussian", "1", "0.01", 500], ["laplace", "20", "1", 20]]
    ask("500 sampled Gaussian, 20 Laplace", both, "epsilon", "1e-6")
    ask("500 sampled Gaussian, 20 Laplace", both, "delta", "1")
    ask("best of 10 runs, σ 2", [["gaussian", "2", "1", 1]], "best", "1e-5", runs=10)
    run = [["gaussian", "1.1", "256/60000", 7032]]
    ask("best of 10 runs of DP-SGD", run, "best", "1e-5", runs=10)
    return rows


SCALES, STEPS = (5, 10, 15, 16, 20, 30, 50, 100), (10, 20, 30, 50, 100, 300, 1000, 10000)


def in_use() -> list[dict[str, Any]]:
    """Return questions as in scripts: many kinds, many points, many steps."""
    rows: list[dict[str, Any]] = []

    def ask(name: str, parts: list[list[Any]], question: str, at: str, **more: Any) -> None:
        rows.append({"name": name, "parts": parts, "question": question, "at": at, **more})

    for kinds in SCALES:
        parts = [["laplace", str(5 + i), "1", 1] for i in range(kinds)]
        ask(f"{kinds} Laplace scales", parts, "epsilon", "1e-6", kinds=kinds)
    parts = [["laplace", f"{35 + i}/7", "1", 1] for i in range(30)]
    ask("30 scales 5 + i/7", parts, "epsilon", "1e-6")
    for kinds, count in ((30, 1), (100, 1), (1000, 10)):
        sampled = [["gaussian", f"{1 + i / 10:.6g}", "0.01", count] for i in range(kinds)]
        ask(f"{kinds} sampled Gaussians × {count}", sampled, "epsilon", "1e-6")
    ask("rare jumps × 100", [["gaussian", "0.8", "1e-4", 100]], "delta", "1e-10")
    ask("rare jumps × 1e5", [["gaussian", "1", "1e-4", 100000]], "epsilon", "1e-8")
    for steps in STEPS:
        ask(f"DP-SGD × {steps}", [["gaussian", "1", "0.01", steps]], "epsilon", "1e-5", steps=steps)
    run = [["gaussian", "1", "0.01", 3000]]
    ask("δ of one Gaussian at 1e5 ε, estimates", [["gaussian", "1.1", "1", 1]], "points", "100000")
    ask("1000 δ of one run, proved", run, "curve", "1000")
    ask("1000 δ of one run, estimates", run, "points", "1000")
    ask("1000 β of one run, estimates", run, "betas", "1000")
    mixed = [[("gaussian", "laplace")[i % 2], f"{10 + i}", "1", 1] for i in range(60)]
    ask("60 releases, one by one", mixed, "append", "1e-5")
    changing = [["gaussian", f"{100 + i}", "1", 1] for i in range(1000)]
    ask("1000 releases with changing noise, an ε after each", changing, "loop", "1e-5")
    steps = [["gaussian", "1", "0.01", 1]] * 1000
    ask("1000 steps of one run, an ε after each", steps, "loop", "1e-5")
    table = [
        ["gaussian", f"{0.8 + i / 4:.6g}", "0.01", 500 * j] for i in range(10) for j in range(1, 11)
    ]
    ask("10 × 10 noises and steps", table, "table", "1e-5")
    table = [
        ["gaussian", f"{0.6 + i / 20:.6g}", "0.01", 100 + 9900 * j // 49]
        for i in range(50)
        for j in range(50)
    ]
    ask("50 × 50 noises and steps, proved", table, "table", "1e-5")
    ask("50 × 50 noises and steps, estimates", table, "table", "1e-5", estimate=True)
    return rows


def number(text: str) -> float:
    """Return a decimal or a ratio as a float."""
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


def ours(width: str) -> Callable[[dict[str, Any]], Any]:
    """Return the two ends of dpassay's answer."""
    import dpassay.accountant

    for module in pkgutil.walk_packages(dpassay.accountant.__path__, "dpassay.accountant."):
        importlib.import_module(module.name)
    importlib.import_module("scipy.special")  # which grids load when they are first used

    def release(kind: str, scale: str, q: str, count: int) -> str:
        name = {"gaussian": "Gaussian(standard_deviation", "laplace": "Laplace(scale"}[kind]
        text = f"{name}='{scale}')"
        if q != "1":
            text = f"PoissonSubsampled({text}, sampling_prob='{q}')"
        return f"Composed({text}, count={count})"

    def answer(row: dict[str, Any]) -> Any:
        if row.get("estimate"):
            counts = sorted({count for *_, count in row["parts"]})
            for part in dict.fromkeys((*part[:3], 1) for part in row["parts"]):
                known = dpassay.parse(release(*part))
                found = dpassay.estimate_epsilon(
                    known, float(row["at"]), count=counts, adjacency="add-remove"
                )
            return [str(found[-1]), str(found[-1])]
        if row["question"] == "table":
            cells = [
                dpassay.epsilon(release(*part), row["at"], adjacency="add-remove")
                for part in row["parts"]
            ]
            return [str(cells[-1].lower), str(cells[-1].upper)]
        text = ", ".join(release(*part) for part in row["parts"])
        mechanism = dpassay.parse(f"Composed([{text}])")
        if row["question"] == "best":
            mechanism = dpassay.Tuned(mechanism, row["runs"])
        adjacency = "replace-one" if row.get("replace") else "add-remove"
        if row["question"] in ("append", "loop"):
            account = dpassay.Account(adjacency=adjacency)
            for part in row["parts"]:
                account.spend(release(*part))
                if row["question"] == "loop":
                    account.epsilon(row["at"])
            found = account.epsilon(row["at"])
            return [str(found.lower), str(found.upper)]
        if row["question"] in ("points", "betas", "curve"):
            count = int(row["at"])
            if row["question"] == "betas":
                alphas = [(i + 0.5) / count for i in range(count)]
                middle = dpassay.estimate_beta(mechanism, alphas, adjacency=adjacency)[count // 2]
                return [str(middle), str(middle)]
            epsilons = [6 * (i + 0.5) / count for i in range(count)]
            if row["question"] == "points":
                last = dpassay.estimate_delta(mechanism, epsilons, adjacency=adjacency)[count // 2]
                return [str(last), str(last)]
            middle = dpassay.delta(
                mechanism, epsilons, adjacency=adjacency, relative_width=Fraction(width)
            )[count // 2]
            return [str(middle.lower), str(middle.upper)]
        if row["question"] == "tv":
            ask, at = dpassay.total_variation, ()
        else:
            name = "epsilon" if row["question"] == "best" else row["question"]
            ask, at = getattr(dpassay, name), (row["at"],)
        try:
            found = ask(mechanism, *at, adjacency=adjacency, relative_width=Fraction(width))
        except dpassay.UndecidedError as error:
            found = getattr(error, "interval", None)
            if found is None:
                return str(error)[:60]
        return [str(found.lower), str(found.upper)]

    return answer


def dp_accounting(_: str) -> Callable[[dict[str, Any]], Any]:
    """Return dp-accounting's answer to a question."""
    from dp_accounting import dp_event, privacy_accountant, rdp
    from dp_accounting.pld import privacy_loss_distribution as pld

    relation = privacy_accountant.NeighboringRelation

    @functools.cache
    def release(kind: str, scale: str, q: str, *, replace: bool) -> Any:
        options: dict[str, Any] = {
            "value_discretization_interval": GRID,
            "sampling_prob": number(q),
            "use_connect_dots": True,
        }
        if kind == "laplace":
            return pld.from_laplace_mechanism(number(scale), **options)
        if replace:
            options["neighboring_relation"] = relation.REPLACE_ONE
        return pld.from_gaussian_mechanism(number(scale), **options)

    def best(row: dict[str, Any]) -> list[float]:
        ((_, scale, q, count),) = row["parts"]
        step = dp_event.PoissonSampledDpEvent(number(q), dp_event.GaussianDpEvent(number(scale)))
        run = dp_event.SelfComposedDpEvent(step, count)
        known = rdp.RdpAccountant()
        known.compose(dp_event.RepeatAndSelectDpEvent(run, row["runs"], 1))
        return [float(known.get_epsilon(float(row["at"])))]

    def answer(row: dict[str, Any]) -> Any:
        if row["question"] == "best":
            return best(row)
        together = None
        for *part, count in row["parts"]:
            law = release(*part, replace=bool(row.get("replace"))).self_compose(count)
            if row["question"] == "table":
                last = float(law.get_epsilon_for_delta(float(row["at"])))
                continue
            together = law if together is None else together.compose(law)
            if row["question"] == "loop":
                last = float(together.get_epsilon_for_delta(float(row["at"])))
        if row["question"] in ("loop", "table"):
            return [last]
        assert together is not None
        at = float(row["at"])
        if row["question"] in ("points", "curve"):
            count = int(at)
            epsilons = [6 * (i + 0.5) / count for i in range(count)]
            return [float(together.get_delta_for_epsilon(epsilons)[count // 2])]
        if row["question"] == "betas":
            return [beta_of(together, [(i + 0.5) / at for i in range(int(at))])[int(at) // 2]]
        if row["question"] in ("epsilon", "append"):
            return [float(together.get_epsilon_for_delta(at))]
        if row["question"] in ("delta", "tv"):
            return [float(together.get_delta_for_epsilon(at))]
        return [beta_of(together, [at])[0]]

    return answer


def sampled_alone(row: dict[str, Any], *questions: str) -> bool:
    """Whether a row asks one of these questions about Gaussian releases under add/remove."""
    kinds = {kind for kind, *_ in row["parts"]}
    return kinds == {"gaussian"} and row["question"] in questions and not row.get("replace")


def prv_accountant(_: str) -> Callable[[dict[str, Any]], Any]:
    """Return the upper end of prv-accountant's answer."""
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

    def answer(row: dict[str, Any]) -> Any:
        if not sampled_alone(row, "epsilon", "append", "loop"):
            return None
        if row["question"] == "loop":
            (_, scale, q, _), *others = row["parts"]
            if any(other != row["parts"][0] for other in others):
                return None
            law = PoissonSubsampledGaussianMechanism(
                noise_multiplier=number(scale), sampling_probability=number(q)
            )
            known = PRVAccountant(
                prvs=[law], max_self_compositions=[len(others) + 1],
                eps_error=0.01, delta_error=float(row["at"]) / 1000,
            )  # fmt: skip
            for steps in range(1, len(others) + 2):
                found = known.compute_epsilon(delta=float(row["at"]), num_self_compositions=[steps])
            return [float(found[2])]
        delta, counts = float(row["at"]), [count for *_, count in row["parts"]]
        laws = [
            PoissonSubsampledGaussianMechanism(
                noise_multiplier=number(scale), sampling_probability=number(q)
            )
            for _, scale, q, _ in row["parts"]
        ]
        known = PRVAccountant(
            prvs=laws, max_self_compositions=counts, eps_error=0.01, delta_error=delta / 1000
        )
        return [float(known.compute_epsilon(delta=delta, num_self_compositions=counts)[2])]

    return answer


def opake(_: str) -> Callable[[dict[str, Any]], Any]:
    """Return opake's answer to a question."""
    import opake.accounting
    import opake.dpsgd.accounting as dpsgd

    def answer(row: dict[str, Any]) -> Any:
        if not sampled_alone(row, "epsilon", "append", "delta", "tv"):
            return None
        steps = [
            (
                dpsgd.gaussian(number(scale))
                if q == "1"
                else dpsgd.poisson(dpsgd.gaussian(number(scale)), sample_rate=number(q))
            )
            * count
            for _, scale, q, count in row["parts"]
        ]
        whole = functools.reduce(opake.accounting.compose, steps)
        at = float(row["at"])
        question = whole.epsilon_at if row["question"] in ("epsilon", "append") else whole.delta_at
        return [float(question(at))]

    return answer


def riskcal(_: str) -> Callable[[dict[str, Any]], Any]:
    """Return riskcal's β."""
    import numpy as np
    from riskcal.calibration.dpsgd import get_beta_for_dpsgd

    def answer(row: dict[str, Any]) -> Any:
        if not sampled_alone(row, "beta", "betas") or len(row["parts"]) > 1:
            return None
        ((_, scale, q, count),) = row["parts"]
        at = float(row["at"])
        several = row["question"] == "betas"
        alphas = [(i + 0.5) / at for i in range(int(at))] if several else [at]
        found = get_beta_for_dpsgd(
            noise_multiplier=number(scale),
            sample_rate=number(q),
            num_steps=count,
            alpha=np.array(alphas),
        )
        return [float(np.asarray(found)[len(alphas) // 2])]

    return answer


PEERS = {
    "dp-accounting": dp_accounting,
    "prv-accountant": prv_accountant,
    "opake": opake,
    "riskcal": riskcal,
}


def beta_of(together: Any, alphas: list[float]) -> list[float]:
    """Return β derived from δ at 400 values of ε; it is a lower bound."""
    epsilons = [20.0 * step / 400 for step in range(400)]
    deltas = [float(each) for each in together.get_delta_for_epsilon(epsilons)]
    known = list(zip(map(math.exp, epsilons), deltas, strict=True))
    return [
        max(max(1 - d - growth * a, (1 - d - a) / growth, 0.0) for growth, d in known)
        for a in alphas
    ]


def served(
    answer: Callable[[dict[str, Any]], Any], rows: list[dict[str, Any]], limit: int, *, first: bool
) -> None:
    """Answer each row in its own forked process, and print one JSON line each.

    A small question is answered first if the process has no threads that a fork would lose.
    """
    if first:
        answer({"parts": [["gaussian", "1", "0.1", 2]], "question": "epsilon", "at": "1e-5"})
    for row in rows:
        sys.stdout.flush()
        child = os.fork()
        if child:
            _, status = os.waitpid(child, 0)
            if status:  # 1 is that of an exception, which says nothing of the time
                late = os.waitstatus_to_exitcode(status) != 1
                print(json.dumps({"answer": f"more than {limit} s" if late else None}), flush=True)
            continue
        resource.setrlimit(resource.RLIMIT_CPU, (int(time.process_time()) + limit, -1))
        signal.signal(signal.SIGXCPU, lambda *_: os._exit(2))
        signal.alarm(20 * limit)  # for one that waits
        start = time.process_time()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = answer(row)
        took = time.process_time() - start
        memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(json.dumps({"answer": found, "seconds": took, "MiB": memory}), flush=True)
        os._exit(0)


def ask(python: str, who: str, rows: list[dict[str, Any]], options: Any) -> list[dict[str, Any]]:
    """Return the answers of one program, {} for each question that it does not support."""
    done = subprocess.run(
        [python, "-P", __file__, "--serve", who, "--width", options.width,
         "--limit", str(options.limit)],
        input=json.dumps(rows), capture_output=True, text=True, check=who == "dpassay",
    )  # fmt: skip
    if done.returncode:
        print(f"{who} is not asked: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return [{} for _ in rows]
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [{} if answer["answer"] is None else answer for answer in found]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--only", default="")
    parser.add_argument("--width", default="1e-6")
    parser.add_argument("--limit", type=int, default=60, help="seconds of computing time")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plots", type=Path, help="a folder for the plots over kinds and steps")
    parser.add_argument("--serve", choices=("dpassay", *PEERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        maker = ours if options.serve == "dpassay" else PEERS[options.serve]
        rows, first = json.load(sys.stdin), options.serve != "opake"
        served(maker(options.width), rows, options.limit, first=first)
        return
    rows = [row for row in questions() + in_use() if options.only in row["name"]]
    mine = ask(sys.executable, "dpassay", rows, options)
    peers = {name: ask(options.peer_python, name, rows, options) for name in PEERS}
    peers = {name: answers for name, answers in peers.items() if any(answers)}
    heads = "".join(f" {name} | s |" for name in peers)
    print(f"| question | | ours | width | s | MiB |{heads} faster |")
    print("|---" * (7 + 2 * len(peers)) + "|")
    factors = [
        row_of(row, mine[i], {name: answers[i] for name, answers in peers.items()}, options.limit)
        for i, row in enumerate(rows)
    ]
    known = [factor for factor in factors if factor is not None]
    slower = sum(factor < 1 for factor in known)
    median = statistics.median(known) if known else math.nan
    print(f"\n{len(rows)} questions: median {median:.1f}×, slower in {slower}.")
    seconds = cold()
    print(f"A cold command: {seconds:.2f} s of computing time.")
    if options.plots:
        options.plots.mkdir(parents=True, exist_ok=True)
        sides = {"dpassay": mine, **peers}
        for what, words in (("kinds", "different Laplace scales"), ("steps", "steps of DP-SGD")):
            plot(options.plots / f"peers-{what}.svg", words, what, rows, sides)
    if options.json:
        machine = f"{platform.platform()}, Python {platform.python_version()}"
        answers = [
            row
            | {"ours": mine[i], "factor": factors[i]}
            | {name: a[i] for name, a in peers.items()}
            for i, row in enumerate(rows)
        ]
        found = {"machine": machine, "cold_seconds": seconds, "rows": answers}
        options.json.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def row_of(
    row: dict[str, Any], own: dict[str, Any], others: dict[str, dict[str, Any]], limit: int
) -> float | None:
    """Print a row with dpassay's answer and the others' deviations; return the ratio of times."""
    from dpassay.accountant.numbers.interval import few  # which peers' interpreters have not

    cells, value = [row["name"], f"{row['question']}({row['at']})"], None
    if isinstance(own["answer"], list):
        low, value = map(float, own["answer"])
        cells += [f"{value:.7g}", few((value - low) / low if low > 0 else value - low, 1)]
    else:
        cells += [str(own["answer"]), "–"]
    cells += [f"{own.get('seconds', limit):.2f}", f"{own.get('MiB', math.inf):.0f}"]
    times = []
    for other in others.values():
        if not other:
            cells += ["", ""]
            continue
        times.append(other.get("seconds", float(limit)))
        if isinstance(other["answer"], list) and value:
            cells += [few(other["answer"][0] / value - 1, 1, sign="+"), f"{times[-1]:.2f}"]
        else:
            cells += [str(other["answer"]), f"{times[-1]:.2f}"]
    factor = min(times) / own.get("seconds", limit) if times else None
    print(
        "| " + " | ".join([*cells, "" if factor is None else f"{factor:.1f}×"]) + " |", flush=True
    )
    return factor


def plot(
    path: Path,
    words: str,
    what: str,
    rows: list[dict[str, Any]],
    sides: dict[str, list[dict[str, Any]]],
) -> None:
    """Draw the computing time of each program against a number in the rows."""
    from dpassay.figures import style

    with style.sheet() as (figure, axes):
        for curve, (name, answers) in zip(style.CURVES, sides.items(), strict=False):
            known = [
                (row[what], found["seconds"])
                for row, found in zip(rows, answers, strict=True)
                if what in row and "seconds" in found
            ]
            at, seconds = zip(*known, strict=True) if known else ((), ())
            axes.plot(at, seconds, label=name, **curve.marked(len(at)))
        axes.set(xscale="log", yscale="log", xlabel=words, ylabel="computing time (s)")
        axes.legend()
        style.save(figure, path)


def cold() -> float:
    """Return the computing time of a command: Python, its imports and one DP-SGD question."""
    release = "PoissonSubsampled(Gaussian(standard_deviation=1.1), 256/60000)"
    command = ["profile", f"Composed({release}, 7032)", "--delta", "1e-5", "--adjacency"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = [sys.executable, "-m", "dpassay", *command, "add-remove"]
    subprocess.run(start, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
