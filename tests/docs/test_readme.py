import re
from pathlib import Path


def blocks(root: Path, language: str) -> list[str]:
    text = (root / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_the_example_of_the_losses_runs(root, capsys):
    (example,) = blocks(root, "python")
    exec(compile(example, "README.md", "exec"), {})
    assert "tensor(0." in capsys.readouterr().out


def test_links_lead_somewhere(root):
    for page in [root / "README.md", *root.glob("*/README.md")]:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#]+)\)", text):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page}: {target}"
