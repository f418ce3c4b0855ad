"""Metrics of a whole trial that are read only when they are compared. Expected values are worked out by hand."""

import json
from datetime import datetime, timedelta

import msgspec
import pytest

from webapp.analysis.answer import Comparison
from webapp.analysis.comparing import comparison_of, select
from webapp.analysis.models import Price
from webapp.analysis.question import CompareQuery
from webapp.analysis.trial_metrics import COMPARED, known_metric, metric_named, metrics_of
from webapp.hosts.inventory import ceilings
from webapp.hosts.inventory.ceilings import Bound
from webapp.imports.reading.limits import Read
from webapp.results.models import Result, Sample, StreamRun, known
from webapp.runs.models import Run
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.results import START, Lab
from worker.contract.workload import Settled, Stopped

pytestmark = pytest.mark.django_db


def made(metric: str) -> Comparison:
    return comparison_of(select(CompareQuery(x="iodepth", metric=metric)))


def means(comparison: Comparison) -> list[float]:
    return [cell.summary.mean for panel in comparison.panels for series in panel.series for cell in series.cells]


def sensed(result: Result, sensors: list[list[str]], *seconds: list[float | None]) -> None:
    stream = known(result.stream_run)
    StreamRun.objects.filter(pk=stream.pk).update(sensors=sensors)
    for second, telemetry in enumerate(seconds, start=1):
        Sample.objects.create(
            attempt=stream.attempt, stream=0, offset_ms=1000 * second, length_ms=1000, direction="read", at=START,
            ios=1, bytes=4096, latency=b"", telemetry=telemetry,
        )  # fmt: skip


def test_cpu_per_io_is_the_time_of_all_processes_over_all_ios_of_the_trial(lab: Lab) -> None:
    """150 % of one CPU for 3 s are 4.5 s; 3,000 reads and 1,500 writes make 1 ms for each I/O."""
    read = lab.measure(1000.0)[0]
    StreamRun.objects.update(usr_cpu_percent=50, sys_cpu_percent=100)
    read.pk, read.direction, read.ios = None, "write", 1500
    read.save()
    comparison = made("cpu_per_io")
    assert means(comparison) == [pytest.approx(1e6)]
    assert comparison.panels[0].series[0].cells[0].text == "1.00 ms"
    assert not [note for note in comparison.notes if "left out" in note]


def test_a_value_of_the_whole_trial_is_not_labelled_with_one_direction(lab: Lab) -> None:
    (read,) = lab.measure(7000.0, pattern="randrw", read_percent=70)
    StreamRun.objects.update(usr_cpu_percent=50, sys_cpu_percent=50)
    read.pk, read.direction, read.ios, read.iops = None, "write", 9000, 3000.0
    read.save(force_insert=True)
    found = comparison_of(select(CompareQuery("iodepth", ("direction",), metric="cpu_per_io")))
    assert [series.name for series in found.panels[0].series] == ["read + write"]
    assert found.notes[0] == (
        "For mixed workloads, CPU per I/O is of the whole trial, also if a filter chooses one direction."
    )


def test_a_trial_without_the_value_is_left_out_and_counted(lab: Lab) -> None:
    first, unknown = lab.measure(1000.0, 1000.0)
    StreamRun.objects.filter(pk=known(first.stream_run).pk).update(usr_cpu_percent=10, sys_cpu_percent=0)
    comparison = made("cpu_per_io")
    assert means(comparison) == [pytest.approx(1e5)]
    assert "1 result is left out: it has no value for CPU per I/O." in comparison.notes
    assert made("iops_per_watt").panels == ()
    assert made("temperature").panels == ()
    assert known(unknown.stream_run).usr_cpu_percent is None


def test_power_is_that_of_the_server_rather_than_of_its_processors(lab: Lab) -> None:
    server, packages, none = lab.measure(1000.0, 1000.0, 1000.0)
    kinds = [["power", "package-0"], ["power", "package-0 dram"], ["temperature", "sda"]]
    sensed(server, [*kinds, ["power", "server (IPMI)"]], [10.0, 5.0, 40.0, 100.0], [10.0, 5.0, 41.0, 300.0])
    sensed(packages, kinds, [20.0, 5.0, 40.0], [24.0, 1.0, 44.0])
    sensed(none, kinds, [None, None, None])
    cell = made("iops_per_watt").panels[0].series[0].cells[0]
    assert sorted(cell.summary.values) == [pytest.approx(1000 / 200), pytest.approx(1000 / 25)]


def test_power_is_of_the_window_of_a_stop_rule(lab: Lab) -> None:
    """100 W before the window and 50 W in it; the result of 1,000 IOPS is that of the window."""
    (result,) = lab.measure(1000.0)
    before: list[float | None] = [100.0]
    inside: list[float | None] = [50.0]
    sensed(result, [["power", "server (IPMI)"]], *[before] * 60, *[inside] * 30)
    stopped = Stopped(rule=Settled(hold_s=30), reached=True, at_ms=90_000, from_ms=60_000, to_ms=90_000)
    StreamRun.objects.update(stopped=msgspec.to_builtins(stopped))
    assert (means(made("power")), means(made("iops_per_watt"))) == ([50.0], [20.0])
    StreamRun.objects.update(stopped=msgspec.to_builtins(msgspec.structs.replace(stopped, reached=False)))
    assert means(made("power")) == [pytest.approx(250 / 3)]


