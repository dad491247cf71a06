"""The demo in small, and its memory measurement."""

import pytest
from support import run_cli

import daskls


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::daskls.GridEdgeWarning")
def test_a_small_demo_prints_its_figures_and_draws(tmp_path):
    out = tmp_path / "out"
    told = run_cli("demo", "--rows", 6000, "--output", out, "--workers", 1, "-q").stdout
    assert "88.59 %, the best possible" in told
    assert "PSS" in told
    accuracy = float(told.split("accuracy")[1].split("%")[0])
    assert 80 < accuracy < 92
    model = daskls.load(out / "model.zarr")
    assert model.n_cells_ == 6
    assert len(model.C) == len(model.gamma) == 4
    picture = (out / "demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000


def test_the_demo_replaces_nothing_foreign(tmp_path):
    (tmp_path / "train.zarr").mkdir()
    (tmp_path / "train.zarr" / "precious").write_text("keep")
    run_cli("demo", "--rows", 1000, "--output", tmp_path, "--workers", 1, "-q", code=1)
    assert (tmp_path / "train.zarr" / "precious").exists()
