"""The page of a loss, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from directrank import relaxations
from directrank.papers.one_protocol.by_loss import WORDS
from directrank.papers.one_protocol.methods import MARGINS
from directrank.papers.shared.format import listed, number
from directrank.papers.shared.tables import markdown_rows
from which_loss.evidence import EDITION, Method, Results, command
from which_loss.library import PLAIN, PLAIN_TEST, Loss, notation, ranking


def page(loss: Loss, results: Results, picture: str) -> str:
    """Everything about a loss.

    Args:
        loss: the loss.
        results: of the comparison, and measured times.
        picture: what the picture beside the page shows; empty where there is none.
    """
    parts = [
        [f"# {loss.name}", f"**{loss.subject}**", loss.description],
        _formula(loss),
        _settings(loss),
        _picture(loss, picture),
        _plain(loss),
        _costs(loss, results),
        _evidence(loss, results),
        _links(loss),
    ]
    return "\n\n".join(text for part in parts for text in part) + "\n"


def _formula(loss: Loss) -> Iterator[str]:
    if not loss.formula:
        return
    yield "## Formula"
    yield loss.formula
    for name in loss.relaxations:
        if ranks := ranking(loss.root, name):
            yield f"Ranks under `{name}`: {ranks}."
    yield f"**Notation** ([all formulas](../formulas.md)). {notation(loss.root)}"


def _settings(loss: Loss) -> Iterator[str]:
    yield "## Settings"
    if not loss.settings:
        yield "None."
    for setting in loss.settings:
        default = f"default `{setting.default}`" if setting.default else "must be given"
        text = f"{setting.text} " if setting.text else ""
        yield f"`{setting.name}`\n: {text}({default})"


def _picture(loss: Loss, picture: str) -> Iterator[str]:
    if picture:
        yield "## Picture"
        yield f"![{picture}]({loss.name}.svg)"
        yield (
            "The loss of a list of five documents, and its derivative, along the score of the most "
            "relevant one; grey lines are where the others stand. Below zero, gradient descent "
            "pushes the document up."
        )


def _plain(loss: Loss) -> Iterator[str]:
    functions = loss.plain_version
    if functions:
        yield "## The plain version"
        yield (
            f"What the formula says, for reading: [tests]({_up(PLAIN_TEST)}) compare its value and "
            "gradient with the library's. A function of one list, with scores `s` and labels `y`, "
            "is called for each list of a batch without its padding."
        )
        for function in functions:
            yield (
                f"```{{literalinclude}} {_up(PLAIN)}\n:pyobject: {function}\n:language: python\n```"
            )


def _costs(loss: Loss, results: Results) -> Iterator[str]:
    yield "## Time and memory"
    own = results.costs[results.costs["loss"] == loss.name]
    if own.empty:
        yield (
            "Not measured yet: [the benchmark's file](../../benchmarks/results/losses.csv) has no "
            "row of it. `make bench` measures it."
        )
        return
    rows = [
        [
            f"{row.documents:.0f}",
            f"{row.lists:.0f}",
            significant(row.ms),
            significant(row.mb) if row.mb == row.mb else "–",
        ]
        for row in own.itertuples()
    ]
    columns = ["documents", "lists at once", "ms per 1000 lists", "MB for these lists"]
    yield "\n".join(markdown_rows(columns, rows))
    fastest = results.costs.loc[
        (results.costs["documents"] == 120) & (results.costs["loss"] != "nothing"), "ms"
    ].min()
    ms = results.ms(loss.name)
    factor = (
        f" At 120 documents it takes {significant(ms / fastest)} times as long as the fastest loss."
        if ms
        else ""
    )
    yield (
        "Forward and backward on a CPU, at the settings and on the machine that "
        f"[the benchmark](../../benchmarks/results/losses.csv) names.{factor}"
    )


def _evidence(loss: Loss, results: Results) -> Iterator[str]:
    yield "## Where it wins and loses"
    methods = [method for method in results.methods if method.loss == loss.name]
    if not methods:
        yield (
            "It is not part of [one protocol](../../config/papers/one_protocol.yaml), so there is "
            "no comparison with the other losses."
        )
        return
    if not results.studies:
        yield no_results(results)
        return
    for method in methods:
        if len(methods) > 1:
            yield f"### {method.name}"
        yield from _of_method(method, results)
    yield (
        f"NDCG@10 is the mean over linear scorer, network and context-aware ranker; better, worse "
        f"and equivalent (within {MARGINS[0]:g}) are significant after correction over all "
        "pairs of losses of a collection. [Which loss?](../which_loss.md) has all side by side."
    )
    if results.missing:
        yield awaited(results)


def _of_method(method: Method, results: Results) -> Iterator[str]:
    studies = {
        one.short: results.studies[one.name]
        for one in results.collections
        if one.name in results.studies
    }
    absent = [title for title, study in studies.items() if method.name not in study.labels]
    rows, places, sentences = [], {}, []
    for title, study in studies.items():
        if title in absent:
            continue
        said = study.against(method.name)
        places[title] = study.means.rank(ascending=False)[method.name]
        mean = number(float(study.means[method.name]))
        counts = [str(len(said[word])) for word in WORDS]
        rows.append([title, f"{places[title]:g} of {len(study.labels)}", mean, *counts])
        verdicts = [f"{word} than {listed(said[word])}" for word in WORDS[:2] if said[word]]
        if verdicts:
            sentences.append(f"- **{title}**: {'; '.join(verdicts)}.")
    if rows:
        yield "\n".join(markdown_rows(["collection", "place", "NDCG@10", *WORDS], rows))
        yield "\n".join(sentences) or "No difference from another loss is significant."
    if len(set(places.values())) > 1:
        best, worst = min(places, key=lambda t: places[t]), max(places, key=lambda t: places[t])
        yield f"Its best place is on {best}, its worst on {worst}."
    if absent:
        yield f"The results of {listed(absent)} are from before it was part of the comparison."
    yield from _movements(method, results)


def _movements(method: Method, results: Results) -> Iterator[str]:
    """How far the choice of its setting moves validation, where that is known."""
    lines = []
    for one in results.collections:
        key = (one.name, method.name)
        if key in results.moved.index and results.moved.loc[key, "setting"]:
            moved = results.moved.loc[key]
            lines.append(
                f"- {one.short}: {number(moved['moves_with_setting'])} with `{moved['setting']}`, "
                f"{number(moved['moves_with_rate'])} with the learning rate"
            )
    if lines:
        yield "How far validation NDCG@10 moves between the values that were tried:"
        yield "\n".join(lines)


def _links(loss: Loss) -> Iterator[str]:
    yield "## More"
    lines = [f"- Every option, with an example: {{py:func}}`directrank.losses.{loss.name}`"]
    lines += [
        f"- Made of {{py:func}}`directrank.relaxations.{_module(name)}.{name}`, "
        f"[beside the other relaxations](../reference/relaxations.md)"
        for name in loss.relaxations
    ]
    lines.append("- [Which loss?](../which_loss.md)")
    yield "\n".join(lines)


def _module(relaxation: str) -> str:
    return relaxations.REGISTRY[relaxation].split(":")[0].split(".")[-1]


def no_results(results: Results) -> str:
    """That no collection's results are there, and what makes them."""
    commands = [f"`{command(one)}`" for one in results.collections]
    return (
        "**No results yet.** The files of the comparison on real collections have not been made: "
        f"{listed(commands)} make them, a collection each, and `make docs` fills this in."
    )


def awaited(results: Results) -> str:
    """Which collections' results are not there, and what makes them."""
    named = listed([f"{one.short} (`{command(one)}`)" for one in results.missing])
    return f"Not made yet, of the edition `{EDITION}`: {named}."


def significant(value: float) -> str:
    """A measured number to two digits, without an exponent."""
    digits = float(f"{value:.2g}")
    return f"{digits:,g}".replace(",", " ") if digits < 1e6 else f"{digits:.0f}"


def _up(path: str) -> str:
    return f"../../{path}"
