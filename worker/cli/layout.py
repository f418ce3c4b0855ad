"""`layout`: explain a layout line: its alignment and its commands. `--build` builds it.

`restore --layout KEY` takes a built layout down.
"""

import argparse
import secrets
import sys

import msgspec

from worker import policy
from worker.cli import formatting
from worker.contract.layouts import Layout, Maker
from worker.guard.refusal import GuardRefused
from worker.journal import BY_HAND, Journal
from worker.kernel import sysfs
from worker.layouts import building, steps
from worker.link.enrolment import Paths, prepare_state, sole_use
from worker.recipes.layouts import geometry
from worker.recipes.layouts.commands import Drive, Removal, Step, build_steps, tear_down_steps
from worker.recipes.layouts.geometry import Alignment, Verdict, capacity_share, whole_width_bytes
from worker.recipes.layouts.text import LayoutError, parse, sweep, write
from worker.settings import SETTING_NAMES

UNKNOWN_DRIVE_BYTES = 10**12  # for absent drives: only the partition of a share depends on it
KEY, MOUNT_POINT = "preview", "/run/sweetspot/preview"


class Shown(msgspec.Struct, frozen=True):
    """One layout of the line, as printed by `--json`."""

    layout: str
    drives: int
    data_share: float
    width_bytes: int | None
    alignment: tuple[Alignment, ...]
    build: tuple[Step, ...]
    take_down: tuple[Removal, ...]


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("layout", help="explain a layout: alignment and commands; or build it")
    parser.add_argument("line", help="for example “raid5 x5 chunk 64k / lvm stripe 256k / xfs”, or a sweep")
    parser.add_argument("--drive", action="append", default=[], metavar="PATH", help="device, once per drive")
    parser.add_argument("--build", nargs="+", default=[], metavar="TARGET", help="build it on these targets")
    parser.add_argument("--arm", action="append", default=[], metavar="SERIAL", help="serial of a drive to overwrite")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, paths: Paths) -> int:
    if options.build:
        return _build(options, paths)
    try:
        shown = [_shown(layout, options.drive) for layout in sweep(options.line)]
    except (LayoutError, ValueError) as error:
        print(f"sweetspot-worker: {error}.", file=sys.stderr)
        return 2
    if options.json:
        print(msgspec.json.encode(shown).decode())
    else:
        print("\n".join(_lines(shown[0]) if len(shown) == 1 else [_table(shown)]))
    return 0


def _build(options: argparse.Namespace, paths: Paths) -> int:
    try:
        allowed = policy.load(paths.policy, SETTING_NAMES)
        entries = [_entry(allowed, name) for name in options.build]
        prepare_state(paths.state)
        with sole_use(paths.state):
            made = building.build(
                parse(options.line),
                entries,
                tuple(options.arm),
                allowed=allowed,
                key=secrets.token_hex(3),
                run=BY_HAND,
                state=paths.state,
                journal=Journal(paths.journal),
            )
    except (LayoutError, policy.PolicyError) as error:
        print(f"sweetspot-worker: {error}.".replace("..", "."), file=sys.stderr)
        return 2
    except (GuardRefused, steps.LayoutFailed) as error:
        print(f"sweetspot-worker: {error} ({error.code})", file=sys.stderr)
        return 1
    place = made.mount_point or made.device
    words = f"{place}\nTo take it down: {building.removal_command(made.record)}"
    print(msgspec.json.encode(made).decode() if options.json else words)
    return 0


def _entry(allowed: policy.Policy, name: str) -> policy.PolicyEntry:
    entry = allowed.entry(name)
    if entry is None:
        listed = ", ".join(each.id for each in allowed.targets) or "nothing"
        raise policy.PolicyError("policy_invalid", f"{allowed.path} lists no target {name!r}; it lists {listed}")
    return entry


def _shown(layout: Layout, paths: list[str]) -> Shown:
    drives = tuple(_drive(path) for path in paths[: layout.drives] or _unnamed(layout))
    return Shown(
        layout=write(layout),
        drives=layout.drives,
        data_share=capacity_share(layout),
        width_bytes=whole_width_bytes(layout),
        alignment=geometry.alignment(layout, physical_block_bytes=_physical_block_bytes(drives)),
        build=build_steps(layout, drives, key=KEY, mount_point=MOUNT_POINT),
        take_down=tear_down_steps(layout, drives, key=KEY, mount_point=MOUNT_POINT),
    )


def _unnamed(layout: Layout) -> list[str]:
    if layout.maker is Maker.CONTROLLER:
        return [f"/storcli/0/252:{number}" for number in range(layout.drives)]
    return [f"/dev/DRIVE{number}n1" for number in range(1, layout.drives + 1)]


def _drive(path: str) -> Drive:
    name = sysfs.device_at(path)
    return Drive(path, (sysfs.size_bytes(name) if name else 0) or UNKNOWN_DRIVE_BYTES)


def _physical_block_bytes(drives: tuple[Drive, ...]) -> int:
    """The drives' largest physical block size; 4 KiB if none is known."""
    names = (sysfs.device_at(drive.path) for drive in drives)
    return max((sysfs.number(name, "queue/physical_block_size") or 0 for name in names if name), default=0) or 4096


def _lines(shown: Shown) -> list[str]:
    width = "no striping" if shown.width_bytes is None else f"data stripe width {formatting.size(shown.width_bytes)}"
    lines = [f"{shown.layout}: {shown.drives} drive(s), {shown.data_share:.0%} of the capacity for data, {width}.", ""]
    lines += [f"  {layer.layer}: {layer.verdict}. {layer.words}" for layer in shown.alignment]
    lines += ["", "Commands to build it:", *map(_command, shown.build)]
    lines += ["", "Commands to take it down:", *map(_command, shown.take_down)]
    return lines


def _command(step: Step) -> str:
    given = f"   <<< {step.stdin.strip()!r}" if step.stdin else ""
    return f"  {step.line}{given}"


def _table(layouts: list[Shown]) -> str:
    rows = [
        (
            each.layout,
            str(each.drives),
            f"{each.data_share:.0%}",
            formatting.size(each.width_bytes),
            ", ".join(a.layer for a in each.alignment if a.verdict == Verdict.MISALIGNED) or "–",
        )
        for each in layouts
    ]
    return formatting.table(("layout", "drives", "data", "stripe width", "misaligned"), rows)
