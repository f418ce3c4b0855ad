"""The state directory: ours alone, secrets unreadable for others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dev.console import ToolError
from dev.stack.state import BASE_VARIABLE, REPOSITORY, State, default_state


def test_it_refuses_a_link_that_somebody_laid(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ToolError, match="not a directory of yours alone"):
        State(tmp_path / "state").prepare()


def test_it_refuses_a_directory_that_others_may_write(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o777)
    with pytest.raises(ToolError, match="not a directory of yours alone"):
        State(tmp_path / "state").prepare()


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_it_refuses_a_directory_of_somebody_else(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    os.chown(tmp_path / "state", 65534, 65534)
    with pytest.raises(ToolError, match="not a directory of yours alone"):
        State(tmp_path / "state").prepare()


def test_it_keeps_a_secret_and_shows_it_to_nobody(tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    state.prepare()
    secret = state.secret("key")
    assert len(secret) >= 50
    assert State(tmp_path / "state").secret("key") == secret
    assert (tmp_path / "state" / "key").stat().st_mode & 0o077 == 0


def test_it_gives_each_purpose_and_base_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = default_state("demo").root
    assert usual != default_state("test-1").root
    monkeypatch.setenv(BASE_VARIABLE, str(tmp_path))
    assert default_state("demo").root.parent == tmp_path


def test_commands_of_django_use_the_demo_of_the_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("SWEETSPOT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(BASE_VARIABLE, str(tmp_path))
    show = "from django.conf import settings; print(settings.SECRET_KEY)"
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", show]

    without = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert without.returncode != 0
    assert "SWEETSPOT_SECRET_KEY" in without.stderr

    demo = default_state("demo")
    demo.prepare()
    shown = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == demo.secret("secret_key")
