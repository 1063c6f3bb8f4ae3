"""The built documentation in a real browser: ``make test-site`` brings what that takes."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from directrank import losses
from workflow_runs import ROOT

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

SITE = ROOT / "build/docs"
AXE = Path(os.environ.get("AXE", ROOT / ".venv/site/node_modules/axe-core/axe.min.js"))
CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="run `make docs` first"),
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

#: One page of each kind.
PAGES = (
    "docs/index",
    "docs/your_data",
    "figures/real/README",
    "figures/real/data/datasets",
    "paper_tables/real/README",
    "paper_tables/real/claims",
    "paper_tables/real/which_loss",
    "paper_tables/real/losses",
    "paper_tables/real/one_protocol/README",
    "docs/formulas",
    "docs/start",
    "docs/reference/losses",
    "docs/tutorials/add_a_loss",
    "docs/protocols",
    "paper_tables/real/qin2010/table4",
    "leaderboard",
    "curves",
)

#: Width of the window and colour scheme.
VIEWS = ((1280, "light"), (390, "dark"))


class Quiet(SimpleHTTPRequestHandler):
    """A server that logs nothing."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the site is served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium."""
    with sync_api.sync_playwright() as playwright:
        # Root has no sandbox.
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, address):
    """A function that opens a page; the test fails on any error that the page reports."""
    errors: list[str] = []
    contexts = []

    def open_page(name: str, width: int = 1280, scheme: str = "light", query: str = ""):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda said: said.type in ("error", "warning") and errors.append(said.text)
        )
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda one: one.url.startswith(address) or errors.append(one.url))
        page.on("requestfailed", lambda one: errors.append(f"{one.url}: {one.failure}"))
        page.goto(f"{address}/{name}.html{query}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors


def test_every_link_leads_to_a_file_and_a_place_in_it():
    pages = {path: path.read_text(encoding="utf-8") for path in sorted(SITE.rglob("*.html"))}
    places = {path: set(re.findall(r'\sid="([^"]+)"', text)) for path, text in pages.items()}
    broken = []
    for path, text in pages.items():
        for address in set(re.findall(r'\s(?:href|src)="([^"]+)"', text)):
            target = urlsplit(unescape(address))
            if target.scheme or target.netloc:
                continue
            file = (path.parent / unquote(target.path)).resolve() if target.path else path
            place = unquote(target.fragment)
            if not file.exists() or (place and file in places and place not in places[file]):
                broken.append(f"{path.relative_to(SITE)}: {address}")
    assert not broken


@pytest.mark.parametrize(("width", "scheme"), VIEWS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_its_window_and_can_be_read_by_everyone(visit, name, width, scheme):
    if not AXE.is_file():
        pytest.skip(f"axe-core is not at {AXE}")
    page = visit(name, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.add_script_tag(path=str(AXE))
    found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
    assert not [
        (one["id"], one["nodes"][0]["html"], len(one["nodes"]))
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def test_a_head_sorts_up_then_down_then_as_it_was_with_mouse_or_keyboard(visit):
    page = visit("paper_tables/real/one_protocol/README")
    table = page.locator("table").first
    column = table.locator("th", has_text="NDCG@10")
    place = column.evaluate("cell => cell.cellIndex + 1")
    button = column.get_by_role("button")

    def values() -> list[float]:
        cells = table.locator(f"tbody td:nth-child({place})").all_inner_texts()
        return [float(cell.split()[0]) for cell in cells]

    before = values()
    assert before != sorted(before)
    button.click()
    assert values() == sorted(before)
    assert column.get_attribute("aria-sort") == "ascending"
    button.focus()
    page.keyboard.press("Enter")
    assert values() == sorted(before, reverse=True)
    page.keyboard.press("Space")
    assert values() == before


def test_the_table_of_losses_can_be_sorted(visit):
    page = visit("paper_tables/real/losses")
    table = page.locator("table").first
    names = table.locator("tbody td:first-child").all_inner_texts()
    button = table.get_by_role("button").first
    button.click()
    button.click()
    assert table.locator("tbody td:first-child").first.inner_text() == max(names)


def test_the_button_of_the_theme_changes_the_colours(visit):
    page = visit("docs/index")
    colour = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(colour)
    button = page.locator("button.theme-toggle:visible")
    colours = set()
    for _ in range(3):
        button.click()
        colours.add(page.evaluate(colour))
    assert len(colours) == 2
    assert light in colours


def test_all_can_be_reached_with_the_keyboard_and_seen_to_be(visit):
    page = visit("paper_tables/real/one_protocol/README", width=390)
    wanted = {"BUTTON", "A", "DIV"}  # the last is the table, which scrolls
    state = """() => {
        const focused = document.activeElement;
        const inside = focused.closest("article") !== null;
        return [focused.tagName, inside, getComputedStyle(focused).outlineStyle];
    }"""
    for _ in range(200):
        page.keyboard.press("Tab")
        tag, inside, outline = page.evaluate(state)
        if inside:
            assert outline != "none", tag
            wanted.discard(tag)
        if not wanted:
            return
    assert not wanted


def test_the_leaderboard_keeps_its_filters_and_its_pair_in_the_address(visit):
    page = visit("leaderboard")
    rows = page.locator("tbody tr")
    every = rows.count()
    page.get_by_label("Collection").select_option("mq2008")
    page.get_by_label("Scorer").select_option("linear")
    page.get_by_label("Name").fill("ndcg")
    assert 1 < rows.count() < every
    assert all("NDCG" in name for name in page.locator("tbody td:nth-child(3)").all_inner_texts())
    first, second = rows.nth(0).get_by_role("checkbox"), rows.nth(1).get_by_role("checkbox")
    first.focus()
    page.keyboard.press("Space")
    second.check()
    said = page.locator("#pair").inner_text()
    assert "Difference in NDCG@10" in said
    address, shown = page.url, rows.count()
    page.goto("about:blank")
    page.goto(address)
    assert (rows.count(), page.locator("#pair").inner_text()) == (shown, said)


#: MSRD as a collection without the linear scorer, which every collection has today.
WITHOUT = """{
  const msrd = COLLECTIONS.find((one) => one.name === "msrd");
  msrd.methods = msrd.methods.filter((one) => one.scorer !== "linear");
}"""


def test_the_leaderboard_offers_no_scorer_that_a_collection_lacks(visit):
    page = visit("leaderboard", query="#collection=ohsumed&scorer=linear")
    rows, scorer = page.locator("tbody tr"), page.get_by_label("Scorer")
    linear = scorer.locator("option", has_text="linear")
    assert scorer.input_value() == "linear"
    assert rows.count() > 40
    page.evaluate(WITHOUT)
    page.get_by_label("Collection").select_option("msrd")
    assert scorer.input_value() == ""
    assert linear.is_disabled()
    assert rows.count() > 40
    page.get_by_label("Collection").select_option("ohsumed")
    assert linear.is_enabled()


def test_the_leaderboard_is_sorted_best_first_for_every_metric(visit):
    page = visit("leaderboard")
    for metric in ("NDCG@5", "NDCG@10", "MAP", "nERR@10"):
        page.locator("select[name=metric]").select_option(metric)
        values = [
            float(text.split()[0]) for text in page.locator("tbody td.value").all_inner_texts()
        ]
        assert values == sorted(values, reverse=True)


def test_the_slider_changes_the_curve_and_the_address_keeps_it(visit):
    page = visit("curves")
    page.get_by_role("combobox").select_option("neural_ndcg")
    curve = "document.querySelector('#loss polyline.own').getAttribute('points')"
    before = page.evaluate(curve)
    page.get_by_role("slider").focus()
    page.keyboard.press("Home")
    sharp = page.evaluate(curve)
    assert sharp != before
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    assert page.evaluate(curve) == sharp


#: What is searched for → the page that is to be found first, or its place.
SEARCHED = {
    "which loss": "paper_tables/real/which_loss.html",
    "Which loss should I use?": "paper_tables/real/which_loss.html",
    "choose a loss": "paper_tables/real/which_loss.html",
    "install": "docs/start.html",
    "installation": "docs/start.html",
    "pip install": "docs/start.html",
}


def found_first(page) -> str:
    """The address of the first result of a search that has finished."""
    summary = page.locator(".search-summary")
    sync_api.expect(summary).to_contain_text("finished", timeout=60_000)
    page.wait_for_load_state("networkidle")  # it reads the pages that it has found
    return page.locator("#search-results ul.search a").first.get_attribute("href")


@pytest.mark.parametrize(("words", "expected"), SEARCHED.items())
def test_a_question_finds_its_page_first(visit, words, expected):
    page = visit("docs/index")
    box = page.locator("input[name=q]:visible").first
    box.fill(words)
    box.press("Enter")
    assert found_first(page).partition("#")[0] == expected


@pytest.mark.parametrize("name", losses.REGISTRY)
def test_the_name_of_a_loss_finds_its_reference_or_its_section_first(visit, name):
    page = visit("search", query=f"?q={name}")
    reference = f"docs/reference/losses.html#directrank.losses.{name}"
    section = f"paper_tables/real/losses.html#{name.replace('_', '-')}"
    assert found_first(page) in (reference, section)
