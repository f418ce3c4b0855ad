"""Trials on layouts of real loop devices, without a server."""

import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from worker import guard
from worker.contract.array_action import ArrayAction, ArrayActionWorkload
from worker.contract.inventory import PolicyTarget, PurgeMethod
from worker.contract.items import (
    Direction,
    Finished,
    Item,
    Observed,
    Outcome,
    Purged,
    Sample,
    SensorKind,
    SettingRecord,
    SettingRestored,
    StreamResult,
    StreamStarted,
)
from worker.contract.orders import Arming, LayoutRequest, SettingRequest, TrialOrder
from worker.contract.workload import FioWorkload, IoEngine, Pattern, Stream, TargetRef
from worker.engines.complete_files import CompleteFiles
from worker.guard.refusal import GuardRefused
from worker.guard.tests import rig
from worker.journal import BY_HAND, Journal
from worker.kernel.tests import formats
from worker.layouts import building, steps
from worker.layouts.tests.rack import Rack, need, racked
from worker.link.registration import offered
from worker.link.targets import report_targets
from worker.orders.context import HostContext, OrderContext
from worker.orders.trial import carry_out
from worker.process.control import Control
from worker.recipes.layouts.commands import Step
from worker.recipes.layouts.text import parse

pytestmark = rig.needs_root
RUN = "run-1"


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    with racked(tmp_path) as made:
        yield made


def ref(found: PolicyTarget) -> TargetRef:
    return TargetRef(id=found.id, kind=found.kind, path=found.path, stable_id=found.stable_id, serial=found.serial)


def request_of(rack: Rack, pool: str, line: str) -> LayoutRequest:
    layout, targets = parse(line), {each.id: each for each in report_targets(rack.policy)}
    drives = [entry.id for entry in rack.policy.drives(pool)[: layout.drives]]
    return LayoutRequest(pool=pool, layout=layout, drives=tuple(ref(targets[drive]) for drive in drives))


def order(rack: Rack, line: str, *requests: SettingRequest, run: str = RUN, armed: tuple[str, ...] | None = None,
          pattern: Pattern = Pattern.RANDWRITE, pools: tuple[str, ...] = ("rack",)) -> TrialOrder:  # fmt: skip
    targets = {each.id: each for each in report_targets(rack.policy)}
    serials = rack.armed if armed is None else armed
    workload = FioWorkload(pattern=pattern, ioengine=IoEngine.PSYNC, size_bytes=8 * rig.MIB, runtime_s=1)
    now = time.time()
    return TrialOrder(
        host="h", attempt=str(uuid.uuid4()), issued_at=now, expires_at=now + 60, run=run, trial=str(uuid.uuid4()),
        streams=tuple(Stream(number=n, target=ref(targets[pool if line else "d3"]), workload=workload)
                      for n, pool in enumerate(pools)),
        layouts=tuple(request_of(rack, pool, line) for pool in pools if line),
        settings=requests, arming=Arming(serials=serials, by="tester", until=now + 60) if serials else None,
    )  # fmt: skip


def run(rack: Rack, asked: TrialOrder) -> tuple[Finished, list[Item]]:
    items: list[Item] = []
    files = CompleteFiles(rack.state / "files.db")
    host = HostContext(rack.state, rack.folder / "policy.toml", rack.journal, files)
    end = carry_out(asked, OrderContext(host=host, emit=items.append, control=Control(asked.attempt)))
    files.close()
    return end, items


def layouts_of(items: list[Item]) -> list[tuple[str, str]]:
    return [(item.asked, item.observed) for item in items if isinstance(item, SettingRecord) and item.name == "layout"]


def record_key(rack: Rack) -> str:
    """The part of the names of a layout that each build draws again."""
    (record,) = rack.journal.layouts()
    return record.key


def clear(rack: Rack) -> None:
    end, _ = run(rack, order(rack, ""))
    assert end.outcome is Outcome.DONE, end.message
    rack.assert_blank()


