"""Process a worker's report: exactly once, in order.

Each attempt of a report has its own transaction, which locks its row. Batch `confirmed_seq + 1` is processed; lower
numbers were processed before; a higher one means that batches are missing. The reply has the number of the last
committed batch. A bad batch fails its attempt and is refused by its number; the batches before it and all other
attempts are committed.

    attempt         new batches     reply
    active          committed       confirmed, cancel?, lease
    lost            revived         the same; refused as superseded if it is too late
    ended           none            confirmed (and cancel, if the worker believes that the attempt is active)
    ended           some            refused: attempt_closed
    of no such host -               refused: unknown_attempt
"""

import hashlib
import json
import logging
import re
import time
import zlib
from collections import Counter as Tally
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from django.db import DataError, IntegrityError, connection, transaction

from webapp.core.logs import about
from webapp.core.models import Counter
from webapp.core.services import count
from webapp.hosts.models import Host
from webapp.hosts.services import note_heard
from webapp.results.ingest.parse import AnyBatch, BadItem, Changes, ParsedReport, UnreadableBatch, by_attempt
from webapp.results.ingest.results import new_results
from webapp.results.ingest.write import check_command, check_configuration, check_purged, moment, offset_ms, write
from webapp.results.models import Attachment, Configuration, DriveReading, KernelLine, StreamRun
from webapp.results.reading.content import CONTROLLER_FACT, without_device_names
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.ending import end_attempt, lock_trial
from webapp.runs.dispatch.leases import parse_id, renewed, revive
from webapp.runs.models import ACTIVE_ATTEMPT_STATES, Attempt, AttemptKind, AttemptState, SettingChange, TrialState
from webapp.runs.reasons import message_fields
from webapp.runs.states import TRIAL_TRANSITIONS, transition_attempt, transition_trial
from worker.contract.items import (
    Accepted,
    CommonStart,
    Finished,
    Item,
    KernelLog,
    Observed,
    Outcome,
    Phase,
    Purged,
    Sample,
    SettingRecord,
    SettingRestored,
    StreamResult,
    StreamStarted,
)
from worker.contract.items import Attachment as AttachmentItem
from worker.contract.items import DriveReading as ReadingItem
from worker.contract.packing import MAX_BUCKETS, MAX_NUMBER_BYTES, BadPacking, unpack
from worker.contract.reports import AttemptReply, Batch, Refusal, ReportReply
from worker.contract.workload import Stopped

# Step 3: the changes that each item of a batch makes. `_HANDLERS` is the registry of item type -> handler.

# Check packed histograms (`worker.contract.packing`) before they are stored unchanged.

# A number longer than any that a worker packs is refused before it is computed, because that would take long.
_NUMBER_TOO_LONG = re.compile(rb"[\x80-\xff]{%d}" % MAX_NUMBER_BYTES)


def check_histogram(packed: bytes) -> None:
    """Raise BadItem unless the bytes can be unpacked to a histogram."""
    if _NUMBER_TOO_LONG.search(packed):
        raise BadItem("A histogram holds a number that is out of range.")
    try:
        histogram = unpack(packed)
    except BadPacking as error:
        raise BadItem(f"A histogram cannot be read: {error}.") from error
    if len(histogram.counts) > MAX_BUCKETS:
        raise BadItem("A histogram has too many buckets.")


def apply_item(changes: Changes, item: Item) -> None:
    """Apply one item to the changes. Raises BadItem if it contradicts an earlier item."""
    if changes.finished:
        raise BadItem("An item came after the item `finished`.")
    _HANDLERS[type(item)](changes, item)


def _accepted(changes: Changes, _: Accepted) -> None:
    if changes.attempt.state == AttemptState.DISPATCHED:
        _move(changes, AttemptState.ACCEPTED)


def _phase(changes: Changes, item: Phase) -> None:
    changes.change_attempt(phase=msgspec.to_builtins(item))


def _setting(changes: Changes, item: SettingRecord) -> None:
    change = SettingChange(
        attempt=changes.attempt,
        at=moment(item.at),
        name=item.name,
        device=item.device,
        before=item.before,
        asked=item.asked,
        observed=item.observed,
        took_s=item.took_s,
        meanwhile=item.meanwhile,
    )
    changes.rows.append(change)


