"""Make grades of labels: whole numbers from 0, where 0 means not relevant."""

from __future__ import annotations

import numpy as np

#: Gains are 2 ** label - 1, so labels above this are not grades.
HIGHEST_GRADE = 15
#: Into how many grades many different values are cut unless the user says so.
USUAL = 5


def graded(
    labels: np.ndarray, training: np.ndarray, asked: int | tuple[float, ...] | None = None
) -> tuple[np.ndarray, list[str]]:
    """Grades of labels.

    Labels below 0 count as 0, as in trec_eval. Whole numbers up to 15 stay as they are. A few
    different values become grades in their order, and more are cut at quantiles into grades of
    about equal size. If at least one in that many labels has the lowest value, it alone is grade 0.

    Args:
        labels: ``[N]``, finite.
        training: ``[M]``, those from which cut points are computed.
        asked: how many grades to make of labels that are no grades (by default at most 16 of as
            many different values, and otherwise 5), or the labels at which grades 1, 2, … begin.

    Returns:
        int64 ``[N]``, and sentences that say what was done.

    >>> grades, said = graded(np.array([-1.0, 0.0, 2.0, 1.0]), np.array([0.0]))
    >>> grades.tolist(), said
    ([0, 0, 2, 1], ['1 label below 0 counts as 0, which means not relevant'])
    >>> graded(np.array([0.0, 0.4, 0.5]), np.array([0.0]), (0.1, 0.5))[0].tolist()
    [0, 1, 2]
    """
    said = []
    if isinstance(asked, tuple):
        cuts, how = np.array(asked), "the cut points that were given"
    else:
        negative = int((labels < 0).sum())
        if negative:
            counted = "label below 0 counts" if negative == 1 else "labels below 0 count"
            said.append(f"{negative} {counted} as 0, which means not relevant")
        labels, training = np.maximum(labels, 0), np.maximum(training, 0)
        if labels.max() <= HIGHEST_GRADE and np.array_equal(labels, np.floor(labels)):
            grades = labels.astype(np.int64)
            if asked is not None and asked < len(np.unique(grades)):
                said.append(f"labels are grades already and are not cut into {asked}")
            return grades, said + _without_grade_0(grades)
        distinct = np.unique(training)
        source = "of all queries" if len(training) == len(labels) else "of the training set"
        if len(distinct) <= (asked or HIGHEST_GRADE + 1):
            cuts, how = distinct[1:], f"the different labels {source}"
        else:
            cuts, how = _quantiles(training, asked or USUAL), f"quantiles of the labels {source}"
    grades = np.searchsorted(cuts, labels, side="right")
    begin = ", ".join(f"{cut:g}" for cut in cuts) or "no label"
    said.append(f"labels are cut into grades; grades 1, 2, … begin at {begin} ({how})")
    used = len(np.unique(grades))
    wanted = len(asked) + 1 if isinstance(asked, tuple) else asked or min(len(distinct), USUAL)
    if used < wanted:
        said.append(f"the number of grades that occur is {used}, fewer than {wanted}")
    return grades, said + _without_grade_0(grades)


def _quantiles(labels: np.ndarray, levels: int) -> np.ndarray:
    """Where the grades above 0 begin; each is one of the labels."""
    lowest = labels.min()
    above = labels[labels > lowest]
    if levels * (len(labels) - len(above)) >= len(labels):
        shares = np.linspace(0, 1, levels)[:-1]
        return np.unique(np.quantile(above, shares, method="higher"))
    cuts = np.unique(np.quantile(labels, np.linspace(0, 1, levels + 1)[1:-1], method="higher"))
    return cuts[cuts > lowest]


def _without_grade_0(grades: np.ndarray) -> list[str]:
    if grades.min() == 0:
        return []
    return [
        "no label is 0, so every document counts as relevant, and average precision says little"
    ]
