"""Upper bounds of measured targets, one line each for a chart: the bound and its link."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice, product

from django.db.models import Q

from webapp.hosts.inventory.links import (
    GEN2,
    GEN5,
    PACKET_OVERHEAD_BYTES,
    SAS_12G,
    Interval,
    Link,
    pcie_bytes_per_s,
    pcie_link,
    pcie_realistic,
    serial_bytes_per_s,
    serial_link,
    serial_realistic,
    together,
)
from webapp.hosts.inventory.lock_groups import DrivesUnder, TooLarge
from webapp.hosts.inventory.store import inventories_at
from webapp.hosts.models import Target
from webapp.hosts.selectors import parted
from worker.contract.inventory import BlockDevice, Inventory, MemoryModule, PcieLink, PciFunction, PhysicalDrive

# Computes upper bounds of a target's throughput: the links between its drives and memory, and memory itself.
#
# Pure. All figures are bytes/s in one direction; `links` has the arithmetic and its sources. The bounds ignore overhead
# that an inventory does not contain (flow control, descriptor reads, drive firmware), so real throughput stays below
# them. For links with published practical figures, the interval is given too, with its source. A memory channel moves
# its width once per transfer (JEDEC).

MAX_BRIDGES = 32  # between a drive and memory


@dataclass(frozen=True)
class Ceiling:
    """One limit of the chain. `drives` is the number of the target's drives behind it."""

    kind: str  # drive | drive link | PCI Express | memory
    where: str
    bytes_per_s: float
    formula: str
    drives: int = 1
    realistic: Interval | None = None
    degraded: bool = False
    link: Link | None = None  # None if its generation has no name


@dataclass(frozen=True)
class Chain:
    """The limits of a target, from its drives to memory. `bytes_per_s` is the bound that results from all of them."""

    ceilings: tuple[Ceiling, ...] = ()
    bytes_per_s: float | None = None
    unknown: tuple[str, ...] = field(default=())  # further limits whose figures are unknown, in words
    links: tuple[Link, ...] = ()  # each carries all of its traffic
    numa_node: int | None = None  # of the controllers of all its drives; None: unknown, or several


def memory_bytes_per_s(modules: tuple[MemoryModule, ...]) -> float | None:
    """Sum of the channels' widths x the slowest module's speed; None if the firmware's tables are incomplete.

    Slots of one channel share its width; the channel's name comes from the bank's label.
    """
    speeds = [module.transfers_per_s for module in modules if module.transfers_per_s]
    widths = [module.data_bits for module in modules if module.data_bits]
    if not modules or len(speeds) < len(modules) or len(widths) < len(modules):
        return None
    channels = {m.bank if "channel" in m.bank.lower() else f"slot {number}" for number, m in enumerate(modules)}
    return float(min(speeds) * len(channels) * min(widths) / 8)


# ---- the chain of a target


def chain_of(inventory: Inventory, *names: str, drive_bytes_per_s: Mapping[str, float] | None = None) -> Chain:
    """The limits from the drives under one or more block devices to memory, for raw traffic: redundancy adds to it.

    A shared drive or link counts once. `drive_bytes_per_s` has the rates of drives by kernel name, from a datasheet or
    measured alone.
    """
    drives_under = DrivesUnder(inventory)
    try:
        under = {name: drives_under.of(name) for name in names}
    except TooLarge as error:
        return Chain(unknown=(str(error),))
    if not all(under.values()):
        bare = next(name for name, drives_under_name in under.items() if not drives_under_name)
        return Chain(unknown=(f"the devices under {bare or 'the target'}",))
    drives = list({drive.name: drive for drives_under_name in under.values() for drive in drives_under_name}.values())
    rates = drive_bytes_per_s or {}
    members = _members(inventory)
    drive_ceilings = [ceiling for drive in drives for ceiling in _of_drive(drive, rates, members)]
    functions = {function.address: function for function in inventory.pci}
    links = _links(drives, functions)
    memory = memory_bytes_per_s(inventory.memory_modules)
    ceilings = (*drive_ceilings, *links.values(), *([_memory(memory, inventory, len(drives))] if memory else []))
    unknown = tuple(_unknown(drives, functions, rates, memory))
    bound = _ceilings_together(drives, functions, links, rates, memory, members)
    nodes = {function.numa_node for drive in drives if (function := functions.get(drive.controller))}
    numa_node = nodes.pop() if len(nodes) == 1 else None
    return Chain(ceilings, bound, unknown, tuple(_links_of_all(ceilings, len(drives))), numa_node)


