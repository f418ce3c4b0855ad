"""Recordings of controllers' tools: each is read again, and contains no identity of the host that it came from."""

import json
from pathlib import Path

import msgspec
import pytest

from worker import controllers
from worker.cli import main
from worker.controllers import adapter_named, recording
from worker.controllers.recording import RecordedCall, Recording
from worker.controllers.tests.tools import DOCUMENTED, install, printing

RECORDED = Path(__file__).parent / "recorded"
_REPLAY = """
import json, sys
name = {name!r}
calls = [call for call in json.load(open({path!r}))["calls"] if call["program"] == name]
call = next((call for call in calls if call["arguments"] == sys.argv[1:]), None)
if call is None:
    sys.exit("not recorded: " + " ".join(sys.argv))
sys.stdout.write("\\n".join(call["out"]))
sys.stderr.write("\\n".join(call["err"]))
sys.exit(call["exit_code"])
"""


def replay(path: Path, directory: Path, monkeypatch: pytest.MonkeyPatch) -> Recording:
    """Install programs that print what the recording has."""
    loaded = msgspec.json.decode(path.read_bytes(), type=Recording)
    for name in {call.program for call in loaded.calls}:
        install(directory, monkeypatch, name, _REPLAY.format(path=str(path), name=name))
    return loaded


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.json")), ids=lambda path: path.stem)
def test_a_recording_is_read_as_it_says(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = replay(path, tmp_path, monkeypatch)
    assert controllers.read_controllers(loaded.drivers) == loaded.answers
    for name, controller in loaded.answers.controllers:
        for drive in controller.virtual_drives:
            alone = adapter_named(name).virtual_drive(controller.number, drive.number)
            # MegaCli's answer about one virtual drive does not list its slots.
            assert msgspec.structs.replace(alone, drives=drive.drives) == drive


@pytest.mark.parametrize(
    ("program", "documented", "driver", "secrets"),
    [
        ("storcli64", "storcli-7.1017-9361.json", "megaraid_sas", ("SK71234567", "600605b010cbe11029aeeba55d3ea3e6")),
        ("perccli64", "perccli-7.1910-H740P.json", "megaraid_sas", ("9AB01XY",)),
        ("MegaCli64", "megacli-8.07", "megaraid_sas", ("SV12345678", "6SL00ABC", "CVPR12340ABC", "5000C50083A4B5C0")),
        ("ssacli", "ssacli-4.21-P420i.txt", "hpsa", ("001438028080D00", "600508B1001C52A1B2C3D4E5F6071829")),
        ("hpacucli", "hpacucli-8-P410i.txt", "hpsa", ("5001438012345678", "PBCDF0CRHZ0ABC")),
        ("cli64", "areca-1.8-1680", "arcmsr", ("0HN12345678",)),
    ],
)
def test_the_command_records_what_is_read_again_without_identities(
    program: str,
    documented: str,
    driver: str,
    secrets: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    printing(tmp_path, monkeypatch, program, documented)
    monkeypatch.setattr("worker.cli.controllers.drivers_with_a_tool", lambda: {"0000:03:00.0": driver})
    assert main(["controllers", "--json", "--record", str(tmp_path / "new.json")]) == 0
    printed = capsys.readouterr().out
    text = (tmp_path / "new.json").read_text()
    for secret in secrets:
        assert secret.lower() in printed.lower() + str(_everything(documented)).lower()
        assert secret.lower() not in text.lower()
    (shown,) = json.loads(printed)["controllers"]
    (written,) = json.loads(text)["answers"]["controllers"]
    assert [drive["size_bytes"] for drive in shown[1]["physical_drives"]] == [
        drive["size_bytes"] for drive in written[1]["physical_drives"]
    ]
    loaded = replay(tmp_path / "new.json", tmp_path, monkeypatch)
    assert controllers.read_controllers(loaded.drivers) == loaded.answers


def _everything(documented: str) -> str:
    path = DOCUMENTED / documented
    return "".join(each.read_text() for each in ([path] if path.is_file() else path.iterdir()))


def test_the_name_of_the_host_and_dumps_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "db7.example.org")
    dump = "5a 0c ff 3f 37 c8 10 00 00 00 00 00 3f 00 00 00\n20 20 53 45"
    install(tmp_path, monkeypatch, "ssacli", f"import sys\nsys.exit('db7.example.org, DB7: no\\n' + {dump!r})")
    calls, answers = recording.call_tools(("hpsa",))
    recorded = recording.anonymised(("hpsa",), calls, answers)
    zeros = ("00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00", "00 00 00 00", "")
    assert recorded.calls == (
        RecordedCall(
            program="ssacli",
            arguments=("ctrl", "all", "show", "config", "detail"),
            exit_code=1,
            out=("",),
            err=("host, host: no", *zeros),
        ),
    )
    assert "db7" not in str(recorded.answers.problems)


def test_an_existing_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.cli.controllers.drivers_with_a_tool", dict)
    assert main(["controllers", "--record", str(tmp_path / "new.json")]) == 1  # no controller, and the file says so
    assert json.loads((tmp_path / "new.json").read_text())["calls"] == []
    assert main(["controllers", "--record", str(tmp_path / "new.json")]) == 2
