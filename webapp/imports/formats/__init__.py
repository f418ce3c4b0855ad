"""The formats of results that can be imported: one module each, recognised by content.

A format has `sniff(head)`, which is true if the first 64 KiB of a file look like it, and `parse(text)`, which returns
its measurements or raises ImportRefused. Specific formats come first. Logs of fio are not in this list, because one of
them is not a result: see `fio_log`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, cast

import msgspec

from webapp.imports.formats import (
    bench_sh,
    bm_flash,
    bonnie,
    dd,
    disk_mark,
    diskspd,
    diskspd_xml,
    elbencho,
    elbencho_text,
    ezfio,
    fio_json,
    fio_terse,
    fio_text,
    hdparm,
    iometer,
    ioping,
    ior,
    iozone,
    kbench,
    pgbench,
    plain_csv,
    rados,
    sysbench_fileio,
    unread,
    vdbench,
    xdd,
    yabs,
)
from webapp.imports.measurement import Measurement
from webapp.imports.values import ImportRefused

HEAD_CHARACTERS = 64 * 1024
PLAIN_CSV = "plain-csv"
NO_COLUMNS: Mapping[str, str] = {}


NO_END = "The last line of the file has no line end. If the file is cut off, the last value may be too small."
_CUT_IS_REFUSED = ("fio-json", "fio-text", "diskspd-xml", "dd", "hdparm")  # text follows their last value
_OF_FIO = ("fio-json", "fio-text", "fio-terse")  # those that say more first
_COLOURS = re.compile(r"\x1b(?:\[[0-9;?]{0,20}[A-Za-z]|\([AB0])")  # of terminals
_MOST_NAME = 40
LOG_CHARACTERS = 8 * 1024 * 1024  # of a log whose whole text is searched for outputs of tools


class Parsed(NamedTuple):
    format: str  # of FORMATS, or several: `hdparm + dd`
    measured: list[Measurement]
    notes: tuple[str, ...] = ()  # what was not read


class Format(Protocol):
    TOOL: str

    def sniff(self, head: str) -> bool: ...

    def parse(self, text: str) -> list[Measurement]: ...


_MODULES = {
    "fio-json": fio_json,
    "ezfio": ezfio,
    "fio-terse": fio_terse,
    "fio-text": fio_text,
    "elbencho": elbencho,
    "elbencho-text": elbencho_text,
    "iometer": iometer,
    "vdbench": vdbench,
    "sysbench-fileio": sysbench_fileio,
    "bonnie": bonnie,
    "bm-flash": bm_flash,
    "disk-mark": disk_mark,
    "yabs": yabs,
    "bench-sh": bench_sh,
    "ioping": ioping,
    "diskspd": diskspd,
    "diskspd-xml": diskspd_xml,
    "pgbench": pgbench,
    "rados": rados,
    "kbench": kbench,
    "ior": ior,
    "xdd": xdd,
    "iozone": iozone,
    "hdparm": hdparm,
    "dd": dd,
    PLAIN_CSV: plain_csv,
}
# Outputs that stand in a log beside those of other tools. All others are a whole file.
_IN_LOGS = (
    "fio-json", "fio-terse", "fio-text", "sysbench-fileio", "bonnie", "bm-flash", "disk-mark", "yabs", "bench-sh",
    "ioping", "diskspd", "pgbench", "rados", "kbench", "ior", "elbencho-text", "iozone", "hdparm", "dd",
)  # fmt: skip
FORMATS: Mapping[str, Format] = {name: cast("Format", module) for name, module in _MODULES.items()}


def recognised(text: str, columns: Mapping[str, str] = NO_COLUMNS) -> str:
    """The name of the first format that recognises a file, or "". `columns` are the fields of plain CSV by column."""
    name = next(_recognised(text[:HEAD_CHARACTERS]), "")
    return name or (PLAIN_CSV if plain_csv.sniff(text[:HEAD_CHARACTERS], columns) else "")


def _recognised(text: str) -> Iterator[str]:
    return (name for name, format_ in FORMATS.items() if format_.sniff(text))


def parse(text: str, columns: Mapping[str, str] = NO_COLUMNS) -> Parsed:
    """The measurements of a file, which may have the outputs of several tools. Raises ImportRefused if nothing can be
    read."""
    text = _COLOURS.sub("", text) if "\x1b" in text else text
    name = recognised(text, columns)
    is_json = name == "fio-json" and text.lstrip().startswith("{") and text.rstrip().endswith("}")
    if not is_json and (not name or name in _IN_LOGS):  # JSON alone is most of what large imports have
        whole = text if len(text) <= LOG_CHARACTERS else text[:HEAD_CHARACTERS]
        names = [log_name for log_name in _recognised(whole) if log_name in _IN_LOGS]
        if names:
            return _of_log(text, names)
    if not name:
        head = text[:HEAD_CHARACTERS]
        tools = sorted({format_.TOOL for known, format_ in FORMATS.items() if known != PLAIN_CSV}, key=str.lower)
        raise ImportRefused(plain_csv.problem_of(head, columns) or unread.problem_of(head, tools))
    return Parsed(name, _with_note_of_end(name, _parsed(name, text, columns), text))


def _of_log(text: str, names: Sequence[str]) -> Parsed:
    """The outputs of all tools in a text. Raises ImportRefused if none of them can be read."""
    measurements: dict[str, list[Measurement]] = {}
    refused: dict[str, ImportRefused] = {}
    for name in names:
        try:
            measurements[name] = _parsed(name, text)
        except ImportRefused as refusal:
            refused[name] = refusal
    if not measurements:
        raise refused[names[0]]
    measured = _without_copies(measurements)
    last = list(measured)[-1]
    measured[last] = _with_note_of_end(last, measured[last], text) if len(names) == 1 else measured[last]
    notes = [f"Not read: {FORMATS[name].TOOL}. {refusal.message}" for name, refusal in refused.items()]
    notes += [f"Not read: {tool}." for tool in unread.tools_in(text[:LOG_CHARACTERS])]
    together = " + ".join(measured)
    return Parsed(
        together if len(together) <= _MOST_NAME else f"{next(iter(measured))} + others",
        [measurement for part in measured.values() for measurement in part],
        tuple(notes),
    )


def _parsed(name: str, text: str, columns: Mapping[str, str] = NO_COLUMNS) -> list[Measurement]:
    try:
        return plain_csv.parse(text, columns) if name == PLAIN_CSV else FORMATS[name].parse(text)
    except OverflowError as error:
        raise ImportRefused("A number in this file is too large.") from error


def _without_copies(measurements_by_format: Mapping[str, list[Measurement]]) -> dict[str, list[Measurement]]:
    """fio prints a result in several formats with `--output-format=normal,json`: the first one counts."""
    seen: set[object] = set()
    without_copies: dict[str, list[Measurement]] = {}
    for name in sorted(
        measurements_by_format, key=lambda name: _OF_FIO.index(name) if name in _OF_FIO else len(_OF_FIO)
    ):
        new = [
            measurement
            for measurement in measurements_by_format[name]
            if name not in _OF_FIO or _result(measurement) not in seen
        ]
        seen |= {_result(measurement) for measurement in measurements_by_format[name] if name in _OF_FIO}
        without_copies |= {name: new} if new else {}
    return without_copies


def _result(measurement: Measurement) -> object:
    return measurement.name, measurement.direction, measurement.runtime_ms


def _with_note_of_end(name: str, measured: list[Measurement], text: str) -> list[Measurement]:
    if text.endswith("\n") or name in _CUT_IS_REFUSED:
        return measured
    last = measured[-1]
    return [*measured[:-1], msgspec.structs.replace(last, notes=(*last.notes, NO_END))]
