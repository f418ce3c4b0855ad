"""ATA SECURITY ERASE UNIT, through hdparm (ACS-3, 4.20; hdparm(8)).

A drive needs a password before it can be erased, and loses it during the erase. The firmware of most hosts freezes the
security state of drives at start, so that no program can set a password.

    journal ─► password set ─► erased, or password removed ─► verified: the drive has none ─► dropped from the journal

A worker that is killed in between removes the password at its next start (`remove_password`). A drive that still erases
itself does not answer; the password then stays in the journal, and the worker tries again later.
"""

import re
import time
from pathlib import Path

import msgspec

from worker.contract.inventory import PurgeMethod, PurgeOffer
from worker.drives.purge.base import PurgeFailed, PurgeRun, Sent, answer, to_the_end
from worker.guard.lease import Lease
from worker.journal import DrivePassword, Journal
from worker.kernel import sysfs
from worker.process.run import ToolError, ToolOutput, ask

PASSWORD = "sweetspot"  # noqa: S105 - it lives for the length of the erasure, and is told where it is left behind
LIMIT_S = 24 * 3600.0
AGAIN = "the worker tries again at its next start and while it is idle."
_M = PurgeMethod
_FROZEN = (
    "The host's firmware has frozen the drive's security state. Suspend and wake the host, or unplug and reconnect "
    "the drive while the host runs. Some firmware has an option for this."
)
_MINUTES = re.compile(r"([0-9]+)min for (ENHANCED )?SECURITY ERASE UNIT")


class Security(msgspec.Struct, frozen=True, kw_only=True):
    """The section “Security” of hdparm -I."""

    supported: bool = False
    enabled: bool = False  # a password is set
    locked: bool = False
    frozen: bool = False
    enhanced: bool = False
    minutes: int | None = None  # duration according to the drive
    enhanced_minutes: int | None = None


def offers(name: str) -> tuple[PurgeOffer, ...]:
    if sysfs.transport(name) != "sata":
        return ()
    try:
        security = read_security(ask("hdparm", "-I", sysfs.device_path(name)).out)
    except ToolError as error:
        problem = f"The drive's features cannot be read: {error}"
        return tuple(PurgeOffer(method=each, problem=problem) for each in (_M.ATA_SECURE_ERASE, _M.ATA_ENHANCED_ERASE))
    return judged(security)


def judged(security: Security) -> tuple[PurgeOffer, ...]:
    problem = _problem(security)
    enhanced = problem or ("" if security.enhanced else "The drive does not support it.")
    return (
        PurgeOffer(method=_M.ATA_SECURE_ERASE, problem=problem),
        PurgeOffer(method=_M.ATA_ENHANCED_ERASE, problem=enhanced),
    )


def _problem(security: Security) -> str:
    if not security.supported:
        return "The drive does not support it."
    if security.frozen:
        return _FROZEN
    if security.locked or security.enabled:
        return "The drive has an unknown password: remove it first (hdparm --security-disable)."
    return ""


def read_security(printed: str) -> Security:
    """Lines read `not<tab>frozen` or `<tab>frozen`; a drive without the section supports nothing."""
    _, head, section = printed.partition("Security:")
    if not head:
        return Security()
    words = [" ".join(line.split()) for line in section.splitlines()]
    minutes = {bool(match[1]): int(match[0]) for match in _MINUTES.findall(section)}
    return Security(
        supported="supported" in words,
        enabled="enabled" in words,
        locked="locked" in words,
        frozen="frozen" in words,
        enhanced="supported: enhanced erase" in words,
        minutes=minutes.get(False),
        enhanced_minutes=minutes.get(True),
    )


def send(drive: Lease, method: PurgeMethod, run: PurgeRun) -> Sent:
    security = read_security(answer(drive, run, "hdparm", "-I", drive.path).out)
    enhanced = method is _M.ATA_ENHANCED_ERASE
    takes_s = 60.0 * ((security.enhanced_minutes if enhanced else security.minutes) or 0)
    set_password = ("hdparm", "--user-master", "u", "--security-set-pass", PASSWORD, drive.path)
    erase = ("hdparm", "--user-master", "u", f"--security-erase{'-enhanced' if enhanced else ''}", PASSWORD, drive.path)
    known = DrivePassword(stable_id=drive.stable_id, serial=drive.serial, device=drive.name, password=PASSWORD)
    run.journal.save_password(known)
    began = time.monotonic()

    def tick(_: str) -> None:
        passed = time.monotonic() - began
        run.progress((min(99.0, 100 * passed / takes_s) if takes_s else None), takes_s or None)

    try:
        answer(drive, run, *set_password)
        printed = to_the_end(drive, run, *erase, tick=tick, limit_s=LIMIT_S)
        if read_security(answer(drive, run, "hdparm", "-I", drive.path).out).enabled:
            raise PurgeFailed("purge_failed", f"{drive.path} still has its password, so it was not erased.")
    except PurgeFailed as error:
        note = remove_password(known, run.journal, run.state)
        left = f"The drive still has the password {PASSWORD!r}: {note}" if note else "The drive has no password."
        raise PurgeFailed(error.code, f"{error.message} {left}") from error
    run.journal.drop_password(known.stable_id)
    return Sent((" ".join(set_password), " ".join(erase)), printed)


def remove_password(known: DrivePassword, journal: Journal, state: Path) -> str:
    """Remove the password and drop it from the journal; return the reason if that is impossible now, else ""."""
    drive = sysfs.find_drive(known.stable_id, known.serial, known.device)
    if drive is None:
        return f"the drive is absent; {AGAIN}"
    try:
        return _without_password(drive.path, known, journal, state)
    except ToolError as error:
        return f"{error} {AGAIN}"


def _without_password(path: str, known: DrivePassword, journal: Journal, state: Path) -> str:
    def hdparm(*arguments: str) -> ToolOutput:
        return ask("hdparm", *arguments, path, limit_s=30.0, state=state, drives=(known.stable_id,))

    security = read_security(hdparm("-I").out)
    if security.locked:
        hdparm("--user-master", "u", "--security-unlock", known.password)
    if security.enabled:
        hdparm("--user-master", "u", "--security-disable", known.password)
    output = hdparm("-I")
    now = read_security(output.out)
    if output.exit_code or not now.supported or now.enabled or now.locked:
        why = _FROZEN if now.frozen else f"hdparm -I {path} does not report that it has none."
        return f"{why} By hand: hdparm --user-master u --security-disable {known.password} {path}"
    journal.drop_password(known.stable_id)
    return ""


def promises_zeros(name: str, method: PurgeMethod) -> bool | None:  # noqa: ARG001 - ACS leaves the pattern to the maker
    return None
