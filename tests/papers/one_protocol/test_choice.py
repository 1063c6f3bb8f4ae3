"""The pages "Which loss?" and "Every loss", from made-up results with known winners."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import pytest

from directrank import losses
from directrank.data import catalog
from directrank.edition.compared import compared
from directrank.papers.one_protocol import choice_page, losses_page
from directrank.papers.one_protocol.choice import (
    SITUATIONS,
    ComparedCollection,
    ComparedLoss,
    Recommendation,
    Results,
    advice_on_trees,
    read,
    recommendation,
)
from directrank.system.errors import DataError
from directrank.system.io import json_text
from published_losses import SCORERS, write_published
from studies import study_of
from workflow_runs import ROOT

#: As the catalogue and the edition have them.
GRADED = ComparedCollection(
    "ohsumed", "OHSUMED", levels=3, documents=152.3, trained_on=63, cut=60, scorers={}
)
BINARY = ComparedCollection(
    "msrd", "MSRD", levels=2, documents=23.6, trained_on=2000, cut=60,
    scorers={"network": "network of 32 hidden units"},
)  # fmt: skip

METHODS = [
    ComparedLoss("RMSE", "rmse"),
    ComparedLoss("RankNet", "ranknet"),
    ComparedLoss("LambdaRank", "lambdarank"),
    ComparedLoss("NeuralNDCG", "neural_ndcg"),
    ComparedLoss("twin AP type 1", "twin_ap"),
    ComparedLoss("twin AP type 3", "twin_ap"),
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


#: Ensembles with their NDCG@10, and the seconds that they take.
TREES = {"LambdaMART": 0.471, "XGBoost": 0.47, "YetiRank": 0.41}
SECONDS = {"LambdaMART": 0.5, "XGBoost": 1.0, "YetiRank": 4.0}


def made(
    folder: Path,
    levels: Mapping[str, Mapping[str, float]],
    times: Mapping[str, float] = TIMES,
    trees: Mapping[str, float] = TREES,
) -> Results:
    """Results of these collections, read from the files of an edition."""
    for name, of_losses in levels.items():
        write_published(
            folder, name, {**of_losses, **trees}, title=name.upper(), spread=0.003, trees=[*trees]
        )
        seconds = pd.Series(SECONDS, name="seconds").rename_axis("method").reset_index()
        about = {"dataset": name.upper(), "scorer": "trees"}
        seconds.assign(**about).to_csv(folder / f"figure_{name}_time_times.csv", index=False)
        candidates = [
            {"method": method, "scorer": scorer, "candidate": number, "learning_rate": rate,
             "setting": "tau" if method == "NeuralNDCG" else None, "value": value, "mean": mean,
             "fits": 6, "chosen": 6 if number == 2 else 0}
            for method in of_losses
            for scorer in SCORERS
            for number, (rate, value, mean) in enumerate(
                [(0.003, 0.1, 0.40), (0.003, 1.0, 0.41), (0.03, 0.1, 0.4237), (0.03, 1.0, 0.39)]
            )
        ]  # fmt: skip
        pd.DataFrame(candidates).to_csv(folder / f"table_{name}_settings.csv", index=False)
    rows = [
        {"loss": loss, "shape": shape, "directrank_ms": ms, "directrank_peak_mb": memory}
        for loss, ms in times.items()
        for shape, memory in (("128x120", None), ("128x240", 100 * ms), ("web30k", None))
    ]
    columns = ["loss", "shape", "directrank_ms", "directrank_peak_mb"]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "losses.csv", index=False)
    facts = {
        "edition": "real",
        "collections": [asdict(one) for one in (GRADED, BINARY) if one.name in levels],
        "methods": [asdict(method) for method in METHODS],
        "trees": [
            {"name": "LambdaMART", "library": "LightGBM", "options": {}},
            {"name": "XGBoost", "library": "XGBoost", "options": {"norm": False}},
            {"name": "YetiRank", "library": "CatBoost", "options": {"k": 10, "metric": "NDCG"}},
        ],
    }
    (folder / "compared.json").write_text(json.dumps(facts), encoding="utf-8")
    times = sorted(folder.glob("figure_*_time_times.csv"))
    return read(folder / "compared.json", folder / "losses.csv", times)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Results on both collections."""
    folder = tmp_path_factory.mktemp("both")
    return made(folder, {"ohsumed": ON_GRADED, "msrd": ON_BINARY})


