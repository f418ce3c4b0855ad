"""Step 3: the changes that each item of a batch makes. `_HANDLERS` is the registry of item type -> handler."""

import hashlib
import json
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from webapp.results.ingest.parse import BadItem, Changes
from webapp.results.ingest.results import new_results
from webapp.results.ingest.write import check_command, check_configuration, check_purged, moment
from webapp.results.models import Attachment, Configuration, DriveReading, KernelLine, StreamRun
from webapp.results.reading.content import CONTROLLER_FACT, without_device_names
from webapp.runs.dispatch.ending import lock_trial
from webapp.runs.models import AttemptKind, AttemptState, SettingChange, TrialState
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
from worker.contract.workload import Stopped

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
