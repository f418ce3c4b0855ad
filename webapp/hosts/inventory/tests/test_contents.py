"""What a person reads about a drive before it is overwritten."""

import msgspec
import pytest
from msgspec.structs import replace

from webapp.hosts.inventory.store import NOT_KNOWN, NOTHING, content, contents
from webapp.hosts.models import Target
from webapp.tests.factories.hosts import a_host, an_inventory, storage1_drive, storage1_inventory
from worker.contract.inventory import Holder

DRIVE = Target(kind="block", path="/dev/disk/by-id/x", opens="/dev/nvme0n1", device="nvme0n1")


def test_it_names_file_systems_partitions_and_who_uses_them() -> None:
    facts = storage1_inventory()
    drive = facts.block_devices[0]
    part = replace(drive, name="nvme0n1p1", parents=("nvme0n1",), signature="xfs", kind="partition")
    other = replace(part, name="nvme0n1p2", signature="", holders=(Holder(kind="holder", detail="md0"),))
    devices = (replace(drive, signature="gpt"), part, other)
    said = content(DRIVE, replace(facts, block_devices=devices))
    assert said == "gpt; nvme0n1p1: xfs; nvme0n1p2: holder md0"


def test_it_does_not_call_empty_what_it_does_not_know() -> None:
    facts = storage1_inventory()
    assert content(DRIVE, facts) == NOTHING
    assert content(DRIVE, None) == NOT_KNOWN
    assert content(DRIVE, replace(facts, block_devices=())) == NOT_KNOWN


@pytest.mark.django_db
def test_it_goes_by_the_newest_look_at_each_host() -> None:
    drive = storage1_drive(a_host("storage1"), opens="/dev/nvme0n1")
    elsewhere = storage1_drive(a_host("storage2"))
    inventory = an_inventory(drive.host)
    assert contents([drive, elsewhere]) == {drive.pk: NOTHING, elsewhere.pk: NOT_KNOWN}
    inventory.content.facts = msgspec.to_builtins({**inventory.content.facts, "block_devices": "cut off"})
    inventory.content.save()
    assert contents([drive])[drive.pk] == NOT_KNOWN
