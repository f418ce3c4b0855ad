"""How often a plateau is near a known ceiling by chance.

The logarithm of the plateau is uniform over a part of what the lowest link carries, because nothing else is known of
it: over a decade for drives whose limit may be anything, over the upper half for those that a link nearly limits. Each
set has the links of one target, as an inventory shows them.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from webapp.hosts.inventory.links import Link, read_link

TARGETS: Mapping[str, Sequence[str]] = {
    "an entered value": ("Backplane: 2.2 GB/s",),
    "SATA drive": ("SATA 6G",),
    "NVMe drive": ("PCIe 4.0 x4",),
    "SATA drive behind a controller": ("SATA 6G", "PCIe 3.0 x8"),
    "four SATA drives behind a controller": ("SATA 6G x4", "PCIe 2.0 x8"),
    "NVMe drive behind a switch": ("PCIe 4.0 x4", "PCIe 3.0 x16"),
    "array behind an expander": ("SAS 12G x4", "PCIe 3.0 x8", "Backplane: 4.5 GB/s"),
}
RANGES = {"over a decade": 0.1, "over the upper half": 0.5}  # the lowest value, as a share of the lowest link
LOWEST = (0.80, 0.85, 0.90, 0.95)  # a plateau is near a link from such a share of its rate on


def by_chance(texts: Sequence[str], lowest: float, start: float, count: int, chance: np.random.Generator) -> float:
    """The share of plateaus that are near one of the links. Entered values have their own interval."""
    links = [_from(read_link(text), lowest) for text in texts]
    most = min(link.bytes_per_s for link in links)
    values = most * np.exp(chance.uniform(np.log(start), 0.0, count))
    return float(np.mean([any(link.is_matched_by(value) for link in links) for value in values]))


def _from(link: Link, lowest: float) -> Link:
    is_entered = link.high_bytes_per_s > 1.02 * link.bytes_per_s
    return link if is_entered else Link(link.name, link.bytes_per_s, lowest * link.bytes_per_s, link.high_bytes_per_s)


def table(count: int, seed: int) -> list[str]:
    chance = np.random.default_rng(seed)
    heads = ["links of a target", *(f"from {100 * lowest:.0f} %, {name}" for name in RANGES for lowest in LOWEST)]
    rows = [
        [
            f"{name}: {', '.join(texts)}",
            *(
                f"{100 * by_chance(texts, lowest, start, count, chance):.0f}"
                for start in RANGES.values()
                for lowest in LOWEST
            ),
        ]
        for name, texts in TARGETS.items()
    ]
    lines = [f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)]
    return ["Plateaus at random that are near a known ceiling, in percent:", "", *lines]
