"""The formats of results that can be imported: one module each, recognised by content.

A format has `sniff(head)`, which is true if the first 64 KiB of a file look like it, and `parse(text)`, which returns
its measurements or raises ImportRefused. Specific formats come first. Logs of fio are not in this list, because one of
them is not a result: see `fio_log`.
"""

from collections.abc import Mapping
from typing import Protocol, cast

import msgspec

from webapp.imports.errors import ImportRefused
from webapp.imports.formats import (
    bm_flash,
    bonnie,
    dd,
    elbencho,
    ezfio,
    fio_json,
    fio_terse,
    hdparm,
    iometer,
    iozone,
    plain_csv,
    sysbench_fileio,
    vdbench,
    xdd,
)
from webapp.imports.measurement import Measurement

HEAD_CHARACTERS = 64 * 1024
PLAIN_CSV = "plain-csv"
NO_COLUMNS: Mapping[str, str] = {}


NO_END = "The last line of the file has no line end. If the file is cut off, the last value may be too small."
_CUT_IS_REFUSED = ("fio-json", "dd", "hdparm")  # text follows their last value


class Format(Protocol):
    TOOL: str

    def sniff(self, head: str) -> bool: ...

    def parse(self, text: str) -> list[Measurement]: ...


_MODULES = {
    "fio-json": fio_json,
    "ezfio": ezfio,
    "fio-terse": fio_terse,
    "elbencho": elbencho,
    "iometer": iometer,
    "vdbench": vdbench,
    "sysbench-fileio": sysbench_fileio,
    "bonnie": bonnie,
    "bm-flash": bm_flash,
    "xdd": xdd,
    "iozone": iozone,
    "hdparm": hdparm,
    "dd": dd,
    PLAIN_CSV: plain_csv,
}
FORMATS: Mapping[str, Format] = {name: cast("Format", module) for name, module in _MODULES.items()}


def recognised(text: str, columns: Mapping[str, str] = NO_COLUMNS) -> str:
    """The name of the first format that recognises a file, or "". `columns` are the fields of plain CSV by column."""
    head = text[:HEAD_CHARACTERS]
    found = next((name for name, one in FORMATS.items() if one.sniff(head)), "")
    return found or (PLAIN_CSV if plain_csv.sniff(head, columns) else "")


def parse(text: str, columns: Mapping[str, str] = NO_COLUMNS) -> tuple[str, list[Measurement]]:
    """The name of the format of a file and its measurements. Raises ImportRefused."""
    name = recognised(text, columns)
    if not name:
        problem = plain_csv.problem_of(text[:HEAD_CHARACTERS], columns)
        raise ImportRefused(problem or "The format of this file is not known.")
    try:
        found = plain_csv.parse(text, columns) if name == PLAIN_CSV else FORMATS[name].parse(text)
    except OverflowError as error:
        raise ImportRefused("A number in this file is too large.") from error
    if not text.endswith("\n") and name not in _CUT_IS_REFUSED:
        found[-1] = msgspec.structs.replace(found[-1], notes=(*found[-1].notes, NO_END))
    return name, found
