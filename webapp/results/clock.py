"""The worker's times: how wrong its clock is, as far as its reports show, and its moments as ours."""

from collections.abc import Iterable
from datetime import UTC, datetime

from webapp.results.bad_item import BadItem
from worker.contract.reports import Batch

FARTHEST_MS = 10**14


def offset_ms(known: int | None, batches: Iterable[Batch], *, now_s: float) -> int | None:
    """The least difference seen between the server's time at receipt and the worker's in what it sent (ms).

    A report can be late but not early, so the least is the worker's clock error plus the shortest delay.
    None while nothing that carries a time has come.
    """
    times = [at for batch in batches for item in batch.items if (at := getattr(item, "at", None)) is not None]
    seen = [round((now_s - at) * 1000) for at in times if abs(now_s - at) * 1000 < FARTHEST_MS]
    return min([*seen, *([] if known is None else [known])], default=None)


def moment(seconds: float) -> datetime:
    """A Unix time of the contract. Raises BadItem where it is no date."""
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, OSError, ValueError) as error:
        raise BadItem(f"{seconds} is no Unix time.") from error
