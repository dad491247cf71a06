"""Seconds as people say them."""

__all__ = ["format_seconds"]


def format_seconds(seconds: float) -> str:
    """Return a time as a person says it.

    >>> format_seconds(4.2), format_seconds(75), format_seconds(3720)
    ('4 s', '1 min 15 s', '1 h 2 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
