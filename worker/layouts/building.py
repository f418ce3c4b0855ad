"""Build a layout, from unused drives to a device or a mounted directory; use one again; read it back."""

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from worker import guard
from worker.contract.base import MAX_LABEL, MAX_TEXT
from worker.contract.items import SettingRestored
from worker.contract.layouts import BtrfsProfile, FileSystem, Layout, Maker, Raid, Stripe
from worker.contract.workload import MIB
from worker.guard.lease import Lease
from worker.inventory.devices import btrfs_profiles, geometry
from worker.journal import BY_HAND, Journal, LayoutDrive, LayoutRecord
from worker.kernel import sysfs, usage
from worker.layouts import steps, virtual_drives
from worker.layouts.steps import UDEV_LIMIT_S, Built, LayoutFailed
from worker.layouts.taking_down import drives_now, take_down
from worker.policy import Policy, PolicyEntry
from worker.process.run import ToolError, ask
from worker.recipes.layouts.commands import (
    EXT4_BLOCK_BYTES,
    Drive,
    Names,
    Step,
    array_paths,
    build_steps,
    part_path,
    share_bytes,
    top_path,
)
from worker.recipes.layouts.geometry import stripe_unit_bytes, whole_width_bytes
from worker.recipes.layouts.text import write

log = logging.getLogger(__name__)


def build(
    layout: Layout,
    entries: Sequence[PolicyEntry],
    armed_serials: tuple[str, ...],
    *,
    allowed: Policy,
    key: str,
    run: str,
    state: Path,
    journal: Journal,
    go_on: Callable[[], None] = lambda: None,
    stop_if_asked: Callable[[], None] = lambda: None,
) -> Built:
    """Build the layout on the policy's drives, in their order. After a failure, take everything down again.

    `go_on` is called before each command, `stop_if_asked` during commands; each may raise to stop.

    Raises GuardRefused for a drive that may not be used, LayoutFailed for a command that fails.
    """
    if len(entries) != layout.drives:
        raise LayoutFailed("layout_refused", f"The layout needs {layout.drives} drives, but {len(entries)} were given.")
    record: LayoutRecord | None = None
    try:
        with guard.lease_drives(entries, allowed, armed_serials, virtual=virtual_drives.is_made(layout)) as leases:
            guard.refuse_quarantined([lease.stable_id for lease in leases], state)
            record = LayoutRecord(
                key=key,
                run=run,
                line=write(layout),
                drives=tuple(_noted(entry, lease) for entry, lease in zip(entries, leases, strict=True)),
                mount_point=_mount_point(layout, key, state),
            )
            journal.save_layout(record)
            drives = tuple(Drive(lease.path, lease.size_bytes) for lease in leases)
            made: tuple[str, ...] = ()
            members = tuple(lease.name for lease in leases)
            if virtual_drives.is_made(layout):
                record, members = virtual_drives.make(layout, drives, record, journal=journal, go_on=go_on)
                made = virtual_drives.nodes(members, key)
            device = _run(layout, leases, made, record, state, go_on, stop_if_asked)
            return Built(record, device, record.mount_point, members)
    except BaseException:
        if record is not None:
            _undo(key, state, journal)
        raise


def _noted(entry: PolicyEntry, lease: Lease) -> LayoutDrive:
    """Record a slot by its own path, because the controller's tool may rename it."""
    if not lease.name:
        return LayoutDrive(entry.identity, entry.serial, entry.path)
    return LayoutDrive(lease.stable_id, lease.serial, lease.path)


def _mount_point(layout: Layout, key: str, state: Path) -> str:
    if layout.file_system is FileSystem.NONE:
        return ""
    point = state / "layouts" / key
    point.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(point)


def _run(
    layout: Layout,
    leases: tuple[Lease, ...],
    made: tuple[str, ...],
    record: LayoutRecord,
    state: Path,
    go_on: Callable[[], None],
    stop_if_asked: Callable[[], None],
) -> str:
    drives = tuple(Drive(lease.path, lease.size_bytes) for lease in leases)
    for step in build_steps(layout, drives, key=record.key, mount_point=record.mount_point, made=made):
        if step.by_controller:
            continue
        go_on()
        log.info("Layout %s: %s: %s", record.key, step.words, step.line)
        if step.wipes:
            _wipe(step.wipes, leases, state)
        else:
            _run_step(step, leases, state, stop_if_asked)
        steps.wait_for_udev(state=state)
        if step.makes:
            steps.await_node(step.makes)
    return steps.await_node(top_path(layout, drives, Names(record.key, made)))


