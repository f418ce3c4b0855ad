"""Step 4: write the changes, one statement for each table; samples by COPY."""

from collections import defaultdict

import msgspec
from django.db import transaction
from django.db.models import Model

from webapp.results.ingest.changes import Changes
from webapp.results.ingest.quota import check_rows
from webapp.results.ingest.samples import copy_samples
from webapp.results.models import Attachment, Configuration, KernelLine, Result, Sample, StreamRun, known
from webapp.results.repeats import skip_known_repeats
from webapp.results.rounds import skip_steady_rounds
from webapp.runs.dispatch.ending import end_attempt
from webapp.runs.models import Attempt, AttemptState, SettingChange
from webapp.runs.reasons import told
from worker.contract.steadiness import Steadiness, Timed, least_steady, steadiness, steadiness_in
from worker.contract.workload import AnyWorkload


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
        end_attempt(changes.attempt, AttemptState(end.outcome.value), code=end.code, fields=told(end.message))
    if changes.results:
        run, host = changes.results[0].run_id, changes.attempt.host_id
        # These lock the run before its trials.
        transaction.on_commit(lambda: skip_known_repeats(known(run), host))
        transaction.on_commit(lambda: skip_steady_rounds(known(run), host))


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
    for model, found in by_model.items():
        check_rows(attempt, model, len(found))
        model._default_manager.bulk_create(found, ignore_conflicts=True)


def _steadiness(changes: Changes) -> Steadiness | None:
    """None if the workload is not expected to have a uniform speed."""
    trial = changes.attempt.trial
    if trial is None or not msgspec.convert(trial.workload, AnyWorkload).uniform:
        return None
    samples: dict[int, list[Timed]] = defaultdict(list)
    found = Sample.objects.filter(attempt=changes.attempt).values_list("stream", "offset_ms", "length_ms", "ios")
    for stream, *timed in found.iterator(chunk_size=10_000):
        samples[stream].append((timed[0], timed[1], timed[2]))
    return least_steady(_judged(changes.streams[stream], timed) for stream, timed in samples.items())


def _judged(stream: StreamRun, samples: list[Timed]) -> Steadiness:
    """The verdict on what the result of the stream covers: the window of its stop rule, or all of its time."""
    if stream.stopped is None:
        return steadiness(samples)
    return steadiness_in(samples, stream.stopped["from_ms"], stream.stopped["to_ms"])


def _write_results(changes: Changes) -> None:
    """Each result gets the number of kernel log lines of its attempt, and the steadiness of its samples."""
    found = _steadiness(changes)
    changed = SettingChange.objects.filter(attempt=changes.attempt, meanwhile=True).exists()
    lines = KernelLine.objects.filter(attempt=changes.attempt, elsewhere=False).count()
    for result in changes.results:
        result.kernel_lines = lines
        result.settings_changed = changed
        if found is not None:
            result.steadiness, result.steadiness_numbers = found.verdict.value, found.numbers
        result.stream_run_id = known(result.stream_run).pk  # the stream may have been saved after the result was made
    Result.objects.bulk_create(changes.results)
