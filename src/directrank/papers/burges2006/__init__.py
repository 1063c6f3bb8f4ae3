"""Burges, Ragno, Le (NIPS 2006): learning to rank with nonsmooth cost functions (LambdaRank)."""

from __future__ import annotations

from directrank.papers.shared.product import Product

#: The heading of its part of a report.
TITLE = "Burges et al. (2006): LambdaRank, or learning to rank with nonsmooth costs"

_PAPER = "Burges et al. (2006)"

_WEB = "Substitute for the Web data"
_INTRANET = "Substitute for the intranet search data"
_CUBIC = "Artificial data from a cubic polynomial"


#: Experiment of Figures 2 and 3 → the claims on which it bears.
_ABOUT = {
    "artificial": ("C23", "D15"),
    "intranet": ("C23", "D17"),
    "intranet_ohsumed": (),
    "web": ("C23", "D18"),
}


def _figure(title: str, experiment: str, nets: tuple[str, ...], what: str) -> Product:
    """A panel of Figures 2 and 3, with some nets of an experiment."""
    options = {"experiment": experiment, "nets": nets, "what": what}
    return Product(
        "figure", title, (experiment,), "ndcg:figure", options, claims=_ABOUT[experiment]
    )


def _table(title: str, experiment: str, what: str) -> Product:
    """The values of a panel of Figures 2 and 3."""
    options = {"experiment": experiment, "what": what}
    return Product("table", title, (experiment,), "ndcg:table", options, claims=_ABOUT[experiment])


def _speed(title: str, experiment: str) -> Product:
    """A comparison of the algorithms of section 6.1."""
    options = {"experiment": experiment}
    return Product("table", title, (experiment,), "speed:table_speed", options, timed=True)


def _batching(title: str, experiment: str) -> Product:
    """V1 with updates per query and per pair."""
    return Product(
        "table", title, (experiment,), "choices:table_batching", {"experiment": experiment}
    )


def _lambdas(title: str, experiment: str) -> Product:
    """The lambda functions of section 6.2."""
    options = {"experiment": experiment}
    return Product("table", title, (experiment,), "choices:table_lambdas", options)


PRODUCTS: dict[str, Product] = {
    "figure1a": Product(
        "figure",
        f"Figure 1 (left) of {_PAPER}: speeding up RankNet training",
        ("speedup",),
        "speed:figure1a",
        timed=True,
        claims=("C22",),
    ),
    "figure1b": Product(
        "figure",
        f"Figure 1 (right) of {_PAPER}: time against number of documents",
        ("lengths",),
        "speed:figure1b",
        timed=True,
    ),
    "figure2a": _figure(
        f"Figure 2 (left) of {_PAPER}: cubic polynomial data",
        "artificial",
        ("two_layer", "linear"),
        _CUBIC,
    ),
    "figure2b": _figure(
        f"Figure 2 (right) of {_PAPER}: intranet search data", "intranet", ("linear",), _INTRANET
    ),
    "figure2b_ohsumed": _figure(
        f"Figure 2 (right) of {_PAPER} on OHSUMED, also with two-layer nets",
        "intranet_ohsumed",
        ("two_layer", "linear"),
        _INTRANET,
    ),
    "figure3a": _figure(
        f"Figure 3 (left) of {_PAPER}: Web data, linear nets",
        "web",
        ("linear",),
        f"{_WEB}, linear nets",
    ),
    "figure3b": _figure(
        f"Figure 3 (right) of {_PAPER}: Web data, two-layer nets",
        "web",
        ("two_layer",),
        f"{_WEB}, two-layer nets",
    ),
    "table_figure1": Product(
        "table",
        f"Figure 1 of {_PAPER} in numbers: slopes and speed-ups",
        ("lengths",),
        "speed:table_figure1",
        timed=True,
        claims=("C22",),
    ),
    "table_speed": _speed(f"Section 6.1 of {_PAPER}: V1 and V2", "factors"),
    "table_speed_cubic": _speed(
        f"Section 6.1 of {_PAPER} on artificial data: V1 and V2", "factors_cubic"
    ),
    "table_batching": _batching(
        f"Section 6.1 of {_PAPER}: V1 with updates per query and per pair", "batching"
    ),
    "table_batching_cubic": _batching(
        f"Section 6.1 of {_PAPER} on artificial data: V1 with updates per query and per pair",
        "batching_cubic",
    ),
    "table_figure2a": _table(f"Figure 2 (left) of {_PAPER} in numbers", "artificial", _CUBIC),
    "table_figure2b": _table(f"Figure 2 (right) of {_PAPER} in numbers", "intranet", _INTRANET),
    "table_figure2b_ohsumed": _table(
        f"Figure 2 (right) of {_PAPER} on OHSUMED, in numbers", "intranet_ohsumed", _INTRANET
    ),
    "table_figure3": _table(f"Figure 3 of {_PAPER} in numbers", "web", _WEB),
    "table_lambdas": _lambdas(
        f"Section 6.2 of {_PAPER}: lambda functions on artificial data (not printed there)",
        "lambdas",
    ),
    "table_lambdas_web": _lambdas(
        f"Section 6.2 of {_PAPER}: lambda functions on Web data (not printed there)",
        "lambdas_web",
    ),
    "table_recipe": Product(
        "table",
        f"Sensitivity to the reading of the artificial data of {_PAPER}",
        ("recipe_base", "recipe_symmetric", "recipe_even", "recipe_gains", "recipe_zscore"),
        "choices:table_recipe",
    ),
    "summary": Product(
        "figure",
        f"{_PAPER} in one picture: published against reproduced",
        (),
        "speed:summary",
        timed=True,
        repeats=("table_figure1", "table_speed", "table_speed_cubic"),
    ),
}