def _wipe(path: str, leases: tuple[Lease, ...], state: Path) -> None:
    """A drive is wiped through its lease; a new virtual drive has none."""
    own_lease = next((lease for lease in leases if lease.path == path), None)
    if own_lease is not None:
        steps.wipe(path, own_lease.fd, state=state)
        return
    with steps.held_exclusively(path) as fd:
        steps.wipe(path, fd, state=state)


def _run_step(step: Step, leases: tuple[Lease, ...], state: Path, stop_if_asked: Callable[[], None]) -> None:
    """Hand over the drives that the command opens; all others stay held meanwhile."""
    with ExitStack() as handed_over:
        for lease in leases:
            if lease.name and (step.opens_all or not {lease.path, part_path(lease.path)}.isdisjoint(step.argv)):
                handed_over.enter_context(lease.handed_over())
        drives = tuple(lease.stable_id for lease in leases)
        steps.run(step, state=state, drives=drives, stop_if_asked=stop_if_asked)


def _undo(key: str, state: Path, journal: Journal) -> None:
    """Take the layout down. If that fails, it stays in the journal for the next start."""
    try:
        for record in journal.layouts():
            if record.key == key:
                take_down(record, state=state, journal=journal)
    except LayoutFailed as error:
        log.error("Layout %s could not be taken down: %s", key, error)


# Layouts of earlier trials: kept for a trial that needs the same one, otherwise taken down.

NAME = "layout"  # of the layout in reports, among names of settings
BLANK = "blank drives"


def existing_layout(layout: Layout, entries: Sequence[PolicyEntry], *, run: str, journal: Journal) -> Built | None:
    """The run's complete and unaltered layout with this line on these drives, else None.

    A layout with an array that is degraded, checked or rebuilt is not used again: its speed would be another one.
    """
    wanted = [(entry.identity, entry.serial) for entry in entries]
    unaltered = (record for record in journal.layouts(run) if not record.altered)
    for record in unaltered:
        if record.line == write(layout) and [(d.stable_id, d.serial) for d in record.drives] == wanted:
            return _whole(layout, record)
    return None


def _whole(layout: Layout, record: LayoutRecord) -> Built | None:
    try:
        now = drives_now(layout, record)
    except LayoutFailed:
        return None
    names = Names(record.key, now.made)
    top = Path(top_path(layout, now.drives, names))
    if not top.exists() or (record.mount_point and not os.path.ismount(record.mount_point)):
        return None
    if not all(map(_at_rest, array_paths(layout, now.drives, names))):
        return None
    return Built(record, os.path.realpath(top), record.mount_point, now.members)


def _at_rest(path: str) -> bool:
    """Whether an array has all members and no check or rebuild. Also true for a device that is not an md array."""
    name = Path(path).resolve().name
    return sysfs.attribute(name, "md/degraded") in ("", "0") and sysfs.attribute(name, "md/sync_action") in ("", "idle")


def of_runs(journal: Journal, run: str | None = None) -> tuple[LayoutRecord, ...]:
    """Layouts that were built by trials of one run, or of all runs."""
    return tuple(record for record in journal.layouts(run) if record.run != BY_HAND)


def removal_command(record: LayoutRecord) -> str:
    """The command that takes the layout down."""
    return f"sweetspot-worker restore --layout {record.key}" if record.run == BY_HAND else "sweetspot-worker restore"


def restore(records: Sequence[LayoutRecord], *, state: Path, journal: Journal) -> Iterator[SettingRestored]:
    """Take layouts down; yield a report item for each. A layout that cannot be taken down stays in the journal."""
    for record in records:
        note = ""
        try:
            take_down(record, state=state, journal=journal)
        except LayoutFailed as error:
            note = error.message
        yield SettingRestored(
            at=time.time(),
            name=NAME,
            device=", ".join(drive.path.rpartition("/")[2] for drive in record.drives)[:MAX_LABEL],
            value=BLANK,
            observed="" if note else BLANK,
            restored=not note,
            note=note[:MAX_TEXT],
        )


def overlaps(record: LayoutRecord, entries: Sequence[PolicyEntry]) -> bool:
    """True if the layout uses one of these drives."""
    return not {drive.stable_id for drive in record.drives}.isdisjoint(entry.identity for entry in entries)


def built_on(journal: Journal) -> dict[str, LayoutRecord]:
    """The layout of this worker on each drive that one uses, by the drive's stable id."""
    return {drive.stable_id: record for record in journal.layouts() for drive in record.drives}


# Compare requested mount options with those that the kernel shows for a mount (proc_pid_mountinfo(5)).
#
# The kernel hides options that have their default value, such as `commit=5` of ext4 and `commit=30` of btrfs
# (fs/ext4/super.c, ext4_show_options; fs/btrfs/super.c, btrfs_show_options). If a default depends on the machine,
# such as `thread_pool` of btrfs, a missing option proves nothing. Tested on Linux 6.18 with ext4, XFS and btrfs.

