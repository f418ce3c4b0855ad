"""The installed fio: its version, and the features that work here, tried with tiny jobs in a temporary directory.

Results are cached for this boot and this fio. A feature that could not be tried, because fio was killed or did not end,
is tried again the next time. A missing feature fails the stream with its name; the worker never replaces it by another
one.
"""

import mmap
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from errno import EOPNOTSUPP
from functools import lru_cache
from pathlib import Path

from worker.contract.inventory import EngineOffer
from worker.contract.workload import KIB, FioWorkload, IoEngine, Pattern, UringOptions
from worker.engines.base import Check, State, StreamFailed, last_words
from worker.kernel import sysfs
from worker.kernel.counters import SYS_BLOCK
from worker.kernel.usage import current_boot_id
from worker.process.run import ToolError, ask

# Known errors of particular fio versions.


def version_of(text: str) -> tuple[int, int]:
    """(3, 33) for `fio-3.33` or `fio-3.36-12-gabcd`; (0, 0) for an unknown format."""
    match = re.search(r"([0-9]+)\.([0-9]+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def completion_latency_problem(version: str, work: FioWorkload) -> str:
    """Why the completion latency of this fio version is wrong, "" if it is not.

    With sqthread_poll it is the only available latency. It was wrong before 3.34
    (axboe/fio#1484), and at queue depths above 1 before 3.36 (axboe/fio pull 1594).
    """
    if not work.uring.sqthread_poll:
        return ""
    needed = (3, 34) if work.iodepth == 1 else (3, 36)
    if version_of(version) >= needed:
        return ""
    return (
        f"{version} reports a wrong completion latency for sqthread_poll at depth {work.iodepth}: "
        f"install fio {needed[0]}.{needed[1]} or newer, or measure without sqthread_poll."
    )


TRY_LIMIT_S = 20.0
COMMANDS_SINCE = (5, 19)  # version of Linux: IORING_OP_URING_CMD for NVMe
URING_OPTIONS = UringOptions.__struct_fields__
_UNSUPPORTED = re.compile(rf"\berr={EOPNOTSUPP}\b")


def offer() -> EngineOffer | None:
    """The features that work on this host. The first call takes about a second."""
    version = fio_version()
    if not version:
        return None
    ioengines = [engine.value for engine in IoEngine if not engine_problem(engine)]
    options = [option for option in URING_OPTIONS if not uring_problem(option) and not _mismeasured(option)]
    return EngineOffer(version=version, features=(*ioengines, *options))


def missing_features(workload: FioWorkload, path: str) -> tuple[str, ...]:
    """Descriptions of requested features that this host, or the device under `path`, does not have."""
    return tuple(words for _, words in _missing(workload, sysfs.device_under(path)))


def check_features(workload: FioWorkload, device: str) -> None:
    """Raises StreamFailed with all missing features. `device` is the kernel name, "" if unknown."""
    missing = _missing(workload, device)
    if missing:
        raise StreamFailed(missing[0][0], "; ".join(words for _, words in missing))


def fio_version() -> str:
    """The version as printed by fio, such as `fio-3.33`; "" without fio."""
    return _version(*_identity())


def engine_problem(engine: IoEngine) -> str:
    """Why the I/O engine does not work on this host, "" if it does."""
    return _try(*_identity(), engine.value, "")


def uring_problem(option: str) -> str:
    """Why this option of io_uring does not work on this host, "" if it does."""
    return engine_problem(IoEngine.IO_URING) or _try(*_identity(), IoEngine.IO_URING.value, option)


def _mismeasured(option: str) -> bool:
    """True if this fio version reports a wrong latency for the option, at any depth."""
    at_best = FioWorkload(pattern=Pattern.READ, uring=UringOptions(**{option: True}))
    return bool(completion_latency_problem(fio_version(), at_best))


def _missing(work: FioWorkload, device: str) -> list[tuple[str, str]]:
    problem = engine_problem(work.ioengine)
    if problem:
        return [("engine_missing", f"I/O engine {work.ioengine} does not work on this host: {problem}")]
    problems = [
        ("uring_feature_missing", f"io_uring option {option} does not work on this host: {problem}")
        for option in work.uring.wanted()
        if (problem := _try(*_identity(), work.ioengine.value, option))
    ]
    if work.uring.hipri and not polls(device):
        problems.append(
            ("uring_feature_missing", f"hipri: {device or 'the device'} has no poll queues (queue/io_poll).")
        )
    if work.ioengine is IoEngine.SG and not is_scsi_disk(device):
        problems.append(("option_refused", f"sg: {device or 'the target'} is not a whole SCSI drive."))
    if work.ioengine is IoEngine.IO_URING_CMD and (problem := passthrough_problem(work, device)):
        problems.append(("option_refused", problem))
    latency = completion_latency_problem(fio_version(), work)
    return [*problems, ("option_refused", latency)] if latency else problems


def polls(device: str, sys_block: Path = SYS_BLOCK) -> bool:
    """Whether the block device, or the disk of a partition, has poll queues."""
    here = (sys_block / device).resolve()
    for directory in (here, here.parent) if device else ():
        file = directory / "queue" / "io_poll"
        if file.exists():
            return file.read_text().strip() == "1"
    return False


def is_scsi_disk(device: str, sys_block: Path = SYS_BLOCK) -> bool:
    """Whether the block device is a whole SCSI drive.

    SCSI commands to a partition or a volume may go to the drive below it, and so leave the target.
    """
    return bool(device) and (sys_block / device / "device" / "scsi_disk").is_dir()


def passthrough_problem(work: FioWorkload, device: str, sys: Path = sysfs.SYS) -> str:
    """Why NVMe commands of this workload cannot be sent to the block device, "" if they can.

    Linux, drivers/nvme/host/ioctl.c: commands to a namespace have no partition, and are not split. block/blk-map.c:
    each page of a buffer may be a segment, and a command with too many fails with EINVAL.
    """
    if not device or not sysfs.nvme_generic(device, sys):
        return f"io_uring_cmd: {device or 'the target'} is not a whole NVMe drive with a generic device (/dev/ng…)."
    limits = (("max_hw_sectors_kb", KIB), ("max_segments", mmap.PAGESIZE))
    known = [count * unit for name, unit in limits if (count := sysfs.number(device, f"queue/{name}", sys))]
    most_bytes = min(known, default=work.largest_io_bytes)
    if work.largest_io_bytes > most_bytes:
        return f"io_uring_cmd: {device} accepts commands of at most {most_bytes // KIB} KiB. Use a smaller block size."
    return ""


def installation() -> str:
    """Path and time of change of the installed fio; "@0" if there is none."""
    program = shutil.which("fio") or ""
    changed = Path(program).stat().st_mtime_ns if program else 0
    return f"{program}@{changed}"


def _identity() -> tuple[str, str]:
    """This boot and this fio: cached results are valid while both are the same."""
    return current_boot_id(), installation()


def _version(boot: str, fio: str) -> str:
    program = fio.rpartition("@")[0]
    try:
        return _told_version(boot, fio) if program else ""
    except ToolError:
        return ""


@lru_cache(maxsize=8)
def _told_version(_boot: str, fio: str) -> str:
    """Raises ToolError, which is not cached."""
    return ask(fio.rpartition("@")[0], "--version", limit_s=TRY_LIMIT_S).out.strip()[:200]


def _try(boot: str, fio: str, engine: str, option: str) -> str:
    """Why the I/O engine with the option does not work, "" if it works."""
    if not fio.rpartition("@")[0]:
        return "fio is not installed"
    with suppress(ToolError):
        return _tried(boot, fio, engine, option)
    try:
        return _tried(boot, fio, engine, option)
    except ToolError as error:
        return f"two tries had no result: {error}"


@lru_cache(maxsize=64)
def _tried(_boot: str, fio: str, engine: str, option: str) -> str:
    """Read one block with the I/O engine and the option. Returns why that fails, "" if it works.

    Raises ToolError, which is not cached, if fio was killed or did not end.
    """
    program = fio.rpartition("@")[0]
    if IoEngine(engine).sends_commands:  # needs a SCSI or NVMe drive, and there may be none
        if engine == IoEngine.IO_URING_CMD and version_of(os.uname().release) < COMMANDS_SINCE:
            return f"it needs Linux {COMMANDS_SINCE[0]}.{COMMANDS_SINCE[1]}"
        known = ask(program, f"--enghelp={engine}", limit_s=TRY_LIMIT_S).exit_code == 0
        return "" if known else "this fio does not have it"
    job = f"[try]\nfilename=try\nsize=4k\nrw=read\nbs=4k\nioengine={engine}\n" + (f"{option}=1\n" if option else "")
    with tempfile.TemporaryDirectory(prefix="sweetspot-try-") as directory:
        Path(directory, "try").write_bytes(bytes(4096))
        return _outcome(program, job, directory, polled=option == "hipri")


def _outcome(program: str, job: str, directory: str, *, polled: bool) -> str:
    """ "Not supported" for a file that cannot be polled shows that kernel and fio support polling."""
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        done = ask(program, "--eta=never", "-", stdin_text=job, cwd_fd=place, limit_s=TRY_LIMIT_S)
    finally:
        os.close(place)
    words = f"{done.out if done.exit_code else ''}\n{done.err}"
    if done.exit_code == 0 or (polled and _UNSUPPORTED.search(words)):
        return ""
    return _disabled() or f"fio says: {_errors(words)}"


def _disabled() -> str:
    """io_uring may be disabled for all processes (2), or for all except root and a group (1)."""
    switch = Path("/proc/sys/kernel/io_uring_disabled")
    value = switch.read_text().strip() if switch.exists() else "0"
    if value == "2" or (value == "1" and os.geteuid() != 0):
        return f"io_uring is disabled by kernel.io_uring_disabled={value}"
    return ""


def _errors(words: str) -> str:
    errors = [line for line in words.splitlines() if "error" in line or "fio:" in line or "fail" in line]
    return last_words("\n".join(errors) or words, lines=3)


# The checks of fio and io_uring for `sweetspot-worker doctor`.


def check() -> Iterator[Check]:
    offered = offer()
    if offered is None:
        advice = "Install it: apt install fio. Prefill needs it for every engine."
        yield Check("fio", State.BROKEN, "fio was not found on the PATH.", advice)
        return
    yield Check("fio", State.OK, f"{offered.version}; supports: {', '.join(offered.features) or 'nothing'}")
    if IoEngine.IO_URING in offered.features:
        yield Check("io_uring", State.OK, "works")
        return
    advice = "See “sysctl kernel.io_uring_disabled”; in a container, its seccomp profile must allow io_uring."
    yield Check("io_uring", State.BROKEN, "does not work on this host.", advice)
