"""The command line: `daskls convert`, `plan`, `fit`, `predict`, `score`, `info`, `report`,
`denoise`, `demo`.

Commands import what they need when they run, so that `daskls --help` prints at once.
"""

from typing import Annotated

import typer

from daskls.cli.convert import convert, denoise
from daskls.cli.demo import demo
from daskls.cli.errors import Commands
from daskls.cli.fit import fit, plan
from daskls.cli.info import info
from daskls.cli.options import FilterCommand, FitCommand, flat
from daskls.cli.predict import predict
from daskls.cli.score import report, score

__all__ = ["app", "main"]

app = typer.Typer(
    name="daskls",
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from daskls import __version__

        typer.echo(f"daskls {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; may stand anywhere.")
    ] = False,
) -> None:
    """Local support vector machines for data that does not fit in memory."""


# Commands that take the options of estimators besides their own.
COMMAND_CLASSES = {"fit": FitCommand, "plan": FitCommand, "denoise": FilterCommand}
for command in (convert, plan, fit, predict, score, info, report, denoise, demo):
    app.command(command.__name__, cls=COMMAND_CLASSES.get(command.__name__))(flat(command))


def main() -> None:
    app(prog_name="daskls")