def _links_of_all(ceilings: Iterable[Ceiling], drives: int) -> Iterator[Link]:
    """A link behind which all drives are, or links side by side, each with its share of the drives."""
    alike: dict[Link, list[int]] = {}
    for each in ceilings:
        if each.link:
            alike.setdefault(each.link, []).append(each.drives)
    for link, counts in alike.items():
        if set(counts) == {drives}:
            yield link
        elif sum(counts) == drives:
            yield from together([link] * len(counts))


def _members(inventory: Inventory) -> dict[str, tuple[PhysicalDrive, ...]]:
    """The drives behind each virtual drive of a RAID controller, by its kernel name."""
    members = {}
    for controller in inventory.controllers:
        known = {drive.slot: drive for drive in controller.physical_drives}
        for virtual in controller.virtual_drives:
            members[virtual.device] = tuple(known[slot] for slot in virtual.drives if slot in known)
    return members


def _of_drive(
    drive: BlockDevice, rates: Mapping[str, float], members: Mapping[str, tuple[PhysicalDrive, ...]]
) -> list[Ceiling]:
    ceilings = _of_members(drive, members.get(drive.name, ()))
    if rate := rates.get(drive.name):
        ceilings.append(Ceiling("drive", drive.name, rate, "its own rate"))
    if drive.link_bits_per_s and drive.link_lanes:
        bits, lanes = drive.link_bits_per_s, drive.link_lanes
        formula = f"{bits / 1e9:g} Gb/s × {_lanes(lanes)} × {'8/10' if bits <= SAS_12G else '128/150'} ÷ 8"
        realistic = serial_realistic(bits, lanes) if drive.transport == "sas" else None
        link = serial_link(drive.transport, bits, lanes)
        bound = serial_bytes_per_s(bits, lanes)
        ceilings.append(Ceiling("drive link", drive.name, bound, formula, realistic=realistic, link=link))
    return ceilings


def _of_members(drive: BlockDevice, members: tuple[PhysicalDrive, ...]) -> list[Ceiling]:
    """One lane per drive, as reported by the controller; an expander would reduce the bound."""
    bits = [member.link_bits_per_s for member in members if member.link_bits_per_s]
    if not bits or len(bits) < len(members):
        return []
    formula = " + ".join(f"{bits.count(each)} × {each / 1e9:g} Gb/s" for each in dict.fromkeys(bits))
    total = sum(serial_bytes_per_s(each) for each in bits)
    where = f"{drive.name}, {len(bits)} {'drive' if len(bits) == 1 else 'drives'} behind its controller"
    formula += f", × {'8/10' if max(bits) <= SAS_12G else 'coding'} ÷ 8"
    links = [serial_link(member.interface, member.link_bits_per_s or 0) for member in members]
    alike = together(link for link in links if link) if all(links) else ()
    return [Ceiling("drive link", where, total, formula, link=alike[0] if len(alike) == 1 else None)]


def _links(drives: list[BlockDevice], functions: Mapping[str, PciFunction]) -> dict[str, Ceiling]:
    """The PCI Express links up to the root, by the address of their lower end; each once."""
    behind: dict[str, int] = {}
    for drive in drives:
        for address in _way(drive.controller, functions):
            behind[address] = behind.get(address, 0) + 1
    made = {address: _of_link(functions[address], count) for address, count in behind.items()}
    return {address: ceiling for address, ceiling in made.items() if ceiling is not None}


def _way(address: str, functions: Mapping[str, PciFunction]) -> list[str]:
    """The function and the bridges above it, each with the link above it: upper ends are left out."""
    way: list[str] = []
    while address in functions and address not in way and len(way) < MAX_BRIDGES:
        way.append(address)
        address = functions[address].parent
    return [each for each in way if not functions[each].downstream]


