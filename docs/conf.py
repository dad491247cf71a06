"""The site: `make docs` builds it from these pages, the docstrings and the examples.

Warnings are errors, and nothing is read from the network.
"""

import re
import shutil
import sys
import warnings
from pathlib import Path

import daskls

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

project = "daskls"
author = "the daskls developers"
copyright = "the daskls developers"
version = release = daskls.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["examples", "gallery/*.ipynb", "gallery/GALLERY_HEADER.rst"]
default_role = "code"
# Blocks that name no language: what a command prints.
highlight_language = "text"
# Formulas are drawn by the reader's browser; the page stays readable without.
mathjax_path = "https://cdn.jsdelivr.net/npm/mathjax@3/es5/tex-mml-chtml.js"

html_theme = "pydata_sphinx_theme"
html_title = "daskls"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_sidebars = {"index": [], "install": [], "start": []}
html_theme_options = {
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "header_links_before_dropdown": 5,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

templates_path = ["_templates"]
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
# scikit-learn's own methods are not ours to describe.
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_\w+\.py$",
    "ignore_pattern": r"execute_notebooks\.py$",
    "abort_on_example_error": True,
    "show_memory": False,
    "min_reported_time": 1,
    "plot_gallery": True,
    "download_all_examples": False,
    "nested_sections": False,
}


def copy_results() -> None:
    """Put the measured tables and their pictures where pages can link to them."""
    target = HERE / "measured"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for path in (ROOT / "benchmarks" / "results").iterdir():
        if path.suffix in {".md", ".png"}:
            shutil.copy(path, target)


def write_commands() -> None:
    """Write what `--help` of every command prints, as a page."""
    from click import Context
    from typer.main import get_command

    from daskls.cli import app

    group = get_command(app)
    parts = ["# The command line", "What `daskls COMMAND --help` prints."]
    for name in group.list_commands(Context(group)):
        command = group.get_command(Context(group), name)
        context = Context(command, info_name=f"daskls {name}", terminal_width=96)
        parts += [f"## daskls {name}", f"```text\n{command.get_help(context)}\n```"]
    (HERE / "commands.md").write_text("\n\n".join(parts) + "\n", "utf-8")


def point_inside(_app, _docname, source) -> None:
    """Let links that hold in the repository hold on the site."""
    text = source[0].replace("](../benchmarks/results/", "](/measured/")
    text = text.replace("](../../benchmarks/results/", "](/measured/")
    text = text.replace("](../CONTRIBUTING.md", "](/contributing.md")
    source[0] = text.replace("](../README.md", "](/index.md")


ENTRY = re.compile(r"^(?P<name>[\w, *`]+ : )(?P<type>.*?)(?<!e\.g)\. (?P<text>[A-Z\"].*)$")
SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Warns")
# What reStructuredText would take for a link or for bold.
TRAILING = re.compile(r"(?<![`\w])([a-zA-Z]\w*)_(?=[^\w`:]|$)")
STARS = re.compile(r"(?<![`*\w])(\*\*?)(?=\w+)(?!\w+\*)")


def part_entries(_app, _what, _name, _obj, _options, lines) -> None:
    """Part `name : type. What it is` into a type and a description, as numpydoc wants them."""
    for i in reversed(range(len(lines))):
        if lines[i].lstrip().startswith((">>>", "...")) or section_of(lines, i) == "Examples":
            continue
        found = ENTRY.match(lines[i])
        if found and section_of(lines, i) in SECTIONS:
            parted = [found["name"] + escape(found["type"]), "    " + escape(found["text"])]
            lines[i : i + 1] = parted
        else:
            name, colon, rest = lines[i].partition(" : ")
            lines[i] = name + colon + escape(rest) if colon else escape(lines[i])


def escape(text: str) -> str:
    """Escape names that end in an underscore, and stars before names."""
    return STARS.sub(lambda m: m[1].replace("*", r"\*"), TRAILING.sub(r"\1\\_", text))


def section_of(lines, i) -> str:
    """Return the section that a line of a docstring stands in; empty before the first."""
    rules = [j for j in range(1, i) if re.fullmatch(r"-{3,}", lines[j].strip())]
    return lines[rules[-1] - 1].strip() if rules else ""


def keep_together(_app, docname, source) -> None:
    """Keep a mean and its deviation on one line: narrow columns broke them into three."""
    if docname == "results" or docname.startswith("measured"):
        for sign in ("±", "+-"):
            source[0] = source[0].replace(f" {sign} ", f"\u00a0{sign}\u00a0")


def setup(app) -> None:
    """Join Sphinx."""
    copy_results()
    write_commands()
    app.connect("source-read", point_inside)
    app.connect("source-read", keep_together)
    # Before numpydoc, which comes at 500.
    app.connect("autodoc-process-docstring", part_entries, priority=400)
    warnings.filterwarnings("ignore", message=".*non-interactive.*")
