"""The worker as a storage server gets it: the wheel, the script, the line."""

import hashlib
import html
import re
import subprocess
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from webapp.hosts.installer import install_line, install_script, upgrade_line, worker_wheel
from worker import __version__
from worker.tests.test_wheel import wheel as built_wheel  # noqa: F401 - a fixture


def needs(metadata: bytes) -> set[tuple[str, ...]]:
    """Name, version and what it requires; the order of bounds means nothing."""
    lines = re.findall(r"^(?:Name|Version|Requires-\w+): .*$", metadata.decode(), re.MULTILINE)
    return {tuple(sorted(re.split(r"[ ,]|(?=[<>~])", line))) for line in lines}


def test_it_makes_the_wheel_that_the_build_tool_makes(built_wheel: Path) -> None:  # noqa: F811
    ours = zipfile.ZipFile(BytesIO(worker_wheel().content))
    theirs = zipfile.ZipFile(built_wheel)
    assert worker_wheel().filename == built_wheel.name
    about = f"sweetspot_worker-{__version__}.dist-info/"
    code = {name for name in theirs.namelist() if not name.startswith(about)}
    assert {name for name in ours.namelist() if not name.startswith(about)} == code
    assert all(ours.read(name) == theirs.read(name) for name in code)
    assert needs(ours.read(f"{about}METADATA")) == needs(theirs.read(f"{about}METADATA"))
    assert ours.read(f"{about}entry_points.txt").split() == theirs.read(f"{about}entry_points.txt").split()


def test_it_makes_the_same_bytes_every_time() -> None:
    first = worker_wheel().sha256
    worker_wheel.cache_clear()
    assert worker_wheel().sha256 == first


def test_it_leads_from_the_line_to_the_wheel_by_checksums(client: Client) -> None:
    line = install_line(token="abc", key="0123456789abcdef", again=False)
    found = re.search(rf"{re.escape(settings.PUBLIC_URL)}(/worker/[^ ']+)", line)
    assert found
    script = client.get(found.group(1)).content
    assert f'"{hashlib.sha256(script).hexdigest()}  $f" | sha256sum -c' in line
    wheel = client.get(f"/worker/{__version__}/{worker_wheel().filename}").content
    assert f"sha256='{hashlib.sha256(wheel).hexdigest()}'" in script.decode()
    assert "@" not in re.sub(r"between @ signs", "", script.decode())
    assert line.endswith('SWEETSPOT_TOKEN=abc sh "$f" --key 0123456789abcdef')
    assert "--again" in install_line(token="abc", key="k", again=True)


def test_it_serves_no_other_version_and_nothing_else(client: Client) -> None:
    for address in ("/worker/9.9.9/install.sh", f"/worker/{__version__}/__init__.py", f"/worker/{__version__}/.."):
        assert client.get(address).status_code == 404
    assert client.post(f"/worker/{__version__}/install.sh").status_code == 405


def test_it_writes_lines_and_a_script_that_a_shell_can_read() -> None:
    for text in (install_script().text, install_line(token="a", key="b", again=True), html.unescape(upgrade_line())):
        assert subprocess.run(["sh", "-n"], input=text.encode(), check=False).returncode == 0


def test_it_stops_at_a_script_that_was_changed_on_its_way(tmp_path: Path) -> None:
    """The line is run as it is; in place of the network stands a curl that hands over another script."""
    fake = tmp_path / "curl"
    fake.write_text('#!/bin/sh\nwhile [ "$1" != -fsSo ]; do shift; done\necho "touch ran" >"$2"\n')
    fake.chmod(0o755)
    done = subprocess.run(
        ["sh", "-c", install_line(token="a", key="b", again=False)],
        cwd=tmp_path, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, check=False, timeout=10,
    )  # fmt: skip
    assert done.returncode != 0
    assert not (tmp_path / "ran").exists()
    assert b"The checksum of the installer is wrong, so it was not run." in done.stderr


@pytest.mark.parametrize("arguments", [["--nonsense"], []])
def test_it_says_what_is_wrong_and_does_nothing(arguments: list[str], tmp_path: Path) -> None:
    script = tmp_path / "install.sh"
    script.write_text(install_script().text.replace("/var/lib/sweetspot-worker", str(tmp_path / "nothing")))
    done = subprocess.run(["sh", str(script), *arguments], capture_output=True, text=True, check=False, timeout=10)
    assert done.returncode == 1
    assert "sweetspot: " in done.stderr
