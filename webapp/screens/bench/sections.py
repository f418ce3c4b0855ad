"""The parts of an answer that the page and its reports show alike."""

from collections.abc import Mapping
from dataclasses import dataclass

from webapp.bench.answer import BenchAnswer, BenchRow
from webapp.screens.bench.charts import LoadCharts, LoadTable, load_chart, load_table
from webapp.screens.bench.tracks import NOTHING, Forest, Heat, Lacking, forest, heats


@dataclass(frozen=True)
class NumbersRow:
    """One workload with a text for each product; the texts have what the plot has no room for."""

    title: str
    cells: tuple[tuple[str, str, tuple[str, ...]], ...]  # value, interval and n, further lines


@dataclass(frozen=True)
class Sections:
    answer: BenchAnswer
    forest: Forest | None
    loads: tuple[LoadTable, ...]
    load_charts: LoadCharts
    heats: tuple[Heat, ...]
    numbers: tuple[NumbersRow, ...]
    left_out: int  # shared workloads that are not on the plot


def sections(
    answer: BenchAnswer, *, whole: bool = False, lacking: Mapping[tuple[int, str], Lacking] = NOTHING
) -> Sections:
    places = [place for group in answer.forest for place in (group.shared if whole else group.rows)]
    return Sections(
        answer=answer,
        forest=forest(answer, whole=whole, lacking=lacking),
        loads=tuple(load_table(load, answer.products) for load in answer.loads),
        load_charts=LoadCharts(charts=tuple(load_chart(load, answer.products) for load in answer.loads)),
        heats=tuple(heats(answer)),
        numbers=tuple(_numbers(answer, answer.rows[place]) for place in places),
        left_out=sum(len(group.shared) for group in answer.forest) - len(places),
    )


def _numbers(answer: BenchAnswer, row: BenchRow) -> NumbersRow:
    return NumbersRow(row.name, tuple(_number(row, product.product) for product in answer.products))


def _number(row: BenchRow, product: str) -> tuple[str, str, tuple[str, ...]]:
    cell = next((candidate for candidate in row.cells if candidate.product == product), None)
    if cell is None:
        mixed = next((mixed_cell.choose for mixed_cell in row.mixed if mixed_cell.product == product), "")
        return mixed or next((absent.words for absent in row.missing if absent.product == product), ""), "", ()
    unstated = f"{cell.unstated} factor{'s' if cell.unstated > 1 else ''} not stated" if cell.unstated else ""
    further = (
        f"{cell.ratio_text} ({cell.ratio_spread})" if cell.ratio_spread else cell.ratio_text,
        f"{unstated}; matched with {cell.assumed}" if cell.assumed else unstated,
        cell.part,
        f"mean over {cell.pooled}" if cell.pooled else "",
        *cell.doubts,
    )
    return cell.text, f"{f'{cell.spread}, ' if cell.spread else ''}n = {cell.n}", tuple(filter(None, further))