def test_it_keeps_a_layout_for_the_trials_that_want_the_same_and_takes_it_down_for_others(rack: Rack) -> None:
    keys = []
    for line in ("2 drives / btrfs raid1 noatime",) * 2 + ("single share 50% / ext4",):
        end, items = run(rack, order(rack, line))
        assert end.outcome is Outcome.DONE, end.message
        ((asked, observed),) = layouts_of(items)
        assert asked == observed == line
        facts = next(item.facts for item in items if isinstance(item, Observed))
        assert facts["layout"] == line
        assert not [key for key, value in facts.items() if record_key(rack) in value]
        names = sorted(Path(device).name for device in rack.devices[: 2 if "btrfs" in line else 1])
        started = next(item for item in items if isinstance(item, StreamStarted))
        result = next(item for item in items if isinstance(item, StreamResult))
        busy = [sensor.name for sensor in started.sensors if sensor.kind is SensorKind.UTILISATION]
        assert busy == (names if "btrfs" in line else [])
        assert result.device
        assert (result.device.device, result.device.write_bytes > 0) == (", ".join(names), True)
        (record,) = rack.journal.layouts()
        keys.append(record.key)
    assert keys[0] == keys[1] != keys[2]
    assert [item.observed for item in items if isinstance(item, SettingRestored)] == ["blank drives"]
    clear(rack)


def test_it_builds_the_layout_of_each_pool_and_measures_them_at_once(rack: Rack) -> None:
    line = "2 drives / btrfs raid1"
    end, items = run(rack, order(rack, line, pools=("rack", "back")))
    assert end.outcome is Outcome.DONE, end.message
    assert layouts_of(items) == [(line, line)] * 2
    facts = next(item.facts for item in items if isinstance(item, Observed))
    assert facts["layout"] == line
    names = [Path(device).name for device in rack.devices]
    results = sorted((item for item in items if isinstance(item, StreamResult)), key=lambda item: item.stream)
    devices = [item.device for item in results if item.device]
    assert [each.device for each in devices] == [", ".join(names[:2]), ", ".join(names[2:])]
    assert all(each.write_bytes for each in devices)
    built = {record.drives[0].path: record for record in rack.journal.layouts()}
    assert run(rack, order(rack, line, pools=("back",)))[0].outcome is Outcome.DONE
    assert rack.journal.layouts() == (built[rack.devices[2]],)  # the other one is not used
    clear(rack)


FIRST, SECOND = "2 drives / btrfs raid1", "single / ext4"


def of_two_layouts(
    rack: Rack, first: str = FIRST, second: str = SECOND, *, armed: tuple[str, ...] | None = None
) -> TrialOrder:
    """The first on d0 and d1, the second on d2, and on d3 if it has two drives."""
    asked = order(rack, first, pools=("rack", "back"), armed=armed)
    return msgspec.structs.replace(asked, layouts=(asked.layouts[0], request_of(rack, "back", second)))


def test_it_measures_two_different_layouts_at_once(rack: Rack) -> None:
    end, items = run(rack, of_two_layouts(rack))
    assert end.outcome is Outcome.DONE, end.message
    assert layouts_of(items) == [(FIRST, FIRST), (SECOND, SECOND)]
    facts = next(item.facts for item in items if isinstance(item, Observed))
    assert [facts[f"stream.{number}.file_system"] for number in (0, 1)] == ["btrfs", "ext4"]
    assert [facts[f"stream.{number}.layout"] for number in (0, 1)] == [FIRST, SECOND]
    assert "layout" not in facts
    names = [Path(device).name for device in rack.devices]
    results = sorted((item for item in items if isinstance(item, StreamResult)), key=lambda item: item.stream)
    devices = [item.device for item in results if item.device]
    assert [each.device for each in devices] == [", ".join(names[:2]), names[2]]
    assert all(each.write_bytes for each in devices)
    kept = {record.line: record for record in rack.journal.layouts()}
    assert run(rack, order(rack, SECOND, pools=("back",)))[0].outcome is Outcome.DONE
    assert rack.journal.layouts() == (kept[SECOND],)
    clear(rack)


def test_it_measures_two_different_arrays_at_once(rack: Rack) -> None:
    lines = "raid1 x2", "raid0 x2 chunk 64k"
    need(lines[0])
    end, items = run(rack, of_two_layouts(rack, *lines))
    assert end.outcome is Outcome.DONE, end.message
    assert layouts_of(items) == [(line, line) for line in lines]
    assert len([item for item in items if isinstance(item, StreamResult)]) == 2
    clear(rack)


def test_it_builds_neither_of_two_layouts_if_a_drive_of_the_second_is_not_armed(rack: Rack) -> None:
    end, items = run(rack, of_two_layouts(rack, armed=rack.armed[:2]))
    assert (end.outcome, end.code) == (Outcome.FAILED, "guard_not_armed")
    assert layouts_of(items) == []
    rack.assert_blank()


@pytest.fixture
def in_use(rack: Rack, tmp_path: Path) -> Iterator[None]:
    """The third drive, under the second layout, is mounted: it became so after the preview."""
    rack.allow("ext4")
    rig.run("mkfs.ext4", "-q", "-F", rack.devices[2])
    place = tmp_path / "mounted"
    place.mkdir()
    rig.run("mount", rack.devices[2], str(place))
    yield
    rig.unmount(str(place))