def row(text: str, start: str) -> list[str]:
    """The cells of the only line of a table that begins so."""
    (line,) = (line for line in text.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def found(results: Results, title: str) -> Recommendation:
    """What the results say of a situation."""
    said = recommendation(results, next(one for one in SITUATIONS if one.title == title))
    assert said is not None
    return said


def part(text: str, heading: str) -> str:
    """What stands below a heading of the second level."""
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


# ------------------------------------------------------------------------------------- which loss


def test_what_holds_with_more_training_queries_is_told_where_it_was_measured(
    both: Results,
) -> None:
    assert "With more training queries" not in choice_page.page(both)
    means = {"LambdaMART": 0.912, "LambdaRank": 0.9115, "RankNet": 0.911, "RMSE": 0.9}
    sizes = pd.DataFrame(
        {"dataset": "MSRD", "train_queries": size, "method": name, "mean": mean + gain, "pairs": 3,
         "differ": differ}
        for size, differ in ((300, 0), (9496, 2))
        for name, mean in means.items()
        for gain in [0.01 if size > 300 and name == "LambdaMART" else 0.0]
    )  # fmt: skip
    text = part(choice_page.page(both, sizes), "With more training queries")
    highest = "LambdaRank 0.9115, RankNet 0.9110, RMSE 0.9000"
    # RankNet is the loss to take if nothing is known.
    few = ["0 of 3", "LambdaMART 0.9120", "0.9110", highest, "RMSE 0.9000"]
    assert row(text, "300") == ["300", *few]
    many = ["2 of 3", "LambdaMART 0.9220", "0.9110", highest, "RMSE 0.9000"]
    assert row(text, "9") == ["9\u00a0496", *many]


def test_each_situation_has_its_advice_from_the_collections_that_stand_for_it(
    both: Results,
) -> None:
    said = {one.title: found(both, one.title) for one in SITUATIONS}
    taken = {title: one.advice.default for title, one in said.items()}
    assert taken == {
        "Nothing known": "RankNet",  # 0.45 and 0.52
        "Binary labels": "RankNet",
        "Graded labels": "NeuralNDCG",
        "Short lists": "RankNet",
        "Long lists": "NeuralNDCG",
        "Few queries": "NeuralNDCG",
        "More queries": "RankNet",
        "Small CPU budget": "RankNet",
    }
    assert all(one.advice.avoided == "RMSE" for one in said.values())
    assert [len(one.stands_on) for one in said.values()] == [2, 1, 1, 1, 1, 1, 1, 2]


def test_the_small_budget_asks_only_for_losses_that_fit_it(both: Results) -> None:
    assert both.cheap == ["RMSE", "RankNet", "LambdaRank"]  # 1.28 ms at most, of those measured
    assert found(both, "Small CPU budget").advice.field.whole.order == [
        "RankNet", "LambdaRank", "RMSE",
    ]  # fmt: skip


def test_the_page_starts_with_what_to_take_to_tune_and_to_avoid(tmp_path: Path) -> None:
    text = choice_page.page(made(tmp_path, {"ohsumed": ON_GRADED}))
    assert text.startswith(
        "# Which loss?\n\n"
        "**Over all collections**, which have 63 training queries:\n\n"
        "- **Take [NeuralNDCG](losses.md#neural_ndcg)**, 100 ms per 1000 lists of 120 documents "
        "(RMSE: 1). Its mean NDCG@10 over 1 collection, 0.484, is the highest, and 0 of the 5 "
        "others are tied; every one that is tied needs tuning: its `tau` moves NDCG@10 on the "
        "validation set by 0.014, more than controls may be apart. 15 of 15 pairs of 6 losses "
        "differ significantly.\n"
        "- **If you train with RMSE today**, NeuralNDCG minus RMSE is +0.083 ± 0.000, which is "
        "significant after correction over all pairs.\n"
        "- **Avoid [RMSE](losses.md#rmse)**, 1 ms per 1000 lists of 120 documents. 5 of the 5 "
        "other losses are significantly better; its mean is 0.400. Also behind: twin AP type 3, "
        "RankNet and twin AP type 1.\n\n"
        "Boosted trees, by the same rule:\n\n"
        "- **Take LambdaMART ([LightGBM](../../docs/trees.md))**, 0.5 s per configuration and "
        "fold. "
    )
    assert "- **Avoid YetiRank ([CatBoost](../../docs/trees.md) with `k=10`, " in text


def test_the_page_of_small_and_large_collections_starts_with_what_to_take_on_each(
    both: Results,
) -> None:
    text = choice_page.page(both).split("**Over all collections**, which have 63 to 2\u00a0000 ")[0]
    few, more = (row(text, title) for title in ("Few queries", "More queries"))
    assert few == [
        "Few queries: fewer than 1000 to train on",
        "**[NeuralNDCG](losses.md#neural_ndcg)**: 0.484, tied with 0 of the 5 others",
        "LambdaMART ([LightGBM](../../docs/trees.md)): 0.471, tied with 0 of the 2 others",
        "OHSUMED (63 training queries)",
    ]
    assert more[1].startswith("**[RankNet](losses.md#ranknet)**: 0.520, tied with 0 of the 5 ")
    assert more[3] == "MSRD (2\u00a0000 training queries)"
    missing = "binary labels and few queries, or graded labels and more queries"
    assert f"No collection has {missing}." in text


def test_the_facts_say_what_a_scorer_consists_of(both: Results) -> None:
    text = part(choice_page.page(both), "What the collections represent")
    assert row(text, "MSRD")[1] == "linear, network of 32 hidden units, context-aware"
    assert row(text, "OHSUMED")[1] == "linear, network, context-aware"


def test_what_is_tied_and_needs_tuning_is_the_alternative(tmp_path: Path) -> None:
    # The transpose is the control: 0.005 apart, so that LambdaRank is tied with the highest mean.
    levels = ON_GRADED | {"NeuralNDCG": 0.4835, "NeuralNDCGᵀ": 0.4785}
    text = choice_page.page(made(tmp_path, {"ohsumed": levels}))
    assert (
        "- **Take [LambdaRank](losses.md#lambdarank)**, 8 ms per 1000 lists of 120 documents "
        "(RMSE: 1). Its mean NDCG@10 over 1 collection, 0.480, is one of 3 that are tied: "
        "they are within 0.005 of the highest (0.484, NeuralNDCG), the distance that two controls "
        "may have; no setting of its own was tried."
    ) in text
    assert "- **Worth tuning: [NeuralNDCG](losses.md#neural_ndcg)**, 100 ms per 1000 " in text
    assert "its `tau` moves NDCG@10 on the validation set by 0.014." in text


def test_the_highest_ensemble_stands_beside_the_highest_loss(tmp_path: Path) -> None:
    text = choice_page.page(made(tmp_path, {"ohsumed": ON_GRADED})).split("\n## ")[0]
    cells = row(text, "OHSUMED")
    assert cells[2] == "LambdaMART 0.471"  # over queries
    assert cells[3].startswith("NeuralNDCG, ")
    assert cells[4].startswith("−0.0")


def test_trees_need_two_that_every_collection_has(tmp_path: Path) -> None:
    results = made(tmp_path, {"ohsumed": ON_GRADED}, trees={"LambdaMART": 0.47})
    assert advice_on_trees(results, results.collections) is None
    text = choice_page.page(results)
    assert "Boosted trees, by" not in text
    assert "### Boosted trees" not in text


@pytest.mark.slow
def test_trees_take_the_controls_of_losses_unless_one_was_trained_again(tmp_path: Path) -> None:
    levels = ON_GRADED | {"NeuralNDCGᵀ": 0.4785}  # 0.005 from NeuralNDCG
    results = made(tmp_path, {"ohsumed": levels})
    advice = advice_on_trees(results, results.collections)
    assert advice is not None
    assert 0.005 < advice.field.whole.distance < 0.0055
    note = "these controls are those of the losses"
    assert note in choice_page.page(results)

    again = made(tmp_path, {"ohsumed": levels}, trees=TREES | {"LambdaMART again": 0.478})
    advice = advice_on_trees(again, again.collections)
    assert advice is not None
    assert 0.007 < advice.field.whole.distance < 0.01
    assert "LambdaMART again" not in advice.field.whole.order
    assert note not in choice_page.page(again)


def test_the_row_of_a_situation_has_the_numbers_of_the_files(both: Results) -> None:
    cells = row(part(choice_page.page(both), "By task and data"), "Graded labels")
    assert cells[1:] == [
        "[NeuralNDCG](losses.md#neural_ndcg), 100 ms",  # 12.8 ms for 128 lists
        "–",
        "[RMSE](losses.md#rmse), 1 ms",
        "1 of 6",
        "OHSUMED",
    ]


def test_few_queries_leave_every_loss_possible(tmp_path: Path) -> None:
    results = made(tmp_path, {"ohsumed": ON_GRADED})
    alike = dict.fromkeys(ON_GRADED, 0.5)
    write_published(tmp_path, "ohsumed", alike, queries=10, spread=0.2, title="OHSUMED")
    text = choice_page.page(results)
    assert row(part(text, "By task and data"), "Graded labels")[3:5] == ["–", "6 of 6"]
    assert "**Avoid" not in text.split("## The rule")[0]


def test_situations_that_rest_on_the_same_collection_say_so(both: Results) -> None:
    text = choice_page.page(both)
    assert "binary labels, short lists and more queries (MSRD)" in text
    assert "graded labels, long lists and few queries (OHSUMED)" in text
    assert "small cpu budget" not in text.split("Some situations")[1]


def test_the_evidence_has_every_loss_beside_the_best(both: Results) -> None:
    text = part(choice_page.page(both), "The evidence")
    assert re.findall(r"^### (.*)$", text, re.MULTILINE) == [
        "OHSUMED and MSRD",
        "MSRD",
        "OHSUMED",
        "Boosted trees on OHSUMED and MSRD",
        "Boosted trees on OHSUMED",
        "Boosted trees on MSRD",
    ]
    _, _, _, on_graded, on_trees, *_ = text.split("### ")
    first, *others = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in on_graded.splitlines()
        if line.startswith("| [")
    ]
    assert first[:2] == ["[NeuralNDCG](losses.md#neural_ndcg)", "0.484"]
    assert len(others) == 5
    behind = float(row(on_graded, "[RMSE]")[2].replace("−", "-").rstrip("\\* "))
    assert behind == pytest.approx(0.40 - 0.4835, abs=0.001)
    assert row(on_graded, "[LambdaRank]")[4:7] == ["", "", "yes"]
    assert first[4:6] == ["yes", "yes"]
    assert first[7:] == ["100", "1 300", "0.014 (`tau`)"]  # 0.4237 less 0.41
    assert row(on_trees, "YetiRank")[1:2] + row(on_trees, "YetiRank")[-2:] == [
        "0.410", "4", "no setting",
    ]  # fmt: skip


