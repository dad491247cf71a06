"""A bucket that fails, one that is not there, and what of it a fit reads."""

import os
import random
from contextlib import nullcontext, suppress

import numpy as np
import pytest
from s3_front import KINDS, in_front
from support import HERE, few, run_cli, small_svc, tiny_blocks

import daskls
from daskls import StoreError
from daskls.plan import prediction
from daskls.store import bucket
from daskls.store.arrays import find_array, new_output
from daskls.store.artifact import OPENED_NBYTES, SUMMED_NBYTES, read_arrays, write_artifact
from daskls.store.bucket import Bucket
from daskls.store.dataset import DatasetWriter, open_dataset
from daskls.store.exchange import Exchange, Rows
from daskls.store.objects import CLAIM

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3)).astype("f4")
Y = (X[:, 0] + X[:, 1] ** 2 > 0.8).astype(int)


@pytest.fixture
def front(s3_endpoint, monkeypatch):
    with in_front(s3_endpoint) as front:
        monkeypatch.setenv("AWS_ENDPOINT_URL", front.endpoint)
        yield front


# --- one that fails


@pytest.mark.parametrize("kinds", few([list(KINDS), *([kind] for kind in KINDS)]), ids="-".join)
def test_a_fit_while_requests_fail(front, bucket_url, kinds):
    expected = small_svc().fit(X, Y).decision_function(X)
    small_svc(store=bucket_url).fit(X, Y)
    undisturbed = Bucket(bucket_url).below()
    Bucket(bucket_url).drop("")
    draw = random.Random(1)
    front.fault = lambda *_: draw.choice(kinds) if draw.random() < 0.1 else None
    # An answer that ends too early is no answer; the library gives up on some of these.
    with suppress(StoreError) if "truncated" in kinds else nullcontext():
        small_svc(store=bucket_url).fit(X, Y)
    assert sum(front.spoiled.values()) > 1
    front.fault = None
    model = small_svc(store=bucket_url).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), expected)
    assert Bucket(bucket_url).below() == undisturbed


@pytest.mark.parametrize("fault", ["lost answer", "twice"])
def test_a_put_that_arrived_is_ones_own(front, bucket_url, fault):
    store, key, faults = Bucket(bucket_url), "kind/000000-000000", iter([fault])
    # The second try of the same request finds the object of the first.
    front.fault = lambda method, path: next(faults, None) if method == "PUT" else None
    assert write_artifact(store, key, {"attempt": np.arange(3)})
    assert front.spoiled[fault] == 1
    assert not write_artifact(store, key, {"attempt": np.arange(4)})
    assert read_arrays(store, key)["attempt"].tolist() == [0, 1, 2]


def test_rows_are_read_once_and_alone(front, bucket_url):
    n, n_leaves, blocks = 20_000, 16, 5
    own = n // blocks
    rows = Rows(rng.random((own, 8), "f4"), np.zeros(own, "i4"), np.ones(own), np.arange(own))
    exchange = Exchange(f"{bucket_url}/x", blocks, n_leaves, 8, "<f4")
    exchange.create([own] * blocks)
    leaves = rng.integers(0, n_leaves, own)
    for i in range(blocks):
        exchange.write_block(i, rows, [leaves], 7)
    exchange.write_manifest()
    front.kind_of = lambda path: "rows" if "/block-" in path else "other"
    front.forget()
    found = sum(len(exchange.read_leaf(leaf).X) for leaf in range(n_leaves))
    assert found == n
    nbytes = n * (8 * 4 + 4 + 8 + 8)
    assert front.requests["GET", "rows"] == blocks * n_leaves
    # Of whole checksummed ranges.
    summed = blocks * n_leaves * SUMMED_NBYTES
    assert nbytes <= front.received["GET", "rows"] <= nbytes + 2 * summed
    # Who goes on with it reads beginnings, and the sums, which come last.
    front.forget()
    assert [exchange.find_block(i) for i in range(blocks)] == [7] * blocks
    assert front.requests["GET", "rows"] == 2 * blocks
    assert front.received["GET", "rows"] <= blocks * (OPENED_NBYTES + 100)


# --- one that is not there


def set_retries(patch, n):
    patch.setattr(bucket, "MAX_RETRIES", n)
    bucket._connected.cache_clear()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({}, r"There is no model at s3://models/.*Give a path"),
        ({"url": "s3://nobody/m"}, r"no bucket for s3://nobody/m.*\(NoSuchBucket: .*Correct its"),
        ({"url": "s3:///m"}, r"'s3:///m' names no bucket. Give it as s3://<bucket>/<path"),
        ({"AWS_ALLOW_HTTP": "false"}, "endpoint of s3://.* is plain http .*AWS_ALLOW_HTTP=true"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, r"cannot be reached .*Check the network"),
        ({"fault": "skewed"}, "do not allow this .*a wrong clock gives the same error"),
        ({"fault": "denied"}, "do not allow this .*Allow them to get, put, delete and list"),
        ({"fault": "elsewhere"}, "lies in another region .*Set AWS_REGION"),
        ({"AWS_ACCESS_KEY_ID": None}, "no credentials for s3://.*Set AWS_ACCESS_KEY_ID"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_is_wrong_is_said_in_one_sentence(front, bucket_url, change, match, monkeypatch):
    set_retries(monkeypatch, 0)
    url, fault = change.pop("url", bucket_url), change.pop("fault", None)
    front.fault = fault and (lambda *_: fault)
    # The instance that would give credentials is not there.
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://169.254.169.254:9")
    for name, value in change.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name)
    with pytest.raises(StoreError, match=match) as error:
        daskls.load(url)
    assert len(str(error.value).splitlines()) == 1


