"""`uninstall`: remove the worker from this host, after a person has confirmed the list.

Refused while the journal has something to undo or a folder to remove contains a mount. Devices and settings
are not touched; the worker created no users.
"""

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import msgspec

from worker import policy
from worker.cli import sandbox
from worker.cli.restore import confirmed, open_entries
from worker.contract.workload import TargetKind
from worker.guard.directories import PRIVATE, remove_private_directory
from worker.guard.refusal import GuardRefused
from worker.journal import Journal
from worker.kernel import mounts, usage
from worker.link.enrolment import SYSTEM_POLICY, SYSTEM_STATE, ConfigError, Paths, sole_use
from worker.policy import PolicyError
from worker.settings import SETTING_NAMES

HOME = Path("/opt/sweetspot-worker")
COMMAND = Path("/usr/local/bin/sweetspot-worker")


class Removal(msgspec.Struct, frozen=True):
    words: str
    remove: Callable[[], object]


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("uninstall", help="remove the worker, its service, its policy and its test files")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, paths: Paths) -> int:
    if os.geteuid() != 0:
        raise ConfigError("not_root", "Only root can uninstall the worker.")
    if paths != Paths(state=SYSTEM_STATE, policy=SYSTEM_POLICY):  # whole directories are removed
        raise ConfigError("other_paths", f"uninstall removes only the installation in {SYSTEM_STATE}, with its policy.")
    _refuse_open_entries(paths)
    _refuse_mounts(paths)
    removals = list(_removals(paths))
    if not confirmed([removal.words for removal in removals], sys.stdout, yes=options.yes):
        print("Nothing was changed.")
        return 1
    _stop_service()
    if _remove(removals, paths):
        return 1
    print("The worker is removed. Remove the host on the server too: its page, Manage.")
    return 0


def _stop_service() -> None:
    if not sandbox.is_service():
        return
    try:
        sandbox.systemctl("disable", "--now", sandbox.NAME)
    except subprocess.SubprocessError as error:
        raise ConfigError(
            "service_runs", f"systemd could not stop the service, nothing was removed: {error}"
        ) from error


def _remove(removals: list[Removal], paths: Paths) -> int:
    """The number of things that could not be removed. No worker can start in the meantime."""
    with sole_use(paths.state) if paths.state.exists() else nullcontext():
        _refuse_open_entries(paths)  # of a trial that ended just now
        _refuse_mounts(paths)
        return sum(not _removed(removal) for removal in removals)


def _removed(removal: Removal) -> bool:
    try:
        removal.remove()
    except (OSError, GuardRefused, subprocess.SubprocessError) as error:
        print(f"Not done: {removal.words}: {error}", file=sys.stderr)
        return False
    return True


def _refuse_open_entries(paths: Paths) -> None:
    """Raises ConfigError if the worker still has to undo something on this host."""
    if not paths.journal.exists():
        return
    journal = Journal(paths.journal)
    to_undo, unreadable = open_entries(journal, paths.state), journal.unreadable()
    journal.close()
    if to_undo or unreadable:
        names = "; ".join(f"{entry.name}: {entry.words}" for entry in to_undo) or "entries that cannot be read"
        raise ConfigError(
            "journal_open",
            f"The worker still has something to undo, so it was not removed: {names}. Stop the service and run "
            "“sweetspot-worker restore”, or “sweetspot-worker forget” for what you restored by hand.",
        )


def _refuse_mounts(paths: Paths) -> None:
    """Raises ConfigError if something is mounted in a folder that is removed: its files would be removed too."""
    table = usage.read_mounts(usage.table(Path("/proc/self/mountinfo")))
    for folder in _folders(paths):
        for mount in table:
            if Path(mount.point).is_relative_to(folder.resolve()):
                raise ConfigError(
                    "mounted",
                    f"{mount.source} is mounted on {mount.point}, so nothing was removed: its files would be removed "
                    f"too. Unmount it: umount {shlex.quote(mount.point)}",
                )


def _folders(paths: Paths) -> dict[Path, str]:
    return {paths.policy.parent: "the policy", paths.state: "enrolment, journal, unsent reports", HOME: "the program"}


def _removals(paths: Paths) -> Iterator[Removal]:
    """What is removed, in this order. Test files come first, because the policy names their directories."""
    yield from _test_files(paths)
    if sandbox.UNIT.exists() or sandbox.DROP_INS.exists():
        yield Removal(f"remove the service: {sandbox.UNIT} and {sandbox.DROP_INS}", _remove_unit)
    if COMMAND.is_symlink():
        yield Removal(f"remove {COMMAND}", COMMAND.unlink)
    for folder, what in _folders(paths).items():
        if folder.exists():
            yield Removal(f"remove {folder}: {what}", partial(mounts.remove_path, folder))


def _test_files(paths: Paths) -> Iterator[Removal]:
    try:
        allowed = policy.load(paths.policy, SETTING_NAMES)
    except PolicyError as error:
        print(f"Test files in directories of the policy are kept, because it cannot be read: {error}", file=sys.stderr)
        return
    for entry in allowed.targets:
        if entry.kind is TargetKind.DIRECTORY and (Path(entry.path) / PRIVATE).exists():
            words = f"remove {entry.path}/{PRIVATE}: everything in it, also files of others"
            yield Removal(words, partial(remove_private_directory, entry.path))


def _remove_unit() -> None:
    sandbox.UNIT.unlink(missing_ok=True)
    if sandbox.DROP_INS.exists():
        mounts.remove_path(sandbox.DROP_INS)
    if sandbox.is_booted():
        sandbox.systemctl("daemon-reload")
