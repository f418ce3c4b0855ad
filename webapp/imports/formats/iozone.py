"""iozone: throughput mode (-t), automatic mode, the Excel report (-R) of both, and lists of phases with kB/s.

Units: kB and KB are 1,024 bytes (iozone.c divides by 1024); with -O the values are operations per second.
The value of throughput mode is "Children see throughput", the sum of the children's own rates, as in iozone's report.
"""

import re
from collections.abc import Mapping

import msgspec

from webapp.imports.measurement import Measurement, with_repeats
from webapp.imports.values import KIB, ImportRefused, lines, number, size, sorted_factors, whole
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "iozone"


def sniff(head: str) -> bool:
    return _is_of_children(head) or _is_report(head)


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements = [measured for run in _runs(lines(text)) for measured in _measurements(run)]
    if not measurements:
        raise ImportRefused("There is no result of iozone in this text. It may be truncated.")
    return with_repeats(measurements)


def _measurements(text_lines: list[str]) -> list[Measurement]:
    """The first form that has results: the reports of -R repeat those of the others."""
    stated = _settings(text_lines)
    for form in (_of_children, _of_table, _of_list, _of_report):
        if measurements := form(text_lines, stated):
            return measurements
    return []


# What iozone prints about a run before its results.

_RECORD = re.compile(r'"?Record [Ss]ize\s*=?\s*(\d{1,12}) k(?:B|Bytes) ?"?\s*', re.IGNORECASE)
_FILE = re.compile(r"File size set to (\d{1,15}) KB", re.IGNORECASE)
_PROCESSES = re.compile(r"Throughput test with (\d{1,6}) (?:process(?:es)?|threads?)")
_VERSION = re.compile(r".*Version \$Revision: ([\d.]{1,12}) \$")
_TESTS = re.compile(r"\s-i\s*(\d{1,2})\b")
_COMMAND = re.compile(r"(?:Command line used:\s*)?(\S{0,200}iozone\s+-.{1,2000})")
_TITLE = "Iozone: Performance Test of File I/O"
_SHELL = re.compile(r"(?:\S{0,100}[$#] )?\S{0,200}iozone\s+-.{1,2000}")
_OPTION = re.compile(r"\s-([rst])\s*(\d{1,12}[kmg]?)\b", re.IGNORECASE)
_FLAGS = {"O_DIRECT feature enabled": ("direct", True), "Include fsync in write timing": ("end_fsync", True)}


class _Settings(msgspec.Struct, kw_only=True):
    version: str = ""
    factors: dict[str, Value] = {}
    command: str = ""
    tests: tuple[int, ...] = ()  # of `-i`
    operations: bool = False  # -O: results are operations per second

    def described(self, more: dict[str, Value]) -> tuple[dict[str, Value], dict[str, str]]:
        factors, other = sorted_factors(self.factors | more)
        return factors, other | ({"command": self.command} if self.command else {})


def _runs(text_lines: list[str]) -> list[list[str]]:
    """The lines of each run. A run begins with iozone's title or with a command of the shell."""
    lines_of_runs: list[list[str]] = [[]]
    for line in text_lines:
        if _TITLE in line or _SHELL.fullmatch(line.strip()):
            lines_of_runs.append([])
        lines_of_runs[-1].append(line)
    return lines_of_runs


def _settings(text_lines: list[str]) -> _Settings:
    """Raises ImportRefused for a unit that is not imported."""
    run_settings = _Settings()
    for line in map(str.strip, text_lines):
        if record := _RECORD.fullmatch(line):
            run_settings.factors["block_size"] = whole(record[1]) * KIB
        elif file_size := _FILE.fullmatch(line):
            run_settings.factors["size"] = whole(file_size[1]) * KIB
        elif processes := _PROCESSES.fullmatch(line):
            run_settings.factors["numjobs"] = whole(processes[1])
        elif version := _VERSION.fullmatch(line):
            run_settings.version = version[1]
        elif (command := _COMMAND.fullmatch(line)) and not run_settings.command:
            run_settings.command = command[1][:500]
            run_settings.tests = tuple(int(test) for test in _TESTS.findall(command[1]))
            run_settings.factors = _of_command(command[1]) | run_settings.factors
        elif line in _FLAGS:
            name, value = _FLAGS[line]
            run_settings.factors[name] = value
        elif line.startswith("OPS Mode"):
            run_settings.operations = True
        elif line.startswith("Microseconds/op Mode"):
            raise ImportRefused("These results are in microseconds per operation (iozone -N). They are not imported.")
    return run_settings


