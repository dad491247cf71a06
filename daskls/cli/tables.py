"""Small tables on a terminal, and numbers as people read them."""

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["format_nbytes", "format_number", "format_share", "print_pairs", "print_table"]


def format_nbytes(nbytes: float) -> str:
    """Return bytes with a unit.

    >>> format_nbytes(3 << 20), format_nbytes(900)
    ('3.0 MiB', '900 B')
    """
    if nbytes < 1024:
        return f"{nbytes:.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        nbytes /= 1024
        if nbytes < 1024:
            return f"{nbytes:.1f} {unit}"
    return f"{nbytes / 1024:.1f} TiB"


def format_share(value: float) -> str:
    """Return a share as a percentage.

    >>> format_share(0.94213)
    '94.21 %'
    """
    return f"{100 * value:.2f} %"


def format_number(value: float) -> str:
    """Return a number short: whole numbers in full, others with four figures.

    >>> format_number(1000000), format_number(0.123456)
    ('1,000,000', '0.1235')
    """
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"


def print_pairs(title: str, pairs: Iterable[tuple[str, Any]]) -> None:
    """Print names and values, one pair a line."""
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(name, str(value))
    console = Console(highlight=False, markup=False)
    console.print(title, style="underline", soft_wrap=True)
    console.print(table)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table whose first column is text and whose others are numbers."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for i, name in enumerate(columns):
        table.add_column(name, justify="right" if i else "left")
    for row in rows:
        table.add_row(*map(str, row))
    console = Console(highlight=False, markup=False)
    console.print(title, style="underline", soft_wrap=True)
    console.print(table)
