"""The page "Which loss?" of an edition, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from directrank import losses
from directrank.papers.one_protocol.by_loss import Together
from directrank.papers.one_protocol.choice import Answer, Collection, Results, answers
from directrank.papers.one_protocol.losses_page import section, significant
from directrank.papers.shared.format import count, listed, number, signed
from directrank.papers.shared.tables import markdown_rows
from directrank.stats.decisions import BETTER, EQUIVALENT, WORSE
from directrank.stats.estimates import Estimate
from directrank.system.io import write_text

#: So many losses of a group are named; of more the number.
NAMED = 3

ABOUT = """\
*May be the best* counts the losses that may have the highest NDCG@10, averaged over three \
scorers (a linear one, a network and a context-aware ranker) and over the collections that \
represent the situation: the best is among them with 95 % confidence. A loss is left out if \
another one is significantly ahead of it. *Fastest* is that of them that takes the least time: \
nothing here speaks against it. The order of the others means little: *controls* is how far two \
losses are apart that are nearly the same function or the same method trained twice, and losses \
that are no further apart are not ranked. Tests are for other queries and other trainings; the \
losses were trained on few queries, on MSRD on some of its training queries only (see below).

*As good as the first* counts the losses whose difference from the one with the highest mean is \
shown to be smaller than the margin, by two one-sided tests after Holm's correction over all \
pairs. A loss that is not among them is not necessarily worse: the collections may be too small \
to tell.

*ms* and *MB* are the time and memory of the forward and backward pass on a CPU, for 1000 lists \
of 120 documents and for 128 lists of 240, as [the \
benchmark](../../benchmarks/results/losses.csv) measured them. *Moves* is the range of \
validation NDCG@10 over the values that were tried of the loss's own setting, at the best \
learning rate for each. A loss with a small range need not be tuned.

Boosted trees do not use the losses of this library. [The tables of one \
protocol](one_protocol/README.md) show them beside all losses, with [objectives of their \
own](../../docs/trees.md)."""

REPRESENTED = """\
Labels, lists and queries are those of [the catalogue](../../data/datasets.yaml) and of the \
edition ([configuration](../../config/README.md)). There are few collections, and each \
represents several situations at once: a situation with a single collection says no more than \
that collection does."""

DIFFERENCES = """\
A difference is the mean over queries, averaged over collections with equal weights. Its \
interval covers other queries of the same collections (other groups, where queries form groups) \
and other trainings. The lead of the first loss is slightly overestimated, because the loss was \
chosen by these same numbers. You can [test a difference \
yourself](../../docs/your_data.md#results-per-query) with the files."""


def write(results: Results, out: Path) -> list[Path]:
    """Write the page, and beside it the page ``losses.md`` with a section per loss."""
    pages = {out: page(results), out.with_name("losses.md"): losses_page(results)}
    for path, text in pages.items():
        write_text(path, text)
    return list(pages)


def page(results: Results) -> str:
    """Which loss to take: in words, by situation, and with the evidence."""
    found = answers(results)
    parts = [
        "# Which loss?",
        "This page says which loss the results of [one protocol](one_protocol/README.md) on real "
        f"collections speak for (edition {results.edition}), at which cost, and how sure that is. "
        "[Every loss](losses.md) has its own section with its cost and where it wins and loses.",
        "\n".join(f"- {_said(results, one)}" for one in found),
        "## By task and data",
        _situations(results, found),
        *_indistinguishable(found),
        ABOUT,
        "## What the collections represent",
        _facts(results),
        REPRESENTED,
        "## The evidence",
        DIFFERENCES,
        *_evidence(results, found),
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
        "NDCG@10 is the mean over all collections and scorers, of a loss with several variants "
        f"the highest; differences up to {number(together.distance)} are those of controls.",
        "\n".join(markdown_rows(columns, rows, left=2)),
        "In the sections, NDCG@10 is the mean over linear scorer, network and context-aware "
        f"ranker; better, worse and equivalent (within {together.margin:g}) are significant after "
        "correction over all pairs of losses of a collection. Times and memory are those of the "
        "forward and backward pass on a CPU, on the machine that [the benchmark]"
        "(../../benchmarks/results/losses.csv) names.",
        *(text for name in losses.REGISTRY for text in section(name, results)),
    ]
    return "\n\n".join(parts) + "\n"


def _said(results: Results, found: Answer) -> str:
    """Which losses may be the best, and which of them is the fastest."""
    together = found.together
    text = (
        f"**{found.situation.title}** ({found.situation.meaning}): on {_named(found.stands_on)}, "
        f"{len(found.candidates)} of {len(together.labels)} losses may be the best"
    )
    if found.fastest:
        text += (
            f", of which **{_link(results, found.fastest)}** is the fastest"
            f"{_ms(results, found.fastest)}"
        )
    text += f". {_link(results, found.first)} has the highest mean"
    if len(together.labels) > 1:
        text += f"; {_tied(found)} others are no further behind than controls are apart"
    if found.within:
        text += (
            f", and {len(found.within)} are shown to be as good within {together.margin:g} in "
            "NDCG@10"
        )
    return f"{text}."


def _tied(found: Answer) -> int:
    """The losses that are no further from the first than the controls from each other."""
    mean = found.together.mean
    return int((mean >= mean[found.first] - found.together.distance).sum()) - 1


def _situations(results: Results, found: Sequence[Answer]) -> str:
    columns = [
        "you have", "may be the best", "fastest of these", "highest mean", "controls",
        "as good as the first", "ms per 1000 lists", "MB", "moves", "stands on",
    ]  # fmt: skip
    rows = [_row(results, one) for one in found]
    return "\n".join(markdown_rows(columns, rows, left=len(columns)))


def _row(results: Results, found: Answer) -> list[str]:
    fastest = found.fastest or found.first
    loss = results.loss_of(fastest)
    return [
        f"{found.situation.title}: {found.situation.meaning}",
        f"{len(found.candidates)} of {len(found.together.labels)}",
        f"**{_link(results, fastest)}**",
        _link(results, found.first),
        number(found.together.distance),
        _group(results, found.within),
        _measured(results.ms(loss)),
        _measured(results.mb(loss)),
        _moves(results, fastest, found.stands_on),
        ", ".join(one.short for one in found.stands_on),
    ]


def _group(results: Results, names: Sequence[str]) -> str:
    if len(names) <= NAMED:
        return ", ".join(_link(results, name) for name in names) or "none shown"
    named = ", ".join(_link(results, name) for name in names[:NAMED])
    return f"{len(names)}: {named}, …"


def _moves(results: Results, method: str, collections: Sequence[Collection]) -> str:
    """How far validation moves with a method's setting: the mean over collections."""
    own = results.moved.loc[[(one.name, method) for one in collections]]
    setting = own["setting"].iloc[0]
    if not setting:
        return "no setting"
    return f"{number(own['moves_with_setting'].mean())} (`{setting}`)"


def _indistinguishable(found: Sequence[Answer]) -> Iterator[str]:
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
        "collection", "labels", "documents per query", "training queries",
        "longer lists are cut in training to", "results",
    ]  # fmt: skip
    rows = [
        [
            one.title,
            f"{one.levels} levels",
            "–" if one.documents is None else f"{one.documents:.0f}",
            "–" if one.trained_on is None else count(one.trained_on),
            "–" if one.cut is None else f"{one.cut} random documents",
            results.studies[one.name].size,
        ]
        for one in results.collections
    ]
    return "\n".join(markdown_rows(columns, rows, left=2))


