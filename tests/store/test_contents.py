"""The table of what a store holds says what every method writes, and the page is made from it."""

from pathlib import Path

import numpy as np
import pytest
from fixtures.models import MODELS, draw_rows

import daskls
from daskls.store.contents import CONTENTS, find_held, stores_page
from daskls.store.folder import Folder
from daskls.store.groups import open_group, read_attributes
from daskls.store.packs import read_pack

PAGE = Path(__file__).parents[2] / "docs" / "stores.md"
CASES = [case for case in MODELS if case.endswith("-two") or "Landmark" in case]
# Made by nobody here: no method scales features yet, and the lock is of `store/lock.py`.
UNSEEN = {
    ("bundles/*", "scale"),
    ("", ".owner"),
    ("", ".probe-*"),
    ("input-*", "*"),
    ("held-out-*", "*"),
    # Where labels are noise no scale is learned.
    ("regions/steps-thin/*", "factors"),
}


def held_in(store):
    """Yield place, name and values (None of other files) of all that a store holds."""
    for key in store.below():
        if key.startswith("held-out-"):
            # Stores of their own.
            continue
        place, _, name = key.rpartition("/")
        if name == "zarr.json" and read_attributes(store, place) is not None:
            if not place:
                yield place, name, None
            else:
                group = open_group(store, place)
                yield from ((place, n, group.read(n, finite=False)) for n in group.names)
        elif place.startswith(("sampling", "joint", "regions")) or name.endswith(".marker"):
            yield from ((key, n, values) for n, values in read_pack(store, key).items())
        elif place.startswith("exchange"):
            yield place, name, None


def is_kind(held, values):
    """Whether an array is what the table says of it."""
    if values is None:
        return True
    dtypes = ("float32", "float64") if held.dtype == "X" else (held.dtype,)
    return held.dtype == "any" or (values.dtype.name in dtypes and values.ndim == held.n_axes)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Stores of every method, of which nothing was dropped."""
    folder = tmp_path_factory.mktemp("stores")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Folder, "drop", lambda *args, **kwargs: None)
        for case in CASES:
            estimator, labels, params = MODELS[case]
            model = getattr(daskls, estimator)(store=folder / case, random_state=0, **params)
            model.fit(*draw_rows(labels))
        for scale, kind in (("learned", daskls.VoronoiSVC), ("spread", daskls.RandomChunkSVC)):
            model = kind(120, loss="squared_error", feature_scale=scale, store=folder / scale)
            model.set_params(probability="isotonic" if scale == "learned" else "sigmoid")
            model.set_params(random_state=0).fit(*draw_rows("three"))
        # As of more rows than a sample holds.
        patch.setattr("daskls.plan.bundles.MIN_SAMPLE", 200)
        patch.setattr("daskls.plan.bundles.SAMPLED_PER_LEAF", 50)
        dense = daskls.VoronoiSVC(120, store=folder / "dense", random_state=0)
        dense.fit(*draw_rows("three"))
    return [Folder(str(folder / case)) for case in (*CASES, "learned", "spread", "dense")]


def test_the_table_is_what_stores_hold(stores):
    seen = set()
    for store in stores:
        for place, name, values in held_in(store):
            own = [held for held in find_held(place, name) if is_kind(held, values)]
            shown = None if values is None else (values.dtype, values.shape)
            assert own, (store.where(place), name, shown)
            seen.update((held.key, held.name) for held in own)
    # And no row of it is of what nobody writes.
    assert {(held.key, held.name) for held in CONTENTS} - seen == UNSEEN


def test_a_wrong_dtype_or_shape_is_noticed():
    (held,) = find_held("bundles/000000-000003", "gamma")
    assert is_kind(held, np.zeros(3))
    assert not is_kind(held, np.zeros(3, "f4"))
    assert not is_kind(held, np.zeros((3, 1)))
    assert find_held("bundles/000000-000003", "gammas") == []


def test_the_page_is_made_from_the_table():
    assert PAGE.read_text(encoding="utf-8") == stores_page(), "make docs-stores writes it anew"
