"""The worker's clock: its error, and its times as datetimes."""

from datetime import UTC, datetime

from webapp.results.ingest.bad_item import BadItem
from worker.contract.reports import Batch

FARTHEST_MS = 10**14


def offset_ms(known: int | None, batch: Batch, *, now_s: float) -> int | None:
    """The least difference seen between the server's time at receipt and the worker's time of an item (ms).

    A report can be late but not early, so the least difference is the worker's clock error plus the shortest delay.
    None until an item has a time.
    """
    times = [at for item in batch.items if (at := getattr(item, "at", None)) is not None]
    seen = [round((now_s - at) * 1000) for at in times if abs(now_s - at) * 1000 < FARTHEST_MS]
    return min([*seen, *([] if known is None else [known])], default=None)


def moment(seconds: float) -> datetime:
    """A Unix time of the contract as a datetime. Raises BadItem if it is not a valid date."""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise BadItem(f"{seconds} is not a valid Unix time.") from error
