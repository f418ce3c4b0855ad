"""Every way in which batches can arrive, and what each does to an attempt."""

from datetime import timedelta

import msgspec
import psycopg
import pytest
from django.db import close_old_connections, connection
from django.utils import timezone
from msgspec.structs import replace

from webapp.results.ingest.parse import parse_report
from webapp.results.ingest.report import take_report
from webapp.results.ingest.results import _device_share
from webapp.results.models import Configuration, Result, Sample, StreamRun, known
from webapp.results.reading.doubts import doubts, short_doubts, steadiness_words
from webapp.results.reading.filter import read_filter
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import read_rows
from webapp.runs.dispatch.dispatcher import dispatch_host, request_inventory
from webapp.runs.dispatch.leases import expire_leases
from webapp.runs.dispatch.tests.test_dispatcher import at_once
from webapp.runs.models import Attempt, AttemptState, Run, RunState, SettingChange, TargetLock, TrialState
from webapp.runs.phases import phase_sentence
from webapp.runs.services import cancel_run
from webapp.tests.factories.hosts import a_host, a_target
from webapp.tests.factories.reports import (
    ACCEPTED,
    CANCELLED,
    DONE,
    RESULT,
    STARTED,
    failed,
    run_to_the_end,
    sample,
    say,
)
from webapp.tests.factories.runs import a_run
from worker.contract.base import encode
from worker.contract.items import (
    Direction,
    DriveReading,
    Item,
    KernelLine,
    KernelLog,
    Observed,
    Phase,
    PhaseName,
    ReadingMoment,
    Sensor,
    SensorKind,
    SettingRecord,
    SettingRestored,
    StreamStarted,
)
from worker.contract.packing import unpack
from worker.contract.reports import Batch, Report
from worker.contract.tests.examples import AT, BINS, ITEMS, SAMPLE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]
BEGUN: tuple[Item, ...] = (ACCEPTED, STARTED)


@pytest.fixture
def attempt() -> Attempt:
    """The first attempt of a run of three trials on one host."""
    run = a_run(a_target(), trials=3)
    dispatched = dispatch_host(run.targets.get().host_id)
    assert dispatched
    return dispatched


def lose(attempt: Attempt) -> None:
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    assert expire_leases() == 1


def state(attempt: Attempt) -> tuple[str, str]:
    attempt.refresh_from_db()
    assert attempt.trial
    attempt.trial.refresh_from_db()
    return attempt.state, attempt.trial.state


def test_it_keeps_everything_that_a_good_attempt_says(attempt: Attempt) -> None:
    observed = Observed(at=AT, facts={"kernel.release": "6.1.0"})
    setting = SettingRecord(at=AT, name="scheduler", device="sda", before="none", asked="none", observed="none")
    say(attempt.host, attempt, (1, (ACCEPTED, setting, observed, STARTED)), (2, (sample(0), sample(1))))
    assert state(attempt) == ("running", "running")
    say(attempt.host, attempt, (3, (Phase(at=AT, name=PhaseName.RUN, percent=50.4), RESULT, DONE)))
    assert state(attempt) == ("done", "done")
    stream, result = StreamRun.objects.get(), Result.objects.get()
    assert stream.configuration == Configuration.objects.get()
    assert (stream.engine_version, stream.exit_code, bytes(stream.directions)) == ("fio-3.33", 0, b"")
    assert attempt.phase["name"] == "run"
    assert phase_sentence(attempt) == "measuring, 50 %"
    assert SettingChange.objects.get().asked == "none"
    assert unpack(result.latency) == BINS
    assert (result.p50_ns, result.p999_ns) == (79_360, 80_384)
    assert result.trial == attempt.trial
    assert Sample.objects.count() == 2


def test_it_links_a_configuration_observed_in_an_earlier_report(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, (ACCEPTED, Observed(at=AT, facts={"a": "b"}))))
    say(attempt.host, attempt, (2, (STARTED,)))
    assert StreamRun.objects.get().configuration


def test_it_ignores_a_known_batch(attempt: Attempt) -> None:
    for _ in range(2):
        reply = say(attempt.host, attempt, (1, BEGUN), (2, (sample(),)))
        assert (reply.confirmed_seq, reply.refusal) == (2, None)
    assert Sample.objects.count() == 1


