"""The short commands: `start` and `inventory`."""

import argparse

import msgspec

from worker import inventory
from worker.cli import formatting
from worker.contract.inventory import BlockDevice, Controller, Inventory, PolicyTarget
from worker.journal import LayoutRecord
from worker.link.enrolment import Paths
from worker.link.targets import layouts_here, read_policy, report_targets_here


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    start = commands.add_parser("start", help="take orders until stopped (the service)")
    start.set_defaults(command=run_start)
    inventory_parser = commands.add_parser("inventory", help="show this host's hardware, drives and targets")
    inventory_parser.add_argument("--json", action="store_true")
    inventory_parser.set_defaults(command=run_inventory)


def run_start(_options: argparse.Namespace, paths: Paths) -> int:
    from worker.service import serve  # Celery is not needed by any other command

    return serve(paths)


def run_inventory(options: argparse.Namespace, paths: Paths) -> int:
    found = inventory.take()
    if options.json:
        print(msgspec.json.encode(found).decode())
        return 0
    print("\n".join(_host_lines(found)))
    head = ("device", "kind", "size", "model", "serial", "firmware", "scheduler", "held by")
    print("\n" + formatting.table(head, map(_device_row, found.block_devices)))
    if found.controllers:
        columns = ("controller", "model", "firmware", "drives", "tool")
        print("\n" + formatting.table(columns, map(_controller_row, found.controllers)))
    allowed, _ = read_policy(paths.policy)
    targets, built = (report_targets_here(allowed, paths), layouts_here(paths)) if allowed else ((), {})
    rows = [(t.id, t.kind.value, t.path, _state(t, built.get(t.stable_id))) for t in targets]
    print("\n" + (formatting.table(("target", "kind", "path", "state"), rows) if rows else _no_targets(paths)))
    return 0


def _state(target: PolicyTarget, layout: LayoutRecord | None) -> str:
    if not target.present:
        return target.problem
    return "ready" if layout is None else f"in use by layout {layout.key} of this worker ({layout.line})"


def _host_lines(found: Inventory) -> list[str]:
    cpu = found.cpu
    return [
        f"{found.hostname}: {found.distribution}" + (f" on {found.hypervisor}" if found.hypervisor else ""),
        f"CPU      {cpu.model}, {cpu.sockets} socket(s), {cpu.cores} core(s), {cpu.threads} thread(s) {cpu.governor}",
        f"Memory   {formatting.size(found.memory_bytes)}",
        f"Kernel   {found.kernel.release}",
    ]


def _controller_row(controller: Controller) -> tuple[str, ...]:
    shown = [f"{d.device or d.number} {d.level} {d.write_cache_now}".strip() for d in controller.virtual_drives]
    shown.append(f"{len(controller.physical_drives)} drive(s)")
    told = controller.problem or controller.tool
    return controller.address, controller.model, controller.firmware, ", ".join(shown), told


def _device_row(device: BlockDevice) -> tuple[str, ...]:
    holders = ", ".join(f"{h.kind} {h.detail}" for h in device.holders)
    name = device.path + (f" on {', '.join(device.parents)}" if device.parents else "")
    size = formatting.size(device.size_bytes)
    return (name, device.kind, size, device.model, device.serial, device.firmware, device.scheduler, holders or "–")


def _no_targets(paths: Paths) -> str:
    return f"No targets: {paths.policy} allows nothing yet."