def _setting_restored(changes: Changes, item: SettingRestored) -> None:
    change = SettingChange(
        attempt=changes.attempt,
        at=moment(item.at),
        name=item.name,
        device=item.device,
        asked=item.value,
        observed=item.observed,
        restoring=True,
        restored=item.restored,
        note=item.note,
    )
    changes.rows.append(change)


def _purged(changes: Changes, item: Purged) -> None:
    check_purged(changes.attempt.purged)
    changes.change_attempt(purged=[*changes.attempt.purged, msgspec.to_builtins(item)])


def _observed(changes: Changes, item: Observed) -> None:
    text = json.dumps(item.facts, sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    check_configuration(changes.attempt, digest, text)
    controller = without_device_names(item.facts).get(CONTROLLER_FACT, "")[:200]
    changes.configurations.append(Configuration(digest=digest, facts=item.facts, controller=controller))
    for stream in changes.streams.values():
        changes.change_stream(stream, configuration_id=digest)
    changes.change_attempt(configuration_digest=digest)


def _stream_started(changes: Changes, item: StreamStarted) -> None:
    trial = changes.attempt.trial
    if trial is None or item.stream not in trial.streams_on(changes.attempt.host_id):
        raise BadItem(f"Stream {item.stream} is not in the order of this attempt.")
    if item.stream in changes.streams:
        raise BadItem(f"Stream {item.stream} has started before.")
    check_command(item.command)
    changes.streams[item.stream] = StreamRun(
        attempt_id=changes.attempt.pk,
        stream=item.stream,
        job_text=item.job_text,
        command=list(item.command),
        sensors=[(sensor.kind.value, sensor.name) for sensor in item.sensors],
        metrics=[msgspec.to_builtins(metric) | {"value": None} for metric in item.metrics],
        kernel_log_read=item.kernel_log,
        configuration_id=changes.attempt.configuration_digest or None,
        started_at=moment(item.at),
    )
    if changes.attempt.state != AttemptState.RUNNING:
        _move(changes, AttemptState.RUNNING)


def _sample(changes: Changes, item: Sample) -> None:
    changes.check_started(item.stream, "sample")
    for measured in item.directions:
        check_histogram(measured.latency)
    changes.samples.append(item)


def _kernel_log(changes: Changes, item: KernelLog) -> None:
    changes.rows += [
        KernelLine(
            attempt=changes.attempt,
            sequence=line.sequence,
            at=moment(line.at),
            level=line.level,
            text=line.text,
            elsewhere=line.elsewhere,
        )
        for line in item.lines
    ]


def _drive_reading(changes: Changes, item: ReadingItem) -> None:
    if changes.attempt.run_id is None:
        raise BadItem("A drive reading came from an attempt without a run.")
    reported = {name: getattr(item.told, name) for name in _TOLD} if item.told else {}
    plain = {name: getattr(item, name) for name in _OF_READINGS}
    row = DriveReading(attempt=changes.attempt, at=moment(item.at), moment=item.moment.value, **plain, **reported)
    changes.rows.append(row)


_OF_READINGS = ("device", "drive", "serial", "model", "boot_id", "kernel_written_bytes")
_TOLD = (
    "host_written_bytes", "host_unit_bytes", "media_written_bytes", "media_unit_bytes", "host_pages", "media_pages",
    "percent_used", "problem",
)  # fmt: skip


def _stream_result(changes: Changes, item: StreamResult) -> None:
    changes.check_started(item.stream, "result")
    stream = changes.streams[item.stream]
    if stream.ended_at is not None:
        raise BadItem(f"A second result of stream {item.stream}.")
    for measured in item.directions:
        check_histogram(measured.latency)
    if item.stopped is not None:
        _check_stopped(item.stopped)
    changes.change_stream(
        stream,
        started_at=moment(item.started_at),
        began_at=None if item.began_at is None else moment(item.began_at),
        ended_at=moment(item.ended_at),
        engine_version=item.engine_version[:40],
        exit_code=item.exit_code,
        stderr=item.stderr,
        directions=msgspec.json.encode(item.directions),
        usr_cpu_percent=item.usr_cpu_percent,
        sys_cpu_percent=item.sys_cpu_percent,
        device=msgspec.to_builtins(item.device),
        samples_sent=item.samples,
        stopped=msgspec.to_builtins(item.stopped),
        stalled_s=item.stalled_s,
        metrics=[declared | {"value": item.metrics.get(str(declared["name"]))} for declared in stream.metrics],
    )
    changes.attachments += [_attachment(stream, each) for each in item.attachments]


def _check_stopped(stopped: Stopped) -> None:
    if not stopped.from_ms <= stopped.to_ms <= stopped.at_ms:
        raise BadItem(
            f"The window of a stop rule from {stopped.from_ms} to {stopped.to_ms} ms does not end between its start "
            f"and {stopped.at_ms} ms."
        )


def _attachment(stream: StreamRun, item: AttachmentItem) -> Attachment:
    content = item.text.encode("utf-8", "surrogatepass")
    return Attachment(
        stream_run=stream, name=item.name, media_type=item.media_type.value, compressed=zlib.compress(content)
    )


def _finished(changes: Changes, item: Finished) -> None:
    """The end of the attempt. Only a done trial has results."""
    if item.outcome is not Outcome.DONE and not item.code:
        raise BadItem(f"The attempt ended as {item.outcome} without a code.")
    if item.outcome is Outcome.DONE and changes.attempt.kind == AttemptKind.TRIAL:
        if changes.attempt.state != AttemptState.RUNNING:
            raise BadItem("The attempt is done, but it never started to run.")
        changes.results = new_results(changes.attempt, changes.streams)
        if changes.attempt.trial and changes.attempt.trial.stream_count == 1:  # else they are the values of each stream
            changes.change_stream(changes.streams[0], directions=b"")
    changes.finished = item


def _move(changes: Changes, to: AttemptState) -> None:
    """A trial on several hosts is as far as the first of them."""
    attempt = changes.attempt
    transition_attempt(attempt, to)
    trial = attempt.trial
    if trial is not None and trial.on_several_hosts:
        trial = lock_trial(attempt)
    if trial is not None and TrialState(to.value) in TRIAL_TRANSITIONS[TrialState(trial.state)]:
        transition_trial(trial, TrialState(to.value), attempt=attempt)


def _common_start(changes: Changes, item: CommonStart) -> None:
    changes.change_attempt(common_start_at=moment(item.at), start_uncertainty_s=item.uncertainty_s)


_HANDLERS: Mapping[type, Callable[[Changes, Any], None]] = {
    Accepted: _accepted,
    Phase: _phase,
    Purged: _purged,
    SettingRecord: _setting,
    SettingRestored: _setting_restored,
    Observed: _observed,
    CommonStart: _common_start,
    StreamStarted: _stream_started,
    Sample: _sample,
    KernelLog: _kernel_log,
    ReadingItem: _drive_reading,
    StreamResult: _stream_result,
    Finished: _finished,
}


# Step 2: lock the attempt and find the batches that continue its sequence.

_COLUMNS = [field.attname for field in Attempt._meta.concrete_fields if field.attname != "purged"]  # JSON, rarely used
# Every report needs this query. With Django's ORM it took longer than everything else together.
_LOCK = f"""
SELECT {", ".join(f"attempt.{column}" for column in _COLUMNS)},
    coalesce(
        run.cancel_requested_at, trial.skip_requested_at, trial.stop_requested_at, action.stop_requested_at
    ) AS stop_requested_at,
    ARRAY(SELECT stream FROM results_streamrun WHERE attempt_id = attempt.id) AS started_streams
FROM runs_attempt attempt
LEFT JOIN runs_run run ON run.id = attempt.run_id AND attempt.kind = 'trial'
LEFT JOIN runs_trial trial ON trial.id = attempt.trial_id
LEFT JOIN runs_hostaction action ON action.attempt_id = attempt.id AND attempt.kind = 'purge'
WHERE attempt.id = %s AND attempt.host_id = %s
FOR NO KEY UPDATE OF attempt
"""  # noqa: S608 - our own columns


@dataclass(frozen=True)
class LockedAttempt:
    attempt: Attempt
    stop_requested_at: (
        datetime | None
    )  # a person cancelled the run, skipped the trial or stopped the purge, or another host failed
    started_streams: frozenset[int]  # those that were committed when the query started


def lock_attempt(host: Host, attempt_id: UUID) -> LockedAttempt | None:
    """Lock the attempt until the end of the transaction; None if the host has no such attempt.

    Two reports about one attempt are serialised here.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [attempt_id, host.pk])
        row = cursor.fetchone()
    if row is None:
        return None
    *values, stop_requested_at, started_streams = row
    attempt = Attempt.from_db("default", _COLUMNS, values)
    return LockedAttempt(attempt, stop_requested_at, frozenset(started_streams))


def in_sequence(confirmed_seq: int, batches: Iterable[AnyBatch]) -> Iterator[AnyBatch]:
    """The batches that are next: number `confirmed_seq + 1` and so on. Lower numbers were processed before."""
    for batch in batches:
        if batch.seq == confirmed_seq + 1:
            confirmed_seq = batch.seq
            yield batch


def reply_about(
    locked: LockedAttempt, *, name: str, cancel: bool = False, refusal: Refusal | None = None
) -> AttemptReply:
    """The reply about an attempt after the report was written. `cancel` is true if the attempt is not active."""
    attempt = locked.attempt
    active = attempt.state in ACTIVE_ATTEMPT_STATES
    return AttemptReply(
        attempt=name,
        confirmed_seq=attempt.confirmed_seq,
        cancel=locked.stop_requested_at is not None if active else cancel,
        lease_until=attempt.lease_until.timestamp() if active else 0.0,
        refusal=refusal,
    )


log = logging.getLogger(__name__)

# A report with more batches of an attempt is a backlog. After an outage, hundreds of hosts send one at the same time.
# Their next orders are then dispatched by the tick, not by the request.
_BACKLOG_BATCHES = 20
_FEW_ATTEMPTS = 8
_BAD = (BadItem, IntegrityError, DataError)
_WHY = {
    "unknown_attempt": "This host has no such attempt on this server.",
    "attempt_closed": "This attempt has ended; no more batches of it are taken.",
    "superseded": "This attempt was lost, and since then its run has ended or the host was given a newer attempt.",
}


def take_report(*, host: Host, parsed: ParsedReport) -> ReportReply:
    """Commit the new batches of a report; the reply covers every attempt in it."""
    active = frozenset(parsed.report.active)
    batches: dict[str, list[AnyBatch]] = {name: [] for name in parsed.report.active} | by_attempt(parsed.batches)
    note_heard(host=host, spool_bytes=parsed.report.spool_bytes)
    known = _known(host, batches)
    replies = tuple(
        _take_attempt(host, name, attempt_batches, name in active, known) for name, attempt_batches in batches.items()
    )
    refused = Tally(reply.refusal.code for reply in replies if reply.refusal is not None)
    for code, number in refused.items():
        count(Counter.REFUSED, code, by=number)
    return ReportReply(attempts=replies)


def _known(host: Host, names: Collection[str]) -> Collection[UUID]:
    """The attempts of the host among many, in one query; a few attempts are looked up one by one."""
    ids = [attempt_id for attempt_id in map(parse_id, names) if attempt_id is not None]
    if len(ids) <= _FEW_ATTEMPTS:
        return ids
    return set(Attempt.objects.filter(host=host.pk, pk__in=ids).values_list("pk", flat=True))


def _take_attempt(
    host: Host, name: str, batches: Sequence[AnyBatch], active: bool, known: Collection[UUID]
) -> AttemptReply:
    attempt_id = parse_id(name)
    with about(attempt=name):
        if attempt_id is None or attempt_id not in known:
            return _unknown(name, batches)
        return _take_up_to_bad_batch(host, attempt_id, name, batches, active)


def _take_up_to_bad_batch(
    host: Host, attempt_id: UUID, name: str, batches: Sequence[AnyBatch], active: bool
) -> AttemptReply:
    """Process all batches in one transaction; if one of them is bad, halve them until it is found."""
    try:
        return _take(host, attempt_id, name, batches, active)
    except _BAD as error:
        if not batches:
            raise
        if len(batches) == 1:
            return _refuse(host, attempt_id, name, batches[0], _words(error).strip()[:1500])
    half = len(batches) // 2
    reply = _take_up_to_bad_batch(host, attempt_id, name, batches[:half], active)
    return reply if reply.refusal else _take_up_to_bad_batch(host, attempt_id, name, batches[half:], active)


@transaction.atomic
def _take(host: Host, attempt_id: UUID, name: str, batches: Sequence[AnyBatch], active: bool) -> AttemptReply:
    locked = lock_attempt(host, attempt_id)
    if locked is None:
        return _unknown(name, batches)
    attempt = locked.attempt
    unseen = [batch.seq for batch in batches if batch.seq > attempt.confirmed_seq]
    if attempt.state == AttemptState.LOST and (unseen or active) and not revive(attempt):
        return reply_about(locked, name=name, refusal=_refusal("superseded", unseen))
    if attempt.state not in ACTIVE_ATTEMPT_STATES:
        refusal = _refusal("attempt_closed", unseen) if unseen else None
        return reply_about(locked, name=name, cancel=active, refusal=refusal)
    changes = _changes(locked, list(in_sequence(attempt.confirmed_seq, batches)))
    write(changes)
    if changes.finished and len(batches) <= _BACKLOG_BATCHES:
        _dispatch_after_commit(attempt)
    return reply_about(locked, name=name)


def _dispatch_after_commit(attempt: Attempt) -> None:
    """The next order of the host, and of the other hosts of its trial, which may have waited for this end."""
    trial = attempt.trial
    others = [host.pk for host in trial.all_hosts] if trial is not None and trial.on_several_hosts else []
    for host_id in dict.fromkeys([attempt.host_id, *others]):
        transaction.on_commit(lambda host_id=host_id: dispatch_host(host_id))  # type: ignore[misc]


def _changes(locked: LockedAttempt, batches: Sequence[AnyBatch]) -> Changes:
    """Apply all items. The lease is renewed by every report."""
    attempt = locked.attempt
    changes = Changes(attempt, locked.started_streams)
    for batch in batches:
        if isinstance(batch, UnreadableBatch):
            raise BadItem(batch.message)
        for item in batch.items:
            apply_item(changes, item)
        changes.change_attempt(confirmed_seq=batch.seq)
    if batches and isinstance(batches[-1], Batch):
        offset = offset_ms(attempt.clock_offset_ms, batches[-1], now_s=time.time())
        changes.change_attempt(clock_offset_ms=offset)
    ends_after = attempt.created_at if attempt.kind == AttemptKind.CLOSE_RUN else locked.stop_requested_at
    changes.change_attempt(lease_until=renewed(attempt.lease_until, ends_after=ends_after))
    return changes


def _words(error: Exception) -> str:
    """In its error about a NUL in JSON, PostgreSQL names only the escape sequence."""
    return "Text cannot contain a NUL (0x00) character." if "\\u0000" in str(error) else str(error)


def _unknown(name: str, batches: Sequence[AnyBatch]) -> AttemptReply:
    refusal = _refusal("unknown_attempt", [batch.seq for batch in batches])
    return AttemptReply(attempt=name, confirmed_seq=0, refusal=refusal)


def _refusal(code: str, unseen: Sequence[int]) -> Refusal:
    return Refusal(code=code, message=_WHY[code], seq=min(unseen, default=0))


@transaction.atomic
def _refuse(host: Host, attempt_id: UUID, name: str, batch: AnyBatch, words: str) -> AttemptReply:
    """Fail the attempt of a bad batch. The batch was rolled back; batches confirmed before stay."""
    log.warning("Batch %d was refused: %s", batch.seq, words)
    locked = lock_attempt(host, attempt_id)
    if locked is None:
        return _unknown(name, [batch])
    attempt = locked.attempt
    if attempt.state in ACTIVE_ATTEMPT_STATES:
        end_attempt(
            attempt, AttemptState.FAILED, code="bad_item", fields=message_fields(f"The worker reported: {words}")
        )
        transaction.on_commit(lambda: dispatch_host(attempt.host_id))
    return reply_about(locked, name=name, refusal=Refusal(code="bad_item", message=words, seq=batch.seq))
