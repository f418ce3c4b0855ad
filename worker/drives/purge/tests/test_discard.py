"""A loop device is really discarded, under the guard, and what is known of it follows."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from worker import guard
from worker.contract.inventory import PurgeMethod
from worker.contract.items import Finished, Item, Outcome, Phase, Purged
from worker.contract.orders import Arming, PurgeOrder
from worker.contract.workload import TargetRef
from worker.drives import purge
from worker.drives.records import DriveState
from worker.engines.complete_files import CompleteFiles
from worker.guard.refusal import GuardRefused
from worker.guard.tests import rig
from worker.journal import Journal
from worker.kernel.signatures import identity
from worker.link.registration import PurgeOffers
from worker.link.targets import report_targets
from worker.orders.context import HostContext, OrderContext
from worker.orders.executor import purge_drive
from worker.policy import Policy
from worker.process.control import Control

pytestmark = rig.needs_root
NOW = 1_790_000_000.0


class Lab:
    """One loop device full of data, and a policy that lets it be destroyed."""

    def __init__(self, folder: Path, device: str, file: Path) -> None:
        self.device, self.name, self.file = device, Path(device).name, file
        self.allowed: Policy = rig.load(folder, rig.block(device, file, destroy=True))
        journal, files = Journal(folder / "journal.db"), CompleteFiles(folder / "files.db")
        self.host = HostContext(folder, self.allowed.path, journal, files)
        self.drives = self.host.drives
        self.items: list[Item] = []
        self.target = TargetRef(**{n: getattr(rig.stream(self.allowed).target, n) for n in TargetRef.__struct_fields__})

    def order(self, **changes: object) -> PurgeOrder:
        arming = Arming(serials=(f"loop:{self.file}",), by="olga", until=NOW + 60)
        fields = {"method": PurgeMethod.DISCARD, "arming": arming, "target": self.target, **changes}
        return PurgeOrder(host="h", attempt="a", issued_at=NOW, expires_at=NOW + 300, **fields)  # type: ignore[arg-type]

    def carry_out(self, order: PurgeOrder, control: Control | None = None) -> Finished:
        context = OrderContext(
            host=self.host, emit=self.items.append, control=control or Control("a"), server_now=lambda: NOW
        )
        return purge_drive(order, context)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    file = tmp_path / "disk.img"
    file.write_bytes(os.urandom(4096) * 1024)
    with rig.loop(file) as device:
        yield Lab(tmp_path, device, file)


def test_a_loop_device_offers_a_discard(lab: Lab) -> None:
    assert [(offer.method, offer.problem) for offer in purge.offers(lab.name)] == [(PurgeMethod.DISCARD, "")]


def test_it_is_discarded_reads_as_zeros_and_is_known_as_purged(lab: Lab) -> None:
    assert lab.drives.state(lab.name) is DriveState.UNKNOWN
    end = lab.carry_out(lab.order())
    assert end.outcome is Outcome.DONE, end.message
    told = next(item for item in lab.items if isinstance(item, Purged))
    assert (told.device, told.zeros_promised, told.samples_not_zero) == (lab.name, True, 0)
    assert told.samples > 10
    assert told.commands == (f"BLKDISCARD {lab.device} 0 {4096 * 1024}",)
    assert any(isinstance(item, Phase) and item.name == "purge" for item in lab.items)
    assert lab.file.stat().st_blocks == 0
    assert not any(lab.file.read_bytes())
    assert lab.drives.state(lab.name) is DriveState.PURGED
    with open(lab.device, "r+b", buffering=0) as somebody:  # noqa: PTH123 - a device
        somebody.write(b"x" * 4096)
        os.fsync(somebody.fileno())
    assert lab.drives.state(lab.name) is DriveState.UNKNOWN


def untouched(lab: Lab, end: Finished, code: str) -> None:
    assert (end.outcome, end.code) == (Outcome.FAILED, code), end.message
    assert lab.file.stat().st_blocks > 0
    assert any(lab.file.read_bytes())


def test_it_needs_an_arming_in_time_for_this_very_drive(lab: Lab) -> None:
    late = Arming(serials=(f"loop:{lab.file}",), by="olga", until=NOW - 1)
    untouched(lab, lab.carry_out(lab.order(arming=late)), "guard_arming_expired")
    other = Arming(serials=("S4EWNX0R512345",), by="olga", until=NOW + 60)
    untouched(lab, lab.carry_out(lab.order(arming=other)), "guard_not_armed")


def test_the_policy_must_allow_it(lab: Lab, tmp_path: Path) -> None:
    lab.allowed = rig.load(tmp_path, rig.block(lab.device, lab.file))
    end = lab.carry_out(lab.order())
    untouched(lab, end, "guard_not_destroyable")


def test_it_leaves_a_mounted_drive_alone(lab: Lab, tmp_path: Path) -> None:
    with rig.mounted(lab.device, tmp_path / "point"):
        untouched(lab, lab.carry_out(lab.order()), "guard_mounted")


ERASES = sorted(set(PurgeMethod) - {PurgeMethod.DISCARD})


def test_it_refuses_what_the_drive_does_not_offer(lab: Lab, tmp_path: Path) -> None:
    permitted = {"purge": [method.value for method in ERASES], "experimental": True}
    rig.load(tmp_path, rig.block(lab.device, lab.file, destroy=True, **permitted))
    for method in ERASES:
        untouched(lab, lab.carry_out(lab.order(method=method)), "purge_not_offered")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({}, 'needs purge = ["nvme_format"] and experimental = true'),
        ({"experimental": True}, 'needs purge = ["nvme_format"].'),
        ({"purge": ["nvme_format"]}, "needs experimental = true"),
        ({"purge": ["ata_secure_erase"], "experimental": True}, 'needs purge = ["nvme_format"].'),
    ],
)
def test_destroy_alone_permits_no_erase_command(lab: Lab, tmp_path: Path, more: dict[str, Any], words: str) -> None:
    allowed = rig.load(tmp_path, rig.block(lab.device, lab.file, destroy=True, **more))
    end = lab.carry_out(lab.order(method=PurgeMethod.NVME_FORMAT))
    untouched(lab, end, "guard_purge_not_permitted")
    assert words in end.message
    offers = PurgeOffers().added(report_targets(allowed), allowed, refresh=True)[0].purges
    assert [(offer.method, offer.problem) for offer in offers] == [(PurgeMethod.DISCARD, "")]


def test_a_cancelled_discard_is_broken_off_and_leaves_an_unknown_drive(lab: Lab) -> None:
    assert lab.carry_out(lab.order()).outcome is Outcome.DONE
    control = Control("a")
    control.cancel()
    end = lab.carry_out(lab.order(), control)
    assert (end.outcome, end.code) == (Outcome.CANCELLED, "cancelled")
    assert lab.drives.state(lab.name) is DriveState.UNKNOWN


def test_a_partition_is_not_purged(lab: Lab) -> None:
    rig.run("sh", "-c", f"echo 'start=2048' | sfdisk --quiet {lab.device}")
    rig.run("partx", "--update", lab.device)
    stable_id = identity(f"{lab.name}p1")
    entry = rig.block(f"{lab.device}p1", lab.file, destroy=True) | {"stable_id": stable_id}
    allowed = rig.load(lab.allowed.path.parent, entry)
    target = TargetRef(id="disk", kind=lab.target.kind, path=f"{lab.device}p1", stable_id=stable_id)
    with (
        pytest.raises(GuardRefused, match="partition"),
        guard.lease_drive(target, allowed, (stable_id,), PurgeMethod.DISCARD),
    ):
        pass
