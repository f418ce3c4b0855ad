"""The rows of the table of results, with the text and the style of each cell."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from webapp.results.reading.rows import ResultRow
from webapp.screens.addresses import result_addresses
from webapp.screens.results.columns import POINT, WHEN, Column


@dataclass(frozen=True)
class TableRow:
    id: int
    trial: str  # run and number, like "12 #3", or "import 4 #17"
    address: str  # of the trial's page
    kernel_lines: int
    cells: list[tuple[str, str]]  # CSS classes and text, without the last column, the time
    shows_time: bool  # whether the last column is shown
    measured_at: datetime | None  # None if it is not stated
    invalid: bool
    why_invalid: str


def table_rows(results: Iterable[ResultRow], columns: Sequence[Column]) -> Iterator[TableRow]:
    """One row for each result. If the time is shown, it is the last of `columns`."""
    address_of = result_addresses()
    plain = [column for column in columns if column.key != WHEN]
    for result in results:
        yield TableRow(
            id=result.id,
            trial=f"{result.source_name} #{result.trial}",
            address=address_of(result),
            kernel_lines=result.kernel_lines,
            cells=[(_style(column, result), column.text(result)) for column in plain],
            shows_time=len(plain) < len(columns),
            measured_at=result.stated_at,
            invalid=result.invalid,
            why_invalid=result.why_invalid,
        )


def _style(column: Column, result: ResultRow) -> str:
    distrust = " distrust" if column.measured and result.invalid else ""
    kind = "num" if column.numeric else "words" if column.key == POINT else "nowrap"
    return f"{kind}{distrust}"
