"""hdparm -t and -T, with or without --direct.

Units: MB is 2^20 bytes and kB is 2^10 (hdparm.c, time_device and time_cache: TIMING_BUF_MB * 1024 * 1024).
The rate is the printed one. `-T` measures memory, not the drive; its name here is "cached reads".
"""

import re

from webapp.imports.measurement import Measurement, with_repeats
from webapp.imports.values import KIB, MIB, ImportRefused, lines, number, sorted_factors
from worker.contract.items import Direction

TOOL = "hdparm"
_TIMING = re.compile(
    r"\s*Timing (O_DIRECT )?(cached|buffered|buffer-cache|disk|O_DIRECT)( disk)? (reads|sequential reads):?\s*"
    r"([\d.]{1,20}) MB in\s+([\d.]{1,20}) seconds =\s*([\d.]{1,20}) (MB|kB)/sec\s*"
)
_DEVICE = re.compile(r"(/dev/\S{1,200}):\s*")
_CACHED = "This measures memory, not the drive."
_CACHED_DIRECT = "This measures the drive's own cache."
_UNITS = {"MB": MIB, "kB": KIB}


def sniff(head: str) -> bool:
    return bool(re.search(r"^[ \t]*Timing [^\n]{1,60} reads:", head, re.MULTILINE))


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements: list[Measurement] = []
    device = ""
    for line in lines(text):
        if named := _DEVICE.fullmatch(line.strip()):
            device = named[1]
        elif timing := _TIMING.fullmatch(line):
            measurements.append(_measured(device, timing))
        elif line.lstrip().startswith("Timing "):
            raise ImportRefused(f"This line of hdparm is not understood or truncated: `{line.strip()[:80]}`.")
    if not measurements:
        raise ImportRefused("There is no line of hdparm with a rate in this text.")
    return with_repeats(measurements)


def _measured(device: str, timing: re.Match[str]) -> Measurement:
    direct = "O_DIRECT" in timing[0]
    cached = timing[2] in ("cached", "buffer-cache")
    factors, other = sorted_factors({"pattern": "read", "direct": direct, "iodepth": 1, "numjobs": 1})
    return Measurement(
        tool=TOOL,
        name="cached reads" if cached else "disk reads",
        direction=Direction.READ,
        factors=factors,
        other=other | ({"device": device} if device else {}),
        bytes_per_s=number(timing[7], "rate") * _UNITS[timing[8]],
        runtime_ms=round(number(timing[6], "time") * 1000),
        notes=(_CACHED_DIRECT if direct else _CACHED,) if cached else (),
    )
