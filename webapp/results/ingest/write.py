"""Step 4: write the changes, one statement for each table; samples by COPY."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from webapp.results.ingest.parse import BadItem, Changes
from webapp.results.models import (
    NO_IO,
    Attachment,
    Configuration,
    DriveReading,
    KernelLine,
    Result,
    Sample,
    StreamRun,
    known,
)
from webapp.results.retention import SUMMARY, ensure_partition
from webapp.results.rounds import after_results
from webapp.runs.dispatch.ending import end_attempt
from webapp.runs.dispatch.orders import longest_limit_s
from webapp.runs.models import Attempt, AttemptState, SettingChange
from webapp.runs.reasons import message_fields
from worker.contract.items import Direction, DirectionSample
from worker.contract.items import Sample as SampleItem
from worker.contract.packing import Histogram, pack
from worker.contract.reports import Batch
from worker.contract.steadiness import Steadiness, Timed, least_steady, steadiness, steadiness_in

# Limits on the data of one attempt, so that a stolen token of a host cannot fill the database.
#
# A host has as many attempts as the server gives it orders.

# Of each table besides the samples. A worker sends at most 200 lines of the kernel's log.
MAX_ROWS: Mapping[type[Model], int] = {SettingChange: 10_000, KernelLine: 1_000, DriveReading: 1_000}
MAX_FACTS_LENGTH = 1024 * 1024  # of a configuration; sixteen targets of fifty drives each have about 800 kB
MAX_COMMAND_LENGTH = 64 * 1024
MAX_PURGED = 300  # drives
SHORT_MS = 250  # a sample is about a second long; shorter ones are counted
MAX_SAMPLES_PER_S = 4
SLACK_S = 60


def check_samples(attempt: Attempt, samples: Sequence[SampleItem]) -> None:
    """Refuse samples after the possible end of the trial, and too many samples per second. Raises BadItem."""
    last_s = max(sample.offset_ms for sample in samples) / 1000
    elapsed_s = (timezone.now() - attempt.created_at).total_seconds()
    if last_s > elapsed_s + SLACK_S and last_s > _limit_s(attempt):
        raise BadItem(f"A sample ends {last_s:.0f} s after the start, but the trial cannot have lasted so long.")
    if min(sample.length_ms for sample in samples) < SHORT_MS:
        _check_short(attempt, samples, last_s)


def _limit_s(attempt: Attempt) -> float:
    trial = attempt.trial
    if trial is None:
        return 0
    return longest_limit_s(trial) + SLACK_S


def _check_short(attempt: Attempt, samples: Sequence[SampleItem], last_s: float) -> None:
    streams = {sample.stream for sample in samples}
    stored = Sample.objects.filter(attempt=attempt.pk, stream__in=streams).values("stream", "offset_ms").distinct()
    if stored.count() + len(samples) > len(streams) * (MAX_SAMPLES_PER_S * last_s + 100):
        raise BadItem("There are too many samples for the time that the trial lasted.")


def check_rows(attempt: Attempt, model: type[Model], new: int) -> None:
    """Raises BadItem."""
    if model._default_manager.filter(attempt=attempt.pk).count() + new > MAX_ROWS[model]:
        raise BadItem(f"The attempt has reported more than {MAX_ROWS[model]} {model._meta.verbose_name_plural}.")


def check_configuration(attempt: Attempt, digest: str, text: str) -> None:
    """An attempt has one configuration: others would be stored too, with no stream that refers to them.

    Raises BadItem.
    """
    if len(text) > MAX_FACTS_LENGTH:
        raise BadItem(f"The configuration has {len(text)} characters; at most {MAX_FACTS_LENGTH}.")
    if attempt.configuration_digest not in ("", digest):
        raise BadItem("The attempt has reported another configuration before.")


def check_command(command: Collection[str]) -> None:
    """Raises BadItem."""
    if sum(map(len, command)) + len(command) > MAX_COMMAND_LENGTH:
        raise BadItem(f"The command of a stream has more than {MAX_COMMAND_LENGTH} characters.")


def check_purged(purged: Collection[object]) -> None:
    """Raises BadItem."""
    if len(purged) >= MAX_PURGED:
        raise BadItem(f"The attempt has reported more than {MAX_PURGED} purged drives.")


# The worker's clock: its error, and its times as datetimes.

FARTHEST_MS = 10**14


def offset_ms(known: int | None, batch: Batch, *, now_s: float) -> int | None:
    """The least difference seen between the server's time at receipt and the worker's time of an item (ms).

    A report can be late but not early, so the least difference is the worker's clock error plus the shortest delay.
    None until an item has a time.
    """
    times = [at for item in batch.items if (at := getattr(item, "at", None)) is not None]
    seen = [round((now_s - at) * 1000) for at in times if abs(now_s - at) * 1000 < FARTHEST_MS]
    return min([*seen, *([] if known is None else [known])], default=None)


def moment(seconds: float) -> datetime:
    """A Unix time of the contract as a datetime. Raises BadItem if it is not a valid date."""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise BadItem(f"{seconds} is not a valid Unix time.") from error


# The rows of `Sample`: the source of each column, and the COPY that writes them.

_COLUMNS = {str(field.column): field for field in Sample._meta.concrete_fields if field.name not in SUMMARY}
_COPY = f"COPY {Sample._meta.db_table} ({', '.join(_COLUMNS)}) FROM STDIN (FORMAT BINARY)"
_MAX_REAL = 3.4028234e38


def copy_samples(attempt: Attempt, samples: Iterable[SampleItem]) -> None:
    """Write one row for each direction of each sample. Raises BadItem and Django's database errors."""
    samples = list(samples)
    check_samples(attempt, samples)
    ensure_partition(attempt.created_at.date())
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.set_types(_types())
        for row in _rows(attempt, samples):
            copy.write_row([row[column] for column in _COLUMNS])


