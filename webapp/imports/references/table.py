"""Tables of figures that were entered by hand: CSV with a row for each figure.

Columns are the fields of `formats.plain_csv` (factors, direction, name, results with their unit), `table` (its caption
in the source), `note` (a sentence), `metric NAME_UNIT` for figures that are no I/O, such as `metric power_watt`, and
labels: every other column. An empty field means that the source does not state the value.
"""

from collections.abc import Mapping

import msgspec

from webapp.imports.csv_rows import fields
from webapp.imports.errors import ImportRefused
from webapp.imports.formats.plain_csv import direction, figures, is_field
from webapp.imports.measurement import Latency, Measurement
from webapp.imports.references.about import RESERVED, label_problem
from webapp.imports.values import lines, number
from webapp.plans.values import Value

_METRIC = "metric "
_TEXTS = (*RESERVED, "name", "direction")


class Row(msgspec.Struct, frozen=True):
    table: str
    measurement: Measurement
    labels: Mapping[str, str]


class RowDamaged(Exception):
    """A row that cannot be read, with its line."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line


def read(text: str, tool: str, factors: Mapping[str, Value]) -> list[Row]:
    """`factors` are those of all rows, unless a row states another value. Raises RowDamaged."""
    found = []
    columns: list[str] = []
    for line, content in enumerate(lines(text), start=1):
        if not content.strip():
            continue
        try:
            cells = fields(content)
            if columns:
                found.append(_row(_named(columns, cells), tool, factors))
            else:
                columns = _checked(cells)
        except ImportRefused as error:
            raise RowDamaged(line, str(error)) from error
    return found


def _checked(columns: list[str]) -> list[str]:
    if len(set(columns)) != len(columns):
        raise ImportRefused("Two columns have the same name.")
    for name in columns:
        if not _is_known(name) and (reason := label_problem(name, "any")):
            raise ImportRefused(f"{reason} Columns are fields, `metric NAME_UNIT`, table, note and labels.")
    return columns


def _is_known(name: str) -> bool:
    return name in _TEXTS or name.startswith(_METRIC) or is_field(name)


def _named(columns: list[str], cells: list[str]) -> dict[str, str]:
    if len(cells) != len(columns):
        raise ImportRefused(f"The row has {len(cells)} fields and its head {len(columns)}.")
    return dict(zip(columns, cells, strict=True))


def _row(row: Mapping[str, str], tool: str, common: Mapping[str, Value]) -> Row:
    found = figures(row, {name: name for name in row if is_field(name) and name not in _TEXTS})
    metrics = _metrics(row)
    is_io = bool(found.rates) or found.latency != Latency()
    if not is_io and not metrics:
        raise ImportRefused("The row has no figure.")
    factors = {**common, **found.factors}
    note = row.get("note", "")
    measurement = Measurement(
        tool=tool,
        name=row.get("name", ""),
        direction=direction(row.get("direction", "") if is_io else "mixed", factors),
        factors=factors,
        **found.rates,  # type: ignore[arg-type]
        latency=found.latency,
        metrics=metrics,
        notes=(note,) if note else (),
    )
    return Row(row.get("table", ""), measurement, _labels(row))


def _metrics(row: Mapping[str, str]) -> dict[str, float]:
    stated = {name: text for name, text in row.items() if name.startswith(_METRIC) and text}
    return {name.removeprefix(_METRIC): number(text, name) for name, text in stated.items()}


def _labels(row: Mapping[str, str]) -> dict[str, str]:
    labels = {name: text for name, text in row.items() if text and not _is_known(name)}
    for name, text in labels.items():
        if reason := label_problem(name, text):
            raise ImportRefused(reason)
    return labels
