"""Configuration of the documentation: ``make docs`` builds it with Sphinx into build/docs.

The source folder is the repository, not docs/: pages link to tables, figures and the pages beside
the code by the same relative paths that work in the repository.
"""

import sys
from pathlib import Path

import directrank
from directrank.report import curves, leaderboard

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

ROOT = Path(__file__).resolve().parents[1]

project = "directrank"
author = copyright = "The directrank authors"
version = release = directrank.__version__

root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "config/README.md",
    "data/README.md",
    "data/embedded/README.md",
    "figures/README.md",
    "figures/*/README.md",
    "figures/*/data/*.md",
    "paper_tables/README.md",
    "paper_tables/*/*.md",
    "paper_tables/*/*/*.md",
]
# Not searched either.
exclude_patterns = [".*", "build", "benchmarks", "data/prepared", "data/raw", "results", "logs"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "accessible",
    "found_first",
    "from_code",
    "mathml",
]

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 4
# Files of the repository that are no pages are offered for download; folders are not.
suppress_warnings = ["misc.highlighting_failure"]

# Its page describes what is installed with an extra of its own.
autodoc_mock_imports = ["torchmetrics"]
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
napoleon_numpy_docstring = False
python_maximum_signature_line_length = 90

# What is searched for, and the page or the place in it that is found first.
found_first = {
    "which loss": "paper_tables/real/which_loss",
    "which loss should I use?": "paper_tables/real/which_loss",
    "choose a loss": "paper_tables/real/which_loss",
    "install": "docs/start",
    "installing": "docs/start",
    "installation": "docs/start",
    "pip install": "docs/start",
    "pirank": "paper_tables/real/losses#pirank",  # a relaxation and its module have this name, too
}

html_theme = "furo"
html_title = "directrank"
html_favicon = "_static/icon.svg"
html_math_renderer = "mathml"
# Pages of their own, no pages of Sphinx: the leaderboard is made from committed tables.
_EXTRA = ROOT / "build/extra"
leaderboard.write(
    ROOT / "paper_tables/real/one_protocol/compared.json", _EXTRA / "leaderboard.html"
)
curves.write(_EXTRA / "curves.html")
html_extra_path = ["_root", str(_EXTRA)]
# The report's script for tables serves every table of these pages.
_TABLES = Path(directrank.__file__).parent / "report/templates"
html_static_path = ["_static", str(_TABLES / "tables.js"), str(_TABLES / "tables.css")]
html_js_files = [(name, {"defer": ""}) for name in ("tables.js", "scrolling.js")]
html_css_files = ["tables.css", "site.css"]
html_copy_source = False
