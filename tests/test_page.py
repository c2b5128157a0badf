"""The page that decides claims and checks certificates in a browser: built, served, opened."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect, sync_playwright

import dpassay
from dpassay.figures.pages import verdict
from dpassay.verifier.batch import Outcome
from tests.test_without_numpy import CLAIMS

DOCS = Path(__file__).resolve().parent.parent / "docs"
FIRST, *REST = [claim for claim in CLAIMS if " VALID" in CLAIMS[claim]][:10]
CERTIFIED = (
    "Gaussian(4) is (1, 1e-5)-DP",
    "Laplace(2) is 0.4-DP",
    "RandomizedResponse(1) is 1-DP",
    "Composed(Laplace(10), 10) is (0.8, 1e-5)-DP",
    "Gaussian(2) is (8, 0.5)-RDP",
)
SCRIPT = "<img src=x onerror=\"document.body.dataset.harmed='1'\">"
SECONDS = 120_000
"""Milliseconds to wait for Python: a machine may be busy."""


@pytest.mark.browser
def test_the_page_answers_in_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(DOCS)
    builder = import_module("web_page")
    try:
        for name in builder.HASHES:
            builder.download(name)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"Pyodide and its wheels cannot be downloaded: {error}")
    builder.build(tmp_path / "page")
    with served(tmp_path / "page") as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(viewport={"width": 390, "height": 844})
        page = context.new_page()
        complaints: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        context.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        page.wait_for_selector("body[data-ready=all]", timeout=SECONDS)
        context.set_offline(True)
        require_verdicts(page, monkeypatch)
        require_checks(page, tmp_path)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
        assert [url for url in asked if not url.startswith((address, f"blob:{address}"))] == []
        assert complaints == []
        context.set_offline(False)
        require_another_start(page, tmp_path)
        require_harmless_fragment(page, address)
        require_consent(page, context, builder.INDEX)
        browser.close()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder as any web server does; yield its address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def require_verdicts(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten claims, typed; the page of the first is that of the command, without pictures."""
    shown = page.frame_locator("#page").locator(".verdict")
    for claim in (*REST, FIRST):
        page.locator("#words").fill(claim)
        page.keyboard.press("Enter")
        expect(page.locator("#step")).to_have_text(
            f"{CLAIMS[claim].split()[0]}: {claim}", timeout=SECONDS
        )
        expect(shown).to_have_text(CLAIMS[claim].split()[0])
        expect(page.locator("#checks strong")).to_have_text(["VALID"])
        assert page.url.endswith("#" + urlencode({"claim": claim}).replace("%2A", "*"))
    monkeypatch.setattr(verdict, "find_spec", lambda _: None)
    made = verdict.page([Outcome(*dpassay.certify(FIRST))], ["dpassay", "verify", FIRST])
    assert page.locator("#page").get_attribute("srcdoc") == made
    with page.expect_download() as download:
        page.frame_locator("#page").get_by_text("Download the certificate").click()
    certificate = json.loads(Path(download.value.path()).read_text("utf-8"))
    assert dpassay.check(certificate).outcome == "VALID"


def require_checks(page: Page, folder: Path) -> None:
    """Five certificates; then one of something false, a broken one, and one with HTML."""
    certificates = [json.loads(json.dumps(dpassay.certify(claim)[1])) for claim in CERTIFIED]
    false, broken, named = (json.loads(json.dumps(certificates[0])) for _ in range(3))
    false["theorem"]["delta"] = "1e-9"
    broken["lemmas"] = [SCRIPT]
    named["theorem"]["id"] = SCRIPT
    cases: list[tuple[str, list[str]]] = [
        *((json.dumps(each), ["VALID"]) for each in certificates),
        (json.dumps(certificates), ["VALID"] * 5),
        (json.dumps(false), ["CONDITIONAL"]),
        (json.dumps(broken), ["INVALID"]),
        (json.dumps(named), ["VALID"]),
    ]
    for content, outcomes in cases:
        require_outcomes(page, folder, content, outcomes)


def require_outcomes(page: Page, folder: Path, content: str, outcomes: list[str]) -> None:
    file = folder / "certificate.json"
    file.write_text(content, encoding="utf-8")
    page.locator("#file").set_input_files(file)
    expect(page.locator("#checks strong")).to_have_text(outcomes, timeout=SECONDS)
    expect(page.locator("#page")).to_be_hidden()
    assert page.locator("#checks *:not(.check, strong, pre)").count() == 0


def require_another_start(page: Page, folder: Path) -> None:
    """What overflows the stack has no answer; the next certificate has one."""
    require_outcomes(page, folder, "[" * 100_000, [""])
    expect(page.locator("#checks")).to_contain_text("There is no answer")
    require_outcomes(page, folder, json.dumps(dpassay.certify(FIRST)[1]), ["VALID"])


def require_harmless_fragment(page: Page, address: str) -> None:
    """A link whose claim is stopped; then links with HTML for a claim, which is shown as text."""
    page.goto("about:blank")
    page.goto(f"{address}#{urlencode({'claim': FIRST})}")
    page.locator("#stop").click()
    expect(page.locator("#checks")).to_have_text("Stopped.")
    for hostile in (SCRIPT, f"Gaussian(3) is (1, 1e-5)-DP {SCRIPT}", "x" * 10_000):
        page.goto(f"{address}#{urlencode({'claim': hostile})}")
        expect(page.locator("#words")).to_have_value(hostile[:2000])
        expect(page.locator("#checks .error pre")).not_to_be_empty(timeout=SECONDS)
        assert page.locator("img").count() == 0
        assert page.locator("body").get_attribute("data-harmed") is None


def require_consent(page: Page, context: BrowserContext, index: str) -> None:
    """A composition that needs NumPy asks first; what arrives must have the hash in the lock."""
    fetched: list[str] = []

    def forged(route: Route) -> None:
        fetched.append(route.request.url)
        route.fulfill(body=b"not NumPy", headers={"Access-Control-Allow-Origin": "*"})

    context.route(lambda url: "127.0.0.1" not in url, forged)
    page.locator("#words").fill("Composed([Gaussian(3), Laplace(3)]) is (1, 1e-5)-DP")
    page.keyboard.press("Enter")
    expect(page.locator("#agree")).to_be_focused(timeout=SECONDS)
    expect(page.locator("#question")).to_contain_text("cdn.jsdelivr.net")
    assert fetched == []
    page.keyboard.press("Enter")
    expect(page.locator("#checks")).to_have_text("numpy could not be fetched.", timeout=SECONDS)
    assert fetched
    assert all(url.startswith(f"{index}numpy-") for url in fetched)