def _of_link(function: PciFunction, drives: int) -> Ceiling | None:
    link = function.link
    if link is None or not link.transfers_per_s or not link.lanes:
        return None
    return Ceiling(
        kind="PCI Express",
        where=f"{function.address} {function.model or function.driver or function.kind}",
        bytes_per_s=pcie_bytes_per_s(link.transfers_per_s, link.lanes, link.payload_bytes),
        formula=_pcie_formula(link),
        drives=drives,
        realistic=pcie_realistic(link.transfers_per_s, link.lanes, link.payload_bytes),
        degraded=bool(link.degraded),
        link=pcie_link(link.transfers_per_s, link.lanes),
    )


def _pcie_formula(link: PcieLink) -> str:
    transfers = link.transfers_per_s or 0
    coding = "8/10" if transfers <= GEN2 else "128/130" if transfers <= GEN5 else "236/256"
    words = f"{transfers / 1e9:g} GT/s × {_lanes(link.lanes or 0)} × {coding} ÷ 8"
    if not link.payload_bytes:
        return f"{words}; the packet's payload is not known"
    return f"{words} × {link.payload_bytes}/{link.payload_bytes + PACKET_OVERHEAD_BYTES}"


def _lanes(count: int) -> str:
    return f"{count} lane{'' if count == 1 else 's'}"


def _memory(bytes_per_s: float, inventory: Inventory, drives: int) -> Ceiling:
    modules = inventory.memory_modules
    speed, bits = min(m.transfers_per_s or 0 for m in modules), min(m.data_bits or 0 for m in modules)
    channels = round(bytes_per_s / (speed * bits / 8))
    formula = f"{speed / 1e6:g} MT/s × {bits // 8} bytes × {channels} channel{'' if channels == 1 else 's'}"
    where = "1 module" if len(modules) == 1 else f"{len(modules)} modules"
    return Ceiling("memory", where, bytes_per_s, formula, drives)


def _ceilings_together(
    drives: list[BlockDevice],
    functions: Mapping[str, PciFunction],
    links: Mapping[str, Ceiling],
    rates: Mapping[str, float],
    memory: float | None,
    members: Mapping[str, tuple[PhysicalDrive, ...]],
) -> float | None:
    """Throughput up the tree: for every function the sum of the functions below it, at most its link's bound.

    None if one of the drives has no known bound.
    """
    passes: dict[str, float] = {}
    for drive in drives:
        drive_bound = min((ceiling.bytes_per_s for ceiling in _of_drive(drive, rates, members)), default=float("inf"))
        passes[drive.controller] = passes.get(drive.controller, 0.0) + drive_bound
    for address in _lowest_first(passes, functions):
        link = links.get(address)
        upper, amount = _above(address, functions), passes.pop(address, 0.0)
        passes[upper] = passes.get(upper, 0.0) + (min(amount, link.bytes_per_s) if link else amount)
    total = min(sum(passes.values()), memory or float("inf"))
    return None if total == float("inf") else total


def _above(address: str, functions: Mapping[str, PciFunction]) -> str:
    """The next function upwards that has a link above it; "" is memory."""
    return next(iter(_way(functions[address].parent, functions)), "")


def _lowest_first(starts: Mapping[str, float], functions: Mapping[str, PciFunction]) -> list[str]:
    """All functions between the drives and the root, farthest from the root first."""
    ways = [_way(address, functions) for address in starts]
    depth = {address: len(way) - place for way in ways for place, address in enumerate(way)}
    return sorted(depth, key=lambda address: -depth[address])


def _unknown(
    drives: list[BlockDevice], functions: Mapping[str, PciFunction], rates: Mapping[str, float], memory: float | None
) -> list[str]:
    words = [f"the rate of the drive {drive.name}" for drive in drives if drive.name not in rates]
    words += [f"the controller of {drive.name}" for drive in drives if drive.controller not in functions]
    for address in dict.fromkeys(drive.controller for drive in drives):
        function = functions.get(address)
        if function is not None and function.link is None:
            words.append(f"the link of {address}, which is not PCI Express")
        if function is not None and function.kind == "raid":
            words.append(f"the lanes behind {address}, which its controller hides")
    return words if memory else [*words, "memory, because the firmware does not report its speed"]


MAX_BOUNDS = 6  # lines in one chart
MAX_WAYS = 16  # drives that had the names of a target one after the other, for several targets their combinations


