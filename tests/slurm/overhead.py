"""The share of a cluster's time that goes into starting jobs, for the batches of an edition.

    python tests/slurm/overhead.py config/paper.yaml --per-job 20

``compare.py`` measures what a job takes beside its fits; `directrank cost` predicts what these take. Ends with 0 if the share is below ten per cent.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from directrank.cost.estimate import estimate
from directrank.cost.machine import Machine
from directrank.cost.predict import planned_seconds
from directrank.edition.batches import batches
from directrank.edition.plan import load
from directrank.system.schema import read_yaml

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Print the share per data set and in all; 0 if it is below ten per cent."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("--per-job", type=float, required=True, metavar="SECONDS")
    parser.add_argument(
        "--rates", type=Path, required=True, help="of a machine: directrank cost --measure FILE"
    )
    options = parser.parse_args()
    plan = load(read_yaml(options.config), ROOT)
    runs = estimate(plan, Machine.read(options.rates)).runs
    made = batches(plan, planned_seconds(plan), 60 * plan.config["batch_minutes"]).values()
    of_data = Counter(plan.data[batch.data].name for batch in made)
    print(f"{'data':18}{'fits':>6}{'hours':>9}{'jobs':>6}{'starting':>10}{'alone':>8}")
    jobs, hours = 0, 0.0
    for name, part in runs.groupby("data"):
        number = of_data[str(name)]
        seconds = part["seconds"].sum()
        shares = [
            n * options.per_job / (n * options.per_job + seconds) for n in (number, len(part))
        ]
        jobs, hours = jobs + number, hours + seconds / 3600
        line = f"{name:18}{len(part):6}{seconds / 3600:9.1f}{number:6}"
        print(f"{line}{shares[0]:10.1%}{shares[1]:8.1%}")
    spent = jobs * options.per_job / 3600
    share = spent / (spent + hours)
    print(f"all: {len(runs)} fits, {hours:.0f} hours, {jobs} jobs, {share:.2%} for starting them")
    return int(share >= 0.1)


if __name__ == "__main__":
    sys.exit(main())