@pytest.mark.slow
def test_a_situation_without_a_collection_is_left_out(tmp_path: Path) -> None:
    text = choice_page.page(made(tmp_path, {"ohsumed": ON_GRADED}))
    assert "| Graded labels: more than two levels " in text
    assert "Binary labels" not in text


@pytest.mark.slow
def test_without_times_the_small_budget_has_no_answer(tmp_path: Path) -> None:
    results = made(tmp_path, {"ohsumed": ON_GRADED}, times={})
    assert "Small CPU budget" not in choice_page.page(results)
    assert "Its time has not been measured." in part(choice_page.losses_page(results), "rmse")


def test_times_that_are_missing_are_named(both: Results) -> None:
    nowhere = replace(both, benchmark=Path("nowhere/losses.csv"))
    with pytest.raises(DataError, match=r"nowhere/losses\.csv.*times of the losses are missing"):
        nowhere.ms("ranknet")


# ------------------------------------------------------------------------------------- every loss


def test_every_loss_has_a_row_and_a_section_with_its_settings(both: Results) -> None:
    text = choice_page.losses_page(both)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(losses.REGISTRY)
    for name in losses.REGISTRY:
        assert text.count(f"| [{name}](#{name}) ") == 1
    assert "`alpha=10.0`" in part(text, "approx_ndcg")
    assert not re.search(r"``|:func:|:class:", text)
    assert "It is not part of the comparison." in part(text, "composed")