@cache
def _types() -> list[str]:
    return [(field.db_type(connection) or "").partition("(")[0] for field in _COLUMNS.values()]


def _rows(attempt: Attempt, samples: Iterable[SampleItem]) -> Iterator[dict[str, Any]]:
    for sample in samples:
        for place, measured in enumerate(sample.directions):
            yield _row(attempt, sample, measured.direction.value, measured, first=place == 0)
        if not sample.directions:  # of an idle workload
            yield _row(attempt, sample, NO_IO, _NOTHING, first=True)


# Its direction is not used.
_NOTHING = DirectionSample(direction=Direction.READ, ios=0, bytes=0, latency=pack(Histogram()))


def _row(
    attempt: Attempt, sample: SampleItem, direction: str, measured: DirectionSample, *, first: bool
) -> dict[str, Any]:
    """Telemetry is stored with the first direction only. Raises BadItem."""
    if sample.length_ms > sample.offset_ms:
        raise BadItem(f"A sample of {sample.length_ms} ms ends {sample.offset_ms} ms after the beginning.")
    device = sample.device
    return {
        "attempt_id": attempt.pk,
        "day": attempt.created_at.date(),
        "stream": sample.stream,
        "offset_ms": sample.offset_ms,
        "length_ms": sample.length_ms,
        "direction": direction,
        "at": moment(sample.at),
        "estimated": sample.estimated,
        "ios": measured.ios,
        "bytes": measured.bytes,
        "p50_ns": measured.p50_ns,
        "p99_ns": measured.p99_ns,
        "p999_ns": measured.p999_ns,
        "latency": measured.latency,
        "utilisation_percent": device.utilisation_percent if device else None,
        "queue_depth": device.queue_depth if device else None,
        "telemetry": [_real(value) for value in sample.telemetry] if first and sample.telemetry else None,
    }


def _real(number: float | None) -> float | None:
    """Binary COPY cuts off a number that is too large for its column. Raises BadItem."""
    if number is not None and abs(number) > _MAX_REAL:
        raise BadItem(f"{number} is out of range.")
    return number


