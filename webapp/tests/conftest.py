from collections.abc import Iterator
from pathlib import Path

import pytest

from webapp.tests.system import StorageHost, System

SCRATCH = """
[[target]]
id = "scratch"
kind = "directory"
path = "{path}"
"""


@pytest.fixture
def system(transactional_db: None, tmp_path: Path) -> Iterator[System]:
    """A running web tier with no host yet."""
    system = System(tmp_path)
    system.web.start()
    try:
        yield system
    finally:
        system.close()


@pytest.fixture
def storage(system: System, tmp_path: Path) -> StorageHost:
    """A host that allows one scratch directory."""
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o755)
    return system.add_host("storage1", SCRATCH.format(path=scratch))
