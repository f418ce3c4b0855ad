"""Text for people and JSON for programs. Values go to standard output, progress and remarks to standard error."""

import json
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_DECIMAL = ("", "k", "M", "G", "T")


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
    """`unit` is that of the server: times are in ns."""
    if number is None:
        return "–"
    if unit == "ns":
        return _latency(number)
    return _decimal(number) + ("" if unit == "1/s" else unit)


def _latency(nanoseconds: float) -> str:
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= factor:
            return f"{_digits(nanoseconds / factor)} {unit}"
    return f"{nanoseconds:.0f} ns"


def _decimal(number: float) -> str:
    for unit in _DECIMAL[:-1]:
        if abs(number) < 999.5:
            return f"{_digits(number)} {unit}"
        number /= 1000
    return f"{_digits(number)} {_DECIMAL[-1]}"


def _digits(number: float) -> str:
    """Three significant digits, without an exponent."""
    return f"{number:.0f}" if abs(number) >= 99.95 else f"{number:.3g}"


def moment(text: str | None) -> str:
    """2026-11-23T03:20:35Z -> 2026-11-23 03:20, in the local time zone."""
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M") if text else "–"
