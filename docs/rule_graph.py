"""The graph of the workflow's rules: `python docs/rule_graph.py` redraws docs/rule_graph.svg.

Snakemake says which rule needs which; an arrow that follows from others is left out.
"""

import re
import subprocess
import sys
import tempfile
from math import inf
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parents[1]
FIGURE = ROOT / "docs/rule_graph.svg"
WIDTH, HEIGHT, COLUMN, ROW = 104, 26, 128, 64


def dependencies(edition="demo"):
    """Pairs of rules of which the second needs the first's files."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "snakemake", "--rulegraph", "mermaid-js", "--cores", "1"]
        command += ["--snakefile", ROOT / "workflow/Snakefile", "--directory", folder]
        command += ["--configfile", ROOT / f"config/{edition}.yaml"]
        text = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    # Rules of single papers are drawn as one, and so are those of batches.
    names = {node: re.sub("^(plans|products|fit)_.*", r"\1", rule) for node, rule in named(text)}
    return {(names[first], names[second]) for first, second in re.findall(r"(\w+) --> (\w+)", text)}


def named(graph):
    """The nodes of a graph in Mermaid's language, with their rules."""
    return re.findall(r"(id\d+)\[(\w+)\]", graph)


def reduced(pairs):
    """The pairs that do not follow from others."""
    after = {first: {second for each, second in pairs if each == first} for first, _ in pairs}

    def reach(rule):
        direct = after.get(rule, set())
        return direct.union(*(reach(each) for each in direct))

    return {
        (first, second)
        for first, second in pairs
        if not any(second in reach(other) for other in after[first] - {second})
    }


def svg(pairs):
    """The figure: each rule just above the first that needs it."""

    def height(rule):
        return 1 + max((height(second) for first, second in pairs if first == rule), default=-1)

    rules = {rule for pair in pairs for rule in pair}
    rows = [[] for _ in range(1 + max(map(height, rules)))]
    for rule in sorted(rules):
        rows[-1 - height(rule)].append(rule)
    widest = max(map(len, rows))
    place = {}
    for level, row in enumerate(rows):
        # Beneath the middle of what it needs; what needs nothing on the right.
        middle = {rule: mean([place[a][0] for a, b in pairs if b == rule] or [inf]) for rule in row}
        left = (widest - len(row)) / 2
        for number, rule in enumerate(sorted(row, key=lambda rule: (middle[rule], rule))):
            place[rule] = ((left + number + 0.5) * COLUMN, level * ROW + 24)
    arrows, boxes, names = [], [], []
    for first, second in sorted(pairs):
        (x, y), (to_x, to_y) = place[first], place[second]
        y, to_y, bend = y + HEIGHT / 2, to_y - HEIGHT / 2 - 5, (ROW - HEIGHT - 5) / 2
        # Long arrows go down in the column where they end.
        arrows.append(
            f'<path d="M{x:g} {y:g}c0 {bend:g} {to_x - x:g} {bend:g} {to_x - x:g} {2 * bend:g}'
            f'V{to_y:g}"><title>{first} → {second}</title></path>'
        )
    for rule, (x, y) in sorted(place.items()):
        boxes.append(
            f'<rect x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH}" height="{HEIGHT}" '
            f'rx="5"/>'
        )
        names.append(f'<text x="{x:g}" y="{y + 4:g}">{rule}</text>')
    width, height = widest * COLUMN, len(rows) * ROW - 16
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" font-family="sans-serif" font-size="12">',
            '<defs><marker id="head" viewBox="0 0 6 6" refX="1" refY="3" markerWidth="6" '
            'markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6z" fill="#666"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
            '<g fill="none" stroke="#666" marker-end="url(#head)">',
            *arrows,
            '</g>\n<g fill="#eef3fa" stroke="#4a6fa5">',
            *boxes,
            '</g>\n<g fill="#222" text-anchor="middle">',
            *names,
            "</g>\n</svg>\n",
        ]
    )


if __name__ == "__main__":
    FIGURE.write_text(svg(reduced(dependencies())), encoding="utf-8")