def test_temperature_is_that_of_the_hottest_drive_and_not_of_a_processor(lab: Lab) -> None:
    (result,) = lab.measure(1000.0)
    sensed(
        result,
        [["temperature", "Package id 0"], ["temperature", "sda"], ["temperature", "nvme0n1"]],
        [90.0, 40.0, 50.0],
        [90.0, 44.0, 52.0],
    )
    comparison = made("temperature")
    assert means(comparison) == [pytest.approx(51.0)]
    assert comparison.panels[0].series[0].cells[0].text == "51.0 °C"


def test_the_share_of_the_ceiling_is_that_of_the_target_s_links(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.measure(1000.0)  # 4,096,000 B/s
    one = (Bound("a/scratch", 8_192_000.0, "SATA"),)
    monkeypatch.setattr("webapp.analysis.trial_metrics.bounds_of", lambda moments, most: one)
    assert means(made("ceiling_share")) == [pytest.approx(50.0)]
    twice = (*one, Bound("a/scratch", 1e9, "PCI Express"))
    monkeypatch.setattr("webapp.analysis.trial_metrics.bounds_of", lambda moments, most: twice)
    assert made("ceiling_share").panels == ()
    assert ceilings.bounds_of({}, most=None) == ()


def test_the_share_of_the_ceiling_is_that_of_the_links_when_the_run_started(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.measure(1000.0)  # 4,096,000 B/s
    later = Lab(lab.target, number=2)
    later.measure(1000.0)
    Run.objects.filter(number=2).update(started_at=START + timedelta(days=10))

    def limits(moments: dict[str, datetime], most: None) -> tuple[Bound, ...]:
        return tuple(
            Bound(name, 8_192_000.0 if at < START + timedelta(days=5) else 16_384_000.0, "SATA")
            for name, at in moments.items()
        )

    monkeypatch.setattr("webapp.analysis.trial_metrics.bounds_of", limits)
    assert means(comparison_of(select(CompareQuery("iodepth", ("run",), metric="ceiling_share")))) == [50.0, 25.0]


def test_the_share_of_the_ceiling_of_a_mix_is_that_of_its_faster_direction(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limits are of one direction: PCI Express moves reads and writes at the same time."""
    (read,) = lab.measure(1000.0, pattern="randrw")  # 4,096,000 B/s
    Result.objects.filter(pk=read.pk).update(direction="write")
    read.pk, read.bytes_per_s = None, 6_144_000.0
    read.save(force_insert=True)
    one = (Bound("a/scratch", 8_192_000.0, "PCI Express"),)
    monkeypatch.setattr("webapp.analysis.trial_metrics.bounds_of", lambda moments, most: one)
    assert means(made("ceiling_share")) == [pytest.approx(75.0)]


def test_cpu_per_io_of_an_imported_test_counts_once_for_its_directions(lab: Lab) -> None:
    """(6 + 9) % of one CPU and 2 processes for 4 s are 1.2 s; 6,000 reads and 2,000 writes make 150 µs for each I/O."""
    flows = {
        way: {"io_bytes": 4096 * ios, "bw_bytes": 1024 * ios, "iops": ios / 4, "runtime": 4000, "total_ios": ios}
        for way, ios in (("read", 6000), ("write", 2000))
    }
    options = {"rw": "randrw", "bs": "4k", "iodepth": "4", "numjobs": "2", "group_reporting": ""}
    job = {"jobname": "a", "job options": options, "usr_cpu": 6, "sys_cpu": 9, "job_runtime": 8000, **flows}
    text = json.dumps({"fio version": "fio-3.33", "jobs": [job]})
    an_import(further=[Read("a.json", text)])
    (result,) = lab.measure(1000.0)
    StreamRun.objects.filter(pk=known(result.stream_run).pk).update(usr_cpu_percent=10, sys_cpu_percent=0)
    comparison = made("cpu_per_io")
    assert sorted(means(comparison)) == [pytest.approx(1e5), pytest.approx(1.5e5)]


def offered() -> set[str]:
    return {*metrics_of(select(CompareQuery(x="iodepth")).matching.rows)} & {*COMPARED}


def with_values() -> set[str]:
    return {key for key in COMPARED if made(key).results}


def test_only_metrics_with_values_are_offered(lab: Lab) -> None:
    result = lab.measure(1000.0)[0]
    assert offered() == with_values()
    assert {"iops", "latency_p99"} <= offered()
    assert not offered() & {"power", "iops_per_watt", "temperature", "cpu_per_io", "ceiling_share", "copy_s"}
    StreamRun.objects.update(usr_cpu_percent=50, sys_cpu_percent=100)
    sensed(result, [["power", "server 1"], ["temperature", "sda"]], [100.0, 40.0])
    assert offered() == with_values()
    assert {"power", "iops_per_watt", "temperature", "cpu_per_io"} <= offered()


def test_iops_per_price_is_offered_with_a_price(lab: Lab) -> None:
    an_import(drive="PM9A3")
    Price.objects.create(kind="model", name="PM9A3", amount=100, currency="EUR", priced_on="2026-01-01")
    assert "iops_per_price" in offered()
    assert offered() == with_values()


def test_abbreviations_of_fio_are_written_out_and_printed_steps_are_no_metric() -> None:
    labels = [metric_named(key).label for key in ("lat_mean_ns", "slat_mean_ns", "usr_cpu_percent")]
    assert labels == ["Mean total latency", "Mean submission latency", "User CPU"]
    assert known_metric("percentile_step_ns") is None
