"""Tools that are missing, hang, stop half way, say something else, or fail with words: real programs."""

from pathlib import Path

import pytest

from worker import controllers
from worker.controllers.base import Adapter, CachePolicy
from worker.controllers.base import Adapter as Base
from worker.controllers.tests.tools import DOCUMENTED, install
from worker.controllers.tools import ADAPTERS
from worker.process import run
from worker.process.run import ToolError

TOOLS = {adapter.name: adapter for adapter in ADAPTERS}


def problem(adapter: Adapter) -> str:
    with pytest.raises(ToolError) as told:
        adapter.read_controllers()
    return str(told.value)


@pytest.fixture(params=TOOLS)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    return TOOLS[request.param]


def test_it_says_which_tool_is_missing(adapter: Adapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "something-else", "")
    assert problem(adapter) == f"{adapter.name} is not installed on this host."


def test_it_ends_one_that_hangs(adapter: Adapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, adapter.programs[0], "import time\ntime.sleep(60)")
    monkeypatch.setattr("worker.controllers.base.ANSWER_LIMIT_S", 0.5)
    assert "did not finish within 0.5 s and was killed" in problem(adapter)


def test_it_ends_one_that_never_stops_talking(
    adapter: Adapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, adapter.programs[0], "while True: print('x' * 65536)")
    assert f"printed more than {run.MAX_OUTPUT_BYTES} bytes" in problem(adapter)


def test_it_says_what_one_that_prints_something_else_printed(
    adapter: Adapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, adapter.programs[0], "print('Segmentation fault (core dumped)')")
    told = problem(adapter)
    assert adapter.name in told
    assert "Segmentation fault" in told or "it lists no controller" in told


def test_it_gives_the_words_of_one_that_fails(
    adapter: Adapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, adapter.programs[0], "import sys\nsys.exit('must be run by root')")
    assert "must be run by root" in problem(adapter)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
@pytest.mark.parametrize(
    ("name", "recorded"),
    [
        ("storcli", "storcli-7.1017-9361.json"),
        ("MegaCli", "megacli-8.07/AdpAllInfo"),
        ("areca-cli", "areca-1.8-1680/sys info"),
    ],
)  # fmt: skip
def test_it_believes_no_answer_that_is_cut_off(
    name: str, recorded: str, share: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (DOCUMENTED / recorded).read_text()
    cut = whole[: int(len(whole) * share)]
    install(tmp_path, monkeypatch, TOOLS[name].programs[0], f"print({cut!r})")
    assert "or incomplete" in problem(TOOLS[name]) or "its output is incomplete" in problem(TOOLS[name])


@pytest.mark.parametrize(
    "answer",
    ["[]", "{}", '{"Controllers": 5}', '{"Controllers": [{}]}', '{"Controllers": [{"Command Status": []}]}',
     '{"Controllers": [{"Command Status": {"Status": "Success"}, "Response Data": "none"}]}'],
)  # fmt: skip
def test_it_refuses_json_of_another_shape(answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "storcli64", f"print({answer!r})")
    assert "its output lacks" in problem(TOOLS["storcli"])


def test_it_gives_the_reason_that_storcli_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = (
        '{"Controllers": [{"Command Status": {"Controller": 0, "Status": "Failure", "Description": "None", '
        '"Detailed Status": [{"VD": 0, "Status": "Failed", "ErrCd": 255, "ErrMsg": "Property not supported"}]}}]}'
    )
    install(tmp_path, monkeypatch, "storcli64", f"import sys\nprint({failed!r})\nsys.exit(1)")
    with pytest.raises(ToolError, match=r"storcli: Property not supported \(code 255\)"):
        TOOLS["storcli"].set("0", "0", CachePolicy.READ_AHEAD, "none")


def test_it_says_that_no_controller_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = '{"Controllers": [{"Command Status": {"Status": "Failure", "Description": "No Controller found"}}]}'
    install(tmp_path, monkeypatch, "storcli64", f"print({gone!r})")
    assert problem(TOOLS["storcli"]) == "storcli: No Controller found"
    install(tmp_path, monkeypatch, "MegaCli64", "print('\\nExit Code: 0x00')")
    assert problem(TOOLS["MegaCli"]) == "MegaCli: it lists no controller"


def test_it_says_that_a_virtual_drive_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DOCUMENTED / "ssacli-4.21-P420i.txt").read_text()
    install(tmp_path, monkeypatch, "ssacli", f"print({text!r})")
    with pytest.raises(ToolError, match="virtual drive 7 no longer exists"):
        TOOLS["ssacli"].virtual_drive("0", "7")


def test_it_speaks_to_every_tool_in_the_language_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that follows the locale would write 1,745 TB."""
    monkeypatch.setenv("LANG", "de_DE.UTF-8")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    body = "import os, sys\nsys.exit(' '.join(f'{k}={v}' for k, v in os.environ.items() if k[:2] in ('LC', 'LA')))"
    install(tmp_path, monkeypatch, "storcli64", body)
    told = problem(TOOLS["storcli"])
    assert "LC_ALL=C" in told
    assert "de_DE" not in told


def test_bytes_that_are_no_text_are_read_as_far_as_they_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = (DOCUMENTED / "megacli-8.07/AdpAllInfo").read_bytes().replace(b"SV12345678", b"SV\xff\xfe")
    install(tmp_path, monkeypatch, "MegaCli64", f"import sys\nsys.stdout.buffer.write({whole!r})")
    (found,) = TOOLS["MegaCli"].read_controllers()
    assert found.serial.startswith("SV")


def test_one_tool_that_fails_leaves_the_others_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "storcli64", "import sys\nsys.exit('no')")
    told = controllers.read_controllers(["megaraid_sas"])
    assert told.controllers == ()
    assert told.problems["megaraid_sas"].startswith("storcli: ")
    assert "MegaCli is not installed on this host." in told.problems["megaraid_sas"]


def test_no_further_tool_is_asked_after_one_that_took_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "MegaCli64", "import sys\nsys.exit('asked')")
    install(tmp_path, monkeypatch, "storcli64", "import sys, time\ntime.sleep(0.2)\nsys.exit('slow')")
    monkeypatch.setattr(controllers, "TOTAL_LIMIT_S", 0.1)
    told = controllers.read_controllers(["megaraid_sas"]).problems["megaraid_sas"]
    assert "MegaCli was not called, because other tools took more than 0.1 s." in told


def test_every_adapter_has_a_name_of_its_own() -> None:
    assert len(TOOLS) == len(ADAPTERS)
    assert all(isinstance(adapter, Base) for adapter in ADAPTERS)
