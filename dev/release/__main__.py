"""`make release`: build everything that a release consists of into .build/release/VERSION.

It needs a repository without changes, after `dev.release.prepare`. The same commit gives the same archives.
"""

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import dev.docs.__main__ as documentation
from dev.console import ToolError, run_command, say, step
from dev.django_setup import set_up_without_database
from dev.release.migrations import check_released, hash_lines, released
from dev.release.prepare import CHANGELOG, current_version, heading
from dev.release.sbom import bill_of_materials
from dev.server_check.bare_debian import repository_files
from dev.stack.state import REPOSITORY
from webapp.deploy import compose
from webapp.hosts import wheelhouse

SITE = REPOSITORY / ".build/site/docs"
FRONT_END_DIGEST = ".build/frontend.done"  # with it, .ci/setup needs neither Node nor npm
COMMAND = "python -m dev.release.prepare VERSION"
IMAGES = ("sweetspot-server", "sweetspot-balancer", "sweetspot-redis", "sweetspot-worker")


def main(arguments: Sequence[str]) -> int:
    if arguments:
        raise ToolError("make release takes no options.")
    set_up_without_database()
    version = current_version()
    check_prepared(version)
    folder = REPOSITORY / ".build/release" / version
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    made_at = committed_at()
    os.environ["SOURCE_DATE_EPOCH"] = str(int(made_at.timestamp()))  # MkDocs writes it into its files
    with step("documentation"):
        if documentation.main():
            raise ToolError("The documentation was not built.")
    write_wheels(folder)
    with step("archives of the server and of the documentation"):
        paths = [*repository_files(), *built_files()]
        write_archive(folder / f"sweetspot-server-{version}.tar.gz", REPOSITORY, paths, f"sweetspot-{version}", made_at)
        pages = [path.relative_to(SITE) for path in SITE.rglob("*") if path.is_file()]
        write_archive(folder / f"sweetspot-docs-{version}.tar.gz", SITE, pages, f"sweetspot-docs-{version}", made_at)
    bill = bill_of_materials(version, f"{made_at:%Y-%m-%dT%H:%M:%SZ}")
    (folder / f"sweetspot-{version}.cdx.json").write_text(json.dumps(bill, indent=1) + "\n")
    write_images(folder / f"sweetspot-images-{version}.tar.gz")
    write_checksums(folder)
    for path in sorted(folder.iterdir()):
        say(f"{path.stat().st_size / 1000:9.0f} kB  {path.name}")
    say(f"Version {version} is in {folder}. Next: make server-check, then git tag v{version}.")
    return 0


def check_prepared(version: str) -> None:
    """Raises ToolError if the repository is not the commit of this version."""
    if changed := _git("status", "--porcelain"):
        raise ToolError(f"Commit these changes first, or remove them:\n{changed}")
    check_released()
    if f"\n{heading(version)}, " not in CHANGELOG.read_text() or set(hash_lines()) != set(released()):
        raise ToolError(f"Version {version} is not prepared. Run: {COMMAND}, then commit.")


def committed_at() -> datetime:
    return datetime.fromtimestamp(int(_git("log", "-1", "--format=%ct")), UTC)


def _git(*arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.rstrip()


def built_files() -> list[Path]:
    """The front end and the packages of workers, relative to the repository. Raises ToolError."""
    try:
        built = wheelhouse.built_wheelhouse() or wheelhouse.build()
    except wheelhouse.NotBuilt as error:
        raise ToolError(str(error)) from error
    front_end = [path for path in (REPOSITORY / ".build/frontend").rglob("*") if path.is_file()]
    return [path.relative_to(REPOSITORY) for path in (*front_end, REPOSITORY / FRONT_END_DIGEST, built.path)]


def write_wheels(folder: Path) -> None:
    """The same bytes as a server of this version gives to hosts and clients."""
    from webapp.hosts.installer import client_wheel, worker_wheel

    for wheel in (worker_wheel(), client_wheel()):
        (folder / wheel.filename).write_bytes(wheel.content)


def write_archive(archive: Path, root: Path, paths: Iterable[Path], prefix: str, at: datetime) -> None:
    """Write a tar.gz of files below `root`: root owns them, in a fixed order, with the time of the commit."""
    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in sorted(paths):
            entry = tarfile.TarInfo(f"{prefix}/{path}")
            source = root / path
            entry.size, entry.mtime = source.stat().st_size, int(at.timestamp())
            entry.mode = 0o755 if source.stat().st_mode & 0o100 else 0o644
            with source.open("rb") as content:
                tar.addfile(entry, content)


def write_images(archive: Path) -> None:
    """Build the images of docker-compose.yml and save them for `docker load`. Nothing without a Docker engine."""
    tool = compose.compose_tool()
    if tool is None:
        say(
            "The images were NOT built: no Docker engine answers here. docker-compose.yml builds them from the archive."
        )
        return
    with tempfile.NamedTemporaryFile("w", suffix=".env") as secrets, step("images"):
        secrets.write(compose.environment_text())  # docker-compose.yml is not read without secrets; images have none
        secrets.flush()
        build = (*tool, "--env-file", secrets.name, *compose.PROFILES, "build")
        if subprocess.run(build, cwd=REPOSITORY, stdout=subprocess.DEVNULL, check=False).returncode:
            raise ToolError("The images were not built.")
        saving = subprocess.Popen(("docker", "save", *IMAGES), stdout=subprocess.PIPE)
        assert saving.stdout
        with gzip.open(archive, "wb", compresslevel=6) as packed:
            shutil.copyfileobj(saving.stdout, packed)
        if saving.wait():
            raise ToolError("The images were not saved.")


def write_checksums(folder: Path) -> None:
    """Write SHA256SUMS, which `sha256sum --check` reads."""
    lines = []
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    (folder / "SHA256SUMS").write_text("".join(lines))


if __name__ == "__main__":
    run_command(main)