def test_a_section_says_where_its_loss_wins_and_loses(both: Results) -> None:
    text = part(choice_page.losses_page(both), "ranknet")
    assert row(text, "OHSUMED")[1:] == ["4 to 4 of 6", "0.450", "2", "3", "0", "0"]
    assert row(text, "MSRD")[1:2] == ["1 to 1 of 6"]
    assert (
        "- **OHSUMED**: better than RMSE and twin AP type 1; worse than LambdaRank, NeuralNDCG and "
        "twin AP type 3."
    ) in text
    assert row(text, "120")[:3] == ["120", "128", "5"]  # 0.64 ms


def test_a_section_of_a_loss_with_variants_has_each(both: Results) -> None:
    text = part(choice_page.losses_page(both), "twin_ap")
    assert re.findall(r"^\*\*(twin.*)\*\*$", text, re.MULTILINE) == [
        "twin AP type 1",
        "twin AP type 3",
    ]
    assert "Its time has not been measured." in text


def test_a_section_has_how_far_the_setting_moves_validation(both: Results) -> None:
    text = part(choice_page.losses_page(both), "neural_ndcg")
    assert "- OHSUMED: 0.014 with `tau`, 0.014 with the learning rate" in text
    of_rmse = part(choice_page.losses_page(both), "rmse")
    assert "- OHSUMED: 0.014 with the learning rate" in of_rmse


