"""Commands of controllers' tools that create and delete virtual drives. Pure functions.

Syntax: Broadcom, StorCLI Reference Manual, `add vd`, `set autobgi`, `del`; LSI, MegaRAID SAS Software User Guide
(MegaCli), `-CfgLdAdd`, `-CfgSpanAdd`, `-LDBI`, `-CfgLdDel`. Not tested on real hardware.

A choice that affects results: background initialisation of mirrors and parity is disabled, like md's resync with
--assume-clean. It would disturb the measurement. Parity is correct only where data was written afterwards.

Deletion is never forced: a virtual drive stays if the tool reports a file system or the running system on it.
"""

import re

import msgspec

from worker.contract.layouts import DrivePolicy, Layout, Raid

STORCLI, MEGACLI = "storcli", "MegaCli"
_SPELT = {  # MegaCli's spelling; storcli uses DrivePolicy's values
    DrivePolicy.WRITE_BACK: ("WB", "NoCachedBadBBU"),
    DrivePolicy.WRITE_THROUGH: ("WT",),
    DrivePolicy.ALWAYS_WRITE_BACK: ("WB", "CachedBadBBU"),
    DrivePolicy.READ_AHEAD: ("RA",),
    DrivePolicy.NO_READ_AHEAD: ("NORA",),
    DrivePolicy.DIRECT: ("Direct",),
    DrivePolicy.CACHED: ("Cached",),
}
_DISK_CACHE = {DrivePolicy.DISK_CACHE_ON: "EnDskCache", DrivePolicy.DISK_CACHE_OFF: "DisDskCache"}
_SLOT = re.compile(r"/(?P<tool>[\w-]+)/(?P<controller>\w+)/(?P<slot>\d*:\d+)", re.ASCII)

Command = tuple[str, ...]


class Bay(msgspec.Struct, frozen=True):
    """The bay of a drive, in the terms of the controller's tool; as a path `/storcli/0/252:3`."""

    tool: str
    controller: str
    slot: str

    def __str__(self) -> str:
        return f"/{self.tool}/{self.controller}/{self.slot}"


def bay(path: str) -> Bay | None:
    """Parse a path; None if it is not a bay of a controller whose tool can create virtual drives."""
    match = _SLOT.fullmatch(path)
    if match is None or family(match["tool"]) is None:
        return None
    return Bay(match["tool"], match["controller"], match["slot"])


def family(tool: str) -> str | None:
    """The syntax of an adapter; None if this worker cannot create virtual drives with it."""
    return {"storcli": STORCLI, "perccli": STORCLI, "MegaCli": MEGACLI}.get(tool)


def create(tool: str, controller: str, slots: tuple[str, ...], layout: Layout, name: str) -> Command:
    """The arguments of the tool that create one array on `slots`."""
    strip = (layout.chunk_bytes or 0) // 1024
    if family(tool) == MEGACLI:
        spelt = tuple(word for policy in layout.policies for word in _SPELT.get(policy, ()))
        return (*_megacli_arrays(slots, layout), *spelt, f"-strpsz{strip}", f"-a{controller}", "-NoLog")
    spans = (f"PDperArray={len(slots) // layout.spans}",) if layout.spans > 1 else ()
    policies = sorted(layout.policies, key=lambda policy: "=" not in policy)  # pdcache= comes before wb, ra, direct
    return (
        f"/c{controller}", "add", "vd", f"type={layout.raid}", f"name={name}", f"drives={','.join(slots)}", *spans,
        *map(str, policies), f"strip={strip}", "J", "nolog",
    )  # fmt: skip


def _megacli_arrays(slots: tuple[str, ...], layout: Layout) -> Command:
    level = layout.raid.removeprefix("raid")
    if layout.spans == 1:
        return ("-CfgLdAdd", f"-R{level}[{','.join(slots)}]")
    each = len(slots) // layout.spans
    spans = [slots[start : start + each] for start in range(0, len(slots), each)]
    return ("-CfgSpanAdd", f"-R{level}", *(f"-Array{n}[{','.join(span)}]" for n, span in enumerate(spans)))


def settle(tool: str, controller: str, number: str, layout: Layout, name: str) -> tuple[Command, ...]:
    """Properties to set after creation: MegaCli sets the name and the disk cache separately."""
    background = layout.raid is not Raid.RAID0
    if family(tool) == MEGACLI:
        of = (f"-L{number}", f"-a{controller}", "-NoLog")
        disk = [word for policy in layout.policies if (word := _DISK_CACHE.get(policy))]
        return (
            ("-LDSetProp", "-Name", name, *of),
            *((("-LDBI", "-Dsbl", *of),) if background else ()),
            *(("-LDSetProp", word, *of) for word in disk),
        )
    return ((f"/c{controller}/v{number}", "set", "autobgi=off", "J", "nolog"),) if background else ()


def delete(tool: str, controller: str, number: str) -> Command:
    if family(tool) == MEGACLI:
        return ("-CfgLdDel", f"-L{number}", f"-a{controller}", "-NoLog")
    return (f"/c{controller}/v{number}", "del", "J", "nolog")
