"""What changed between two looks at a host, in words."""

from collections.abc import Callable, Iterator, Mapping

from worker.contract.controllers import Battery, Controller, PhysicalDrive, VirtualDrive
from worker.contract.inventory import BlockDevice, Inventory

# What is said of a device that stayed: how it is called, and its value.
_DEVICE_FACTS: tuple[tuple[str, Callable[[BlockDevice], object]], ...] = (
    ("serial", lambda device: device.serial),
    ("model", lambda device: device.model),
    ("firmware", lambda device: device.firmware),
    ("size in bytes", lambda device: f"{device.size_bytes:,}"),
    ("scheduler", lambda device: device.scheduler),
    ("lies on", lambda device: ", ".join(device.parents)),
    ("holds", lambda device: device.signature),
    ("in use by", lambda device: "; ".join(f"{holder.kind} {holder.detail}" for holder in device.holders)),
)
_HOST_FACTS: tuple[tuple[str, Callable[[Inventory], object]], ...] = (
    ("host name", lambda found: found.hostname),
    ("distribution", lambda found: found.distribution),
    ("kernel", lambda found: found.kernel.release),
    ("kernel command line", lambda found: found.kernel.command_line),
    ("CPU", lambda found: found.cpu.model),
    ("CPU threads", lambda found: found.cpu.threads),
    ("CPU governor", lambda found: found.cpu.governor),
    ("memory in bytes", lambda found: f"{found.memory_bytes:,}"),
)


def changes(before: Inventory, after: Inventory) -> list[str]:
    """One sentence for each thing that differs; the host first, then devices that came, went or changed."""
    return [
        *_of_host(before, after),
        *_of_devices(_by_identity(before), _by_identity(after)),
        *_of_controllers(_behind_controllers(before), _behind_controllers(after)),
    ]


def _of_host(before: Inventory, after: Inventory) -> Iterator[str]:
    if before.kernel.boot_id != after.kernel.boot_id:
        yield "It was rebooted."
    for name, value in _HOST_FACTS:
        if value(before) != value(after):
            yield f"The {name} was {value(before) or 'not known'}, is {value(after) or 'not known'}."


def _by_identity(found: Inventory) -> dict[str, BlockDevice]:
    """Devices by what stays theirs when kernel names move."""
    return {f"{device.stable_id} {device.serial}": device for device in found.block_devices}


def _of_devices(before: Mapping[str, BlockDevice], after: Mapping[str, BlockDevice]) -> Iterator[str]:
    for key in after.keys() - before.keys():
        yield f"{_named(after[key])} came."
    for key in before.keys() - after.keys():
        yield f"{_named(before[key])} is gone."
    for key in sorted(before.keys() & after.keys()):
        yield from _of_device(before[key], after[key])


def _of_device(before: BlockDevice, after: BlockDevice) -> Iterator[str]:
    if before.name != after.name:
        yield f"{_named(before)} is called {after.name} now."
    for name, value in _DEVICE_FACTS:
        was, now = value(before), value(after)
        if was != now:
            yield f"{after.name}: {name} was {was or 'nothing'}, is {now or 'nothing'}."


_Behind = Controller | VirtualDrive | PhysicalDrive
_NOT_SAID = ("virtual_drives", "physical_drives", "drives", "device", "address", "number", "slot")


def _behind_controllers(found: Inventory) -> dict[str, _Behind]:
    """Controllers by address, their virtual drives by number, their drives by slot."""
    things: dict[str, _Behind] = {}
    for each in found.controllers:
        name = f"controller {each.address or each.model}"
        things[name] = each
        things |= {f"{name}, virtual drive {drive.number}": drive for drive in each.virtual_drives}
        things |= {f"{name}, drive {drive.slot} {drive.serial}".rstrip(): drive for drive in each.physical_drives}
    return things


def _of_controllers(before: Mapping[str, _Behind], after: Mapping[str, _Behind]) -> Iterator[str]:
    """The first look that tells of controllers at all says nothing of them: they did not come then."""
    if not before or not after:
        return
    for name in [*(after.keys() - before.keys()), *(before.keys() - after.keys())]:
        yield f"{name[0].upper()}{name[1:]} {'came' if name in after else 'is gone'}."
    for name in sorted(before.keys() & after.keys()):
        yield from _of_thing(name, before[name], after[name])


def _of_thing(name: str, before: _Behind, after: _Behind) -> Iterator[str]:
    for field in before.__struct_fields__:
        was, now = getattr(before, field), getattr(after, field)
        if field not in _NOT_SAID and was != now:
            yield f"{name[0].upper()}{name[1:]}: {field.replace('_', ' ')} was {_words(was)}, is {_words(now)}."


def _words(value: object) -> str:
    if isinstance(value, Battery):
        return " ".join(filter(None, (value.kind, value.state)))
    return str(value) if value not in ("", None) else "not known"


def _named(device: BlockDevice) -> str:
    more = ", ".join(text for text in (device.model, device.serial and f"serial {device.serial}") if text)
    return f"{device.kind.capitalize()} {device.name}{f' ({more})' if more else ''}"
