"""What the guest needs of ours: the worker with its tests, and what both are made with, as one tar file."""

import sys
import tarfile
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from dev.console import ToolError

GUEST_PYTHON = (3, 11)  # Debian 12's
BESIDES = ("redis", "pytest")  # celery[redis] names it by an extra only
PLACE = "/opt/sweetspot"  # in the guest


def pack(repository: Path, into: Path) -> None:
    """Raises ToolError where this machine's Python is another than the guest's: compiled parts would not fit."""
    if sys.version_info[:2] != GUEST_PYTHON:
        raise ToolError(f"The guest has Python {'.'.join(map(str, GUEST_PYTHON))}; make the .venv with the same.")
    project = tomllib.loads((repository / "worker/pyproject.toml").read_text())
    with tarfile.open(into, "w:gz", compresslevel=3) as tar:
        tar.add(repository / "worker", "worker", filter=_source)
        for name in sorted(set(_with_needs([*project["project"]["dependencies"], *BESIDES]))):
            for file in metadata.files(name) or ():
                at = Path(str(file.locate()))
                if at.suffix != ".pyc" and ".." not in file.parts and at.is_file():
                    tar.add(at, str(file))


def _source(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if "__pycache__" in entry.name else entry


def _with_needs(requirements: list[str]) -> Iterator[str]:
    """Names of the distributions, and of everything that they need here."""
    seen: set[str] = set()
    todo = list(requirements)
    while todo:
        name = _name(todo.pop())
        if name in seen:
            continue
        seen.add(name)
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # needed on other systems or by an extra only
        yield name
        todo += [need for need in needs if "extra ==" not in need]


def _name(requirement: str) -> str:
    end = next((at for at, letter in enumerate(requirement) if letter in "[]<>=!~;( "), len(requirement))
    return requirement[:end].strip().lower().replace("_", "-")
