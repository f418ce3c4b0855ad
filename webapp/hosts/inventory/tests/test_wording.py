"""The summary of differences between two inventories."""

import msgspec

from webapp.hosts.inventory.diff import summary
from worker.contract.inventory import Holder
from worker.contract.tests.example_inventory import INVENTORY

replace = msgspec.structs.replace
(DRIVE,) = INVENTORY.block_devices


def test_it_says_nothing_of_what_stayed() -> None:
    assert summary(INVENTORY, INVENTORY) == []


def test_it_says_that_the_host_was_rebooted_into_another_kernel() -> None:
    kernel = replace(INVENTORY.kernel, release="6.12.1", boot_id="another")
    assert summary(INVENTORY, replace(INVENTORY, kernel=kernel)) == [
        "The host was rebooted.",
        "The kernel was 6.1.0-28-amd64, is 6.12.1.",
    ]


def test_it_tells_a_drive_that_moved_from_one_that_was_exchanged() -> None:
    moved = replace(DRIVE, name="nvme1n1")
    assert summary(INVENTORY, replace(INVENTORY, block_devices=(moved,))) == [
        "Disk nvme0n1 (SAMSUNG MZQLB960HAJR-00007, serial S4EWNX0R512345) is now called nvme1n1."
    ]
    other = replace(DRIVE, stable_id="eui.2", serial="OTHER")
    said = summary(INVENTORY, replace(INVENTORY, block_devices=(other,)))
    assert [words.endswith(("was added.", "was removed.")) for words in said] == [True, True]
    assert "OTHER" in said[0]


def test_it_names_firmware_scheduler_and_who_uses_a_drive() -> None:
    used = replace(DRIVE, firmware="NEW", scheduler="mq-deadline", holders=(Holder(kind="mount", detail="/srv"),))
    assert summary(INVENTORY, replace(INVENTORY, block_devices=(used,))) == [
        "nvme0n1: firmware was EDA5502Q, is NEW.",
        "nvme0n1: scheduler was none, is mq-deadline.",
        "nvme0n1: in use by was nothing, is mount /srv.",
    ]


def test_what_becomes_known_is_no_change() -> None:
    unknown = replace(INVENTORY, distribution="", block_devices=(replace(DRIVE, firmware="", signature=""),))
    known = replace(INVENTORY, block_devices=(replace(DRIVE, signature="ext4"),))
    assert summary(unknown, known) == ["nvme0n1: holds was nothing, is ext4."]
    (sentence,) = summary(replace(unknown, block_devices=(replace(DRIVE, firmware=""),)), INVENTORY)
    assert DRIVE.firmware not in sentence
    assert INVENTORY.distribution not in sentence


def test_loop_devices_come_and_go_unless_they_are_targets() -> None:
    loop = replace(DRIVE, name="loop5", path="/dev/loop5", kind="loop", stable_id="loop:/a", serial="", model="")
    with_loop = replace(INVENTORY, block_devices=(DRIVE, loop))
    assert summary(INVENTORY, with_loop) == summary(with_loop, INVENTORY) == []
    assert summary(INVENTORY, with_loop, {"/dev/loop5"}) == ["Loop loop5 was added."]
    other = replace(INVENTORY, block_devices=(DRIVE, replace(loop, stable_id="loop:/b")))
    assert len(summary(with_loop, other, {"/dev/loop5"})) == 2
