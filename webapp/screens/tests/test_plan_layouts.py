"""What people see of layouts before a start: drives, alignment, commands, and each serial to be typed."""

import pytest
from django.test import Client

from webapp.hosts.models import Target
from webapp.plans.document import Part, PartStream, PlanDocument, export_plan
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_host, storage1_drive, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.runs import first_look_run

DOCUMENT = PlanDocument(
    title="Stripes",
    common={"size": "1G", "runtime": "3s", "pattern": "randread", "layout": "raid0 x2 chunk 64k / xfs noatime, single"},
    parts=(Part(name="main", factors={}),),
)


@pytest.fixture
def pool(db: None) -> Target:
    first_look(DOCUMENT, slug="stripes")
    host = a_host("storage1")
    host.capabilities["layouts"] = ["md", "xfs"]
    host.save()
    for n in range(3):
        storage1_drive(host, f"d{n}", path=f"/dev/sd{'bcd'[n]}", stable_id=f"wwn-{n}", serial=f"SERIAL{n}")
    facts = {"kind": "pool", "path": "/dev", "stable_id": "pool:rack:1", "destroy": True, "drives": ["d0", "d1", "d2"]}
    return storage1_scratch(host, "rack", **facts)


def test_it_shows_every_layout_with_alignment_and_commands(operator: Client, pool: Target) -> None:
    page = operator.get(f"/plans/stripes/?target={pool.id}").content.decode()
    assert "2 layouts, built" in page
    assert "data stripe width 128 KiB" in page
    assert "mkfs.xfs -q -f -K -L ss-KEY -d su=65536,sw=2 /dev/md/sweetspot-KEY-0" in page
    assert "--raid-devices 2 --chunk 64K --data-offset=1024K /dev/sdb /dev/sdc" in page
    assert "umount /var/lib/sweetspot-worker/layouts/KEY" in page
    assert "filename=/dev/sdb" in page
    assert "filename=sweetspot." in page


def test_an_imported_plan_with_layouts_is_previewed_on_a_pool(operator: Client, pool: Target) -> None:
    storage1_scratch(pool.host)
    data = {"kind": "yaml", "text": export_plan(DOCUMENT)}
    page = operator.post("/plans/import/", data, follow=True).content.decode()
    assert f'value="{pool.id}" data-preview checked' in page
    assert "No part of this plan runs on the chosen targets" not in page


def test_it_shows_the_order_of_taking_down_purging_and_building(operator: Client, pool: Target) -> None:
    offers = [{"method": "discard", "problem": ""}]
    pool.host.targets.filter(kind="block").update(purges=offers, model="ACME 1")
    pool.host.targets.filter(slug="d1").update(model="OTHER 2")
    purged = PlanDocument(
        title="Purged", common=DOCUMENT.common | {"purge": "discard"}, parts=(Part(name="main", factors={}),)
    )
    first_look(purged, slug="purged")
    page = " ".join(operator.get(f"/plans/purged/?target={pool.id}").content.decode().split())
    assert "Before <strong>each</strong> of its trials: the existing layout is removed, then" in page
    assert "purged by <code>discard</code> one after another, then the layout is built again" in page
    assert "of different models: ACME 1, OTHER 2" in page


def test_it_asks_for_the_serial_of_every_drive_that_is_taken(operator: Client, pool: Target) -> None:
    page = operator.get(f"/plans/stripes/?target={pool.id}").content.decode()
    assert "type its serial: <code>SERIAL0</code>" in page
    assert "type its serial: <code>SERIAL1</code>" in page
    assert "SERIAL2" not in page
    data = {"version": "1", "target": str(pool.id), "serial": ["SERIAL0"]}
    operator.post("/plans/stripes/start/", data)
    assert not Run.objects.exists()
    operator.post("/plans/stripes/start/", data | {"serial": ["SERIAL0", "SERIAL1"]})
    assert Run.objects.get().armed_serials == ["SERIAL0", "SERIAL1"]


