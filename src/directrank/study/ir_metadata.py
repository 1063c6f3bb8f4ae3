"""The header of a run file that records its provenance: ir_metadata, version 0.1.

Breuer, Keller and Schaer, "ir_metadata: An extensible metadata schema for IR experiments", SIGIR
2022 (https://www.ir-metadata.org): YAML in comments, in six parts, called PRIMAD for their initials
(platform, research goal, implementation, method, actor, data).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

#: Sections of a run's specification that describe its method.
_METHOD = ("model", "loss", "training", "normalisation", "selection")


def header(
    tag: str,
    fits: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
    trial: int,
    qrels: str,
    source: str,
    measures: Sequence[str],
) -> str:
    """The header of an exported run, a comment in every line.

    Args:
        tag: the run's name in its lines.
        fits: for each fold, the run's record (:attr:`directrank.study.results.RunResult.record`)
            and the specification of the chosen candidate.
        trial: number of the repetition.
        qrels: name of the file of judgements beside it.
        source: the origin of the collection; empty if it is unknown.
        measures: the metrics by which the run was evaluated.
    """
    record = fits[0][0]
    environment = record["environment"]
    collection = {"name": record["data"]["title"], **({"source": source} if source else {})}
    libraries = {"directrank": environment["directrank"], **environment["packages"]}
    cpu = {"model": environment["processor"], "number of cores": environment["cores"]}
    content = {
        "schema-version": 0.1,
        "run-version": 1.0,
        "tag": tag,
        "platform": {
            "hardware": {"cpu": cpu},
            "operating system": {"kernel": environment["platform"]},
            "software": {
                "libraries": {
                    "python": [f"{name}=={version}" for name, version in libraries.items()]
                }
            },
        },
        "research goal": {"evaluation": {"reported measures": list(measures)}},
        "implementation": {"source": {"lang": ["python"], "commit": environment["revision"]}},
        "method": {
            "automatic": True,
            "score ties": "by the order of the collection's lists; the scores below have none",
            "retrieval": [
                {
                    "name": one["name"],
                    "method": f"directrank.{candidate['learner']}",
                    "params": {
                        **{key: candidate[key] for key in _METHOD if key in candidate},
                        "fold": candidate["fold"],
                        "trial": trial,
                    },
                }
                for one, candidate in fits
            ],
        },
        "actor": {"role": "reproducer"},
        "data": {
            "test collection": {**collection, "qrels": qrels},
            "training data": [dict(collection)],
        },
    }
    text = yaml.safe_dump(content, sort_keys=False, width=4096)
    lines = ["ir_metadata.start", *text.splitlines(), "ir_metadata.end"]
    return "".join(f"# {line}\n" for line in lines)
