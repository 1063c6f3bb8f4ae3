"""Run the notebooks, keep what they show, and write each as a page that needs no Jupyter.

``python docs/notebook_pages.py`` (`make notebooks`) runs every notebook from top to bottom, stores
the outputs in it, and writes ``notebooks/<name>.md`` with its pictures in ``notebooks/<name>/``. A
notebook records of which sources its outputs are, and a test compares.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import hashlib
import io
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt

FOLDER = Path(__file__).resolve().parent / "notebooks"

#: In a notebook's metadata: the digest of the sources whose outputs it has.
KEY = "outputs_of"

Cell = dict[str, Any]


def source(cell: Cell) -> str:
    """What stands in a cell."""
    return "".join(cell["source"])


def digest(cells: Sequence[Cell]) -> str:
    """A digest of all code."""
    code = "\n\n".join(source(cell) for cell in cells if cell["cell_type"] == "code")
    return hashlib.sha256(code.encode()).hexdigest()


def run(cells: Sequence[Cell]) -> None:
    """Run the code from top to bottom and put into each cell what it shows."""
    namespace: dict[str, Any] = {}
    number = 0
    for cell in cells:
        if cell["cell_type"] == "code":
            number += 1
            cell["outputs"] = list(_outputs(source(cell), cell["id"], number, namespace))
            cell["execution_count"] = number


def _outputs(code: str, name: str, number: int, namespace: dict[str, Any]) -> Iterator[Cell]:
    """What code prints, the value of its last line, and the pictures that it draws."""
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, name, "exec"), namespace)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), namespace)
    if printed.getvalue():
        lines = printed.getvalue().splitlines(keepends=True)
        yield {"name": "stdout", "output_type": "stream", "text": lines}
    if value is not None:
        shown = {"text/plain": repr(value).splitlines(keepends=True)}
        yield {
            "data": shown, "execution_count": number, "metadata": {},
            "output_type": "execute_result",
        }  # fmt: skip
    for figure in map(plt.figure, plt.get_fignums()):
        picture = io.BytesIO()
        figure.savefig(picture, format="png", metadata={"Software": None})
        shown = {"image/png": base64.b64encode(picture.getvalue()).decode()}
        axes = figure.axes[0]
        alt = f"{axes.get_ylabel()} against {axes.get_xlabel()}"
        yield {"data": shown, "metadata": {"alt": alt}, "output_type": "display_data"}
    plt.close("all")


def page(name: str, cells: Sequence[Cell]) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown, and its pictures by their names."""
    parts, pictures = [], {}
    for cell in cells:
        if cell["cell_type"] == "markdown":
            parts.append(source(cell))
            continue
        parts.append(f"```python\n{source(cell)}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                picture = f"{name}/{len(pictures) + 1}.png"
                pictures[picture] = base64.b64decode("".join(data["image/png"]))
                parts.append(f"![{output['metadata']['alt']}]({picture})")
            else:
                text = "".join(output.get("text") or data["text/plain"]).rstrip("\n")
                parts.append(f"```text\n{text}\n```")
    parts.append(
        f"This page is [a notebook]({name}.ipynb) with what it showed when it was run; "
        "`make notebooks` runs it again."
    )
    return "\n\n".join(parts) + "\n", pictures


def write(path: Path) -> None:
    """Run a notebook, and write it and its page."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = notebook["cells"]
    with contextlib.chdir(path.parent):
        run(cells)
    notebook["metadata"][KEY] = digest(cells)
    text, pictures = page(path.stem, cells)
    dumped = json.dumps(notebook, indent=1, ensure_ascii=False)
    path.write_text(f"{dumped}\n", encoding="utf-8")
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    for name, content in pictures.items():
        (path.parent / name).parent.mkdir(exist_ok=True)
        (path.parent / name).write_bytes(content)


def main() -> None:
    """Write all notebooks."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    mpl.use("Agg")
    for path in sorted(FOLDER.glob("*.ipynb")):
        write(path)
        print(path.with_suffix(".md").relative_to(FOLDER.parents[1]))


if __name__ == "__main__":
    main()
