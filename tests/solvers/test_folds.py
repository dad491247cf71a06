import numpy as np
import pytest

from daskls.solvers.grid import assign_folds


def mixed_codes(seed=0, m=103):
    return np.random.default_rng(seed).choice([0, 2, 3, 7], m, p=[0.5, 0.3, 0.15, 0.05])


@pytest.mark.parametrize("n_folds", [2, 3, 5, 10])
def test_folds_and_their_classes_are_balanced(n_folds):
    codes = mixed_codes()
    folds = assign_folds(codes, n_folds, (1, 2))
    sizes = np.bincount(folds, minlength=n_folds)
    assert len(sizes) == n_folds
    assert np.ptp(sizes) <= 1
    for code in np.unique(codes):
        assert np.ptp(np.bincount(folds[codes == code], minlength=n_folds)) <= 1


def test_a_class_with_fewer_rows_than_folds_keeps_its_row_order():
    codes = np.array([5, 1, 1, 5, 1, 0, 5, 1])
    folds = assign_folds(codes, 5, (9,))
    # Class 0 takes fold 0, class 1 goes on with 1, 2, 3, 4 and class 5 with 0, 1, 2.
    assert folds.tolist() == [0, 1, 2, 1, 3, 0, 2, 4]


def test_small_classes_do_not_all_begin_at_the_first_fold():
    folds = assign_folds(np.arange(10), 5, (0,))
    assert np.bincount(folds).tolist() == [2] * 5


def test_the_seed_alone_decides():
    codes = mixed_codes()
    first = assign_folds(codes, 5, (3, 4))
    np.testing.assert_array_equal(first, assign_folds(codes, 5, (3, 4)))
    assert (first != assign_folds(codes, 5, (3, 5))).any()
    # Not dealt in row order: rows next to each other are often alike.
    in_order = np.empty(len(codes), int)
    for code in np.unique(codes):
        in_order[codes == code] = np.arange((codes == code).sum()) % 5
    assert (first != in_order).any()


def test_sorting_by_class_keeps_each_rows_fold():
    codes = mixed_codes()
    order = np.argsort(codes, kind="stable")
    folds = assign_folds(codes, 5, (3, 4))
    np.testing.assert_array_equal(assign_folds(codes[order], 5, (3, 4)), folds[order])
