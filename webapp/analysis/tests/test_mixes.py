import pytest

from webapp.analysis.comparing import compare, for_latencies, select
from webapp.analysis.latency import chart_point, chart_points
from webapp.analysis.question import CompareQuery, read_query
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db


def measure_mix(lab: Lab, read: float, write: float, repeat: int = 1) -> None:
    """One trial of a mix of 70 % reads, with a result for each direction."""
    (result,) = lab.measure(read, pattern="randrw", read_percent=70)
    result.repeat = repeat
    result.save()
    result.pk, result.direction, result.iops, result.bytes_per_s = None, "write", write, write * 4096
    result.latency_mean_ns = 1e9 / write
    result.save()


@pytest.mark.parametrize(("metric", "of_one"), [("iops", 1), ("bytes_per_s", 4096)])
def test_iops_and_bandwidth_of_a_mix_are_the_sum_of_its_reads_and_writes(lab: Lab, metric: str, of_one: int) -> None:
    measure_mix(lab, 700.0, 300.0)
    measure_mix(lab, 707.0, 303.0, repeat=2)
    made = compare(CompareQuery("iodepth", ("ioengine",), metric=metric))
    assert [panel.series[0].cells[0].summary.values for panel in made.panels] == [(1000.0 * of_one, 1010.0 * of_one)]
    assert made.differs == ()
    assert any(
        note.startswith("For mixed workloads, ") and note.endswith("is the sum of both directions.")
        for note in made.notes
    )


def test_one_direction_of_a_mix_can_be_chosen_and_directions_can_be_series(lab: Lab) -> None:
    measure_mix(lab, 700.0, 300.0)
    writes = compare(read_query([("x", "iodepth"), ("direction", "write")]))
    assert [panel.series[0].cells[0].summary.values for panel in writes.panels] == [(300.0,)]
    told = compare(CompareQuery("iodepth", ("direction",)))
    assert [(s.name, s.cells[0].summary.values) for s in told.panels[0].series] == [
        ("read", (700.0,)),
        ("write", (300.0,)),
    ]


@pytest.mark.parametrize(("panel", "names"), [("", ["read", "write"]), ("pattern", ["randrw, read", "randrw, write"])])
def test_latencies_of_a_mix_have_a_chart_for_each_direction(lab: Lab, panel: str, names: list[str]) -> None:
    measure_mix(lab, 700.0, 300.0)
    made = compare(CompareQuery("iodepth", ("ioengine",), panel=panel, metric="latency_mean"))
    assert [panel.name for panel in made.panels] == names
    assert [panel.series[0].cells[0].summary.mean for panel in made.panels] == [1e9 / 700, 1e9 / 300]
    assert made.differs == ()
    assert made.notes[0] == "Latencies are not added up, so each direction has its own chart."


def test_the_latency_view_keeps_directions_of_a_mix_apart_whatever_the_metric(lab: Lab) -> None:
    measure_mix(lab, 700.0, 300.0)
    selected = select(CompareQuery("iodepth", ("ioengine",)))
    assert list(chart_points(selected).values()) == ["Queue depth 1"]
    assert len(chart_point(selected).result_ids) == 2
    apart = for_latencies(selected)
    assert list(chart_points(apart).values()) == ["read · Queue depth 1", "write · Queue depth 1"]
    assert [len(chart_point(apart, key).result_ids) for key in chart_points(apart)] == [1, 1]
