"""Step 1: decode a report and check it against the contract.

A batch that violates the contract is refused by its number; the other batches of the report are processed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated

import msgspec

from worker.contract.base import MAX_REPORT_BYTES, ContractError, Count, Id, TooLarge, VersionMismatch, decode
from worker.contract.reports import MAX_REPORT_BATCHES, Batch, Report


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
    found: dict[str, list[AnyBatch]] = {}
    for batch in batches:
        found.setdefault(batch.attempt, []).append(batch)
    return found


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
