"""A program that cannot be killed: its drive is quarantined, over restarts of the worker, until it is gone."""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker import guard
from worker.cli import main
from worker.cli.doctor import examine
from worker.contract.inventory import QUARANTINED
from worker.contract.items import Finished, Item, Outcome
from worker.contract.orders import Arming, TrialOrder
from worker.contract.workload import FioWorkload, IoEngine, Pattern, Stream
from worker.engines.base import State
from worker.engines.complete_files import CompleteFiles
from worker.guard.refusal import GuardRefused
from worker.guard.tests import rig
from worker.journal import Baseline, Journal
from worker.layouts import building
from worker.layouts.tests.rack import racked
from worker.link.enrolment import Paths
from worker.link.targets import layouts_here, report_targets, report_targets_here
from worker.orders.context import HostContext, OrderContext
from worker.orders.trial import carry_out
from worker.process.control import Control
from worker.process.scope import Scope, kill_leftovers, stuck_scopes
from worker.settings import session

pytestmark = rig.needs_root


class Host:
    def __init__(self, folder: Path, device: str, file: Path) -> None:
        self.state, self.file = folder, file
        self.policy = rig.load(folder, rig.block(device, file, destroy=True))
        files = CompleteFiles(folder / "files.db")
        self._context = HostContext(folder, self.policy.path, Journal(folder / "journal.db"), files)
        self.items: list[Item] = []

    def trial(self) -> Finished:
        target, now = rig.stream(self.policy).target, time.time()
        work = FioWorkload(pattern=Pattern.RANDWRITE, ioengine=IoEngine.PSYNC, size_bytes=rig.MIB, runtime_s=1)
        order = TrialOrder(
            host="h", attempt=str(uuid.uuid4()), issued_at=now, expires_at=now + 60, run="r", trial="t",
            streams=(Stream(number=0, target=target, workload=work),),
            arming=Arming(serials=(target.stable_id,), by="tester", until=now + 60),
        )  # fmt: skip
        return carry_out(order, OrderContext(host=self._context, emit=self.items.append, control=Control("a")))

    def problem(self) -> str:
        return report_targets(self.policy, quarantined=guard.quarantined(self.state))[0].problem


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    file = rig.sparse(tmp_path / "disk.img")
    with rig.loop(file) as device:
        yield Host(tmp_path, device, file)


@pytest.fixture
def unkillable(host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """fio waits for its device for ever, as far as the worker can see."""
    with monkeypatch.context() as stuck:
        stuck.setattr(Scope, "kill", lambda _scope: False)
        stuck.setattr(Scope, "is_gone", False)
        yield stuck


def test_nothing_runs_on_a_drive_whose_program_cannot_be_killed(host: Host, unkillable: pytest.MonkeyPatch) -> None:
    end = host.trial()
    assert (end.outcome, end.code) == (Outcome.FAILED, "process_stuck")
    end = host.trial()
    assert (end.outcome, end.code) == (Outcome.FAILED, "guard_quarantined")
    assert host.problem().startswith(QUARANTINED)
    kill_leftovers(host.state)  # the next start of the worker
    assert host.trial().code == "guard_quarantined"
    unkillable.undo()  # the drive has answered
    assert host.problem() == ""
    end = host.trial()
    assert end.outcome is Outcome.DONE, end.message


def test_doctor_and_inventory_know_a_quarantined_drive(
    host: Host, unkillable: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = Paths(state=host.state, policy=host.policy.path)
    assert states(paths) == [("target", State.OK)]
    host.trial()
    assert states(paths) == [("quarantine", State.BROKEN)]
    (target,) = report_targets_here(host.policy, paths)
    assert (target.present, target.problem.startswith(QUARANTINED)) == (False, True)
    capsys.readouterr()
    assert main(["--state", str(host.state), "--policy", str(host.policy.path), "inventory"]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("disk "))
    assert QUARANTINED in row


def states(paths: Paths) -> list[tuple[str, State]]:
    """Of the checks of targets, without warnings."""
    names = ("target", "quarantine", "layout")
    found = [(check.name, check.state) for check in examine(paths) if check.name in names]
    return [each for each in found if each != ("target", State.NOTE)]


def test_doctor_and_inventory_know_what_the_worker_has_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with racked(tmp_path) as rack:
        paths = Paths(state=rack.state, policy=rack.policy.path)
        key = rack.build("single / ext4").record.key
        assert {drive: record.key for drive, record in layouts_here(paths).items()} == {rack.armed[0]: key}
        assert states(paths).count(("target", State.BROKEN)) == 0
        assert states(paths).count(("layout", State.NOTE)) == 1
        (first, *others) = report_targets_here(rack.policy, paths)
        assert (first.present, {other.present for other in others}) == (True, {True})
        assert main(["--state", str(rack.state), "--policy", str(rack.policy.path), "inventory"]) == 0
        rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.startswith("d")}
        assert (key in rows["d0"], key in rows["d1"]) == (True, False)
        for _item in building.restore(rack.journal.layouts(), state=rack.state, journal=rack.journal):
            pass
        assert layouts_here(paths) == {}


def test_a_person_ends_the_quarantine_by_name(
    host: Host, unkillable: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    host.trial()
    (scope,) = stuck_scopes(host.state)
    assert scope.drives == (f"loop:{host.file}",)
    options = ["--state", str(host.state), "--policy", str(host.policy.path)]
    assert main([*options, "forget"]) == 0
    assert f"{scope.name}: a program that cannot be killed" in capsys.readouterr().out
    assert main([*options, "forget", "--yes", scope.name]) == 0
    assert guard.quarantined(host.state) == {}


def test_a_purge_and_a_layout_keep_off_a_quarantined_drive(host: Host, unkillable: pytest.MonkeyPatch) -> None:
    host.trial()
    with pytest.raises(GuardRefused, match="quarantined"):
        guard.refuse_quarantined([f"loop:{host.file}"], host.state)
    guard.refuse_quarantined(["loop:/another"], host.state)


def test_settings_of_a_quarantined_drive_wait(host: Host, unkillable: pytest.MonkeyPatch) -> None:
    host.trial()
    name = Path(host.policy.targets[0].path).name
    node = Path(f"/sys/block/{name}/queue/nomerges")
    journal = Journal(host.state / "journal.db")
    kept = Baseline(
        run="r", stable_id=f"loop:{host.file}", name="nomerges", device=name, boot_id=journal.boot_id,
        survives_reboot=False, before="0", written="2", pending=False, requested=True,
    )  # fmt: skip
    journal.save_baselines([kept])
    node.write_text("2")
    (told,) = session.restore_all(journal)
    assert (told.restored, "is quarantined" in told.note, node.read_text()) == (False, True, "2\n")
    unkillable.undo()
    assert [told.restored for told in session.restore_all(journal)] == [True]
    assert (node.read_text(), journal.baselines()) == ("0\n", ())
