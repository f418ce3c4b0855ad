"""JSON: an array with an object for each row, named by the headings. Unknown values are left out: most of the columns
of a row of results are empty."""

from collections.abc import Iterator

import msgspec

from webapp.core.table_files import Table

MEDIA_TYPE = "application/json"


def chunks(table: Table) -> Iterator[str]:
    """A line at a time."""
    headings, before = [column.heading for column in table.columns], "[\n"
    for row in table.rows:
        known = {heading: value for heading, value in zip(headings, row, strict=True) if value is not None}
        yield f"{before}{msgspec.json.encode(known).decode()}"
        before = ",\n"
    yield "\n]\n" if before == ",\n" else "[]\n"
