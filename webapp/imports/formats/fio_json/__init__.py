"""fio's JSON output: fio 2.0 to 3.4x, json and json+.

Units: `bw` KiB/s, `bw_bytes` bytes/s, `io_bytes` KiB in 2.x and bytes in 3.x; latencies µs in 2.x and ns in 3.x.
Source: fio's stat.c of these versions (add_ddir_status_json).
"""

from webapp.imports.formats.fio_json.combine import measurements
from webapp.imports.formats.fio_json.runs import find
from webapp.imports.measurement import Measurement, with_repeats

TOOL = "fio"


def sniff(head: str) -> bool:
    return '"fio version"' in head and "{" in head


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    return with_repeats(measurements(find(text)))
