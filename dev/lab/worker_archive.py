"""A tar file for the guest: the worker, its tests, and the Python packages that both need."""

import sys
import tarfile
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from dev.console import ToolError

GUEST_PYTHON = (3, 11)  # Debian 12's
EXTRA_PACKAGES = ("redis", "pytest")  # redis is required by an extra of celery only
PLACE = "/opt/sweetspot"  # in the guest


def pack(repository: Path, into: Path) -> None:
    """Write the archive. Raises ToolError if this Python differs from the guest's: compiled packages would not work."""
    if sys.version_info[:2] != GUEST_PYTHON:
        raise ToolError(f"The guest has Python {'.'.join(map(str, GUEST_PYTHON))}; create .venv with the same version.")
    project = tomllib.loads((repository / "worker/pyproject.toml").read_text())
    with tarfile.open(into, "w:gz", compresslevel=3) as tar:
        tar.add(repository / "worker", "worker", filter=_source)
        for name in sorted(set(_with_dependencies([*project["project"]["dependencies"], *EXTRA_PACKAGES]))):
            for file in metadata.files(name) or ():
                at = Path(str(file.locate()))
                if at.suffix != ".pyc" and ".." not in file.parts and at.is_file():
                    tar.add(at, str(file))


def _source(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in entry.name else entry


def _with_dependencies(requirements: list[str]) -> Iterator[str]:
    """Names of the distributions and of all their installed dependencies."""
    seen: set[str] = set()
    todo = list(requirements)
    while todo:
        name = _name(todo.pop())
        if name in seen:
            continue
        seen.add(name)
        try:
            required = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # required on other systems or by an extra only
        yield name
        todo += [each for each in required if "extra ==" not in each]


def _name(requirement: str) -> str:
    end = next((at for at, letter in enumerate(requirement) if letter in "[]<>=!~;( "), len(requirement))
    return requirement[:end].strip().lower().replace("_", "-")
