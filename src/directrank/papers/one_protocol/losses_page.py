"""The section of a loss: what it is, what it costs, and where it wins and loses, in Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module

from directrank import losses
from directrank.papers.one_protocol.choice import Results
from directrank.papers.shared.format import listed, number
from directrank.papers.shared.tables import markdown_rows
from directrank.stats.decisions import WORDS

#: What every loss takes beside its settings.
GIVEN = ("scores", "labels", "mask", "lengths", "query_ids", "weights", "reduction")


def section(name: str, results: Results) -> Iterator[str]:
    """Everything about a loss of :data:`directrank.losses.REGISTRY`, a paragraph at a time."""
    yield f"## {name}"
    yield f"{_subject(name)} {_settings(name)}"
    yield from _costs(name, results)
    methods = [method.name for method in results.methods if method.loss == name]
    for method in methods:
        if len(methods) > 1:
            yield f"**{method}**"
        yield from _of_method(method, results)
    if not methods:
        yield "It is not part of the comparison."


def significant(value: float) -> str:
    """A measured number to two digits, without an exponent."""
    digits = float(f"{value:.2g}")
    return f"{digits:,g}".replace(",", " ") if digits < 1e6 else f"{digits:.0f}"


def _subject(name: str) -> str:
    """The summary of its file, or of a composition's docstring: what it is, and whose."""
    module = losses.REGISTRY[name].split(":")[0]
    told = losses.get(name) if module == losses.COMPOSITIONS else import_module(module)
    first = " ".join((inspect.getdoc(told) or "").split("\n\n")[0].split("\n"))
    return re.sub(r":\w+:`([^`]+)`", r"`\1`", first).replace("``", "`")


def _settings(name: str) -> str:
    """Its hyper-parameters with their defaults."""
    parameters = inspect.signature(losses.get(name)).parameters.values()
    settings = [
        f"`{one.name}`" if one.default is one.empty else f"`{one.name}={one.default!r}`"
        for one in parameters
        if one.name not in GIVEN
    ]
    if not settings:
        return "It has no settings."
    return f"{'Setting' if len(settings) == 1 else 'Settings'}: {listed(settings)}."


def _costs(name: str, results: Results) -> Iterator[str]:
    own = results.costs[results.costs["loss"] == name]
    if own.empty:
        yield "Its time has not been measured."
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


def _of_method(method: str, results: Results) -> Iterator[str]:
    rows, sentences = [], []
    for one in results.collections:
        study = results.studies[one.name]
        if method not in study.labels:
            continue
        said = study.against(method)
        first, last = study.places[study.labels.index(method)]
        counts = [str(len(said[word])) for word in WORDS]
        mean = number(float(study.means[method]))
        rows.append([one.short, f"{first} to {last} of {len(study.labels)}", mean, *counts])
        verdicts = [f"{word} than {listed(said[word])}" for word in WORDS[:2] if said[word]]
        if verdicts:
            sentences.append(f"- **{one.short}**: {'; '.join(verdicts)}.")
    yield "\n".join(markdown_rows(["collection", "place", "NDCG@10", *WORDS], rows))
    yield "\n".join(sentences) or "No difference from another loss is significant."
    lines = []
    for one in results.collections:
        if (one.name, method) in results.moved.index:
            moved = results.moved.loc[one.name, method]
            ranges = [("the learning rate", moved["moves_with_rate"])]
            if setting := moved["setting"]:
                ranges = [(f"`{setting}`", moved["moves_with_setting"]), *ranges]
            told = [f"{number(by)} with {name}" for name, by in ranges if by == by]
            chosen = _chosen(one.name, method, results)
            lines += [f"- {one.short}: {', '.join(told)}{chosen}"] if told else []
    if lines:
        yield (
            "How far validation NDCG@10 moves between the values that were tried, and the "
            "configuration that the validation set chose most often with the network:"
        )
        yield "\n".join(lines)


def _chosen(collection: str, method: str, results: Results) -> str:
    """The configuration to start with, and how often it was chosen; empty without a network."""
    if (collection, method) not in results.chosen.index:
        return ""
    row = results.chosen.loc[collection, method]
    setting = f" and `{row['setting']}={row['value']}`" if row["setting"] else ""
    share = f"{row['chosen']:.0f} of {row['of']:.0f} trainings"
    return f"; a learning rate of {row['learning_rate']}{setting} ({share})"
