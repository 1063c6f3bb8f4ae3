"""Data in the workflow: archives fetched before anything starts, and a page per data set."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import zipfile
from pathlib import Path

import pytest
import yaml

from archive_server import serving
from directrank.data.prepared import SPLITS, ring_split
from directrank.edition.plan import load
from directrank.system.errors import ConfigError
from directrank.system.schema import read_yaml
from workflow_runs import ROOT, TINY, edition, output_of, snakemake

pytestmark = pytest.mark.slow

PREPARED = "data/prepared/ohsumed/prepared.json"


#: Five folds, each of whose parts is one query of two documents.
FILES = {
    f"Fold{fold}/{split}.txt": "".join(
        f"{label} qid:{part} 1:{part}.5 2:{label}\n"
        for part in ring_split(fold, split)
        for label in (0, 1)
    ).encode()
    for fold in range(1, 6)
    for split in SPLITS
}


def archive() -> bytes:
    """A zip with the five folds."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, text in FILES.items():
            packed.writestr(path, text)
    return stream.getvalue()


ARCHIVE = archive()

BASE = {
    "datasets": {"ohsumed": {"source": "archive"}},
    "papers": {"qin2010": {"products": ["table4"]}},
    "overrides": [],
}


def world(folder: Path, url: str, **changes) -> Path:
    """A working folder with a catalogue of its own; the edition's file."""
    shape = {"features": 2, "label_levels": 2, "page": "http://page", "licence": "be kind"}
    fetched = {
        "name": "OHSUMED.zip",
        "bytes": len(ARCHIVE),
        "sha256": hashlib.sha256(ARCHIVE).hexdigest(),
        "urls": [url],
    }
    catalogue = {
        "ohsumed": {**shape, "folds": 5, "archives": [fetched]},
        "yahoo1": {**shape, "archives": [{"name": "by_hand_only.tgz"}]},
    }
    (folder / "data").mkdir(parents=True)
    (folder / "data/datasets.yaml").write_text(yaml.safe_dump({"datasets": catalogue}))
    return edition(folder / "config", **{**BASE, "raw_dir": str(folder / "raw"), **changes})


@pytest.fixture(scope="module")
def fetched(tmp_path_factory):
    """A world whose archive was fetched and prepared; its folder, what was printed and asked for.

    Tests leave it as it is.
    """
    folder = tmp_path_factory.mktemp("fetched") / "world"
    with serving(ARCHIVE) as server:
        config = world(folder, server.url, download=True, accept_licences=["ohsumed"])
        process = snakemake(folder, PREPARED, config=config)
        asked = len(server.requests)
    assert process.returncode == 0, output_of(process)
    return folder, output_of(process), asked


def test_an_archive_with_an_accepted_licence_is_fetched_before_anything_starts(fetched):
    folder, printed, asked = fetched
    assert "fetching ohsumed" in printed
    assert asked == 1
    assert (folder / "raw/OHSUMED.zip").read_bytes() == ARCHIVE
    record = json.loads((folder / PREPARED).read_text())
    assert record["total"]["queries"] == 5
    assert record["source"]["archive"]["as_published"] is True


def test_a_collection_of_single_files_is_fetched_before_anything_starts(tmp_path):
    with serving(FILES) as server:
        config = world(tmp_path, server.url, download=True, accept_licences=["ohsumed"])
        catalogue = yaml.safe_load((tmp_path / "data/datasets.yaml").read_text())
        digests = {path: hashlib.sha256(text).hexdigest() for path, text in FILES.items()}
        single = {"name": "OHSUMED.zip", "urls": [server.folder], "files": digests}
        catalogue["datasets"]["ohsumed"]["archives"] = [single]
        (tmp_path / "data/datasets.yaml").write_text(yaml.safe_dump(catalogue))
        process = snakemake(tmp_path, PREPARED, config=config)
        assert process.returncode == 0, output_of(process)
        assert len(server.requests) == len(FILES)
    record = json.loads((tmp_path / PREPARED).read_text())
    assert record["total"]["queries"] == 5
    assert record["source"]["archive"] == {"name": "OHSUMED", "kind": "folder"}


