"""A preview says what the hosts do not support."""

import msgspec
import pytest

from webapp.plans.document import Part
from webapp.plans.preview import preview
from webapp.plans.tests.helpers import document, part
from webapp.tests.factories.hosts import a_drive, a_host, a_target, an_inventory, storage1_inventory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (part(layout="raid0 x1 chunk 64k"), "layouts with md (package mdadm)"),
        (part(scheduler="none"), "setting scheduler"),
        (part(ioengine="libaio"), ""),
    ],
)
def test_it_says_before_the_start_what_a_host_does_not_support(one: Part, words: str) -> None:
    host = a_host("store1")
    host.capabilities |= {"settings": []}
    drive = a_drive(host, size_bytes=2**40)
    pool = a_target(host, kind="pool", drives=[drive.slug], size_bytes=2**40)
    target = pool if "layout" in one.factors else drive
    expected = (f"Not supported by the host store1: {words}. A run cannot start.",) if words else ()
    assert preview(document(one), [target]).target_warnings == expected


def test_a_host_that_has_not_reported_yet_has_no_warning() -> None:
    assert preview(document(part(ioengine="libaio")), [a_drive(a_host(capabilities={}))]).target_warnings == ()


@pytest.mark.parametrize(("controller", "warned"), [("", True), ("0000:03:00.0", False)])
def test_settings_of_a_controller_need_one(controller: str, warned: bool) -> None:
    host = a_host("store1", capabilities={})
    known = storage1_inventory().block_devices[0]
    an_inventory(host, block_devices=(msgspec.structs.replace(known, controller=controller),))
    drive = a_drive(host, "drive", device=known.name)
    words = f"store1/drive: {known.name} is not behind a controller, so trials that set Interrupts fail."
    assert preview(document(part(irq_affinity="spread")), [drive]).target_warnings == (words,) * warned
