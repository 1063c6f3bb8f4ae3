"""The section of the report about its runs: durations, and the curve of a training."""

import re
from xml.etree import ElementTree

import pandas as pd
import pytest

from directrank.report.runs import duration, validation_curve


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.4, "0 s"), (99, "99 s"), (600, "10 min"), (9000, "2.5 h")]
)
def test_durations_are_said_as_people_say_them(seconds, said):
    assert duration(seconds) == said


def test_a_curve_is_one_path_of_the_chosen_candidates_from_its_lowest_to_its_highest_value():
    history = pd.DataFrame(
        {
            "trial": [0, 0, 0, 1, 1],
            "candidate": [0, 0, 1, 0, 0],
            "epoch": [1, 2, 1, 1, 2],
            "vali_metric": [0.2, 0.6, 0.9, 0.4, 0.3],
        }
    )
    fits = pd.DataFrame(
        {"trial": [0, 0, 1], "candidate": [0, 1, 0], "selected": [True, False, True]}
    )
    curve = ElementTree.fromstring(validation_curve(history, fits, "NDCG@5"))
    said = curve.get("aria-label")
    assert said == (
        "2 lines, one per trial: NDCG@5 on the validation set from epoch 1 to 2. "
        "The lowest value is 0.2000, the highest 0.6000."
    )
    _, lines = curve.findall("path")
    steps = re.findall(r"M(\d+) (\d+)l(\d+) (-?\d+)", lines.get("d"))
    assert len(steps) == 2
    (left, floor, width, up), (_, middle, _, down) = (map(int, step) for step in steps)
    assert (left + width, floor + up) == (704, 20)
    assert middle == (floor + 20) / 2
    assert down == (floor - 20) / 4
