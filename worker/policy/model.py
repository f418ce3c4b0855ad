"""The host administrator's permissions: targets, pools of drives, and settings of the host.

Everything that is not listed is refused. No message of the server can extend the list.
"""

from pathlib import Path

import msgspec

from worker.contract.base import Id, Name
from worker.contract.base import Path as AbsolutePath
from worker.contract.purge import PurgeMethod
from worker.contract.workload import TargetKind
from worker.policy.pools import Pool, pool_identity
from worker.stable_id import shortened

ALL_SETTINGS = "*"
ANY_SIGNATURE = "*"  # not allowed in a policy file: only for what the worker has built itself


class SettingNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names of the settings that this worker knows."""

    host: tuple[str, ...]  # settings of the whole host
    target: tuple[str, ...]  # settings of a device or its controller
    covered: tuple[str, ...]  # settings that "*" allows for a target: they do not risk data or affect other devices


class PolicyEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One `[[target]]`."""

    id: Id
    kind: TargetKind
    path: AbsolutePath  # of a slot: /<PCI address of the controller>/<enclosure>:<slot>
    stable_id: Name | None = None  # block: required; others: dir:<path>, file:<path>, slot:<serial>
    serial: str = ""  # block: required if the drive has one; slot: required
    destroy: bool = False  # block: an empty device may be overwritten; file: the content may be overwritten
    # Block: signatures that may be overwritten too, by the TYPE or PTTYPE of blkid(8), such as "ext4" and "gpt".
    destroy_signatures: tuple[str, ...] = ()
    purge: tuple[PurgeMethod, ...] = ()  # block: erase commands of the drive that `destroy` alone does not permit
    experimental: bool = False  # block and slot: methods that were not tested on real hardware
    settings: tuple[str, ...] = ()  # of the block device under the target; `load` expands "*"
    max_bytes: int | None = None  # directory: largest total size of the worker's files in it
    max_write_bytes: int | None = None  # limit of writes by one run to the drives under the target
    read_mounted: bool = False  # block: may be read while it is mounted or in use

    @property
    def identity(self) -> str:
        """The stable id under which the server knows the target."""
        if self.kind is TargetKind.SLOT:
            return shortened(f"slot:{self.serial}")
        prefix = "dir" if self.kind is TargetKind.DIRECTORY else "file"
        return self.stable_id or shortened(f"{prefix}:{self.path}")

    def purge_problem(self, method: PurgeMethod) -> str:
        """Why the policy does not permit this purge method; "" if it does. `destroy` alone permits discards."""
        if method is PurgeMethod.DISCARD:
            return ""
        missing = [] if method in self.purge else [f'purge = ["{method.value}"]']
        missing += [] if self.experimental else ["experimental = true (it was not tested on real hardware)"]
        return f"The policy does not permit it: {self.id} needs {' and '.join(missing)}." if missing else ""

    @property
    def arming_serial(self) -> str:
        """The text that a person types before the target may be overwritten."""
        return self.serial or self.identity


class HostPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[host]`: settings of the whole host, each by name. "*" is not allowed here."""

    settings: tuple[str, ...] = ()


class Policy(msgspec.Struct, frozen=True):
    path: Path
    targets: tuple[PolicyEntry, ...]
    host_settings: tuple[str, ...] = ()
    pools: tuple[Pool, ...] = ()

    def entry(self, target_id: str) -> PolicyEntry | None:
        return next((entry for entry in self.targets if entry.id == target_id), None)

    def drives(self, pool_id: str) -> tuple[PolicyEntry, ...]:
        """The drives of a pool in its order; () if the pool does not exist."""
        names = next((pool.drives for pool in self.pools if pool.id == pool_id), ())
        return tuple(entry for name in names if (entry := self.entry(name)))

    def identity(self, pool_id: str) -> str:
        """The stable id of a pool as a target; "" if the pool does not exist."""
        drives = ((drive.identity, drive.serial) for drive in self.drives(pool_id))
        return pool_identity(pool_id, drives) if any(pool.id == pool_id for pool in self.pools) else ""
