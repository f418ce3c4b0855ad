"""The command is a wheel of its own that needs nothing but Python, and the server offers it."""

import os
import re
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

from django.test import Client

from webapp.hosts.installer import client_wheel
from worker import client as package
from worker.tests.wheels import built_wheel

FOLDER = Path(package.__file__).parent


def test_the_server_makes_the_wheel_that_the_build_tool_makes(tmp_path: Path) -> None:
    built = built_wheel(FOLDER, tmp_path)
    ours, theirs = zipfile.ZipFile(BytesIO(client_wheel().content)), zipfile.ZipFile(built)
    assert client_wheel().filename == built.name
    code = {name for name in theirs.namelist() if name.startswith("sweetspot/")}
    assert {name for name in ours.namelist() if name.startswith("sweetspot/")} == code
    assert all(ours.read(name) == theirs.read(name) for name in code)
    about = f"sweetspot-{package.__version__}.dist-info/"
    needs = re.compile(r"^(?:Name|Version|Provides-Extra|Requires-\w+): .*$", re.MULTILINE)
    mine, other = (needs.findall(each.read(f"{about}METADATA").decode()) for each in (ours, theirs))
    assert [line.replace("'", '"') for line in sorted(mine)] == [line.replace("'", '"') for line in sorted(other)]
    assert ours.read(f"{about}entry_points.txt").split() == theirs.read(f"{about}entry_points.txt").split()


def test_it_runs_with_nothing_but_python(tmp_path: Path) -> None:
    zipfile.ZipFile(BytesIO(client_wheel().content)).extractall(tmp_path)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}
    command = [sys.executable, "-S", "-m", "sweetspot", "hosts"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("sweetspot: The address of the server is missing. Set SWEETSPOT_URL, or write")


def test_the_server_is_a_package_index(client: Client) -> None:
    (file,) = client.get("/simple/sweetspot/").json()["files"]
    assert file["hashes"] == {"sha256": client_wheel().sha256}
    assert client.get(f"/simple/sweetspot/{file['url']}").content == client_wheel().content
    assert client.get("/simple/sweetspot/sweetspot-9.9.9-py3-none-any.whl").status_code == 404
