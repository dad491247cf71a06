"""What a client on another host does: fits a small estimator in a bucket, or asks a model in one.

    python host_session.py fit ESTIMATOR ROWS STORE SCHEDULER
    python host_session.py predict STORE

Prints a digest of what the model answers.
"""

import hashlib
import sys

from distributed import Client
from small import answers_of, queries, small

import daskls


def digest_of(model):
    """Return a digest of a model's answers."""
    answers = answers_of(model, queries(model.n_features_in_))
    return hashlib.sha256(answers.tobytes()).hexdigest()


def main(what, *args):
    if what == "predict":
        print(digest_of(daskls.load(args[0])), flush=True)
        return
    name, rows, store, scheduler = args
    with Client(scheduler) as client:
        client.wait_for_workers(1, timeout=120)
        model = small(name, store=store, client=client).fit(rows)
        print(digest_of(model), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
