"""Purging: return a drive to a state without data, before preconditioning or reuse."""

from enum import StrEnum

from worker.contract.base import Message, Text


class PurgeMethod(StrEnum):
    DISCARD = "discard"  # BLKDISCARD over the whole device, as blkdiscard(8)
    NVME_FORMAT = "nvme_format"  # NVMe Format NVM, user data erase, with the current LBA format
    NVME_FORMAT_CRYPTO = "nvme_format_crypto"  # the same, cryptographic erase
    NVME_SANITIZE_BLOCK = "nvme_sanitize_block"  # NVMe Sanitize, block erase: all namespaces of the drive
    NVME_SANITIZE_CRYPTO = "nvme_sanitize_crypto"
    ATA_SECURE_ERASE = "ata_secure_erase"  # SECURITY ERASE UNIT
    ATA_ENHANCED_ERASE = "ata_enhanced_erase"
    SCSI_FORMAT = "scsi_format"  # FORMAT UNIT, as sg_format(8)


# Executed in pieces by the worker. All others continue inside the drive, even if the worker dies.
STOPPABLE = frozenset({PurgeMethod.DISCARD})


class PurgeOffer(Message, frozen=True, kw_only=True):
    """A method for drives of this kind. `problem` is why this drive cannot be purged with it now, "" if it can."""

    method: PurgeMethod
    problem: Text = ""
