"""The rows of the table of all numbers as HTML. A template is too slow for hundreds of rows."""

from collections.abc import Iterable

from django.utils.safestring import SafeString

from webapp.compare.sentences import unclear
from webapp.screens.choices import escaped
from webapp.screens.compare.charts import TableRow

_BASELINE = '<td class="num muted" colspan="2">baseline</td>'
_NOTHING = '<td class="num">–</td><td class="num">–</td>'


def number_rows(rows: Iterable[TableRow], *, with_panel: bool) -> SafeString:
    """One row for each cell; `with_panel` adds the chart as the first column."""
    return SafeString("".join(_row(row, with_panel) for row in rows))


def _row(row: TableRow, with_panel: bool) -> str:
    cell, series = row.cell, escaped(row.series)
    panel = f'<td class="nowrap">{escaped(row.panel)}</td>' if with_panel else ""
    return (
        f'<tr>{panel}<td class="sticky nowrap">{escaped(row.level)}</td>'
        f'<td class="nowrap"><span class="mark" data-series="{series}"></span>{series}</td>'
        f'<td class="num{" doubt" if cell.doubts else ""}">{escaped(cell.text)}</td>'
        f'<td class="num muted">{escaped(cell.spread_text)}</td><td class="num">{cell.summary.n}</td>'
        f"{_against_baseline(row)}"
        f'<td class="small muted doubts">{escaped("; ".join(cell.doubts))}</td></tr>\n'
    )


def _against_baseline(row: TableRow) -> str:
    against, mark = row.cell.against_baseline, row.mark
    if row.is_baseline:
        return _BASELINE
    if against is None:
        return _NOTHING
    spoken = "" if mark == "muted" else f'<span class="visually-hidden"> {mark}</span>'
    why = f' title="{escaped(unclear(against))}"' if against.better is None else ""
    return (
        f'<td class="num {mark}"{why}>{escaped(against.text)}{spoken}</td>'
        f'<td class="num muted">{escaped(against.interval_text or "–")}</td>'
    )