@pytest.mark.parametrize("purge", [None, PurgeMethod.DISCARD])
def test_it_overwrites_nothing_if_a_drive_of_the_second_layout_is_in_use(
    rack: Rack, in_use: None, purge: PurgeMethod | None
) -> None:
    end, items = run(rack, msgspec.structs.replace(of_two_layouts(rack), purge=purge))
    assert (end.outcome, end.code) == (Outcome.FAILED, "guard_mounted")
    assert not [item for item in items if isinstance(item, Purged | SettingRecord)]
    assert rack.journal.layouts() == ()


@pytest.mark.parametrize("armed", [2, 4])
def test_it_purges_nothing_if_the_layouts_cannot_be_built_then(rack: Rack, armed: int) -> None:
    """A drive of the second layout is not armed, or both layouts use the same drive."""
    asked = of_two_layouts(rack, armed=rack.armed[:armed])
    if armed == 4:
        asked = msgspec.structs.replace(asked, layouts=(request_of(rack, "rack", "3 drives / btrfs"), asked.layouts[1]))
    end, items = run(rack, msgspec.structs.replace(asked, purge=PurgeMethod.DISCARD))
    assert end.code == ("guard_not_armed" if armed == 2 else "layout_refused")
    assert not [item for item in items if isinstance(item, Purged)]


def test_it_takes_the_first_layout_down_if_the_second_cannot_be_built(rack: Rack) -> None:
    """The next order does: the same run may need the first one again."""
    with rack.files[2].open("r+b") as file:
        file.truncate(64 * 1024)
    rig.run("losetup", "--set-capacity", rack.devices[2])
    end, items = run(rack, of_two_layouts(rack))
    assert (end.outcome, end.code) == (Outcome.FAILED, "layout_refused")
    assert [asked for asked, _ in layouts_of(items)] == [FIRST]
    assert [record.line for record in rack.journal.layouts()] == [FIRST]
    clear(rack)


@pytest.mark.parametrize(
    ("lines", "command"),
    [
        ((FIRST, SECOND), "mkfs.ext4"),
        ((FIRST, SECOND), "mount"),
        (("raid1 x2", "raid0 x2 chunk 64k"), "mdadm"),
        (("raid1 x2 / ext4", "2 drives / lvm stripe 64k / xfs"), "pvcreate"),
        (("raid1 x2 / ext4", "2 drives / lvm stripe 64k / xfs"), "vgcreate"),
    ],
)
def test_a_worker_killed_in_the_middle_of_the_second_layout_leaves_nothing(
    rack: Rack, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, str], command: str
) -> None:
    """It is killed when `command` of the second layout has ended. Its next start takes down both."""
    for line in lines:
        need(line)
    run_step, drive = steps.run, rack.devices[2]

    def run_and_die(step: Step, **given: Any) -> str:
        said = run_step(step, **given)
        if step.argv[0] == command and drive in step.argv:
            os.kill(os.getpid(), signal.SIGKILL)
        return said

    asked, used = of_two_layouts(rack, *lines), 2 + parse(lines[1]).drives
    worker = os.fork()
    if not worker:
        with suppress(BaseException):  # the tests must not go on in this process
            monkeypatch.setattr(steps, "run", run_and_die)
            run(rack, asked)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) == -signal.SIGKILL
    assert [steps.read_content(device).blank for device in rack.devices] == [n >= used for n in range(4)]
    journal = Journal(rack.state / "journal.db")
    assert {record.line for record in journal.layouts()} == {*lines}
    assert all(item.restored for item in building.restore(journal.layouts(), state=rack.state, journal=journal))
    rack.assert_blank()


def test_it_builds_no_layouts_with_a_common_drive(rack: Rack) -> None:
    end, _ = run(rack, order(rack, "2 drives / btrfs raid1", pools=("back", "rack")))
    assert end.outcome is Outcome.DONE, end.message
    clear(rack)
    asked = order(rack, "single / ext4", pools=("back", "rack"))
    whole = msgspec.structs.replace(
        asked, layouts=(asked.layouts[0], request_of(rack, "rack", "4 drives / btrfs raid1"))
    )
    end, _ = run(rack, whole)
    assert (end.code, "use the same drive" in end.message, rack.journal.layouts()) == ("layout_refused", True, ())


