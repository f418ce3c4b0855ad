"""bonnie++: CSV of 1.03, 1.96 to 2.00, and the text tables.

Units: K/sec is KiB/s, seeks are per second, latencies are the longest of each test with their unit; CPU is percent.
`+++++` means that the test was too short, so there is no measurement. `bonnie++ -f` skips the tests per character. The
size may be followed by the size of a chunk and more, `64G:4k::65536`. Source: bonnie++'s bon_time.cpp and
bon_csv2txt.cpp; the columns of the CSV formats are those of `bonnie++ -q` and of its README.
Tests of creating and deleting files are not imported.
"""

import io
import re
from collections.abc import Sequence

from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import GIB, KIB, MIB, MS, SECOND, US, ImportRefused, lines, number, size, sorted_factors
from worker.contract.items import Direction

TOOL = "bonnie++"
# name, direction, pattern: in the order of both the CSV and the text.
_TESTS = (
    ("Sequential output, per character", Direction.WRITE, "write"),
    ("Sequential output, block", Direction.WRITE, "write"),
    ("Sequential output, rewrite", Direction.WRITE, ""),
    ("Sequential input, per character", Direction.READ, "read"),
    ("Sequential input, block", Direction.READ, "read"),
    ("Random seeks", Direction.READ, ""),
)
_SEEKS = "Random seeks"
_CSV = re.compile(r"1\.9\d,[12]\.[\w.]{1,10},")
_OLD_CSV = re.compile(r"[^,\s]{1,100},\d{1,9}[MGmg],(\d{1,12}|\+{2,6}|),")
_TITLE = re.compile(r"Version\s+(\S{1,12})\s+-{2,8}Sequential Output-{2,8} --Sequential Input- --Random-")
_ROW = re.compile(r"(\S{1,100}) +(\d{1,9}[MG](?::[\w.]{0,20}){0,6}) +(.*)")
_CELL = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([kKmMgG]?)|\+{2,6}")
_LATENCY = re.compile(r"(\d{1,12})(us|ms|s)")
_RATES = {"": KIB, "k": KIB, "m": MIB, "g": GIB}
_TIMES = {"us": US, "ms": MS, "s": SECOND}
_NOTES = {
    "Sequential output, rewrite": ("Every block is read, changed and written.",),
    _SEEKS: ("One seek in ten also writes the block.",),
}


def sniff(head: str) -> bool:
    return any(_CSV.match(line) or _TITLE.match(line) or _is_old_csv(line) for line in io.StringIO(head))


def _is_old_csv(line: str) -> bool:
    return line.count(",") == 26 and bool(_OLD_CSV.match(line))


def parse(text: str) -> list[Measurement]:
    """The CSV lines if there are any, otherwise the tables. Raises ImportRefused."""
    text_lines = [line.strip() for line in lines(text)]
    measurements = [measured for line in text_lines for measured in _csv(line)] or _tables(text_lines)
    if not measurements:
        raise ImportRefused("There is no result of bonnie++ in this text, or all tests were too short (+++++).")
    return with_repeats(measurements)


def _csv(line: str) -> list[Measurement]:
    fields = line.split(",")
    if _is_old_csv(line):
        return _measured("1.03", fields[1], fields[2:14], [], "")
    if not _CSV.match(line):
        return []
    first = 9 if fields[0] >= "1.98" else 7  # 1.98 added two fields about seeks
    if len(fields) != {7: 48, 9: 50}[first]:
        raise ImportRefused(f"A CSV line of bonnie++ {fields[1]} has {len(fields)} fields: it is truncated or damaged.")
    return _measured(fields[1], fields[5], fields[first : first + 12], fields[-12:-6], fields[3])


def _tables(text_lines: Sequence[str]) -> list[Measurement]:
    """The text: a title with the version, two lines of heads, the row, and from 1.96 a line of latencies."""
    measurements: list[Measurement] = []
    version = ""
    for place, line in enumerate(text_lines):
        if title := _TITLE.match(line):
            version = title[1]
        elif version and (row := _ROW.fullmatch(line)):
            cells = row[3].split()
            if len(cells) not in (8, 12):
                raise ImportRefused(
                    f"A row of bonnie++ has {len(cells)} figures, not 12, or 8 with the option -f: it is truncated or "
                    "damaged."
                )
            after = text_lines[place + 1].split() if place + 1 < len(text_lines) else []
            latencies = after[1:7] if after[:1] == ["Latency"] else []
            if len(cells) == 8:
                cells, latencies = _with_skipped(cells, 2), _with_skipped(latencies, 1)
            measurements += _measured(version, row[2], cells, latencies, "")
            version = ""
    return measurements


def _with_skipped(cells: Sequence[str], width: int) -> list[str]:
    """With empty cells for the tests per character."""
    block_input = 2 * width  # after the two tests of block output
    return [*[""] * width, *cells[:block_input], *[""] * width, *cells[block_input:]]


def _measured(
    version: str, file_size: str, cells: Sequence[str], latencies: Sequence[str], concurrency: str
) -> list[Measurement]:
    measurements = []
    for place, (name, direction, pattern) in enumerate(_TESTS):
        rate = _rate(cells[2 * place], name)
        if rate is None:
            continue
        whole_size, chunk = size(file_size.partition(":")[0], "file size"), [*file_size.split(":"), ""][1]
        stated = {"size": whole_size} | ({"pattern": pattern} if pattern else {})
        factors, other = sorted_factors(stated)
        if concurrency not in ("", "1"):
            other["concurrency"] = concurrency[:20]
        if chunk:
            other["chunk size"] = chunk
        measurements.append(
            Measurement(
                tool=TOOL,
                tool_version=version,
                name=name,
                direction=direction,
                factors=factors,
                other=other,
                iops=rate if name == _SEEKS else None,
                bytes_per_s=None if name == _SEEKS else rate,
                latency=_latency(latencies[place]) if place < len(latencies) else Latency(),
                metrics=_cpu(cells[2 * place + 1]),
                notes=_NOTES.get(name, ()),
            )
        )
    return measurements


def _rate(cell: str, name: str) -> float | None:
    """Bytes per second, for seeks seeks per second. None if the test was too short or was not run."""
    if not cell:
        return None
    match = _CELL.fullmatch(cell)
    if match is None:
        raise ImportRefused(f"The figure `{cell[:40]}` of bonnie++ ({name}) is not understood.")
    if match[1] is None:
        return None
    return float(match[1]) * (1 if name == _SEEKS else _RATES[match[2].lower()])


def _cpu(cell: str) -> dict[str, float]:
    return {} if not cell or cell.startswith("+") else {"cpu_percent": number(cell, "CPU share")}


def _latency(cell: str) -> Latency:
    match = _LATENCY.fullmatch(cell)
    return Latency(max_ns=float(match[1]) * _TIMES[match[2]]) if match else Latency()
