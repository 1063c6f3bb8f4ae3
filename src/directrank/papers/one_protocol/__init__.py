"""One protocol: all losses with all scorers, and trees, on the same folds with the same budget.

No paper has this comparison, so there are no published values for it.
"""

from __future__ import annotations

from directrank.papers.shared.product import Kind, Product

#: The heading of its part of a report.
TITLE = "One protocol: every loss with every scorer, and trees, at the same budget"

#: Ranks are compared only among at least this many methods.
LEAST_RANKED = 3

#: The products of each collection: kind, suffix of the name, subject, function, and the least
#: number of methods.
_PARTS: tuple[tuple[Kind, str, str, str, int], ...] = (
    ("figure", "", "the difference of every method from the best", "dots:figure", LEAST_RANKED),
    ("figure", "_time", "quality against training time", "time:figure_time", 1),
    ("table", "", "every loss, and trees", "quality:table_quality", 1),
    (
        "table",
        "_empty",
        "the effect of queries without a relevant document",
        "quality:table_empty",
        1,
    ),
    ("table", "_pairs", "every pair of methods", "differences:table_pairs", 2),
    (
        "table",
        "_settings",
        "the effect of settings on the validation set",
        "settings:table_settings",
        1,
    ),
)

#: The products of methods with ever more training queries, and on a harder task: kind, name,
#: subject, what they are made from, and function.
_BY_SIZE: tuple[tuple[Kind, str, str, tuple[str, ...], str], ...] = (
    (
        "figure",
        "figure_training_size",
        "methods of every family by the number of training queries",
        ("training_size", "tower", "trees"),
        "training_size:figure_training_size",
    ),
    (
        "table",
        "table_training_size",
        "which methods differ with more training queries",
        ("training_size", "tower", "trees"),
        "training_size:table_training_size",
    ),
    (
        "table",
        "table_msrd_harder",
        "a harder task, without the features of the title",
        ("harder", "training_size", "untrained"),
        "harder:table_harder",
    ),
)

#: The products of all collections together, likewise.
_ACROSS: tuple[tuple[Kind, str, str, str], ...] = (
    ("figure", "", "the difference of every method from the best", "across:figure_dots"),
    ("figure", "_wins", "how often each loss is ahead of each other one", "across:figure_wins"),
    ("table", "", "every loss, and trees", "across:table"),
    ("table", "_families", "does it matter what a loss is built on?", "families:table"),
)

#: The experiments on a collection.
_NEEDS = tuple(
    f"{{collection}}_{scorer}" for scorer in ("linear", "tower", "context", "trees", "untrained")
)

#: The product with the published values of a collection.
VALUES = "per_query_{collection}"

PRODUCTS: dict[str, Product] = (
    {
        f"{kind}_{{collection}}{ending}": Product(
            kind,
            f"One protocol, {{collection}}: {what}",
            _NEEDS,
            function,
            {"dataset": "{collection}"},
            timed=ending == "_time",
            least=least,
        )
        for kind, ending, what, function, least in _PARTS
    }
    | {
        VALUES: Product(
            "values",
            "One protocol, {collection}: every method's value of every test query",
            _NEEDS,
            "protocol:per_query",
            {"dataset": "{collection}"},
        )
    }
    | {
        "table_{collection}_trees": Product(
            "table",
            "One protocol, {collection}: boosted trees, choice by choice",
            ("{collection}_trees",),
            "trees:table",
            {"dataset": "{collection}"},
            timed=True,
            compares="questions:pairs",
        ),
    }
    | {
        name: Product(
            kind,
            f"One protocol, MSRD (movie search): {what}",
            tuple(f"msrd_{part}" for part in needs),
            function,
            {"dataset": "msrd"},
            collection="msrd",
            part="training_size",
            least=LEAST_RANKED,
        )
        for kind, name, what, needs, function in _BY_SIZE
    }
    | {
        "table_collections_trees": Product(
            "table",
            "One protocol over collections: boosted trees, choice by choice",
            (),
            "trees_across:table",
            across=True,
            reads=VALUES,
            compares="questions:pairs",
        ),
    }
    | {
        f"{kind}_collections{ending}": Product(
            kind, f"One protocol over collections: {what}", (), function, across=True, reads=VALUES
        )
        for kind, ending, what, function in _ACROSS
    }
)
