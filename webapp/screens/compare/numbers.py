"""The rows of the table of all numbers as HTML: hundreds of rows are usual, too many for a template to be quick."""

from collections.abc import Iterable

from django.utils.safestring import SafeString

from webapp.screens.choices import escaped
from webapp.screens.compare.charts import TableRow

_BASELINE = '<td class="num muted" colspan="2">baseline</td>'
_NOTHING = '<td class="num">–</td><td class="num">–</td>'
_UNRESOLVED = ' title="The interval holds no difference: chance may be all there is."'


def number_rows(rows: Iterable[TableRow], *, with_panel: bool) -> SafeString:
    """One for each cell; `with_panel` the chart that it is in comes first."""
    return SafeString("".join(_row(row, with_panel) for row in rows))


def _row(row: TableRow, with_panel: bool) -> str:
    cell, series = row.cell, escaped(row.series)
    panel = f'<td class="nowrap">{escaped(row.panel)}</td>' if with_panel else ""
    return (
        f'<tr>{panel}<td class="sticky nowrap">{escaped(row.level)}</td>'
        f'<td class="nowrap"><span class="mark" data-series="{series}"></span>{series}</td>'
        f'<td class="num{" doubt" if cell.doubts else ""}">{escaped(cell.text)}</td>'
        f'<td class="num muted">{escaped(cell.spread_text)}</td><td class="num">{cell.n}</td>{_against_baseline(row)}'
        f'<td class="small muted doubts">{escaped("; ".join(cell.doubts))}</td></tr>\n'
    )


def _against_baseline(row: TableRow) -> str:
    ratio, mark = row.cell.ratio, row.mark
    if row.is_baseline:
        return _BASELINE
    if ratio is None:
        return _NOTHING
    told = "" if mark == "muted" else f'<span class="visually-hidden"> {mark}</span>'
    return (
        f'<td class="num {mark}"{"" if ratio.resolved else _UNRESOLVED}>{escaped(ratio.text)}{told}</td>'
        f'<td class="num muted">{escaped(ratio.interval_text or "–")}</td>'
    )