@dataclass(frozen=True)
class Bound:
    """`realistic` is the practical throughput of the limiting link from a published source; usually None."""

    target: str  # host/target, or the common name of several targets at once
    bytes_per_s: float
    words: str  # the limiting link; "" for a ceiling that a person entered, whose name is in `target`
    realistic: Interval | None = None
    links: tuple[Link, ...] = ()  # each carries all traffic of the target
    numa_node: int | None = None  # as of a chain


def bounds_of(moments: Mapping[str, datetime], most: int | None = MAX_BOUNDS) -> tuple[Bound, ...]:
    """Bounds by name of a target (`host/target`, or several at once), from the host's inventory at the given time.

    Targets without a known bound are left out. For several targets at once it is the bound of their sum, in which a
    shared link counts once. Three queries. Returns at most `most`, lowest bounds first.
    """
    ways = list(_ways(moments))
    inventories = inventories_at({(targets[0].host_id, at) for _, targets, at in ways})
    bounds = []
    for name, targets, at in ways:
        inventory = inventories.get((targets[0].host_id, at))
        bound = bound_of(name, chain_of(inventory, *(target.device for target in targets))) if inventory else None
        bounds += [bound] if bound else []
    ordered = sorted(bounds, key=lambda bound: (bound.bytes_per_s, bound.target))
    return tuple((_folded(ordered) if any(len(parted(name)[1]) > 1 for name in moments) else ordered)[:most])


def _ways(moments: Mapping[str, datetime]) -> Iterator[tuple[str, tuple[Target, ...], datetime]]:
    """The targets that a name may mean: drives that had it one after the other."""
    known = _targets(moments)
    for name, at in moments.items():
        host, slugs = parted(name)
        each = product(*(known.get((host, slug), ()) for slug in slugs))
        yield from ((name, targets, at) for targets in islice(each, MAX_WAYS))


def _folded(bounds: Iterable[Bound]) -> list[Bound]:
    """If targets were used alone and in groups: each bound once for a host and a number of targets."""
    alike: dict[tuple[str, int, float], list[Bound]] = {}
    for bound in bounds:
        host, slugs = parted(bound.target)
        alike.setdefault((host, len(slugs), bound.bytes_per_s), []).append(bound)
    return [_one_of(equal_bounds) for equal_bounds in alike.values()]


def _one_of(alike: Sequence[Bound]) -> Bound:
    if len(alike) == 1:
        return alike[0]
    return replace(alike[0], target=f"{alike[0].target} (and {len(alike) - 1} alike)")


def _targets(names: Iterable[str]) -> Mapping[tuple[str, str], list[Target]]:
    """Targets with a known device, by host and slug. The slug may have belonged to another drive before."""
    wanted = Q()
    for host, slugs in map(parted, names):
        wanted |= Q(host__slug=host, slug__in=slugs)
    targets_by_name: dict[tuple[str, str], list[Target]] = {}
    for target in Target.objects.filter(wanted).select_related("host").exclude(device="") if wanted else ():
        targets_by_name.setdefault((target.host.slug, target.slug), []).append(target)
    return targets_by_name


def bound_of(target: str, chain: Chain) -> Bound | None:
    """None if no bound is known."""
    if chain.bytes_per_s is None:
        return None
    words, realistic = _limiting(chain.ceilings, chain.bytes_per_s)
    return Bound(target, chain.bytes_per_s, words, realistic, chain.links, chain.numa_node)


def _limiting(ceilings: tuple[Ceiling, ...], total: float) -> tuple[str, Interval | None]:
    """The single ceiling that is as low as the total; else the ceilings of one kind that add up to it."""
    for each in ceilings:
        if math.isclose(each.bytes_per_s, total):
            degraded = ", degraded" if each.degraded else ""
            return f"{each.kind} of {each.where}{degraded} ({each.formula})", each.realistic
    for kind in dict.fromkeys(each.kind for each in ceilings):
        alike = [each for each in ceilings if each.kind == kind]
        if math.isclose(sum(each.bytes_per_s for each in alike), total):
            return f"{len(alike)} × {kind} ({alike[0].formula} each)", _together([each.realistic for each in alike])
    return "several links together", None


def _together(intervals: list[Interval | None]) -> Interval | None:
    known = [each for each in intervals if each]
    if not known or len(known) < len(intervals):
        return None
    low, high = sum(each.low_bytes_per_s for each in known), sum(each.high_bytes_per_s for each in known)
    return Interval(low, high, known[0].source)
