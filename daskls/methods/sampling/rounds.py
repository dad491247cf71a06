"""Procedure CGLQ: each round trains an SVM on the rows near the last one's support rows."""

from daskls.methods.sampling.enrich import EnrichJob, merge_round, nearest_of, search_support
from daskls.methods.sampling.parts import has_part, read_part
from daskls.methods.sampling.plan import SEARCHED_ROWS
from daskls.methods.sampling.search import SampleSearch, Step, errors_of, stalls
from daskls.methods.sampling.train import SAMPLES, read_drawn
from daskls.records import Int64

__all__ = ["RoundSearch"]

# The relative fall of the error that a round needs. A second chance gains less than it takes: on
# ijcnn1 errors 2 % smaller for a quarter more time, on three smaller sets the same ones.
LEAST_FALL = 0.01


class RoundSearch(SampleSearch):
    """The rounds: each needs the model of the one before."""

    n_rounds = 10

    def steps(self) -> list[Step]:
        """Train on a subsample, then, round after round, on the rows near its support rows."""
        steps: list[Step] = []
        with self.clock.stage("search", self.n_rounds + 1, self.count_steps):
            for number in range(self.n_rounds + 1):
                if not has_part(self.root, SAMPLES, number, number):
                    self.write_sample(number, *self._sample_round(number, steps))
                found = read_part(self.root, SAMPLES, number, number, ("numbers",))
                steps.append(self.train(number, number, len(found["numbers"]), "lower n_neighbors"))
                if not (number or steps[0].report.n_support):
                    # Another number: the model of the subsample alone has this one.
                    return [self.constant(1, 0)]
                if stalls(errors_of(steps), 1, LEAST_FALL):
                    break
        return steps

    def _sample_round(self, number: int, steps: list[Step]) -> tuple[Int64, Int64]:
        """Return numbers and positions of the rows that a round trains on."""
        draws = self.job.draws
        if number == 0:
            rows, _, positions = read_drawn(self.job, self.drawn, 0, draws.n_sampled)
            return rows.numbers, positions
        k = min(self.sampling.n_neighbors, draws.n_rows - draws.n_validation - 1)
        before, n_support = steps[-1].number, steps[-1].report.n_support
        job = EnrichJob(self.job, before, k)
        kind = nearest_of(before)
        limit = min(self.share_of(n_support), SEARCHED_ROWS)
        self.run(search_support, kind, [1] * n_support, job, limit)
        tiles = self.tiles(kind, n_support)
        return merge_round(before, tiles, self.drawn, self.job)