def test_it_shows_the_layout_of_each_stream_on_its_own_pool(operator: Client, pool: Target) -> None:
    """The second pool has one drive, too few for the first layout."""
    Target.objects.filter(pk=pool.pk).update(drives=["d0", "d1"])
    shelf = storage1_scratch(
        pool.host, "shelf", kind="pool", path="/dev", stable_id="pool:shelf:1", destroy=True, drives=["d2"]
    )
    streams = (
        PartStream(name="wide", factors={"layout": "raid0 x2 chunk 64k / xfs"}),
        PartStream(name="narrow", factors={"layout": "single / xfs"}),
    )
    factors = {"streams": "alone, together", "streams_on": "each"}
    common = {name: text for name, text in DOCUMENT.common.items() if name != "layout"}
    both = PlanDocument(title="Both", common=common, parts=(Part(name="main", factors=factors, streams=streams),))
    first_look(both, slug="both")
    page = operator.get(f"/plans/both/?target={pool.id}&target={shelf.id}").content.decode()
    assert "2 layouts, built" in page
    assert "--raid-devices 2 --chunk 64K --data-offset=1024K /dev/sdb /dev/sdc" in page
    assert "mkfs.xfs -q -f -K -L ss-KEY /dev/sdd" in page
    assert all(f"type its serial: <code>SERIAL{n}</code>" in page for n in range(3))
    found = operator.get("/api/v1/plans/both/preview?target=storage1/rack&target=storage1/shelf").json()
    assert (found["problems"], found["arm"]) == ([], ["SERIAL0", "SERIAL1", "SERIAL2"])
    edited = operator.get("/plans/both/edit/").content.decode()
    assert "narrow: layout=single / xfs" in edited


def test_the_hosts_page_names_the_drives_of_a_pool(viewer: Client, pool: Target) -> None:
    page = viewer.get("/hosts/storage1/").content.decode()
    assert "d0, d1, d2" in page
    assert "build layouts" in page


def test_the_interface_gives_the_same(operator: Client, pool: Target) -> None:
    found = operator.get("/api/v1/plans/stripes/preview?target=storage1/rack").json()
    assert found["arm"] == ["SERIAL0", "SERIAL1"]
    drives = sorted(layout["drives"] for layout in found["layouts"])
    assert drives == [["storage1/d0"], ["storage1/d0", "storage1/d1"]]
    assert {layer["verdict"] for layout in found["layouts"] for layer in layout["alignment"]} == {"aligned"}


def test_it_shows_the_commands_of_a_controller_and_that_none_was_tried(operator: Client, db: None) -> None:
    line = "2 arrays of vd raid5 x3 strip 64k wb / lvm stripe 128k / xfs"
    document = PlanDocument(
        title="Volumes", common=DOCUMENT.common | {"layout": line}, parts=(Part(name="main", factors={}),)
    )
    version = first_look(document, slug="volumes")
    host = a_host("storage1")
    host.capabilities["layouts"] = ["vd", "lvm", "xfs"]
    host.save()
    names = [f"s{n}" for n in range(6)]
    for n, name in enumerate(names):
        place = {"path": f"/0000:03:00.0/252:{n}", "opens": f"/storcli/0/252:{n}", "stable_id": f"slot:SER{n}"}
        storage1_drive(host, name, kind="slot", serial=f"SER{n}", **place)
    facts = {"kind": "pool", "path": "/dev", "stable_id": "pool:shelf:1", "destroy": True, "drives": names}
    pool = storage1_scratch(host, "shelf", **facts)
    page = operator.get(f"/plans/volumes/?target={pool.id}").content.decode()
    assert "Not tested on real hardware" in page
    assert "storcli /c0 add vd type=raid5 name=ss-KEY-1 drives=252:3,252:4,252:5 wb strip=64 J nolog" in page
    assert "storcli /c0/vN del J nolog" in page
    assert "type its serial: <code>SER5</code>" in page
    (layout,) = operator.get("/api/v1/plans/volumes/preview?target=storage1/shelf").json()["layouts"]
    assert (layout["by_controller"], layout["width_bytes"]) == (True, 256 * 1024)
    untried = "virtual drives were tested only with emulated storcli and MegaCli"
    assert untried in page
    run = first_look_run(version, [pool])
    pages = (f"/runs/{run.number}/", f"/runs/{run.number}/trials/1/")
    for layout_line, said in ((line, True), ("raid0 x2 chunk 64k / xfs", False)):
        run.trials.update(point=run.trials.all()[0].point | {"layout": layout_line})
        assert [untried in operator.get(address).content.decode() for address in pages] == [said, said]
    host_page = operator.get("/hosts/storage1/").content.decode()
    assert "build virtual drives" in host_page
    assert f'value="{host.targets.get(slug="s0").pk}"' not in page
