"""What the pages of products and targets show of their results."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from webapp.bench.product_history import Change, OverTime, RunOfProduct, changes, over_time, runs
from webapp.bench.products import Kind, Product
from webapp.bench.reading import newest_rows, read_history, read_results
from webapp.bench.side_by_side import Selection, SideBySide, matched_of
from webapp.bench.workloads import RATE
from webapp.pictures.elements import colours_of
from webapp.results.reading.doubts import unfinished_sentences
from webapp.results.reading.newest import PER_CELL
from webapp.screens.bench.address import bench_address
from webapp.screens.bench.charts import BenchCharts, ChartTable, curve_chart, curve_table, time_chart, time_table
from webapp.screens.bench.rows import ShownRow, shown_headlines

MIN_RUNS = 2  # for values over time
MAX_RUNS = 50  # in the table, the newest
_FILTERS = {
    Kind.MODEL: "model",
    Kind.SERIAL: "serial",
    Kind.TARGET: "target",
    Kind.HOST: "host",
    Kind.CONTROLLER: "controller",
    Kind.LAYOUT: "layout",
    Kind.CONFIGURATION: "configuration",
}


@dataclass(frozen=True)
class ShownChart:
    table: ChartTable
    names: tuple[tuple[str, int], ...]  # of the columns, with their colours
    note: str  # in a saved picture: the product and the workload


@dataclass(frozen=True)
class ProductParts:
    product: Product
    name: str
    results: int
    compare: str  # address of Bench with this product
    filter: str  # key of the filters of Results and Compare
    unfinished: tuple[str, ...]  # sentences about cancelled and failed runs whose results are in the headlines
    headlines: tuple[ShownRow, ...]
    charts: tuple[ShownChart, ...]
    payload: BenchCharts
    runs: tuple[RunOfProduct, ...]
    run_count: int  # with those that are not shown
    changes: tuple[Change, ...]
    cut: int  # results shown if there are more, else 0
    most: int  # results of a test point in the values if one has more, else 0


def product_parts(product: Product) -> ProductParts | None:
    """None without results. At most nine queries; of a product with too many results twice as many."""
    selection = Selection((product,), product)
    history = matched_of(selection, read_history(product))
    rows = history.read.rows[product]
    if not rows:
        return None
    shown = read_results([product]).rows[product] if history.read.cut else newest_rows(product, rows)
    current = history if shown == rows else matched_of(selection, replace(history.read, rows={product: shown}))
    times = [
        over_time
        for over_time in _over_time(current, history, product)
        if any(len(values) >= MIN_RUNS for values in over_time.values.values())
    ]
    of_product = runs(rows)
    names, colours = current.matched.names, list(current.colours.values())
    return ProductParts(
        product=product,
        name=names[product],
        results=len(rows),
        compare=bench_address([product]),
        filter=_FILTERS[product.kind],
        unfinished=tuple(unfinished_sentences(shown)),
        headlines=shown_headlines(current),
        charts=(
            *(
                _chart(names[product], time_table(over_time, _words(current, over_time)), colours_of(over_time.values))
                for over_time in times
            ),
            *(
                _chart(names[product], curve_table(curve, names), dict(zip(names.values(), colours, strict=True)))
                for curve in current.curves
            ),
        ),
        payload=BenchCharts(
            charts=(
                *(time_chart(over_time) for over_time in times),
                *(curve_chart(curve, names, current.colours) for curve in current.curves),
            )
        ),
        runs=tuple(of_product[:MAX_RUNS]),
        run_count=len(of_product),
        changes=tuple(changes(rows)),
        cut=history.read.limit if history.read.cut else 0,
        most=PER_CELL if shown != rows else 0,
    )


def _chart(name: str, table: ChartTable, colours: Mapping[str, int]) -> ShownChart:
    return ShownChart(table, tuple(colours.items()), " · ".join(filter(None, (name, table.words))))


def _words(comparison: SideBySide, over_time: OverTime) -> str:
    """The workload, and how many targets and runs are not shown."""
    words, targets = [comparison.matched.texts[over_time.workload.key]], len(over_time.values)
    values = max(map(len, over_time.values.values()), default=0)
    if targets < over_time.targets:
        words.append(f"the {targets} targets with the most runs, of {over_time.targets}")
    if values < over_time.runs:
        words.append(f"the newest {values} of {over_time.runs:,} runs")
    return " · ".join(words)


def _over_time(current: SideBySide, history: SideBySide, product: Product) -> list[OverTime]:
    """The headlines in all runs."""
    rates = [row for row in current.headlines if row.panel.choice == RATE]
    return [over_time(history.matched, product, row.title, row.panel, row.workload) for row in rates]
