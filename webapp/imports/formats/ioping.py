"""ioping: the statistics at its end.

Units: KiB, MiB are powers of 1,024, `k` is 1,000; each time has its unit. IOPS and rate are those of the time that the
requests took, without the pauses between them (ioping.c, dump_statistics). ioping has one request at a time. Versions
before 0.9 do not print whether they read or wrote; they are not imported.
"""

import re

from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import KIB, MS, SECOND, US, ImportRefused, Printed, lines, number, sorted_factors
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "ioping"
_TITLE = re.compile(r"--- (.{1,300}) ioping statistics ---")
_REQUEST = re.compile(r"([\d.]{1,9}) ([KMG]i)?B (?:<<<|>>>|from|to) ")
_DONE = re.compile(
    r"([\d.]{1,12})( [kMG])? requests completed in [\d.]{1,12} \w{1,4}, [\d.]{1,12} (?:[KMGT]i)?B (read|written), "
    r"([\d.]{1,12})( [kMG])? iops, ([\d.]{1,12}) ([KMGT]i)?B/s"
)
_TIME = r"([\d.]{1,12}) (ns|us|ms|s)"
_LATENCY = re.compile(rf"min/avg/max/mdev = {_TIME} / {_TIME} / {_TIME} / {_TIME}")
_THOUSANDS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
_BINARY = {"": 1.0, "Ki": float(KIB), "Mi": float(KIB**2), "Gi": float(KIB**3), "Ti": float(KIB**4)}
_TIMES = {"ns": 1.0, "us": US, "ms": MS, "s": SECOND}
_NOTE = "The rates are those of the time that the requests took, without the pauses between them."


def sniff(head: str) -> bool:
    return "ioping statistics ---" in head


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements: list[Measurement] = []
    target, block, done = "", None, None
    for line in lines(text):
        if request := _REQUEST.match(line.lstrip("> ")):
            block = number(request[1], "size") * _BINARY[request[2] or ""]
        elif title := _TITLE.search(line):
            target, done = title[1], None
        elif result := _DONE.search(line):
            done = result
        elif done is not None and (latency := _LATENCY.search(line)):
            measurements.append(_measured(target, block, done, latency))
            block, done = None, None
    if not measurements:
        raise ImportRefused(
            "ioping's statistics are cut off, or of a version before 0.9, which does not print whether it read or "
            "wrote. Use a newer version."
        )
    return with_repeats(measurements)


def _measured(target: str, block: Printed | None, done: re.Match[str], latency: re.Match[str]) -> Measurement:
    direction = Direction.READ if done[3] == "read" else Direction.WRITE
    stated: dict[str, Value] = {"iodepth": 1, "numjobs": 1}
    if block is not None:
        stated["block_size"] = round(block)
    factors, other = sorted_factors(stated)
    low, mean, high, deviation = (
        number(latency[place], "latency") * _TIMES[latency[place + 1]] for place in (1, 3, 5, 7)
    )
    return Measurement(
        tool=TOOL,
        name=str(direction),
        direction=direction,
        factors=factors,
        other=other | {"target": target},
        iops=number(done[4], "IOPS") * _THOUSANDS[(done[5] or "").strip()],
        bytes_per_s=number(done[6], "rate") * _BINARY[done[7] or ""],
        ios=None if done[2] else round(number(done[1], "requests")),
        latency=Latency(min_ns=low, mean_ns=mean, max_ns=high, stddev_ns=deviation, step_ns=mean.step),
        notes=(_NOTE,),
    )
