"""The curves of the page are values of the losses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch

from directrank import losses
from directrank.report.curves import OTHERS, SETTINGS, write


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> dict:
    out: Path = tmp_path_factory.mktemp("page") / "curves.html"
    write(out)
    text = out.read_text(encoding="utf-8")
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", text)  # it loads nothing else
    found = re.search(r"const DATA = (\{.*\});\n", text)
    assert found
    return json.loads(found[1])


@pytest.mark.parametrize("name", SETTINGS)
def test_a_curve_has_the_values_and_the_gradient_of_its_loss(page: dict, name: str) -> None:
    (own,) = [one for one in page["losses"] if one["name"] == name]
    assert len(own["loss"]) == len(own["values"]) == len(own["gradient"])
    place, score = 1, page["scores"][30]
    scores = torch.tensor([[score, *OTHERS]], dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([[1.0, 0, 0, 0]], dtype=torch.float64)
    setting = {own["setting"]: own["values"][place]}
    value = getattr(losses, name)(scores, labels, torch.ones(1, 4, dtype=torch.bool), **setting)
    value.sum().backward()
    assert own["loss"][place][30] == pytest.approx(value.item(), rel=1e-3, abs=1e-6)
    assert own["gradient"][place][30] == pytest.approx(scores.grad[0, 0].item(), rel=1e-3, abs=1e-6)


def test_the_exact_metric_is_a_staircase_with_a_step_at_each_other_document(page: dict) -> None:
    values = page["metric"]
    steps = [page["scores"][n] for n in range(1, len(values)) if values[n] != values[n - 1]]
    assert len(steps) == len(OTHERS)
    assert values[-1] == 0
