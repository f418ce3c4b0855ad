"""The command line: text for people, `--json` for programs.

Exit status: 0 done, 1 failed or something is broken, 2 wrong usage or setup.
"""

import argparse
import sqlite3
import sys
from collections.abc import Sequence

import msgspec

from worker import __version__, inventory, log
from worker.cli import controllers, doctor, enrol, formatting, layout, restore, run_file, sandbox, uninstall
from worker.contract.inventory import BlockDevice, Controller, Inventory, PolicyTarget
from worker.journal import JournalError, LayoutRecord
from worker.kernel.files import is_full_disk
from worker.link.enrolment import POLICY_VARIABLE, STATE_VARIABLE, ConfigError, Paths, find_paths
from worker.link.targets import layouts_here, read_policy, report_targets_here

DESCRIPTION = "Runs storage benchmarks on this host, for a Sweetspot server or from a file."


def main(argv: Sequence[str] | None = None) -> int:
    options = build_parser().parse_args(argv)
    log.set_up(options.log_level)
    paths = find_paths(state=options.state, policy=options.policy)
    try:
        status: int = options.command(options, paths)
        return status
    except (ConfigError, JournalError) as error:
        print(f"sweetspot-worker: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        return 1
    except (OSError, sqlite3.OperationalError) as error:
        if not is_full_disk(error):
            raise
        print(f"sweetspot-worker: The disk of {paths.state} or of a target is full: {error}", file=sys.stderr)
        return 2


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sweetspot-worker", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"sweetspot-worker {__version__}")
    parser.add_argument("--state", metavar="DIR", help=f"state directory (or {STATE_VARIABLE})")
    parser.add_argument("--policy", metavar="FILE", help=f"policy file (or {POLICY_VARIABLE})")
    parser.add_argument("--log-level", default="INFO", metavar="LEVEL", help="DEBUG, INFO, WARNING or ERROR")
    commands_of = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add_to in (
        doctor.add_to,
        enrol.add_to,
        run_file.add_to,
        _add_short,
        restore.add_to,
        layout.add_to,
        controllers.add_to,
        sandbox.add_to,
        uninstall.add_to,
    ):
        add_to(commands_of)
    return parser


# The short commands: `start` and `inventory`.


def _add_short(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    start = commands.add_parser("start", help="take orders until stopped (the service)")
    start.set_defaults(command=run_start)
    inventory_parser = commands.add_parser("inventory", help="show this host's hardware, drives and targets")
    inventory_parser.add_argument("--json", action="store_true")
    inventory_parser.set_defaults(command=run_inventory)


def run_start(_options: argparse.Namespace, paths: Paths) -> int:
    from worker.service import serve  # Celery is not needed by any other command

    return serve(paths)


def run_inventory(options: argparse.Namespace, paths: Paths) -> int:
    taken = inventory.take()
    if options.json:
        print(msgspec.json.encode(taken).decode())
        return 0
    print("\n".join(_host_lines(taken)))
    head = ("device", "kind", "size", "model", "serial", "firmware", "scheduler", "held by")
    print("\n" + formatting.table(head, map(_device_row, taken.block_devices)))
    if taken.controllers:
        columns = ("controller", "model", "firmware", "drives", "tool")
        print("\n" + formatting.table(columns, map(_controller_row, taken.controllers)))
    allowed, _ = read_policy(paths.policy)
    targets, built = (report_targets_here(allowed, paths), layouts_here(paths)) if allowed else ((), {})
    rows = [(t.id, t.kind.value, t.path, _state(t, built.get(t.stable_id))) for t in targets]
    without = f"No targets: {paths.policy} allows nothing yet."
    print("\n" + (formatting.table(("target", "kind", "path", "state"), rows) if rows else without))
    return 0


def _state(target: PolicyTarget, layout: LayoutRecord | None) -> str:
    if not target.present:
        return target.problem
    return "ready" if layout is None else f"in use by layout {layout.key} of this worker ({layout.line})"


def _host_lines(host: Inventory) -> list[str]:
    cpu = host.cpu
    return [
        f"{host.hostname}: {host.distribution}" + (f" on {host.hypervisor}" if host.hypervisor else ""),
        f"CPU      {cpu.model}, {cpu.sockets} socket(s), {cpu.cores} core(s), {cpu.threads} thread(s) {cpu.governor}",
        f"Memory   {formatting.size(host.memory_bytes)}",
        f"Kernel   {host.kernel.release}",
    ]


def _controller_row(controller: Controller) -> tuple[str, ...]:
    shown = [f"{d.device or d.number} {d.level} {d.write_cache_now}".strip() for d in controller.virtual_drives]
    shown.append(f"{len(controller.physical_drives)} drive(s)")
    read_by = controller.problem or controller.tool
    return controller.address, controller.model, controller.firmware, ", ".join(shown), read_by


def _device_row(device: BlockDevice) -> tuple[str, ...]:
    holders = ", ".join(f"{h.kind} {h.detail}" for h in device.holders)
    name = device.path + (f" on {', '.join(device.parents)}" if device.parents else "")
    size = formatting.size(device.size_bytes)
    return (name, device.kind, size, device.model, device.serial, device.firmware, device.scheduler, holders or "–")
