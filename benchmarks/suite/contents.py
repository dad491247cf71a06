"""The papers: which experiment has a table or a figure, and where each part stands."""

from dataclasses import dataclass

__all__ = ["PAPERS", "Item", "Paper"]


@dataclass(frozen=True)
class Item:
    """A table or a figure of a paper, or several that show the same.

    Attributes
    ----------
    names : str. What the paper calls them.
    about : str. What they show, and what ours differs in.
    source : str. The experiment that has it.
    figure : bool. Whether the experiment's figure shows it.
    heading : str. The heading of the report whose tables are shown; none: all tables.
    """

    names: str
    about: str
    source: str
    figure: bool = False
    heading: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper, what of it is reproduced, and where each of its parts stands.

    `parts` are its algorithms, figures and tables in order, each "here: ...", "differs: ..." or
    "cannot: ...".
    """

    title: str
    cited: str
    items: tuple[Item, ...]
    parts: tuple[tuple[str, str], ...]


PAPERS = (
    Paper(
        "Spatial decompositions (VoronoiSVC, RandomChunkSVC)",
        "Thomann, Blaschzyk, Meister, Steinwart: *Spatial decompositions for large scale SVMs*, "
        "AISTATS 2017.",
        (
            Item(
                "Figure 2",
                "Excess risks on two Gaussians as cells shrink: the largest number of rows of a "
                "cell falls as theorem 3.2 says of their radius. The slope so far comes down to "
                "the paper's rate.",
                "learning_rate",
                figure=True,
            ),
            Item(
                "Figures 3 and 4",
                "Test errors and training times by rows and by size of cells. More rows help most, "
                "larger cells little, as in the paper. Of its sets COVTYPE lies here; the others "
                "are higgs-11k (11,000 rows of HIGGS) and ijcnn1.",
                "cell_size",
                figure=True,
            ),
            Item(
                "Figure 3, random chunks",
                "Random chunks gain by their size, hardly by more rows, as in the paper; cells by "
                "rows. Of COVTYPE.",
                "chunks",
                figure=True,
            ),
            Item(
                "Table 2",
                "Minutes of training with 10 x 10 candidates and 5 folds: of all of COVTYPE with "
                "cells of 2000 the paper's machine took 9. Here, in one process of one core, CPU "
                "seconds of many sets, beside the program of its authors.",
                "many_sets",
            ),
            Item(
                "Table 3",
                "Time to predict with random chunks over that with cells, by size. The paper's "
                "rows are 100,000 of training and of test; where there are fewer, so are the "
                "chunks, each of which answers every query: higgs-11k has two to five. ijcnn1 is "
                "not among the paper's sets.",
                "chunks",
                heading="Time to predict, chunks by cells",
            ),
            Item(
                "Table 4, stages",
                "CPU seconds by stage, all of COVTYPE with cells of 2000.",
                "cell_stages",
            ),
            Item(
                "Table 4, size",
                "Seconds and memory with cells of 2000. Ours of ten million rows of 28 "
                "features, in place of HIGGS, which has as many of each: the paper took 17,153 s "
                "to train and 31 GB.",
                "ten_million",
            ),
            Item(
                "Table 5",
                "ECBDL'14, 32 million rows of 631 features on up to 11 machines, is not among the "
                "sets at hand. Measured here on rows drawn with as many features and as rare a "
                "class: fits of cells of 5000 rows, one fold of cells of up to 20,000. Projected "
                "from these, as the last part says: the paper's rows, cells and machines, beside "
                "its hours. Its TPR x TNR of 0.422 to 0.456 are of other rows than ours.",
                "largest_run",
                figure=True,
            ),
            Item(
                "Algorithm 1, lines 10 to 18",
                "Selection by the risk of the combined fold models on all rows of a cell, as the "
                "algorithm says, beside selection by held-out rows, as daskls does. The combined "
                "models have learned these rows: their risk prefers narrow kernels.",
                "combined_risk",
            ),
        ),
        (
            ("Section 2, local SVMs", "here: `VoronoiSVC`"),
            ("Section 2, random chunks", "here: `RandomChunkSVC`"),
            ("Section 3, hinge loss, clipping, equation 4", 'here: `loss="hinge"`'),
            (
                "Theorems 3.1 and 3.2",
                "differs: proofs are no code; figure 2 tries the rate of theorem 3.2",
            ),
            (
                "Figure 1",
                "differs: cells are drawn of a checkerboard, by the example of partitions",
            ),
            (
                "Figure 2",
                "differs: the rows of a cell shrink in place of its radius, and n ends at 32,000",
            ),
            (
                "Table 1",
                "differs: COVTYPE is here; HIGGS by 11,000 rows; HEPMASS, GASSENSOR, SUSY, COD-RNA "
                "and SKIN cannot be had",
            ),
            ("Figure 3", "differs: COVTYPE, higgs-11k and ijcnn1"),
            ("Table 2", "differs: COVTYPE, and 29 sets that are not the paper's"),
            ("Table 3", "differs: COVTYPE and higgs-11k; ijcnn1 is added"),
            ("Table 4", "differs: COVTYPE by stage; made rows in place of HIGGS"),
            ("Table 5, section 5.1", "differs: ECBDL'14 cannot be had; made rows of its shape"),
            (
                "Appendix C, grid",
                "differs: C from 50 / m to 500, as the authors' program has it; the paper prints "
                "another end",
            ),
            (
                "Appendix C, partition",
                "differs: cuts across the axis of largest variance in place of farthest-first "
                "centers; the size of a cell is kept, not its radius",
            ),
            ("Appendix C, random chunks", "here: `RandomChunkSVC`"),
            (
                "Algorithm 1",
                "differs: held-out rows select, and fold models have equal weights; lines 10 to 18 "
                "have more errors on all ten sets",
            ),
            ("Figure 4", "here: the table of figures 3 and 4"),
            ("Table 6", "here: fit CPU ms a row, in the table of figures 3 and 4"),
        ),
    ),
    Paper(
        "Fast local kernel machines (FalkSVC, KNNSVC, noise filters)",
        "Segata, Blanzieri: *Fast and scalable local kernel machines*, 2009; Segata: *FaLKM-lib "
        "v1.0*, 2009, which has no tables of results.",
        (
            Item(
                "Table 2",
                "10-fold accuracy of small sets with three kernels, ours and (the paper's). As in "
                "the paper, kNNSVM ranks before FaLK-SVM and both before the SVC, with every "
                "kernel; by Wilcoxon's test of 21 pairs none of these differences is beyond "
                "chance. sonar, fourclass, mam and vehicle are not among the sets at "
                "hand.",
                "falk_kernels",
            ),
            Item(
                "Noise filters",
                "A tenth of the labels is turned; the filters look for these rows.",
                "falk_noise",
            ),
            Item(
                "Tables 4 to 6",
                "Accuracy and seconds on larger sets, beside FkNN, FaLK-SVM 1.02 and "
                "scikit-learn's SVC; census-inc, cod-rna and intr-det are not among the sets at "
                "hand.",
                "falk",
            ),
            Item(
                "Figures 3 to 8",
                "Accuracy and times with increasing rows.",
                "falk_scale",
                figure=True,
            ),
            Item(
                "All of covtype",
                "The paper's largest sets have 500,000 rows; FaLK-SVM on all of covtype, beside "
                "cells, four seeds each.",
                "cells_and_centers",
            ),
        ),
        (
            ("2009, 3.1 and 3.2: kNN, SVM", "here: `KernelKNNClassifier`; peers"),
            ("2009, 3.3: kNNSVM, equations 3 to 6", "here: `KNNSVC`"),
            ("2009, 3.4: cover trees", "differs: exact searches of leaves and balls"),
            ("2009, equations 7 to 9", "here: a neighborhood's SVM answers others"),
            (
                "2009, 4.2.1, definitions 1 and 2, equations 10 to 12",
                "differs: farthest-first order of a sample in place of a cover tree's levels",
            ),
            ("2009, figures 1 and 2", "here: the example of neighborhoods draws them of made rows"),
            ("2009, equation 13, FaLK-SVMc", 'here: `assign="center"`'),
            ("2009, equations 14 and 15, FaLK-SVM", 'here: `assign="point"`'),
            ("2009, 4.3, definitions 3 and 4", 'here: `KNNSVC(selection="each", n_inner=...)`'),
            ("2009, definition 5, FaLK-SVMl", 'here: `selection="local"`'),
            ("2009, widths from the histogram of distances", "here: `percentiles`"),
            (
                "2009, 4.4 and 4.5: bounds",
                "differs: proofs are no code; figures 4 and 5 show growth",
            ),
            ("2009, algorithms 1 and 2", "here: `FalkSVC`"),
            ("2009, table 1", "differs: 21 of 25 sets; the other four cannot be had"),
            (
                "2009, table 2",
                "differs: 3 folds choose in place of 10, from fewer values; Friedman's, Nemenyi's "
                "and Wilcoxon's tests are here",
            ),
            ("2009, table 3", "differs: five of eight sets; census-inc, cod-rna, intr-det cannot"),
            (
                "2009, tables 4 to 6",
                "differs: five sets; ten folds choose of ijcnn1 alone, of a grid that one fold "
                "thins, elsewhere local selection does",
            ),
            ("2009, figures 3 to 5", "differs: made rows, and today's peers"),
            ("2009, figures 6 to 8", "here: made rows; FaLK-SVMc and FaLK-SVMl to a million"),
            (
                "2009, peers BVM, CVM, LASVM, USVM, CPSP",
                "cannot: programs of 2009 that cannot be installed today",
            ),
            ("FaLKM-lib, 2.1: FkNN", "here: `KernelKNNClassifier`"),
            ("FaLKM-lib, 2.2: FkNNSVM", "here: `KNNSVC`"),
            (
                "FaLKM-lib, 2.3: FkNNSVM-nr",
                'here: `KNNSVMNoiseFilter`, `KNNSVC(probability="each")`',
            ),
            ("FaLKM-lib, 2.4: FaLK-SVM, and by centers", "here: `FalkSVC`"),
            ("FaLKM-lib, 2.5: FaLKNR", "here: `FalkNoiseFilter`"),
            ("FaLKM-lib, 2.6: several classes", "here: one-vs-one in the neighborhood"),
            ("FaLKM-lib, 2.6: model selection", "here: scikit-learn's, and `selection`"),
            (
                "FaLKM-lib, 2.6: local model selection",
                'here: `selection="local"` and `"each"`, also of `KNNSVMNoiseFilter`',
            ),
            ("FaLKM-lib, 3: benchmarks", "differs: it has none; the filters' own are here"),
        ),
    ),
    Paper(
        "L3-SVMs (LandmarkSVC)",
        "Zantedeschi, Emonet, Sebban: *L3-SVMs: Landmarks-based linear local support vector "
        "machines*, 2017.",
        (
            Item(
                "Tables 3 and 4",
                "Accuracies and times; the paper's seconds are of another machine.",
                "landmarks",
                figure=True,
            ),
            Item(
                "Figure 4",
                "Landmarks drawn and by PCA: accuracy, and the seconds of their selection.",
                "landmarks_count",
                figure=True,
            ),
            Item(
                "Figure 3",
                "Accuracy on liver, heart and ionosphere by landmarks and by clusters (the best of "
                "all numbers of landmarks), beside SVMs; sonar is not among the sets at hand. As "
                "in the paper: of liver 2 clusters come near the RBF SVM, 3 to 6 reach it, more "
                "overfit; of heart further clusters cost; of ionosphere linear functions "
                "stay below the RBF SVM and the RBF projection reaches it with one cluster; as "
                "many linear landmarks as features are about enough. Twice 5 folds, 8 numbers of "
                "clusters and 4 to 7 of landmarks, where the paper has ten times 5 folds and all "
                "numbers.",
                "landmarks_small",
                figure=True,
            ),
        ),
        (
            ("Section 2, projection, clusters, equation of L3-SVMs", "here: `LandmarkSVC`"),
            (
                "Section 2.1, soft margin",
                "here: `LandmarkSVC`; the experiments' program penalizes the bias, the equations "
                "and daskls do not",
            ),
            ("Sections 2.1 and A.2, kernelized", "here: `LandmarkSVC(kernel=...)`"),
            ("Table 1", "differs: orders of growth are no code; tables 3 and 4 have seconds"),
            (
                "Section 3, theorems",
                "differs: proofs are no code; the number of landmarks follows their advice",
            ),
            ("Figures 1 and 2", "here: drawn beside tables 3 and 4"),
            (
                "Figure 3",
                "differs: twice 5 folds in place of ten times, a few of all numbers of landmarks; "
                "sonar cannot be had",
            ),
            ("Figure 4", "differs: a fifth of MNIST's rows; selection of all"),
            ("Table 2", "here: the four sets, the paper's clusters"),
            (
                "Tables 3 and 4",
                "differs: CSVM, LLSVM and ML3 cannot be had; MNIST has two seeds, the second with "
                "the first one's C",
            ),
            ("A.1, Hilbert space", "differs: a proof is no code"),
            ("Figures 5 and 6", "differs: diagrams of dependencies, not results"),
        ),
    ),
    Paper(
        "Local sampling (LocalSamplingSVC, NeighborSamplingSVC)",
        "Barcenas, Gonzalez-Lima, Quiroz: *A bagging and importance sampling approach to Support "
        "Vector Machines*.",
        (
            Item(
                "Tables 4 to 7, RBF",
                "IJCNN1 and 100,000 rows of COVTYPE, of which an SVM of all rows takes minutes: "
                "error over that of this SVM, support rows and shares of its time, by beta and by "
                "round.",
                "sampling",
                figure=True,
            ),
            Item(
                "Tables 4 and 5, three kernels",
                "The SVM of all rows is the paper's with each kernel. Linear samples beat it, as "
                "in the paper. With the RBF kernel they need more rows than the paper's to come "
                "as near; with the polynomial one its errors at beta 0.2 are not reached: see the "
                "end. Five seeds, the paper's ten runs.",
                "sampling_kernels",
            ),
            Item("Table 7, all rows", "COVTYPE, RBF kernel, local sampling.", "sampling_all"),
            Item("Table 11", "Indecision of a linear SVM on IJCNN1.", "indecision"),
        ),
        (
            ("Section 1, equations 1 to 3, L1 soft margin", "here: both estimators"),
            ("Section 1, L2 soft margin", 'here: `loss="squared_hinge"` of both estimators'),
            ("Section 2, procedure CGLQ", "here: `NeighborSamplingSVC`"),
            ("Section 2, procedure local sampling", "here: `LocalSamplingSVC`"),
            ("Section 3.1, choice of beta", "here: `radius_scale=None`"),
            (
                "Section 3.1, choice of C and gamma",
                "differs: the papers' values are given; daskls selects on a sample",
            ),
            ("Table 1", "differs: IJCNN1 and COVTYPE are here; COD-RNA and WEBSPAM cannot be had"),
            ("Tables 2 and 3", "cannot: COD-RNA is not among the sets at hand"),
            ("Tables 4 and 5", "here: three kernels, five seeds; the RBF kernel, ten"),
            (
                "Table 6",
                "differs: RBF on 100,000 rows; on all, and with the linear and the "
                "polynomial kernel, the SVM of all rows took the paper 8 to 11 hours",
            ),
            (
                "Table 7",
                "differs: CGLQ on 100,000 rows, local sampling on all; RBF alone, as table 6",
            ),
            ("Tables 8 and 9, figure 1", "cannot: WEBSPAM is not among the sets at hand"),
            ("Section 4, proposition 1, theorem 1", "differs: proofs are no code"),
            ("Equation 17, indecision", "here: `indecision`"),
            ("Tables 10 and 12", "cannot: COD-RNA and WEBSPAM are not among the sets at hand"),
            ("Table 11", "differs: ten repetitions of a hundred; the paper's shares are of 10 eps"),
        ),
    ),
)
