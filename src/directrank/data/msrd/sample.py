"""The sample of MSRD's features that is part of the repository.

``python -m directrank.data.msrd.sample data/prepared/msrd data/embedded/MSRD-sample.tar.xz`` makes
it from prepared data. It contains numbers and ids, but no text. A test makes it again and compares
the files in it.
"""

from __future__ import annotations

import io
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from directrank.data.prepared import SPLITS, open_dataset
from directrank.lists.packed import RankedLists
from directrank.system.io import atomic_path
from directrank.system.seeds import numpy_stream

#: Queries drawn from each split of the first fold.
QUERIES = {"train": 800, "vali": 400, "test": 2000}

FOLD = 1

#: Significant digits of a feature.
DIGITS = 4

LICENCE = """\
A sample of the Movie Search Ranking Dataset by Metarank Labs, https://github.com/metarank/msrd,
as features: no text, numbers and ids alone. Licence: Creative Commons Attribution-ShareAlike 4.0
International (CC BY-SA 4.0), https://creativecommons.org/licenses/by-sa/4.0/. Changes: features
were extracted and rounded, movies reordered, queries drawn at random; made by directrank, whose
docs/msrd.md says how.
"""


def files(prepared: str | Path) -> dict[str, bytes]:
    """The files of the sample by name: the splits as LETOR text, groups, licence.

    Args:
        prepared: the folder of the prepared collection.
    """
    texts: dict[str, str] = {"LICENCE.txt": LICENCE}
    groups: dict[int, int] = {}
    for split in SPLITS:
        lists = open_dataset(Path(prepared) / f"Fold{FOLD}" / split)
        drawn = numpy_stream("msrd_sample", split).choice(
            lists.n_queries, QUERIES[split], replace=False
        )
        lists = lists.select(np.sort(drawn))
        assert lists.groups is not None
        groups |= dict(zip(lists.query_ids.tolist(), lists.groups.tolist(), strict=True))
        texts[f"{split}.txt"] = as_letor(lists)
    texts["groups.tsv"] = "".join(f"{query}\t{group}\n" for query, group in sorted(groups.items()))
    return {name: text.encode() for name, text in texts.items()}


def as_letor(lists: RankedLists) -> str:
    """Lists as LETOR text, without the features that are 0."""
    ids = np.repeat(lists.query_ids, lists.lengths)
    rows = zip(lists.labels.tolist(), ids.tolist(), lists.features.tolist(), strict=True)
    return "".join(
        f"{label:g} qid:{query} "
        + " ".join(f"{i}:{value:.{DIGITS}g}" for i, value in enumerate(values, 1) if value)
        + "\n"
        for label, query, values in rows
    )


def write(contents: Mapping[str, bytes], path: str | Path) -> None:
    """Write the files as a packed archive whose bytes do not depend on who makes it, or when."""
    with atomic_path(path) as part, tarfile.open(part, "w:xz", preset=9) as archive:
        for name, content in sorted(contents.items()):
            info = tarfile.TarInfo(f"MSRD-sample/{name}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


if __name__ == "__main__":
    write(files(sys.argv[1]), sys.argv[2])
