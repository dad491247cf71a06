"""Run notebooks from top to bottom; an error, a warning or red text in one makes this fail.

python notebooks/execute.py [--html FOLDER] [NOTEBOOK ...]

`DASKLS_ROWS=10000` limits the rows of each notebook. Needs `pip install daskls[notebooks]`.
"""

import argparse
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

HERE = Path(__file__).parent
# Seconds that a cell may take: few with limited rows, as a kernel may wait for a request for ever
# (ipykernel 7 loses one now and then, see its issue 1554). The notebook is then run once more.
IS_SHORT = int(os.environ.get("DASKLS_ROWS", 10_000_000)) <= 100_000
LIMIT_S, N_RUNS = 300 if IS_SHORT else 1800, 2


def main(args: list[str]) -> int:
    """Execute the notebooks that are named, or all; return how many failed."""
    # Jupyter's own packages warn of each other.
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--html", type=Path, help="write pages there, pictures included")
    options = parser.parse_args(args)
    paths = options.notebooks or sorted(HERE.glob("[0-9]_*.py"))
    return sum(not is_clean(path, options.html) for path in paths)


def is_clean(path: Path, html: Path | None) -> bool:
    """Execute one notebook in an empty folder, and say what went wrong."""
    import jupytext
    from nbclient.exceptions import CellExecutionError, CellTimeoutError

    start = time.perf_counter()
    for _ in range(N_RUNS):
        notebook, failure = jupytext.read(path), ""
        try:
            run(notebook)
        except CellExecutionError as error:
            failure = str(error)
        except CellTimeoutError as error:
            failure = str(error)
            print(f"{path.name}: a cell took more than {LIMIT_S} s", flush=True)
            continue
        break
    said = red_text(notebook)
    print(f"{path.name}: {time.perf_counter() - start:.0f} s", flush=True)
    if html is not None:
        write_html(notebook, html / f"{path.stem}.html")
    if said or failure:
        print(f"{said}{failure}", file=sys.stderr)
    return not (said or failure)


def run(notebook) -> None:
    """Execute it in place, where files that it writes are gone afterwards."""
    from nbclient import NotebookClient

    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook,
            timeout=LIMIT_S,
            kernel_name="python3",
            resources={"metadata": {"path": folder}},
        )
        client.execute()


def red_text(notebook) -> str:
    """Return what the cells wrote to standard error: warnings are there too."""
    outputs = [out for cell in notebook.cells for out in cell.get("outputs", [])]
    return "".join(out["text"] for out in outputs if out.get("name") == "stderr")


def write_html(notebook, path: Path) -> None:
    """Write a page that needs nothing but a browser."""
    from nbconvert import HTMLExporter

    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HTMLExporter().from_notebook_node(notebook)[0], "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
