"""The changes of one attempt by a report: collected by `apply`, written by `write`."""

from dataclasses import dataclass, field
from functools import cached_property

from django.db.models import Model

from webapp.results.ingest.bad_item import BadItem
from webapp.results.models import Attachment, Configuration, Result, StreamRun
from webapp.runs.models import Attempt
from worker.contract.items import Finished, Sample


@dataclass
class Changes:
    """`attempt` is locked; its new values are already set in memory."""

    attempt: Attempt
    started_streams: frozenset[int]  # some or all of the streams in the database
    attempt_columns: set[str] = field(default_factory=set)
    stream_columns: dict[int, set[str]] = field(default_factory=dict)  # of streams that existed before, by number
    configurations: list[Configuration] = field(default_factory=list)
    rows: list[Model] = field(default_factory=list)  # other new rows, of several models
    samples: list[Sample] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    finished: Finished | None = None

    @cached_property
    def streams(self) -> dict[int, StreamRun]:
        """The streams that have started, by number; loaded only for items that need more than the numbers."""
        if not self.attempt.started_at:
            return {}
        needed = StreamRun.objects.filter(attempt=self.attempt).only(
            "attempt_id", "stream", "ended_at", "directions", "stopped"
        )
        return {stream.stream: stream for stream in needed}

    def check_started(self, number: int, what: str) -> None:
        """Raise BadItem if an item is about a stream that has not started."""
        if number not in self.started_streams and number not in self.streams:
            raise BadItem(f"A {what} came for stream {number}, which has not started.")

    def change_attempt(self, **values: object) -> None:
        self.attempt_columns.update(values)
        _set(self.attempt, values)

    def change_stream(self, stream: StreamRun, **values: object) -> None:
        self.stream_columns.setdefault(stream.stream, set()).update(values)
        _set(stream, values)


def _set(row: Model, values: dict[str, object]) -> None:
    for name, value in values.items():
        setattr(row, name, value)
