"""Parts of pages about hosts: their engines, the paths to their drives, and the limits of these."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
from django import template
from django.template import Context

from webapp.core import formatting
from webapp.hosts.inventory.ceilings import MAX_BRIDGES, Chain, chain_of
from webapp.hosts.models import Host, HostState, Target
from worker.contract.inventory import Controller, DriveHealth, Inventory, PciFunction, PhysicalDrive, VirtualDrive
from worker.recipes import ENGINES

register = template.Library()
MAX_CHAINS = 64


@dataclass(frozen=True)
class FunctionRow:
    function: PciFunction
    depth: int  # bridges above it
    drives: str
    now: str
    able: str


@register.inclusion_tag("screens/parts/hardware.html")
def hardware(host: Host, inventory: Inventory | None) -> dict[str, Any]:
    """The PCI Express tree of storage, arrays and volumes, file systems, the drives' health, memory."""
    if inventory is None:
        return {}
    return {
        "functions": _function_rows(inventory),
        "assembled": [device for device in inventory.block_devices if device.geometry],
        "file_systems": inventory.file_systems,
        "drives": msgspec.convert(host.health, tuple[DriveHealth, ...]),
        "modules": inventory.memory_modules,
        "nodes": inventory.numa_nodes,
        "mitigations": sorted(inventory.cpu.mitigations.items()),
    }


@dataclass(frozen=True)
class ControllerRow:
    """A controller with its drives, grouped by virtual drive; other drives are under None."""

    controller: Controller
    facts: list[tuple[str, str]]
    groups: list[tuple[VirtualDrive | None, list[PhysicalDrive]]]


@register.inclusion_tag("screens/parts/controllers.html")
def controllers(inventory: Inventory | None) -> dict[str, Any]:
    """RAID controllers and host bus adapters, down to drives and block devices."""
    reported = inventory.controllers if inventory else ()
    return {
        "controllers": [ControllerRow(each, _controller_facts(each), _groups(each)) for each in reported],
        "by_tool": any(each.tool != "sysfs" for each in reported),
    }


def _controller_facts(controller: Controller) -> list[tuple[str, str]]:
    driver = f"{controller.driver} {controller.driver_version}".strip()
    cache = formatting.bytes_binary(controller.cache_bytes) if controller.cache_bytes else ""
    named = (
        ("Vendor", controller.vendor), ("Subsystem", controller.subsystem), ("Serial", controller.serial),
        ("Firmware", controller.firmware), ("BIOS", controller.bios), ("Driver", driver), ("State", controller.state),
        ("Cache", cache), ("Reported by", controller.tool),
    )  # fmt: skip
    return [(name, words) for name, words in named if words]


def _groups(controller: Controller) -> list[tuple[VirtualDrive | None, list[PhysicalDrive]]]:
    """Drives by virtual drive. A slot without data about its drive is included."""
    drives = {drive.slot: drive for drive in controller.physical_drives}
    groups: list[tuple[VirtualDrive | None, list[PhysicalDrive]]] = [
        (virtual, [drives.get(slot) or PhysicalDrive(slot=slot) for slot in virtual.drives])
        for virtual in controller.virtual_drives
    ]
    used = {slot for virtual in controller.virtual_drives for slot in virtual.drives}
    alone = [drive for drive in controller.physical_drives if drive.slot not in used]
    return [*groups, (None, alone)] if alone else groups


@register.filter
def gigabits(bits_per_s: int | None) -> str:
    return f"{bits_per_s / 1e9:g}" if bits_per_s else formatting.NOTHING


@register.inclusion_tag("screens/parts/ceilings.html")
def ceilings(inventory: Inventory | None, targets: Iterable[Target]) -> dict[str, Any]:
    """The limits from the drives to memory, for every available target on the first MAX_CHAINS devices."""
    if inventory is None:
        return {"chains": []}
    chains: dict[str, tuple[list[str], Chain]] = {}
    for target in targets:
        if target.in_policy and target.device and (target.device in chains or len(chains) < MAX_CHAINS):
            if target.device not in chains:
                chains[target.device] = [], chain_of(inventory, target.device)
            chains[target.device][0].append(target.slug)
    return {"chains": [(", ".join(names), device, chain) for device, (names, chain) in chains.items()]}


def _function_rows(inventory: Inventory) -> list[FunctionRow]:
    """Functions in tree order: each after the bridge above it."""
    known = {function.address for function in inventory.pci}
    below, drives = defaultdict(list), defaultdict(list)
    for function in inventory.pci:
        below[function.parent if function.parent in known else ""].append(function)
    for device in inventory.block_devices:
        if not device.parents:
            drives[device.controller].append(device.name)
    rows, waiting = [], [(0, function) for function in reversed(below.pop("", []))]
    while waiting:
        depth, function = waiting.pop()
        rows.append(_function_row(function, depth, drives[function.address]))
        waiting += [(depth + 1, each) for each in reversed(below.pop(function.address, []))]
    return rows


def _function_row(function: PciFunction, depth: int, drives: list[str]) -> FunctionRow:
    link = function.link
    return FunctionRow(
        function=function,
        depth=min(depth, MAX_BRIDGES),
        drives=", ".join(drives),
        now=_link_words(link.transfers_per_s, link.lanes) if link else "",
        able=_link_words(link.max_transfers_per_s, link.max_lanes) if link else "",
    )


def _link_words(transfers_per_s: int | None, lanes: int | None) -> str:
    if not transfers_per_s or not lanes:
        return formatting.NOTHING
    return f"{transfers_per_s / 1e9:g} GT/s × {lanes}"


@register.filter
def indent(depth: int) -> str:
    return "\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}" * max(0, depth - 1) + ("└ " if depth else "")


@register.inclusion_tag("screens/parts/hosts_at_rest.html", takes_context=True)
def hosts_at_rest(context: Context) -> dict[str, Any]:
    """Hosts in maintenance, whose targets cannot be chosen, with the reason. One query."""
    return {"hosts": Host.objects.filter(state=HostState.MAINTENANCE), "request": context["request"]}


@register.filter
def engines(host: Host) -> list[tuple[str, dict[str, Any]]]:
    """The label and the offer of each engine that works on the host, its version without the label."""
    labels = {workload.engine_name(): recipe.LABEL for workload, recipe in ENGINES.items()}
    offers = [(labels.get(name, name), offer) for name, offer in host.capabilities.get("engines", {}).items()]
    return [(label, offer | {"version": _version(label, offer["version"])}) for label, offer in offers]


def _version(label: str, version: str) -> str:
    """Without the name of the program, which the label begins with: `sysbench fileio` and `sysbench 1.0.20`."""
    program = label.split()[0]
    return version.removeprefix(f"{program}-").removeprefix(f"{program} ")
