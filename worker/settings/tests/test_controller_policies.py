"""Policies of virtual drives through emulations of the controllers' tools, on a loop device that stands for the disk.

The block device, policy, journal and session are real; the folder that looks like /sys puts the device behind a
controller, and the tool is a program that keeps state. Nothing of it was tried on real hardware.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.contract.items import SettingRecord
from worker.contract.orders import SettingRequest
from worker.controllers.base import CachePolicy
from worker.controllers.tests.emulations import NAA, Emulation
from worker.guard.tests import rig
from worker.inventory.tests.functions import function, link, put
from worker.journal import Journal
from worker.kernel import sysfs
from worker.kernel.targets import OpenTarget
from worker.policy import Policy
from worker.settings import session, settings_facts
from worker.settings.base import SettingFailed, refused
from worker.settings.controller_policies import CONTROLLER_POLICIES, DRIVES, ControllerDrives

pytestmark = rig.needs_root
DRIVERS = {"storcli": "megaraid_sas", "MegaCli": "megaraid_sas", "ssacli": "hpsa", "areca-cli": "arcmsr"}
PLACES = {"areca-cli": "0:0:0:0"}
NAMES = [setting.name for setting in CONTROLLER_POLICIES]


class Rig:
    def __init__(self, directory: Path, device: str, allowed: list[str]) -> None:
        self.device = device
        entry = {"id": "drive", "kind": "block", "path": f"/dev/{device}", "stable_id": sysfs.stable_id(device)}
        self.policy: Policy = rig.load(directory, {**entry, "settings": allowed})
        self.journal = Journal(directory / "journal.db")

    def apply_settings(self, **values: str) -> list[SettingRecord]:
        requests = [SettingRequest(name=f"controller.{name}", value=value) for name, value in values.items()]
        open_targets = {0: OpenTarget(path=f"/dev/{self.device}", device=self.device, target="drive")}
        return session.apply_settings(requests, "run", open_targets, self.policy, self.journal)

    def fails(self, **values: str) -> SettingFailed:
        with pytest.raises(SettingFailed) as told:
            self.apply_settings(**values)
        return told.value

    def restore(self) -> list[tuple[str, str, bool]]:
        return [(told.name, told.observed, told.restored) for told in session.restore_run("run", self.journal)]


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with rig.loop(rig.sparse(tmp_path / "disk")) as path:
        yield path.removeprefix("/dev/")
        monkeypatch.undo()  # the host's own programs are needed to take it away


@pytest.fixture
def behind(tmp_path: Path, device: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like /sys and takes its open_target where drives behind controllers are looked for."""
    monkeypatch.setattr(DRIVES, "sys", tmp_path / "sys")
    monkeypatch.setattr(DRIVES, "_keys", {})
    monkeypatch.setattr(DRIVES, "_answers", {})
    return tmp_path / "sys"


def rig_of(tool: str, tmp_path: Path, device: str, sys: Path, *, naa: str = NAA) -> Rig:
    at = function(sys, "0000:03:00.0", "0x010400", DRIVERS[tool])
    open_target = PLACES.get(tool, "0:2:0:0")
    disk = at / "host0/target" / open_target
    put(disk / "block" / device, size="2048")
    if tool in ("storcli", "ssacli"):
        put(disk, wwid=f"naa.{naa}")
    link(disk / "block" / device / "device", disk)
    link(sys / "class/block" / device, disk / "block" / device)
    return Rig(tmp_path, device, NAMES)