def _of_command(command: str) -> dict[str, Value]:
    """Record size, file size and threads, if each is given once. Without a unit, sizes are in KiB (iozone -h)."""
    names = {"r": "block_size", "s": "size", "t": "numjobs"}
    given: dict[str, list[str]] = {}
    for option, value in _OPTION.findall(command):
        given.setdefault(option, []).append(value)
    stated: dict[str, Value] = {}
    for option, values in given.items():
        if len(values) == 1 and option in names:
            plain = values[0][-1].isdigit() and option != "t"
            stated[names[option]] = size(f"{values[0]}k" if plain else values[0], "option")
    return stated


# iozone's tests: what each does, by every name that iozone gives it.


class _Phase(msgspec.Struct, frozen=True):
    name: str
    direction: Direction | None  # None: readers and writers side by side
    pattern: str  # "" if no factor has it
    children: str  # throughput mode
    label: str  # list of phases
    column: str  # automatic mode
    report: str  # Excel report of automatic mode


_R, _W = Direction.READ, Direction.WRITE
_PHASES = (
    _Phase("Initial write", _W, "write", "initial writers", "initial write", "write", "writer"),
    _Phase("Rewrite", _W, "write", "rewriters", "rewrite", "rewrite", "re-writer"),
    _Phase("Read", _R, "read", "readers", "read", "read", "reader"),
    _Phase("Re-read", _R, "read", "re-readers", "re-read", "reread", "re-reader"),
    _Phase("Random read", _R, "randread", "random readers", "random read", "random read", "random read"),
    _Phase("Random write", _W, "randwrite", "random writers", "random write", "random write", "random write"),
    _Phase("Reverse read", _R, "", "reverse readers", "reverse read", "bkwd read", "backward read"),
    _Phase("Record rewrite", _W, "", "record rewriters", "record rewrite", "record rewrite", "record rewrite"),
    _Phase("Stride read", _R, "", "stride readers", "stride read", "stride read", "stride read"),
    _Phase("Fwrite", _W, "write", "fwriters", "fwrite", "fwrite", "fwrite"),
    _Phase("Re-fwrite", _W, "write", "refwriters", "re-fwrite", "frewrite", "re-fwrite"),
    _Phase("Fread", _R, "read", "freaders", "fread", "fread", "fread"),
    _Phase("Re-fread", _R, "read", "refreaders", "re-fread", "freread", "re-fread"),
    _Phase("Mixed workload", None, "", "mixed workload", "mixed workload", "", ""),
    _Phase("Pwrite", _W, "write", "pwrite writers", "pwrite", "", ""),
    _Phase("Pread", _R, "read", "pread readers", "pread", "", ""),
)
# The _columns of the automatic mode's table in their order, and those that each number of `-i` fills.
_COLUMNS = tuple(phase for phase in _PHASES if phase.column)
_COLUMNS_OF_TEST = ((0, 1), (2, 3), (4, 5), (6,), (7,), (8,), (9, 10), (11, 12))


def _columns(tests: tuple[int, ...]) -> tuple[_Phase, ...]:
    """The filled _columns of the automatic mode's table; without `-i` all of them."""
    filled = {place for test in tests if test < len(_COLUMNS_OF_TEST) for place in _COLUMNS_OF_TEST[test]}
    return tuple(phase for place, phase in enumerate(_COLUMNS) if not tests or place in filled)


def _measured(phase: _Phase, value: float, stated: _Settings, more: Mapping[str, Value]) -> Measurement:
    """`value` is in KiB/s, with -O in operations per second."""
    pattern: dict[str, Value] = {"pattern": phase.pattern} if phase.pattern else {}
    factors, other = stated.described(pattern | dict(more))
    return Measurement(
        tool="iozone",
        tool_version=stated.version,
        name=phase.name,
        direction=phase.direction,
        factors=factors,
        other=other,
        iops=value if stated.operations else None,
        bytes_per_s=None if stated.operations else value * KIB,
    )


# Throughput mode: a block of lines for each phase, the report of -R, and lists such as `Rewrite  254075.39 kB/s`.

_CHILDREN = re.compile(r"\s*Children see throughput for\s+(\d{1,6}) (\D{1,30}?)\s*=\s*(\S{1,40}) (?:kB|KB|ops)/sec\s*")
_TOTAL = re.compile(r'\s*"\s*([A-Za-z][A-Za-z -]{2,30}?) ?"\s+(\S{1,40})\s*')
_LIST = re.compile(r"\s*([A-Za-z][A-Za-z -]{2,30}?):?\s+(\S{1,40}) k[Bb]/s(?:ec)?\s*")
_BY_CHILDREN = {phase.children: phase for phase in _PHASES}
_BY_LABEL = {phase.label: phase for phase in _PHASES}


