"""The page "Which loss?" of an edition, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from directrank import losses
from directrank.papers.one_protocol.by_loss import Together
from directrank.papers.one_protocol.choice import Answer, Collection, Results, answers
from directrank.papers.one_protocol.losses_page import section, significant
from directrank.papers.one_protocol.methods import MARGINS, SIGNIFICANT, p_text
from directrank.papers.shared.format import count, listed, number, signed
from directrank.papers.shared.tables import markdown_rows
from directrank.stats.estimates import Estimate
from directrank.stats.ranks import critical_difference, friedman
from directrank.system.io import write_text

#: So many losses of a group are named; of more the number.
NAMED = 3

ABOUT = f"""\
*Take* names the loss with the best mean rank over the collections that represent the situation, \
in NDCG@10 averaged over three scorers: a linear one, a network and a context-aware ranker. \
Where another loss is shown to be as good within {MARGINS[0]:g} and takes less time, it is given \
as well. Mean ranks are no proof: those of NeuralNDCG and its transpose, which are nearly the \
same function, are many ranks apart. All tests are over queries, not over trainings, and the \
losses were trained on few queries, on MSRD on some of its training queries only (see below).

*As good within* a margin lists the losses whose difference from the best is shown to be smaller \
than the margin, by two one-sided tests after Holm's correction over all pairs. A loss that is \
not listed is not necessarily worse: the collections may be too small to tell.

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
interval covers other queries of the same collections, and is computed by group where queries \
form groups. The lead of the best loss is slightly overestimated, because the loss was chosen by \
these same numbers. You can [test a difference \
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
        ranks = [together.mean_ranks[method] for method in own if method in together.labels]
        rows.append(
            [
                f"[{name}](#{name})",
                ", ".join(own) or "–",
                f"{min(ranks):.1f}" if ranks else "–",
                _measured(results.ms(name)),
                _measured(results.mb(name)),
            ]
        )
    columns = ["loss", "in the comparison", "best mean rank", "ms per 1000 lists", "MB"]
    parts = [
        "# Every loss",
        "These are the losses of the library, with their place under [one protocol]"
        f"(one_protocol/README.md) (edition {results.edition}) and their cost. [Which loss?]"
        "(which_loss.md) says how the numbers are to be read, [formulas](../../docs/formulas.md) "
        "has the formula of each, and `help(directrank.losses.NAME)` its options with an example. "
        "For a loss with several variants in the comparison, the best of their mean ranks over "
        f"all collections is shown, of {len(together.labels)}.",
        "\n".join(markdown_rows(columns, rows, left=2)),
        "In the sections, NDCG@10 is the mean over linear scorer, network and context-aware "
        f"ranker; better, worse and equivalent (within {MARGINS[0]:g}) are significant after "
        "correction over all pairs of losses of a collection. Times and memory are those of the "
        "forward and backward pass on a CPU, on the machine that [the benchmark]"
        "(../../benchmarks/results/losses.csv) names.",
        *(text for name in losses.REGISTRY for text in section(name, results)),
    ]
    return "\n\n".join(parts) + "\n"


def _said(results: Results, found: Answer) -> str:
    """What to take, and how sure that is."""
    wide, narrow = (found.within[margin] for margin in MARGINS)
    others = len({*wide, *found.apart, *found.untold})
    text = (
        f"**{found.situation.title}** ({found.situation.meaning}): take "
        f"**{_link(results, found.take)}**, mean rank "
        f"{found.together.mean_ranks[found.take]:.1f} of {len(found.together.labels)} on "
        f"{_named(found.stands_on)}{_ms(results, found.take)}."
    )
    if wide:
        text += (
            f" {len(wide)} of {others} others {'is' if len(wide) == 1 else 'are'} shown to be as "
            f"good within {MARGINS[0]:g} in NDCG@10, {len(narrow) or 'none'} within "
            f"{MARGINS[1]:g}."
        )
        if found.cheaper:
            text += (
                f" Of these **{_link(results, found.cheaper)}** takes the least time"
                f"{_ms(results, found.cheaper)}."
            )
    elif others:
        text += f" None of the {others} others is shown to be as good within {MARGINS[0]:g}."
    if found.untold:
        text += f" {len(found.untold)} can neither be told apart from it nor shown to be as good"
        text += f", of which {_link(results, found.gamble)} is the fastest" if found.gamble else ""
        text += "."
    return text


def _situations(results: Results, found: Sequence[Answer]) -> str:
    columns = [
        "you have", "take", "mean rank", *(f"as good within {margin:g}" for margin in MARGINS),
        "ms per 1000 lists", "MB", "moves", "stands on",
    ]  # fmt: skip
    rows = [_row(results, one) for one in found]
    return "\n".join(markdown_rows(columns, rows, left=len(columns)))


def _row(results: Results, found: Answer) -> list[str]:
    loss = results.loss_of(found.take)
    ms = results.ms(loss)
    take = f"**{_link(results, found.take)}**"
    cheaper = results.ms(results.loss_of(found.cheaper))
    if ms and cheaper:
        part = significant(ms / cheaper)
        take += f", or {_link(results, found.cheaper)}, {part} times as fast"
    return [
        f"{found.situation.title}: {found.situation.meaning}",
        take,
        f"{found.together.mean_ranks[found.take]:.1f} of {len(found.together.labels)}",
        *(_group(results, found.within[margin]) for margin in MARGINS),
        _measured(ms),
        _measured(results.mb(loss)),
        _moves(results, found.take, found.stands_on),
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
        "loss", "mean rank", "NDCG@10", "less the best", "95%",
        *(f"within {margin:g}" for margin in MARGINS), "ms", "MB", "moves",
    ]  # fmt: skip
    for one in seen.values():
        ranks = one.together.mean_ranks
        order = sorted(one.together.labels, key=lambda n: (n != one.take, ranks[n]))
        yield f"### {_named(one.stands_on)}"
        yield _how_much(one.together)
        yield "\n".join(markdown_rows(columns, [_line(results, one, name) for name in order]))


def _line(results: Results, found: Answer, name: str) -> list[str]:
    together, loss = found.together, results.loss_of(name)
    cells = ["", "", "", ""]
    if name != found.take:
        difference = _difference(together, name, found.take)
        sign = " \\*" if name in found.apart else ""
        cells = [
            signed(difference.mean) + sign,
            f"± {number(difference.interval().half_width)}",
            *("yes" if name in found.within[margin] else "" for margin in MARGINS),
        ]
    return [
        _link(results, name),
        f"{together.mean_ranks[name]:.1f}",
        number(float(together.means[name].mean())),
        *cells,
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
    pairs, k = together.pairs, len(together.labels)
    sure = int((pairs["p_holm"] < SIGNIFICANT).sum())
    text = (
        f"{sure} of {len(pairs)} pairs of {k} losses differ significantly (marked \\* where "
        "one of them is the best)."
    )
    if len(together.studies) > 1 and k > 2:
        test = friedman(together.means.to_numpy())
        verb = "rejects" if test.p_value < SIGNIFICANT else "does not reject"
        apart = critical_difference(k, len(together.studies), SIGNIFICANT)
        text += (
            f" If the collections are regarded as a random sample, Friedman's test {verb} that all "
            f"losses perform equally (p {p_text(test.p_value)}), and two mean ranks differ "
            f"significantly if they differ by {apart:.1f} (Nemenyi)."
        )
    return text


def _named(collections: Sequence[Collection]) -> str:
    return listed([one.short for one in collections])


def _measured(value: float | None) -> str:
    return "–" if value is None else significant(value)


def _ms(results: Results, method: str) -> str:
    ms = results.ms(results.loss_of(method))
    return "" if ms is None else f", {significant(ms)} ms per 1000 lists"


def _link(results: Results, method: str) -> str:
    return f"[{method}](losses.md#{results.loss_of(method)})"
