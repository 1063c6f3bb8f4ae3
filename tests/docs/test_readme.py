import re
from pathlib import Path

import pytest

from directrank.papers.shared.claims import read_claims
from directrank.papers.shared.claims_page import replace_block
from directrank.system.errors import DataError


def blocks(root: Path, language: str) -> list[str]:
    text = (root / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_example_of_the_losses_runs(root, capsys):
    example, _ = blocks(root, "python")
    exec(compile(example, "README.md", "exec"), {})
    assert "tensor(0." in capsys.readouterr().out


def test_the_first_model_is_trained(root, capsys):
    _, example = blocks(root, "python")
    exec(compile(example, "README.md", "exec"), {})
    assert 0.5 < float(capsys.readouterr().out) <= 1


def test_the_first_page_is_short(root):
    text = (root / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 90
    assert len(text.split()) <= 900


def test_the_losses_that_are_recommended_are_those_of_the_page_on_losses(root):
    text = (root / "README.md").read_text(encoding="utf-8")
    page = (root / "paper_tables/real/which_loss.md").read_text(encoding="utf-8")
    advice = re.findall(r"^- \*\*([^*]*?):? \[[^]]*\]\(losses\.md#(\w+)\)", page, re.MULTILINE)
    assert [verb for verb, _ in advice] == ["Take", "Avoid"]
    assert "\n- **No other one is worth tuning.** " in page
    assert f"By our rule take `{advice[0][1]}` with fewer than 1 000 training queries" in text


def test_links_lead_somewhere(root):
    for page in [root / "README.md", *root.glob("*/README.md")]:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page}: {target}"


def test_the_count_of_verdicts_is_that_of_the_committed_claims(root, tmp_path):
    file = root / "paper_tables/real/claims.csv"
    try:
        claims = read_claims(file)
    except DataError as error:
        pytest.skip(f"THE COMMITTED CLAIMS ARE OF OTHER CODE, make the edition real anew: {error}")
    text = (root / "docs/findings.md").read_text(encoding="utf-8")
    (tmp_path / "findings.md").write_text(text, encoding="utf-8")
    replace_block(tmp_path / "findings.md", claims)
    assert (tmp_path / "findings.md").read_text(encoding="utf-8") == text, (
        "verdicts have changed: run `directrank claims count paper_tables/real/claims.csv "
        "--page docs/findings.md`"
    )


@pytest.mark.parametrize("edition", ["demo", "real"])
def test_the_page_of_figures_shows_every_figure(root, edition):
    folder = root / "figures" / edition
    text = (folder / "README.md").read_text(encoding="utf-8")
    figures = {
        path.relative_to(folder).with_suffix(".png").as_posix()
        for path in folder.glob("*/*.svg")
        if path.parent.name != "data"
    }
    assert figures
    assert {figure for figure in figures if f"({figure})" not in text} == set()
