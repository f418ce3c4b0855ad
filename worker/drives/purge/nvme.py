"""NVMe Format NVM and Sanitize, through nvme-cli.

NVM Express Base Specification 1.4: Identify Controller OACS bit 1 (Format NVM supported), FNA bits 0 and 1 (it affects
all namespaces) and 2 (cryptographic erase), SANICAP bits 0 and 1 (crypto erase, block erase); Identify Namespace
DLFEAT bits 2:0 = 1 (deallocated blocks read as zeros). Sanitize always affects the whole drive. The status page is
parsed from nvme-cli's text output, which is the same in all versions.
"""

import re
import time

import msgspec

from worker.contract.base import MAX_TEXT
from worker.contract.inventory import PurgeMethod, PurgeOffer
from worker.drives.purge.base import PurgeFailed, PurgeRun, Sent, answer, to_the_end
from worker.guard.lease import Lease
from worker.kernel import sysfs
from worker.process.run import ToolError, ask

LIMIT_S = 4 * 3600.0
POLL_S = 1.0
_M = PurgeMethod
_SECURE_ERASE = {_M.NVME_FORMAT: 1, _M.NVME_FORMAT_CRYPTO: 2}  # SES of Format NVM
_ACTION = {_M.NVME_SANITIZE_BLOCK: 2, _M.NVME_SANITIZE_CRYPTO: 4}  # SANACT of Sanitize
_DONE, _GOING_ON = (1, 4), 2  # Sanitize Status, bits 2:0; 4: done, without the requested deallocation
_PROGRESS = re.compile(r"\(SPROG\)\s*:\s*([0-9]+)")
_STATUS = re.compile(r"\(SSTAT\)\s*:\s*(0x[0-9a-fA-F]+|[0-9]+)")


class Controller(msgspec.Struct, frozen=True):
    """Fields of Identify Controller that list the supported methods."""

    oacs: int = 0
    fna: int = 0
    sanicap: int = 0


class _Namespace(msgspec.Struct, frozen=True):
    dlfeat: int = 0


def offers(name: str) -> tuple[PurgeOffer, ...]:
    if sysfs.transport(name) != "nvme":
        return ()
    try:
        output = ask("nvme", "id-ctrl", "--output-format=json", sysfs.device_path(name))
        controller = msgspec.json.decode(output.out, type=Controller) if output.exit_code == 0 else None
    except (ToolError, msgspec.DecodeError, msgspec.ValidationError) as error:
        return _all(f"The drive's features cannot be read: {error}")
    if controller is None:
        return _all(f"The drive's features cannot be read: {output.err.strip()[:500]}")
    return judged(controller, other_namespaces(name))


def judged(controller: Controller, others: tuple[str, ...]) -> tuple[PurgeOffer, ...]:
    """The methods of a drive that also has these other namespaces."""
    too = f"It would also erase {', '.join(others)} on the same drive." if others else ""
    formats, crypto = bool(controller.oacs & 2), bool(controller.fna & 4)
    of_all = too if controller.fna & 3 else ""
    return (
        _offer(_M.NVME_FORMAT, formats, of_all),
        _offer(_M.NVME_FORMAT_CRYPTO, formats and crypto, of_all),
        _offer(_M.NVME_SANITIZE_BLOCK, bool(controller.sanicap & 2), too),
        _offer(_M.NVME_SANITIZE_CRYPTO, bool(controller.sanicap & 1), too),
    )


def _offer(method: PurgeMethod, supported: bool, problem: str) -> PurgeOffer:
    return PurgeOffer(method=method, problem=problem if supported else "The drive does not support it.")


def _all(problem: str) -> tuple[PurgeOffer, ...]:
    return tuple(PurgeOffer(method=method, problem=problem[:MAX_TEXT]) for method in (*_SECURE_ERASE, *_ACTION))


def other_namespaces(name: str) -> tuple[str, ...]:
    """Other block devices of the same drive."""
    identity = sysfs.model(name), sysfs.serial(name)
    drives = (n for n in sysfs.names() if n != name and sysfs.kind(n) == "disk" and sysfs.transport(n) == "nvme")
    return tuple(each for each in drives if (sysfs.model(each), sysfs.serial(each)) == identity)


def send(drive: Lease, method: PurgeMethod, run: PurgeRun) -> Sent:
    return _format(drive, method, run) if method in _SECURE_ERASE else _sanitize(drive, method, run)


def _format(drive: Lease, method: PurgeMethod, run: PurgeRun) -> Sent:
    command = ("nvme", "format", drive.path, f"--ses={_SECURE_ERASE[method]}", "--force")
    run.progress(None, None)
    printed = to_the_end(drive, run, *command, tick=lambda _: run.progress(None, None), limit_s=LIMIT_S)
    return Sent((" ".join(command),), printed)


def _sanitize(drive: Lease, method: PurgeMethod, run: PurgeRun) -> Sent:
    controller = controller_path(drive.name)
    command = ("nvme", "sanitize", controller, f"--sanact={_ACTION[method]}")
    answer(drive, run, *command)
    give_up_at = time.monotonic() + LIMIT_S
    while time.monotonic() < give_up_at:
        time.sleep(POLL_S)
        printed = answer(drive, run, "nvme", "sanitize-log", controller).out
        status, percent = read_progress(printed)
        if status in _DONE:
            return Sent((" ".join(command),), printed)
        if status != _GOING_ON:
            raise PurgeFailed("purge_failed", f"The drive reports that sanitize failed (status {status}).")
        run.progress(percent, None)
    raise PurgeFailed("purge_timeout", f"{drive.path} has not finished after {LIMIT_S / 3600:g} hours.")


def read_progress(printed: str) -> tuple[int, float]:
    """Status (bits 2:0 of SSTAT) and percent (SPROG of 65536). Raises PurgeFailed for an unknown format."""
    progress, status = _PROGRESS.search(printed), _STATUS.search(printed)
    if progress is None or status is None:
        raise PurgeFailed("purge_failed", f"The sanitize log could not be read: {printed[:500]!r}")
    return int(status[1], 0) & 7, 100 * int(progress[1]) / 65536


def controller_path(name: str) -> str:
    """The character device of the drive; for a drive with several paths, the first one."""
    place = (sysfs.node(name) / "device").resolve()
    places = [place, *sorted(place.glob("nvme[0-9]*"))]
    first = next((each.name for each in places if re.fullmatch(r"nvme[0-9]+", each.name)), "")
    if not first:
        raise PurgeFailed("purge_failed", f"The NVMe controller of {name} was not found.")
    return f"/dev/{first}"


def promises_zeros(name: str, method: PurgeMethod) -> bool | None:
    if method not in _SECURE_ERASE:
        return None
    try:
        output = ask("nvme", "id-ns", "--output-format=json", sysfs.device_path(name))
        return msgspec.json.decode(output.out, type=_Namespace).dlfeat & 7 == 1 or None
    except (ToolError, msgspec.DecodeError, msgspec.ValidationError):
        return None
