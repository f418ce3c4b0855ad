"""Text for people and JSON for programs. Values go to standard output, progress and remarks to standard error."""

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Context

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
# By the server's unit: times are in ns.
_SCALES = {
    "1/s": ("", "k", "M", "G"),
    "B/s": (" B/s", " kB/s", " MB/s", " GB/s", " TB/s"),
    "ns": (" ns", " µs", " ms", " s"),
}
_THREE_DIGITS = Context(prec=3, rounding=ROUND_HALF_UP)


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def remark(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [tuple(head), *(tuple(printable(cell) for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def printable(text: str) -> str:
    """Without control characters: a text of another person must not steer the terminal."""
    return "".join("�" if unicodedata.category(sign) == "Cc" and sign != "\n" else sign for sign in text)


def size(count: float) -> str:
    """1536 -> 1.5 KiB."""
    for unit in _BINARY[:-1]:
        if abs(count) < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} {_BINARY[-1]}"


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def value(unit: str, number: float | None) -> str:
    """As the server's pages show it, in the largest unit in which it is at least 1 after rounding: 45.6k, 1.23 ms."""
    if number is None:
        return "–"
    units, place = _SCALES.get(unit, (f" {unit}",)), 0
    while abs(number) >= 999.5 and place < len(units) - 1:
        number, place = number / 1000, place + 1
    return f"{_digits(number)}{units[place]}"


def _digits(number: float) -> str:
    """Three significant digits, halves up, without an exponent."""
    if number == 0:
        return "0"
    rounded = _THREE_DIGITS.create_decimal_from_float(number)
    return f"{rounded:.{max(0, 2 - rounded.adjusted())}f}"


def moment(text: str | None) -> str:
    """2026-11-23T03:20:35Z -> 2026-11-23 03:20, in the local time zone."""
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M") if text else "–"
