"""The changes of one attempt by a report: collected by `apply`, written by `write`."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated

import msgspec
from django.db.models import Model

from webapp.results.models import Attachment, Configuration, Result, StreamRun
from webapp.runs.models import Attempt
from worker.contract.base import MAX_REPORT_BYTES, ContractError, Count, Id, TooLarge, VersionMismatch, decode
from worker.contract.items import Finished, Sample
from worker.contract.reports import MAX_REPORT_BATCHES, Batch, Report

# Step 1: decode a report and check it against the contract.
#
# A batch that violates the contract is refused by its number; the other batches of the report are processed.

# The error for an implausible item.


class BadItem(Exception):
    """An item is well formed but implausible; the text says which item and why."""


@dataclass(frozen=True)
class UnreadableBatch:
    """A batch that violates the contract; `message` says how."""

    attempt: str
    seq: int
    message: str


AnyBatch = Batch | UnreadableBatch


@dataclass(frozen=True)
class ParsedReport:
    """`batches` are those of the report, in its order; `report.batches` is empty if one of them is unreadable."""

    report: Report
    batches: tuple[AnyBatch, ...]


_RawBatches = Annotated[list[msgspec.Raw], msgspec.Meta(max_length=MAX_REPORT_BATCHES)]


class _BatchName(msgspec.Struct, frozen=True):
    attempt: Id
    seq: Count


def parse_report(body: bytes) -> ParsedReport:
    """Raises ContractError if the report as a whole cannot be read."""
    try:
        report = decode(body, Report, limit=MAX_REPORT_BYTES)
    except (TooLarge, VersionMismatch):
        raise
    except ContractError as error:
        return _parse_each_batch(body, error)
    return ParsedReport(report, report.batches)


def by_attempt(batches: Iterable[AnyBatch]) -> dict[str, list[AnyBatch]]:
    """The batches of each attempt, in the order of the report."""
    batches_by_attempt: dict[str, list[AnyBatch]] = {}
    for batch in batches:
        batches_by_attempt.setdefault(batch.attempt, []).append(batch)
    return batches_by_attempt


def _parse_each_batch(body: bytes, error: ContractError) -> ParsedReport:
    try:
        parts = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        if "batches" not in parts:
            raise error from None  # the error is in the report itself
        raw_batches = msgspec.json.decode(parts.pop("batches"), type=_RawBatches)
        report = msgspec.json.decode(msgspec.json.encode(parts), type=Report)
        return ParsedReport(report, tuple(_batch(raw) for raw in raw_batches))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise error from None


def _batch(raw: msgspec.Raw) -> AnyBatch:
    """Raises DecodeError if the number of the batch cannot be read."""
    try:
        return msgspec.json.decode(raw, type=Batch)
    except msgspec.DecodeError as error:
        name = msgspec.json.decode(raw, type=_BatchName)
        return UnreadableBatch(name.attempt, name.seq, f"The batch could not be read: {error}")


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
