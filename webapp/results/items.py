"""What each item of a batch means: a registry of item type -> handler."""

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from webapp.results.bad_item import BadItem
from webapp.results.clock import moment
from webapp.results.intake import Intake
from webapp.results.models import Configuration, DriveReading, KernelLine, StreamRun
from webapp.results.services import results_of
from webapp.runs.models import AttemptKind, AttemptState, SettingChange, TrialState
from webapp.runs.states import move_attempt, move_trial
from worker.contract.items import (
    Accepted,
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
from worker.contract.items import DriveReading as ReadingItem


def take_item(intake: Intake, item: Item) -> None:
    """Take one item. Raises BadItem where it contradicts what was said before."""
    if intake.finished:
        raise BadItem("An item after the one that said the attempt was finished.")
    _HANDLERS[type(item)](intake, item)


def _accepted(intake: Intake, _: Accepted) -> None:
    if intake.attempt.state == AttemptState.DISPATCHED:
        _move(intake, AttemptState.ACCEPTED)


def _phase(intake: Intake, item: Phase) -> None:
    percent = "" if item.percent is None else f" {item.percent:.0f} %"
    detail = f": {item.detail}" if item.detail else ""
    intake.later.change(intake.attempt, phase=f"{item.name}{percent}{detail}"[:300])


def _setting(intake: Intake, item: SettingRecord) -> None:
    change = SettingChange(
        attempt=intake.attempt,
        at=moment(item.at),
        name=item.name,
        device=item.device,
        before=item.before,
        asked=item.asked,
        observed=item.observed,
        took_s=item.took_s,
    )
    intake.setting_changes.append(change)


def _restored(intake: Intake, item: SettingRestored) -> None:
    change = SettingChange(
        attempt=intake.attempt,
        at=moment(item.at),
        name=item.name,
        device=item.device,
        asked=item.value,
        observed=item.observed,
        restoring=True,
        restored=item.restored,
        note=item.note,
    )
    intake.setting_changes.append(change)


def _purged(intake: Intake, item: Purged) -> None:
    intake.later.change(intake.attempt, purged=[*intake.attempt.purged, msgspec.to_builtins(item)])


def _observed(intake: Intake, item: Observed) -> None:
    text = json.dumps(item.facts, sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    intake.configurations.append(Configuration(digest=digest, facts=item.facts))
    for stream in intake.streams.values():
        intake.change_stream(stream, configuration_id=digest)
    intake.later.change(intake.attempt, configuration_digest=digest)


def _stream_started(intake: Intake, item: StreamStarted) -> None:
    trial = intake.attempt.trial
    if trial is None or item.stream >= trial.stream_count:
        raise BadItem(f"Stream {item.stream} is not in the order of this attempt.")
    if item.stream in intake.streams:
        raise BadItem(f"Stream {item.stream} has started before.")
    intake.streams[item.stream] = StreamRun(
        attempt_id=intake.attempt.pk,
        stream=item.stream,
        job_text=item.job_text,
        command=list(item.command),
        sensors=[(sensor.kind.value, sensor.name) for sensor in item.sensors],
        kernel_log_read=item.kernel_log,
        configuration_id=intake.attempt.configuration_digest or None,
        started_at=moment(item.at),
    )
    if intake.attempt.state != AttemptState.RUNNING:
        _move(intake, AttemptState.RUNNING)


def _sample(intake: Intake, item: Sample) -> None:
    intake.stream(item.stream, "sample")
    intake.samples.append(item)


def _kernel_log(intake: Intake, item: KernelLog) -> None:
    intake.kernel_lines += [
        KernelLine(
            attempt=intake.attempt,
            sequence=line.sequence,
            at=moment(line.at),
            level=line.level,
            text=line.text,
            elsewhere=line.elsewhere,
        )
        for line in item.lines
    ]


def _drive_reading(intake: Intake, item: ReadingItem) -> None:
    if intake.attempt.run_id is None:
        raise BadItem("A reading of a drive that belongs to no run.")
    told = {name: getattr(item.told, name) for name in _TOLD} if item.told else {}
    plain = {name: getattr(item, name) for name in _OF_READINGS}
    row = DriveReading(attempt=intake.attempt, at=moment(item.at), moment=item.moment.value, **plain, **told)
    intake.drive_readings.append(row)


_OF_READINGS = ("device", "drive", "serial", "model", "boot_id", "kernel_written_bytes")
_TOLD = (
    "host_written_bytes", "host_unit_bytes", "media_written_bytes", "media_unit_bytes", "host_pages", "media_pages",
    "percent_used", "problem",
)  # fmt: skip


def _stream_result(intake: Intake, item: StreamResult) -> None:
    stream = intake.stream(item.stream, "result")
    if stream.ended_at is not None:
        raise BadItem(f"A second result of stream {item.stream}.")
    intake.histograms += [direction.latency for direction in item.directions]
    intake.change_stream(
        stream,
        started_at=moment(item.started_at),
        ended_at=moment(item.ended_at),
        fio_version=item.fio_version[:40],
        exit_code=item.exit_code,
        fio_json=zlib.compress(item.fio_json.encode("utf-8", "surrogatepass")),
        stderr=item.stderr,
        directions=msgspec.json.encode(item.directions),
        usr_cpu_percent=item.usr_cpu_percent,
        sys_cpu_percent=item.sys_cpu_percent,
        device=msgspec.to_builtins(item.device),
        samples_sent=item.samples,
    )


def _finished(intake: Intake, item: Finished) -> None:
    """The end: results are kept of what is done, whatever is waiting goes on after the commit."""
    if item.outcome is not Outcome.DONE and not item.code:
        raise BadItem(f"The attempt {item.outcome} without saying why.")
    if item.outcome is Outcome.DONE and intake.attempt.kind == AttemptKind.TRIAL:
        if intake.attempt.state != AttemptState.RUNNING:
            raise BadItem("The attempt is done without having run.")
        intake.results = results_of(intake.attempt, intake.streams)
        if len(intake.streams) == 1:  # of several the results are sums, and these are what each stream measured
            intake.change_stream(intake.streams[0], directions=b"")
    intake.finished = item


def _move(intake: Intake, to: AttemptState) -> None:
    move_attempt(intake.attempt, to, later=intake.later)
    if intake.attempt.trial is not None:
        move_trial(intake.attempt.trial, TrialState(to.value), attempt=intake.attempt, later=intake.later)


_HANDLERS: Mapping[type, Callable[[Intake, Any], None]] = {
    Accepted: _accepted,
    Phase: _phase,
    Purged: _purged,
    SettingRecord: _setting,
    SettingRestored: _restored,
    Observed: _observed,
    StreamStarted: _stream_started,
    Sample: _sample,
    KernelLog: _kernel_log,
    ReadingItem: _drive_reading,
    StreamResult: _stream_result,
    Finished: _finished,
}
