"""Rows of a fio log as arrays.

A row is `time ms, value[, largest value], direction, block size[, offset][, priority][, issue time ns]`. With
`log_avg_msec` a row is the average of an interval and has the block size 0; without it a row is one I/O.
Source: fio's iolog.c (flush_samples) and HOWTO, "Log File Formats".
"""

import re
import warnings

import numpy as np
from numpy.typing import NDArray

from webapp.imports.errors import ImportRefused
from webapp.imports.values import MAX_CHARACTERS
from worker.contract.items import Direction

Integers = NDArray[np.int64]
DIRECTIONS = (Direction.READ, Direction.WRITE, Direction.TRIM)
_ROW = re.compile(r"\d{1,18}, ?\d{1,18}(?:, ?(?:\d{1,19}|0x[0-9a-f]{1,8})){1,6}\s*")
_HISTOGRAM_ROW = re.compile(r"\d{1,18}, ?[0-2], ?\d{1,18}(?:, ?\d{1,18}){19}")
_PRIORITY = re.compile(r", 0x[0-9a-f]{1,8}")
_MAX_MS = 366 * 86_400_000
_SINCE_1970_MS = (788_918_400_000, 4_102_444_800_000)  # 1995 to 2100: times of log_unix_epoch


class Rows:
    """The columns of a log; `blocks` are 0 for averages of intervals."""

    def __init__(self, times: Integers, values: Integers, directions: Integers, blocks: Integers) -> None:
        self.times, self.values, self.directions, self.blocks = times, values, directions, blocks

    @property
    def averaged(self) -> bool:
        return not self.blocks.any()

    @property
    def since_1970(self) -> bool:
        """With log_unix_epoch."""
        return _is_since_1970(int(self.times.min()))

    def from_begin(self, begin_ms: int) -> "Rows":
        return Rows(self.times - begin_ms, self.values, self.directions, self.blocks)

    def jobs(self) -> list["Rows"]:
        """With per_job_logs=0, fio appends the averages of one job to those of the other: the times of a direction
        begin anew."""
        number = np.zeros_like(self.times)
        for code in np.unique(self.directions).tolist():
            (places,) = np.nonzero(self.directions == code)
            number[places[1:]] = np.cumsum(np.diff(self.times[places]) <= 0)
        return [self._where(number == job) for job in range(int(number.max()) + 1)]

    def of(self, direction: int) -> "Rows":
        chosen = self.directions == direction
        if chosen.all():  # as in most logs: a copy of each log of a trial needs too much memory
            return self
        return self._where(chosen)

    def _where(self, chosen: NDArray[np.bool_]) -> "Rows":
        return Rows(self.times[chosen], self.values[chosen], self.directions[chosen], self.blocks[chosen])


def sniff(head: str) -> bool:
    """Whether a text looks like a log of fio, also of histograms."""
    first = head.split("\n", 1)[0]
    return bool(_ROW.fullmatch(first) or _HISTOGRAM_ROW.match(first))


def read(text: str) -> Rows:
    """Raises ImportRefused."""
    table = numbers(text)
    columns = table.shape[1]
    if columns < 4:
        raise ImportRefused(f"The log has {columns} columns: a log of fio has at least 4.")
    place = 2
    if columns > 4 and table[:, 2].max() > 2:  # log_window_value=both: the largest value comes before the direction
        place = 3
    directions = table[:, place]
    if directions.min() < 0 or directions.max() > 2:
        raise ImportRefused("A row of the log has a direction other than 0, 1 and 2: the log is damaged.")
    first, last = int(table[:, 0].min()), int(table[:, 0].max())
    begin = first if _is_since_1970(first) else 0
    if first < 0 or last - begin > _MAX_MS or table[:, 1].min() < 0:
        raise ImportRefused("A row of the log has an impossible time or value.")
    return Rows(table[:, 0], table[:, 1], directions, table[:, place + 1])


def _is_since_1970(first_ms: int) -> bool:
    return _SINCE_1970_MS[0] <= first_ms < _SINCE_1970_MS[1]


def numbers(text: str) -> Integers:
    """All numbers of a log, rows x columns. Raises ImportRefused."""
    if len(text) > MAX_CHARACTERS:
        raise ImportRefused(f"The log has {len(text):,} characters, more than {MAX_CHARACTERS:,}. Use log_avg_msec.")
    body = text.strip()
    if not body:
        raise ImportRefused("The log is empty.")
    if "0x" in body:
        body = _PRIORITY.sub(", 0", body)
    if not body.isascii():
        raise ImportRefused("The log has characters that are not digits.")
    first = body.split("\n", 1)[0]
    columns, rows = first.count(",") + 1, body.count("\n") + 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # numpy's way to say that it stopped at a wrong character
        try:
            found = np.fromstring(body.replace("\n", ","), dtype=np.int64, sep=",")
        except (ValueError, DeprecationWarning) as error:
            raise ImportRefused("The log has a field that is not a whole number: it is damaged.") from error
    if found.size != rows * columns or body.count(",") != rows * (columns - 1):
        raise ImportRefused("The rows of the log differ in length: the log is truncated or damaged.")
    return found.reshape(rows, columns)
