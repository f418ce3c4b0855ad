"""The common start of a trial on several hosts, over HTTP with the host's token.

A worker that is ready to start its streams asks until the reply has the start. Every exchange is also a reading of the
server's clock: with the times t0 of sending and t1 of receiving by the worker's clock, the server's clock is ahead by
(received_at + sent_at - t0 - t1) / 2, with an error of at most ((t1 - t0) - (sent_at - received_at)) / 2.
"""

from worker.contract.base import CONTRACT_VERSION, Id, Message


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
