"""Scores of use cases against values computed by hand, and their properties."""

import math
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.bench.products import Kind as ProductKind
from webapp.bench.products import Product
from webapp.bench.rankings.catalogue import Load
from webapp.bench.rankings.groups import Cells, Entry, Kind
from webapp.bench.rankings.question import USE_CASES, Question, UseCase
from webapp.bench.rankings.scores import ScoreGroup, scores_of
from webapp.bench.rankings.standings import Lead
from webapp.bench.rankings.tests.values import a_value
from webapp.bench.workloads import RATE, Panel
from webapp.results.metrics import IOPS
from worker.contract.workload import KIB, Pattern

READ_1, READ_32, WRITE_1, WRITE_32 = LOADS = tuple(
    Load(pattern, 4 * KIB, depth, 1) for pattern in (Pattern.RANDREAD, Pattern.RANDWRITE) for depth in (1, 32)
)
HOST = ("storage1", "HBA")


def an_entry(
    name: str, load: Load, *values: float, place: tuple[str, ...] = HOST, tool: str = "fio", run: int = 1
) -> Entry:
    panel = Panel(RATE, IOPS, load.pattern, "read")
    kind = Kind(tool, place, frozenset({("ioengine", "io_uring")}))
    return Entry(Product(ProductKind.MODEL, name), name, place, kind, load, panel, a_value(*values, run=run), ())


def scored(entries: Sequence[Entry], **asked: object) -> list[ScoreGroup]:
    return scores_of(Cells(tuple(entries), ()), Question(**asked))  # type: ignore[arg-type]


def of_rates(rates: Mapping[str, Sequence[float]], **asked: object) -> list[ScoreGroup]:
    """One value for each drive and load."""
    entries = [
        an_entry(name, load, value, run=run)
        for run, (name, values) in enumerate(rates.items())
        for load, value in zip(LOADS, values, strict=True)
    ]
    return scored(entries, **asked)


def values_of(group: ScoreGroup) -> dict[str, float]:
    return {score.entry.name: score.value for score in group.scores}


def test_two_published_drives_have_the_score_that_their_table_gives() -> None:
    """fio-plot's published table of the two drives, weights 30, 25, 30 and 15."""
    (group,) = of_rates(
        {
            "860 PRO": (16225.4, 52419.3, 22303.5, 50381.6),
            "D3-S4610": (8360.8, 52799.6, 17234.8, 50535.6),
        }
    )
    ratios = (8360.8 / 16225.4, 52799.6 / 52419.3, 17234.8 / 22303.5, 50535.6 / 50381.6)
    by_hand = 100 * math.prod(ratio**weight for ratio, weight in zip(ratios, (0.3, 0.25, 0.3, 0.15), strict=True))
    assert values_of(group) == pytest.approx({"860 PRO": 100, "D3-S4610": by_hand})
    assert by_hand == pytest.approx(76, abs=0.5)
    assert group.order.lead is Lead.SEEN
    assert all(score.ratio.low is None for score in group.scores)


def test_a_drive_that_lacks_a_workload_has_no_score() -> None:
    entries = [an_entry(name, load, 100) for name in ("A", "B") for load in LOADS]
    entries += [an_entry("C", load, 900) for load in LOADS[:3]]
    (group,) = scored(entries)
    assert set(values_of(group)) == {"A", "B"}
    assert [(each.entry.name, each.parts) for each in group.lacking] == [("C", ("Random write, 32 in flight",))]


def test_a_workload_that_too_few_drives_have_is_left_out_and_said() -> None:
    entries = [an_entry(name, load, 100) for name in ("A", "B") for load in LOADS[:3]]
    (group,) = scored([*entries, an_entry("A", WRITE_32, 100)])
    assert group.weight == pytest.approx(0.85)
    assert [basis.load is None for basis in group.bases] == [False, False, False, True]


def test_nobody_has_a_score_if_too_little_is_measured() -> None:
    assert scored([an_entry(name, load, 100) for name in ("A", "B") for load in LOADS[:2]]) == []


def test_hosts_and_tools_are_never_mixed() -> None:
    entries = [an_entry("A", load, 100) for load in LOADS]
    assert scored([*entries, *(an_entry("B", load, 100, place=("storage2", "HBA")) for load in LOADS)]) == []
    assert scored([*entries, *(an_entry("B", load, 100, tool="sysbench") for load in LOADS)]) == []