def test_it_refuses_a_pool_without_a_layout(rack: Rack) -> None:
    asked = order(rack, "single / ext4", pools=("rack", "back"))
    end, _ = run(rack, msgspec.structs.replace(asked, layouts=asked.layouts[:1]))
    assert (end.code, rack.journal.layouts()) == ("layout_refused", ())


def test_it_refuses_the_same_pool_twice(rack: Rack) -> None:
    """Otherwise the second layout would be built on drives that the first one leaves unused."""
    asked = order(rack, "single / ext4")
    (stream,), (layout,) = asked.streams, asked.layouts
    again = msgspec.structs.replace(stream, number=1, target=msgspec.structs.replace(stream.target, path="/other"))
    twice = (msgspec.structs.replace(layout, layout=parse("single")), layout)
    end, _ = run(rack, msgspec.structs.replace(asked, streams=(stream, again), layouts=twice))
    assert (end.code, rack.journal.layouts()) == ("layout_refused", ())


def test_it_purges_the_drives_under_a_layout_that_is_taken_down_and_built_anew(rack: Rack) -> None:
    line = "2 drives / btrfs raid1"
    assert run(rack, order(rack, line))[0].outcome is Outcome.DONE
    (before,) = rack.journal.layouts()
    end, items = run(rack, msgspec.structs.replace(order(rack, line), purge=PurgeMethod.DISCARD))
    assert end.outcome is Outcome.DONE, end.message
    told = [item for item in items if isinstance(item, SettingRestored | Purged | SettingRecord)]
    names = [Path(device).name for device in rack.devices[:2]]
    assert [getattr(item, "device", "") for item in told] == [", ".join(names), *names, ", ".join(names)]
    (after,) = rack.journal.layouts()
    assert before.key != after.key
    clear(rack)


def with_action(asked: TrialOrder, action: ArrayAction, runtime_s: int) -> TrialOrder:
    """The order with a reader beside an action on the array."""
    (stream,) = asked.streams
    reader = FioWorkload(pattern=Pattern.RANDREAD, ioengine=IoEngine.PSYNC, size_bytes=8 * rig.MIB, runtime_s=1)
    works = {"reader": reader, "array": ArrayActionWorkload(action=action, runtime_s=runtime_s)}
    streams = tuple(
        msgspec.structs.replace(stream, number=number, name=name, workload=work)
        for number, (name, work) in enumerate(works.items())
    )
    return msgspec.structs.replace(asked, streams=streams)


@pytest.mark.parametrize("line", ["", "single / ext4", "2 drives / btrfs raid1"])
def test_an_array_action_without_an_md_array_is_refused_before_anything_is_built(rack: Rack, line: str) -> None:
    end, items = run(rack, with_action(order(rack, line), ArrayAction.REBUILD, 1))
    assert (end.code, "an array action needs" in end.message) == ("layout_refused", True), end.message
    assert layouts_of(items) == []
    rack.assert_blank()


def test_two_actions_on_one_array_are_refused_before_anything_is_built(rack: Rack) -> None:
    """The kernel's progress would be taken for that of both."""
    asked = with_action(order(rack, "raid1 x2"), ArrayAction.REBUILD, 1)
    check = msgspec.structs.replace(
        asked.streams[1], number=2, name="check", workload=ArrayActionWorkload(action=ArrayAction.CHECK)
    )
    end, items = run(rack, msgspec.structs.replace(asked, streams=(*asked.streams, check)))
    assert (end.code, "one action at a time" in end.message) == ("layout_refused", True), end.message
    assert layouts_of(items) == []
    rack.assert_blank()


@pytest.mark.skipif("md" not in offered(), reason="this host has no md")
def test_a_layout_is_built_again_after_a_rebuild_and_kept_after_a_check(rack: Rack) -> None:
    keys = []
    for action in (ArrayAction.CHECK, ArrayAction.REBUILD, ArrayAction.CHECK):
        end, items = run(rack, with_action(order(rack, "raid5 x3 chunk 64k"), action, 5))
        assert end.outcome is Outcome.DONE, end.message
        (record,) = rack.journal.layouts()
        keys.append(record.key)
        assert record.altered is (action is ArrayAction.REBUILD)
        result = next(item for item in items if isinstance(item, StreamResult) and item.stream == 1)
        (part,) = result.directions
        samples = [item.directions[0].bytes for item in items if isinstance(item, Sample) and item.stream == 1]
        assert (part.direction, part.bytes) == (Direction.RESYNC, sum(samples))
        assert part.bytes > 0
    assert keys[0] == keys[1] != keys[2]
    clear(rack)