def write(changes: Changes) -> None:
    """Call inside the transaction that has locked the attempt. Raises BadItem and Django's database errors."""
    if changes.configurations:
        # In one order, so that two transactions with the same configurations do not wait for each other.
        ordered = sorted(changes.configurations, key=lambda configuration: configuration.digest)
        Configuration.objects.bulk_create(ordered, ignore_conflicts=True)
    if "streams" in vars(changes):  # they were loaded
        _write_streams(changes)
    for attachment in changes.attachments:
        attachment.stream_run_id = attachment.stream_run.pk  # the stream may just have been created
    Attachment.objects.bulk_create(changes.attachments)
    if changes.samples:
        copy_samples(changes.attempt, changes.samples)
    _write_rows(changes.attempt, changes.rows)
    if changes.results:
        _write_results(changes)
    columns = {name: getattr(changes.attempt, name) for name in sorted(changes.attempt_columns)}
    Attempt.objects.filter(pk=changes.attempt.pk).update(**columns)
    if end := changes.finished:
        end_attempt(changes.attempt, AttemptState(end.outcome.value), code=end.code, fields=message_fields(end.message))
    if changes.results:
        run, host = changes.results[0].run_id, changes.attempt.host_id
        # It locks the run before its trials.
        transaction.on_commit(lambda: after_results(known(run), host))


def _write_streams(changes: Changes) -> None:
    new = [stream for stream in changes.streams.values() if stream.pk is None]
    changed = [changes.streams[number] for number in changes.stream_columns]
    for stream in changed:
        if stream.pk is not None:
            stream.save(update_fields=changes.stream_columns[stream.stream])
    if new:
        StreamRun.objects.bulk_create(new)


def _write_rows(attempt: Attempt, rows: list[Model]) -> None:
    """A worker may report a line of the kernel log or a drive reading twice; it is stored once."""
    by_model: defaultdict[type[Model], list[Model]] = defaultdict(list)
    for row in rows:
        by_model[type(row)].append(row)
    for model, model_rows in by_model.items():
        check_rows(attempt, model, len(model_rows))
        model._default_manager.bulk_create(model_rows, ignore_conflicts=True)


def _steadiness(changes: Changes) -> Mapping[int, Steadiness | None]:
    """By stream: its own verdict if it has a name, else that of the least steady one; None without a verdict."""
    trial = changes.attempt.trial
    assert trial is not None
    samples: dict[tuple[UUID, int], list[Timed]] = defaultdict(list)
    times = Sample.objects.filter(attempt__in=_attempts(changes)).values_list("attempt_id", "stream", *_TIMES)
    for attempt, stream, *timed in times.iterator(chunk_size=10_000):
        samples[attempt, stream].append((timed[0], timed[1], timed[2]))
    rows = StreamRun.objects.filter(attempt__in=_attempts(changes)).only("attempt_id", "stream", "stopped")
    streams = {(stream.attempt_id, stream.stream): stream for stream in rows}
    judged = {key[1]: _judged(streams[key], timed) for key, timed in samples.items()}
    uniform = [work.uniform for work in trial.workloads]  # whether a uniform speed is expected
    if trial.stream_names:
        return {stream: verdict for stream, verdict in judged.items() if uniform[stream]}
    return {0: least_steady(judged.values()) if uniform[0] else None}


_TIMES = ("offset_ms", "length_ms", "ios")


def _attempts(changes: Changes) -> list[UUID]:
    """The attempts that the results are of: on several hosts, one on each of them."""
    attempt = changes.attempt
    if attempt.trial is None or not attempt.trial.on_several_hosts:
        return [attempt.pk]
    return list(attempt.trial.attempts.filter(number=attempt.number).values_list("pk", flat=True))


def _judged(stream: StreamRun, samples: list[Timed]) -> Steadiness:
    """The verdict on what the result of the stream covers: the window of its stop rule, or all of its time."""
    if stream.stopped is None:
        return steadiness(samples)
    return steadiness_in(samples, stream.stopped["from_ms"], stream.stopped["to_ms"])


def _write_results(changes: Changes) -> None:
    """Each result gets the number of kernel log lines of its attempt, and the steadiness of its samples."""
    steadiness = _steadiness(changes)
    attempts = _attempts(changes)
    changed = SettingChange.objects.filter(attempt__in=attempts, meanwhile=True).exists()
    lines = KernelLine.objects.filter(attempt__in=attempts, elsewhere=False).count()
    for result in changes.results:
        result.kernel_lines = lines
        result.settings_changed = changed
        verdict = steadiness.get(known(result.stream_run).stream)
        if verdict is not None:
            result.steadiness, result.steadiness_numbers = verdict.verdict.value, verdict.numbers
        result.stream_run_id = known(result.stream_run).pk  # the stream may have been saved after the result was made
    Result.objects.bulk_create(changes.results)
