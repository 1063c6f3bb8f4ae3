"""The questions about boosted trees: pairs of methods that differ in one choice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A choice, and two methods of the experiment ``trees`` that differ only in it.

    Attributes:
        text: the question in print.
        first, second: the methods; differences are the first minus the second.
    """

    text: str
    first: str
    second: str

    @property
    def pair(self) -> tuple[str, str]:
        """Both methods."""
        return self.first, self.second


QUESTIONS = (
    Question("Pairs weighted by NDCG, or equally?", "XGBoost NDCG", "XGBoost"),
    Question("Pairs weighted by NDCG, or by AP?", "XGBoost NDCG", "XGBoost MAP"),
    Question("Pairs, or a cross-entropy?", "LambdaMART", "XE-NDCG trees"),
    Question("LambdaMART normalised?", "LambdaMART", "LambdaMART unnormalised"),
    Question("XGBoost, NDCG weights, normalised?", "XGBoost NDCG", "XGBoost NDCG unnormalised"),
    Question("XGBoost, equal weights, normalised?", "XGBoost", "XGBoost unnormalised"),
    Question("Pairs with the first 30, or the first 13?", "LambdaMART", "LambdaMART cut 13"),
    Question("Pairs by topk, or by mean?", "XGBoost NDCG", "XGBoost NDCG mean pairs"),
    Question("LightGBM, or XGBoost?", "LambdaMART", "XGBoost NDCG"),
    Question("LightGBM, or CatBoost?", "LambdaMART", "YetiRank NDCG@10"),
    Question("XGBoost, or CatBoost?", "XGBoost NDCG", "YetiRank NDCG@10"),
    Question("YetiRank, or weighted by NDCG@10?", "YetiRank", "YetiRank NDCG@10"),
    Question("YetiRank, or its pairwise leaves?", "YetiRank", "YetiRankPairwise"),
    Question("YetiRank, or StochasticRank?", "YetiRank", "CatBoost StochasticRank"),
    Question("YetiRank, or QueryRMSE?", "YetiRank", "QueryRMSE"),
    Question("YetiRank, or QuerySoftMax?", "YetiRank", "QuerySoftMax"),
    Question("CatBoost, YetiRank, or LambdaMART?", "YetiRank NDCG@10", "CatBoost LambdaMART"),
    Question("YetiRank, or PairLogit?", "YetiRank", "PairLogit"),
    Question("All queries for each tree, or half?", "LambdaMART", "LambdaMART half of queries"),
)


def pairs() -> list[tuple[str, str]]:
    """The two methods of every question."""
    return [question.pair for question in QUESTIONS]


#: A method of each library, with the library's own objective, which represent trees beside the
#: losses if there is no room for all.
LIBRARIES = ("LambdaMART", "XGBoost", "YetiRank")

#: The other methods that a question names.
FURTHER = frozenset(name for pair in pairs() for name in pair) - set(LIBRARIES)
