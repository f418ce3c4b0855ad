"""Encode reports as JSON, from batches that are JSON already."""

from collections.abc import Sequence

import msgspec

from worker.contract.base import CONTRACT_VERSION
from worker.contract.items import Item
from worker.contract.reports import WorkerLog
from worker.link.session import NO_SESSION, Session
from worker.link.spool import Spooled

_encoder = msgspec.json.Encoder()
_checker = msgspec.json.Decoder(Item)


def encode_item(item: Item) -> bytes:
    """Encode an item as JSON; raises msgspec.ValidationError if it exceeds the contract's limits."""
    text = _encoder.encode(item)
    _checker.decode(text)
    return text


def encode_report(
    batches: Sequence[Spooled],
    active: Sequence[str],
    *,
    spool_bytes: int = 0,
    log: WorkerLog | None = None,
    session: Session = NO_SESSION,
    version: int = CONTRACT_VERSION,
) -> bytes:
    """Encode a Report around batches that are JSON already, in the server's contract version."""
    body = {
        "batches": [msgspec.Raw(batch.body) for batch in batches],
        "active": list(active),
        "spool_bytes": spool_bytes,
        "log": log,
        "session": session.id,
        "earlier_sessions": session.earlier,
        "version": version,
    }
    return _encoder.encode(body)
