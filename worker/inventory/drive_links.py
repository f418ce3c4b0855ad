"""The SATA or SAS link of a drive, if the kernel shows it. It does not behind a RAID controller.

Kernel: ata_link's sata_spd (`6.0 Gbps`), sas_phy's negotiated_linkrate (`12.0 Gbit`); a wide port has several phys.
"""

import re
from pathlib import Path

from worker.inventory import sysfs
from worker.inventory.sysfs import SYS, text

_RATE = re.compile(r"([0-9.]+) Gb")


def link_of(name: str, sys: Path = SYS) -> tuple[int, int] | None:
    """(raw bits per second of each lane, lanes); None if unknown."""
    parts = sysfs.node(sysfs.whole(name, sys), sys).resolve()
    if port := next((part for part in parts.parts if re.fullmatch(r"ata[0-9]+", part)), ""):
        rate = _rate(text(sys / f"class/ata_link/link{port[3:]}/sata_spd"))
        return (rate, 1) if rate else None
    return _sas(parts, sys)


def _sas(place: Path, sys: Path) -> tuple[int, int] | None:
    """The link of the port nearest to the drive."""
    port = next((each for each in (place, *place.parents) if re.fullmatch(r"port-[0-9:]+", each.name)), None)
    if port is None:
        return None
    phys = [entry.name for entry in port.glob("phy-*")]
    rates = {rate for phy in phys if (rate := _rate(text(sys / "class/sas_phy" / phy / "negotiated_linkrate")))}
    return (min(rates), len(phys)) if rates else None


def _rate(words: str) -> int:
    found = _RATE.match(words)
    return round(float(found[1]) * 1e9) if found else 0
