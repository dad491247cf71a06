"""scikit-learn's own checks."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from daskls import (
    KNNSVC,
    FalkSVC,
    KernelKNNClassifier,
    LandmarkSVC,
    LocalSamplingSVC,
    NeighborSamplingSVC,
    RandomChunkSVC,
    VoronoiSVC,
)

EXPECTED = {
    "check_sample_weight_equivalence_on_dense_data": (
        "of VoronoiSVC and RandomChunkSVC: sets `cv` to a list of splits; ours is a number of "
        "folds inside each cell. "
        "Of the methods on neighborhoods: a row that is repeated fills two places of a neighborhood"
        ". Of those on samples: a row that is repeated is drawn as two"
    ),
}


@parametrize_with_checks(
    [
        VoronoiSVC(cell_size=50, C=1.0, gamma=[1e-3, 1.0], cv=2, random_state=0),
        RandomChunkSVC(chunk_size=50, C=1.0, gamma=[1e-3, 1.0], cv=2, random_state=0),
        FalkSVC(20, C=1.0, gamma=0.1, random_state=0),
        LandmarkSVC(2, C=[0.01, 1.0], cv=2, random_state=0),
        KNNSVC(15, random_state=0),
        KernelKNNClassifier(5, random_state=0),
        LocalSamplingSVC(0.8, n_subsamples=2, radius_scale=1.0, random_state=0),
        NeighborSamplingSVC(0.5, random_state=0),
    ],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
