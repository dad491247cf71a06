"""`PYTHONPATH=tests python -m chaos NAME`: run a campaign, or one trial of it again."""

import argparse
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CAMPAIGNS = ("bits", "memory", "stores", "faults", "buckets")
RESULTS = ROOT / "benchmarks" / "results"


def main(arguments=None):
    """Read the command line, run, write the table; return how many trials failed."""
    options = parse(arguments)
    # OpenMP's pool of threads does not survive a fork: trials run in forks of this process.
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    names = CAMPAIGNS if options.campaign == "all" else [options.campaign]
    return sum(run_one(name, options) for name in names)


def run_one(name, options):
    """Run one campaign; return how many of its trials failed."""
    if name in ("faults", "stores", "buckets"):
        return run_trials(name, options)
    # Imported here, so that what is set above holds.
    from chaos import bits, memory

    run = {"bits": bits.run, "memory": memory.run}[name]
    return run(options.folder, options.results)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("campaign", choices=["all", *CAMPAIGNS])
    parser.add_argument("--trials", type=int, default=480, help="how many, from number 0")
    parser.add_argument("--only", type=int, nargs="+", help="these numbers, and print them")
    parser.add_argument("--like", nargs="+", help="kinds, stages, estimators: trials of these")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="trials that run at once")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds without progress")
    parser.add_argument("--folder", default=f"/tmp/daskls-chaos-{os.getuid()}")
    parser.add_argument("--results", default=RESULTS, help="folder of the table and the journal")
    parser.add_argument("--short", action="store_true", help="less data, one session")
    parser.add_argument("--keep", default=None, help="folder for copies of damaged stores")
    return parser.parse_args(arguments)


def campaign_of(name, options):
    """Return the campaign, with nothing trained yet."""
    if name == "stores":
        from chaos.stores import StoreCampaign

        kind = StoreCampaign
    elif name == "buckets":
        from chaos.buckets import BucketCampaign

        kind = BucketCampaign
    else:
        from chaos.faults import FaultCampaign

        kind = FaultCampaign
    settings = options.folder, options.seed, options.limit, options.keep
    return kind(*settings, is_short=options.short)


def run_trials(name, options):
    """Run the trials that the journal lacks, some at once; write the table."""
    from chaos.outcomes import Journal, has_failed

    campaign = campaign_of(name, options)
    if options.only:
        campaign.prepare({campaign.draw(trial)[2] for trial in options.only})
        records = [campaign.run(trial) for trial in options.only]
        print(json.dumps(records, indent=1))
        return sum(map(has_failed, records))
    results = Path(options.results)
    journal = Journal(results / f"chaos_{name}.jsonl")
    numbers = sorted(set(range(options.trials)) - journal.done(options.seed))
    if options.like:
        numbers = [n for n in numbers if set(campaign.draw(n)[:3]) & set(options.like)]
    campaign.prepare({campaign.draw(trial)[2] for trial in numbers})
    run_all(campaign, journal, numbers, options.jobs)
    records = Journal(journal.path).records
    write_table(results / f"chaos_{name}.md", campaign, records)
    return sum(map(has_failed, records))


def run_all(campaign, journal, numbers, n_jobs):
    """Run the trials, in this process or in forks of it."""

    def run(trial):
        journal.add(campaign.run(trial))

    if n_jobs > 1:
        return in_shares(run, numbers, n_jobs)
    try:
        for trial in numbers:
            run(trial)
    finally:
        campaign.close()


def in_shares(run, numbers, n_jobs):
    """Run the numbers in forks of this process, each with its share of them."""
    children = []
    for job in range(n_jobs):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                for number in numbers[job::n_jobs]:
                    run(number)
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(pid)
    codes = [os.waitpid(pid, 0)[1] for pid in children]
    if any(codes):
        raise RuntimeError(f"shares of the campaign ended with {codes}")


def write_table(path, campaign, records):
    """Write the tables of a campaign."""
    from chaos.outcomes import failure_line, has_failed, table

    parts = [table(records, by) for by in ("kind", "estimator", *campaign.TABLES)]
    failed = [record for record in records if has_failed(record)]
    if failed:
        parts.append("## What failed\n")
        parts += [failure_line(record) for record in failed]
    path.write_text(f"# {campaign.TITLE}\n\n{campaign.about()}\n\n" + "\n".join(parts))
    print(path.read_text().partition("## What failed")[0], f"{len(failed)} failed: see {path}")


if __name__ == "__main__":
    sys.exit(min(main(), 100))
