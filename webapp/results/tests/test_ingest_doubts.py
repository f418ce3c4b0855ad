"""What the server derives when results arrive: steadiness, doubts and sums."""

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from webapp.results.ingest.results import _device_share
from webapp.results.models import Result, StreamRun
from webapp.results.reading.doubts import doubts, steadiness_words
from webapp.results.reading.filter import read_filter
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import read_rows
from webapp.results.selectors import stop_words
from webapp.results.tests.ingesting import BEGUN
from webapp.runs.models import Attempt
from webapp.tests.factories.reports import (
    ACCEPTED,
    DONE,
    RESULT,
    STARTED,
    sample,
    say,
)
from worker.contract.items import (
    Observed,
    SettingRecord,
)
from worker.contract.tests.examples import AT, SAMPLE
from worker.contract.workload import Confidence, Settled, SteadyRounds, Stopped

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def test_a_result_says_how_steady_its_trial_was(attempt: Attempt) -> None:
    """20 s, of which 5 s in the middle were frozen. The page says so, the filter finds it."""
    reads = [30] * 8 + [0] * 5 + [30] * 7
    samples = [replace(sample(n), directions=(replace(SAMPLE.directions[0], ios=ios),)) for n, ios in enumerate(reads)]
    say(attempt.host, attempt, (1, BEGUN), (2, tuple(samples)), (3, (RESULT, DONE)))
    result = Result.objects.get()
    assert (result.steadiness, result.steadiness_numbers["stall_s"]) == ("stalled", 5)
    assert ResultQuery.of(read_filter([("steadiness", "stalled")])).count() == 1
    assert ResultQuery.of(read_filter([("steadiness", "steady")])).count() == 0
    (row,) = read_rows(Result.objects.all())
    assert steadiness_words(row) == "stalled: 5 s near zero, 5 s in a row"


def test_a_result_with_a_stop_rule_is_judged_in_its_window(attempt: Attempt) -> None:
    """A slow start of 10 s before the window; the page says what the results cover."""
    reads = [30] * 10 + [60] * 20
    samples = [replace(sample(n), directions=(replace(SAMPLE.directions[0], ios=ios),)) for n, ios in enumerate(reads)]
    stopped = Stopped(rule=Settled(hold_s=20), reached=True, at_ms=30_000, from_ms=10_000, to_ms=30_000)
    say(attempt.host, attempt, (1, BEGUN), (2, tuple(samples)), (3, (replace(RESULT, stopped=stopped), DONE)))
    result = Result.objects.get()
    assert (result.steadiness, result.steadiness_numbers["seconds"]) == ("steady", 20)
    words = "Settled after 10 s, by the stop rule settled 20s. The results are from 10 s to 30 s."
    assert stop_words(StreamRun.objects.get().stopped or {}) == words


@pytest.mark.parametrize(("percent", "doubted"), [(100.0, True), (0.0, False), (None, False)])
def test_a_copy_in_the_kernel_that_is_a_reflink_is_doubted(
    attempt: Attempt, percent: float | None, doubted: bool
) -> None:
    samples = tuple(sample(n) for n in range(20))
    say(attempt.host, attempt, (1, BEGUN), (2, samples), (3, (RESULT, DONE)))
    Result.objects.update(metrics={} if percent is None else {"shared_percent": percent})
    (row,) = read_rows(Result.objects.all())
    assert ("reflink, not a copy" in [doubt.short for doubt in doubts(row)]) is doubted


def test_a_freeze_before_the_window_stays_a_doubt(attempt: Attempt) -> None:
    reads = [30] * 3 + [0] * 7 + [30] * 20
    samples = [replace(sample(n), directions=(replace(SAMPLE.directions[0], ios=ios),)) for n, ios in enumerate(reads)]
    stopped = Stopped(rule=Settled(hold_s=20), reached=True, at_ms=30_000, from_ms=10_000, to_ms=30_000)
    say(attempt.host, attempt, (1, BEGUN), (2, tuple(samples)), (3, (replace(RESULT, stopped=stopped), DONE)))
    assert Result.objects.get().steadiness == "stalled"


REACHED = Stopped(
    rule=Confidence(percent=2), reached=True, at_ms=18_004, from_ms=6_001, to_ms=18_004, interval_percent=1.4
)
MISSED = Stopped(rule=SteadyRounds(round_s=60), reached=False, at_ms=600_010, from_ms=0, to_ms=600_010)