def test_the_reply_to_a_gap_has_the_last_committed_number(attempt: Attempt) -> None:
    reply = say(attempt.host, attempt, (1, BEGUN), (3, (sample(1),)))
    assert (reply.confirmed_seq, reply.refusal) == (1, None)
    assert not Sample.objects.exists()
    reply = say(attempt.host, attempt, (2, (sample(0),)), (3, (sample(1),)))
    assert reply.confirmed_seq == 3


def test_it_accepts_no_batch_out_of_order(attempt: Attempt) -> None:
    assert say(attempt.host, attempt, (2, (sample(),)), (1, BEGUN)).confirmed_seq == 1
    assert not Sample.objects.exists()


def test_it_tells_another_host_no_more_than_of_an_unknown_attempt(attempt: Attempt) -> None:
    stranger = a_host()
    theirs = say(stranger, attempt, (1, BEGUN)).refusal
    nobodys = say(stranger, "6a0f3f0e-94cf-4f46-9a3d-6d7c3f0b8a01", (1, BEGUN)).refusal
    malformed = say(stranger, "not-a-uuid", (1, BEGUN)).refusal
    assert theirs == nobodys == malformed
    assert theirs
    assert theirs.code == "unknown_attempt"
    assert state(attempt) == ("dispatched", "dispatched")


NO_HISTOGRAM = msgspec.structs.replace(
    sample(1), directions=(msgspec.structs.replace(sample(1).directions[0], latency=b"packed by nobody"),)
)
NO_RESULT = msgspec.structs.replace(RESULT.directions[0], latency=b"packed by nobody")


def test_after_the_end_it_accepts_nothing_but_confirms_known_batches(attempt: Attempt) -> None:
    run_to_the_end(attempt.host, attempt)
    again = run_to_the_end(attempt.host, attempt)
    assert (again.confirmed_seq, again.refusal, again.cancel) == (3, None, True)
    late = say(attempt.host, attempt, (4, (sample(9),))).refusal
    assert late
    assert late.code == "attempt_closed"
    assert Result.objects.count() == 1


def test_it_keeps_samples_but_no_results_of_a_failed_attempt(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN), (2, (sample(), RESULT, failed("fio_error", "fio said no"))))
    assert state(attempt) == ("failed", "failed")
    assert attempt.trial
    assert (attempt.trial.reason_code, attempt.trial.reason) == ("fio_error", "fio said no")
    assert Sample.objects.count() == 1
    assert not Result.objects.exists()


def test_the_next_trial_starts_after_a_failure(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN), (2, (failed(),)))
    following = Attempt.objects.latest("created_at")
    assert following.trial
    assert following.trial.index == 1
    assert TargetLock.objects.get().attempt == following


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ((ACCEPTED, sample()), "not started"),
        ((ACCEPTED, RESULT), "not started"),
        ((*BEGUN, sample(stream=3)), "stream 3"),
        ((*BEGUN, sample(), sample()), "already exists"),
        ((*BEGUN, sample(), msgspec.structs.replace(sample(), at=AT + 0.5)), "already exists"),
        ((*BEGUN, STARTED), "started before"),
        ((*BEGUN, RESULT, RESULT), "second result"),
        ((*BEGUN, DONE), "no result"),
        ((*BEGUN, RESULT, DONE, sample()), "after the item"),
        ((*BEGUN, msgspec.structs.replace(sample(), at=1e300)), "not a valid Unix time"),
        ((*BEGUN, msgspec.structs.replace(sample(), telemetry=(1e300,))), "out of range"),
        ((*BEGUN, sample(0), NO_HISTOGRAM, sample(2)), "histogram"),
        ((*BEGUN, msgspec.structs.replace(RESULT, directions=(NO_RESULT,)), DONE), "histogram"),
        ((ACCEPTED, Phase(at=AT, name=PhaseName.PURGE, target="a\x00b")), "NUL"),
        ((*BEGUN, failed(code="")), "without a code"),
    ],
)
def test_an_implausible_item_fails_its_attempt_with_a_code(
    attempt: Attempt, items: tuple[Item, ...], words: str
) -> None:
    reply = say(attempt.host, attempt, (1, items))
    assert reply.refusal
    assert reply.refusal.code == "bad_item"
    assert words in reply.refusal.message
    assert reply.confirmed_seq == 0
    assert state(attempt) == ("failed", "failed")
    assert attempt.outcome_code == "bad_item"
    assert not Sample.objects.exists()