def _is_of_children(head: str) -> bool:
    return "Children see throughput" in head or any(_list_item(line) for line in head.split("\n") if len(line) < 200)


def _list_item(line: str) -> re.Match[str] | None:
    for pattern in (_TOTAL, _LIST):
        if (item := pattern.fullmatch(line)) and item[1].lower() in _BY_LABEL:
            return item
    return None


def _of_children(text_lines: list[str], stated: _Settings) -> list[Measurement]:
    measurements = []
    for line in text_lines:
        block = _CHILDREN.fullmatch(line)
        phase = _BY_CHILDREN.get(block[2]) if block else None
        if block and phase:
            value = number(block[3], "throughput")
            measurements.append(_measured(phase, value, stated, {"numjobs": int(block[1])}))
    return measurements


def _of_list(text_lines: list[str], stated: _Settings) -> list[Measurement]:
    items = [item for line in text_lines if (item := _list_item(line))]
    return [_measured(_BY_LABEL[item[1].lower()], number(item[2], "throughput"), stated, {}) for item in items]


# Automatic mode: a row for each file size and record size, and the reports of -R with one table for each test.

_HEAD = re.compile(r"\s*kB\s+reclen\s+write\s+rewrite\b.*", re.IGNORECASE)
_REPORT = re.compile(r'\s*"?([A-Za-z][A-Za-z -]{2,30}) report"?\s*')
_BY_REPORT = {phase.report: phase for phase in _COLUMNS}
_NAMES = tuple(phase.column.split()[-1] for phase in _COLUMNS)  # the second line of the head
_QUOTED = re.compile(r'"(\d{1,15})"')


def _is_report(head: str) -> bool:
    return any(_HEAD.fullmatch(line) or _title(line) for line in head.split("\n") if len(line) < 300)


def _title(line: str) -> str:
    """The name of a report's test, or ""."""
    title = _REPORT.fullmatch(line)
    return title[1].lower() if title and title[1].lower() in _BY_REPORT else ""


def _of_table(text_lines: list[str], stated: _Settings) -> list[Measurement]:
    measurements: list[Measurement] = []
    names: list[str] = []
    for line in text_lines:
        cells = line.split()
        if _HEAD.fullmatch(line):
            names = line.lower().split()[2:]
        elif names and cells and cells[0].isdigit():
            measurements += _row(cells, names, stated)
        elif cells:
            names = []
    return measurements


def _phases(count: int, names: list[str], stated: _Settings) -> tuple[_Phase, ...]:
    """The tests of a row: all of its head, or those of `-i`, because iozone leaves the other _columns empty."""
    if count == len(names) and tuple(names) == _NAMES[:count]:
        return _COLUMNS[:count]
    phases = _columns(stated.tests)
    if count != len(phases):
        raise ImportRefused(
            f"A row of iozone has {count} results, but {len(phases)} tests are expected. "
            "Keep iozone's line `Command line used`, which says which tests ran."
        )
    return phases


def _row(cells: list[str], names: list[str], stated: _Settings) -> list[Measurement]:
    phases = _phases(len(cells) - 2, names, stated)
    sizes = {"size": whole(cells[0], "file size") * KIB, "block_size": whole(cells[1], "record size") * KIB}
    return [
        _measured(phase, number(cell, phase.name), stated, sizes) for phase, cell in zip(phases, cells[2:], strict=True)
    ]


def _of_report(text_lines: list[str], stated: _Settings) -> list[Measurement]:
    """Heads are quoted: record sizes above, file sizes in front."""
    measurements: list[Measurement] = []
    title = ""
    records: list[int] = []
    for line in text_lines:
        cells = line.split()
        if name := _title(line):
            title, records = name, []
        elif title and cells and not records and all(_QUOTED.fullmatch(cell) for cell in cells):
            records = [_kib(cell) for cell in cells]
        elif title and records and cells and _QUOTED.fullmatch(cells[0]):
            if len(cells) - 1 > len(records):
                raise ImportRefused("A row of iozone's report has more results than its head: it is damaged.")
            for record, cell in zip(records, cells[1:], strict=False):
                value = number(cell, "result")
                if value:  # a record larger than the file has 0
                    more = {"size": _kib(cells[0]), "block_size": record}
                    measurements.append(_measured(_BY_REPORT[title], value, stated, more))
    return measurements


def _kib(cell: str) -> int:
    return int(cell.strip('"')) * KIB
