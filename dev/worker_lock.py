"""`python -m dev.worker_lock`: write worker/deploy/requirements.txt, the packages that a worker installs.

It lists the versions of `.ci/constraints.txt` for everything that the worker requires, with the sha256 of each wheel
for every Python and machine of `webapp.hosts.wheelhouse`. Run it after a change of a version; it needs a package index.
"""

import hashlib
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from dev.stack.state import REPOSITORY
from webapp.hosts.wheelhouse import PLATFORMS, download

LOCK = REPOSITORY / "worker/deploy/requirements.txt"
CONSTRAINTS = REPOSITORY / ".ci/constraints.txt"
# Not in every environment: pip installs the others; redis requires async-timeout with Python before 3.11.3.
ALSO = ("pip", "async-timeout")
HEAD = """\
# Everything that a worker installs: versions, and the sha256 of each wheel. Written by `python -m dev.worker_lock`.
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for platform in PLATFORMS:
            download(pinned(), Path(folder), platform)
        LOCK.write_text(HEAD + "".join(_entries(Path(folder))))
    print(LOCK)


def pinned() -> list[str]:
    """`name==version` of each package."""
    return [f"{name}=={version}" for name, version in constraints().items() if name in required_names()]


def constraints() -> dict[str, str]:
    lines = (line.partition("==") for line in CONSTRAINTS.read_text().splitlines() if "==" in line)
    return {canonicalize_name(name): version for name, _, version in lines}


def required_names() -> set[str]:
    """The worker's requirements, theirs, and so on."""
    project = tomllib.loads((REPOSITORY / "worker/pyproject.toml").read_text())["project"]
    return {*ALSO, *with_requirements(project["dependencies"])}


def with_requirements(requirements: Iterable[str]) -> set[str]:
    """The canonical names of installed packages, of their requirements, and so on."""
    names: set[str] = set()
    for requirement in requirements:
        _collect(Requirement(requirement), names)
    return names


def _collect(need: Requirement, names: set[str]) -> None:
    name = canonicalize_name(need.name)
    if name in names and not need.extras:
        return
    names.add(name)
    for text in requires(name) or ():
        inner = Requirement(text)
        if inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in ("", *need.extras)):
            _collect(inner, names)


def _entries(folder: Path) -> Iterator[str]:
    hashes = defaultdict(list)
    for wheel in sorted(folder.iterdir()):
        name, version, _, _ = parse_wheel_filename(wheel.name)
        hashes[f"{name}=={version}"].append(hashlib.sha256(wheel.read_bytes()).hexdigest())
    for pin, digests in sorted(hashes.items()):
        yield " \\\n    ".join([pin, *(f"--hash=sha256:{digest}" for digest in digests)]) + "\n"


if __name__ == "__main__":
    main()
