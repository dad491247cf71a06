"""The page of results: the papers' tables and figures beside ours, from the tables of experiments.

    python -m benchmarks.suite.book > docs/results.md

The tables are those of ``benchmarks/results``, which are made of the journals there, byte for byte
(``python -m benchmarks --report``). A test compares the page with what this writes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["PAPERS", "Item", "Paper", "book", "sections"]

RESULTS = Path(__file__).parents[1] / "results"
# Longer tables are linked, not shown.
MOST_LINES = 45


@dataclass(frozen=True)
class Item:
    """A table or a figure of a paper, or several that show the same.

    Attributes
    ----------
    names : str. What the paper calls them.
    about : str. What they show, and what ours differs in.
    source : str. The experiment that has it; none where it is not reproduced.
    figure : bool. Whether the experiment's figure shows it.
    heading : str. The heading of the report whose tables are shown; none: all tables.
    """

    names: str
    about: str
    source: str = ""
    figure: bool = False
    heading: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper, and what of it is reproduced."""

    title: str
    cited: str
    items: tuple[Item, ...] = field(default=())


PAPERS = (
    Paper(
        "Spatial decompositions (VoronoiSVC, RandomChunkSVC)",
        "Thomann, Blaschzyk, Meister, Steinwart: *Spatial decompositions for large scale SVMs*, "
        "AISTATS 2017.",
        (
            Item(
                "Figure 2",
                "Excess risks on two Gaussians as cells shrink. Means of 3 runs, the paper's of "
                "20; the slope so far comes down to the paper's rate.",
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
                "Table 4",
                "Seconds by stage and memory with cells of 2000. Ours of ten million rows of 28 "
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
                "Table 6",
                "Training time over rows, size of cells and features: `fit CPU ms a row` of the "
                "table of figures 3 and 4 rises less than the size of cells does.",
            ),
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
                "kernel; by Wilcoxon's test of 20 pairs none of these differences is beyond "
                "chance. sonar, fourclass, mam and vehicle are not among the sets at "
                "hand.",
                "falk_kernels",
            ),
            Item(
                "Table 2, more widths",
                "The RBF columns by another grid.",
                "falk_small",
            ),
            Item(
                "Noise filters",
                "A tenth of the labels is turned; the filters look for these rows.",
                "falk_noise",
            ),
            Item(
                "Tables 4 to 6",
                "Accuracy and seconds on larger sets, beside FaLK-SVM 1.02 and scikit-learn's SVC.",
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
            Item(
                "Table 4, other peers",
                "BVM, CVM, LASVM, USVM and CPSP are programs of 2009 that cannot be installed "
                'today; FaLK-SVMl (local selection) is `selection="local"`; tables whose row says '
                '`"each"` choose in every neighborhood.',
            ),
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
            Item("Figure 4", "Landmarks drawn and by PCA.", "landmarks_count", figure=True),
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
    ),
    Paper(
        "Local sampling (LocalSamplingSVC, NeighborSamplingSVC)",
        "Barcenas, Gonzalez-Lima, Quiroz: *A bagging and importance sampling approach to Support "
        "Vector Machines*.",
        (
            Item(
                "Tables 4 and 5",
                "IJCNN1: error over that of the SVM of all rows, support rows and shares of its "
                "time, by beta and by round.",
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
            Item("Tables 6 and 7", "COVTYPE, all rows, RBF kernel.", "sampling_all"),
            Item("Table 11", "Indecision of a linear SVM on IJCNN1.", "indecision"),
            Item(
                "Tables 2, 3, 8 to 10 and 12, figure 1",
                "COD-RNA and WEBSPAM are not among the sets at hand. The linear and polynomial "
                "columns of tables 6 and 7 are not measured: the SVM of all rows of COVTYPE took "
                "the paper 10 hours with each.",
            ),
        ),
    ),
)
TODAY = (
    ("methods", "All methods on the same sets"),
    ("regression", "Regressors as they are"),
    ("mixed", "Tables of text, categories, dates and gaps as they are"),
    ("quantiles", "Quantiles as they are"),
    ("intervals", "Intervals"),
    ("advice", "How often advice is right"),
    ("neighborhoods", "C and gamma, selected and as they were, of version 0.1"),
    ("probability", "Probabilities of classifiers as they are"),
    ("probability_maps", "Maps to probabilities by a second fit, of version 0.1"),
)


def book() -> str:
    """Return the page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Results"
    yield ""
    yield (
        "The tables and figures of the five papers, as far as the data at hand allow, and what "
        "today's peers make of the same sets. Every number is of a journal in "
        "`benchmarks/results`, but for some of version 0.1, which are kept as tables alone; "
        "`python -m benchmarks` measures what is missing, `python -m benchmarks.suite.book` writes "
        "this page."
    )
    yield from _more_rows()
    for paper in PAPERS:
        yield from ["", f"## {paper.title}", "", paper.cited]
        for item in paper.items:
            yield from _item(item)
    yield from _missing()
    yield from ["", "## More of daskls", ""]
    yield from (f"- [{title}](../benchmarks/results/{name}.md)" for name, title in TODAY)


def _more_rows() -> Iterator[str]:
    text = _read("more_rows")
    yield from ["", "## Classifiers as they are, on larger tables", "", *_about(text), ""]
    for _, lines in sections(text):
        yield from lines


def _item(item: Item) -> Iterator[str]:
    yield from ["", f"### {item.names}", "", item.about]
    if not item.source:
        return
    if item.figure:
        yield from ["", f"![{item.names}](../benchmarks/results/{item.source}.png)"]
    found = [(h, own) for h, own in sections(_read(item.source)) if item.heading in ("", h)]
    if item.heading and not found:
        raise ValueError(f"{item.source}.md has no table below the heading {item.heading!r}")
    if sum(len(own) for _, own in found) <= MOST_LINES:
        for heading, own in found:
            shown = heading != item.heading
            yield from ["", *([f"**{heading}**", ""] if shown else []), *own]
    yield from ["", f"[How, and on what machine](../benchmarks/results/{item.source}.md)."]


def _missing() -> Iterator[str]:
    yield from ["", "## What is not reproduced, and why", ""]
    for paper in PAPERS:
        for item in paper.items:
            if not item.source:
                yield f"- {paper.title}, {item.names.lower()}: {item.about}"


def _read(name: str) -> str:
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def _about(text: str) -> list[str]:
    """Return the first paragraph below the title."""
    return text.split("\n\n")[1].splitlines()


def sections(text: str) -> list[tuple[str, list[str]]]:
    """Return the headings of a report, and the lines of the tables below each."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        if match := re.match(r"#{2,} (.*)", line):
            found.append((match[1], []))
        elif line.startswith("|"):
            found[-1][1].append(line)
    return [(heading, lines) for heading, lines in found if lines]


if __name__ == "__main__":
    print(book(), end="")
