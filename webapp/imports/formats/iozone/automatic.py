"""Automatic mode: a row for each file size and record size, and the reports of -R with one table for each test."""

import re

from webapp.imports.errors import ImportRefused
from webapp.imports.formats.iozone.phases import COLUMNS, Phase, columns, measured
from webapp.imports.formats.iozone.settings import Settings
from webapp.imports.measurement import Measurement
from webapp.imports.values import KIB, number, whole

_HEAD = re.compile(r"\s*kB\s+reclen\s+write\s+rewrite\b.*", re.IGNORECASE)
_REPORT = re.compile(r'\s*"?([A-Za-z][A-Za-z -]{2,30}) report"?\s*')
_BY_REPORT = {phase.report: phase for phase in COLUMNS}
_NAMES = tuple(phase.column.split()[-1] for phase in COLUMNS)  # the second line of the head
_QUOTED = re.compile(r'"(\d{1,15})"')


def sniff(head: str) -> bool:
    return any(_HEAD.fullmatch(line) or _title(line) for line in head.split("\n") if len(line) < 300)


def _title(line: str) -> str:
    """The name of a report's test, or ""."""
    title = _REPORT.fullmatch(line)
    return title[1].lower() if title and title[1].lower() in _BY_REPORT else ""


def parse(text_lines: list[str], stated: Settings) -> list[Measurement]:
    found: list[Measurement] = []
    names: list[str] = []
    for line in text_lines:
        cells = line.split()
        if _HEAD.fullmatch(line):
            names = line.lower().split()[2:]
        elif names and cells and cells[0].isdigit():
            found += _row(cells, names, stated)
        elif cells:
            names = []
    return found


def _phases(count: int, names: list[str], stated: Settings) -> tuple[Phase, ...]:
    """The tests of a row: all of its head, or those of `-i`, because iozone leaves the other columns empty."""
    if count == len(names) and tuple(names) == _NAMES[:count]:
        return COLUMNS[:count]
    phases = columns(stated.tests)
    if count != len(phases):
        raise ImportRefused(
            f"A row of iozone has {count} results, but {len(phases)} tests are expected. "
            "Keep iozone's line `Command line used`, which says which tests ran."
        )
    return phases


def _row(cells: list[str], names: list[str], stated: Settings) -> list[Measurement]:
    phases = _phases(len(cells) - 2, names, stated)
    sizes = {"size": whole(cells[0], "file size") * KIB, "block_size": whole(cells[1], "record size") * KIB}
    return [
        measured(phase, number(cell, phase.name), stated, sizes) for phase, cell in zip(phases, cells[2:], strict=True)
    ]


def parse_report(text_lines: list[str], stated: Settings) -> list[Measurement]:
    """Heads are quoted: record sizes above, file sizes in front."""
    found: list[Measurement] = []
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
                    found.append(measured(_BY_REPORT[title], value, stated, more))
    return found


def _kib(cell: str) -> int:
    return int(cell.strip('"')) * KIB
