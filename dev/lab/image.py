"""The guest's disk, kernel and initial ramdisk, built from Debian's packages with this machine's package sources."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dev.console import ToolError, step
from worker.kernel.mounts import remove_path

HOST_PACKAGES = ("mmdebstrap", "e2fsprogs", "openssh-client", "qemu-system-x86", "seabios")
GUEST_PACKAGES = (
    "linux-image-amd64", "initramfs-tools", "systemd-sysv", "udev", "dbus", "kmod", "openssh-server", "iproute2",
    "ifupdown", "procps", "util-linux", "fdisk", "pciutils", "nvme-cli", "smartmontools", "sg3-utils", "hdparm",
    "mdadm", "lvm2", "dmsetup", "xfsprogs", "e2fsprogs", "jfsutils", "btrfs-progs", "f2fs-tools", "fio",
    "python3", "python3-venv", "ca-certificates", "curl",
)  # fmt: skip
ROOT_BYTES = 4 * 2**30
LABEL = "sweetspotlab"
ADDRESS, GATEWAY = "10.0.2.15/24", "10.0.2.2"  # of QEMU's user network
SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
HOOKS = (
    # modules for the root disk only: the guest loads those of the drives after its start
    'cd "$1/etc" && mkdir -p initramfs-tools/conf.d'
    ' && printf "MODULES=list\\nCOMPRESS=lz4\\n" >initramfs-tools/conf.d/lab'
    ' && printf "virtio_pci\\nvirtio_blk\\next4\\n" >initramfs-tools/modules',
)


def install_packages() -> None:
    """Install missing packages on this machine. Without root, raise ToolError with their names."""
    missing = [name for name in HOST_PACKAGES if not _installed(name)]
    if not missing:
        return
    if os.getuid() != 0:
        raise ToolError(f"The lab needs these packages: apt-get install --no-install-recommends {' '.join(missing)}")
    with step(f"installing {', '.join(missing)}"):
        _run(("apt-get", "update", "-qq"))
        _run(("apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing))


def build(directory: Path) -> None:
    """Create `root.img`, `vmlinuz`, `initrd.img` and the key, unless they exist and their recipe is unchanged."""
    tree = directory / "tree"
    recipe = directory / "recipe"
    described = "\n".join((*_bootstrap(directory, tree), str(ROOT_BYTES))) + "\n"
    if (directory / "root.img").exists() and recipe.exists() and recipe.read_text() == described:
        return
    install_packages()
    directory.mkdir(parents=True, exist_ok=True)
    with step("building the guest's disk from Debian's packages"):
        _remove(tree)
        if not (directory / "key").exists():
            _run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(directory / "key")))
        try:
            _run(_bootstrap(directory, tree))
            _pack(directory, tree)
            recipe.write_text(described)
        finally:
            _remove(tree)


def _remove(tree: Path) -> None:
    """Nothing while something is mounted in it, as mmdebstrap mounts it."""
    with suppress(OSError):
        remove_path(tree)


def _bootstrap(directory: Path, tree: Path) -> Sequence[str]:
    sources = next((each for each in SOURCES if each.exists() and each.stat().st_size), None)
    if sources is None:
        raise ToolError(f"This machine has no package sources: {' and '.join(map(str, SOURCES))} are missing.")
    leave_out = [f"--dpkgopt=path-exclude=/usr/share/{each}/*" for each in ("doc", "man", "locale", "info")]
    return (
        "mmdebstrap", "--variant=minbase", f"--include={','.join(GUEST_PACKAGES)}", *leave_out,
        "--aptopt=Apt::Install-Recommends false", *(f"--essential-hook={hook}" for hook in HOOKS),
        *(f"--customize-hook={hook}" for hook in _customize(directory)), "bookworm", str(tree), str(sources),
    )  # fmt: skip


def _customize(directory: Path) -> Sequence[str]:
    network = (
        f"auto lo eth0\\niface lo inet loopback\\niface eth0 inet static\\n address {ADDRESS}\\n gateway {GATEWAY}\\n"
    )
    timers = "apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer mdmonitor.service"
    return (
        'echo storage1 >"$1/etc/hostname"',
        f'printf "LABEL={LABEL} / ext4 rw,noatime 0 1\\n" >"$1/etc/fstab"',
        f'printf "{network}" >"$1/etc/network/interfaces"',
        f'mkdir -p -m 700 "$1/root/.ssh" && cp "{directory}/key.pub" "$1/root/.ssh/authorized_keys"',
        'sed -i "s/^#*UseDNS.*/UseDNS no/" "$1/etc/ssh/sshd_config"',
        f'chroot "$1" systemctl mask {timers} >/dev/null 2>&1 || true',  # no other program uses the drives
        'printf "bfq\\nkyber-iosched\\n" >"$1/etc/modules-load.d/lab.conf"',
        'printf "AUTO -all\\n" >"$1/etc/mdadm/mdadm.conf"',  # only the tests assemble arrays
    )


def _pack(directory: Path, tree: Path) -> None:
    for pattern, name in (("vmlinuz-*", "vmlinuz"), ("initrd.img-*", "initrd.img")):
        found = sorted((tree / "boot").glob(pattern))
        if not found:
            raise ToolError(f"The guest's packages contain no {pattern}.")
        shutil.move(found[-1], directory / name)
    unfinished = directory / "root.img.part"
    with unfinished.open("wb") as file:
        file.truncate(ROOT_BYTES)
    _run(("mke2fs", "-q", "-t", "ext4", "-L", LABEL, "-d", str(tree), str(unfinished)))
    unfinished.rename(directory / "root.img")


def _installed(package: str) -> bool:
    said = subprocess.run(
        ("dpkg-query", "-W", "-f", "${db:Status-Status}", package), capture_output=True, text=True, check=False
    )
    return said.stdout == "installed"


def _run(command: Sequence[str]) -> None:
    """Run a command. Raises ToolError with the end of its output."""
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, stdin=subprocess.DEVNULL)
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()[-12:]
        raise ToolError(f"{command[0]} ended with exit status {done.returncode}:\n" + "\n".join(words))
