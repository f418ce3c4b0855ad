"""The short commands: `start`, `inventory`, `restore`."""

import argparse
import sys

import msgspec

from worker import inventory, layouts
from worker.cli import formatting
from worker.contract.controllers import Controller
from worker.contract.inventory import BlockDevice, Inventory
from worker.contract.items import SettingRestored
from worker.journal import BY_HAND, Journal, LayoutRecord
from worker.link.enrolment import ConfigError, Paths, prepare_state, sole_use
from worker.link.targets import read_policy, report_targets
from worker.settings import session


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    start = commands.add_parser("start", help="take orders until stopped (the service)")
    start.set_defaults(command=run_start)
    look = commands.add_parser("inventory", help="show this host's hardware, drives and targets")
    look.add_argument("--json", action="store_true")
    look.set_defaults(command=run_inventory)
    restore = commands.add_parser("restore", help="restore changed settings and remove layouts left by runs")
    only = "take down only this layout, also one built by hand"
    restore.add_argument("--layout", action="append", default=[], metavar="KEY", help=only)
    restore.add_argument("--json", action="store_true")
    restore.set_defaults(command=run_restore)


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
        columns = ("controller", "model", "firmware", "shows", "told by")
        print("\n" + formatting.table(columns, map(_controller_row, found.controllers)))
    allowed, _ = read_policy(paths.policy)
    targets = report_targets(allowed) if allowed else ()
    rows = [(t.id, t.kind.value, t.path, "ready" if t.present else t.problem) for t in targets]
    print("\n" + (formatting.table(("target", "kind", "path", "state"), rows) if rows else _no_targets(paths)))
    return 0


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


def run_restore(options: argparse.Namespace, paths: Paths) -> int:
    """Layouts that were built by hand are taken down only with --layout."""
    prepare_state(paths.state)
    with sole_use(paths.state):
        journal = Journal(paths.journal)
        if options.layout:
            restored = list(layouts.restore(_named(options.layout, journal), state=paths.state, journal=journal))
            kept: list[str] = []
        else:
            restored = [
                *session.restore_all(journal, by_hand=True),
                *layouts.restore(layouts.of_runs(journal), state=paths.state, journal=journal),
            ]
            kept = list(map(_kept_line, journal.layouts(BY_HAND)))
        unreadable = _unreadable_lines(journal)
    kept += unreadable
    if options.json:
        print(msgspec.json.encode(restored).decode())
        print("".join(f"{line}\n" for line in kept), end="", file=sys.stderr)
    else:
        print("\n".join([*map(restored_line, restored), *kept]) or "Nothing to restore.")
    return 0 if all(item.restored for item in restored) and not unreadable else 1


def _named(keys: list[str], journal: Journal) -> list[LayoutRecord]:
    """Raises ConfigError for a key that the journal does not know."""
    known = {record.key: record for record in journal.layouts()}
    if unknown := [key for key in keys if key not in known]:
        listed = ", ".join(f"{key} ({record.line})" for key, record in known.items()) or "none"
        raise ConfigError("layout_unknown", f"There is no layout {unknown[0]!r} on this host. Layouts here: {listed}.")
    return [known[key] for key in dict.fromkeys(keys)]


def _kept_line(record: LayoutRecord) -> str:
    return (
        f"Layout {record.key} ({record.line}) was built by hand and is kept; run “{layouts.removal_command(record)}” "
        "to take it down."
    )


def _unreadable_lines(journal: Journal) -> list[str]:
    count = journal.unreadable()
    words = (
        f"Changed settings or layouts that cannot be read: {count}. They stay; “sweetspot-worker doctor” says where."
    )
    return [words] if count else []


def restored_line(item: SettingRestored) -> str:
    what = f"{item.name} of {item.device or 'the host'}"
    return f"{what}: back to {item.observed}" if item.restored else f"{what}: NOT put back to {item.value}: {item.note}"