def test_storcli_sets_and_restores_all_four(
    tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Emulation(tmp_path, monkeypatch, "storcli")
    drive = rig_of("storcli", tmp_path, device, behind)
    records = drive.apply_settings(
        write_cache="always write back", read_ahead="read ahead", io_policy="cached", disk_cache="disabled"
    )
    assert {(r.name, r.device, r.before, r.asked, r.observed) for r in records} == {
        ("controller.write_cache", device, "write back", "always write back", "always write back"),
        ("controller.read_ahead", device, "none", "read ahead", "read ahead"),
        ("controller.io_policy", device, "direct", "cached", "cached"),
        ("controller.disk_cache", device, "unchanged", "disabled", "disabled"),
    }
    assert [tool[name] for name in ("write", "read", "io", "disk")] == ["awb", "ra", "cached", "off"]
    facts = settings_facts([device])
    assert facts[f"device.{device}.controller.write_cache"] == "always write back"
    assert facts[f"device.{device}.controller.level"] == "RAID5"
    assert sorted(drive.restore()) == [
        ("controller.disk_cache", "unchanged", True), ("controller.io_policy", "direct", True),
        ("controller.read_ahead", "none", True), ("controller.write_cache", "write back", True),
    ]  # fmt: skip
    assert [tool[name] for name in ("write", "read", "io", "disk")] == ["wb", "nora", "direct", "default"]


def test_megacli_sets_adaptive_and_restores_the_mode_for_a_bad_battery(
    tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = Emulation(tmp_path, monkeypatch, "MegaCli", write="wt", bad="yes", disk="off")
    drive = rig_of("MegaCli", tmp_path, device, behind)
    drive.apply_settings(write_cache="write back", read_ahead="adaptive", io_policy="cached", disk_cache="enabled")
    assert [tool[name] for name in ("write", "bad", "read", "io", "disk")] == ["wb", "no", "adra", "cached", "on"]
    assert all(restored for _, _, restored in drive.restore())
    assert [tool[name] for name in ("write", "bad", "read", "io", "disk")] == ["wt", "yes", "nora", "direct", "off"]


@pytest.mark.parametrize("tool", ["ssacli", "areca-cli"])
def test_the_others_set_the_write_cache_alone(
    tool: str, tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = Emulation(tmp_path, monkeypatch, tool, battery="OK")
    drive = rig_of(tool, tmp_path, device, behind)
    drive.apply_settings(write_cache="write through")
    assert state["write"] == "wt"
    assert drive.restore() == [("controller.write_cache", "write back", True)]
    assert state["write"] == "wb"
    assert "supports write back, write through" in drive.fails(write_cache="always write back").message
    told = drive.fails(disk_cache="enabled").message
    assert ("cannot be set for one virtual drive" in told) or ("does not report its disk cache" in told)


@pytest.mark.parametrize(
    ("tool", "battery", "words"),
    [
        ("storcli", "Learning", "Its battery (CacheVault CVPM02): Learning."),
        ("MegaCli", "Degraded(Need Attention)", "Its battery (iBBU08): Degraded(Need Attention)."),
        ("ssacli", "Recharging", "Its battery (Capacitors): Recharging."),
    ],
)
def test_a_low_battery_changes_the_observed_value(
    tool: str, battery: str, words: str, tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = Emulation(tmp_path, monkeypatch, tool, write="wt", battery=battery)
    drive = rig_of(tool, tmp_path, device, behind)
    failed = drive.fails(write_cache="write back")
    assert failed.code == "setting_clamped"
    assert "the controller accepted it and uses write through (set to write back) instead." in failed.message
    assert words in failed.message
    (record,) = failed.records
    assert (record.asked, record.observed) == ("write back", "write through (set to write back)")
    assert drive.restore() == [("controller.write_cache", "write through", True)]
    assert state["write"] == "wt"


def test_a_low_battery_is_no_reason_to_leave_it_set_to_write_back(
    tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It works through now, and would write back as soon as the battery is charged."""
    state = Emulation(tmp_path, monkeypatch, "storcli", battery="Charging")
    drive = rig_of("storcli", tmp_path, device, behind)
    (record,) = drive.apply_settings(write_cache="write through")
    assert (record.before, record.observed) == ("write through (set to write back)", "write through")
    assert state["write"] == "wt"
    drive.restore()
    assert state["write"] == "wb"


@pytest.mark.parametrize(
    ("tool", "refuses", "words"),
    [
        ("storcli", "wt", "Operation not allowed (code 255)"),
        ("MegaCli", "WT", "the requested property is not supported"),
        ("ssacli", "disable", "not supported with the current configuration"),
        ("areca-cli", "yes", "Password Required."),
    ],
)
def test_a_refusal_has_the_tools_message(
    tool: str, refuses: str, words: str, tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = Emulation(tmp_path, monkeypatch, tool, battery="OK", refuses=refuses)
    drive = rig_of(tool, tmp_path, device, behind)
    failed = drive.fails(write_cache="write through")
    assert failed.code == "setting_refused"
    assert words in failed.message
    assert state["write"] == "wb"


def test_a_tool_that_silently_does_nothing_is_noticed(
    tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Emulation(tmp_path, monkeypatch, "storcli", ignores=True)
    drive = rig_of("storcli", tmp_path, device, behind)
    failed = drive.fails(io_policy="cached")
    assert (failed.code, failed.records[0].observed) == ("setting_clamped", "direct")


def test_a_value_that_cannot_be_restored_is_not_changed(
    tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = Emulation(tmp_path, monkeypatch, "MegaCli")
    drive = rig_of("MegaCli", tmp_path, device, behind)
    assert "'unchanged', which MegaCli could not restore" in drive.fails(disk_cache="enabled").message
    assert state["disk"] == "default"


def test_it_never_sets_another_disks_virtual_drive(
    tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody deletes the virtual drive and makes another one with its number, after we have found it."""
    state = Emulation(tmp_path, monkeypatch, "storcli")
    drive = rig_of("storcli", tmp_path, device, behind)
    drive.apply_settings(read_ahead="read ahead")
    state["naa"] = "600605b010cbe11029aeeba55d3e0000"
    state["asked"] = []
    monkeypatch.setattr("worker.settings.controller_policies.FRESH_S", 0.0)
    assert "lists no virtual drive for" in drive.fails(read_ahead="none").message
    assert not any("set" in asked.split() for asked in state["asked"])
    assert [restored for _, _, restored in drive.restore()] == [False]


def test_a_change_of_another_program_is_not_restored(
    tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = Emulation(tmp_path, monkeypatch, "storcli")
    drive = rig_of("storcli", tmp_path, device, behind)
    drive.apply_settings(write_cache="write through")
    state["write"] = "awb"
    monkeypatch.setattr("worker.settings.controller_policies.FRESH_S", 0.0)
    assert drive.restore() == [("controller.write_cache", "always write back", False)]
    assert state["write"] == "awb"


def test_a_killed_worker_puts_it_back_even_after_a_restart_of_the_host(
    tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = Emulation(tmp_path, monkeypatch, "storcli")
    drive = rig_of("storcli", tmp_path, device, behind)

    def set_and_die(device: str, policy: CachePolicy, value: str) -> None:
        ControllerDrives.set(DRIVES, device, policy, value)
        raise KeyboardInterrupt

    with monkeypatch.context() as dying:
        dying.setattr(DRIVES, "set", set_and_die)
        with pytest.raises(KeyboardInterrupt):
            drive.apply_settings(write_cache="write through")
    assert state["write"] == "wt"
    monkeypatch.setattr(drive.journal, "boot_id", "another start of the host")
    assert drive.restore() == [("controller.write_cache", "write back", True)]
    assert state["write"] == "wb"


def test_a_disk_without_such_a_controller_has_a_message(device: str, tmp_path: Path) -> None:
    drive = Rig(tmp_path, device, NAMES)
    assert drive.fails(write_cache="write back").code == "setting_no_controller"


def test_the_policy_must_name_it(tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Emulation(tmp_path, monkeypatch, "storcli")
    rig_of("storcli", tmp_path, device, behind)
    drive = Rig(tmp_path, device, ["*"])
    assert drive.fails(write_cache="write through").code == "setting_not_allowed"


@pytest.mark.parametrize("when", ["before it is read back", "after it is read back", "never"])
def test_a_tool_that_exceeded_its_time_limit_may_have_set_it(
    when: str, tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker kills storcli, but the firmware already has the command. It counts as written."""
    state = Emulation(tmp_path, monkeypatch, "storcli")
    drive = rig_of("storcli", tmp_path, device, behind)
    monkeypatch.setattr("worker.settings.controller_policies.FRESH_S", 0.0)

    def exceed(_device: str, _policy: CachePolicy, _value: str) -> None:
        if when.startswith("before"):
            state["write"] = "wt"
        raise refused("storcli did not finish within 10 s and was killed.")

    with monkeypatch.context() as slow:
        slow.setattr(DRIVES, "set", exceed)
        assert "did not finish" in drive.fails(write_cache="write through").message
    if when.startswith("after"):
        state["write"] = "wt"
    state["asked"] = []
    assert drive.restore() == [("controller.write_cache", "write back", True)]
    assert (state["write"], [each for each in state["asked"] if "set" in each]) == (
        "wb",
        ["/c0/v0 set wrcache=wb J nolog"],
    )
    assert drive.journal.baselines() == ()


def test_an_unreadable_read_back_counts_as_written(
    tmp_path: Path, device: str, behind: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = Emulation(tmp_path, monkeypatch, "storcli")
    drive = rig_of("storcli", tmp_path, device, behind)
    monkeypatch.setattr("worker.settings.controller_policies.FRESH_S", 0.0)
    real = DRIVES.read

    def silent(subject: str) -> object:
        if state["write"] == "wt":
            raise refused("storcli did not finish within 10 s and was killed.")
        return real(subject)

    with monkeypatch.context() as slow:
        slow.setattr(DRIVES, "read", silent)
        drive.fails(write_cache="write through")
        assert [restored for _, _, restored in drive.restore()] == [False]
    assert drive.restore() == [("controller.write_cache", "write back", True)]
    assert state["write"] == "wb"
