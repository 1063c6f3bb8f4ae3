"""The page "Which loss?" and the pages of the losses, from made-up results with known winners."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from directrank import losses, relaxations
from directrank.data import catalog
from directrank.system.schema import read_yaml
from published_losses import SCORERS, write_published
from workflow_runs import ROOT

sys.path.append(str(ROOT / "docs/_extensions"))
import which_loss
from which_loss import chooser, library, loss_page, pictures
from which_loss.evidence import SITUATIONS, Collection, Method, Results, answer, gather

#: As the catalogue and the edition have them.
GRADED = Collection("ohsumed", "OHSUMED", levels=3, documents=152.3, trained_on=63, cut=60)
BINARY = Collection("msrd", "MSRD", levels=2, documents=23.6, trained_on=2000, cut=60)

METHODS = [
    Method("RMSE", "rmse"),
    Method("RankNet", "ranknet"),
    Method("LambdaRank", "lambdarank"),
    Method("NeuralNDCG", "neural_ndcg"),
    Method("twin AP type 1", "twin_ap"),
    Method("twin AP type 3", "twin_ap"),
]

#: NDCG@10 of made-up results: on one collection NeuralNDCG is first, LambdaRank as good.
ON_GRADED = {
    "RMSE": 0.40, "RankNet": 0.45, "LambdaRank": 0.480, "NeuralNDCG": 0.4835,
    "twin AP type 1": 0.42, "twin AP type 3": 0.47,
}  # fmt: skip
#: On the other RankNet is, and nothing is as good.
ON_BINARY = ON_GRADED | {"RankNet": 0.52}

#: Milliseconds of 128 lists of 120 documents; the twin losses were not measured.
TIMES = {"nothing": 0.01, "rmse": 0.128, "ranknet": 0.64, "lambdarank": 1.024, "neural_ndcg": 12.8}


def made(
    folder: Path,
    levels: Mapping[str, Mapping[str, float]],
    times: Mapping[str, float] = TIMES,
) -> Results:
    """Results of these collections, of two that there are."""
    for name, of_losses in levels.items():
        write_published(folder, name, of_losses, title=name.upper(), spread=0.003)
    rows = [
        {"loss": loss, "shape": shape, "directrank_ms": ms, "directrank_peak_mb": memory}
        for loss, ms in times.items()
        for shape, memory in (("128x120", None), ("128x240", 100 * ms), ("web30k", None))
    ]
    columns = ["loss", "shape", "directrank_ms", "directrank_peak_mb"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "losses.csv", index=False)
    return Results([GRADED, BINARY], METHODS, folder, folder / "losses.csv")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Results on both collections, and what NeuralNDCG's setting was worth on one of them."""
    folder = tmp_path_factory.mktemp("both")
    candidates = [
        {"method": "NeuralNDCG", "scorer": scorer, "candidate": number, "learning_rate": rate,
         "setting": "tau", "value": value, "mean": mean}
        for scorer in SCORERS
        for number, (rate, value, mean) in enumerate(
            [(0.003, 0.1, 0.40), (0.003, 1.0, 0.41), (0.03, 0.1, 0.4237), (0.03, 1.0, 0.39)]
        )
    ]  # fmt: skip
    pd.DataFrame(candidates).to_csv(folder / "table_ohsumed_settings.csv", index=False)
    return made(folder, {"ohsumed": ON_GRADED, "msrd": ON_BINARY})


