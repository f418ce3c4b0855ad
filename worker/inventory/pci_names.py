"""Names of PCI devices from lspci's list (pci.ids), if the host has it."""

import re
from functools import lru_cache
from pathlib import Path

PLACES = (Path("/usr/share/misc/pci.ids"), Path("/usr/share/hwdata/pci.ids"))


def model(vendor: str, device: str) -> str:
    """`Broadcom / LSI MegaRAID SAS 2208`; "" if the device is not listed. Ids are four hex digits."""
    return next((_named(path, vendor, device) for path in PLACES if path.exists()), "")


@lru_cache(maxsize=256)
def _named(path: Path, vendor: str, device: str) -> str:
    """Lines of vendors start with their id, lines of devices with one tab, lines of subsystems with two tabs."""
    rows = "\n" + _list(path)
    start = rows.find(f"\n{vendor}  ")
    if not vendor or start < 0:
        return ""
    end = re.compile(r"\n[^\t#\n]").search(rows, start + 1)
    block = rows[start + 1 : end.start() if end else len(rows)]
    found = re.search(rf"^\t{re.escape(device)}  (.+)$", block, re.MULTILINE)
    maker = block.partition("\n")[0].partition("  ")[2].strip()
    return f"{maker} {found[1].strip()}" if found and device else ""


@lru_cache(maxsize=2)
def _list(path: Path) -> str:
    return path.read_text(errors="replace")
