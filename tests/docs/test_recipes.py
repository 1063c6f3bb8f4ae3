"""The recipes run as they stand, and train."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

import pytest
import torch

from directrank import losses, open_dataset
from directrank.cli import main
from directrank.data.prepared import write_prepared
from training_data import made
from workflow_runs import ROOT

EXAMPLES = ROOT / "examples"
OF_PREPARED_DATA = {
    "plain_pytorch": None,
    "lightning_module": "lightning",
    "huggingface_trainer": "transformers",
}


@pytest.fixture
def recipe(monkeypatch):
    """A recipe by its name, imported as a script would import it."""
    monkeypatch.syspath_prepend(EXAMPLES)

    def load(name: str, package: str | None):
        if package and find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install '.[recipes]', make test-recipes")
        return importlib.import_module(name)

    return load


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> str:
    """Prepared data, small, whose labels follow a feature."""
    folder = tmp_path_factory.mktemp("data") / "small"
    splits = {"train": made(240, 0), "vali": made(4, 1), "test": made(60, 2)}
    write_prepared(folder, splits, {"name": "small", "origin": "made", "label_levels": 3})
    return str(folder)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_the_page_shows_the_recipe_as_it_is(path):
    page = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
    code = path.read_text(encoding="utf-8").rstrip("\n")
    assert f"```python\n{code}\n```\n" in page, f"copy {path.name} into its block of the page"


@pytest.mark.parametrize("name", OF_PREPARED_DATA)
def test_a_recipe_for_prepared_data_raises_ndcg(recipe, data, name):
    before, after = recipe(name, OF_PREPARED_DATA[name]).main(data, epochs=20)
    assert after > before + 0.1


def test_the_recipe_of_cross_encoders_raises_ndcg(recipe):
    before, after = recipe("cross_encoder", "sentence_transformers").main()
    assert after > before + 0.1


def test_the_recipe_of_boosted_trees_raises_ndcg_with_both_libraries(recipe, data):
    found = recipe("boosted_trees", "lightgbm").main(data, rounds=10)
    before = found.pop("before")
    assert set(found) == {"LightGBM", "LGBMRanker", "XGBoost", "XGBRegressor"}
    assert min(found.values()) > before + 0.1
    # LightGBM's two interfaces build the same trees.
    assert found["LGBMRanker"] == pytest.approx(found["LightGBM"], abs=0.02)


@pytest.mark.parametrize("loss", ["ranknet", "lambdarank", "approx_ndcg"])
def test_the_recipe_of_preference_optimisation_raises_ndcg(recipe, loss):
    before, after = recipe("preference_optimisation", "transformers").main(losses.get(loss))
    assert after > before + 0.1


def test_with_two_responses_ranknet_is_dpo(recipe):
    example = recipe("preference_optimisation", "transformers")
    scores = torch.randn(20, generator=torch.Generator().manual_seed(0))  # chosen, then rejected
    found = losses.ranknet(scores, torch.tensor([1.0, 0.0] * 10), lengths=[2] * 10)
    dpo = -torch.nn.functional.logsigmoid(scores[::2] - scores[1::2])
    torch.testing.assert_close(found, dpo)
    assert "RankNet on lists of two" in example.__doc__.replace("\n", " ")


@pytest.mark.long
def test_with_lambdarank_lightgbm_comes_near_its_own_on_the_embedded_sample(recipe, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    assert main(["prepare", "msrd_sample", "--out", str(tmp_path / "sample")]) == 0
    trees = recipe("boosted_trees", None)
    train, test = (open_dataset(tmp_path / "sample" / part) for part in ("train", "test"))
    data = lightgbm.Dataset(train.features, train.labels, group=train.lengths)
    settings = {"objective": "lambdarank", "learning_rate": 0.1, "num_leaves": 15, "verbose": -1}
    theirs = lightgbm.train(settings, data, 50).predict
    ours = trees.with_lightgbm(losses.lambdarank, train, 50)
    own = trees.ndcg(lambda features: torch.from_numpy(theirs(features)), test)
    assert trees.ndcg(ours, test) > own - 0.01 > 0.85
