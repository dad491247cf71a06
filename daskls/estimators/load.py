"""Open a saved model."""

import os
from typing import Any

from daskls.errors import StoreError
from daskls.estimators.base import LocalEstimator
from daskls.estimators.param import params_from_json
from daskls.methods.base import method_of
from daskls.registry import find_class, load_object
from daskls.store.objects import ModelHandle, store_at
from daskls.store.reader import ModelReader


def load(path: str | os.PathLike[str], *, client: Any = None) -> LocalEstimator:
    """Open a model that `save`, or a fit with ``store=``, wrote.

    Parameters
    ----------
    path : path of the model
    client : distributed Client for predictions, or None for the current scheduler

    Returns
    -------
    estimator : the fitted estimator; it reads local models when they are needed

    Raises
    ------
    StoreError : there is no model, or it is unfinished, damaged or of another format

    Notes
    -----
    A model is data: JSON and arrays. Nothing in it is executed.

    Examples
    --------
    >>> import tempfile, numpy as np, daskls
    >>> X = np.random.default_rng(0).random((300, 2))
    >>> y = X[:, 0] > X[:, 1]
    >>> model = daskls.VoronoiSVC(cell_size=150, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model.zarr")
    ...     same = daskls.load(f"{folder}/model.zarr")
    ...     bool((same.predict(X) == model.predict(X)).all())
    True
    """
    store = store_at(path, what="model")
    reader = ModelReader(store)
    name = reader.meta["estimator"]
    place = find_class(name)
    if place is None:
        raise StoreError(
            f"The model at {store} is a {name}, which this daskls does not know. Upgrade daskls."
        )
    # Check the index on disk: what this process keeps open of the model may be older.
    method_of(reader.method, f"The model at {store}").check_index(reader)
    kind: type[LocalEstimator] = load_object(place)
    estimator = kind(**params_from_json(reader.meta["params"]))
    estimator.set_params(client=client)
    return estimator._adopt(ModelHandle(store.where(), reader.fingerprint))