def test_weights_change_the_order() -> None:
    rates = {"reader": (200.0, 200.0, 100.0, 100.0), "writer": (100.0, 100.0, 200.0, 200.0)}
    for weights, best in (((90, 10, 0, 0), "reader"), ((0, 0, 50, 50), "writer")):
        (group,) = of_rates(rates, weights=weights)
        assert group.scores[0].entry.name == best
        assert values_of(group)[best] == pytest.approx(100)


def test_a_workload_without_a_weight_is_not_needed() -> None:
    entries = [an_entry(name, READ_1, value) for name, value in (("A", 100.0), ("B", 50.0))]
    (group,) = scored(entries, weights=(100, 0, 0, 0))
    assert values_of(group) == pytest.approx({"A": 100, "B": 50})


def test_the_interval_of_a_score_is_that_of_the_weighted_contrast() -> None:
    """Equal weights on one workload twice as noisy: the interval is between those of both workloads alone."""
    noisy, quiet = (90.0, 100.0, 111.0), (99.0, 100.0, 101.0)
    entries = []
    for run, (name, factor) in enumerate((("A", 1.0), ("B", 2.0))):
        entries.append(an_entry(name, READ_1, *(factor * value for value in noisy), run=run))
        entries.append(an_entry(name, READ_32, *(factor * value for value in quiet), run=run))
    widths = []
    for weights in ((100, 0, 0, 0), (50, 50, 0, 0), (0, 100, 0, 0)):
        (group,) = scored(entries, weights=weights)
        ratio = group.scores[1].ratio
        assert ratio.value == pytest.approx(0.5)
        assert ratio.low
        assert ratio.high
        widths.append(math.log(ratio.high / ratio.low))
    assert widths[0] > widths[1] > widths[2]


rates = st.floats(1, 1e7)
tables = st.dictionaries(st.sampled_from("ABCDEF"), st.tuples(rates, rates, rates, rates), min_size=2)
weights = st.tuples(*[st.integers(0, 100)] * 4).filter(any)


@given(tables, weights, st.sampled_from("ABCDEF"))
def test_the_base_does_not_change_order_or_ratios(
    table: dict[str, tuple[float, ...]], weights: tuple[int, ...], base: str
) -> None:
    (best,) = of_rates(table, weights=weights)
    (other,) = of_rates(table, weights=weights, base=f"model:{base}")
    assert [score.entry.name for score in best.scores] == [score.entry.name for score in other.scores]
    if base in table:
        assert values_of(other)[base] == pytest.approx(100)
    first, last = best.scores[0].entry.name, best.scores[-1].entry.name
    ratio = values_of(best)[first] / values_of(best)[last]
    assert values_of(other)[first] / values_of(other)[last] == pytest.approx(ratio, rel=1e-6)


@given(tables, weights, st.floats(0.1, 10))
def test_a_faster_host_for_all_changes_no_score(
    table: dict[str, tuple[float, ...]], weights: tuple[int, ...], factor: float
) -> None:
    (group,) = of_rates(table, weights=weights)
    (scaled,) = of_rates({name: tuple(factor * rate for rate in row) for name, row in table.items()}, weights=weights)
    scores, again = sorted(values_of(group).values()), sorted(values_of(scaled).values())
    assert again == pytest.approx(scores, rel=1e-6)


@given(tables, weights, st.integers(0, 3))
def test_a_higher_rate_never_lowers_a_score(
    table: dict[str, tuple[float, ...]], weights: tuple[int, ...], place: int
) -> None:
    name, base = sorted(table)[:2]
    better = table | {name: tuple(2 * rate if at == place else rate for at, rate in enumerate(table[name]))}
    (before,) = of_rates(table, weights=weights, base=f"model:{base}")
    (after,) = of_rates(better, weights=weights, base=f"model:{base}")
    assert values_of(after)[name] >= values_of(before)[name] * (1 - 1e-9)


@pytest.mark.parametrize("use_case", USE_CASES.values(), ids=USE_CASES)
def test_weights_are_percent_and_parts_exclude_each_other(use_case: UseCase) -> None:
    assert sum(use_case.weights) == 100
    assert len(use_case.weights) == len(use_case.parts)
    loads = [
        Load(pattern, block, depth, 1)
        for pattern in Pattern
        for block in (4 * KIB, 16 * KIB, 1024 * KIB)
        for depth in (1, 16, 64)
    ]
    assert all(sum(part.fits(load) for part in use_case.parts) <= 1 for load in loads)
