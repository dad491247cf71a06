"""The expected cost of a fit, and how people read it."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from daskls.plan.bundles import Resources
from daskls.plan.checks import mib
from daskls.plan.exchange import ExchangePlan
from daskls.plan.prediction import PredictionPlan


@dataclass(frozen=True)
class FitCost:
    """The expected cost of training, once rows are regrouped.

    `n_tasks` train, 0 where only predictions do; `nbytes` is the peak of the largest.
    `model_nbytes` is an upper bound; `client_nbytes` are held beside the sample.
    """

    n_tasks: int
    n_models: int
    nbytes: int
    model_nbytes: int
    client_nbytes: int = 0


@dataclass(frozen=True)
class FitPlan:
    """The expected cost of a fit, and what it would refuse.

    `n_tasks` read blocks, regroup rows and train; what all cells share takes some hundred more.
    Bytes are projected peaks: of the largest task, of the client without its baseline, of a worker
    process with one slot and its baseline; those of the model are an upper bound. `prediction` is
    that of as many rows. `refusals` name the parameter to change, `notes` the assumptions.
    """

    estimator: str
    n_rows: int
    n_features: int
    n_tasks: int
    n_bundles: int
    n_models: int
    resources: Resources
    task_nbytes: int
    client_nbytes: int
    worker_nbytes: int
    exchange: ExchangePlan
    model_nbytes: int
    prediction: PredictionPlan
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.estimator}: {self.n_rows:,} rows, {self.n_features} features"

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Yield names and texts: the sizes, the refusals and the assumptions."""
        exchange, may_use = self.exchange, mib(self.resources.task_nbytes)
        yield "tasks", f"{self.n_tasks:,}, {self.n_bundles:,} of them train"
        yield "models", f"{self.n_models:,}"
        yield "largest task", f"{mib(self.task_nbytes)} of {may_use} that a task may use"
        yield "client", f"{mib(self.client_nbytes)} on top of what it holds"
        yield "worker with one slot", mib(self.worker_nbytes)
        yield "exchange", f"{mib(exchange.nbytes)}, {exchange.requests:,} reads and writes"
        yield "model", f"at most {mib(self.model_nbytes)}"
        yield "prediction", f"reads at most {mib(self.prediction.nbytes)} for as many rows"
        yield from (("refused", text) for text in self.refusals)
        yield from (("assumed", text) for text in self.notes)

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"{name:22}{text}" for name, text in self.pairs())])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
