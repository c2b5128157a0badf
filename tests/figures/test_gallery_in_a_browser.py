"""The gallery in a browser: all figures, cards that are picked, on a phone and by night."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Page, sync_playwright

from dpassay.figures import gallery, production, registry
from dpassay.figures.cli import COMMAND
from dpassay.verifier.cli import main
from dpassay.verifier.verdict import Finding

CHROMIUM = "/usr/bin/chromium"
OPTIONS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.mark.browser
def test_the_gallery_shows_every_figure_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decided: Callable[[str], dict[str, Finding]]
) -> None:
    """Every picture is there and has a text alternative; nothing is fetched, nothing complains.

    It is drawn from the stored tables, with the verdicts of the ledgers.
    """
    names = [name for name in registry.FIGURES if not registry.description(name).needs]
    only = [part for name in names for part in ("--only", name)]
    findings = {
        f"{paper}/{name}": msgspec.structs.replace(found, id=f"{paper}/{name}")
        for paper in registry.PAPERS
        for name, found in decided(paper).items()
    }
    monkeypatch.setattr(production, "computed", lambda name, _: production.stored(name))
    monkeypatch.setattr(gallery, "decide", lambda *_, **__: findings)
    out = ["--jobs", "1", "--quiet", "--out", str(tmp_path)]
    assert main(["figures", *only, *out], commands=[COMMAND]) == 0
    complaints: list[str] = []
    asked: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "index.html").as_uri())
        pictures = page.get_by_role("img")
        assert pictures.count() == len(names)
        for name in names:
            title = registry.description(name).title
            assert page.get_by_role("img", name=title).count() >= 1
        require_small(page, names)
        require_filters(page, names)
        require_a_card_that_opens(page)
        page.emulate_media(color_scheme="dark")
        ink, paper = page.evaluate(
            "[document.body, document.querySelector('figure svg text')].map(each =>"
            "getComputedStyle(each)).map((each, i) => i ? each.fill : each.backgroundColor)"
        )
        assert ink == "rgb(21, 24, 27)"
        assert paper == "rgb(233, 233, 230)"
        browser.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def require_small(page: Page, names: list[str]) -> None:
    """Some screens tall on a desk, one column on a phone, never wider than either."""
    for width, columns in ((1280, 4), (390, 1)):
        page.set_viewport_size({"width": width, "height": 900})
        lefts = page.locator(".card").evaluate_all(
            "cards => [...new Set(cards.map(card => card.getBoundingClientRect().left))].length"
        )
        assert lefts == columns
        size = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
        wide, tall = page.evaluate(size)
        assert wide <= width
        assert tall < 400 * (len(names) / columns + 2)


def require_filters(page: Page, names: list[str]) -> None:
    """Cards are picked by paper and by verdict, both at once."""
    visible = page.locator(".card:visible")
    page.get_by_text("less-is-more", exact=False).first.click()
    wanted = [name for name in names if name.startswith("less-is-more/")]
    assert visible.count() == len(wanted)
    page.locator("label[for=verdict-REFUTED]").click()
    assert 0 < visible.count() < len(wanted)
    assert visible.locator(".badges .REFUTED").count() == visible.count()
    for every in ("paper-all", "verdict-all"):
        page.locator(f"label[for={every}]").click()
    assert visible.count() == len(names)


def require_a_card_that_opens(page: Page) -> None:
    """An open card has the whole figure, the words and the verdicts."""
    page.set_viewport_size({"width": 1280, "height": 900})
    card = page.locator(".card").first
    before = card.locator("svg").bounding_box()
    card.locator("summary").click()
    after = card.locator("svg").bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] > 2 * before["width"]
    assert card.get_by_text("The paper says").is_visible()
    assert card.locator(".claims .badge").first.is_visible()