@pytest.fixture(scope="module")
def none(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """No results yet."""
    return made(tmp_path_factory.mktemp("none"), {})


def row(text: str, start: str) -> list[str]:
    """The cells of the only line of a table that begins so."""
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def situation(title: str):
    return next(one for one in SITUATIONS if one.title == title)


# -------------------------------------------------------------------------------------- the choice


def test_each_situation_takes_what_wins_on_the_collections_that_stand_for_it(both: Results) -> None:
    taken = {one.title: answer(both, one).take for one in SITUATIONS}
    assert taken == {
        "Nothing known": "NeuralNDCG",  # first and second
        "Binary labels": "RankNet",
        "Graded labels": "NeuralNDCG",
        "Short lists": "RankNet",
        "Long lists": "NeuralNDCG",
        "Few queries": "NeuralNDCG",
        "Many queries": "RankNet",
        "Small CPU budget": "RankNet",  # third and first; NeuralNDCG takes a hundred times as long
    }


def test_the_row_of_a_situation_has_the_numbers_of_the_files(both: Results) -> None:
    cells = row(chooser.situations(both), "Graded labels")
    assert cells[1] == (
        "**[NeuralNDCG](losses/neural_ndcg.md)**, or [LambdaRank](losses/lambdarank.md), "
        "12 times as fast"
    )  # 12.8 ms by 1.024 ms
    assert cells[2] == "1.0 of 6"
    assert cells[3] == "[LambdaRank](losses/lambdarank.md)"
    assert cells[4] == "[LambdaRank](losses/lambdarank.md)"
    assert cells[5] == "100"  # 12.8 ms for 128 lists
    assert cells[6] == "1 300"  # a hundred times 12.8
    assert cells[7] == "0.014 (`tau`)"  # 0.4237 less 0.41
    assert cells[8] == "OHSUMED"


def test_a_narrower_margin_has_a_smaller_group(tmp_path: Path) -> None:
    levels = ON_GRADED | {"LambdaRank": 0.476}  # 0.0075 behind
    found = answer(made(tmp_path, {"ohsumed": levels}), situation("Graded labels"))
    assert found.within == {0.01: ["LambdaRank"], 0.005: []}
    assert set(found.apart) == set(ON_GRADED) - {"NeuralNDCG"}


def test_where_nothing_is_as_good_no_cheaper_loss_stands_beside(both: Results) -> None:
    cells = row(chooser.situations(both), "Binary labels")
    assert cells[1] == "**[RankNet](losses/ranknet.md)**"
    assert cells[3:5] == ["none shown"] * 2
    assert "None of the 5 others is shown to be as good within 0.01" in chooser.in_words(both)


def test_few_queries_are_said_to_tell_little(tmp_path: Path) -> None:
    write_published(
        tmp_path, "ohsumed", dict.fromkeys(ON_GRADED, 0.5), queries=10, spread=0.2, title="OHSUMED"
    )
    results = Results([GRADED, BINARY], METHODS, tmp_path, tmp_path / "none.csv")
    text = chooser.in_words(results)
    assert "None of the 5 others is shown to be as good within 0.01. 5 can neither be told" in text


def test_situations_that_rest_on_the_same_collection_say_so(both: Results) -> None:
    text = chooser.situations(both)
    assert "binary labels, short lists and many queries (MSRD)" in text
    assert "graded labels, long lists and few queries (OHSUMED)" in text
    assert "small cpu budget" not in text.split("Some situations")[1]


def test_the_evidence_has_every_loss_beside_the_best(both: Results) -> None:
    text = chooser.evidence(both)
    assert re.findall(r"^### (.*)$", text, re.MULTILINE) == ["OHSUMED and MSRD", "MSRD", "OHSUMED"]
    _, _, _, on_graded = text.split("### ")
    first, *others = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in on_graded.splitlines()
        if line.startswith("| [")
    ]
    assert first[:2] == ["[NeuralNDCG](losses/neural_ndcg.md)", "1.0"]
    assert len(others) == 5
    behind = float(row(on_graded, "[RMSE]")[3].replace("−", "-").rstrip("\\* "))
    assert behind == pytest.approx(0.40 - 0.4835, abs=0.001)
    assert row(on_graded, "[LambdaRank]")[5:7] == ["yes", "yes"]


# ------------------------------------------------------------------------------- what is not there


def test_without_results_the_page_says_which_commands_make_them(none: Results) -> None:
    for part in (chooser.in_words, chooser.evidence):
        text = part(none)
        assert "**No results yet.**" in text
        assert "`make real-ohsumed` and `make real-msrd`" in text
        assert "take **" not in text
    assert row(chooser.situations(none), "Binary labels")[1:] == ["MSRD", "`make real-msrd`"]
    assert "`make real-msrd` makes them" in chooser.facts(none)
    # What they cost can be said all the same: at most ten times the fastest.
    cheap = chooser.in_words(none).split("\n\n")[1]
    order = "[rmse](losses/rmse.md) (1), [ranknet](losses/ranknet.md) (5) and [lambdarank]"
    assert order in cheap
    assert "neural_ndcg" not in cheap


