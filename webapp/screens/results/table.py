"""The rows of the table of results as HTML: a page has thousands of cells, too many for a template to be quick."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from webapp.results.models import Result
from webapp.screens.results.columns import WHEN, Column
from webapp.screens.templatetags.show import moment

_ROW = '<tr{}><td class="sticky nowrap"><a href="{}">{} #{}</a>{}</td>{}{}</tr>\n'
_TROUBLE = (
    ' <a class="trouble" href="{}#kernel-log" '
    'title="The kernel reported trouble with storage meanwhile: {} of its log">⚠'
    '<span class="visually-hidden"> kernel log: {}</span></a>'
)


def table_rows(results: Iterable[Result], columns: Sequence[Column], *, with_reasons: bool) -> SafeString:
    """One for each result; `with_reasons` there is a last column that says why a result is not to be trusted."""
    return format_html_join("", _ROW, (_row(result, columns, with_reasons) for result in results))


def _row(result: Result, columns: Sequence[Column], with_reasons: bool) -> tuple[object, ...]:
    number, index = result.run.number, result.trial.index
    trial = reverse("trial", args=(number, index))
    return (
        SafeString(' class="is-invalid-row"' if result.invalid else ""),
        trial,
        number,
        index + 1,
        _trouble(trial, result.kernel_lines) if result.kernel_lines else "",
        SafeString("".join(_cells(result, columns))),
        _reason(result) if with_reasons else "",
    )


def _trouble(trial: str, lines: int) -> SafeString:
    said = f"{lines} line{'' if lines == 1 else 's'}"
    return format_html(_TROUBLE, trial, said, said)


def _cells(result: Result, columns: Sequence[Column]) -> Iterator[str]:
    for column in columns:
        if column.key == WHEN:
            yield f"<td>{moment(result.measured_at)}</td>"
        else:
            doubted = " distrust" if column.measured and result.invalid else ""
            yield f'<td class="{"num" if column.numeric else "nowrap"}{doubted}">{escape(column.text(result))}</td>'


def _reason(result: Result) -> SafeString:
    words = format_html('<span class="worse">invalid: {}</span>', result.why_invalid) if result.invalid else ""
    return format_html('<td class="small">{}</td>', words)