# Defaults: in effect if the kernel does not show the opposite.
_DEFAULTS = {
    "nodiscard": "discard",
    "auto_da_alloc": "noauto_da_alloc",
    "barrier": "nobarrier",
    "barrier=1": "nobarrier",
    "delalloc": "nodelalloc",
    "integrity": "nointegrity",
}
# Default values that the kernel hides, by file system.
_HIDDEN: dict[str, dict[str, tuple[str, ...]]] = {
    "ext4": {"commit": ("5", "0"), "max_batch_time": ("15000",), "data": ("ordered",)},
    "btrfs": {"commit": ("30",)},
}
_SAME = {"barrier=0": "nobarrier"}
_SIZE = re.compile(r"(\d+)([kmg])", re.I | re.ASCII)
_UNITS = {"k": 1024, "m": 1024**2, "g": 1024**3}


def observed(options: Sequence[str], shown: str, kind: str) -> tuple[str, ...]:
    """The requested options that are in effect, as the kernel spells them.

    `shown` is the complete list of the mount, `kind` its file system.
    """
    there = _by_name(shown)
    return tuple(option for option in options if _holds(option, there, kind))


def contradicted(options: Sequence[str], shown: str, kind: str) -> tuple[str, ...]:
    """The requested options that the kernel accepted but did not apply."""
    there = _by_name(shown)
    unseen = (option for option in options if not _holds(option, there, kind))
    return tuple(option for option in unseen if _must_be_seen(option.partition("="), there, kind))


def _must_be_seen(option: tuple[str, str, str], there: dict[str, str], kind: str) -> bool:
    """Whether the kernel would show the option: a flag or its opposite, or a value that is not the hidden default."""
    name, sign, _ = option
    return not sign or name in there or name in _HIDDEN.get(kind, {})


def _by_name(shown: str) -> dict[str, str]:
    pairs = (option.partition("=") for option in shown.split(","))
    return {name: value for name, _, value in pairs}


def _holds(option: str, there: dict[str, str], kind: str) -> bool:
    if opposite := _DEFAULTS.get(option):
        return not any(name == opposite for name in there)
    name, _, value = _SAME.get(option, option).partition("=")
    if name not in there:
        return value in _HIDDEN.get(kind, {}).get(name, ())
    return _plain(there[name]) == _plain(value) or (bool(value) and there[name].startswith(f"{value}:")) or not value


def _plain(value: str) -> str:
    """`256k` is 262144."""
    size = _SIZE.fullmatch(value)
    return str(int(size[1]) * _UNITS[size[2].lower()]) if size else value


# Read the layout back from the kernel and LVM after building.


class Observed(msgspec.Struct, frozen=True):
    """`layout` has the observed values, and the requested values of properties that cannot be read."""

    layout: Layout
    wrong: tuple[str, ...]  # options that were accepted but not applied

    @property
    def words(self) -> str:
        return write(self.layout)


def read_back(asked: Layout, built: Built) -> Observed:
    """Raises LayoutFailed if a property cannot be read."""
    names = Names(built.record.key)
    layout = _drives(asked, built)
    layout = _arrays(layout, built.record, names)
    layout = _stripe(layout, names)
    mount = _mount(built) if built.mount_point else None
    if mount is not None:
        layout = _file_system(layout, built, mount)
    shown, kind = (mount.options, mount.kind) if mount else ("", "")
    denied = contradicted(asked.mount_options, shown, kind)
    wrong = [f"{option} was accepted but is not in effect" for option in denied]
    # Options that the kernel hides (see mount_options) stay as requested.
    plain = msgspec.structs.replace(layout, mount_options=asked.mount_options)
    if plain != asked:
        wrong.append(f"the result is {write(plain)}")
    shown_options = tuple(option for option in asked.mount_options if option not in denied)
    return Observed(msgspec.structs.replace(layout, mount_options=shown_options), tuple(wrong))


def _drives(layout: Layout, built: Built) -> Layout:
    """The share of each drive that its partition covers."""
    if layout.share_percent == 100:
        return layout
    shares = set()
    for name in built.members:
        there, whole = _partition_bytes(name), sysfs.size_bytes(name)
        share = share_bytes(whole, layout.share_percent)
        shares.add(layout.share_percent if there == share else round(100 * there / max(whole - 2 * MIB, 1)))
    return msgspec.structs.replace(layout, share_percent=max(1, min(shares)))