def test_a_collection_that_is_missing_is_named_beside_the_others(tmp_path: Path) -> None:
    results = made(tmp_path, {"ohsumed": ON_GRADED})
    text = chooser.in_words(results)
    assert "- **Binary labels** (two levels): no results yet; `make real-msrd`." in text
    assert "- **Graded labels** (more than two levels): take **[NeuralNDCG]" in text
    assert "Not made yet, of the edition `real`: MSRD (`make real-msrd`)." in text


def test_without_times_the_small_budget_has_no_answer(tmp_path: Path) -> None:
    results = made(tmp_path, {"ohsumed": ON_GRADED}, times={})
    assert answer(results, situation("Small CPU budget")).take == ""
    assert "no time of any of the compared losses has been measured" in chooser.in_words(results)
    assert "Not measured yet" in loss_page.page(library.Loss("rmse", ROOT), results, "")


def test_the_page_has_a_place_for_every_part(both: Results, none: Results) -> None:
    text = (ROOT / "docs/which_loss.md").read_text(encoding="utf-8")
    for results in (both, none):
        assert "<!--" not in chooser.filled(text, results)
    with pytest.raises(LookupError, match="no place"):
        chooser.filled("# Which loss?", both)


# -------------------------------------------------------------------------------- pages of losses


def test_every_public_loss_has_a_page_and_nothing_else_has(
    none: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "picture", lambda name, path: "")
    (tmp_path / "gone.md").write_text("# gone\n", encoding="utf-8")
    which_loss.write_pages(tmp_path, none)
    pages = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert set(pages) == set(losses.REGISTRY)
    public = {name for name in losses.__all__ if name in losses.REGISTRY}
    assert set(pages) == public
    table = chooser.every_loss(none)
    for name, text in pages.items():
        assert text.startswith(f"# {name}\n")
        assert f"{{py:func}}`directrank.losses.{name}`" in text
        assert table.count(f"(losses/{name}.md)") == 1
        for target in re.findall(r"\]\((\.\./[^)#\s]+)", text):
            if target != "../which_loss.md":
                assert (ROOT / "docs/losses" / target).resolve().exists(), (name, target)


@pytest.mark.parametrize("name", losses.REGISTRY)
def test_what_a_page_says_comes_from_the_code(name: str) -> None:
    loss = library.Loss(name, ROOT)
    assert loss.formula
    assert loss.subject.endswith(".")
    assert not re.search(r"``|:func:|:class:", loss.description)
    described = [setting for setting in loss.settings if setting.text]
    assert len(described) >= len(loss.settings) - 1
    for relaxation in loss.relaxations:
        assert library.ranking(ROOT, relaxation)
    assert bool(loss.plain_version) == (name != "composed")
    assert loss.plain_version[-1:] == ([name] if loss.plain_version else [])


def test_defaults_are_those_of_the_signature() -> None:
    text = loss_page.page(library.Loss("approx_ndcg", ROOT), Results([], [], ROOT, ROOT / "x"), "")
    assert "`alpha`\n: steepness of the ranks" in text
    assert "(default `10.0`)" in text
    assert r"$$ -\frac{1}{N} \sum_i G(y_i) D(r_i) $$" in text
    assert r"Ranks under `sigmoid`: $r_i = 1 + \sum" in text
    assert ":pyobject: _soft_ranks\n" in text
    assert "directrank.relaxations.sigmoid.sigmoid" in text


def test_every_relaxation_is_a_row_of_the_formulas() -> None:
    for name in relaxations.REGISTRY:
        assert library.ranking(ROOT, name)
    assert library.ranking(ROOT, "nothing") == ""


def test_a_page_says_where_its_loss_wins_and_loses(both: Results) -> None:
    text = loss_page.page(library.Loss("ranknet", ROOT), both, "")
    assert row(text, "OHSUMED")[1:] == ["4 of 6", "0.450", "2", "3", "0", "0"]
    assert row(text, "MSRD")[1:2] == ["1 of 6"]
    assert "Its best place is on MSRD, its worst on OHSUMED." in text
    assert (
        "- **OHSUMED**: better than RMSE and twin AP type 1; worse than LambdaRank, NeuralNDCG and "
        "twin AP type 3."
    ) in text
    assert row(text, "120")[:3] == ["120", "128", "5"]  # 0.64 ms
    assert "5 times as long as the fastest loss" in text


def test_a_page_of_a_loss_with_variants_has_each(both: Results) -> None:
    text = loss_page.page(library.Loss("twin_ap", ROOT), both, "")
    assert re.findall(r"^### (.*)$", text, re.MULTILINE) == ["twin AP type 1", "twin AP type 3"]
    assert "Not measured yet" in text


