"""A bare Debian with systemd, in a container with a network of its own. Its ports are not visible outside."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from dev.console import ToolError, step
from dev.stack.network import await_condition
from dev.stack.state import REPOSITORY
from worker.kernel.mounts import remove_path

PROGRAMS = {
    "mmdebstrap": "mmdebstrap", "systemd-nspawn": "systemd-container", "slirp4netns": "slirp4netns", "ip": "iproute2",
}  # fmt: skip
PACKAGES = "systemd-sysv,ca-certificates"
AUTHORITIES = "etc/ssl/certs/ca-certificates.crt"  # those of this machine, for registries behind a proxy
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Against what hangs, not against a slow machine: an installation took 8 minutes at a load of 12 on two cores.
START_LIMIT_S = 600.0
STOP_LIMIT_S = 600.0
COMMAND_LIMIT_S = 3 * 3600.0


class BareDebian:
    def __init__(self, root: Path, leader: int, network: str) -> None:
        self.root = root
        self._leader = leader
        self._network = network

    def run(self, *argv: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command as root. Raises ToolError if it fails and `check` is on."""
        certificates = (f"{name}=/{AUTHORITIES}" for name in ("NODE_EXTRA_CA_CERTS", "PIP_CERT"))
        inside = ("nsenter", f"--target={self._leader}", "--all", "env", "-i", f"PATH={PATH}", "HOME=/root")
        try:
            done = subprocess.run(
                (*inside, *certificates, *argv), input=stdin, capture_output=True, text=True, timeout=COMMAND_LIMIT_S,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            raise ToolError(f"{' '.join(argv)[:120]} has not ended after {COMMAND_LIMIT_S / 3600:.0f} hours") from error
        if check and done.returncode:
            end = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
            raise ToolError(f"{' '.join(argv)[:120]} ended with exit status {done.returncode}:\n{end}")
        return done

    def cut_network(self) -> None:
        """Only loopback works from now on."""
        _call("ip", "-n", self._network, "link", "set", "tap0", "down")

    def copy_repository(self, place: str) -> None:
        """Copy the files that git knows, as a release archive has them."""
        folder = self.root / place.lstrip("/")
        folder.mkdir(parents=True)
        for path in repository_files():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / path, folder / path)


def repository_files() -> list[Path]:
    """The files that git knows, relative to the repository."""
    listed = subprocess.run(("git", "ls-files", "-z"), cwd=REPOSITORY, capture_output=True, check=True).stdout
    return [Path(name) for name in filter(None, os.fsdecode(listed).split("\0")) if (REPOSITORY / name).is_file()]


def missing_packages() -> list[str]:
    return [package for program, package in PROGRAMS.items() if shutil.which(program) is None]


def _remove(root: Path) -> None:
    """Nothing while something is mounted in it."""
    with suppress(OSError):
        remove_path(root)


@contextmanager
def bare_debian(folder: Path, *names: str, suite: str = "bookworm", connected: bool = True) -> Iterator[BareDebian]:
    """Build the file system in the new directory `folder`, boot it, and remove everything at the end. Raises ToolError.

    `suite`: Debian's release.
    `connected`: the container reaches package registries until `cut_network`. Otherwise it has only loopback.
    """
    if os.getuid() != 0 or missing_packages():
        raise ToolError(f"This check needs root and these packages: {' '.join(PROGRAMS.values())}")
    root, network = folder / "root", f"sweetspot-{os.getpid()}-{folder.name}"
    folder.mkdir()
    with ExitStack() as stack:
        stack.callback(_remove, root)
        with step(f"building a bare Debian ({suite})"):
            _call("mmdebstrap", "--variant=minbase", f"--include={PACKAGES}", suite, str(root))
            _name(root, names)
            shutil.copy(f"/{AUTHORITIES}", root / AUTHORITIES)
        _call("ip", "netns", "add", network)
        stack.callback(_call, "ip", "netns", "delete", network)
        _call("ip", "-n", network, "link", "set", "lo", "up")
        path = f"/run/netns/{network}"
        if connected:
            slirp = ("slirp4netns", "--configure", "--disable-host-loopback", "--netns-type=path")
            stack.enter_context(_process(*slirp, path, "tap0"))
        options = (
            "--boot",
            "--register=no",
            "--keep-unit",
            "--resolv-conf=copy-host",
            f"--network-namespace-path={path}",
        )
        container = stack.enter_context(_process("systemd-nspawn", f"--directory={root}", *options))
        leader = _leader(container.pid)
        stack.callback(_power_off, container, leader)
        yield BareDebian(root, leader, network)


def _call(*argv: str) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(f"{argv[0]} ended with exit status {done.returncode}: {done.stderr[-1000:]}")


def _name(root: Path, names: Sequence[str]) -> None:
    (root / "etc/hostname").write_text(f"{names[0]}\n")
    (root / "etc/hosts").write_text(f"127.0.0.1 localhost {' '.join(names)}\n::1 localhost\n")


@contextmanager
def _process(*argv: str) -> Iterator[subprocess.Popen[bytes]]:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(STOP_LIMIT_S)


def _leader(container: int) -> int:
    """The pid of the container's init, once it has booted."""
    children = Path(f"/proc/{container}/task/{container}/children")
    if not await_condition(
        lambda: any(map(_is_up, children.read_text().split()[:1])), limit_s=START_LIMIT_S, every_s=0.5
    ):
        raise ToolError(f"systemd did not start in the container within {START_LIMIT_S:.0f} s")
    return int(children.read_text().split()[0])


def _is_up(leader: str) -> bool:
    argv = ("nsenter", f"--target={leader}", "--all", "systemctl", "is-system-running")
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip() in ("running", "degraded")


def _power_off(container: "subprocess.Popen[bytes]", leader: int) -> None:
    os.kill(leader, signal.SIGRTMIN + 4)  # systemd(1): poweroff.target
    container.wait(STOP_LIMIT_S)
