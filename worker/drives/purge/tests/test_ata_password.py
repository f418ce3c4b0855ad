"""The password that a killed or failed erase leaves on a drive. A program stands for hdparm and keeps its state."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.cli import main
from worker.contract.inventory import PurgeMethod
from worker.controllers.tests.tools import install
from worker.drives.purge import ata
from worker.drives.purge.base import PurgeFailed, PurgeRun
from worker.guard.lease import Lease
from worker.guard.tests import rig
from worker.journal import DrivePassword, Journal

pytestmark = rig.needs_root

HDPARM = """
import json, os, signal, sys
path = {path!r}
state = json.load(open(path))
words = sys.argv[1:]
state["asked"].append([word for word in words if word.startswith("--security") or word == "-I"][-1])
if "-I" in words:
    if state["busy"]:
        sys.exit(5)
    marks = {{name: "" if state[name] else "not" for name in ("enabled", "locked", "frozen")}}
    print("Security:\\n\\t\\tsupported")
    print("".join(f"\\t{{mark}}\\t{{name}}\\n" for name, mark in marks.items()))
elif "--security-set-pass" in words:
    state["enabled"] = words[words.index("--security-set-pass") + 1]
elif "--security-unlock" in words:
    state["locked"] = state["locked"] and state["enabled"] != words[words.index("--security-unlock") + 1]
elif "--security-disable" in words:
    if not state["locked"] and state["enabled"] == words[words.index("--security-disable") + 1]:
        state["enabled"] = ""
elif "--security-erase" in words:
    if state["erases"]:
        state["enabled"] = ""
json.dump(state, open(path, "w"))
sys.exit(1 if "--security-erase" in words and not state["erases"] else 0)
"""


class Drive:
    """A loop device, and the security state that the program reports for it."""

    def __init__(self, folder: Path, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.device, self.folder = device, folder
        self.path = folder / "hdparm.json"
        self.set(enabled="", locked=False, frozen=False, busy=False, erases=True, asked=[])
        self.patch, self.old_path = monkeypatch, os.environ["PATH"]
        install(folder, monkeypatch, "hdparm", HDPARM.format(path=str(self.path)))
        self.journal = Journal(folder / "journal.db")

    def set(self, **values: object) -> None:
        known = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.path.write_text(json.dumps(known | values))

    def get(self, name: str) -> object:
        return json.loads(self.path.read_text())[name]

    def erase(self) -> None:
        with Lease(self.device, name=Path(self.device).name) as lease:
            run = PurgeRun(self.journal, self.folder, lambda _percent, _expected: None, lambda: False)
            ata.send(lease, PurgeMethod.ATA_SECURE_ERASE, run)

    def remove(self) -> str:
        (known,) = self.journal.passwords()
        return ata.remove_password(known, self.journal, self.folder)


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Drive]:
    with rig.loop(rig.sparse(tmp_path / "disk.img")) as device, monkeypatch.context() as patched:
        yield Drive(tmp_path, device, patched)
        patched.undo()


def test_an_erased_drive_has_no_password(drive: Drive) -> None:
    drive.erase()
    assert (drive.get("enabled"), drive.journal.passwords()) == ("", ())


def test_a_failed_erase_removes_the_password_and_verifies_it(drive: Drive) -> None:
    drive.set(erases=False)
    with pytest.raises(PurgeFailed, match=r"The drive has no password\."):
        drive.erase()
    assert (drive.get("enabled"), drive.journal.passwords()) == ("", ())


KILLED = """
import os, signal, sys
from pathlib import Path
from worker.contract.inventory import PurgeMethod
from worker.drives.purge import ata
from worker.drives.purge.base import PurgeRun
from worker.guard import Lease
from worker.journal import Journal

def die(*_args, **_more):
    os.kill(os.getpid(), signal.SIGKILL)

ata.to_the_end = die
folder, device = Path(sys.argv[1]), sys.argv[2]
with Lease(device, name=Path(device).name) as lease:
    run = PurgeRun(Journal(folder / "journal.db"), folder, lambda *_: None, lambda: False)
    ata.send(lease, PurgeMethod.ATA_SECURE_ERASE, run)
"""


@pytest.mark.parametrize("locked", [False, True])
def test_the_password_of_a_killed_erase_is_removed_later(drive: Drive, locked: bool) -> None:
    """`locked`: the host was restarted meanwhile, and the drive asks for its password."""
    subprocess.run([sys.executable, "-c", KILLED, str(drive.folder), drive.device], check=False, timeout=60)
    assert drive.get("enabled") == ata.PASSWORD
    assert [known.password for known in drive.journal.passwords()] == [ata.PASSWORD]
    drive.set(locked=locked)
    assert drive.remove() == ""
    assert (drive.get("enabled"), drive.journal.passwords()) == ("", ())


def test_a_password_stays_in_the_journal_until_the_drive_says_that_it_has_none(drive: Drive) -> None:
    known = DrivePassword(stable_id="loop:/gone", serial="", device="loop99", password="sweetspot")
    drive.journal.save_password(known)
    assert "absent" in drive.remove()
    drive.journal.drop_password("loop:/gone")
    for trouble, words in (({"busy": True}, "does not report"), ({"enabled": "other"}, "does not report")):
        drive.set(busy=False, enabled="sweetspot")
        with Lease(drive.device, name=Path(drive.device).name) as lease:
            drive.journal.save_password(
                DrivePassword(stable_id=lease.stable_id, serial="", device=lease.name, password="sweetspot")
            )
        drive.set(**trouble)
        assert words in drive.remove()
        assert len(drive.journal.passwords()) == 1


def test_restore_removes_it_and_forget_drops_it_by_name(drive: Drive, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--state", str(drive.folder), "--policy", str(drive.folder / "policy.toml")]
    with Lease(drive.device, name=Path(drive.device).name) as lease:
        known = DrivePassword(stable_id=lease.stable_id, serial="", device=lease.name, password="sweetspot")
    drive.journal.save_password(known)
    drive.set(enabled="sweetspot")
    assert main([*options, "restore", "--yes"]) == 0
    assert "remove its password" in capsys.readouterr().out
    assert (drive.get("enabled"), drive.journal.passwords()) == ("", ())
    drive.journal.save_password(known)
    assert main([*options, "forget", "nothing"]) == 2
    assert main([*options, "forget"]) == 0
    assert "password@" in capsys.readouterr().out
    assert main([*options, "forget", "--yes", "password@"]) == 0
    assert drive.journal.passwords() == ()
