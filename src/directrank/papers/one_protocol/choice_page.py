"""The page "Which loss?" of an edition, in Markdown."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from directrank import losses
from directrank.papers.one_protocol.advice import CHEAP, Advice, Standing
from directrank.papers.one_protocol.choice import (
    SITUATIONS,
    ComparedCollection,
    Recommendation,
    Results,
    advice_on_trees,
    recommendations,
)
from directrank.papers.one_protocol.controls import is_again
from directrank.papers.one_protocol.losses_page import section, significant
from directrank.papers.one_protocol.methods import CONTROLS, PRIMARY, SCORERS
from directrank.papers.shared.format import (
    DIGITS,
    count,
    counted,
    interval,
    listed,
    number,
    signed,
)
from directrank.papers.shared.tables import markdown_rows
from directrank.stats.decisions import BETTER, EQUIVALENT, WORSE
from directrank.stats.estimates import of_row
from directrank.system.io import write_text

RULE = """\
Everything on this page follows from the published values by one rule, the same for losses and for \
trees, which looks at NDCG@10, averaged over [the scorers](#what-the-collections-represent) that \
most losses of a collection have, and over collections with equal weights. It takes means over \
queries; the tables of the collections show means of fold means, which may differ from them in the \
third digit.

1. *Controls* are methods that hardly differ: losses that are nearly the same function, or one \
method trained twice with other seeds. How far they may be apart, by the 95 % interval of their \
difference, is noise (a collection without one of the two adds nothing), and nothing nearer than \
that is ranked: methods that are no further below \
the highest mean are **tied** with it.
2. **Take**, of the methods that are tied and need no tuning, the one with the highest mean that \
takes no more than {cheap} times as long as the fastest of them. A method needs no tuning if its \
own setting, where one was tried, moves NDCG@10 on the validation set by no more than controls may \
be apart. If every one needs tuning, take the one with the highest mean likewise. Any other that \
is tied may be as good.
3. **Tune**, likewise, another one that is tied and whose setting moves it by more than that.
4. A method is **behind** if another one is significantly ahead of it after correction over the \
pairs of this method only, it is not tied with the highest mean, and it is not shown to be within \
{margin} of it.
5. **Avoid** the method that is behind and to which the largest number of others are significantly \
better, after correction over all pairs, by more than controls may be apart.

Tests are for other queries and other trainings. Those of rule 4 ask of one method at a time \
whether it may be the best, so that a method may be behind although no single one of its pairs is \
significant among all. *May be the best* are the methods among which the best is with 95 % \
confidence: those of which no other one is significantly ahead by rule 4. An asterisk marks a \
difference that is significant after correction over all pairs. *As good \
as the first* are those whose difference from the highest mean is shown to be smaller than \
{margin}; a method that is not among them need not be worse, because the collections may be too \
small to tell."""

COSTS = """\
*ms* and *MB* are the time and memory of the forward and backward pass on a CPU, for 1000 lists \
of 120 documents and for 128 lists of 240, as [the \
benchmark](../../benchmarks/results/losses.csv) measured them. *s* is the time that one \
configuration of an ensemble took to train in one fold, the mean over the collections. \
*Sensitivity* is the range of validation NDCG@10 over the values that were tried of the method's \
own setting, at the best learning rate for each."""

#: The situations that the page begins with.
BY_QUERIES = ("Few queries", "More queries")

#: The loss of those who do not rank: a mean squared error of single documents.
POINTWISE = "RMSE"

#: Columns of the evidence on any methods.
BESIDE = (
    "NDCG@10", "less the first", "95%", "tied", "may be the best", "as good as the first",
)  # fmt: skip

REPRESENTED = """\
Labels, lists and queries are those of [the catalogue](../../data/datasets.yaml) and of the \
edition ([configuration](../../config/README.md)). There are few collections, and each \
represents several situations at once: a situation with a single collection says no more than \
that collection does."""

DIFFERENCES = """\
The interval of a difference covers other queries of the same collections (other groups, where \
queries form groups) and other trainings. The lead of the first method is slightly overestimated, \
because it was chosen by these same numbers. You can [test a difference \
yourself](../../docs/your_data.md#results-per-query) with the files."""


def write(results: Results, out: Path, sizes: pd.DataFrame | None = None) -> list[Path]:
    """Write the page, and beside it the page ``losses.md`` with a section per loss; see
    :func:`page`."""
    pages = {out: page(results, sizes), out.with_name("losses.md"): losses_page(results)}
    for path, text in pages.items():
        write_text(path, text)
    return list(pages)


def page(results: Results, sizes: pd.DataFrame | None = None) -> str:
    """Which loss to take and which trees, why, and with which evidence.

    Args:
        results: of one protocol.
        sizes: the values of ``figure_training_size``; without them nothing is said of larger
            training sets.
    """
    found = recommendations(results)
    trees = advice_on_trees(results, results.collections)
    margin = f"{found[0].together.margin:g}"
    queries = _trained_on(results.collections)
    parts = [
        "# Which loss?",
        *_by_queries(results, found, larger=sizes is not None),
        f"**Over all collections**, which have {queries} training queries:",
        _advised(results, _of_losses(results), found[0].advice),
        *(
            (
                "Boosted trees, by the same rule:",
                _advised(results, _of_trees(results, results.collections), trees),
                _trees_or_losses(results),
            )
            if trees
            else ()
        ),
        _scope(results, larger=sizes is not None),
        *(
            ()
            if sizes is None
            else (
                "## With more training queries",
                _by_size(results, sizes, found[0].advice.default),
            )
        ),
        "## The rule",
        RULE.format(margin=margin, cheap=CHEAP),
        "## By task and data",
        "Where rows that fit you disagree, go by the number of training queries, and [compare the "
        "losses of these rows on your data](../../docs/your_data.md).",
        _situations(results, found),
        *_indistinguishable(found),
        "## What the collections represent",
        _facts(results),
        REPRESENTED,
        "## The evidence",
        f"[A picture](../../figures/{results.edition}/one_protocol/figure_collections.png) shows "
        f"every method over all collections. {DIFFERENCES}",
        COSTS,
        *_evidence(results, found),
        *(text for group in _groups(results, found) for text in _on_trees(results, group)),
    ]
    return "\n\n".join(parts) + "\n"


def losses_page(results: Results) -> str:
    """Every loss of the library: the table of all, and a section for each."""
    together = results.together(one.name for one in results.collections)
    rows = []
    for name in losses.REGISTRY:
        own = [method.name for method in results.methods if method.loss == name]
        means = [together.mean[method] for method in own if method in together.labels]
        rows.append(
            [
                f"[{name}](#{name})",
                ", ".join(own) or "–",
                number(max(means)) if means else "–",
                _measured(results.ms(name)),
                _measured(results.mb(name)),
            ]
        )
    columns = ["loss", "in the comparison", "NDCG@10", "ms per 1000 lists", "MB"]
    parts = [
        "# Every loss",
        "These are the losses of the library, with their place under [one protocol]"
        f"(one_protocol/README.md) (edition {results.edition}) and their cost. [Which loss?]"
        "(which_loss.md) says how the numbers are to be read, [formulas](../../docs/formulas.md) "
        "has the formula of each, and `help(directrank.losses.NAME)` its options with an example. "
        "NDCG@10 is the mean over the collections and the scorers that most losses of a "
        "collection have, of a loss with several variants "
        f"the highest; differences up to {number(together.distance)} are those of controls.",
        "\n".join(markdown_rows(columns, rows, left=2)),
        "In the sections, NDCG@10 is the mean over [the scorers]"
        "(which_loss.md#what-the-collections-represent) that most losses of a collection have; "
        f"better, worse and equivalent (within {together.margin:g}) are significant after "
        "correction over all pairs of losses of a collection. Times and memory are those of the "
        "forward and backward pass on a CPU, on the machine that [the benchmark]"
        "(../../benchmarks/results/losses.csv) names.",
        *(text for name in losses.REGISTRY for text in section(name, results)),
    ]
    return "\n\n".join(parts) + "\n"


@dataclass(frozen=True)
class Subject:
    """What the page says of methods of one kind.

    Attributes:
        several: what they are called.
        link: the name of a method with a link, or with what it is.
        cost: what a method costs, in words; empty where it is not known.
    """

    several: str
    link: Callable[[str], str]
    cost: Callable[[str], str]


def _by_queries(results: Results, found: Sequence[Recommendation], larger: bool) -> Iterator[str]:
    """What to take with few training queries and with more; nothing where only one is known.

    Args:
        results: of one protocol.
        found: what they say of each situation.
        larger: whether the page says what holds with more training queries.
    """
    by_title = {one.situation.title: one for one in found}
    known = [by_title[title] for title in BY_QUERIES if title in by_title]
    if len(known) < len(BY_QUERIES):
        return
    rows = []
    for one in known:
        trees = advice_on_trees(results, one.stands_on)
        ensemble = "–"
        if trees:
            ensemble = f"{_ensemble(results, trees.default)}: {_place(trees)}"
        rows.append(
            [
                f"{one.situation.title}: {one.situation.meaning}",
                f"**{_link(results, one.advice.default)}**: {_place(one.advice)}",
                ensemble,
                f"{_named(one.stands_on)} ({_trained_on(one.stands_on)} training queries)",
            ]
        )
    columns = ["you have", "loss to take", "boosted trees to take", "seen on"]
    yield (
        "How many queries do you train on? By [one rule](#the-rule), with the mean NDCG@10 and how "
        "many others are tied, which may be as good:"
    )
    yield "\n".join(markdown_rows(columns, rows, left=len(columns)))
    guide = "The number of training queries is only one thing that tells the collections apart."
    if larger:
        guide += (
            " It comes first here because on [ever more queries of one of them]"
            "(#with-more-training-queries) the leading methods change."
        )
    missing = _not_seen(results.collections)
    yield f"{guide}{f' No collection has {missing}.' if missing else ''}"


def _not_seen(collections: Sequence[ComparedCollection]) -> str:
    """Which combinations of labels and numbers of training queries no collection has."""
    kinds = [
        [(one.title.lower(), one.holds) for one in SITUATIONS if one.title in titles]
        for titles in (("Binary labels", "Graded labels"), BY_QUERIES)
    ]
    lacking = [
        f"{labels} and {queries}"
        for labels, of_labels in kinds[0]
        for queries, of_queries in kinds[1]
        if not any(of_labels(one) and of_queries(one) for one in collections)
    ]
    return ", or ".join(lacking)


def _place(advice: Advice) -> str:
    """The mean of the method to take, and how many are tied."""
    whole = advice.field.whole
    others = len(whole.order) - 1
    mean = number(float(whole.together.mean[advice.default]))
    return f"{mean}, tied with {len(whole.tied) - 1} of the {others} others"


def _of_losses(results: Results) -> Subject:
    def cost(name: str) -> str:
        ms, plain = (results.ms(results.loss_of(one)) for one in (name, POINTWISE))
        if ms is None:
            return ""
        beside = ""
        if plain is not None and name != POINTWISE:
            beside = f" ({POINTWISE}: {significant(plain)})"
        return f"{significant(ms)} ms per 1000 lists of 120 documents{beside}"

    return Subject("losses", lambda name: _link(results, name), cost)


def _of_trees(results: Results, collections: Sequence[ComparedCollection]) -> Subject:
    times = results.seconds(collections)

    def cost(name: str) -> str:
        if name not in times.index:
            return ""
        low, high = (significant(value) for value in (times.loc[name].min(), times.loc[name].max()))
        return f"{low if low == high else f'{low} to {high}'} s per configuration and fold"

    return Subject("ensembles", lambda name: _ensemble(results, name), cost)


def _ensemble(results: Results, name: str) -> str:
    """An ensemble with its library and what is set of its objective."""
    one = next((one for one in results.ensembles if one.name == name), None)
    if one is None:
        return name
    options = ", ".join(f"`{key}={value!r}`" for key, value in one.options.items())
    return f"{name} ([{one.library}](../../docs/trees.md){f' with {options}' * bool(options)})"


def _advised(results: Results, subject: Subject, advice: Advice) -> str:
    """Which method to take, to tune and to avoid, with the reasons and the costs."""
    field, whole = advice.field, advice.field.whole

    def start(verb: str, name: str) -> str:
        cost = subject.cost(name)
        return f"- **{verb} {subject.link(name)}**{f', {cost}' if cost else ''}."

    def mean(name: str) -> str:
        return number(float(whole.together.mean[name]))

    def moves(name: str) -> str:
        setting, _ = results.moves(name, results.collections)
        moved = number(field.moves[name], digits)
        return f"its `{setting}` moves NDCG@10 on the validation set by {moved}"

    name, highest = advice.default, f"{mean(whole.first)}, {whole.first}"
    # As many digits as tell what moves a method from what controls may be apart.
    alike = number(field.moves.get(name, math.nan)) == number(whole.distance)
    digits = DIGITS + alike
    rank = (
        f"is the highest, and {len(whole.tied) - 1} of the {len(whole.order) - 1} others are tied"
        if name == whole.first
        else f"is one of {len(whole.tied)} that are tied: they are within "
        f"{number(whole.distance, digits)} of the highest ({highest}), the distance that two "
        "controls may have"
    )
    tuning = "no setting of its own was tried"
    if field.worth_tuning(name):
        tuning = (
            f"every one that is tied needs tuning: {moves(name)}, more than controls may be apart"
        )
    elif name in field.moves:
        tuning = f"{moves(name)}, no more than [chance](#the-rule) may"
    lines = [
        f"{start('Take', name)} Its mean NDCG@10 over {counted(len(field.each), 'collection')}, "
        f"{mean(name)}, {rank}; {tuning}. {_differ(whole, subject.several)}."
    ]
    if POINTWISE in whole.order and name != POINTWISE:
        gap = whole.together.difference(name, POINTWISE)
        sure = POINTWISE in whole.together.told_apart(name)
        lines.append(
            f"- **If you train with {POINTWISE} today**, {name} minus {POINTWISE} is "
            f"{interval(signed(gap.mean), gap.interval().half_width)}, which is "
            f"{'' if sure else 'not '}significant after correction over all pairs."
        )
    if name := advice.tuned:
        lines.append(
            f"{start('Worth tuning:', name)} It is tied with the highest, too ({mean(name)}), and "
            f"{moves(name)}."
        )
    elif not field.worth_tuning(advice.default):
        lines.append(
            f"- **No other one is worth tuning.** None of the {subject.several} that are tied "
            "has a setting that moves NDCG@10 on the validation set by more than "
            "[chance](#the-rule) may."
        )
    if name := advice.avoided:
        better, others = whole.beaten_by(name), advice.also_behind
        also = ""
        if others:
            also = f" Also behind: {listed(others)}."
        lines.append(
            f"{start('Avoid', name)} {better} of the {len(whole.order) - 1} other "
            f"{subject.several} {_are(better)} significantly better; its mean is "
            f"{mean(name)}.{also}"
        )
    return "\n".join(lines)


def _differ(whole: Standing, what: str) -> str:
    """How many pairs differ significantly."""
    pairs = whole.together.pairs
    sure = int(pairs["verdict"].isin([BETTER, WORSE]).sum())
    twice = sum(map(is_again, whole.together.labels))
    again = f" and {twice} under other seeds" if twice else ""
    several = f"{len(whole.together.labels) - twice} {what}{again}"
    return f"{sure} of {len(pairs)} pairs of {several} differ significantly"


def _trees_or_losses(results: Results) -> str:
    """On each collection the highest ensemble beside the highest loss with a scorer."""
    rows = []
    for one in results.collections:
        every = results.studies[one.name].every
        means = [estimate.mean for estimate in every.over_queries(PRIMARY)]
        is_tree = every.names["scorer"] == SCORERS["trees"]
        is_loss = ~is_tree & (every.names["scorer"] != SCORERS[CONTROLS])
        tree, loss = (int(np.where(kind, means, -np.inf).argmax()) for kind in (is_tree, is_loss))
        (gap,) = every.crossed(PRIMARY).differences([tree], [loss]).itertuples()
        rows.append(
            [
                one.short,
                "–" if one.trained_on is None else count(one.trained_on),
                *(f"{every.labels[place]} {number(means[place])}" for place in (tree, loss)),
                interval(signed(gap.difference), of_row(gap).interval().half_width),
            ]
        )
    columns = ["collection", "training queries", "highest ensemble", "highest loss", "difference"]
    text = (
        "**Trees or a loss?** The highest mean NDCG@10 of either kind on each collection. The two "
        "were chosen by these numbers, so that the interval of their difference, which is not "
        "corrected, is no test."
    )
    return "\n\n".join([text, "\n".join(markdown_rows(columns, rows, left=4))])


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _scope(results: Results, larger: bool) -> str:
    """What the advice rests on, and what it does not say.

    Args:
        results: of one protocol.
        larger: whether the page says what holds with more training queries.
    """
    more = ""
    if larger:
        more = (
            " If you have thousands of training queries, see [which methods lead]"
            "(#with-more-training-queries)."
        )
    return (
        f"This advice rests on {_named(results.collections)} under [one protocol]"
        "(one_protocol/README.md) "
        f"(edition {results.edition}); [below](#what-the-collections-represent) is what they "
        f"represent.{more} On other data, [compare losses yourself]"
        "(../../docs/your_data.md). Every loss has [a section](losses.md) with its cost and where "
        "it wins and loses."
    )


def _trained_on(collections: Sequence[ComparedCollection]) -> str:
    """From how many to how many training queries collections have."""
    known = [one.trained_on for one in collections if one.trained_on is not None]
    if not known:
        return "an unknown number of"
    least, most = (count(number) for number in (min(known), max(known)))
    return least if least == most else f"{least} to {most}"


def _by_size(results: Results, sizes: pd.DataFrame, default: str) -> str:
    """Which methods of every family have the highest means, by the number of queries.

    Args:
        results: of one protocol.
        sizes: see :func:`page`.
        default: the loss to take if nothing is known.
    """
    columns = ["training queries of a fold", "pairs that differ", "trees", default,
               "highest losses", "last"]  # fmt: skip
    trees = {ensemble.name for ensemble in results.ensembles}
    rows = []
    for size, some in sizes.groupby("train_queries"):
        means = some.set_index("method")["mean"].sort_values(ascending=False)
        priced = {name: f"{name} {mean:.4f}" for name, mean in means.items()}
        highest = [name for name in means.index if name not in trees and not is_again(name)][:3]
        ensembles = [priced[name] for name in means.index if name in trees]
        rows.append(
            [
                count(int(size)),
                f"{some['differ'].iloc[0]} of {some['pairs'].iloc[0]}",
                ", ".join(ensembles) or "–",
                f"{means[default]:.4f}" if default in means else "–",
                ", ".join(priced[name] for name in highest),
                priced[means.index[-1]],
            ]
        )
    among = sorted(trees & set(sizes["method"])) or ["trees"]
    title = sizes["dataset"].iloc[0]
    scorers = next((one.scorers for one in results.collections if one.title == title), {})
    network = scorers.get(SCORERS["tower"], SCORERS["tower"])
    picture = f"../../figures/{results.edition}/one_protocol/figure_training_size.png"
    text = (
        f"Methods of every family were trained on ever more queries of "
        f"{title} ([picture]({picture})). The table has the mean NDCG@10 of {listed(among)}, of "
        f"the {network} trained with {default}, and of those with the losses "
        "for which it is the highest. Most of the differences between these are not significant."
    )
    return "\n\n".join([text, "\n".join(markdown_rows(columns, rows, left=len(columns)))])


def _situations(results: Results, found: Sequence[Recommendation]) -> str:
    columns = ["you have", "take", "worth tuning", "avoid", "may be the best", "rests on"]
    rows = [_row(results, one) for one in found]
    return "\n".join(markdown_rows(columns, rows, left=len(columns)))


def _row(results: Results, found: Recommendation) -> list[str]:
    advice = found.advice
    return [
        f"{found.situation.title}: {found.situation.meaning}",
        *(_priced(results, name) for name in (advice.default, advice.tuned, advice.avoided)),
        f"{len(found.candidates)} of {len(advice.field.whole.among)}",
        ", ".join(one.short for one in found.stands_on),
    ]


def _priced(results: Results, name: str) -> str:
    """A loss with its time, for a table."""
    if not name:
        return "–"
    ms = results.ms(results.loss_of(name))
    return _link(results, name) + ("" if ms is None else f", {significant(ms)} ms")


def _moves(results: Results, method: str, collections: Sequence[ComparedCollection]) -> str:
    """How far validation moves with a method's setting: the mean over collections."""
    setting, moved = results.moves(method, collections)
    return f"{number(moved)} (`{setting}`)" if setting else "no setting"


def _indistinguishable(found: Sequence[Recommendation]) -> Iterator[str]:
    """Which situations rest on the same collections, so that their answers are one."""
    by_names: dict[tuple[str, ...], list[str]] = {}
    for one in found:
        if not one.situation.cheap:
            names = tuple(collection.short for collection in one.stands_on)
            by_names.setdefault(names, []).append(one.situation.title.lower())
    shared = [
        f"{listed(titles)} ({listed(list(names))})"
        for names, titles in by_names.items()
        if len(titles) > 1
    ]
    if shared:
        yield (
            "Some situations stand on the same collections, so that nothing here says which of "
            f"them matters: {'; '.join(shared)}."
        )


def _facts(results: Results) -> str:
    """The table of collections, with what makes each stand for its situations."""
    columns = [
        "collection", "scorers", "labels", "documents per query", "training queries",
        "longer lists are cut in training to", "results",
    ]  # fmt: skip
    rows = [
        [
            one.title,
            ", ".join(one.scorers.get(name, name) for name in results.studies[one.name].scorers),
            f"{one.levels} levels",
            "–" if one.documents is None else f"{one.documents:.0f}",
            "–" if one.trained_on is None else count(one.trained_on),
            "–" if one.cut is None else f"{one.cut} random documents",
            results.studies[one.name].size,
        ]
        for one in results.collections
    ]
    return "\n".join(markdown_rows(columns, rows, left=2))


def _evidence(results: Results, found: Sequence[Recommendation]) -> Iterator[str]:
    """Every loss on every set of collections that a situation stands on."""
    seen: dict[tuple[str, ...], Recommendation] = {}
    for one in found:
        if not one.situation.cheap:
            seen.setdefault(tuple(collection.name for collection in one.stands_on), one)
    for one in seen.values():
        whole = one.advice.field.whole
        yield f"### {_named(one.stands_on)}"
        yield _how_much(whole, "losses")
        rows = []
        for name in whole.order:
            loss = results.loss_of(name)
            costs = [_measured(results.ms(loss)), _measured(results.mb(loss))]
            moved = _moves(results, name, one.stands_on)
            rows.append([_link(results, name), *_beside(whole, name), *costs, moved])
        yield "\n".join(markdown_rows(["loss", *BESIDE, "ms", "MB", "sensitivity"], rows))


def _groups(
    results: Results, found: Sequence[Recommendation]
) -> list[Sequence[ComparedCollection]]:
    """All collections, and those with few and with more training queries, each set once."""
    groups = [results.collections]
    groups += [one.stands_on for one in found if one.situation.title in BY_QUERIES]
    return list({tuple(one.name for one in group): group for group in groups}.values())


def _on_trees(results: Results, collections: Sequence[ComparedCollection]) -> Iterator[str]:
    """Every ensemble that some collections have in common."""
    advice = advice_on_trees(results, collections)
    if not advice:
        return
    whole = advice.field.whole
    yield f"### Boosted trees on {_named(collections)}"
    yield _how_much(whole, "ensembles")
    if not whole.together.distance:
        yield "No ensemble was trained a second time; these controls are those of the losses."
    seconds = results.seconds(collections).mean(axis=1)
    rows = [
        [
            name,
            *_beside(whole, name),
            _measured(seconds.get(name)),
            _moves(results, name, collections),
        ]
        for name in whole.order
    ]
    yield "\n".join(markdown_rows(["ensemble", *BESIDE, "s", "sensitivity"], rows))
    missing = [one.name for one in results.ensembles if one.name not in whole.together.labels]
    if missing:
        everywhere = "every collection" if len(collections) > 1 else "this collection"
        yield f"Not on {everywhere}, and therefore left out: {listed(missing)}."


def _beside(whole: Standing, name: str) -> list[str]:
    """What is known of a method beside the one with the highest mean: see :data:`BESIDE`."""
    together, cells = whole.together, ["", ""]
    if name != whole.first:
        gap = together.difference(name, whole.first)
        sign = " \\*" if name in together.told_apart(whole.first) else ""
        cells = [signed(gap.mean) + sign, f"± {number(gap.interval().half_width)}"]
    return [
        number(float(together.mean[name])),
        *cells,
        "yes" if name in whole.tied else "",
        "yes" if name in together.candidates else "",
        "yes" if name in together.equivalent(whole.first) else "",
    ]


def _how_much(whole: Standing, what: str) -> str:
    """How much these collections can tell."""
    together = whole.together
    near = int((together.pairs["verdict"] == EQUIVALENT).sum())
    return (
        f"{_differ(whole, what)} (marked \\* where one of them is the first), and "
        f"{near} are equivalent within {together.margin:g}. Controls may be "
        f"{number(whole.distance)} apart."
    )


def _named(collections: Sequence[ComparedCollection]) -> str:
    return listed([one.short for one in collections])


def _measured(value: float | None) -> str:
    return "–" if value is None else significant(value)


def _link(results: Results, method: str) -> str:
    return f"[{method}](losses.md#{results.loss_of(method)})"