def _partition_bytes(drive: str) -> int:
    """Size of its only partition. While the kernel reads the table again, which udev may ask for, there is none.

    Raises LayoutFailed.
    """
    until = time.monotonic() + UDEV_LIMIT_S
    while True:
        there = [size for part in sysfs.partitions(drive) if (size := sysfs.size_bytes(part))]
        if len(there) == 1:
            return there[0]
        if time.monotonic() > until:
            raise LayoutFailed("layout_clamped", f"{drive} has {len(there)} partitions instead of 1.")
        time.sleep(0.05)


def _arrays(layout: Layout, record: LayoutRecord, names: Names) -> Layout:
    if layout.raid is Raid.NONE:
        return layout
    if layout.maker is Maker.CONTROLLER:
        return virtual_drives.read_back(layout, record)
    arrays = {_array(names.md(number)) for number in range(layout.arrays)}
    if len(arrays) != 1:
        raise LayoutFailed("layout_clamped", f"The arrays of {write(layout)} differ from each other.")
    level, members, chunk_bytes = arrays.pop()
    chunk = chunk_bytes if layout.chunk_bytes else None
    return msgspec.structs.replace(layout, raid=Raid(level), drives_per_array=members, chunk_bytes=chunk)


def _array(path: str) -> tuple[str, int, int | None]:
    shape = geometry(Path(path).resolve().name, {})
    if shape is None or shape.level not in set(Raid):
        raise LayoutFailed("layout_clamped", f"{path} is not an md array, or has an unknown level.")
    return shape.level, shape.members, shape.chunk_bytes


def _stripe(layout: Layout, names: Names) -> Layout:
    if layout.stripe is Stripe.MD:
        _level, arrays, chunk_bytes = _array(names.md_stripe)
        return msgspec.structs.replace(layout, arrays=arrays, stripe_bytes=chunk_bytes)
    if layout.stripe is Stripe.LVM:
        stripes, stripe_bytes = _numbers("lvs", "stripes,stripe_size", f"{names.group}/data")
        (extent_bytes,) = _numbers("vgs", "vg_extent_size", names.group)
        given = {"arrays": stripes, "extent_bytes": extent_bytes} | (
            {"stripe_bytes": stripe_bytes} if stripes > 1 else {}
        )
        return msgspec.structs.replace(layout, **given)
    return layout


def _numbers(program: str, fields: str, of: str) -> list[int]:
    try:
        output = ask(program, "--noheadings", "--nosuffix", "--units", "b", "--options", fields, of)
    except ToolError as error:
        raise LayoutFailed("layout_tool_missing", str(error)) from error
    words = output.out.split()
    if output.exit_code != 0 or len(words) != len(fields.split(",")) or not all(word.isdigit() for word in words):
        raise LayoutFailed("layout_refused", f"{program} did not report {fields} of {of}: {output.err.strip()}")
    return [int(word) for word in words]


def _mount(built: Built) -> usage.Mount:
    mounts = usage.read_mounts(usage.table(Path("/proc/self/mountinfo")))
    mounted = [mount for mount in mounts if mount.point == built.mount_point]
    if not mounted:
        raise LayoutFailed("layout_gone", f"{built.mount_point} is no longer mounted.")
    return mounted[-1]


def _file_system(layout: Layout, built: Built, mount: usage.Mount) -> Layout:
    known = FileSystem(mount.kind) if mount.kind in set(FileSystem) else FileSystem.NONE
    seen = msgspec.structs.replace(layout, file_system=known, told_geometry=_told(layout, mount))
    return _btrfs(seen, built) if known is FileSystem.BTRFS else seen


def _told(layout: Layout, mount: usage.Mount) -> bool:
    """XFS shows sunit and swidth in sectors of 512 bytes, ext4 shows stripe in blocks; others have no geometry."""
    unit, width = stripe_unit_bytes(layout), whole_width_bytes(layout)
    if unit is None or width is None or mount.kind not in (FileSystem.XFS, FileSystem.EXT4):
        return layout.told_geometry
    shown = dict(option.partition("=")[::2] for option in mount.options.split(","))
    if mount.kind == FileSystem.EXT4:
        return shown.get("stripe") == str(width // EXT4_BLOCK_BYTES)
    return (shown.get("sunit"), shown.get("swidth")) == (str(unit // 512), str(width // 512))


def _btrfs(layout: Layout, built: Built) -> Layout:
    profiles = btrfs_profiles(built.members)
    data = profiles.get("data", "")
    if data not in set(BtrfsProfile) or len(set(profiles.values())) != 1:
        profile_words = ", ".join(f"{kind} {profile}" for kind, profile in profiles.items()) or "nothing"
        raise LayoutFailed(
            "layout_clamped", f"btrfs {layout.btrfs_profile} was requested; the kernel shows {profile_words}."
        )
    return msgspec.structs.replace(layout, btrfs_profile=BtrfsProfile(data))