def _evidence(results: Results, found: Sequence[Answer]) -> Iterator[str]:
    """Every loss on every set of collections that a situation stands on."""
    seen: dict[tuple[str, ...], Answer] = {}
    for one in found:
        if not one.situation.cheap:
            seen.setdefault(tuple(collection.name for collection in one.stands_on), one)
    columns = [
        "loss", "NDCG@10", "less the first", "95%", "may be the best", "as good as the first",
        "ms", "MB", "moves",
    ]  # fmt: skip
    for one in seen.values():
        mean = one.together.mean
        order = sorted(one.together.labels, key=lambda name: -mean[name])
        yield f"### {_named(one.stands_on)}"
        yield _how_much(one.together)
        yield "\n".join(markdown_rows(columns, [_line(results, one, name) for name in order]))


def _line(results: Results, found: Answer, name: str) -> list[str]:
    together, loss = found.together, results.loss_of(name)
    cells = ["", ""]
    if name != found.first:
        gap = _difference(together, name, found.first)
        sign = " \\*" if name in found.apart else ""
        cells = [signed(gap.mean) + sign, f"± {number(gap.interval().half_width)}"]
    return [
        _link(results, name),
        number(float(together.mean[name])),
        *cells,
        "yes" if name in found.candidates else "",
        "yes" if name in found.within else "",
        _measured(results.ms(loss)),
        _measured(results.mb(loss)),
        _moves(results, name, found.stands_on),
    ]


def _difference(together: Together, name: str, other: str) -> Estimate:
    """NDCG@10 of a loss minus that of another one."""
    a, b = together.labels.index(name), together.labels.index(other)
    pairs = together.pairs
    row = pairs[(pairs["a"] == min(a, b)) & (pairs["b"] == max(a, b))].iloc[0]
    return Estimate((1 if a < b else -1) * row["difference"], row["error"], row["freedom"])


def _how_much(together: Together) -> str:
    """How much these collections can tell."""
    words = together.pairs["verdict"].value_counts()
    sure = int(words.get(BETTER, 0) + words.get(WORSE, 0))
    return (
        f"{sure} of {len(together.pairs)} pairs of {len(together.labels)} losses differ "
        f"significantly (marked \\* where one of them is the first), and "
        f"{words.get(EQUIVALENT, 0)} are equivalent within {together.margin:g}. Controls are "
        f"{number(together.distance)} apart."
    )


def _named(collections: Sequence[Collection]) -> str:
    return listed([one.short for one in collections])


def _measured(value: float | None) -> str:
    return "–" if value is None else significant(value)


def _ms(results: Results, method: str) -> str:
    ms = results.ms(results.loss_of(method))
    return "" if ms is None else f", {significant(ms)} ms per 1000 lists"


def _link(results: Results, method: str) -> str:
    return f"[{method}](losses.md#{results.loss_of(method)})"