def test_a_page_has_how_far_the_setting_moves_validation(both: Results) -> None:
    text = loss_page.page(library.Loss("neural_ndcg", ROOT), both, "")
    assert "- OHSUMED: 0.014 with `tau`, 0.014 with the learning rate" in text


def test_a_loss_that_a_collections_files_lack_is_left_out_there(tmp_path: Path) -> None:
    older = {name: level for name, level in ON_BINARY.items() if name != "NeuralNDCG"}
    results = made(tmp_path, {"ohsumed": ON_GRADED, "msrd": older})
    text = loss_page.page(library.Loss("neural_ndcg", ROOT), results, "")
    assert "The results of MSRD are from before it was part of the comparison." in text
    assert row(text, "OHSUMED")[1] == "1 of 6"
    # What is said of both collections is of the losses that both have.
    found = answer(results, situation("Nothing known"))
    assert found.together is not None
    assert "NeuralNDCG" not in found.together.labels
    assert answer(results, situation("Graded labels")).take == "NeuralNDCG"


def test_a_loss_outside_the_comparison_has_no_evidence(both: Results) -> None:
    text = loss_page.page(library.Loss("composed", ROOT), both, "")
    assert "It is not part of [one protocol]" in text
    assert "## The plain version" not in text


# ------------------------------------------------------------------------------------- the pictures


def test_a_picture_shows_the_value_and_its_derivative() -> None:
    flat, default, steep = pictures.curves("approx_ndcg")
    assert [flat.label, default.label, steep.label] == ["alpha 2.5", "alpha 10", "alpha 40"]
    x = pictures.PLACES.numpy()
    for curve in (flat, default):
        numeric = (curve.value[2:] - curve.value[:-2]) / (x[2:] - x[:-2])
        assert curve.slope[1:-1] == pytest.approx(numeric, abs=0.01)
    assert steep.slope.min() < default.slope.min() < flat.slope.min() < 0


def test_a_loss_that_draws_has_smooth_curves_of_the_mean() -> None:
    (curve,) = pictures.curves("xe_ndcg")
    x = pictures.PLACES.numpy()
    numeric = (curve.value[2:] - curve.value[:-2]) / (x[2:] - x[:-2])
    assert curve.slope[1:-1] == pytest.approx(numeric, abs=1e-3)


def test_every_loss_can_be_drawn_with_its_settings() -> None:
    for name in losses.REGISTRY:
        chosen = pictures.variants(name)
        assert 1 <= len(chosen) <= 3
        labels = pictures._labels(chosen)
        assert len(set(labels)) == len(labels)


def test_a_picture_is_drawn_once_and_says_in_words_what_it_shows(tmp_path: Path) -> None:
    path = tmp_path / "listnet.svg"
    said = pictures.picture("listnet", path)
    assert said.startswith("Two panels: listnet of a list of five documents")
    before = path.stat().st_mtime_ns
    assert pictures.picture("listnet", path) == said
    assert path.stat().st_mtime_ns == before
    path.write_text(path.read_text("utf-8").replace(pictures._digest("listnet"), "old"), "utf-8")
    assert pictures.picture("listnet", path) == said
    assert path.stat().st_mtime_ns > before


# --------------------------------------------------------------------------------------- the files


def test_collections_and_methods_are_those_of_the_edition_and_the_catalogue() -> None:
    results = gather(ROOT)
    facts = {one.name: one for one in results.collections}
    assert list(facts) == ["ohsumed", "mq2008", "clueweb09", "msrd"]
    for name, one in facts.items():
        entry = catalog.get(name)
        total = entry.expect["total"]
        assert one.levels == entry.label_levels
        assert one.documents == total["documents"] / total["queries"]
    assert facts["ohsumed"].trained_on == 64  # the median fold
    cut = [
        override["set"]["train_queries"]
        for override in read_yaml(ROOT / "config/real.yaml")["overrides"]
        if override.get("where") == {"paper": "one_protocol", "data.name": "msrd"}
    ]
    assert [facts["msrd"].trained_on] == cut
    compared = set(losses.REGISTRY) - {"composed", "lambda_family"}
    assert {method.loss for method in results.methods} == compared
    # Each kind of data has a collection.
    for one in SITUATIONS:
        assert any(one.holds(collection) for collection in results.collections), one.title
