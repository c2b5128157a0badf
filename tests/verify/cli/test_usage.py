"""Wrong words: every command answers with one line that names the word, and with its exit code."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from accountant.composition.choose import METHODS
from accountant.geometry.workload import WORKLOADS
from figures.comparison import cli as comparison
from verify.cli import main

NORMAL = "Gaussian(standard_deviation=1)"
SHORT = {
    "TRAINING": "'Composed(PoissonSubsampled(Gaussian(standard_deviation=1.1), "
    "sampling_prob=256/60000), count=7032)' --adjacency add-remove",
    "ONE": f"'{NORMAL}'",
    "NINE": "'Gaussian(standard_deviation=9)'",
    "LAPLACE": "'Laplace(scale=1)'",
    "TRAIN": "training --noise-multiplier 1 --batch 9 --size 99 --delta 1e-5 --epochs 1",
    "NOISE": "optimal count-noise --epsilon 1",
    "COUNT": "optimal count-noise --eta 1/2 --support 4",
    "INTEGER": "optimal integer-noise --epsilon 1",
}
WRONG = """
frobnicate                                              | invalid choice: 'frobnicate'
verfy LAPLACE                                           | Did you mean 'verify'?
verify                                                  | a claim file, --paper NAME
verify --frobnicate                                     | unrecognized arguments: --frobnicate
verify LAPLACE --epsilonn 1                             | Did you mean '--epsilon'?
verify LAPLACE --eps 1                                  | Did you mean '--epsilon'?
verify LAPLACE --zcdp 1                                 | Did you mean '--rho'?
verify 'Laplace with b=2 is 0.5-DP'                     | Write Laplace(scale=…
verify 'Laplace(2) satisfies (8, 0.5)-RDP'              | renyi-dp
verify 'RandomizedResponse(1) is 1-LDP.'                | Local privacy is written -DP
verify LAPLACE                                          | Expected a claim about the mechanism
verify LAPLACE --delta 1e-5                             | --delta D needs --epsilon E
verify LAPLACE --epsilon 1 --jobs 0                     | --jobs 0 ≥ 1
verify LAPLACE --epsilon 1e-3x --delta 0.1              | epsilon='1e-3x' to be a number
verify LAPLACE --epsilon 1 --delta 1.5                  | in [0, 1]
verify LAPLACE --epsilon 1 --delta -0.5                 | in [0, 1]
verify LAPLACE --epsilon 1 --delta 0.1 --adjacency add  | adjacency='add'
verify --all-papers --epsilon 1                         | a claim file states its own
verify --paper less-is-mor                              | Did you mean 'less-is-more'?
verify --paper less-is-more --only theorem-55           | Did you mean
verify none.toml                                        | Cannot read
check none.json                                         | Cannot read
check cut.json                                          | is not a JSON certificate
check /dev/zero                                         | is no regular file
profile                                                 | arguments are required: MECHANISM
profile LAPLACE --rdp 8                                 | Did you mean '--order'?
profile LAPLACE --mu 1                                  | --mu takes no value here
profile LAPLACE --plot x.bmp                            | .png, .pdf or .svg
profile LAPLACE --plot no/where.png                     | there is no folder no
profile LAPLACE --baselines                             | --delta
profile 'Tabulated(p=[1, 0], q=[0, 1])' --variance      | no variance
profile 'RankOneGaussian(dimension=3, sigma_star=10)' --mu | No mu is enough
profile LAPLACE --epsilon 1 --method fft                | method='fft'
profile TRAINING --epsilon 1 --method exact             | method='auto' or 'fourier'
profile TRAINING --alpha 0.1 --method exact             | method='auto' or 'fourier'
profile TRAINING --method exact                         | method='auto' or 'fourier'
profile TRAINING --estimate --epsilon 1 --mu            | --mu
profile TRAINING --estimate --epsilon 1 --relative-width 1e-3 | --relative-width
profile TRAINING --estimate --epsilon 1 --method grid   | --method
profile TRAINING --estimate --delta 1e-5 --baselines    | --baselines
profile TRAINING --estimate                             | --tpr-at-fpr
profile TRAINING --estimate --delta 2                   | delta='2' in [0, 1]
calibrate Gaussian --mu 1 spam                          | Expected KEY=VALUE, not 'spam'
calibrate Gaussian                                      | Expected one target
calibrate Gaussian --mu 1 --rho 1                       | Expected one target
calibrate Gaussian --mu 1 --delta 0.1                   | Expected one target
calibrate Gaussian --epsilon 1                          | impossible
calibrate Gaussian --epsilon 1 --sensitivity 2          | Did you mean '--set'?
calibrate 'Composed(ONE, 9)' --epsilon 1                | with count=…, sampling_prob=…
calibrate IntegerNoise --mu 1                           | nothing to calibrate
calibrate Gaussian --mu 1 --up-to 2                     | --up-to together with --profile
calibrate Laplace --profile 'Laplace(scale=3)' --up-to 0 | rational number > 0
calibrate Gaussian --mu 1 l2_sens=1                     | Did you mean 'l2_sensitivity'?
calibrate Gaussian --mu 1 adjacency=add-remove          | as the option --adjacency
calibrate Gaussian --mu 1 x=1 x=2                       | given twice
calibrate EllipticalGaussian --mu 1 sensitivities=[1,   | Expected a value
calibrate Gaussian --find nois                          | Did you mean 'noise'?
calibrate Gaussian --find count --epsilon 1             | a mechanism with its noise
calibrate --find count --epsilon 1                      | a mechanism with its noise
calibrate --epsilon 1                                   | the name of a mechanism
calibrate ONE --find epsilon --epsilon 1                | no mechanism
calibrate ONE --find sampling-prob --count 0 --epsilon 1 --delta 1e-5 | count=0
calibrate ONE --find count --adjacency near --epsilon 1 --delta 1e-5  | adjacency='near'
calibrate ONE --find sampling-prob --adjacency replace-one --epsilon 1 --delta 1e-5 | add-remove
calibrate 'Gaussian(1/100)' --find count --epsilon 1 --delta 1e-5   | Not even one release
calibrate NINE --find sampling-prob --epsilon 1 --delta 1e-5        | Every sampling rate
calibrate NINE --find count l2_sensitivity=2 --epsilon 1            | KEY=VALUE
calibrate NINE --find noise-level --epsilon 1           | invalid choice
convert                                                 | one guarantee
convert --mu 1 --pure 1 --rho                           | one guarantee
convert --mu 1                                          | a question
convert --renyi 16 --delta 1e-6                         | --renyi R,V
convert --renyi 1,0.5 --delta 1e-6                      | order
convert --renyi 2,0.5 --order 3                         | smaller orders
convert --renyi 2,0.5 --rho                             | No finite rho
convert --zcdp 0.1 --to-mu                              | No finite mu
convert --zcdp -1 --delta 1e-5                          | rho=-1 ≥ 0
convert --mu -1 --epsilon 1                             | mu='-1' ≥ 0
convert --approximate 1,1e-6 --order 2                  | No finite renyi
convert --approximate 1,1.5 --epsilon 2                 | delta
convert --zcdp 0.1 --delta 0                            | delta
convert --pure 1 --fpr 2                                | alpha
convert --pure 1 --delta 1e-5 --baselines               | --renyi R,V and --delta
convert --rdp 2,0.5 --delta 0.1                         | Did you mean '--renyi'?
convert --rho 0.1 --delta 0.1                           | --rho takes no value here
training --sigma 1 --batch 9 --size 99 --delta 0.1      | Did you mean '--noise-multiplier'?
training --noise-multiplier 1 --sampling-prob 0.1       | times the dataset's size
TRAIN --sampling shufle                                 | shuffle
TRAIN --group 1.5                                        | --group 1.5 to be a whole number
NOISE --eta 0 --support 4                               | eta='0' to be rational and in (0, 1)
NOISE --eta 1 --support 4                              | eta='1'
NOISE --eta 1.5 --support 4                             | eta='1.5'
NOISE --eta 1/2 --support 0                           | support=0 ≥ 1
NOISE --eta 1/2 --support x                           | support='x'
COUNT --epsilon -1                                      | epsilon='-1' ≥ 0
COUNT                                                   | Give epsilon, or ratio
COUNT --ratio 1/2                                       | ratio='1/2' ≥ 1
COUNT --epsilon 1 --max-count 0                         | max_count=0 ≥ 1
NOISE --eta 1/2 --support 9999 --max-count 99999      | would take about 587 GiB
NOISE --eta 1/2 --support 99 --max-count 999 --objective true-delta | would take about 3 GiB
COUNT --epsilon 1 --objective singulra                  | Did you mean 'singular'
COUNT --epsilon 1 --plot a.txt                          | to end in .png
COUNT --epsilon 1,2 --plot a.png                        | A sweep takes
COUNT --epsilon 1 --relative-width 0                    | > 0
INTEGER                                                 | Expected delta with objective
INTEGER --delta 1e-9 --support 4                        | the least is
INTEGER --delta 2                                       | delta='2'
INTEGER --delta 0.01 --support 9 --error-free 0.9 --monotone | without error_free it is
INTEGER --delta 0.9 --support 4 --error-free 0.01 --monotone | monotone contradict each other
INTEGER --delta 0.1 --support none                      | support='none'
INTEGER --objective delta --support free                | 3: No support was found
audit LAPLACE                                           | Expected --claim CLAIM, or --lattice
audit LAPLACE --epsilon 1                               | Did you mean '--claim'?
audit LAPLACE --claim 1,2,3                             | Expected a claim
audit LAPLACE --claim 1 --confidence 95                 | confidence=95
audit LAPLACE --claim 1 --samples 0.5                   | samples=0.5
audit LAPLACE --claim 8 --samples 99                    | to be enough
audit LAPLACE --claim 1 --device gpu                    | device='gpu'
audit releases:noisy --lattice                          | Expected neighbouring datasets
audit releases:noisy --claim 1                          | Expected neighbouring datasets
audit releases:missing --claim 1                        | Cannot import releases:missing
audit releases:noisy --claim 1 --pair x 1               | Python literal
audit releases:noisy --claim 1 --search cuont           | Did you mean 'count'
audit nowhere.py:noisy --claim 1                        | a module without .py
audit nothing --claim 1                                 | package.module:callable
"""
MECHANISMS = """
Laplace(scale='nan')                          | Expected scale='nan' to be a number
Laplace(scale=1e-3x)                          | Expected a mechanism, not 'Laplace(scale=1e-3x)'
DiscreteGaussian(sigma=1)                     | Did you mean 'parameter', the square of sigma?
GaussianMechanism(1)                          | Did you mean 'Gaussian'?
TopSelections(1, k=5)                         | Did you mean 'selected'?
TopK(3)                                       | Did you mean 'TopSelections'?
AdditiveNoise(exp(-x))                        | words and formulas are text in quotes
KNorm(norm=linf)                              | not 'linf'
SVT(1, 1)                                     | Did you mean 'AboveThreshold'?
Laplace(scale=open('x'))                      | Unknown mechanism 'open'
CorrelatedGaussian(dimension=3, mu=1)         | adjacency='add-remove'
"""


def rows(table: str) -> list[tuple[str, str]]:
    lines = [line.rpartition("|") for line in table.strip().splitlines()]
    return [(words.strip(), said.strip()) for words, _, said in lines]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a module of releases, and a certificate that was cut off."""
    (tmp_path / "releases.py").write_text("def noisy(dataset, rng):\n    return rng.random()\n")
    (tmp_path / "cut.json").write_text('{"cut off')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "releases", raising=False)


def refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, message = said.rpartition(": ") if said[:2] == "3:" else ("2", "", said)
    assert main(arguments, laws=_draw) == int(code)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("dpassay: ")
    assert message in shown.err
    assert "Traceback" not in shown.err


def _draw(*_: object, **__: object) -> None:
    raise AssertionError("nothing should be drawn")


@pytest.mark.parametrize(("words", "said"), rows(WRONG))
def test_what_is_wrong_is_named(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in SHORT.items():
        words = words.replace(name, text)
    refused(shlex.split(words), said, capsys)


@pytest.mark.parametrize(("mechanism", "said"), rows(MECHANISMS))
def test_so_is_a_wrong_mechanism(
    mechanism: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(["profile", mechanism, "--mu"], said, capsys)
    refused(["verify", mechanism, "--epsilon", "1", "--delta", "1e-5"], said, capsys)


def test_no_arguments_print_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: dpassay" in capsys.readouterr().err


def test_the_help_names_every_engine_workload_and_metric(
    capsys: pytest.CaptureFixture[str],
) -> None:
    help_of = {}
    for command in ("profile", "compare"):
        assert main([command, "--help"], commands=[comparison.COMMAND]) == 0
        help_of[command] = capsys.readouterr().out
    assert f"{', '.join(METHODS[:-1])} or {METHODS[-1]}" in " ".join(help_of["profile"].split())
    assert all(f"{name}(" in help_of["compare"] for name in WORKLOADS)
    metrics = ("variance", "rmse", "mean-absolute-error", "bias", "p-exact", "quantile:P")
    for name in (*metrics, "max-quantile:P", "appears:P", "regret:P"):
        assert name in help_of["compare"]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_help_fits_the_terminal(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for command in ("profile", "training", "audit", "stream", "check"):
        assert main([command, "--help"]) == 0
        shown = capsys.readouterr().out
        prose = [line for line in shown.splitlines() if not line.startswith("  ")]
        assert max(map(len, prose)) <= columns
        if columns >= 80:
            assert max(map(len, shown.splitlines())) <= columns
        assert 'profile "DiscreteLaplace' in shown or command != "profile"
