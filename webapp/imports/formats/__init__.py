"""The formats of results that can be imported: one module each, recognised by content.

A format has `sniff(head)`, which is true if the first 64 KiB of a file look like it, and `parse(text)`, which returns
its measurements or raises ImportRefused. Specific formats come first. Logs of fio are not in this list, because one of
them is not a result: see `fio_log`.
"""

from collections.abc import Mapping
from typing import Protocol, cast

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
    "plain-csv": plain_csv,
}
FORMATS: Mapping[str, Format] = {name: cast("Format", module) for name, module in _MODULES.items()}


def recognised(text: str) -> str:
    """The name of the first format that recognises a file, or ""."""
    head = text[:HEAD_CHARACTERS]
    return next((name for name, one in FORMATS.items() if one.sniff(head)), "")


def parse(text: str) -> list[Measurement]:
    """The measurements of a file of any format. Raises ImportRefused."""
    name = recognised(text)
    if not name:
        raise ImportRefused("The format of this file is not known.")
    return FORMATS[name].parse(text)
