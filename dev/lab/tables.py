"""Columns for the terminal."""

from collections.abc import Sequence


def written(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line each, the first one their names."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
