"""The page of a verdict: what it says is what was decided, and it needs nothing else."""

from __future__ import annotations

import base64
import itertools
import json
import math
import re
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

from dpassay.accountant import notation
from dpassay.figures import event, tradeoff
from dpassay.figures.pages import verdict
from dpassay.verifier import kernel as checker
from dpassay.verifier.ask import verify
from dpassay.verifier.cli import main

REFUTED = ["Gaussian(3)", "--epsilon", "1", "--delta", "1e-5"]
_DATA = re.compile(r'download="([^"]+)" href="data:application/json;base64,([^"]+)"')


def write(tmp_path: Path, *arguments: str) -> tuple[int, Path]:
    path = tmp_path / "verdict.html"
    code = main(["verify", *arguments, "--quiet", "--html", str(path)], page=verdict.write)
    return code, path


@pytest.mark.slow
def test_a_refutation_has_its_remedy_its_event_and_a_certificate_that_is_valid(
    tmp_path: Path,
) -> None:
    code, path = write(tmp_path, *REFUTED)
    page = path.read_text("utf-8")
    assert code == 1
    assert "needs standard_deviation ≥ 3.7307; true at ε ≥ 1.2711" in page
    assert "0.00230326613170" in page  # P(S): the normal tail beyond 3.1666… − 1/3
    assert len(re.findall("<svg", page)) == 4
    ((name, data),) = _DATA.findall(page)
    assert name == "approximate-dp.json"
    certificate = json.loads(base64.b64decode(data))
    assert checker.check(certificate).outcome is checker.Outcome.VALID