# Of threads in this process.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_of_a_process_that_uses_a_bucket_does_not_wait_for_ever(bucket_url):
    store = Bucket(bucket_url)
    store.put("a", b"1")
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            store.read("a", 1)
        except StoreError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    told = "was forked from one that has used a bucket before. Start it by 'spawn'"
    with os.fdopen(reader) as file:
        assert told in file.read()


# --- data


def write_rows(url, **options):
    with DatasetWriter(url, 3, "f4", classes=[5, 6], **options) as writer:
        writer.append(X, Y)


def test_data_and_predictions_by_url(bucket_url, monkeypatch):
    data = f"{bucket_url}-rows"
    write_rows(data)
    assert open_dataset(data).n_rows == len(X)
    with pytest.raises(StoreError, match="already holds a data set; pass overwrite=True"):
        DatasetWriter(data, 3, "f4")
    model = small_svc().fit(data)
    expected = small_svc().fit(X, Y + 5).predict(X)
    np.testing.assert_array_equal(model.predict(X), expected)
    assert model.score(data) == np.mean(expected == Y + 5)
    model.predict_to_zarr(f"{data}/X", f"{bucket_url}-labels")
    np.testing.assert_array_equal(find_array(f"{bucket_url}-labels").read(0, len(X)), expected)
    with pytest.raises(StoreError, match="exists already; give another path"):
        model.predict_to_zarr(f"{data}/X", f"{bucket_url}-labels")
    monkeypatch.setattr(prediction, "GATHERING_SPARES", -1)
    tiny_blocks(monkeypatch, 100 * X.itemsize * X.shape[1])
    model.predict_to_zarr(f"{data}/X", f"{bucket_url}-gathered")
    np.testing.assert_array_equal(find_array(f"{bucket_url}-gathered").read(0, len(X)), expected)
    assert Bucket(f"{bucket_url}-gathered").names() == ["c", "zarr.json"]


@pytest.mark.parametrize("fault", ["denied", "elsewhere", "500", "truncated"])
def test_rows_that_cannot_be_read_are_one_error(front, bucket_url, fault, monkeypatch):
    set_retries(monkeypatch, 1)
    write_rows(bucket_url, chunk_rows=100)
    front.fault = lambda method, path: fault if "/X/c/" in path else None
    with pytest.raises(StoreError, match=r"s3://\S*/X .* then call again\.$"):
        small_svc().fit(bucket_url)
    bucket._connected.cache_clear()


def test_of_two_writers_to_one_url_one_is_refused(bucket_url):
    with Bucket(bucket_url).building():
        told = "Another call is about to write to s3://.* remove the object .claim"
        with pytest.raises(StoreError, match=told), new_output(bucket_url, (3,), "i8", 3):
            pass
        with pytest.raises(StoreError, match="already holds an incomplete data set"):
            DatasetWriter(bucket_url, 3, "f4")
    with new_output(bucket_url, (3,), "i8", 3) as output:
        output.write(0, np.arange(3))
    assert Bucket(bucket_url).names() == ["c", "zarr.json"]


def test_what_a_writer_left_that_was_killed_as_it_began_is_replaced(bucket_url):
    Bucket(bucket_url).put(CLAIM, b"")
    write_rows(bucket_url, overwrite=True)
    assert Bucket(bucket_url).names() == ["X", "y", "zarr.json"]


def test_the_command_line_in_a_bucket(bucket_url, tmp_path):
    table = tmp_path / "rows.csv"
    rows = np.column_stack([X, Y]).tolist()
    table.write_text("a,b,c,y\n" + "".join(f"{','.join(map(str, row))}\n" for row in rows))
    data, model, out = (f"{bucket_url}-{name}" for name in ("rows", "model", "out"))
    run_cli("convert", table, data, "--label", "y", "--quiet")
    run_cli("fit", data, model, "--cell-size", "100", "--random-state", "0", *HERE)
    run_cli("predict", model, data, out, *HERE)
    expected = daskls.VoronoiSVC(cell_size=100, random_state=0).fit(X, Y).predict(X)
    np.testing.assert_array_equal(find_array(out).read(0, len(X)).astype(int), expected)
    assert "cells" in run_cli("info", model).output
    assert "300" in run_cli("info", data).output
    refused = run_cli("predict", model, data, f"{bucket_url}.csv", *HERE, code=1)
    assert "is a file in a bucket" in refused.stderr
