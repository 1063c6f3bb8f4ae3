"""What the documentation mends in the pages of Sphinx and its theme."""

from __future__ import annotations

import sys

from workflow_runs import ROOT

sys.path.append(str(ROOT / "docs/_extensions"))
from accessible import mended


def test_the_captions_of_trees_have_a_level_once():
    caption = '<p class="caption" role="heading">Results</p>'
    assert mended(caption) == '<p class="caption" role="heading" aria-level="2">Results</p>'
    assert mended(mended(caption)) == mended(caption)


def test_the_parameters_of_a_long_signature_are_no_list_without_terms():
    signature = (
        '<dt><span class="sig-paren">(</span>\n\n<dl>\n<dd><em>scores</em>,</dd>\n</dl>\n)</dt>\n'
        "<dd><dl><dt>Returns:</dt><dd>a loss</dd></dl></dd>"
    )
    assert mended(signature) == (
        '<dt><span class="sig-paren">(</span>\n<span class="sig-line"><em>scores</em>,</span>\n\n)'
        "</dt>\n<dd><dl><dt>Returns:</dt><dd>a loss</dd></dl></dd>"
    )
