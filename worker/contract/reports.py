"""What a host sends the server over HTTP with its token: reports, and the question for a common start.

A report carries numbered batches. Batches of one (attempt, host) are numbered from 1
without gaps and are taken in order: the server confirms the highest number up to which
it has committed everything, and the worker keeps a batch on disk until it is confirmed.
"""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from worker.contract.base import CONTRACT_VERSION, Count, EarlierSessions, Id, Message, Session, Text
from worker.contract.items import Item


class LogLevel(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"


class LogLine(Message, frozen=True, kw_only=True):
    """A line of the worker's log."""

    number: Count  # from 1 within the session
    at: float
    level: LogLevel
    text: Text
    attempt: Annotated[str, Meta(max_length=64)] = ""  # the order that it is about


class WorkerLog(Message, frozen=True, kw_only=True):
    """Recent lines of the worker's log. A line that is sent twice (same session and number) is stored once."""

    session: Id  # one process of the worker
    lines: Annotated[tuple[LogLine, ...], Meta(min_length=1, max_length=200)]


class Batch(Message, frozen=True, kw_only=True):
    attempt: Id
    seq: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    items: Annotated[tuple[Item, ...], Meta(min_length=1, max_length=2000)]


MAX_REPORT_BATCHES = 5000


class Report(Message, frozen=True, kw_only=True):
    """One report. The leases of attempts in `active` are renewed even without batches."""

    batches: Annotated[tuple[Batch, ...], Meta(max_length=MAX_REPORT_BATCHES)] = ()
    active: Annotated[tuple[Id, ...], Meta(max_length=64)] = ()
    spool_bytes: Count = 0  # what waits on the host's disk after this report
    log: WorkerLog | None = None
    session: Session = ""  # as in Hello
    earlier_sessions: EarlierSessions = ()
    version: int = CONTRACT_VERSION


class Refusal(Message, frozen=True, kw_only=True):
    """Codes: unknown_attempt (also for another host's), attempt_closed, superseded, bad_item."""

    code: Id
    message: Text
    seq: Count = 0  # the first refused batch; later ones are refused too; 0 if the report had none


class AttemptReply(Message, frozen=True, kw_only=True):
    """Everything up to `confirmed_seq` is committed; continue with the next number.

    With a `refusal`, the server accepts nothing more of this attempt: the worker stops it
    and moves its unconfirmed batches aside.
    """

    attempt: Id
    confirmed_seq: Count
    cancel: bool = False
    lease_until: float = 0.0
    refusal: Refusal | None = None


MAX_REPORT_EVERY_S = 30.0


class ReportReply(Message, frozen=True, kw_only=True):
    attempts: tuple[AttemptReply, ...]
    # How often to report until the next reply: a busy server asks for fewer, larger reports.
    report_every_s: Annotated[float, Meta(ge=1, le=MAX_REPORT_EVERY_S)] = 1.0
    token_due: bool = False  # fetch a new host token
    version: int = CONTRACT_VERSION


# The common start of a trial on several hosts, over HTTP with the host's token.
#
# A worker that is ready to start its streams asks until the reply has the start. Every exchange is also a reading of
# the server's clock: with the times t0 of sending and t1 of receiving by the worker's clock, the server's clock is
# ahead by (received_at + sent_at - t0 - t1) / 2, with an error of at most ((t1 - t0) - (sent_at - received_at)) / 2.


class StartRequest(Message, frozen=True, kw_only=True):
    """The attempt is ready to start. Safe to repeat."""

    attempt: Id
    version: int = CONTRACT_VERSION


class StartReply(Message, frozen=True, kw_only=True):
    """Unix times by the server's clock."""

    received_at: float  # when the server received the request
    sent_at: float  # when it sent this reply
    start_at: float | None = None  # None: other hosts are not ready yet
    version: int = CONTRACT_VERSION
