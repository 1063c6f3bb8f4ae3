"""The parts of the page "Which loss?" that come from the result files, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from directrank import losses
from directrank.papers.one_protocol.by_loss import Together
from directrank.papers.one_protocol.methods import MARGINS, SIGNIFICANT, p_text
from directrank.papers.shared.format import count, listed, number, signed
from directrank.papers.shared.tables import markdown_rows
from directrank.stats.estimates import Estimate
from directrank.stats.ranks import critical_difference, friedman
from which_loss.evidence import (
    CHEAP,
    SITUATIONS,
    Answer,
    Collection,
    Results,
    answer,
    command,
)
from which_loss.loss_page import awaited, no_results, significant

#: So many losses of a group are named; of more the number.
NAMED = 3


def in_words(results: Results) -> str:
    """The short answer."""
    if not results.studies:
        return f"{no_results(results)}\n\n{_cheap_in_words(results)}"
    lines = []
    for situation in SITUATIONS:
        said = _said(results, answer(results, situation))
        lines.append(f"- **{situation.title}** ({situation.meaning}): {said}")
    if results.missing:
        lines += ["", awaited(results)]
    return "\n".join(lines)


def _said(results: Results, found: Answer) -> str:
    """What to take, and how sure that is."""
    if not found.take:
        if not found.stands_on:
            return f"no results yet; {_commands(found.awaited)}."
        return "no time of any of the compared losses has been measured; `make bench` does that."
    assert found.together is not None
    wide, narrow = (found.within[margin] for margin in MARGINS)
    others = len(wide) + len(set(found.apart) - set(wide)) + len(found.untold)
    text = (
        f"take **{_link(results, found.take)}**, mean rank "
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


def _named(collections: Sequence[Collection]) -> str:
    return listed([one.short for one in collections])


def _ms(results: Results, method: str) -> str:
    ms = results.ms(results.loss_of(method))
    return "" if ms is None else f", {significant(ms)} ms per 1000 lists"


def _cheap_in_words(results: Results) -> str:
    times = {results.loss_of(name): results.ms(results.loss_of(name)) for name in results.cheap}
    known = {loss: ms for loss, ms in times.items() if ms is not None}
    if not known:
        return "Nor has the time of any of the losses: `make bench` measures it."
    order = sorted(known, key=lambda loss: known[loss])
    named = listed([f"[{loss}](losses/{loss}.md) ({significant(known[loss])})" for loss in order])
    return (
        f"What can be said is what they cost. For a small CPU budget, at most {CHEAP} times as "
        f"long as the fastest, there are, in ms per 1000 lists, {named}."
    )


def situations(results: Results) -> str:
    """The table of situations."""
    answers = [answer(results, situation) for situation in SITUATIONS]
    if not results.studies:
        return "\n".join(_what_would_answer(answers))
    rows = [_row(results, found) for found in answers]
    columns = [
        "you have", "take", "mean rank", *(f"as good within {margin:g}" for margin in MARGINS),
        "ms per 1000 lists", "MB", "moves", "stands on",
    ]  # fmt: skip
    text = "\n".join(markdown_rows(columns, rows, left=len(columns)))
    alike = _indistinguishable(answers)
    return "\n\n".join([text, *([alike] if alike else [])])


def _what_would_answer(answers: Sequence[Answer]) -> list[str]:
    """The rows of the situations where no results are there."""
    rows = [
        [
            f"{found.situation.title}: {found.situation.meaning}",
            ", ".join(one.short for one in found.awaited),
            _commands(found.awaited),
        ]
        for found in answers
    ]
    return markdown_rows(["you have", "what would stand for it", "made by"], rows, left=3)


def _row(results: Results, found: Answer) -> list[str]:
    stands_on = ", ".join(one.short for one in found.stands_on) or "–"
    head = f"{found.situation.title}: {found.situation.meaning}"
    if not found.take:
        missing = _commands(found.awaited) if not found.stands_on else "`make bench`"
        return [head, f"no results yet: {missing}", *["–"] * 6, stands_on]
    assert found.together is not None
    loss = results.loss_of(found.take)
    ms, mb = results.ms(loss), results.mb(loss)
    take = f"**{_link(results, found.take)}**"
    if found.cheaper:
        cheaper = results.ms(results.loss_of(found.cheaper))
        assert cheaper is not None
        assert ms is not None
        part = significant(ms / cheaper)
        take += f", or {_link(results, found.cheaper)}, {part} times as fast"
    return [
        head,
        take,
        f"{found.together.mean_ranks[found.take]:.1f} of {len(found.together.labels)}",
        *(_group(results, found.within[margin]) for margin in MARGINS),
        "–" if ms is None else significant(ms),
        "–" if mb is None else significant(mb),
        _moves(results, found.take, found.stands_on),
        stands_on,
    ]


def _group(results: Results, names: Sequence[str]) -> str:
    if len(names) <= NAMED:
        return ", ".join(_link(results, name) for name in names) or "none shown"
    named = ", ".join(_link(results, name) for name in names[:NAMED])
    return f"{len(names)}: {named}, …"


def _moves(results: Results, method: str, collections: Sequence[Collection]) -> str:
    """How far validation moves with a method's setting: the mean over collections."""
    own = [
        results.moved.loc[(one.name, method)]
        for one in collections
        if (one.name, method) in results.moved.index
    ]
    if not own:
        return "–"
    setting = own[0]["setting"]
    if not setting:
        return "no setting"
    mean = sum(row["moves_with_setting"] for row in own) / len(own)
    return f"{number(mean)} (`{setting}`)"


