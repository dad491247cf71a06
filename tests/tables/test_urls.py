"""Tables behind URLs are copied, and are then what they are as files."""

import gc
import http.server
import threading
from functools import partial

import dask
import fsspec
import numpy as np
import pandas as pd
import pytest
import s3

import daskls
from daskls import DasklsError, DataError, TableEncoder
from daskls.datasets import convert

RNG = np.random.default_rng(0)
N = 80
ROWS = pd.DataFrame({"a": RNG.random(N), "b": RNG.random(N), "kind": ["x", "y"] * (N // 2)})
ROWS["t"] = np.where(ROWS.a > ROWS.b, "over", "under")
ROWS = ROWS.sort_values("kind", ignore_index=True)
SMALL = {"cell_size": 200, "C": 1.0, "gamma": 5.0, "random_state": 0}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    ROWS.to_csv(folder / "rows.csv", index=False)
    ROWS.to_csv(folder / "rows.csv.gz", index=False)
    ROWS.to_parquet(folder / "rows.parquet")
    ROWS.to_parquet(folder / "table", partition_cols=["kind"])
    for i, part in enumerate(np.array_split(np.arange(N), 11)):
        (folder / "parts").mkdir(exist_ok=True)
        ROWS.iloc[part].to_csv(folder / "parts" / f"part-{i}.csv", index=False)
    (folder / "parts" / "README.md").write_text("no table")
    return folder


@pytest.fixture(scope="module")
def site(files):
    """The URL of the folder, over HTTP."""
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(files))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def bucket(files, s3_endpoint):
    """The URL of the folder, in a bucket."""
    client = s3.client(s3_endpoint)
    for path in files.rglob("*.*"):
        if path.is_file():
            client.upload_file(str(path), s3.BUCKET, f"urls/{path.relative_to(files)}")
    return f"s3://{s3.BUCKET}/urls"


@pytest.fixture(autouse=True)
def folder_of_copies(tmp_path):
    """Copies go where Dask keeps temporary data, and do not stay there."""
    with dask.config.set({"temporary-directory": str(tmp_path / "copies")}):
        yield
    gc.collect()
    left = [path.name for path in (tmp_path / "copies").rglob("*")]
    assert not [name for name in left if name.startswith(("rows.", "part-", "kind="))]


def check(url, tmp_path):
    """Compare what becomes of a URL with what becomes of the rows."""
    model = daskls.VoronoiSVC(**SMALL).fit(url, "t")
    wanted = daskls.VoronoiSVC(**SMALL).fit(ROWS, "t")
    np.testing.assert_array_equal(model.decision_function(url), wanted.decision_function(ROWS))
    assert model.score(url) == wanted.score(ROWS)
    assert model.plan(url, "t").n_features == wanted.plan(ROWS, "t").n_features
    made = convert(url, tmp_path / "d", label="kind")
    assert np.array(made.classes)[made.y[:]].tolist() == ROWS.kind.tolist()


@pytest.mark.parametrize("name", ["rows.csv?version=2", "rows.csv.gz", "rows.parquet"])
def test_a_file_behind_https_is_a_table(name, site, tmp_path):
    check(f"{site}/{name}", tmp_path)


@pytest.mark.parametrize(
    "name", ["rows.csv", "rows.parquet", "table", "table/kind=*", "parts/p*.csv"]
)
def test_files_in_a_bucket_are_a_table(name, bucket, tmp_path):
    check(f"{bucket}/{name}", tmp_path)


def test_a_url_of_fsspec_is_a_table(tmp_path):
    with fsspec.open("memory://urls/rows.csv", "w") as file:
        ROWS.to_csv(file, index=False)
    check("memory://urls/rows.csv", tmp_path)


def test_what_is_not_behind_a_url_is_one_sentence(site, bucket, tmp_path):
    model = daskls.VoronoiSVC(**SMALL).fit(ROWS, "t")
    for url, words in (
        (f"{site}/none.csv", "none.csv cannot be read: HTTP Error 404.*check the URL"),
        ("http://127.0.0.1:1/x.csv", "x.csv cannot be read: .*refused.*check the URL"),
        ("nowhere://a/x.csv", "x.csv cannot be read: .*nowhere.*check the URL"),
        (f"{bucket}/none.csv", "There is no table at s3.*none.csv. Check the URL"),
    ):
        for call in (model.predict, model.score, lambda url: convert(url, tmp_path / "d")):
            with pytest.raises(DataError, match=words):
                call(url)
    with pytest.raises(DasklsError, match=r"There is no bucket for s3://nobody/rows.csv"):
        model.predict("s3://nobody/rows.csv")


def test_each_call_reads_what_is_there_now(files, site):
    path = files / "now.csv"
    ROWS.to_csv(path, index=False)
    first = TableEncoder("t").fit(f"{site}/now.csv").table_
    ROWS.assign(a=-ROWS.a).to_csv(path, index=False)
    assert TableEncoder("t").fit(f"{site}/now.csv").table_ != first
