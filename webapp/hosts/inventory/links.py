"""Links of drives and controllers: what they carry in one direction, and their names, such as `PCIe 3.0 x4`.

All figures are bytes/s. The limit of a link is its rate after the line code: what no transfer can exceed. Headers,
acknowledgements and flow control take more, so the highest rate that people measure is `PRACTICAL` of it: of PCIe, 128
of 154 bytes with the smallest payload, and 80 to 85 % in ARTICLE; of SAS, 83 to 92 % there; of SATA, about 92 %.

Sources: PCI Express Base Specification 3.0 (4.2.1 8b/10b, 4.2.2 128b/130b; 2.1 and 3.6 for the packet) and 6.0 (FLIT
mode); Serial ATA 3.0 and SAS 2.1, 3 (8b/10b up to 12 Gb/s), SAS 4 (128b/150b). ARTICLE: Dirk Geschke,
"RAID-Optimierungen", Linux User Group Erding, 28 November 2012.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from webapp.core.errors import Refusal

ARTICLE = "D. Geschke, RAID-Optimierungen, LUG Erding 2012"
PACKET_OVERHEAD_BYTES = 26  # header, sequence number, checksums of a packet with data; ARTICLE
_ARTICLES_PAYLOAD_BYTES = 256
GEN2, GEN5 = 5_000_000_000, 32_000_000_000
_SAS_6G, SAS_12G = 6_000_000_000, 12_000_000_000
PRACTICAL = 0.80  # of a link's limit: the lowest plateau that a match allows
ROUNDING = 0.01  # above the limit
ENTERED = 0.05  # around a value that a person entered

_PCIE = {"1": 2.5e9, "1.0": 2.5e9, "1.1": 2.5e9, "2": 5e9, "2.0": 5e9, "2.1": 5e9, "3": 8e9, "3.0": 8e9, "3.1": 8e9,
         "4": 16e9, "4.0": 16e9, "5": 32e9, "5.0": 32e9, "6": 64e9, "6.0": 64e9}  # fmt: skip
_PCIE_NAMES = {2.5e9: "1.0", 5e9: "2.0", 8e9: "3.0", 16e9: "4.0", 32e9: "5.0", 64e9: "6.0"}  # by transfers per second
_SERIAL = {"SATA": {1.5e9, 3e9, 6e9}, "SAS": {3e9, 6e9, 12e9, 22.5e9}}  # bits per second of a lane
MOST_LANES = 32
MOST_TEXT = 120  # characters
_PCIE_TEXT = re.compile(r"PCIe ?(\d(?:\.\d)?) ?x ?(\d{1,2})", re.ASCII | re.IGNORECASE)
_SERIAL_TEXT = re.compile(r"(SAS|SATA) ?(\d{1,2}(?:\.\d)?) ?G(?: ?x ?(\d{1,2}))?", re.ASCII | re.IGNORECASE)
_VALUE_TEXT = re.compile(r"(\S[^:]*): ?(\d{1,6}(?:\.\d{1,3})?) ?([kMGT]i?)B/s", re.ASCII)
_UNITS = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "ki": 1024.0, "Mi": 1024.0**2, "Gi": 1024.0**3, "Ti": 1024.0**4}


@dataclass(frozen=True)
class Interval:
    low_bytes_per_s: float
    high_bytes_per_s: float
    source: str


@dataclass(frozen=True)
class Link:
    """A known ceiling. A plateau from `low_bytes_per_s` to `high_bytes_per_s` matches it."""

    name: str  # `PCIe 2.0 x8`, `4 × SATA 6G`, or what a person called it
    bytes_per_s: float
    low_bytes_per_s: float
    high_bytes_per_s: float

    def is_matched_by(self, bytes_per_s: float) -> bool:
        return self.low_bytes_per_s <= bytes_per_s <= self.high_bytes_per_s


def _link(name: str, bytes_per_s: float) -> Link:
    return Link(name, bytes_per_s, PRACTICAL * bytes_per_s, (1 + ROUNDING) * bytes_per_s)


def pcie_link(transfers_per_s: float, lanes: int) -> Link | None:
    """None for an unknown generation."""
    generation = _PCIE_NAMES.get(transfers_per_s)
    return _link(f"PCIe {generation} x{lanes}", pcie_bytes_per_s(transfers_per_s, lanes)) if generation else None


def serial_link(kind: str, bits_per_s: float, lanes: int = 1) -> Link | None:
    """`kind`: sas or sata. None for an unknown rate."""
    if bits_per_s not in _SERIAL.get(kind.upper(), ()):
        return None
    name = f"{kind.upper()} {bits_per_s / 1e9:g}G"
    return _link(f"{name} x{lanes}" if lanes > 1 else name, serial_bytes_per_s(bits_per_s, lanes))


def together(links: Iterable[Link]) -> tuple[Link, ...]:
    """Links side by side, such as those of the drives of an array: `4 × SATA 6G`."""
    counts: dict[Link, int] = {}
    for link in links:
        counts[link] = counts.get(link, 0) + 1
    return tuple(_link(f"{n} × {link.name}", n * link.bytes_per_s) if n > 1 else link for link, n in counts.items())


def shared(several: Sequence[Sequence[Link]]) -> list[Link]:
    """Those that each of them has, by name."""
    if not several:
        return []
    names = set.intersection(*({link.name for link in links} for links in several))
    return [link for link in several[0] if link.name in names]


def read_link(text: str) -> Link:
    """`PCIe 1.1 x8`, `SAS 12G x4`, `SATA 6G`, or `Expander: 2.2 GB/s`. Raises Refusal."""
    words = " ".join(text.split())
    link = _read(words) if len(words) <= MOST_TEXT else None
    if link is None:
        message = (
            f"{words[:60]} is not a known ceiling. Write a link, such as PCIe 3.0 x4, SAS 12G x4 or SATA 6G, or a name "
            "and a value, such as Expander: 2.2 GB/s."
        )
        raise Refusal("ceiling_unknown", message)
    return link


def _read(words: str) -> Link | None:
    if pcie := _PCIE_TEXT.fullmatch(words):
        generation, lanes = pcie[1], int(pcie[2])
        if generation not in _PCIE or not 1 <= lanes <= MOST_LANES:
            return None
        return _link(f"PCIe {generation} x{lanes}", pcie_bytes_per_s(_PCIE[generation], lanes))
    if serial := _SERIAL_TEXT.fullmatch(words):
        lanes = int(serial[3] or 1)
        return serial_link(serial[1], float(serial[2]) * 1e9, lanes) if 1 <= lanes <= MOST_LANES else None
    if value := _VALUE_TEXT.fullmatch(words):
        bytes_per_s = float(value[2]) * _UNITS[value[3]]
        around = (1 - ENTERED) * bytes_per_s, (1 + ENTERED) * bytes_per_s
        return Link(value[1].strip(), bytes_per_s, *around) if bytes_per_s else None
    return None


# ---- arithmetic


def pcie_bytes_per_s(transfers_per_s: float, lanes: int, payload_bytes: int | None = None) -> float:
    """Transfers x lanes x coding / 8 x the share of data in a packet.

    5 GT/s x 8 with payloads of 256 bytes: 4.00 GB/s x 256 / 282 = 3.63 GB/s.
    """
    coded = transfers_per_s * lanes * _pcie_coding(transfers_per_s) / 8
    return coded * _packet_share(payload_bytes)


def _pcie_coding(transfers_per_s: float) -> float:
    """8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s, then 236 bytes of packets in every FLIT of 256."""
    if transfers_per_s <= GEN2:
        return 8 / 10
    return 128 / 130 if transfers_per_s <= GEN5 else 236 / 256


def _packet_share(payload_bytes: int | None) -> float:
    """The share of data in a packet; 1 if the payload size is unknown, so the result is still an upper bound."""
    return payload_bytes / (payload_bytes + PACKET_OVERHEAD_BYTES) if payload_bytes else 1.0


def pcie_realistic(transfers_per_s: float, lanes: int, payload_bytes: int | None) -> Interval | None:
    """15 to 20 % less than the coded rate: 3.2 to 3.4 GB/s of PCIe 2.0 x8 with payloads of 256 bytes.

    None for faster generations and other payload sizes, for which no figures are published.
    """
    if transfers_per_s > GEN2 or payload_bytes != _ARTICLES_PAYLOAD_BYTES:
        return None
    coded = pcie_bytes_per_s(transfers_per_s, lanes)
    return Interval(coded * 0.80, coded * 0.85, ARTICLE)


def serial_bytes_per_s(bits_per_s: float, lanes: int = 1) -> float:
    """SATA and SAS: four lanes of 6 Gb/s with 8b/10b are 2.4 GB/s. 22.5 Gb/s SAS codes 128 bits as 150."""
    coding = 8 / 10 if bits_per_s <= SAS_12G else 128 / 150
    return bits_per_s * lanes * coding / 8


def serial_realistic(bits_per_s: float, lanes: int) -> Interval | None:
    """2.0 to 2.2 GB/s for four lanes of 6 Gb/s, from the controller's manufacturer, cited in ARTICLE."""
    if bits_per_s != _SAS_6G:
        return None
    return Interval(2.0e9 * lanes / 4, 2.2e9 * lanes / 4, ARTICLE)
