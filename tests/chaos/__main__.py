"""`PYTHONPATH=tests python -m chaos`: run the campaign, or one trial of it again."""

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from chaos.faults import FaultCampaign
from chaos.outcomes import Journal, has_failed, write_table

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def main():
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--trials", type=int, default=480, help="how many, from number 0")
    parser.add_argument("--only", type=int, nargs="+", help="these numbers, and print them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="trials that run at once")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds without progress")
    parser.add_argument("--folder", default=f"/tmp/daskls-chaos-{os.getuid()}")
    parser.add_argument("--results", default=RESULTS, help="folder of the table and the journal")
    parser.add_argument("--short", action="store_true", help="less data, no long waits")
    options = parser.parse_args()
    campaign = FaultCampaign(options.folder, options.seed, options.limit, is_short=options.short)
    if options.only:
        campaign.prepare({campaign.draw(trial)[2] for trial in options.only})
        records = [campaign.run(trial) for trial in options.only]
        print(json.dumps(records, indent=1))
        return sum(map(has_failed, records))
    journal = Journal(Path(options.results) / "chaos_faults.jsonl")
    done = {record["trial"] for record in journal.records if record["seed"] == options.seed}
    numbers = sorted(set(range(options.trials)) - done)
    campaign.prepare({campaign.draw(trial)[2] for trial in numbers})
    with ThreadPoolExecutor(options.jobs) as pool:
        for record in pool.map(campaign.run, numbers):
            journal.add(record)
    write_table(journal.path.with_suffix(".md"), campaign.about(), journal.records)
    return sum(map(has_failed, journal.records))


if __name__ == "__main__":
    sys.exit(min(main(), 100))
