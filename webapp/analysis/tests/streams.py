"""Results of streams."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from webapp.plans.points import point_key
from webapp.results.reading.rows import ResultRow

START = datetime(2026, 1, 1, tzinfo=UTC)


def of_stream(stream: str, streams: str, iops: Sequence[float], trial: int, **levels: object) -> list[ResultRow]:
    """A row for each repeat; the trials of the repeats are numbered from `trial`, in alternating order."""
    others = [name for name in streams.split(" + ") if name != stream]
    point: dict[str, Any] = {"stream": stream, "streams": streams, "beside": " + ".join(others) or "alone", **levels}
    unknown: dict[str, Any] = dict.fromkeys(ResultRow.__struct_fields__)
    return [
        ResultRow(
            **unknown
            | {
                "direction": "write", "iops": value, "ios": 10_000, "runtime_ms": 10_000, "point": point,
                "point_key": point_key(point), "repeat": repeat, "run": 1, "trial_id": f"t{trial + repeat}",
                "target_name": "a/scratch", "time_known": True,
                "measured_at": START + timedelta(hours=repeat, seconds=trial * (-1) ** repeat),
            }
        )
        for repeat, value in enumerate(iops, start=1)
    ]  # fmt: skip
