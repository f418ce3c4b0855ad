"""What is read beside the I/O: telemetry, lines of the kernel's log, readings of drives."""

import pytest
from django.test import Client
from msgspec.structs import replace

from webapp.core.models import Role
from webapp.results.models import Result, Sample, StreamRun
from webapp.results.tests.ingesting import BEGUN, state
from webapp.runs.dispatch.dispatcher import request_inventory
from webapp.runs.models import Attempt
from webapp.tests.factories.hosts import a_host
from webapp.tests.factories.people import a_user
from webapp.tests.factories.reports import (
    ACCEPTED,
    DONE,
    RESULT,
    STARTED,
    failed,
    sample,
    say,
)
from worker.contract.items import (
    Direction,
    DriveReading,
    KernelLine,
    KernelLog,
    Metric,
    ReadingMoment,
    Sensor,
    SensorKind,
    StreamStarted,
    Unit,
)
from worker.contract.tests.examples import AT, ITEMS, SAMPLE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def with_sensors(*names: str) -> StreamStarted:
    return replace(STARTED, sensors=tuple(Sensor(kind=SensorKind.TEMPERATURE, name=name) for name in names))


def test_it_stores_telemetry(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, (ACCEPTED, with_sensors("sda", "sdb"))))
    both = (*SAMPLE.directions, replace(SAMPLE.directions[0], direction=Direction.WRITE))
    said = (replace(sample(0), directions=both, telemetry=(31.5, None)), replace(sample(1), telemetry=()))
    say(attempt.host, attempt, (2, said))
    assert StreamRun.objects.get().sensors == [["temperature", "sda"], ["temperature", "sdb"]]
    kept = Sample.objects.order_by("offset_ms", "direction").values_list("offset_ms", "direction", "telemetry")
    assert list(kept) == [(1000, "read", [31.5, None]), (1000, "write", None), (2000, "read", None)]


def test_a_resync_has_bytes_but_no_ios_and_no_latencies(attempt: Attempt) -> None:
    own = Metric(name="complete_s", label="Time until complete", unit=Unit.SECONDS)
    moved = replace(SAMPLE.directions[0], direction=Direction.RESYNC, ios=0, bytes=5000)
    part = replace(RESULT.directions[0], direction=Direction.RESYNC, ios=0, iops=0, bytes=5000, bytes_per_s=5000)
    say(attempt.host, attempt, (1, (ACCEPTED, replace(STARTED, metrics=(own,)))))
    say(attempt.host, attempt, (2, (replace(sample(0), directions=(moved,)),)))
    say(attempt.host, attempt, (3, (replace(RESULT, directions=(part,), metrics={"complete_s": 1.0}), DONE)))
    result = Result.objects.get()
    assert (result.direction, result.bytes, result.bytes_per_s) == ("resync", 5000, 5000)
    assert (result.ios, result.iops, result.latency_mean_ns, result.latency_kind) == (None, None, None, "")
    assert result.metrics == {"complete_s": 1.0}
    client = Client()
    client.force_login(a_user("somebody", Role.VIEWER))
    assert attempt.trial is not None
    page = client.get(f"/runs/{attempt.trial.run.number}/trials/{attempt.trial.number}/").content.decode()
    assert "resync" in page
    assert "<dt>IOPS</dt>" not in page
    assert "<dt>Bandwidth</dt>" in page
    (shown,) = client.get(f"/api/v1/results?run={attempt.trial.run.number}").json()["items"]
    assert (shown["bytes_per_s"], shown["iops"], shown["latency_mean_ns"]) == (5000, None, None)


def test_many_seconds_at_once_keep_it_too(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, (ACCEPTED, with_sensors("sda", "sdb"))))
    say(attempt.host, attempt, (2, tuple(replace(sample(second), telemetry=(second, None)) for second in range(150))))
    assert Sample.objects.get(offset_ms=150_000).telemetry == [149, None]


def test_a_line_of_the_kernels_log_is_kept_once_and_warns_beside_the_result(attempt: Attempt) -> None:
    line = KernelLine(sequence=7, at=AT, level=3, text="ata1: hard resetting link")
    say(attempt.host, attempt, (1, (*BEGUN, KernelLog(lines=(line,)))), (2, (sample(),)))
    another = replace(line, sequence=8, text="ata1.00: failed command: READ DMA")
    other_drive = replace(line, sequence=9, text="ata9: hard resetting link", elsewhere=True)
    say(attempt.host, attempt, (3, (KernelLog(lines=(line, another, other_drive)), RESULT, DONE)))
    assert state(attempt) == ("done", "done")
    kept = attempt.kernel_lines.order_by("sequence").values_list("sequence", "level", "elsewhere")
    assert list(kept) == [(7, 3, False), (8, 3, False), (9, 3, True)]
    assert Result.objects.get().kernel_lines == 2


def test_a_line_of_a_failed_attempt_is_kept(attempt: Attempt) -> None:
    line = KernelLine(sequence=7, at=AT, level=3, text="sd 0:0:0:0: rejecting I/O to offline device")
    say(attempt.host, attempt, (1, (*BEGUN, KernelLog(lines=(line,)), failed())))
    assert state(attempt) == ("failed", "failed")
    assert attempt.kernel_lines.get().text == line.text


def test_a_drive_reading_is_stored_once_with_the_drives_values(attempt: Attempt) -> None:
    reading = next(item for item in ITEMS if isinstance(item, DriveReading))
    after = replace(reading, moment=ReadingMoment.AFTER, told=None)
    say(attempt.host, attempt, (1, (*BEGUN, reading, reading, after, RESULT, DONE)))
    assert state(attempt) == ("done", "done")
    first, last = attempt.drive_readings.all()
    assert (first.moment, first.drive, first.percent_used) == ("before", reading.drive, 3)
    assert first.host_unit_bytes == 512_000
    assert (last.moment, last.kernel_written_bytes, last.host_written_bytes) == ("after", 81_920_000_000, None)


def test_a_reading_that_belongs_to_no_run_is_refused() -> None:
    host = a_host()
    looking = request_inventory(host.pk)
    assert looking
    reading = next(item for item in ITEMS if isinstance(item, DriveReading))
    refusal = say(host, looking, (1, (ACCEPTED, reading))).refusal
    assert refusal
    assert "without a run" in refusal.message
