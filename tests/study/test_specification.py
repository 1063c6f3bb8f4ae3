"""What a run's specification names."""

import pytest

from directrank.study.specification import run_name, streams_of
from stopped_runs import SPEC


@pytest.mark.parametrize(
    "change",
    [
        {"loss": {"name": "ranknet"}},
        {"model": {"name": "linear"}},
        {"training": {"optimizer": {"name": "sgd", "lr": 1.0}}},
        {"tune": {"loss.alpha": [1, 2]}},
        {"learner": "lightgbm"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_compared_on_the_same_data_has_its_random_numbers_in_common(change):
    assert run_name({**SPEC, **change}) != run_name(SPEC)
    assert streams_of({**SPEC, **change}) == streams_of(SPEC)


def test_other_data_another_fold_and_a_repetition_have_their_own():
    data = {"name": "mq2008", "settings": {}}
    specs = [SPEC, {**SPEC, "data": data}, {**SPEC, "fold": 2}, {**SPEC, "fold": 3},
             {**SPEC, "repeat": 1}, {**SPEC, "repeat": 2}]  # fmt: skip
    assert len({streams_of(spec) for spec in specs}) == len(specs)
