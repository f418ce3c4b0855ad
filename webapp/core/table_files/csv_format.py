"""CSV without text that a spreadsheet would execute as a formula."""

import csv
from collections.abc import Iterator
from datetime import datetime

from webapp.core.table_files import Table

MEDIA_TYPE = "text/csv; charset=utf-8"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class _Echo:
    """A file that returns the text instead of writing it."""

    def write(self, text: str) -> str:
        return text


def chunks(table: Table) -> Iterator[str]:
    """A line at a time."""
    writer = csv.writer(_Echo())
    yield writer.writerow([_cell(column.heading) for column in table.columns])  # the name of a metric can be anything
    for row in table.rows:
        yield writer.writerow([None if value is None else _cell(value) for value in row])


def _cell(value: object) -> object:
    """Prefix text that looks like a formula with an apostrophe (OWASP, CSV injection); numbers stay numbers."""
    if isinstance(value, datetime):
        return value.isoformat()
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