@pytest.mark.parametrize(
    ("stopped", "words"),
    [
        (
            REACHED,
            "Reached after 18 s, by the stop rule confidence 2%. The results are from 6 s to 18 s. "
            "The 95 % interval of the mean is ±1.40 %.",
        ),
        (
            MISSED,
            "The stop rule snia 60s was not reached within the maximum time. The results cover all of the 600 s.",
        ),
    ],
)
def test_a_stop_rule_in_words(stopped: Stopped, words: str) -> None:
    assert stop_words(to_builtins(stopped)) == words


@pytest.mark.parametrize(
    "stopped",
    [
        replace(REACHED, from_ms=18_004, to_ms=6_001),
        replace(REACHED, to_ms=18_005),
    ],
)
def test_an_impossible_end_by_a_stop_rule_is_refused(attempt: Attempt, stopped: Stopped) -> None:
    say(attempt.host, attempt, (1, BEGUN), (2, (sample(0),)), (3, (replace(RESULT, stopped=stopped), DONE)))
    assert not StreamRun.objects.filter(stopped__isnull=False).exists()
    assert not Result.objects.exists()


@pytest.mark.parametrize(
    ("direct", "device_bytes", "words"),
    [
        (True, 409_600_000, []),
        (
            True,
            28_672_000,
            ["93.0 % of the reads never reached the drive, but came from holes or unwritten parts of files"],
        ),
        (False, 0, ["100 % of the reads never reached the drive, but came from the page cache"]),
    ],
)
def test_reads_that_never_reached_the_drive_are_a_doubt(
    attempt: Attempt, direct: bool, device_bytes: int, words: list[str]
) -> None:
    assert attempt.trial is not None
    attempt.trial.point["direct"] = direct
    attempt.trial.save()
    assert RESULT.device is not None
    result = replace(RESULT, device=replace(RESULT.device, read_bytes=device_bytes))
    say(attempt.host, attempt, (1, BEGUN), (2, (sample(),)), (3, (result, DONE)))
    (row,) = read_rows(Result.objects.all())
    assert row.device_share == device_bytes / 409_600_000
    assert [doubt.words for doubt in doubts(row)] == words


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"stream.0.file_system": "tmpfs"}, ["measured on tmpfs, which is memory and not a drive"]),
        ({"device.zram0.kind": "zram"}, ["measured on zram, which is memory and not a drive"]),
        ({"stream.0.file_system": "ext4", "device.sda.kind": "disk"}, []),
    ],
)
def test_a_result_from_memory_is_a_doubt(attempt: Attempt, facts: dict[str, str], words: list[str]) -> None:
    begun = (ACCEPTED, Observed(at=AT, facts=facts), STARTED)
    say(attempt.host, attempt, (1, begun), (2, (sample(),)), (3, (RESULT, DONE)))
    (row,) = read_rows(Result.objects.all())
    assert [doubt.words for doubt in doubts(row)] == words
    assert [doubt.short for doubt in doubts(row)] == (["memory, not a drive"] if words else [])


def test_a_setting_that_was_changed_meanwhile_is_a_doubt(attempt: Attempt) -> None:
    changed = SettingRecord(
        at=AT, name="scheduler", device="sda", before="none", asked="none", observed="bfq", meanwhile=True
    )
    say(attempt.host, attempt, (1, BEGUN), (2, (sample(),)), (3, (RESULT, changed, DONE)))
    (row,) = read_rows(Result.objects.all())
    assert [doubt.words for doubt in doubts(row)] == ["a setting was changed by something else during the measurement"]


def test_rates_that_add_up_to_infinity_are_refused(attempt: Attempt) -> None:
    huge = replace(RESULT.directions[0], iops=1e308)
    refusal = say(
        attempt.host, attempt, (1, BEGUN), (2, (sample(), replace(RESULT, directions=(huge, huge)), DONE))
    ).refusal
    assert refusal
    assert "rates are out of range" in refusal.message


def test_the_share_of_a_device_that_streams_share_is_not_known() -> None:
    """They may have run at different times, so each saw other bytes."""
    streams = [StreamRun(stream=n, device={"device": "sda", "read_bytes": 500}) for n in (0, 1)]
    assert _device_share("read", 1000, streams[:1]) == 0.5
    assert _device_share("read", 1000, streams) is None
    streams[1].device = {"device": "sdb", "read_bytes": 500}
    assert _device_share("read", 1000, streams) == 1.0
