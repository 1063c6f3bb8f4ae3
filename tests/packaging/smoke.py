"""What an installed package must do away from the repository: run by its own interpreter.

``PYTHON smoke.py`` in an empty folder. Losses and metrics are tried in every environment; where
the extra ``study`` is installed, a data set is prepared, and a run trained and evaluated on it.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

RUN = {
    "data": {"name": "cubic", "settings": {}},
    "fold": None,
    "filter": {"min_documents": 1, "min_relevant": 0},
    "normalisation": {"name": "none"},
    "learner": "neural",
    "model": {"name": "linear"},
    "loss": {"name": "lambdarank"},
    "selection": {"name": "ndcg", "k": 5},
    "evaluation": [{"name": "ndcg", "k": 5}],
    "training": {"max_epochs": 2, "batch_queries": 4, "optimizer": {"name": "adam", "lr": 0.01}},
    "trials": 1,
}
SETTINGS = {"queries": {"train": 12, "vali": 8, "test": 8}, "documents_per_query": 10}


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The installed command line with these arguments, ended."""
    program = Path(sys.executable).with_name("directrank")
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)


def said_by(*arguments: object) -> str:
    """What the installed command line prints when it succeeds."""
    done = command(*arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def try_losses() -> None:
    """A loss as its formula, one with a compiled loop, and a metric."""
    import torch

    import directrank
    from directrank import losses, metrics, nn

    home = Path(directrank.__file__)
    assert Path(sys.prefix) in home.parents, f"{home} is not what was installed"
    assert directrank.__version__ == importlib.metadata.version("directrank")
    labels = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    for loss in (losses.approx_ndcg, losses.lambdarank):
        scores = torch.tensor([[2.0, 0.5, 1.0], [0.0, 1.0, 9.0]], requires_grad=True)
        loss(scores, labels, mask).sum().backward()
        assert scores.grad is not None
        assert scores.grad.abs().sum() > 0
        assert scores.grad[1, 2] == 0, "padding has a gradient"
    mean = nn.ApproxNDCG(alpha=5.0)(scores.detach(), labels, mask)
    assert -1 < mean < 0, mean
    ndcg = metrics.ndcg(scores.detach(), labels, mask, k=2)
    assert ((ndcg > 0) & (ndcg < 1)).all(), ndcg


def try_study(folder: Path) -> None:
    """From the catalogue to the means of a run."""
    listed = said_by("data", "list")
    assert "\nohsumed " in listed, listed
    missing = command("prepare", "ohsumed", "--raw", folder, "--out", folder / "ohsumed")
    assert missing.returncode == 2, missing.stdout
    assert "OHSUMED" in missing.stderr, missing.stderr
    assert "Traceback" not in missing.stderr, missing.stderr
    settings, run = folder / "settings.json", folder / "run.json"
    settings.write_text(json.dumps(SETTINGS), encoding="utf-8")
    run.write_text(json.dumps(RUN | {"data": {"name": "cubic", "settings": SETTINGS}}))
    said_by("prepare", "cubic", "--settings", settings, "--out", folder / "cubic")
    said_by("fit", run, "--data", folder / "cubic", "--out", folder / "results", "--device", "cpu")
    assert "ndcg@5" in said_by("evaluate", folder / "results")


def main() -> None:
    """Try everything that this environment has."""
    assert "prepare" in said_by("--help")
    try_losses()
    tried = "losses, metrics"
    if importlib.util.find_spec("pandas"):
        try_study(Path.cwd())
        tried += ", the study's commands"
    version = ".".join(map(str, sys.version_info[:3]))
    print(f"directrank {importlib.metadata.version('directrank')} on Python {version}: {tried}")


if __name__ == "__main__":
    main()
