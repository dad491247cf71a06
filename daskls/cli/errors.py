"""Output and end of commands: errors, exit codes, numbers, small tables.

The exit code is 0, 1 for a failure, 2 for bad arguments, 130 for Ctrl-C. A failure is one sentence
on stderr; its traceback is shown with `--debug` only.
"""

import sys
import traceback
import warnings
from collections.abc import Iterable, Sequence
from io import TextIOWrapper
from typing import Any

import typer
from typer.core import TyperGroup

from daskls.errors import DasklsError, ParameterError

FAILURE, BAD_ARGUMENTS, INTERRUPTED = 1, 2, 130
# The state after an interrupted command.
AFTER_INTERRUPT = {
    "fit": "what is finished is kept: run the same command again to go on from there",
    "predict": "the unfinished output was removed",
    "convert": "the unfinished data set was removed",
    "denoise": "the unfinished data set was removed",
    "demo": "run it again to start over",
}


class InterruptedCommandError(Exception):
    """Ctrl-C during a command; the text says what remains on disk."""


class Commands(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            left = AFTER_INTERRUPT.get(ctx.invoked_subcommand or "", "nothing was changed")
            raise InterruptedCommandError(f"Interrupted; {left}.") from error

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        words = list(sys.argv[1:] if args is None else args)
        # typer takes a group's options before the command only, but people add --debug at the end.
        debug = "--debug" in words
        # Without arguments, show the help.
        words = [word for word in words if word != "--debug"] or ["--help"]
        extra["standalone_mode"] = False
        for stream in (sys.stdout, sys.stderr):
            # A name that the terminal cannot show must not end a fit.
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            try:
                code = super().main(words, *rest, **extra)
            except Exception as error:
                if debug:
                    traceback.print_exc()
                code, told = _ending(error, debug)
                typer.echo(told, err=True)
        sys.exit(code if isinstance(code, int) else 0)


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    typer.echo(f"Warning: {_one_line(message)}", err=True)


def _ending(error: Any, debug: bool) -> tuple[int, str]:
    """Return the exit code and the sentence of an error."""
    if isinstance(error, InterruptedCommandError | typer.Abort):
        return INTERRUPTED, str(error) or "Interrupted."
    # Raised by the parser; asked by attribute, as typer may bundle its own click.
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "daskls"
        # Words that a validation inside typer puts before its own messages.
        text = error.format_message().replace("Value error, ", "")
        return BAD_ARGUMENTS, f"Error: {_stopped(text)[:-1]}; see `{command} --help`."
    text, name = _one_line(error), type(error).__name__
    is_parameter = isinstance(error, ParameterError) or name == "InvalidParameterError"
    code = BAD_ARGUMENTS if is_parameter else FAILURE
    # Messages of these types explain themselves; any other type is a surprise.
    if isinstance(error, DasklsError | ValueError | OSError | MemoryError) and text:
        return code, f"Error: {_stopped(text)}"
    more = "" if debug else "; run it again with --debug for the traceback"
    return code, f"Error: {_stopped(f'{name}: {text}')[:-1]}{more}."


def _one_line(message: Any) -> str:
    return " ".join(str(message).split())


def _stopped(message: str) -> str:
    return _one_line(message).rstrip(".:; ") + "."


def format_share(value: float) -> str:
    return f"{100 * value:.2f} %"


def format_number(value: float) -> str:
    """Return a number as text: whole numbers in full, as 1,000,000, others with four digits."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"


def print_table(title: str, rows: Iterable[Sequence[Any]], columns: Sequence[str] = ()) -> None:
    """Print a table below a title: names with their values, or numbers if ``columns`` have names.

    The first column is text.
    """
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns, box=None, pad_edge=False, show_header=bool(columns))
    for column in table.columns[1:]:
        column.justify = "right"
    if not columns:
        table.add_column(style="bold", no_wrap=True)
        table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*map(str, row))
    console = Console(highlight=False, markup=False)
    # Not the table's own title, which is wrapped at the width of the table.
    console.print(title, style="underline", soft_wrap=True)
    console.print(table)
