"""The report: whole, self-contained, readable on a phone."""

import html
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from directrank.report.build import write
from directrank.report.content import duration
from directrank.system.errors import DirectrankError

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
PHONE = 390  # CSS pixels


class Page(HTMLParser):
    """Identifiers, links and loaded addresses of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loaded = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
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
    assert all(address.startswith("data:image/svg+xml;base64,") for address in page.loaded)
    assert "@import" not in file.read_text(encoding="utf-8")


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
    rows = re.findall(r"<tr>\s*<td[^>]*>ListMLE(.*?)</tr>", text, flags=re.DOTALL)
    assert rows
    for row in rows:
        assert ("#run-" in row) != ("not run" in row)


def test_claims_verdicts_and_stand_ins_are_named(file):
    text = html.unescape(file.read_text(encoding="utf-8"))
    assert "What of the five papers holds" in text
    assert all(f"C{number:02}" in text for number in range(1, 24))
    assert "stand-in for MSLR-WEB30K" in text


def test_plans_of_two_editions_are_refused(tmp_path, finished):
    plan = finished / "results/tiny/plan/bruch2019/figure1.json"
    other = tmp_path / "other.json"
    other.write_text(plan.read_text(encoding="utf-8").replace('"tiny"', '"huge"'))
    with pytest.raises(DirectrankError, match="one edition"):
        write([plan, other], finished, finished, finished, finished, tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (99, "99 s"), (600, "10 min"), (9000, "2.5 h")]
)
def test_durations_are_said_as_people_say_them(seconds, said):
    assert duration(seconds) == said


@pytest.mark.skipif(BROWSER is None, reason="NO BROWSER: install chromium to test the page in one")
@pytest.mark.parametrize("width", [PHONE, 1200])
def test_a_browser_shows_it_without_error_or_sideways_scrolling(file, tmp_path, width):
    page = file.read_text(encoding="utf-8").replace(
        "<head>", "<head><script>onerror = (text) => parent.document.title += text</script>"
    )
    frame = tmp_path / "frame.html"
    frame.write_text(
        f"""<title></title>
        <iframe width="{width}" height="800" srcdoc="{html.escape(page)}"></iframe>
        <script>onload = () => {{
          const inner = document.querySelector("iframe").contentWindow;
          const run = inner.document.querySelector(".run");
          inner.location.hash = run.id;
          setTimeout(() => {{
            const wide = inner.document.documentElement.scrollWidth;
            document.body.append(`wide=${{wide}} opened=${{run.open}}`
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
    found = re.search(r"wide=(\d+) opened=(\w+) pictures=(\w+)", shown)
    assert found, shown[-2000:]
    assert int(found[1]) <= width
    assert found[2] == found[3] == "true"
