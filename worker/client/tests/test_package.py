"""The command has the version of the worker and a help text for each of its commands."""

import pytest

import worker
from worker import client as package
from worker.client.main import main

COMMANDS = (
    "plan check", "plan push", "run", "wait", "cancel", "runs", "results", "compare", "import", "hosts", "enrol",
)  # fmt: skip


def test_it_has_the_version_of_the_worker() -> None:
    assert package.__version__ == worker.__version__


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            main([*command.split(), "--help"])
        assert ended.value.code == 0
        assert "--json" in capsys.readouterr().out, command
