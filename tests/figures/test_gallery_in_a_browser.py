from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from figures import registry
from figures.cli import COMMAND
from verify.cli import main

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
def test_the_gallery_shows_every_figure_offline(tmp_path: Path) -> None:
    """Every picture is there and has a text alternative; nothing is fetched, nothing complains."""
    names = [name for name in registry.FIGURES if not registry.load(name).DESCRIPTION.needs]
    only = [part for name in names for part in ("--only", name)]
    out = ["--fast", "--quiet", "--out", str(tmp_path)]
    assert main(["figures", *only, *out], commands=[COMMAND]) == 0
    complaints: list[str] = []
    asked: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "index.html").as_uri())
        pictures = page.get_by_role("img")
        assert pictures.count() == len(names)
        for index in range(len(names)):
            box = pictures.nth(index).bounding_box()
            assert box is not None
            assert box["width"] > 300
            assert box["height"] > 100
        for name in names:
            title = registry.load(name).DESCRIPTION.title
            assert page.get_by_role("img", name=title).count() >= 1
        badges = page.locator("article .verdict")
        assert badges.count() > len(names)
        links = page.locator("article ul.claims a").evaluate_all(
            "links => links.filter(a => !document.querySelector(a.getAttribute('href'))).length"
        )
        assert links == 0
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        browser.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
