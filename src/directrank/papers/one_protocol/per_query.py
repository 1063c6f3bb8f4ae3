"""Publish the comparison's values per query for others."""

from __future__ import annotations

import pandas as pd

from directrank.data import catalog
from directrank.papers.one_protocol.methods import METRICS, SCORERS
from directrank.papers.one_protocol.protocol import protocol
from directrank.papers.shared.evidence import Evidence
from directrank.papers.shared.product import ValuesResult


def per_query(evidence: Evidence, dataset: str) -> ValuesResult:
    """The value of every method for every test query, in each trial."""
    study = protocol(evidence, dataset)
    frames = [
        run.rows("test").assign(
            method=method.name,
            scorer=SCORERS[method.variant],
            fold=run.fold or 0,
        )
        for method in study.methods
        for run in method.runs
    ]
    values = pd.concat(frames, ignore_index=True)
    columns = ["method", "scorer", "fold", "trial", "query_id"]
    columns += ["group"] if study.groups is not None else []
    about = {
        "edition": evidence.edition,
        "collection": study.dataset.name,
        "title": study.dataset.title,
        "origin": study.dataset.origin,
        "licence": catalog.get(study.dataset.name).licence,
        "methods": study.names.to_numpy().tolist(),
        "protocol": study.scale(),
        "trained_on": study.trained_on,
        "failed": {scorer: dict(study.failed(scorer)) for scorer in SCORERS},
        "margin": study.margin,
    }
    return ValuesResult(values[[*columns, *METRICS.values()]], about)
