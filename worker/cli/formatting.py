"""Format numbers for people. KiB is 1024 bytes; rates are per second."""

from collections.abc import Iterable, Sequence

from worker.contract.packing import BEYOND, LAST_BUCKET_NS

_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size(count: float | None) -> str:
    """Bytes in binary units: 1536 -> 1.5 KiB; a dash if unknown."""
    if count is None:
        return "–"
    for unit in _BYTES[:-1]:
        if abs(count) < 1024:
            return f"{_three_digits(count)} {unit}"
        count /= 1024
    return f"{_three_digits(count)} {_BYTES[-1]}"


def latency(nanoseconds: float | None) -> str:
    """1 500 ns -> 1.5 µs; a dash if unknown."""
    if nanoseconds is None:
        return "–"
    if nanoseconds == LAST_BUCKET_NS:
        return BEYOND
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if nanoseconds >= factor:
            return f"{_three_digits(nanoseconds / factor)} {unit}"
    return f"{nanoseconds:.0f} ns"


def rate(per_second: float) -> str:
    """I/Os per second, rounded."""
    return f"{per_second:,.0f}"


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is left-aligned and the others right-aligned."""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
