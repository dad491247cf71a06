"""The modules that the worked examples of docs/examples add, without applying the patches."""

import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"


def load_example(patch, example, file):
    """Return a module that an example adds; imports find it while a test's patches last."""
    text = (EXAMPLES / f"{example}.patch").read_text()
    added = text.partition(f"+++ b/{file}\n")[2].partition("\ndiff --git")[0]
    source = "\n".join(line[1:] for line in added.splitlines()[1:])
    module = ModuleType(file.removesuffix(".py").replace("/", "."))
    patch.setitem(sys.modules, module.__name__, module)
    exec(compile(source, file, "exec"), module.__dict__)
    return module
