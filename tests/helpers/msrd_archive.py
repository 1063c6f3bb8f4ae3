"""A small collection in the form of MSRD's files."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from directrank.data import catalog

ROOT = Path(__file__).resolve().parents[2]

MOVIES = [
    ("1", "The Godfather", "A crime family.", "Marlon Brando", "Francis Ford Coppola", 1972),
    ("2", "The Godfather: Part II", "A family's rise.", "Al Pacino", "Francis Ford Coppola", 1974),
    ("3", "Amélie", "A waitress in Paris.", "Audrey Tautou", "Jean-Pierre Jeunet", 2001),
    ("4", "Alien", "A creature in space.", "Sigourney Weaver", "Ridley Scott", 1979),
    ("5", "Aliens", "Many creatures meet marines.", "Sigourney Weaver", "James Cameron", 1986),
    ("6", "Paris, Texas", "A man walks out of the desert.", "Dean Stockwell", None, 1984),
]

JUDGEMENTS = [
    ("qid:7", "godfather 2", "1", 0),
    ("qid:7", "godfather 2", "2", 1),
    ("qid:7", "godfather 2", "4", 0),
    ("qid:3", "the godfather coppola", "1", 1),
    ("qid:3", "the godfather coppola", "2", 1),
    ("qid:3", "the godfather coppola", "6", 0),
    ("qid:9", "movies with sigourney weaver in space", "4", 1),
    ("qid:9", "movies with sigourney weaver in space", "5", 1),
    ("qid:9", "movies with sigourney weaver in space", "3", 0),
    ("qid:2", "amelie", "3", 1),
    ("qid:2", "amelie", "6", 0),
    ("qid:4", "paris texas 1984", "6", 1),
    ("qid:4", "paris texas 1984", "3", 0),
]


def movie(
    number: str, title: str, overview: str, actor: str, director: str | None, year: int
) -> dict[str, Any]:
    """One line of the corpus."""
    return {
        "id": number,
        "title": title,
        "overview": overview,
        "tags": ["classic"],
        "genres": ["Drama"],
        "director": director,
        "actors": [actor],
        "characters": ["Michael"],
        "year": year,
        "votes": 10 * int(number),
        "rating": 7.5,
        "popularity": 3.0,
        "budget": 0,
    }


def lines(judgements: Iterable[tuple] = JUDGEMENTS) -> list[str]:
    """The lines of the file of judgements."""
    return ["query_id\tquery\tdoc_id\tgrade", *("\t".join(map(str, row)) for row in judgements)]


def contents(
    corpus: Iterable[Any] | None = None, judgements: Iterable[str] | None = None
) -> dict[str, bytes]:
    """The files by name; ``corpus`` holds movies or lines, ``judgements`` lines."""
    movies = [movie(*row) for row in MOVIES] if corpus is None else corpus
    texts = {
        "movies-corpus.jsonl.gz": [m if isinstance(m, str) else json.dumps(m) for m in movies],
        "movies-judgments.tsv.gz": lines() if judgements is None else judgements,
    }
    return {
        name: gzip.compress("".join(f"{line}\n" for line in content).encode(), mtime=0)
        for name, content in texts.items()
    }


def write_world(folder: Path) -> None:
    """Write a raw folder with the archive, and a catalogue without digests and counts."""
    (folder / "raw").mkdir()
    write(folder / "raw/MSRD.zip")
    entry = yaml.safe_load((ROOT / "data/datasets.yaml").read_text())["datasets"]["msrd"]
    for key in ("sha256", "expect", "archives"):
        del entry[key]
    entry["folds"] = 3
    (folder / "datasets.yaml").write_text(yaml.safe_dump({"datasets": {"msrd": entry}}))
    catalog._load.cache_clear()


def write(path: Path, **files: Any) -> Path:
    """Write the archive of the files that :func:`contents` makes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents(**files).items():
            archive.writestr(f"MSRD/{name}", content)
    return path
