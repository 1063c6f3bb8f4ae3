"""A fit that takes longer than the queue allows: warned, saved, back in the queue, resumed.

    tests/slurm/cluster.sh up
    python tests/slurm/limit.py
    tests/slurm/cluster.sh down

One fit goes through Slurm with a time limit that it cannot keep, and once without either. Ends
with 0 if Slurm had to start it again and what it left is the same, byte for byte.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from compare import ONE_NODE, ROOT
from compare import run as run_edition

from directrank.cost.predict import planned_seconds
from directrank.edition.batches import batches
from directrank.edition.plan import load
from directrank.study.results import FITS, MODELS, PER_QUERY

EDITION = {
    "edition": "limit",
    "datasets": {
        "web30k": {
            "source": "standin",
            "settings": {"queries": {"train": 60, "vali": 20, "test": 20}, "mean_length": 40},
        }
    },
    "papers": {
        "bruch2019": {
            "products": ["table1"],
            "experiments": ["table1_web30k"],
            "variants": {"table1_web30k": ["ApproxNDCG"]},
        }
    },
}


def edition(folder: Path, epochs: int) -> Path:
    """The edition of one run of so many epochs, as a file."""
    content = yaml.safe_load((ROOT / "tests/editions/tiny.yaml").read_text(encoding="utf-8"))
    content |= EDITION
    content["overrides"] = [
        {"set": {"trials": 1, "training.max_epochs": epochs, "training.patience": None}},
        {"set": {"training.batch_queries": 4, "model.hidden": [64, 64]}},
    ]
    path = folder / "limit.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def restarts(folder: Path) -> int:
    """How often Slurm has started the fit again."""
    command = ["scontrol", "--oneliner", "show", "jobs"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line for line in said.splitlines() if f"{folder}/slurm/" in line]
    return max(int(number) for line in lines for number in re.findall(r"Restarts=(\d+)", line))


def main() -> int:
    """Compare; 0 if all is the same and the limit was met, 1 if not."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epochs", type=int, default=9000)
    parser.add_argument("--minutes", type=int, default=3, help="the queue's limit (default: 3)")
    parser.add_argument("--warning", type=int, default=60, help="seconds before (default: 60)")
    parser.add_argument("--folder", type=Path, help="keep everything here (default: nowhere)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="limit-") as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        config = edition(folder, options.epochs)
        plan = load(yaml.safe_load(config.read_text(encoding="utf-8")), ROOT)
        (run,) = plan.runs
        target = f"results/limit/runs/{run}"
        ((name, batch),) = batches(plan, planned_seconds(plan), 60).items()
        rule = "fit_long" if batch.is_long else "fit"
        extra = f"{rule}:slurm_extra='--signal=TERM@{options.warning}'"
        limits = ["--set-resources", f"{rule}:runtime={options.minutes}", extra]
        file = f"results/limit/batches/{name}.json"
        run_edition(folder / "here", config, "default", file, "--cores=2")
        seconds = run_edition(
            folder / "slurm", config, "slurm", file, "--cores=2", *ONE_NODE, *limits
        )
        times = restarts(folder)
        names = [PER_QUERY, FITS, f"{MODELS}/0.safetensors"]
        results = [
            [(folder / side / target / name).read_bytes() for name in names]
            for side in ("here", "slurm")
        ]
        different = [here != there for here, there in zip(*results, strict=True)].count(True)
    print(
        f"{seconds:.0f} s through Slurm, {times} restarts, {different} of {len(names)} files differ"
    )
    return int(bool(different) or not times)


if __name__ == "__main__":
    sys.exit(main())
