"""Yet-Another-Bench-Script: its table "fio Disk Speed Tests (Mixed R/W 50/50)".

Units: older versions divide fio's KiB/s by 1,000, so their MB/s is 1,024,000 bytes/s, newer ones print 10^6 (yabs.sh,
format_speed). The text does not state its version reliably, but IOPS x block size tells both apart. Digits are cut off.
"""

import re
from collections.abc import Iterator, Sequence
from statistics import median

import msgspec

from webapp.imports.measurement import Measurement, with_repeats
from webapp.imports.values import ImportRefused, Printed, lines, number, size, sorted_factors
from worker.contract.items import Direction

TOOL = "YABS"
_TITLE = "fio Disk Speed Tests (Mixed R/W 50/50)"
_BLOCKS = re.compile(r"Block Size \| (\d{1,4}[km])\b[^|]{1,40}(?:\| (\d{1,4}[km])\b)?", re.IGNORECASE)
_ROW = re.compile(r"(Read|Write) {1,12}\|")
_CELL = re.compile(r"\| {0,9}([\d.]{1,12}) ([KMG])B/s {0,12}\(([\d.]{1,12})(k?)\)")
_UNITS = {"K": 1e3, "M": 1e6, "G": 1e9}
_KIB = 1.024  # per KB of older versions
_FINE = 0.005  # relative step of IOPS that tell 1.024 from 1


class _Cell(msgspec.Struct, frozen=True):
    direction: Direction
    block: int
    iops: Printed
    rate: Printed  # in the printed unit

    @property
    def ratio(self) -> float | None:
        fine = self.rate and self.iops and self.iops.step / self.iops < _FINE and self.rate.step / self.rate < _FINE
        return self.iops * self.block / self.rate if fine else None


def sniff(head: str) -> bool:
    return _TITLE in head


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    cells = list(_cells(lines(text)))
    if not cells:
        raise ImportRefused("The table of YABS has no row with a speed and IOPS: it is cut off.")
    ratios = [cell.ratio for cell in cells if cell.ratio is not None]
    factor = (_KIB if median(ratios) > (1 + _KIB) / 2 else 1.0) if ratios else None
    return with_repeats(_measured(cell, factor) for cell in cells)


def _cells(text_lines: Sequence[str]) -> Iterator[_Cell]:
    blocks: list[int] = []
    for line in text_lines:
        if head := _BLOCKS.search(line):
            blocks = [size(each, "block size") for each in head.groups() if each]
        elif blocks and (row := _ROW.search(line)):
            direction = Direction.READ if row[1] == "Read" else Direction.WRITE
            for block, (rate, unit, iops, thousands) in zip(blocks, _CELL.findall(line), strict=False):
                yield _Cell(
                    direction, block, number(iops, "IOPS") * (1000.0 if thousands else 1.0),
                    number(rate, "speed") * _UNITS[unit],
                )  # fmt: skip


def _measured(cell: _Cell, factor: float | None) -> Measurement:
    factors, other = sorted_factors({"pattern": "randrw", "read_percent": 50, "block_size": cell.block})
    return Measurement(
        tool=TOOL,
        name="Mixed R/W 50/50",
        direction=cell.direction,
        factors=factors,
        other=other,
        iops=cell.iops,
        bytes_per_s=cell.rate * factor if factor is not None else None,
        notes=("The digits of the table are cut off, not rounded.",),
    )
