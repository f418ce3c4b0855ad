from collections.abc import Iterator
from pathlib import Path

import pytest

from worker.guard import openers
from worker.guard.tests import rig
from worker.policy import Policy


@pytest.fixture(autouse=True)
def busy_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests of what is refused do not wait long. udev may have a device open for a moment."""
    monkeypatch.setattr(openers, "BUSY_LIMIT_S", 0.5)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return rig.sparse(tmp_path / "disk.img")


@pytest.fixture
def device(file: Path) -> Iterator[str]:
    with rig.loop(file) as path:
        yield path


@pytest.fixture
def allowed(tmp_path: Path, file: Path, device: str) -> Policy:
    return rig.load(tmp_path, rig.block(device, file, destroy=True))
