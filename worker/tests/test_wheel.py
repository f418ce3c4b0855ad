"""The worker is a wheel of its own: it installs and runs where there is no Django."""

import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from worker.tests.wheels import built_wheel

WORKER = Path(__file__).parents[1]
SITE = next(Path(entry) for entry in sys.path if entry.endswith("site-packages"))
# What the worker may use, and what that brings along; nothing else of the test's environment is lent.
LENT = """
    _cffi_backend* amqp billiard celery cffi click click_didyoumean click_plugins click_repl cryptography dateutil
    kombu msgspec packaging prompt_toolkit redis redis-* six.py typing_extensions.py tzdata tzlocal urllib3 vine wcwidth
    async_timeout
"""


def _source_packages() -> set[str]:
    """Without the client, which is a wheel of its own."""
    folders = [WORKER, *(init.parent for init in WORKER.rglob("__init__.py"))]
    names = {".".join(("worker", *folder.relative_to(WORKER).parts)) for folder in folders}
    return {name for name in names if not {"tests", ".build", "client"} & set(name.split("."))}


def test_it_names_every_package_it_is_made_of() -> None:
    project = tomllib.loads((WORKER / "pyproject.toml").read_text())
    assert set(project["tool"]["setuptools"]["packages"]) == _source_packages()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(WORKER, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and links to exactly the packages it needs."""
    place = tmp_path_factory.mktemp("venv")
    venv.create(place, with_pip=False, symlinks=True)
    command = [sys.executable, "-m", "pip", "--python", str(place / "bin/python"), "install", "--no-deps", "--no-index"]
    subprocess.run([*command, str(wheel)], check=True, capture_output=True, timeout=60)
    (site,) = place.glob("lib/python*/site-packages")
    for pattern in LENT.split():
        for found in SITE.glob(pattern):
            (site / found.name).symlink_to(found)
    return place


def _run(place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DJANGO"))}
    return subprocess.run(
        [str(place / "bin" / command[0]), *command[1:]],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_it_holds_the_worker_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "worker/deploy/sweetspot-worker.service" in names
    assert not [name for name in names if "/tests/" in name or name.startswith("webapp")]


def test_it_has_a_command(installed: Path) -> None:
    done = _run(installed, "sweetspot-worker", "--help")
    assert done.returncode == 0, done.stderr
    for command in ("doctor", "enrol", "inventory", "run", "start", "restore"):
        assert command in done.stdout
    assert _run(installed, "python", "-m", "worker", "--version").stdout.startswith("sweetspot-worker ")


def test_it_imports_every_module_without_django(installed: Path) -> None:
    program = (
        "import importlib, pkgutil, sys, worker\n"
        "for found in pkgutil.walk_packages(worker.__path__, 'worker.'):\n"
        "    if not found.name.endswith('__main__'): importlib.import_module(found.name)\n"
        "print(*(name for name in ('django', 'psycopg', 'webapp', 'numpy') if name in sys.modules), worker.__file__)\n"
        "import django\n"
    )
    done = _run(installed, "python", "-c", program)
    assert done.stdout.strip() == str(next(installed.glob("lib/python*/site-packages/worker/__init__.py"))), done.stderr
    assert "No module named 'django'" in done.stderr
