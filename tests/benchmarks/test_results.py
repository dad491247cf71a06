"""Results in the repository are what their journals say, byte for byte."""

import shutil
from pathlib import Path

import matplotlib as mpl
import pytest
from PIL import Image

from benchmarks.suite import excerpts, runner
from benchmarks.suite.book import book
from benchmarks.suite.experiment import find

RESULTS = Path(runner.RESULTS)
JOURNALS = sorted(path.stem for path in RESULTS.glob("*.jsonl"))


@pytest.mark.parametrize("name", JOURNALS)
def test_tables_are_those_of_the_journal(name, tmp_path):
    journal = runner.Journal(copied(name, tmp_path))
    assert find(name).report(journal) == (RESULTS / f"{name}.md").read_text()


@pytest.mark.parametrize("name", ["chunks", pytest.param("methods", marks=pytest.mark.slow)])
def test_figures_are_those_of_the_journal(name, tmp_path):
    with Image.open(RESULTS / f"{name}.png") as figure:
        drawn_with = figure.info["Software"]
    if f"version{mpl.__version__}," not in drawn_with:
        pytest.skip(f"drawn with {drawn_with}")
    copied(name, tmp_path)
    runner.main([name, "--report", "--results", str(tmp_path)])
    assert (tmp_path / f"{name}.png").read_bytes() == (RESULTS / f"{name}.png").read_bytes()


def test_the_page_of_results_is_of_these_tables():
    """Written by ``make docs-results``."""
    page = Path(__file__).parents[2] / "docs" / "results.md"
    assert page.read_text(encoding="utf-8") == book()


@pytest.mark.parametrize("page", excerpts.pages(), ids=lambda page: page.stem)
def test_tables_on_pages_are_those_of_the_results(page):
    """Written by ``make docs-results``."""
    text = page.read_text(encoding="utf-8")
    assert excerpts.filled(text) == text


def copied(name, folder):
    return Path(shutil.copy(RESULTS / f"{name}.jsonl", folder))
