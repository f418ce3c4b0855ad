"""The rows of the table of results as HTML. A template is too slow for thousands of cells."""

from collections.abc import Iterable, Iterator, Sequence

from django.utils.safestring import SafeString

from webapp.results.reading.rows import ResultRow
from webapp.screens.addresses import TrialAddress, trial_addresses
from webapp.screens.choices import escaped
from webapp.screens.results.columns import WHEN, Column
from webapp.screens.templatetags.show import moment

_MARKED = ' class="is-invalid-row"'


def table_rows(results: Iterable[ResultRow], columns: Sequence[Column], *, with_reasons: bool) -> SafeString:
    """One row for each result; `with_reasons` adds a last column with the reason why a result is invalid."""
    address_of = trial_addresses()
    return SafeString("".join(_row(result, columns, with_reasons, address_of) for result in results))


def _row(result: ResultRow, columns: Sequence[Column], with_reasons: bool, address_of: TrialAddress) -> str:
    trial = address_of(result.run, result.trial)
    return (
        f"<tr{_MARKED if result.invalid else ''}>"
        f'<td class="sticky nowrap"><a href="{trial}">{result.run} #{result.trial}</a>'
        f"{_trouble(trial, result.kernel_lines) if result.kernel_lines else ''}</td>"
        f"{''.join(_cells(result, columns))}{_reason(result) if with_reasons else ''}</tr>\n"
    )


def _trouble(trial: str, lines: int) -> str:
    count = f"{lines} line{'' if lines == 1 else 's'}"
    return (
        f' <a class="trouble" href="{trial}#kernel-log" '
        f'title="Storage errors in the kernel log during this trial: {count}">⚠'
        f'<span class="visually-hidden"> kernel log: {count}</span></a>'
    )


def _cells(result: ResultRow, columns: Sequence[Column]) -> Iterator[str]:
    for column in columns:
        if column.key == WHEN:
            yield f"<td>{moment(result.measured_at)}</td>"
        else:
            doubted = " distrust" if column.measured and result.invalid else ""
            yield f'<td class="{"num" if column.numeric else "nowrap"}{doubted}">{escaped(column.text(result))}</td>'


def _reason(result: ResultRow) -> str:
    words = f'<span class="worse">invalid: {escaped(result.why_invalid)}</span>' if result.invalid else ""
    return f'<td class="small">{words}</td>'
