"""Votes and decisions of pairs of classes: scikit-learn's, and those of plain loops."""

import naive
import numpy as np
import pytest
from sklearn.utils.multiclass import _ovr_decision_function

from daskls.kernels.decisions import (
    ABSENT_SCORE,
    VoteCounts,
    expand_pairs,
    expand_scores,
    pair_decisions,
    pairs_of,
    vote_scores,
    write_winners,
)


@pytest.mark.parametrize("n_classes", [2, 3, 5, 7])
def test_scores_and_decisions_of_pairs_are_scikit_learns_and_a_loops(n_classes):
    rng = np.random.default_rng(n_classes)
    decisions = rng.normal(size=(200, n_classes * (n_classes - 1) // 2)) * 4
    decisions[rng.random(decisions.shape) < 0.1] = 0.0
    scores = vote_scores(decisions, n_classes)
    expected = _ovr_decision_function(decisions > 0, decisions, n_classes)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    winners = [naive.one_vs_one_winner(row, n_classes) for row in decisions]
    np.testing.assert_array_equal(scores.argmax(axis=1), winners)
    counts = rng.integers(1, 5, n_classes)
    counts[0] = 0  # a class may have no support row
    ptr = np.concatenate([[0], np.cumsum(counts)])
    K = rng.normal(size=(4, ptr[-1]))
    coef = rng.normal(size=(n_classes - 1, ptr[-1])).astype(np.float32)
    out = np.full((4, decisions.shape[1]), np.nan)
    pair_decisions(K, coef, ptr, out)
    np.testing.assert_allclose(out, naive.pair_decisions(K, coef, ptr), rtol=1e-12)


def test_ties_go_to_the_confidence_and_then_to_the_first_class():
    # 0 beats 1, 1 beats 2, 2 beats 0: one vote each.
    cycle = vote_scores(np.array([[-1.0, 1.0, -1.0], [-1.0, 3.0, -1.0], [-5.0, 1.0, -1.0]]), 3)
    assert cycle.argmax(axis=1).tolist() == [0, 2, 0]
    assert cycle[0, 0] == cycle[0, 1] == cycle[0, 2]
    # A decision of exactly 0 speaks for the first class.
    assert vote_scores(np.zeros((1, 1)), 2).argmax() == 0


def test_spread_pairs_clips_and_knows_who_is_absent():
    spread = expand_pairs(np.array([[0.5, -7.0, 3.0], [-0.25, 0.0, 1.0]]), np.array([0, 2, 3]), 5)
    told = {(0, 2): [0.5, -0.25], (0, 3): [-1.0, 0.0], (1, 4): [0.0, 0.0]}
    # Of a pair of which one class is there, that one wins.
    won = {pair: [1.0 if pair in ((1, 2), (1, 3), (2, 3)) else -1.0] * 2 for pair in pairs_of(5)}
    assert dict(zip(pairs_of(5), spread.T.tolist(), strict=True)) == {**won, **told}
    assert expand_pairs(None, np.array([1]), 2).tolist() == [[1.0]]
    assert expand_pairs(None, np.array([0]), 3).tolist() == [[-1.0, -1.0, 0.0]]


def test_absent_classes_score_below_every_present_one():
    scores = vote_scores(np.full((1, 3), -1e12), 3)
    spread = expand_scores(scores, np.array([1, 3, 4]), 6)
    assert spread.shape == (1, 6)
    np.testing.assert_array_equal(spread[:, [1, 3, 4]], scores)
    np.testing.assert_array_equal(spread[:, [0, 2, 5]], ABSENT_SCORE)
    assert -np.inf < ABSENT_SCORE < scores.min()


@pytest.mark.parametrize("k", [3, 5])
def test_winners_are_the_ballots(k):
    rng = np.random.default_rng(2)
    n, h = 3, 50
    parts = rng.normal(size=(k, n, k - 1, h)).astype(np.float32)
    # Whole numbers tie.
    parts[:, 0] = rng.integers(-1, 2, parts[:, 0].shape)
    offsets = rng.normal(size=(n, k * (k - 1) // 2)).astype(np.float32)
    offsets[0] = 0.0
    winners = np.full((n, h), -1)
    write_winners(parts, offsets, winners)
    for s in range(n):
        ballot = VoteCounts(h, k)
        for p, (a, b) in enumerate(pairs_of(k)):
            ballot.add(a, b, parts[a, s, b - 1] + parts[b, s, a] + offsets[s, p])
        np.testing.assert_array_equal(winners[s], ballot.scores().argmax(axis=1))
