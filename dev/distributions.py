"""`python -m dev.distributions debian-12 …`: install the worker in throw-away roots of Linux distributions.

mmdebstrap makes a minimal root. In it, the command of “Add host” is run as root against a private server on loopback;
then the worker runs four trials on a directory, is updated, and is uninstalled. There is no systemd in such a root.
`--air-gapped` puts Python and fio into the root and takes its package sources and its name server away. `--root` uses
a root that exists, such as the unpacked image of a distribution that mmdebstrap does not know; the trial changes it.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from dev.console import ToolError, columns, run_command, say, step
from dev.demo import start
from dev.stack.network import await_condition
from dev.stack.state import State
from dev.stack.temporary import temporary
from webapp.hosts import wheelhouse

SUITES = {
    "debian-12": "bookworm",
    "debian-13": "trixie",
    "debian-testing": "testing",
    "ubuntu-22.04": "jammy",
    "ubuntu-24.04": "noble",
}
PYTHONS = {"ubuntu-22.04": "python3.11"}  # in an air-gapped root; otherwise python3
ROOT_LIMIT_S, INSTALL_LIMIT_S, WORKER_LIMIT_S = 600, 600, 120
COMMAND = "/usr/local/bin/sweetspot-worker"
POLICY = '[[target]]\nid = "{name}"\nkind = "directory"\npath = "/srv/scratch"\n'
FACTORS = {"pattern": "randread,randwrite", "ioengine": "psync,io_uring", "runtime": "2s", "size": "16 MiB"}
# A mount namespace of its own: its mounts end with it. A PID namespace: its programs end with `unshare`.
ENTER = """
set -e; cd "$0"; mkdir -p proc sys dev
mount -t proc proc proc; mount --rbind /sys sys; mount --rbind /dev dev
exec chroot . /bin/sh -c "$1"
"""


@dataclass(frozen=True)
class Outcome:
    name: str
    python: str = ""
    root_s: float = 0.0
    install_s: float = 0.0
    problem: str = ""


class Root:
    def __init__(self, path: Path) -> None:
        self.path = path

    def argv(self, line: str) -> list[str]:
        inner = ("sh", "-c", ENTER, str(self.path), line)
        return ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", *inner]

    def run(self, line: str) -> str:
        """Standard output of a line in a root shell. Raises ToolError."""
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
        done = subprocess.run(
            self.argv(line), capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False, env=environment
        )
        if done.returncode:
            raise ToolError(f"status {done.returncode}: {(done.stdout + done.stderr).strip()[-1500:]}")
        return done.stdout


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.distributions", description="Try the worker's installation.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--root", action="append", default=[], type=Path, metavar="DIR", help="an existing root")
    parser.add_argument("--air-gapped", action="store_true", help="no package sources inside the root")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in SUITES]:
        raise ToolError(f"{unknown[0]} is not a known system. Use {', '.join(SUITES)}, or --root DIR.")
    if os.getuid() != 0:
        raise ToolError("The trial changes the root directory of processes, which requires root.")
    _build_wheelhouse()
    makers: list[tuple[str, Callable[[Path], Path]]] = [
        (name, partial(_bootstrap, name, options.air_gapped)) for name in options.names
    ]
    makers += [(path.name, lambda _, path=path: path) for path in options.root]  # type: ignore[misc]
    with temporary("distributions") as state:
        state.prepare()
        start.bring_up_server(state)
        outcomes = [_tried(state, name, make) for name, make in makers]
    rows = [(o.name, o.python, f"{o.root_s:.0f}", f"{o.install_s:.0f}", o.problem or "✓") for o in outcomes]
    say("\n".join(["", *columns([("root", "Python", "root s", "install s", ""), *rows])]))
    return 1 if any(outcome.problem for outcome in outcomes) else 0


def _build_wheelhouse() -> None:
    if wheelhouse.built_wheelhouse() is None:
        try:
            wheelhouse.build()
        except wheelhouse.NotBuilt as error:
            raise ToolError(str(error)) from error


def _bootstrap(name: str, air_gapped: bool, path: Path) -> Path:
    packages = ["ca-certificates", "curl"]
    if air_gapped:
        packages += [PYTHONS.get(name, "python3"), "fio"]
    command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(packages)}", SUITES[name], str(path)]
    if name.startswith("ubuntu"):
        command.insert(1, "--components=main,universe")
    if name == "debian-testing":  # a mirror may lag behind the few days for which its list of packages is valid
        command.insert(1, '--aptopt=Acquire::Check-Valid-Until "false"')
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=ROOT_LIMIT_S, check=False)
    except FileNotFoundError as error:
        raise ToolError("mmdebstrap is not installed.") from error
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"mmdebstrap did not end within {ROOT_LIMIT_S} s.") from error
    if done.returncode:
        raise ToolError(f"no root: {done.stderr.strip()[-500:]}")
    if air_gapped:
        (path / "etc/apt/sources.list").unlink(missing_ok=True)
        (path / "etc/resolv.conf").unlink(missing_ok=True)
    else:
        shutil.copy("/etc/resolv.conf", path / "etc/resolv.conf")
    return path


def _tried(state: State, name: str, make: Callable[[Path], Path]) -> Outcome:
    outcome = Outcome(name)
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="sweetspot-root-") as folder:
        try:
            began = time.monotonic()
            with step(f"{name}: a minimal root"):
                root = Root(make(Path(folder) / name))
            outcome = replace(outcome, root_s=time.monotonic() - began)
            began = time.monotonic()
            with step(f"{name}: the command of “Add host”"):
                _install(root, name)
            outcome = replace(outcome, install_s=time.monotonic() - began, python=_python(root))
            _use(state, root, name)
        except (ToolError, subprocess.TimeoutExpired) as error:
            return replace(outcome, problem=str(error))
    return outcome


def _slug(name: str) -> str:
    return name.replace(".", "-").lower()


def _install(root: Root, name: str) -> None:
    from webapp.hosts.installer import install_line
    from webapp.hosts.keys import signing_key
    from webapp.hosts.services import issue_enrolment_token

    key, _ = signing_key()
    said = root.run(install_line(token=issue_enrolment_token(by=None, slug=_slug(name)), key=key, again=False))
    say("".join(f"      {line}\n" for line in said.splitlines()).rstrip())


def _python(root: Root) -> str:
    return root.run("/opt/sweetspot-worker/current/bin/python --version").split()[-1]


def _use(state: State, root: Root, name: str) -> None:
    """Run a plan, update the worker, and uninstall it."""
    from webapp.hosts.installer import upgrade_line

    scratch = root.path / "srv/scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    with (root.path / "etc/sweetspot-worker/policy.toml").open("a") as policy:
        policy.write(POLICY.format(name=_slug(name)))
    with step(f"{name}: four trials on a directory"), _worker(state, root):
        _run_plan(_slug(name))
    first = (root.path / "opt/sweetspot-worker/current").readlink()
    with step(f"{name}: update"):
        root.run(upgrade_line())
    if (root.path / "opt/sweetspot-worker/current").readlink() == first:
        raise ToolError("The update did not replace the version.")
    with step(f"{name}: uninstall"):
        root.run(f"{COMMAND} uninstall --yes")
    if left := [path for path in _places(root.path) if path.exists() or path.is_symlink()]:
        raise ToolError(f"uninstall left {', '.join(map(str, left))}")


def _places(root: Path) -> list[Path]:
    names = ("opt/sweetspot-worker", "etc/sweetspot-worker", "var/lib/sweetspot-worker", "srv/scratch/.sweetspot")
    return [root / name for name in (*names, COMMAND.lstrip("/"))]


@contextmanager
def _worker(state: State, root: Root) -> Iterator[None]:
    with (state.logs / f"{root.path.name}.log").open("wb") as log:
        worker = subprocess.Popen(root.argv(f"exec {COMMAND} start"), stdout=log, stderr=log)
        try:
            yield
        finally:
            worker.kill()  # the programs in the namespace of `unshare` end with it
            worker.wait()


def _run_plan(slug: str) -> None:
    from dev.bench.runs import run_to_end
    from webapp.hosts.models import Target

    usable = Target.objects.filter(host__slug=slug, slug=slug, present=True)
    if not await_condition(usable.exists, limit_s=WORKER_LIMIT_S):
        raise ToolError(f"The target was not usable within {WORKER_LIMIT_S} s.")
    run_to_end("Trial of a distribution", FACTORS, target=slug)


if __name__ == "__main__":
    run_command(main)