def _commands(collections: Sequence[Collection]) -> str:
    return listed([f"`{command(one)}`" for one in collections]) if collections else "–"


def _indistinguishable(answers: Sequence[Answer]) -> str:
    """Which situations rest on the same collections, so that their answers are one."""
    by_names: dict[tuple[str, ...], list[str]] = {}
    for found in answers:
        names = tuple(one.short for one in found.stands_on)
        if names and not found.situation.cheap:
            by_names.setdefault(names, []).append(found.situation.title.lower())
    shared = [
        f"{listed(titles)} ({listed(list(names))})"
        for names, titles in by_names.items()
        if len(titles) > 1
    ]
    if not shared:
        return ""
    return (
        "Some situations stand on the same collections, so that nothing here says which of them "
        f"matters: {'; '.join(shared)}."
    )


def facts(results: Results) -> str:
    """The table of collections with the situation that each represents."""
    rows = []
    for one in results.collections:
        study = results.studies.get(one.name)
        rows.append(
            [
                one.title,
                f"{one.levels} levels",
                "–" if one.documents is None else f"{one.documents:.0f}",
                "–" if one.trained_on is None else count(one.trained_on),
                "–" if one.cut is None else f"{one.cut} random documents",
                f"`{command(one)}` makes them" if study is None else study.size,
            ]
        )
    columns = [
        "collection", "labels", "documents per query", "training queries",
        "longer lists are cut in training to", "results",
    ]  # fmt: skip
    return "\n".join(markdown_rows(columns, rows, left=2))


def evidence(results: Results) -> str:
    """Every loss on every set of collections that a situation stands on."""
    seen: dict[tuple[str, ...], Answer] = {}
    for situation in SITUATIONS:
        found = answer(results, situation)
        if found.take and not situation.cheap:
            seen.setdefault(tuple(one.name for one in found.stands_on), found)
    if not seen:
        return no_results(results)
    return "\n\n".join(text for found in seen.values() for text in _details(results, found))


def _details(results: Results, found: Answer) -> Iterator[str]:
    together = found.together
    assert together is not None
    yield f"### {_named(found.stands_on)}"
    yield _how_much(together)
    columns = [
        "loss", "mean rank", "NDCG@10", "less the best", "95%",
        *(f"within {margin:g}" for margin in MARGINS), "ms", "MB", "moves",
    ]  # fmt: skip
    rows = [
        _line(results, found, together, name)
        for name in sorted(
            together.labels, key=lambda name: (name != found.take, together.mean_ranks[name])
        )
    ]
    yield "\n".join(markdown_rows(columns, rows))


def _line(results: Results, found: Answer, together: Together, name: str) -> list[str]:
    loss = results.loss_of(name)
    ms, mb = results.ms(loss), results.mb(loss)
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
        "–" if ms is None else significant(ms),
        "–" if mb is None else significant(mb),
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


def every_loss(results: Results) -> str:
    """The table of all losses, and the tree of their pages."""
    together = results.together(results.studies)
    rows = []
    for name in losses.REGISTRY:
        own = [method.name for method in results.methods if method.loss == name]
        ms, mb = results.ms(name), results.mb(name)
        ranks = [
            together.mean_ranks[method] for method in own if together and method in together.labels
        ]
        rows.append(
            [
                f"[{name}](losses/{name}.md)",
                ", ".join(own) or "–",
                f"{min(ranks):.1f}" if ranks else "–",
                "–" if ms is None else significant(ms),
                "–" if mb is None else significant(mb),
            ]
        )
    columns = ["loss", "in the comparison", "best mean rank", "ms per 1000 lists", "MB"]
    table = "\n".join(markdown_rows(columns, rows, left=2))
    pages = "\n".join(f"losses/{name}" for name in losses.REGISTRY)
    return f"{table}\n\n```{{toctree}}\n:maxdepth: 1\n:hidden:\n\n{pages}\n```"


def _link(results: Results, method: str) -> str:
    loss = results.loss_of(method)
    return f"[{method}](losses/{loss}.md)" if loss in losses.REGISTRY else method


#: What stands in the place of ``<!-- which loss: NAME -->`` on the page.
PARTS: dict[str, Callable[[Results], str]] = {
    "in words": in_words,
    "situations": situations,
    "collections": facts,
    "evidence": evidence,
    "every loss": every_loss,
}


def filled(text: str, results: Results) -> str:
    """The page with its parts; a ``LookupError`` where it has no place for one."""
    for name, part in PARTS.items():
        mark = f"<!-- which loss: {name} -->"
        if text.count(mark) != 1:
            raise LookupError(f"docs/which_loss.md has no place, or several, for “{name}”")
        text = text.replace(mark, part(results))
    return text
