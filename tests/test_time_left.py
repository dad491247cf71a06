"""What is done of each stage, from which follows the time left of it."""

from contextlib import contextmanager

from small import small_sample
from support import checkers

import daskls
from daskls.run.progress import StageClock


def test_every_stage_of_a_choice_counts_what_is_done(monkeypatch):
    small_sample(monkeypatch, 500)
    seen, stage = [], StageClock.stage

    @contextmanager
    def watched(self, name, total, count):
        with stage(self, name, total, count):
            yield
            seen.append((name, count and min(count(), total)))

    monkeypatch.setattr(StageClock, "stage", watched)
    X, y = checkers(2500)
    daskls.VoronoiSVC(300, feature_coding="none", kernel="rbf", random_state=0).fit(X, y)
    names, counts = zip(*seen, strict=True)
    # The race, then the decision on regions.
    assert names == ("sample", "scale", "regions", "scale", "regroup", "train")
    assert counts[0] is None
    assert min(counts[1:]) > 0
