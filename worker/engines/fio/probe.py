"""Find out what this host can run by starting tiny fio jobs in a temporary directory.

Cached for this boot and this fio. A missing feature fails the stream and is named; nothing is
replaced silently.
"""

import os
import re
import shutil
import stat
import tempfile
from functools import lru_cache
from pathlib import Path

from worker.contract.inventory import EngineOffer
from worker.contract.workload import FioWorkload, IoEngine, Pattern, UringOptions
from worker.engines.device import SYS_BLOCK
from worker.engines.errors import StreamFailed, last_words
from worker.engines.fio.messages import EOPNOTSUPP
from worker.engines.fio.version import completion_latency_problem
from worker.process import ToolError, ask

TRY_LIMIT_S = 20.0
URING_OPTIONS = UringOptions.__struct_fields__
_UNSUPPORTED = re.compile(rf"\berr={EOPNOTSUPP}\b")


def offer() -> EngineOffer | None:
    """What works here. The first call takes about a second."""
    version = fio_version()
    if not version:
        return None
    ioengines = [engine.value for engine in IoEngine if not engine_problem(engine)]
    options = [option for option in URING_OPTIONS if not uring_problem(option) and not _mismeasured(option)]
    return EngineOffer(version=version, features=(*ioengines, *options))


def missing_features(workload: FioWorkload, path: str) -> tuple[str, ...]:
    """What the workload asks for and this host, or the device under `path`, does not have; in words."""
    return tuple(words for _, words in _missing(workload, device_under(path)))


def check_features(workload: FioWorkload, device: str) -> None:
    """Raises StreamFailed naming everything that is missing. `device` is the kernel name, "" if unknown."""
    missing = _missing(workload, device)
    if missing:
        raise StreamFailed(missing[0][0], "; ".join(words for _, words in missing))


def fio_version() -> str:
    """As fio prints it, e.g. `fio-3.33`; "" if there is none."""
    return _version(*_identity())


def engine_problem(engine: IoEngine) -> str:
    """Why the engine does not work here, "" if it does."""
    return _try(*_identity(), engine.value, "")


def uring_problem(option: str) -> str:
    """Why this option of io_uring does not work here, "" if kernel and fio have it."""
    return engine_problem(IoEngine.IO_URING) or _try(*_identity(), IoEngine.IO_URING.value, option)


def _mismeasured(option: str) -> bool:
    """This fio runs it, at any depth, only with a latency that must not be reported."""
    at_best = FioWorkload(pattern=Pattern.READ, uring=UringOptions(**{option: True}))
    return bool(completion_latency_problem(fio_version(), at_best))


def _missing(work: FioWorkload, device: str) -> list[tuple[str, str]]:
    problem = engine_problem(work.ioengine)
    if problem:
        return [("engine_missing", f"I/O engine {work.ioengine} does not work on this host: {problem}")]
    found = [
        ("uring_feature_missing", f"io_uring option {option} does not work on this host: {problem}")
        for option in work.uring.wanted()
        if (problem := uring_problem(option))
    ]
    if work.uring.hipri and not polls(device):
        found.append(("uring_feature_missing", f"hipri: {device or 'the device'} has no poll queues (queue/io_poll)."))
    latency = completion_latency_problem(fio_version(), work)
    return [*found, ("option_refused", latency)] if latency else found


def polls(device: str, sys_block: Path = SYS_BLOCK) -> bool:
    """Whether the block device has poll queues; a partition has those of its disk."""
    here = (sys_block / device).resolve()
    for directory in (here, here.parent) if device else ():
        file = directory / "queue" / "io_poll"
        if file.exists():
            return file.read_text().strip() == "1"
    return False


def device_under(path: str) -> str:
    """Kernel name of the block device that `path` is or lies on; "" if there is none of that number."""
    try:
        found = Path(path).stat()
    except OSError:
        return ""
    number = found.st_rdev if stat.S_ISBLK(found.st_mode) else found.st_dev
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    return link.resolve().name if link.exists() else ""


def installation() -> str:
    """Path and time of change of the installed fio; "@0" if there is none."""
    program = shutil.which("fio") or ""
    changed = Path(program).stat().st_mtime_ns if program else 0
    return f"{program}@{changed}"


def _identity() -> tuple[str, str]:
    """This boot and this fio: cached results are valid while both are the same."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip(), installation()


@lru_cache(maxsize=8)
def _version(_boot: str, fio: str) -> str:
    program = fio.rpartition("@")[0]
    if not program:
        return ""
    try:
        return ask(program, "--version", limit_s=TRY_LIMIT_S).out.strip()[:200]
    except ToolError:
        return ""


@lru_cache(maxsize=64)
def _try(_boot: str, fio: str, engine: str, option: str) -> str:
    """Read one block with the engine and the option; why that does not work, "" if it does."""
    program = fio.rpartition("@")[0]
    if not program:
        return "fio is not installed"
    job = f"[try]\nfilename=try\nsize=4k\nrw=read\nbs=4k\nioengine={engine}\n" + (f"{option}=1\n" if option else "")
    with tempfile.TemporaryDirectory(prefix="sweetspot-try-") as directory:
        Path(directory, "try").write_bytes(bytes(4096))
        return _outcome(program, job, directory, polled=option == "hipri")


def _outcome(program: str, job: str, directory: str, *, polled: bool) -> str:
    """A file that cannot be polled answers "not supported", which shows that kernel and fio know polling."""
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        done = ask(program, "--eta=never", "-", stdin_text=job, cwd_fd=place, limit_s=TRY_LIMIT_S)
    except ToolError as error:
        return str(error)
    finally:
        os.close(place)
    words = f"{done.out if done.exit_code else ''}\n{done.err}"
    if done.exit_code == 0 or (polled and _UNSUPPORTED.search(words)):
        return ""
    return _disabled() or f"fio says: {_errors(words)}"


def _disabled() -> str:
    """io_uring may be switched off for everybody (2) or for all but a group and root (1)."""
    switch = Path("/proc/sys/kernel/io_uring_disabled")
    value = switch.read_text().strip() if switch.exists() else "0"
    if value == "2" or (value == "1" and os.geteuid() != 0):
        return f"io_uring is switched off by kernel.io_uring_disabled={value}"
    return ""


def _errors(words: str) -> str:
    said = [line for line in words.splitlines() if "error" in line or "fio:" in line or "fail" in line]
    return last_words("\n".join(said) or words, lines=3)
