"""What programs print, in the formats of their documentation: none of this was tried on real hardware.

hdparm -I: hdparm 9.6x's section “Security”. nvme-cli: `id-ctrl` as JSON, `sanitize-log` for people (1.x and 2.x).
sg_format: sg3_utils 1.4x.
"""

import pytest

from worker.contract.inventory import PurgeMethod as M
from worker.drives.purge import ata, nvme, scsi
from worker.drives.purge.base import PurgeFailed

SECURITY = """Commands/features:
\tEnabled\tSupported:
\t   *\tSMART feature set
\t    \tSecurity Mode feature set
Security:
\tMaster password revision code = 65534
\t\tsupported
\tnot\tenabled
\tnot\tlocked
\t%s\tfrozen
\tnot\texpired: security count
\t\tsupported: enhanced erase
\t98min for SECURITY ERASE UNIT. 2min for ENHANCED SECURITY ERASE UNIT.
Logical Unit WWN Device Identifier: 5000c500a1b2c3d4
"""


def problems(offers: tuple[object, ...]) -> dict[str, str]:
    return {each.method.value: each.problem for each in offers}  # type: ignore[attr-defined]


def test_a_drive_that_is_not_frozen_can_be_erased() -> None:
    found = ata.read_security(SECURITY % "not")
    assert (found.supported, found.frozen, found.enhanced) == (True, False, True)
    assert (found.minutes, found.enhanced_minutes) == (98, 2)
    assert problems(ata.judged(found)) == {"ata_secure_erase": "", "ata_enhanced_erase": ""}


def test_a_frozen_drive_is_explained() -> None:
    said = problems(ata.judged(ata.read_security(SECURITY % "")))
    assert "frozen" in said["ata_secure_erase"]
    assert "Suspend and wake" in said["ata_enhanced_erase"]


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        ("", "does not support"),
        (SECURITY.replace("\tnot\tenabled", "\t\tenabled") % "not", "unknown password"),
        (SECURITY.replace("\t\tsupported\n", "\tnot\tsupported\n") % "not", "does not support"),
        (SECURITY.partition("\tMaster")[0] % (), "does not support"),
    ],
)
def test_a_drive_that_cannot_be_erased_says_why(printed: str, words: str) -> None:
    assert words in problems(ata.judged(ata.read_security(printed)))["ata_secure_erase"]


def test_a_drive_without_enhanced_erase() -> None:
    said = problems(ata.judged(ata.read_security(SECURITY.replace("supported: enhanced", "not: enhanced") % "not")))
    assert said["ata_secure_erase"] == ""
    assert "does not support" in said["ata_enhanced_erase"]


@pytest.mark.parametrize(
    ("oacs", "fna", "sanicap", "others", "usable"),
    [
        (0x5F, 0x4, 0x3, (), {M.NVME_FORMAT, M.NVME_FORMAT_CRYPTO, M.NVME_SANITIZE_BLOCK, M.NVME_SANITIZE_CRYPTO}),
        (0x17, 0x0, 0x2, (), {M.NVME_FORMAT, M.NVME_SANITIZE_BLOCK}),
        (0x10A, 0x0, 0x0, (), {M.NVME_FORMAT}),
        (0x5, 0x4, 0x0, (), set()),
        (0x2, 0x4, 0x3, ("nvme0n2",), {M.NVME_FORMAT, M.NVME_FORMAT_CRYPTO}),
        (0x2, 0x5, 0x3, ("nvme0n2",), set()),
        (0x2, 0x6, 0x3, ("nvme0n2",), set()),
    ],
)
def test_an_nvme_drive_offers_what_it_says(
    oacs: int, fna: int, sanicap: int, others: tuple[str, ...], usable: set[M]
) -> None:
    offers = nvme.judged(nvme.Controller(oacs=oacs, fna=fna, sanicap=sanicap), others)
    assert {offer.method for offer in offers if not offer.problem} == usable
    assert len(offers) == 4


def test_it_says_what_else_would_be_erased() -> None:
    offers = nvme.judged(nvme.Controller(oacs=2, sanicap=2), ("nvme0n2", "nvme0n3"))
    assert "also erase nvme0n2, nvme0n3" in problems(offers)["nvme_sanitize_block"]


@pytest.mark.parametrize(
    ("progress", "status", "read"),
    [("65535", "0x101", (1, 99.998)), ("32768", "0x2", (2, 50.0)), ("65535", "3", (3, 99.998)), ("0", "0x4", (4, 0.0))],
)
def test_the_sanitize_log(progress: str, status: str, read: tuple[int, float]) -> None:
    printed = f"""Sanitize Progress                      (SPROG) :  {progress}
Sanitize Status                        (SSTAT) :  {status}
Sanitize Command Dword 10 Information (SCDW10) :  0x2
Estimated Time For Overwrite                   :  4294967295 (No time period reported)
"""
    status_read, percent = nvme.read_progress(printed)
    assert status_read == read[0]
    assert percent == pytest.approx(read[1], abs=0.01)


def test_a_sanitize_log_that_was_cut_off_is_a_failure() -> None:
    with pytest.raises(PurgeFailed, match="could not be read"):
        nvme.read_progress("Sanitize Progress                      (SPROG) :")


@pytest.mark.parametrize(
    ("printed", "percent"),
    [
        ("", None),
        ("Format unit has started\nFormat unit in progress, 0.42% done\nFormat unit in progress, 12% done\n", 12.0),
        ("Format unit in progress, 99.87% done\nFORMAT UNIT Complete\n", 99.87),
    ],
)
def test_how_far_a_format_is(printed: str, percent: float | None) -> None:
    assert scsi.read_percent(printed) == percent