def test_a_bad_attempt_does_not_affect_the_others_in_its_report(attempt: Attempt) -> None:
    run_to_the_end(attempt.host, attempt)
    second = Attempt.objects.latest("created_at")
    bad = Batch(attempt=str(attempt.pk), seq=4, items=(sample(5),))
    good = Batch(attempt=str(second.pk), seq=1, items=BEGUN)
    report = parse_report(encode(Report(batches=(bad, good))))
    replies = take_report(host=attempt.host, parsed=report).attempts
    assert [reply.refusal is None for reply in replies] == [False, True]
    assert replies[1].confirmed_seq == 1


def test_it_renews_the_lease_of_a_silent_attempt(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN))
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=timezone.now() + timedelta(seconds=5))
    reply = say(attempt.host, attempt)
    attempt.refresh_from_db()
    assert reply.lease_until == attempt.lease_until.timestamp()
    assert attempt.lease_until > timezone.now() + timedelta(minutes=10)


def test_it_revives_a_lost_attempt_that_reports_again(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN))
    lose(attempt)
    assert state(attempt) == ("lost", "planned")
    reply = say(attempt.host, attempt, (2, (sample(),)))
    assert (reply.confirmed_seq, reply.refusal) == (2, None)
    assert state(attempt) == ("running", "running")
    assert TargetLock.objects.get().attempt == attempt
    say(attempt.host, attempt, (3, (RESULT, DONE)))
    assert state(attempt) == ("done", "done")


def test_it_revives_a_trial_that_had_no_tries_left(attempt: Attempt) -> None:
    assert attempt.trial
    type(attempt.trial).objects.update(attempts_left=0)
    say(attempt.host, attempt, (1, BEGUN))
    lose(attempt)
    assert state(attempt) == ("lost", "failed")
    say(attempt.host, attempt, (2, (RESULT, DONE)))
    assert state(attempt) == ("done", "done")
    assert attempt.trial.reason_code == ""


def test_it_accepts_nothing_from_a_lost_attempt_that_has_a_successor(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN))
    lose(attempt)
    newer = dispatch_host(attempt.host_id)
    assert newer
    assert (newer.trial, newer.number) == (attempt.trial, 2)
    refusal = say(attempt.host, attempt, (2, (sample(),))).refusal
    assert refusal
    assert refusal.code == "superseded"
    assert not Sample.objects.exists()


def test_a_trial_of_a_killed_worker_is_tried_again(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN), (2, (failed("worker_died", "The worker was killed."),)))
    again = Attempt.objects.latest("created_at")
    assert (again.trial, again.number) == (attempt.trial, 2)
    run_to_the_end(attempt.host, again)
    assert attempt.trial
    attempt.trial.refresh_from_db()
    assert attempt.trial.state == TrialState.DONE
    assert known(Result.objects.get().stream_run).attempt == again


def test_it_passes_on_a_cancellation(attempt: Attempt) -> None:
    assert not say(attempt.host, attempt, (1, BEGUN)).cancel
    assert attempt.run
    cancel_run(run=attempt.run, by=None)
    assert say(attempt.host, attempt).cancel
    say(attempt.host, attempt, (2, (CANCELLED,)))
    assert state(attempt) == ("cancelled", "cancelled")
    close = Attempt.objects.latest("created_at")
    assert not say(attempt.host, close, (1, (ACCEPTED,))).cancel
    say(attempt.host, close, (2, (DONE,)))
    assert Run.objects.get().state == RunState.CANCELLED


def test_a_run_fails_if_its_settings_were_not_restored(attempt: Attempt) -> None:
    for _ in range(3):
        run_to_the_end(attempt.host, Attempt.objects.latest("created_at"))
    stuck = SettingRestored(at=AT, name="scheduler", device="sda", value="none", observed="bfq", restored=False)
    end = failed("settings_not_restored", "scheduler of sda is bfq")
    say(attempt.host, Attempt.objects.latest("created_at"), (1, (ACCEPTED, stuck, end)))
    run = Run.objects.get()
    assert (run.state, run.reason_code) == (RunState.FAILED, "settings_not_restored")
    assert "scheduler of sda is bfq" in run.reason
    assert SettingChange.objects.get().restored is False


