"""Bytes that a run or a trial wrote to its drives, formatted."""

from collections.abc import Iterable
from dataclasses import dataclass

from webapp.core import formatting
from webapp.results.wear import SILENT, Amplification, Counted, DriveWear, wear_of, wear_of_trial
from webapp.runs.models import Run, Trial


@dataclass(frozen=True)
class WearRow:
    """One drive; a missing value is replaced by the reason."""

    wear: DriveWear
    engine: str
    kernel: str
    host: str
    media: str
    amplification: str
    percents: str
    used: str


def wear_rows(of: Run | Trial) -> list[WearRow]:
    return [_row(wear) for wear in (wear_of(of) if isinstance(of, Run) else wear_of_trial(of))]


def engine_labels(rows: Iterable[WearRow]) -> str:
    """The heading of the engines' own count."""
    return ", ".join(sorted({label for row in rows for label in row.wear.engines})) or "Engine"


def _row(wear: DriveWear) -> WearRow:
    together = f", over {wear.together} drives" if wear.together > 1 else ""
    return WearRow(
        wear=wear,
        engine=f"{formatting.bytes_decimal(wear.engine_bytes)}{together}" if wear.engine_bytes else "none measured",
        kernel=_kernel(wear),
        host=_bytes(wear.host_bytes),
        media=_bytes(wear.media_bytes),
        amplification=_amplification(wear.amplification),
        percents=_percents(wear),
        used=_percent(wear.percent_used),
    )


def _kernel(wear: DriveWear) -> str:
    if wear.kernel_bytes is None:
        return "not counted"
    least = "at least " if wear.kernel_at_least else ""
    return f"{least}{formatting.bytes_decimal(wear.kernel_bytes)}"


def _bytes(counted: Counted) -> str:
    if counted.count is None:
        step = f" ({formatting.bytes_decimal(counted.step)})" if counted.step else ""
        return f"{counted.why}{step}"
    within = f" ± {formatting.bytes_decimal(counted.step)}" if counted.step > 1 else ""
    return f"{formatting.bytes_decimal(counted.count)}{within}"


def _amplification(amplification: Amplification) -> str:
    if amplification.ratio is None:
        return amplification.why
    low, high = formatting.ratio(amplification.low), formatting.ratio(amplification.high)
    return formatting.ratio(amplification.ratio) + (f" ({low} to {high})" if low != high else "")


def _percents(wear: DriveWear) -> str:
    if wear.percent_before is None:
        return SILENT
    return f"{wear.percent_before} % → {wear.percent_after} %"


def _percent(counted: Counted) -> str:
    if counted.count is None:
        return f"{counted.why} (1 %)" if counted.step else counted.why
    return f"{counted.count} % ± {counted.step} %"
