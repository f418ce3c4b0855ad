"""Parse numbers and words of controller tools."""

import re

from worker.contract.base import MAX_LABEL

KIB = 1024
_SIZE = re.compile(r"([0-9.]+)\s*([KMGTP]?)i?B", re.IGNORECASE)
_RATE = re.compile(r"([0-9.]+)\s*Gb", re.IGNORECASE)
_SECTORS = re.compile(r"\[0x([0-9a-f]+) Sectors\]", re.IGNORECASE)
_NOTHING = ("", "-", "n/a", "na", "n.a.", "none", "unknown", "not available")


def size(words: str, *, unit: int) -> int | None:
    """`3.637 TB`, `64kB`, `1000.2GB` in bytes; `unit` is 1024 or 1000, because the text does not show it."""
    found = _SIZE.search(words)
    return round(float(found[1]) * unit ** " KMGTP".index(found[2].upper() or " ")) if found else None


def sectors(words: str, sector_bytes: int) -> int | None:
    """The exact size in bytes of `1.819 TB [0xe8e088b0 Sectors]`."""
    found = _SECTORS.search(words)
    return int(found[1], 16) * sector_bytes if found else None


def rate(words: str) -> int | None:
    """`12.0Gb/s`, `6.0Gbps` in bits per second."""
    found = _RATE.search(words)
    return round(float(found[1]) * 1e9) or None if found else None


def level(words: str) -> str:
    """`RAID5`, `Raid1+0`, `1+0`, `6 (ADG)`: RAID5, RAID10, RAID10, RAID6."""
    digits = re.sub(r"(?i)^raid[ -]?|\s*\(.*\)|\+", "", words.strip())
    return f"RAID{digits}" if digits.isdecimal() else words.strip()[:MAX_LABEL]


def wwn(words: str) -> str:
    """32 or 16 hexadecimal digits, in the format of block devices."""
    digits = words.strip().lower().removeprefix("0x")
    return f"wwn-0x{digits}" if re.fullmatch(r"[0-9a-f]{16}|[0-9a-f]{32}", digits) else ""


def known(words: object) -> str:
    """ "" for the texts that tools print for a missing value."""
    text = str(words).strip()
    return "" if text.lower() in _NOTHING else text[:MAX_LABEL]


def pair(line: str) -> tuple[str, str]:
    """`Name   : value` and `Name: value`."""
    name, _, value = line.partition(":")
    return name.strip(), value.strip()
