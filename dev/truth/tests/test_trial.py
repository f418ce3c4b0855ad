"""The comparison with fio's own numbers finds what is made to differ."""

import msgspec
import pytest

from dev.truth.trial import Trial, differences
from worker.contract.items import (
    Attachment,
    Direction,
    DirectionResult,
    DirectionSample,
    LatencyKind,
    MediaType,
    Sample,
    StreamResult,
)
from worker.contract.packing import Histogram, pack

LATENCIES = pack(Histogram(latency_ns=(1000, 2000), counts=(3, 1)))
FIO = {
    "jobs": [{"read": {
        "io_bytes": 16384, "runtime": 2000,
        "lat_ns": {"N": 4, "min": 990, "max": 2010, "mean": 1250.0, "stddev": 5.0, "bins": {"1000": 3, "2000": 1}},
    }}]
}  # fmt: skip
READ = DirectionResult(
    direction=Direction.READ, ios=4, bytes=16384, runtime_ms=2000, iops=2.0, bytes_per_s=8192.0,
    latency_kind=LatencyKind.LAT, latency_min_ns=990, latency_mean_ns=1250.0, latency_max_ns=2010,
    latency_stddev_ns=5.0, latency=LATENCIES,
)  # fmt: skip


def trial(read: DirectionResult, sample_ios: int = 4) -> Trial:
    part = DirectionSample(direction=Direction.READ, ios=sample_ios, bytes=16384, latency=LATENCIES)
    sample = Sample(stream=0, offset_ms=2000, length_ms=2000, at=0.0, directions=(part,))
    text = msgspec.json.encode(FIO).decode()
    result = StreamResult(
        stream=0, started_at=0.0, ended_at=2.0, engine_version="fio-3.33", exit_code=0, stderr="",
        directions=(read,), usr_cpu_percent=0, sys_cpu_percent=0, device=None, samples=1,
        attachments=(Attachment(name="fio.json", media_type=MediaType.JSON, text=text),),
    )  # fmt: skip
    return Trial(result, (sample,))


def test_equal_numbers_do_not_differ() -> None:
    assert differences(trial(READ)) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"ios": 5}, {"bytes": 1}, {"iops": 2.5}, {"latency_max_ns": 2000}, {"latency_mean_ns": 1251.0},
        {"latency": pack(Histogram(latency_ns=(1000,), counts=(4,)))},
    ],
)  # fmt: skip
def test_a_number_unlike_fios_is_found(changed: dict[str, object]) -> None:
    assert differences(trial(msgspec.structs.replace(READ, **changed)))


def test_samples_that_do_not_add_up_are_found() -> None:
    assert differences(trial(READ, sample_ios=3)) == ["samples' I/Os: 3, the result's 4"]
