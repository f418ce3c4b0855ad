"""The files of an installation without containers, as far as reading them tells; `make server-check` runs them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from webapp.tests.compose_file import SERVICES
from webapp.tests.system import ROOT

DEPLOY = ROOT / "webapp" / "deploy"
SERVERS = ("web", "tasks", "beat")


def unit(name: str) -> list[str]:
    return (DEPLOY / "systemd" / f"sweetspot-{name}.service").read_text().splitlines()


@pytest.mark.parametrize("name", SERVERS)
def test_a_unit_gives_the_server_nothing_it_does_not_need(name: str) -> None:
    lines = unit(name)
    for line in ("User=sweetspot", "NoNewPrivileges=yes", "CapabilityBoundingSet=", "ProtectSystem=strict"):
        assert line in lines
    (hidden,) = [line for line in lines if line.startswith("InaccessiblePaths=")]
    assert "/etc/sweetspot/authority" in hidden
    assert "/etc/sweetspot/environment" in hidden
    assert "/var/backups" in hidden


@pytest.mark.parametrize("name", ["tasks", "beat"])
def test_units_and_containers_start_the_same_celery(name: str) -> None:
    (start,) = [line for line in unit(name) if line.startswith("ExecStart=")]
    words = start.partition("bin/")[2].replace("%H", "%h").split()
    assert words == SERVICES[name]["command"]


def test_only_the_proxy_reaches_the_web_tier() -> None:
    """Whoever reached it could invent the address of a client."""
    (start,) = [line for line in unit("web") if line.startswith("ExecStart=")]
    assert re.findall(r"--bind (\S+)", start) == ["unix:/run/sweetspot/web.sock"]
    assert {"RuntimeDirectoryMode=0750"} <= set(unit("web"))
    assert "--umask 7" in start


def test_the_proxy_replaces_an_address_that_a_client_has_written() -> None:
    text = (DEPLOY / "nginx.conf").read_text()
    assert "X-Forwarded-For $remote_addr;" in text
    assert "$proxy_add_x_forwarded_for" not in text
    assert "X-Forwarded-Proto $scheme;" in text
    assert "return 301 https://SERVER_NAME$request_uri;" in text


def test_the_installer_is_valid_shell_and_says_how_it_is_used() -> None:
    script = str(DEPLOY / "sweetspot-server")
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    for command in ("install", "manage", "backup", "restore", "roll-back", "certificates"):
        assert f"#   sweetspot-server {command} " in (DEPLOY / "sweetspot-server").read_text()


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="not Debian")
def test_set_up_repairs_packages_whose_installation_was_interrupted() -> None:
    """dpkg-query is replaced: fio is unpacked and not configured, although its program exists."""
    text = (ROOT / ".ci" / "setup").read_text()
    function = text[text.index("interrupted_packages() {") : text.index("# need PACKAGE TEST")]
    dpkg = "dpkg-query() { printf 'installed mount\\nunpacked fio\\nhalf-configured redis-tools\\n'; }"
    script = f"set -euo pipefail; {dpkg}\n{function}\ninterrupted_packages"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fio", "redis-tools"]
    assert "dpkg --configure -a" in text


@pytest.mark.parametrize(("server", "built", "steps"), [("yes", "now", 0), ("yes", "before", 3), ("", "now", 2)])
def test_a_server_needs_no_node_for_a_front_end_that_was_built_elsewhere(
    tmp_path: Path, server: str, built: str, steps: int
) -> None:
    """The steps are those of Node, npm and Vite; without `--server`, the tests need Node and the packages."""
    text = (ROOT / ".ci" / "setup").read_text()
    functions = text[text.index("is_built() {") : text.index("python_packages() {")]
    (tmp_path / ".build/frontend").mkdir(parents=True)
    (tmp_path / ".build/frontend/manifest.json").touch()
    (tmp_path / ".build/frontend.done").write_text(built)
    values = f"logs=. server='{server}' want_frontend=now want_node=1 want_npm=1"
    helpers = """is_done() { [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }; step() { echo "$1"; }"""
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; {values}; {helpers}\n{functions}\nfront_end"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert len(done.stdout.splitlines()) == steps, done.stdout
