"""Layouts on virtual drives of emulated controllers; the file systems on them are real, on loop devices.

Nothing of it was tried on real hardware.
"""

import secrets
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from worker.contract.items import Item, Observed, Outcome, SettingRecord
from worker.contract.orders import Arming, LayoutRequest, TrialOrder
from worker.contract.workload import FioWorkload, IoEngine, Pattern, Stream, TargetRef
from worker.controllers.tests.arrays import ADDRESS, Shelf
from worker.engines.complete_files import CompleteFiles
from worker.guard.refusal import GuardRefused
from worker.guard.tests import rig
from worker.journal import Journal, LayoutRecord, MadeDrive
from worker.layouts import building, taking_down, virtual_drives
from worker.layouts.steps import Built, LayoutFailed
from worker.link.targets import report_targets
from worker.orders.context import HostContext, OrderContext
from worker.orders.trial import carry_out
from worker.process.control import Control
from worker.recipes.layouts.text import parse

pytestmark = rig.needs_root
DRIVES, DISKS = 8, 2


class Bench:
    def __init__(self, folder: Path, tool: str, disks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.shelf = Shelf(folder, monkeypatch, tool, drives=DRIVES, disks=disks)
        self.state = folder / "state"
        self.state.mkdir(mode=0o700)
        self.journal = Journal(self.state / "journal.db")
        targets = [
            {
                "id": f"s{n}",
                "kind": "slot",
                "path": f"/{ADDRESS}/252:{n}",
                "serial": f"SER{n}",
                "destroy": True,
                "experimental": True,
            }
            for n in range(DRIVES)
        ]
        self.policy = rig.load(folder, *targets, pools={"shelf": [f"s{n}" for n in range(DRIVES)]})
        self.armed = tuple(f"SER{n}" for n in range(DRIVES))

    def build(self, line: str, *, armed: tuple[str, ...] | None = None) -> Built:
        layout = parse(line)
        return building.build(
            layout, self.policy.targets[: layout.drives], self.armed if armed is None else armed,
            allowed=self.policy, key=secrets.token_hex(3), run="r1", state=self.state, journal=self.journal,
        )  # fmt: skip

    def take_down(self, record: LayoutRecord) -> None:
        taking_down.take_down(record, state=self.state, journal=self.journal)

    def assert_blank(self) -> None:
        assert (self.shelf.read()["vds"], self.shelf.states(), self.journal.layouts()) == ({}, {"good"}, ())


@pytest.fixture
def tool() -> str:
    return "storcli"


@pytest.fixture
def bench(tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(virtual_drives, "DISK_LIMIT_S", 1.0)
    monkeypatch.setattr(virtual_drives, "_LOOK_EVERY_S", 0.01)
    with ExitStack() as held:
        files = [rig.sparse(tmp_path / f"disk{n}.img", 400 * rig.MIB) for n in range(DISKS)]
        disks = [held.enter_context(rig.loop(file)) for file in files]
        yield Bench(tmp_path, tool, disks, monkeypatch)


@pytest.mark.parametrize("tool", ["storcli", "MegaCli"])
def test_it_makes_formats_reads_back_and_deletes(bench: Bench) -> None:
    line = "vd raid50 x8 spans 2 strip 64k wb ra direct pdcache=off / ext4 noatime"
    built = bench.build(line)
    found = building.read_back(parse(line), built)
    assert (found.words, found.wrong) == (line, ())
    assert Path(built.mount_point, "file").write_bytes(b"x") == 1
    ((drive),) = bench.shelf.read()["vds"].values()
    assert (drive["name"], drive["spans"], drive["bgi"]) == (f"ss-{built.record.key}-0", 2, "off")
    assert built.members == (drive["disk"],)
    existing = building.existing_layout(parse(line), bench.policy.targets, run="r1", journal=bench.journal)
    assert existing == built
    bench.take_down(built.record)
    bench.assert_blank()


def test_it_wipes_what_lay_there_and_takes_down_raw_ones(bench: Bench) -> None:
    rig.run("mkfs.ext4", "-q", "-F", f"/dev/{bench.shelf.read()['spare'][0]}")
    built = bench.build("vd raid0 x2 strip 256k")
    assert built.device == f"/dev/{built.members[0]}"
    assert rig.run("wipefs", "--noheadings", built.device) == ""
    bench.take_down(built.record)
    bench.assert_blank()


def test_it_builds_from_nothing_but_the_very_drives_unconfigured_and_good(bench: Bench) -> None:
    for slot, facts, code in (
        ("252:1", {"serial": "OTHER"}, "guard_serial_changed"),
        ("252:1", {"serial": "SER1", "state": "used"}, "guard_held"),
        ("252:1", {"state": "spare"}, "guard_held"),
        ("252:1", {"state": "foreign"}, "guard_held"),
        ("252:1", {"state": "bad"}, "guard_held"),
    ):
        bench.shelf.put(slot, **facts)
        with pytest.raises(GuardRefused) as refused:
            bench.build("vd raid0 x2 strip 64k")
        assert refused.value.code == code, refused.value
    assert [t.present for t in report_targets(bench.policy)][:3] == [True, False, True]
    assert (bench.shelf.read()["vds"], bench.journal.layouts()) == ({}, ())


def test_it_builds_nothing_that_nobody_armed_and_no_md_from_slots(bench: Bench) -> None:
    with pytest.raises(GuardRefused) as refused:
        bench.build("vd raid0 x2 strip 64k", armed=("SER0",))
    assert refused.value.code == "guard_not_armed"
    with pytest.raises(GuardRefused, match="layouts need block devices"):
        bench.build("raid0 x2 chunk 64k")
    assert bench.shelf.asked("add") + bench.shelf.asked("-Cfg") == []


def test_it_uses_no_slot_without_the_word_experimental(bench: Bench) -> None:
    slots = [msgspec.to_builtins(entry) for entry in bench.policy.targets]
    plain = [
        {name: slot[name] for name in ("id", "kind", "path", "serial", "destroy")}
        | {"experimental": slot["id"] == "s0"}
        for slot in slots
    ]
    bench.policy = rig.load(bench.folder, *plain)
    with pytest.raises(GuardRefused) as refused:
        bench.build("vd raid0 x2 strip 64k")
    assert (refused.value.code, "'s1'" in refused.value.message) == ("guard_experimental", True)
    assert ["experimental = true" in each.problem for each in report_targets(bench.policy)[:2]] == [False, True]
    bench.assert_blank()


def test_it_takes_down_after_a_crash_between_any_two_steps(bench: Bench) -> None:
    """The worker dies when the virtual drive is made and its disk is not yet known."""
    built = bench.build("vd raid1 x2 strip 64k / ext4")
    rig.unmount(built.mount_point)
    (made,) = built.record.virtual_drives
    for known in ((), (MadeDrive(made.name, made.wwn),)):
        half = msgspec.structs.replace(built.record, virtual_drives=known)
        bench.journal.save_layout(half)
        assert [array.disk for array in virtual_drives.arrays(parse(half.line), half)] == list(built.members)
    bench.take_down(bench.journal.layouts()[0])
    bench.assert_blank()


def test_it_forgets_a_layout_whose_virtual_drive_somebody_deleted(bench: Bench) -> None:
    built = bench.build("vd raid0 x2 strip 64k")
    bench.shelf.write(vds={}, drives={s: d | {"state": "good"} for s, d in bench.shelf.read()["drives"].items()})
    (bench.shelf.sys / "class/block" / built.members[0]).unlink()
    bench.take_down(built.record)
    bench.assert_blank()


@pytest.mark.parametrize("change", [{"name": "payroll"}, {"drives": ["252:0", "252:1", "252:2"]}, {"naa": "6" * 32}])
def test_it_leaves_alone_what_is_not_its_own_any_more(bench: Bench, change: dict[str, object]) -> None:
    built = bench.build("vd raid0 x2 strip 64k")
    vds = bench.shelf.read()["vds"]
    (number,) = vds
    bench.shelf.write(vds={number: vds[number] | change})
    with pytest.raises(LayoutFailed) as failed:
        bench.take_down(built.record)
    assert failed.value.code == "layout_foreign", failed.value
    assert list(bench.shelf.read()["vds"]) == [number]
    assert len(bench.journal.layouts()) == 1
    assert (
        building.existing_layout(parse(built.record.line), bench.policy.targets[:2], run="r1", journal=bench.journal)
        is None
    )


def test_it_says_what_the_tool_said_and_leaves_nothing(bench: Bench) -> None:
    bench.shelf.write(refuses="the firmware is busy")
    with pytest.raises(LayoutFailed, match="the firmware is busy"):
        bench.build("vd raid0 x2 strip 64k")
    bench.assert_blank()


def test_it_fails_where_no_disk_comes_of_it_and_deletes_it_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_drives, "_disk", lambda *_: "")
    with pytest.raises(LayoutFailed, match="shows no disk"):
        bench.build("vd raid0 x2 strip 64k")
    bench.assert_blank()


def test_it_sees_what_came_out_otherwise(bench: Bench) -> None:
    line = "vd raid5 x3 strip 64k wb"
    built = bench.build(line)
    (number, drive), *_ = bench.shelf.read()["vds"].items()
    cache = ["WT" if word == "WB" else "wt" if word == "wb" else word for word in drive["cache"]]
    bench.shelf.write(vds={number: drive | {"strip": "128", "cache": cache}})
    found = building.read_back(parse(line), built)
    assert found.words == "vd raid5 x3 strip 128k wt"
    assert found.wrong == ("the result is vd raid5 x3 strip 128k wt",)
    bench.take_down(built.record)
    bench.assert_blank()


def test_a_trial_measures_on_a_virtual_drive_and_the_next_one_finds_it(bench: Bench) -> None:
    line = "vd raid0 x2 strip 64k"
    found = {each.id: each for each in report_targets(bench.policy)}

    def ref(name: str) -> TargetRef:
        each = found[name]
        return TargetRef(id=each.id, kind=each.kind, path=each.path, stable_id=each.stable_id, serial=each.serial)

    def run(armed: tuple[str, ...]) -> tuple[Outcome, str, list[Item]]:
        now, items = time.time(), list[Item]()
        workload = FioWorkload(pattern=Pattern.RANDWRITE, ioengine=IoEngine.PSYNC, size_bytes=8 * rig.MIB, runtime_s=1)
        order = TrialOrder(
            host="h", attempt=str(uuid.uuid4()), issued_at=now, expires_at=now + 60, run="r1", trial="t",
            streams=(Stream(number=0, target=ref("shelf"), workload=workload),),
            layouts=(LayoutRequest(pool="shelf", layout=parse(line), drives=(ref("s0"), ref("s1"))),),
            arming=Arming(serials=armed, by="tester", until=now + 60),
        )  # fmt: skip
        files = CompleteFiles(bench.state / "files.db")
        host = HostContext(bench.state, bench.folder / "policy.toml", bench.journal, files)
        context = OrderContext(host=host, emit=items.append, control=Control(order.attempt))
        end = carry_out(order, context)
        files.close()
        return end.outcome, end.message, items

    for _ in range(2):
        outcome, message, items = run(bench.armed)
        assert outcome is Outcome.DONE, message
        (told,) = [item for item in items if isinstance(item, SettingRecord)]
        assert (told.asked, told.observed, told.device) == (line, line, bench.shelf.read()["vds"]["0"]["disk"])
        assert next(item.facts for item in items if isinstance(item, Observed))["layout"] == line
    assert run(("SER0",))[0] is Outcome.FAILED
    assert len(bench.shelf.asked("add vd")) == 1
    bench.take_down(bench.journal.layouts()[0])
    bench.assert_blank()
