"""CrystalDiskMark 6 to 8 and KDiskMark: the text that they copy or save.

Units: CrystalDiskMark's MB/s is 10^6 bytes/s. KDiskMark says so too, but divides fio's KiB/s by 1,000: its MB/s is
1,024,000 bytes/s (its figures of 1.6 and 3.2: IOPS x block size / rate). Version 6 does not state the block size of its
sequential tests. A time in `< … us>` is the mean latency. Q is the queue depth of each thread.
"""

import re
from collections.abc import Mapping

import msgspec

from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import MEGABYTE, US, ImportRefused, lines, number, size, sorted_factors, whole
from webapp.plans.values import Value
from worker.contract.items import Direction

TOOL = "CrystalDiskMark"
_KDISKMARK = "KDiskMark"
_UNITS = {TOOL: MEGABYTE, _KDISKMARK: 1024 * 1000}
_HEAD = re.compile(r"(CrystalDiskMark|KDiskMark) \(?(\d[\d.]{0,12})")
_SECTION = re.compile(r"\[(Read|Write|Mix)\](?: Read (\d{1,3})%)?")
_ROW = re.compile(
    r"(Sequential|Random|SEQ|RND) {0,9}(?:(Read|Write) {0,9})?(?:(\d{1,6} ?[KM]i?B) {0,9})?"
    r"\(Q= {0,3}(\d{1,4}), ?T= {0,3}(\d{1,4})\) ?: {0,12}([\d.]{1,12}) MB/s"
    r"(?: \[ {0,12}([\d.]{1,12}) IOPS\])?(?: < {0,12}([\d.]{1,12}) us>)?"
)
_TEST = re.compile(r"Test ?: (\d{1,6} ?[KMG]iB)")


def sniff(head: str) -> bool:
    return bool(_HEAD.search(head)) and "MB/s" in head and "(Q=" in head


def parse(text: str) -> list[Measurement]:
    """Raises ImportRefused."""
    measurements: list[Measurement] = []
    tool, version, section, share = TOOL, "", "", None
    for line in lines(text):
        if head := _HEAD.search(line):
            tool, version, section, share = head[1], head[2], "", None
        elif part := _SECTION.search(line):
            section, share = part[1], int(part[2]) if part[2] else None
        elif "(Q=" in line and (row := _ROW.search(line)):
            measurements.append(_measured(tool, version, section or row[2] or "", share, row))
        elif (test := _TEST.search(line)) and measurements:
            measurements = [_with_size(measurement, size(test[1], "size of the test")) for measurement in measurements]
    if not measurements:
        raise ImportRefused("There is no row of CrystalDiskMark or KDiskMark in this text.")
    return with_repeats(measurements)


def _measured(tool: str, version: str, section: str, share: int | None, row: re.Match[str]) -> Measurement:
    if not section:
        raise ImportRefused("A row of CrystalDiskMark does not say whether it read or wrote: its text is cut off.")
    random = row[1] in ("Random", "RND")
    patterns = {"Read": "read", "Write": "write", "Mix": "rw" if random else "readwrite"}
    stated: dict[str, Value] = {"pattern": ("rand" if random else "") + patterns[section]}
    stated |= {"iodepth": whole(row[4]), "numjobs": whole(row[5])}
    if row[3]:
        stated["block_size"] = size(row[3], "block size")
    if section == "Mix" and share is not None:
        stated["read_percent"] = share
    factors, other = sorted_factors(stated)
    return Measurement(
        tool=tool,
        tool_version=version.rstrip("."),
        name=f"{'Random' if random else 'Sequential'} {section.lower()}",
        direction={"Read": Direction.READ, "Write": Direction.WRITE}.get(section),
        factors=factors,
        other=other,
        iops=number(row[7], "IOPS") if row[7] else None,
        bytes_per_s=number(row[6], "rate") * _UNITS[tool],
        latency=_latency(row[8]),
    )


def _latency(text: str | None) -> Latency:
    mean = number(text, "latency") * US if text else None
    return Latency(mean_ns=mean, step_ns=mean.step if mean is not None else 0)


def _with_size(measurement: Measurement, test_size: int) -> Measurement:
    factors: Mapping[str, Value] = {"size": test_size, **measurement.factors}
    return measurement if "size" in measurement.factors else msgspec.structs.replace(measurement, factors=factors)
