"""The contract of a method: fitting, predicting and describing its models.

A method is a frozen record of its parameters beyond the solver's. Its module is light: what trains
is imported by `Method.fit`, so that a process which only predicts never loads the trainers.
"""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from daskls.errors import StoreError
from daskls.partition.base import Partition
from daskls.partition.stored import model_partition
from daskls.plan import Extent, Resources
from daskls.records import Float64, Ints, Reals
from daskls.registry import METHODS, find_entry, load_object
from daskls.store.layout import Root
from daskls.store.reader import ModelReader

if TYPE_CHECKING:
    from daskls.run.contract import Beginning
    from daskls.run.progress import StageClock

__all__ = ["Method", "method_of"]


@dataclass(frozen=True)
class Method(ABC):
    """The contract of all methods.

    Attributes
    ----------
    name : str. In stores, and in the register of methods.
    n_copies : int. How many times a fit writes the rows beside the exchange.
    chosen : tuple of str. Parameters that cells choose by cross-validation.
    is_local : bool. Whether predictions depend on the training rows near a query alone, so that a
        part of space at full density is as good as all of it.
    has_probabilities : bool. Whether scores are probabilities by themselves, without fitted maps.
    knows_held_out : bool. Whether the values of rows without them, where the loss knows them, are
        those of queries.
    has_grids : bool. Whether each cell searches a grid of C and gamma for itself.
    step : str, or None. The quantity that differs from one model to the next where several are
        tried and one is kept.
    """

    name: ClassVar[str]
    n_copies: ClassVar[int] = 0
    chosen: ClassVar[tuple[str, ...]] = ("C", "gamma")
    is_local: ClassVar[bool] = False
    has_probabilities: ClassVar[bool] = False
    knows_held_out: ClassVar[bool] = False
    has_grids: ClassVar[bool] = False
    step: ClassVar[str | None] = None

    def to_json(self) -> dict[str, Any]:
        """Return the parameters as JSON values: what names a fit's store, and what it keeps."""
        return {"name": self.name, **asdict(self)}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """Return the method that `to_json` has written."""
        given = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in values.items()
            if key != "name"
        }
        return cls(**given)

    # --- a fit

    @abstractmethod
    def check(self, extent: Extent, resources: Resources) -> None:
        """Refuse, before any training, tasks that would not fit in memory.

        Called twice: with the sizes that are expected, then with those that were found.

        Raises
        ------
        MemoryPlanError : when a task needs more than it may use. The message names the parameter
            to change.
        """

    @abstractmethod
    def cut(self, begun: "Beginning") -> Partition:
        """Return the partition by which rows are regrouped."""

    @abstractmethod
    def fit(self, begun: "Beginning", clock: "StageClock", client: Any) -> None:
        """Train the parts that the store does not hold yet; write the index of the model last."""

    def clean_up(self, root: Root) -> None:
        """Remove files that a finished model does not need, those of earlier fits too."""
        root.remove_leftovers()

    # --- a model

    @abstractmethod
    def scores(self, reader: ModelReader, X: Reals) -> Float64:
        """Return the scores of rows, (m,) for two classes, (m, k) for more."""

    def for_rows(self, n_rows: int) -> Self:
        """Return the method with parameters capped to the number of rows."""
        return self

    def probabilities(self, reader: ModelReader, scores: Float64) -> Float64:
        """Return the probability of each class, (m, k), by the rows' scores."""
        from daskls.methods.probability import maps_of, probabilities

        return probabilities(maps_of(reader), scores)

    def check_complete(self, root: Root) -> None:
        """Refuse a finished model that lacks a part.

        Raises
        ------
        StoreError : saying which
        """
        self.check_index(ModelReader(root.path))

    def check_index(self, reader: ModelReader) -> None:  # noqa: B027
        """Refuse a model whose index is malformed.

        Raises
        ------
        DamageError
        """

    def has_space(self, reader: ModelReader) -> bool:
        """Whether a model has a partition, which `space` then returns."""
        return "partition" in reader.index.attrs

    def space(self, reader: ModelReader) -> Partition:
        """Return the partition of a model's cells.

        Raises
        ------
        StoreError : when it has none
        """
        return model_partition(reader)

    def agreement(self, reader: ModelReader, X: Reals, codes: Ints, first: int) -> Float64:
        """Return how probable each training row's label is, float64 (m,).

        Parameters
        ----------
        reader : ModelReader. Of a model of these rows.
        X : array (m, d). Training rows.
        codes : int array (m,). Their labels' codes.
        first : int. The global number of the first row.
        """
        raise NotImplementedError

    def progress(self, root: Root) -> str:
        """Describe the progress of a fit that was stopped."""
        return "it has begun"

    def count_open(self, report: Any) -> Any:
        """Return the solves that stopped short of ``tol``, from a model's report."""
        return np.sum(report.n_at_limit)


def method_of(values: dict[str, Any], where: str = "The model") -> Method:
    """Return the method that a store describes.

    Parameters
    ----------
    values : dict. What `Method.to_json` gave.
    where : str. Names the model in an error.

    Raises
    ------
    StoreError : no method of that name
    """
    name = str(values.get("name", ""))
    entry = find_entry(name)
    if entry is None:
        known = ", ".join(repr(entry.name) for entry in METHODS)
        raise StoreError(
            f"{where} was made by the method {name!r}, which this daskls does not know; it knows "
            f"{known}. Upgrade daskls."
        )
    method: Method = load_object(entry.method).from_json(values)
    return method