def test_it_measures_a_raw_layout_as_a_device(rack: Rack) -> None:
    end, items = run(rack, order(rack, "single share 50%", SettingRequest(name="read_ahead_kb", value="64")))
    assert end.code == "setting_not_allowed", end.message  # the pool's drives allow no settings here
    end, items = run(rack, order(rack, "single share 50%"))
    assert end.outcome is Outcome.DONE, end.message
    assert layouts_of(items) == [("single share 50%", "single share 50%")]
    clear(rack)


def test_a_label_inside_a_new_array_is_left_of_an_earlier_use(rack: Rack) -> None:
    """It lies where the partition begins, so it is not seen on the drive itself, which the policy protects."""
    label = formats.zfs_label(64 * rig.MIB, 0)
    formats.write(str(rack.files[0]), tuple((rig.MIB + offset, content) for offset, content in label))
    end, _ = run(rack, order(rack, "single share 50%"))
    assert end.outcome is Outcome.DONE, end.message
    clear(rack)


@pytest.mark.parametrize("pattern", [Pattern.RANDREAD, Pattern.RANDWRITE])
def test_it_builds_on_nothing_that_nobody_armed(rack: Rack, pattern: Pattern) -> None:
    rig.run("mkfs.ext4", "-q", "-F", "-L", "precious", rack.devices[1])
    end, _ = run(rack, order(rack, "2 drives / btrfs raid0", armed=rack.armed[:1], pattern=pattern))
    assert end.code == "guard_not_armed", end.message
    assert rig.run("blkid", "-s", "LABEL", "-o", "value", rack.devices[1]) == "precious"


def test_it_uses_a_standing_layout_only_while_its_drives_are_armed(rack: Rack) -> None:
    assert run(rack, order(rack, "single / ext4"))[0].outcome is Outcome.DONE
    assert run(rack, order(rack, "single / ext4", armed=()))[0].code == "guard_not_armed"
    clear(rack)


def test_it_refuses_drives_that_are_not_the_pools_first_ones(rack: Rack) -> None:
    asked = order(rack, "single / ext4")
    (layout,) = asked.layouts
    for drives in (
        (order(rack, "").streams[0].target,),
        (msgspec.structs.replace(layout.drives[0], serial="X"),),
    ):
        wrong = msgspec.structs.replace(asked, layouts=(msgspec.structs.replace(layout, drives=drives),))
        assert run(rack, wrong)[0].code == "guard_not_in_policy"


def test_it_refuses_a_pool_that_was_changed_since(rack: Rack) -> None:
    asked = order(rack, "single / ext4")
    text = (rack.folder / "policy.toml").read_text()
    (rack.folder / "policy.toml").write_text(text.replace('"d0", "d1"', '"d1", "d0"'))
    assert run(rack, asked)[0].code == "guard_not_in_policy"


def test_it_leaves_alone_what_somebody_took_into_use(rack: Rack) -> None:
    assert run(rack, order(rack, "single / ext4"))[0].outcome is Outcome.DONE
    (record,) = rack.journal.layouts()
    rig.unmount(record.mount_point)
    rig.run("mkfs.ext4", "-q", "-F", "-L", "precious", rack.devices[0])
    end, _ = run(rack, order(rack, "single / xfs"))
    assert (end.code, rack.journal.layouts()) == ("layout_held", (record,))
    assert rig.run("blkid", "-s", "LABEL", "-o", "value", rack.devices[0]) == "precious"


def test_its_pool_stays_usable_while_its_own_layout_stands(rack: Rack) -> None:
    assert run(rack, order(rack, "single / ext4"))[0].outcome is Outcome.DONE
    present = {each.id: each.present for each in report_targets(rack.policy)}
    assert (present["d0"], present["rack"]) == (False, False)
    present = {each.id: each.present for each in report_targets(rack.policy, built_on=building.built_on(rack.journal))}
    assert (present["d0"], present["rack"]) == (True, True)
    with pytest.raises(GuardRefused), guard.lease_drives(rack.policy.targets[:1], rack.policy, rack.armed):
        pass
    clear(rack)


def test_it_leaves_alone_what_a_person_built_by_hand(rack: Rack) -> None:
    built = building.build(
        parse("single / ext4"), rack.policy.targets[:1], rack.armed,
        allowed=rack.policy, key="hand", run=BY_HAND, state=rack.state, journal=rack.journal,
    )  # fmt: skip
    assert run(rack, order(rack, ""))[0].outcome is Outcome.DONE  # on a drive of its own
    end, _ = run(rack, order(rack, "single / ext4"))
    assert (end.code, rack.journal.layouts()) == ("layout_held", (built.record,))
    rack.take_down(built)
    clear(rack)