@pytest.mark.parametrize(
    "changes", [{"download": True}, {"accept_licences": ["ohsumed"]}], ids=lambda c: min(c)
)
def test_nothing_is_fetched_without_the_wish_and_the_licence(changes, tmp_path):
    with serving(ARCHIVE) as server:
        process = snakemake(tmp_path, PREPARED, config=world(tmp_path, server.url, **changes))
        assert server.requests == []
    assert process.returncode != 0
    printed = output_of(process)
    assert "OHSUMED.zip" in printed
    assert "'download: true' and 'ohsumed' in 'accept_licences'" in printed
    assert not (tmp_path / "data/prepared").exists()


def test_what_cannot_be_fetched_is_named_together_with_the_reason(tmp_path):
    with serving(b"<html>please log in</html>") as server:
        config = world(
            tmp_path,
            server.url,
            download=True,
            accept_licences=["ohsumed", "yahoo1"],
            datasets={
                "ohsumed": {"source": "archive"},
                "yahoo1": {"source": "archive"},
                "web30k": {"source": "standin"},
            },
            papers={
                "qin2010": {"products": ["table4"]},
                "bruch2019": {
                    "products": ["table1"],
                    "variants": {"table1_web30k": ["ListMLE"], "table1_yahoo1": ["RankNet"]},
                },
            },
        )
        process = snakemake(tmp_path, config=config)
    assert process.returncode != 0
    printed = output_of(process)
    assert "2 data sets have no archive" in printed
    assert "by_hand_only.tgz" in printed
    assert f"{server.url}: the file has 26 bytes" in printed
    assert "Traceback" not in printed
    assert not (tmp_path / "data/prepared").exists()
    assert list((tmp_path / "raw").iterdir()) == []


def test_prepared_data_need_no_archive_until_what_makes_them_has_changed(fetched, tmp_path):
    folder = tmp_path / "world"
    shutil.copytree(fetched[0], folder)
    config = edition(folder / "config", **{**BASE, "raw_dir": str(folder / "raw")})
    before = (folder / PREPARED).read_bytes()
    (folder / "raw/OHSUMED.zip").unlink()
    # What the catalogue says for people does not matter; what the data must be does.
    catalogue = folder / "data/datasets.yaml"
    catalogue.write_text(catalogue.read_text().replace("be kind", "be very kind"))
    process = snakemake(folder, PREPARED, config=config)
    assert process.returncode == 0, output_of(process)
    assert "Nothing to be done" in output_of(process)
    catalogue.write_text(catalogue.read_text().replace("label_levels: 2", "label_levels: 3"))
    process = snakemake(folder, PREPARED, config=config)
    assert process.returncode != 0
    printed = output_of(process)
    assert "1 data set has no archive" in printed
    assert "ohsumed: prepared data exist, but they were made by other code or settings" in printed
    assert "Preparing data set" not in printed
    assert (folder / PREPARED).read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"accept_licences": ["osumed"]}, "did you mean 'ohsumed'"),
        ({"datasets": {"../../elsewhere; touch x": {"source": "archive"}}}, "does not match"),
    ],
)
def test_a_data_set_that_cannot_be_meant_is_an_error(changes, message):
    content = read_yaml(TINY)
    with pytest.raises(ConfigError, match=message):
        load({**content, **changes}, ROOT)


def test_every_data_set_of_an_edition_has_a_page_and_its_bytes_recur(finished, made_again):
    first, second = (
        {path.name: path.read_bytes() for path in (folder / "figures/tiny/data").iterdir()}
        for folder in (finished, made_again[0])
    )
    assert first == second
    assert set(first) == {"datasets.csv", "datasets.md"} | {
        f"{name}_standin.{form}"
        for name in ("web30k", "yahoo1")
        for form in ("md", "csv", "png", "svg")
    }
    assert b"stand-in" in first["web30k_standin.md"]
    assert first["datasets.csv"].count(b"\n") == 3
