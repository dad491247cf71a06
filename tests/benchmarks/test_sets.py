import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, truncnorm

from benchmarks import mixed
from benchmarks.suite import packaged, sets
from benchmarks.suite.sets import Ndcc, Rare, TwoGaussians

N_ROWS = 40_000


def agree(rightly, expected):
    """Tell whether a share of rows is the expected one, but for chance."""
    return abs(np.mean(rightly) - expected) <= 3.5 * (expected * (1 - expected) / N_ROWS) ** 0.5


@pytest.mark.parametrize("d", [4, 8, 16])
def test_two_gaussians(d):
    X, y = TwoGaussians(d).rows(0, N_ROWS, 11)
    sd = 8**-0.5
    wide = truncnorm(-2, 2).logpdf(X).sum(1) + np.log(0.6)
    narrow = truncnorm(-2 / sd, 2 / sd, scale=sd).logpdf(X[:, 1:]).sum(1) + np.log(0.4)
    narrow += truncnorm(-3 / sd, 1 / sd, loc=1, scale=sd).logpdf(X[:, 0])
    assert agree((wide > narrow) == (y > 0), TwoGaussians(d).bayes_accuracy())
    # The mean of the smaller posterior has a far smaller error than counted mistakes.
    smaller = 1 / (1 + np.exp(np.abs(wide - narrow)))
    error = smaller.std() / N_ROWS**0.5
    assert abs(smaller.mean() - 1 + TwoGaussians(d).bayes_accuracy()) <= 3.5 * error


def test_ndcc():
    X, y = Ndcc().rows(0, N_ROWS, 11)
    centers, factors, positive = sets.ndcc_clusters()
    clusters = zip(centers, factors, strict=True)
    densities = np.array([multivariate_normal(mean, L @ L.T).pdf(X) for mean, L in clusters])
    above = densities[positive].sum(0) > densities[~positive].sum(0)
    assert agree(above == (y > 0), Ndcc().bayes_accuracy())


def test_rare():
    X, y = Rare(20).rows(0, N_ROWS, 5)
    hidden = X @ sets.rare_directions(20)
    moved = np.sign(hidden[:, 1:4].prod(axis=1)) * hidden[:, 0]
    rightly = (1.5 * moved - 1.125 + np.log(0.02 / 0.98) > 0) == (y > 0)
    assert agree(rightly, Rare(20).bayes_accuracy())
    # Over all thresholds none is better, within its error.
    products = [
        np.mean(moved[y == 1] > t) * np.mean(moved[y == -1] <= t) for t in np.linspace(-1, 3, 81)
    ]
    assert max(products) == pytest.approx(sets.RARE_BEST_PRODUCT, abs=0.03)


def test_xor():
    X, y = sets.make_xor(1000)
    np.testing.assert_array_equal((X[:, 0] >= 0) == (X[:, 1] >= 0), y > 0)


def test_packaged_rows_have_dates_and_names_and_no_rare_class(monkeypatch):
    numbers = np.arange(100)
    whole = pd.DataFrame({"rownames": numbers, "id": numbers, "id_of": numbers % 7})
    whole = whole.assign(when="1/2/2026", zip=numbers % 3)
    whole["y"] = ["often", "often", "rare", None, "often"] + ["often", "also"] * 47 + ["often"]
    monkeypatch.setattr(packaged, "read", lambda source: whole)
    for known in (packaged.CLASSES, packaged.TABLES):
        monkeypatch.setitem(known, "birds", packaged.Table("a/b", "y", "id", "when", "zip"))
    mixed.drawn.cache_clear()
    found = packaged.frame("birds")
    mixed.drawn.cache_clear()
    assert list(found) == ["id_of", "when", "zip", "y"]
    assert found.when.unique().tolist() == [pd.Timestamp("2026-01-02")]
    assert sorted(found.zip.unique()) == ["0", "1", "2"]
    assert set(found.y) == {"often", "also"}