def test_a_loss_that_one_collection_lacks_has_the_rows_of_the_others(tmp_path: Path) -> None:
    on_binary = {name: value for name, value in ON_BINARY.items() if name != "NeuralNDCG"}
    results = made(tmp_path, {"ohsumed": ON_GRADED, "msrd": on_binary})
    text = part(choice_page.losses_page(results), "neural_ndcg")
    assert row(text, "OHSUMED")
    assert "| MSRD" not in text
    assert "- OHSUMED: 0.014 with `tau`" in text
    choice_page.page(results)


def test_a_measured_number_has_two_digits() -> None:
    assert [losses_page.significant(value) for value in (0.0123, 1.26, 1234.5)] == [
        "0.012",
        "1.3",
        "1 200",
    ]


# --------------------------------------------------------------------------------------- the files


@pytest.mark.slow
def test_collections_and_methods_are_those_of_the_edition_and_the_catalogue() -> None:
    written = ROOT / "paper_tables/real/one_protocol/compared.json"
    facts = compared(study_of("real"))
    assert written.read_text(encoding="utf-8") == json_text(facts)
    results = read(written)
    known = {one.name: one for one in results.collections}
    assert list(known) == ["ohsumed", "mq2008", "clueweb09", "msrd"]
    for name, one in known.items():
        total = catalog.get(name).expect["total"]
        assert one.levels == catalog.get(name).label_levels
        assert one.documents == total["documents"] / total["queries"]
    assert known["ohsumed"].trained_on == 64  # the median fold
    assert known["msrd"].trained_on == 9496
    assert list(known["msrd"].scorers) == ["context-aware", "network"]
    every = set(losses.REGISTRY) - {"composed", "lambda_family"}
    assert {one.loss for one in results.methods} == every
    trees = {one.name: one for one in results.ensembles}
    plain = {"objective": "lambdarank"}
    assert trees["LambdaMART unnormalised"].options == plain | {"lambdarank_norm": False}
    assert {one.library for one in trees.values()} == {"LightGBM", "XGBoost", "CatBoost"}
    assert not any("again" in name for name in trees)
    # Each kind of data has a collection.
    for one in SITUATIONS:
        assert any(one.holds(collection) for collection in results.collections), one.title


@pytest.mark.slow
def test_the_committed_pages_are_what_the_committed_files_say(tmp_path: Path) -> None:
    times = sorted((ROOT / "figures/real/one_protocol").glob("figure_*_time_times.csv"))
    results = read(ROOT / "paper_tables/real/one_protocol/compared.json", times=times)
    assert (ROOT / "figures/real/one_protocol/figure_collections.png").exists()  # the page links it
    sizes = pd.read_csv(ROOT / "figures/real/one_protocol/figure_training_size.csv")
    for path in choice_page.write(results, tmp_path / "which_loss.md", sizes):
        committed = (ROOT / "paper_tables/real" / path.name).read_text(encoding="utf-8")
        assert path.read_text(encoding="utf-8") == committed, "run `directrank page losses`"