def test_it_leaves_a_lease_that_is_nearly_whole(attempt: Attempt) -> None:
    """Its index and the row's place stay as they are then."""
    leases = {say(attempt.host, attempt, (seq, items)).lease_until for seq, items in ((1, BEGUN), (2, (sample(0),)))}
    assert leases == {attempt.lease_until.timestamp()}
    far = timezone.now() + timedelta(days=2)  # the server's clock was set back since
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=far)
    assert say(attempt.host, attempt, (3, (sample(1),))).lease_until < far.timestamp() - 86400
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=timezone.now() + timedelta(minutes=13))
    reply = say(attempt.host, attempt, (4, (sample(2),)))
    attempt.refresh_from_db()
    assert attempt.lease_until.timestamp() == reply.lease_until
    assert attempt.lease_until > timezone.now() + timedelta(minutes=14)


def test_it_accepts_a_plain_sample_after_the_database_was_restarted(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN), (2, (sample(0),)))
    with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as other:
        other.execute("select pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
    close_old_connections()  # as at the beginning of a request
    assert say(attempt.host, attempt, (3, (sample(1),))).confirmed_seq == 3
    assert Sample.objects.count() == 2


def test_a_cancelled_attempt_is_stopped_by_the_reply_to_a_plain_sample(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN), (2, (sample(0),)))
    assert attempt.run
    cancel_run(run=attempt.run, by=None)
    reply = say(attempt.host, attempt, (3, (sample(1),)))
    assert (reply.cancel, reply.confirmed_seq) == (True, 3)


def test_it_accepts_a_plain_sample_only_from_the_attempts_host(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN))
    reply = say(a_host(), attempt, (2, (sample(0),)))
    assert reply.refusal
    assert reply.refusal.code == "unknown_attempt"
    assert not Sample.objects.exists()


def test_it_accepts_only_one_of_two_simultaneous_plain_samples(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN))
    replies = at_once(*[lambda: say(attempt.host, attempt, (2, (sample(0),)))] * 4)
    assert [reply.confirmed_seq for reply in replies] == [2] * 4  # type: ignore[attr-defined]
    assert Sample.objects.count() == 1


def test_it_is_still_active_while_it_runs(attempt: Attempt) -> None:
    say(attempt.host, attempt, (1, BEGUN))
    assert dispatch_host(attempt.host_id) is None
    assert Attempt.objects.filter(state=AttemptState.RUNNING).count() == 1


@pytest.mark.parametrize(
    "code", ["worker_died", "worker_stopped", "order_expired", "order_unreadable", "order_superseded", "spool_full"]
)
def test_it_sends_a_close_run_order_again_that_was_broken_off(attempt: Attempt, code: str) -> None:
    """Settings may still be changed then, and the run must not end before they are put back."""
    for _ in range(3):
        run_to_the_end(attempt.host, Attempt.objects.latest("created_at"))
    first = Attempt.objects.latest("created_at")
    say(first.host, first, (1, (ACCEPTED,)), (2, (failed(code, "broken off"),)))
    again = Attempt.objects.latest("created_at")
    assert (again.kind, again.pk != first.pk) == ("close_run", True)
    assert Run.objects.get().state == RunState.CLOSING
    say(again.host, again, (1, (ACCEPTED, DONE)))
    assert Run.objects.get().state == RunState.DONE


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
    assert doubts(row) == words


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
    assert doubts(row) == words
    assert short_doubts(row) == (["memory, not a drive"] if words else [])


def test_a_setting_that_was_changed_meanwhile_is_a_doubt(attempt: Attempt) -> None:
    changed = SettingRecord(
        at=AT, name="scheduler", device="sda", before="none", asked="none", observed="bfq", meanwhile=True
    )
    say(attempt.host, attempt, (1, BEGUN), (2, (sample(),)), (3, (RESULT, changed, DONE)))
    (row,) = read_rows(Result.objects.all())
    assert doubts(row) == ["a setting was changed by something else during the measurement"]


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