def test_its_certificate_is_the_file_that_the_command_writes(tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    claim = ("RandomizedResponse(1)", "--epsilon", "1", "--certificate", str(file))
    _, path = write(tmp_path, *claim)
    ((_, data),) = _DATA.findall(path.read_text("utf-8"))
    assert base64.b64decode(data) == file.read_bytes()


def test_many_claims_are_a_list_that_begins_with_what_is_refuted(tmp_path: Path) -> None:
    file = tmp_path / "claims.toml"
    claim = '[[claims]]\nkind = "pure-dp"\nid = "{0}"\nmechanism = "Laplace(1)"\nepsilon = "{1}"\n'
    file.write_text(
        'schema_version = 1\nname = "mine"\n'
        + "".join(claim.format(f"c{i}", f"{i + 2}/5") for i in range(13))
    )
    _, path = write(tmp_path, str(file))
    page = path.read_text("utf-8")
    assert re.findall(r'class="badge">(\w+)<', page) == ["REFUTED"] * 3 + ["HOLDS"] * 10
    assert len(_DATA.findall(page)) == 13


def test_what_a_claim_file_says_is_text_on_the_page(tmp_path: Path) -> None:
    file = tmp_path / "claims.toml"
    file.write_text(
        'schema_version = 1\nname = "mine"\n[[claims]]\nkind = "pure-dp"\nid = "a"\n'
        'source = "<script>alert(1)</script>"\nstatement = "<img src=x onerror=alert(1)>"\n'
        'mechanism = "Laplace(scale=2)"\nepsilon = 1\n',
        encoding="utf-8",
    )
    _, path = write(tmp_path, str(file))
    page = path.read_text("utf-8")
    assert "&lt;script&gt;" in page
    assert not re.search(r"<script|<img", page)


def test_without_the_drawing_part_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "verdict.html"
    assert main(["verify", *REFUTED, "--html", str(path)]) == 2
    assert "cannot draw" in capsys.readouterr().err
    assert not path.exists()


def test_the_true_curve_of_normal_noise_is_the_normal_one() -> None:
    finding = verify("Gaussian(3)", epsilon=1, delta="1e-5")
    q, p = (float(finding.witness[name]["lower"]) for name in "qp")
    table = tradeoff.compute(notation.parse("Gaussian(3)"), finding.claimed, point=(q, p))
    assert table is not None
    normal = NormalDist()
    for alpha, power, _ in table.rows[1:-1]:
        assert power == pytest.approx(normal.cdf(normal.inv_cdf(alpha) + 1 / 3), rel=1e-9, abs=0)
    assert p > 1e-5 + math.e * q  # the event is beyond what is claimed
    assert max(value for _, value in tradeoff.excess(table)) == pytest.approx(
        p - math.e * q, rel=1e-6, abs=0
    )


@pytest.mark.parametrize(
    ("mechanism", "epsilon"),
    [
        ("Gaussian(3)", "1/10"),
        ("Laplace(scale=2)", "2/5"),
        ("DiscreteLaplace(scale=1)", "1/2"),
        ("RandomizedResponse(epsilon=2)", "1"),
        ("DiscreteGaussian(parameter=4)", "1/10"),
        ("Skellam(variance=4)", "1/10"),
        ("Logistic(scale=2)", "2/5"),
        ("TruncatedLaplace(scale=2, bound=10)", "1/4"),
        ("PermuteAndFlip(epsilon=1)", "4/5"),
    ],
)
def test_the_shaded_event_has_the_probability_that_is_proved(mechanism: str, epsilon: str) -> None:
    """Up to one step of the grid at the event's end, and the tails that are too low to be seen."""
    witness = verify(mechanism, epsilon=epsilon, delta="1e-9").witness
    table = event.compute(witness["law"], witness["loss_above"])
    assert table is not None
    rows = list(zip(table.outcomes, table.p, table.inside, strict=True))
    step = rows[1][0] - rows[0][0]
    if table.discrete:
        mass = sum(p for _, p, inside in rows if inside)
    else:
        inner = [(left, right) for left, right in itertools.pairwise(rows) if left[2] and right[2]]
        mass = sum(step * (left[1] + right[1]) / 2 for left, right in inner)
    low = max(table.p) / 100
    short = low if table.discrete else step * max(table.p) + low
    proved = float(witness["p"]["lower"])
    assert proved - short < mass < proved * (1 + 1e-4)


def test_outcomes_that_are_numbers_stand_on_an_axis_of_numbers_and_no_other_is_drawn() -> None:
    law = {"law": "finite", "outcomes": [-1, 0, 1, 5], "p": ["0", "0", "1/4", "3/4"]}
    table = event.compute({**law, "q": ["1/2", "0", "1/2", "0"]}, "0")
    assert table is not None
    assert (table.outcomes, table.names) == ((-1.0, 1.0, 5.0), ())
    drawn = event.draw(table)
    (axes,) = drawn.axes
    assert axes.get_xlabel() == "outcome"
    points = {line.get_label(): np.size(line.get_xdata()) for line in axes.lines}
    assert (points["P"], points["Q"]) == (2, 2)
    assert not axes.get_legend()  # it stands above, beside no outcome
    (span,) = (patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches)
    assert (span.x0, span.x1) == pytest.approx((4.5, 5.5), rel=1e-12, abs=0)


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_readable_on_a_phone_and_by_night(tmp_path: Path, width: int, theme: str) -> None:
    _, path = write(tmp_path, *REFUTED)
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        view = browser.new_context(viewport={"width": width, "height": 900})
        page = view.new_page()
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        seen: list[str] = []
        page.on("console", lambda message: seen.append(message.text))
        page.on("request", lambda request: seen.append(request.url))
        page.goto(path.as_uri())
        assert [url for url in seen if not url.startswith(("file:", "data:"))] == []
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        verdict_word = page.locator(".verdict")
        size = verdict_word.evaluate("each => parseFloat(getComputedStyle(each).fontSize)")
        assert size > 35
        light = page.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
        )
        assert (light < 60) == (theme == "dark")
        with page.expect_download() as download:
            page.get_by_text("Download the certificate").click()
        certificate = json.loads(Path(download.value.path()).read_text("utf-8"))
        assert certificate["theorem"]["verdict"] == "REFUTED"
        browser.close()
