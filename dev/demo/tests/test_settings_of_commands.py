"""Commands of manage.py in a checkout take the settings of its demo, if there is one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dev.stack.state import BASE_VARIABLE, REPOSITORY, default_state


def _command(base: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (sys.executable, "manage.py", "diffsettings"),
        cwd=REPOSITORY, env={"PATH": os.environ["PATH"], BASE_VARIABLE: str(base)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_commands_use_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BASE_VARIABLE, str(tmp_path))
    state = default_state("demo")
    state.prepare()
    done = _command(tmp_path)
    assert done.returncode == 0, done.stderr
    assert state.secret("secret_key") in done.stdout


def test_without_settings_and_demo_a_command_says_what_to_set(tmp_path: Path) -> None:
    done = _command(tmp_path)
    assert done.returncode == 1
    assert "Set SWEETSPOT_SECRET_KEY" in done.stderr


@pytest.mark.parametrize("command", ["stop", "status"])
def test_a_command_that_stops_needs_no_packages(command: str, tmp_path: Path) -> None:
    """As after a set-up that failed: without site-packages."""
    done = subprocess.run(
        (sys.executable, "-S", "-m", "dev", command),
        cwd=REPOSITORY, env={"PATH": os.environ["PATH"], BASE_VARIABLE: str(tmp_path)},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
