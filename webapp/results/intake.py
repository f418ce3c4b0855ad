"""What reports have to say about attempts, gathered so that all of it is written in few statements."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from uuid import UUID

from webapp.core import prepared
from webapp.results.bad_item import BadItem
from webapp.results.models import Configuration, DriveReading, KernelLine, Result, StreamRun
from webapp.results.packed import check_packed
from webapp.results.sample_copy import copy
from webapp.runs.ending import end_attempt
from webapp.runs.models import Attempt, AttemptState, SettingChange
from webapp.runs.states import Later
from worker.contract.items import Finished, Sample

Streams = dict[int, StreamRun]


@dataclass
class Intake:
    """`attempt` is locked. Everything is collected here and in `later`, and written by `write`."""

    attempt: Attempt
    later: Later  # of attempts and their trials
    streams: Streams  # that have started, by number
    configurations: list[Configuration] = field(default_factory=list)
    kernel_lines: list[KernelLine] = field(default_factory=list)
    drive_readings: list[DriveReading] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    histograms: list[bytes] = field(default_factory=list)  # of whole streams, to be looked through
    setting_changes: list[SettingChange] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    finished: Finished | None = None
    changed_streams: dict[int, set[str]] = field(default_factory=dict)  # number -> columns

    def stream(self, number: int, what: str) -> StreamRun:
        """The stream that `what` is said of. Raises BadItem where it never started."""
        if number not in self.streams:
            raise BadItem(f"A {what} of stream {number}, which has not started.")
        return self.streams[number]

    def change_stream(self, stream: StreamRun, **changes: object) -> None:
        """New values of a stream's columns."""
        self.changed_streams.setdefault(stream.stream, set()).update(changes)
        for name, value in changes.items():
            setattr(stream, name, value)


def started_streams(attempts: Iterable[Attempt]) -> dict[UUID, Streams]:
    """Of each attempt, the streams that were said to have started."""
    found: dict[UUID, Streams] = {attempt.pk: {} for attempt in attempts}
    started = [attempt.pk for attempt in attempts if attempt.started_at]
    for stream in StreamRun.objects.filter(attempt__in=started) if started else ():
        found[stream.attempt_id][stream.stream] = stream
    return found


def write(intakes: Sequence[Intake], later: Later) -> None:
    """In a few exchanges with the database, however many there are; in a transaction, which ends where this raises.

    Rules that only the database can see are seen here. Raises BadItem and Django's database errors; which attempt they
    are about, only a single one's tell.
    """
    results = [result for intake in intakes for result in intake.results]
    new = [stream for intake in intakes for stream in intake.streams.values() if stream.pk is None]
    check_packed(chain.from_iterable(map(_histograms, intakes)))
    prepared.insert_for_keys(new)
    copy((intake.attempt.pk, intake.samples) for intake in intakes)
    prepared.insert([line for intake in intakes for line in intake.kernel_lines], ignore_conflicts=True)
    said = _kernel_lines_of([intake.attempt.pk for intake in intakes if intake.results])
    for result in results:
        result.kernel_lines = said.get(result.stream_run.attempt_id, 0)
        result.stream_run_id = result.stream_run.pk  # and `stream_run` would be read anew
    for intake in intakes:
        if end := intake.finished:
            outcome = AttemptState(end.outcome.value)
            end_attempt(intake.attempt, outcome, code=end.code, message=end.message, later=later)
    with prepared.together():
        # In one order, so that two that write the same ones at once do not wait for each other.
        seen = sorted((each for intake in intakes for each in intake.configurations), key=lambda each: each.digest)
        prepared.insert(seen, ignore_conflicts=True)
        prepared.insert([reading for intake in intakes for reading in intake.drive_readings], ignore_conflicts=True)
        for names, streams in sorted(_alike(intakes, new).items()):
            prepared.update(streams, names)
        prepared.insert([change for intake in intakes for change in intake.setting_changes])
        prepared.insert(results)
        later.write()


def _histograms(intake: Intake) -> Iterator[bytes]:
    yield from intake.histograms
    for sample in intake.samples:
        for measured in sample.directions:
            yield measured.latency


def _kernel_lines_of(attempts: list[UUID]) -> dict[UUID, int]:
    """How many there are of each that concern it, where there are any."""
    counted = (
        "select attempt_id, count(*) from results_kernelline where attempt_id = any(%s::uuid[]) and not elsewhere "
        "group by 1"
    )
    return dict(prepared.execute(counted, [attempts])) if attempts else {}


def _alike(intakes: Sequence[Intake], new: Collection[StreamRun]) -> dict[tuple[str, ...], list[StreamRun]]:
    """Streams that were there before, by the columns that change."""
    alike: dict[tuple[str, ...], list[StreamRun]] = {}
    fresh = {id(stream) for stream in new}
    for intake in intakes:
        for number, names in intake.changed_streams.items():
            if id(intake.streams[number]) not in fresh:
                alike.setdefault(tuple(sorted(names)), []).append(intake.streams[number])
    return alike
