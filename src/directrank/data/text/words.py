"""Words of queries and fields, their counts, and sums over the words of a query."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import snowballstemmer
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

_WORD = re.compile(r"[a-z0-9]+")
#: Numbers of sequels; I, V and X alone are more often words or names.
_ROMAN = {"ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8", "ix": "9"}

_stem = cache(snowballstemmer.stemmer("english").stemWord)


def plain(text: str) -> str:
    """Lower case, without accents and apostrophes.

    >>> plain("Amélie’s")
    'amelies'
    """
    text = text.lower().replace("ß", "ss").replace("'", "").replace("’", "")
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def words(text: str) -> list[str]:
    """The words of a text, stemmed (Porter's second stemmer); Roman numerals become digits.

    >>> words("The Godfather, Part II")
    ['the', 'godfath', 'part', '2']
    """
    return [_stem(_ROMAN.get(word, word)) for word in _WORD.findall(plain(text))]


def bigrams(tokens: Sequence[str]) -> list[str]:
    """Pairs of adjacent words."""
    return [f"{a} {b}" for a, b in pairwise(tokens)]


def trigrams(tokens: Sequence[str]) -> list[str]:
    """Character trigrams, including the spaces between and around words; each once."""
    text = f" {' '.join(tokens)} "
    return sorted({text[i : i + 3] for i in range(len(text) - 2)})


class Counts:
    """How often each term occurs in each text of a field.

    Attributes:
        tf: float64 CSR ``[M, T]``, over the terms that any query has.
        length: float64 ``[M]``, the number of terms of each text, also those that no query has.
        df: float64 ``[T]``, the number of texts that have the term.
        cf: float64 ``[T]``, the number of occurrences in all texts.
    """

    def __init__(self, texts: Sequence[Sequence[str]], vocabulary: dict[str, int]) -> None:
        vectorizer = CountVectorizer(analyzer=list, vocabulary=vocabulary, dtype=np.float64)
        self.tf = sparse.csr_matrix(vectorizer.transform(texts))
        self.length = np.array([len(text) for text in texts], np.float64)
        self.df = np.asarray((self.tf > 0).sum(0), np.float64).ravel()
        self.cf = np.asarray(self.tf.sum(0)).ravel()

    @property
    def rows(self) -> np.ndarray:
        """The text of every entry of :attr:`tf`, int ``[nnz]``."""
        return np.repeat(np.arange(self.tf.shape[0]), np.diff(self.tf.indptr))

    def weighted(self, values: np.ndarray) -> sparse.csr_matrix:
        """A matrix with the entries of ``values`` in place of those of :attr:`tf`."""
        return sparse.csr_matrix((values, self.tf.indices, self.tf.indptr), self.tf.shape)


class Pairs:
    """Judged pairs of query and text, of which sums over the query's terms are taken.

    Args:
        queries: the terms of each query.
        query, text: int ``[N]``, the pairs; those of a query are contiguous.
    """

    #: Queries that are processed at a time; memory holds this number times the number of texts.
    CHUNK = 500

    def __init__(
        self, queries: Sequence[Sequence[str]], query: np.ndarray, text: np.ndarray
    ) -> None:
        self.vocabulary = {
            term: number for number, term in enumerate(sorted({t for q in queries for t in q}))
        }
        self.of_queries = Counts(queries, self.vocabulary)
        self.query, self.text = query, text

    def sums(
        self, weights: sparse.csr_matrix, of_queries: sparse.csr_matrix | None = None
    ) -> np.ndarray:
        """``Σ_t of_queries[query, t] · weights[text, t]`` for every pair, float64 ``[N]``.

        Without ``of_queries`` each term counts as often as the query has it.
        """
        of_queries = self.of_queries.tf if of_queries is None else of_queries
        result = np.empty(len(self.query))
        columns = weights.T.tocsr()
        for first in range(0, of_queries.shape[0], self.CHUNK):
            block = (of_queries[first : first + self.CHUNK] @ columns).toarray()
            here = slice(*np.searchsorted(self.query, [first, first + self.CHUNK]))
            result[here] = block[self.query[here] - first, self.text[here]]
        return result

    def of_query(self, weights: np.ndarray) -> np.ndarray:
        """``Σ_t n(t, query) · weights[t]`` for every pair's query, float64 ``[N]``."""
        return (self.of_queries.tf @ weights)[self.query]

    @property
    def n_terms(self) -> np.ndarray:
        """The number of terms of every pair's query, at least 1, float64 ``[N]``."""
        return np.maximum(1.0, self.of_queries.length)[self.query]
