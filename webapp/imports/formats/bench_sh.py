"""bench.sh: its three writes with dd, `I/O Speed(1st run) : 652 MB/s`.

Units: those of GNU dd, MB is 10^6 bytes. The script writes zeros into a new file with conv=fdatasync; the block size
differs between its versions (64 KiB, 512 KiB) and is not printed.
"""

import re

from webapp.imports.measurement import Measurement, with_repeats
from webapp.imports.values import ImportRefused, lines, number, sorted_factors
from worker.contract.items import Direction

TOOL = "bench.sh"
_RUN = re.compile(r"I/O [Ss]peed ?\((?:1st|2nd|3rd) run\) {0,20}: {1,9}([\d.]{1,12}) ([kMG])B/s")
_UNITS = {"k": 1e3, "M": 1e6, "G": 1e9}


def sniff(head: str) -> bool:
    return "(1st run)" in head and bool(_RUN.search(head))


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    factors, other = sorted_factors({"pattern": "write", "end_fsync": True, "iodepth": 1, "numjobs": 1})
    measurements = [
        Measurement(
            tool=TOOL,
            name="I/O speed",
            direction=Direction.WRITE,
            factors=factors,
            other=other,
            bytes_per_s=number(run[1], "speed") * _UNITS[run[2]],
        )
        for line in lines(text)
        if "run)" in line and (run := _RUN.search(line))
    ]
    if not measurements:
        raise ImportRefused("bench.sh printed no speed in MB/s.")
    return with_repeats(measurements)
