"""Rows of CSV text by the names of their columns."""

import csv
from collections.abc import Iterable, Iterator, Mapping

from webapp.imports.errors import ImportRefused
from webapp.imports.values import number

Row = Mapping[str, str]


def fields(line: str, delimiter: str = ",") -> list[str]:
    """The fields of one line, without spaces around them. Raises ImportRefused."""
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=delimiter, strict=True), [])]
    except csv.Error as error:
        raise ImportRefused(f"A line is not valid CSV: {error}.") from error


def rows(names: list[str], text_lines: Iterable[str], delimiter: str = ",") -> Iterator[Row]:
    """Each line as name -> field. Raises ImportRefused if a line has fewer fields than there are names."""
    for line in text_lines:
        found = fields(line, delimiter)
        if len(found) < len(names):
            raise ImportRefused(
                f"A row has {len(found)} fields and its head {len(names)}: the row is truncated, `{line[:60]}`."
            )
        if any(found[len(names) :]):
            raise ImportRefused(
                f"A row has {len(found)} fields and its head {len(names)}: put quotes around fields with commas, "
                f"`{line[:60]}`."
            )
        yield dict(zip(names, found, strict=False))


def optional(row: Row, name: str) -> float | None:
    """The number in this column; None without the column or with an empty field."""
    text = row.get(name, "")
    return number(text, name) if text else None
