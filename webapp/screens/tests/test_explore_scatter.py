"""Two metrics against each other."""

import pytest

from webapp.analysis.comparing import select
from webapp.analysis.question import read_options, read_query
from webapp.results.models import StreamRun
from webapp.screens.explore.answer import scatter_of
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.results import Lab

pytestmark = pytest.mark.django_db


@pytest.fixture
def mix() -> None:
    """7,000 reads and 3,000 writes per second for 3 s with one CPU: 100 µs of CPU time for each I/O."""
    (read,) = Lab(a_target(a_host("a"), "scratch")).measure(7000.0, pattern="randrw", read_percent=70)
    StreamRun.objects.update(usr_cpu_percent=50, sys_cpu_percent=50)
    read.pk, read.direction, read.ios, read.iops = None, "write", 9000, 3000.0
    read.save(force_insert=True)


@pytest.mark.usefixtures("mix")
@pytest.mark.parametrize(("metric", "against"), [("iops", "cpu_per_io"), ("cpu_per_io", "iops")])
def test_a_mix_is_one_point_of_both_directions(metric: str, against: str) -> None:
    selected = select(read_query([("x", "iodepth"), ("metric", metric)]))
    charts, without = scatter_of(selected, read_options([("chart", "scatter"), ("against", against)]))
    ((point,),) = (series.points for panel in charts.panels for series in panel.series)
    figures = {charts.x_label: point.x, charts.y_label: point.y}
    assert figures == {"IOPS": pytest.approx(10_000), "CPU per I/O": pytest.approx(100_000)}
    assert without == 0


@pytest.mark.usefixtures("mix")
def test_a_latency_of_a_mix_has_a_chart_for_each_direction() -> None:
    selected = select(read_query([("x", "iodepth"), ("metric", "iops")]))
    charts, _ = scatter_of(selected, read_options([("chart", "scatter"), ("against", "latency_p99")]))
    assert [panel.name for panel in charts.panels] == ["read", "write"]
