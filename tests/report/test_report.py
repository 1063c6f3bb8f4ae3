"""The report: whole, self-contained, readable on a phone."""

import html
import re
import shutil
import subprocess
from html.parser import HTMLParser
from urllib.parse import unquote
from xml.etree import ElementTree

import pandas as pd
import pytest

from directrank.papers.shared.verdicts import UNMEASURED
from directrank.report.build import write
from directrank.system.errors import DirectrankError

# The report is made by a whole run of the smallest edition.
pytestmark = pytest.mark.slow

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PHONE = 390  # CSS pixels


MOST_BYTES = 6e6  # of the demo, whose runs and figures are the most


class Page(HTMLParser):
    """Identifiers, links, loaded addresses, table heads, pictures and headings of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded, self.heads, self.pictures = [], [], [], [], []
        self.headings, self.captions, self.tables = [], 0, 0
        self.inside = None
        self.feed(text)

    def handle_data(self, data):
        if self.inside:
            self.inside.append(data)

    def handle_endtag(self, tag):
        if tag in ("th", "h1", "h2", "h3", "h4"):
            self.inside = None

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "th":
            self.heads.append((attributes, [""]))
            self.inside = self.heads[-1][1]
        if tag in ("h1", "h2", "h3", "h4"):
            self.headings.append([""])
            self.inside = self.headings[-1]
        if tag == "img":
            self.pictures.append(attributes)
        self.tables += tag == "table"
        self.captions += tag == "caption"
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if tag == "a":
            self.links.append(attributes["href"])
        elif "href" in attributes or "src" in attributes:
            self.loaded.append(attributes.get("href") or attributes["src"])


@pytest.fixture(scope="module")
def file(finished):
    return finished / "report/tiny/report.html"


@pytest.fixture(scope="module")
def page(file):
    return Page(file.read_text(encoding="utf-8"))


def test_the_page_loads_nothing_from_elsewhere(page, file):
    assert page.loaded
    assert all(address.startswith("data:image/svg+xml,") for address in page.loaded)
    style_and_script = re.findall(
        r"<(?:style|script)>.*?</", file.read_text(encoding="utf-8"), re.S
    )
    assert len(style_and_script) == 2
    assert not re.search(r"@import|url\(|https?:|fetch\(", "".join(style_and_script))


def test_a_picture_in_the_page_is_the_drawing_of_its_file(page, finished):
    for picture in page.pictures:
        drawing = ElementTree.fromstring(unquote(picture["src"].partition(",")[2]))
        title = drawing.findtext("{http://www.w3.org/2000/svg}title")
        files = finished.glob("figures/tiny/*/*.svg")
        (same,) = [
            tree for tree in map(ElementTree.parse, files) if tree.getroot()[0].text == title
        ]
        kept = [
            path.get("d", "").split() for path in drawing.iter("{http://www.w3.org/2000/svg}path")
        ]
        drawn = [
            path.get("d", "").split() for path in same.iter("{http://www.w3.org/2000/svg}path")
        ]
        assert kept == drawn


def test_the_same_results_give_the_same_bytes(file, finished, tmp_path):
    folders = [finished / name for name in ("figures/tiny", "paper_tables/tiny")]
    plans = sorted(finished.glob("results/tiny/plan/*/*.json"))
    pages = []
    for order in (plans, plans[::-1]):
        out = tmp_path / "report.html"
        write(order, finished / "results/tiny", folders[1] / "claims.csv", *folders, out)
        pages.append(out.read_bytes())
    assert pages[0] == pages[1]
    assert len(pages[0]) < MOST_BYTES


def test_every_head_of_a_table_has_a_text_and_says_what_it_is_the_head_of(page):
    assert page.heads
    for attributes, text in page.heads:
        assert attributes["scope"] in ("col", "row")
        assert "".join(text).strip()
    assert page.captions == page.tables > 0


def test_a_picture_is_described_by_more_than_its_heading(page):
    headings = {"".join(text).strip() for text in page.headings}
    assert page.pictures
    for picture in page.pictures:
        assert len(picture["alt"]) > 40
        assert picture["alt"] not in headings


def test_a_verdict_names_what_it_is_measured_on_and_that_names_the_claim(file, finished):
    text = file.read_text(encoding="utf-8")
    articles = dict(re.findall(r'<article id="([^"]+)".*?>(.*?)</article>', text, flags=re.DOTALL))
    claims = pd.read_csv(finished / "paper_tables/tiny/claims.csv")
    measured = claims[(claims["comparison"] == "overall") & (claims["verdict"] != UNMEASURED)]
    assert len(measured)
    for claim in measured["claim"]:
        (row,) = re.findall(rf'<tbody id="{claim}".*?</tbody>', text, flags=re.DOTALL)
        (places,) = re.findall(r"Measured on(.*?)</small>", row, flags=re.DOTALL)
        addresses = re.findall(r'href="#([^"]+)">(?:Figure|Table|Section|Beyond)', places)
        assert addresses
        for address in addresses:
            assert f'href="#{claim}"' in articles[address]


def test_headings_and_contents_have_titles_not_names_of_files(page, file):
    text = html.unescape(file.read_text(encoding="utf-8"))
    headings = ["".join(heading) for heading in page.headings]
    assert "Bruch et al. (2019): revisiting approximate metric optimisation" in headings
    assert not re.search(r">(figure|table)\d\w*</a>", text)
    assert ">Table 1: ranking models on the test sets</a>" in text


def test_a_run_is_a_row_with_its_data_loss_scorer_metric_and_time(file, finished):
    text = file.read_text(encoding="utf-8")
    (table,) = re.findall(r'<table class="listed runs">.*?</section>', text, flags=re.DOTALL)
    rows = re.findall(r'<tbody data-kind="run".*?<tr>(.*?)</tr>', table, flags=re.DOTALL)
    assert len(rows) == len(list((finished / "results/tiny/runs").iterdir()))
    for row in rows:
        assert row.count("<td") + row.count("<th") == 7
        assert re.search(r'--part:0\.\d+"', row)
    assert ">group<" not in table.lower()


def test_every_link_leads_somewhere(page, file):
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        if link.startswith("#"):
            assert link[1:] in page.ids
        else:
            assert (file.parent / link).is_file(), link


def test_every_run_and_product_of_the_edition_is_there(page, finished):
    runs = [folder.name for folder in (finished / "results/tiny/runs").iterdir()]
    assert {f"run-{name}" for name in runs} <= set(page.ids)
    assert {"bruch2019-figure1", "bruch2019-table1"} <= set(page.ids)


def test_a_row_of_a_table_leads_to_the_runs_behind_it_unless_it_was_not_run(file):
    text = file.read_text(encoding="utf-8")
    rows = re.findall(r'<tr><th scope="row"[^>]*>ListMLE(.*?)</tr>', text, flags=re.DOTALL)
    assert rows
    for row in rows:
        assert ("#run-" in row) != ("not run" in row)


def test_claims_verdicts_and_stand_ins_are_named(file):
    text = html.unescape(file.read_text(encoding="utf-8"))
    assert "Which of the papers’ claims are supported" in text
    assert all(f"C{number:02}" in text for number in range(1, 24))
    assert "stand-in for MSLR-WEB30K" in text


def test_plans_of_two_editions_are_refused(tmp_path, finished):
    plan = finished / "results/tiny/plan/bruch2019/figure1.json"
    other = tmp_path / "other.json"
    other.write_text(plan.read_text(encoding="utf-8").replace('"tiny"', '"huge"'))
    with pytest.raises(DirectrankError, match="one edition"):
        write([plan, other], finished, finished, finished, finished, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.long
@pytest.mark.skipif(BROWSER is None, reason="NO BROWSER: install chromium to test the page in one")
@pytest.mark.parametrize("width", [PHONE, 1200])
def test_a_browser_shows_opens_sorts_and_finds_without_error_or_sideways_scrolling(
    file, tmp_path, width
):
    page = file.read_text(encoding="utf-8").replace(
        "<head>", "<head><script>onerror = (text) => parent.document.title += text</script>"
    )
    frame = tmp_path / "frame.html"
    frame.write_text(
        f"""<title></title>
        <iframe width="{width}" height="800" srcdoc="{html.escape(page)}"></iframe>
        <script>onload = () => {{
          const inner = document.querySelector("iframe").contentWindow;
          const run = inner.document.querySelector(".runs details");
          inner.location.hash = run.id;
          const heads = inner.document.querySelectorAll(".runs .table-sort");
          [...heads].find(head => head.textContent === "time").click();
          const seconds = [...inner.document.querySelectorAll(".runs > tbody > tr:first-child")]
            .map(row => Number(row.cells[6].dataset.value));
          const field = inner.document.querySelector("#search");
          field.value = "listmle";
          field.dispatchEvent(new Event("input"));
          const found = inner.document.querySelectorAll(".found a").length;
          setTimeout(() => {{
            const wide = inner.document.documentElement.scrollWidth;
            document.body.append(`wide=${{wide}} opened=${{run.open}}`
              + ` sorted=${{seconds.every((value, i) => !i || seconds[i - 1] <= value)}}`
              + ` found=${{found > 2}}`
              + ` pictures=${{[...inner.document.images].every(image => image.naturalWidth > 0)}}`);
          }}, 200);
        }}</script>""",
        encoding="utf-8",
    )
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=3000",
    ]
    process = subprocess.run(
        [*command, "--dump-dom", frame.as_uri()], capture_output=True, text=True, timeout=120
    )
    shown = process.stdout
    assert "<title></title>" in shown  # no script error
    found = re.search(r"wide=(\d+) opened=(\w+) sorted=(\w+) found=(\w+) pictures=(\w+)", shown)
    assert found, shown[-2000:]
    assert int(found[1]) <= width
    assert found.groups()[1:] == ("true",) * 4
