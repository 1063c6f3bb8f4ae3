import numpy as np
import pytest

from directrank.cost.facts import facts
from directrank.edition.plan import DataSource


def source(name, kind, **settings):
    return DataSource("absent", name, settings, kind)


def test_published_counts_stand_for_data_that_is_not_there(tmp_path):
    size = facts(source("web30k", "archive"), 1, tmp_path)
    assert len(size.lengths["train"]) == 18_919
    total = sum(value.sum() for value in size.lengths.values())
    assert total == pytest.approx(3_771_125, rel=0.01)
    assert size.features == 136


def test_settings_stand_for_data_that_will_be_generated(tmp_path):
    settings = {"queries": {"train": 300, "vali": 20, "test": 20}, "mean_length": 30}
    size = facts(source("web30k_standin", "standin", **settings), None, tmp_path)
    assert len(size.lengths["train"]) == 300
    assert size.lengths["train"].mean() == pytest.approx(30, rel=0.2)
    cubic = facts(source("cubic", "generated", documents_per_query=7), None, tmp_path)
    assert set(cubic.lengths["test"]) == {7}


SMALL = {"queries": {"train": 9, "vali": 3, "test": 3}}


def prepared_lists(folder):
    from directrank.data import standins
    from directrank.data.prepared import write_prepared

    lists = standins.generate("web30k_standin", SMALL)
    record = {"name": "web30k_standin", "title": "t", "origin": "standin", "label_levels": 5}
    write_prepared(folder / "absent", lists, record)
    return lists


def test_prepared_data_is_measured(tmp_path):
    lists = prepared_lists(tmp_path)
    size = facts(source("web30k_standin", "standin"), None, tmp_path)
    assert np.array_equal(size.lengths["train"], lists["train"].lengths)
    assert size.origin == "prepared data"


@pytest.mark.parametrize(
    "name", ["store/labels.npy", "store/offsets.npy", "prepared.json", "train/split.json"]
)
@pytest.mark.parametrize("left", [0, 0.5])
def test_damaged_data_counts_as_not_prepared_so_that_the_fit_says_what_is_wrong(
    tmp_path, name, left
):
    prepared_lists(tmp_path)
    path = tmp_path / "absent" / name
    content = path.read_bytes()
    path.write_bytes(content[: int(left * len(content))])
    size = facts(source("web30k_standin", "standin", **SMALL), None, tmp_path)
    assert len(size.lengths["train"]) == 9
    assert size.origin != "prepared data"
