"""Run every notebook of this folder from top to bottom; any error in a cell makes this fail.

python examples/execute_notebooks.py

Needs `pip install daskls[notebooks]`; without these packages it prints a message and does nothing.
"""

import warnings
from importlib.util import find_spec
from pathlib import Path

NEEDED = ("nbclient", "nbformat", "ipykernel", "pandas", "matplotlib")


def main() -> None:
    """Execute the notebooks; nothing is written back."""
    if not all(map(find_spec, NEEDED)):
        print("skipped: run `pip install daskls[notebooks]` to execute notebooks")
        return
    # Jupyter's own packages warn of each other.
    warnings.simplefilter("default")
    import nbformat
    from nbclient import NotebookClient

    for path in sorted(Path(__file__).parent.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
        print(f"{path.name}: {len(notebook.cells)} cells")


if __name__ == "__main__":
    main()
