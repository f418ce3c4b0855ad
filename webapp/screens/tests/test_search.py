"""The box in the bar: hosts, drives, plans, runs, in a fixed number of queries."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse

from webapp.analysis.services import save_comparison
from webapp.imports.reading.limits import Read
from webapp.imports.services import add_found, begin_import
from webapp.results.models import Import
from webapp.runs.models import Note
from webapp.screens.search import ACTION, EXACT, MAX_FOUND, Hit, find
from webapp.tests.factories.hosts import a_drive, a_host, storage1_drive, storage1_scratch
from webapp.tests.factories.imports import PLAIN, an_import
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.runs import first_look_run


@pytest.fixture
def lab(db: None) -> None:
    host = a_host("storage1")
    run = first_look_run(first_look(), [storage1_drive(host)], note="Before the firmware update")
    Note.objects.create(run=run, text="The fan was off")
    save_comparison(title="Engines on storage1", note="", query="x=iodepth", by=a_user("sam"))


def found(words: str) -> list[str]:
    return [hit.title for group in find(words) for hit in group.hits]


def hits(words: str) -> list[Hit]:
    return [hit for group in find(words) for hit in group.hits]


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("storage1", "storage1"),
        ("LAB.example", "storage1"),
        ("s64gne0r800123", "storage1/nvme0"),
        ("mzql2", "storage1/nvme0"),
        ("first l", "First look"),
        ("1", "Run 1"),
        ("run 1", "Run 1"),
        ("firmware", "Run 1"),
        ("fan was", "Run 1"),
        ("nvme0", "Run 1"),
        ("storage1", "Run 1"),
        ("s64gne0r800123", "SAMSUNG MZQL21T9HCJR"),
        ("engines", "Engines on storage1"),
    ],
)
def test_it_finds(lab: None, words: str, title: str) -> None:
    assert title in found(words)


def test_the_size_of_a_directory_is_its_free_space(lab: None) -> None:
    target = storage1_scratch(a_host("storage2"))
    target.size_bytes = 60_000_000_000
    target.save(update_fields=["size_bytes"])
    (hit,) = (hit for group in find("storage2") + find("scratch") for hit in group.hits if hit.title == str(target))
    assert "60.0 GB free" in hit.detail


def test_the_note_of_a_comparison_is_shown_without_markup(db: None) -> None:
    save_comparison(
        title="Engines", note="**After** the `fio` update & before\n\nMore", query="x=iodepth", by=a_user("sam")
    )
    assert [hit.detail for hit in hits("engines")] == ["After the fio update & before"]


def test_it_finds_nothing_in_words_that_mean_something_to_the_database(lab: None) -> None:
    assert found("%") == found("_x_") == found("\\") == []


def test_it_leads_to_what_it_found_and_escapes_what_was_asked(operator: Client, lab: None) -> None:
    assert f'href="{reverse("run", args=[1])}"' in operator.get(reverse("search"), {"q": "firmware"}).content.decode()
    page = operator.get(reverse("search"), {"q": "<script>x"}).content.decode()
    assert "<script>x" not in page
    assert "Nothing found for" in page


def test_it_says_what_can_be_searched_before_anything_is_asked(operator: Client) -> None:
    assert "Enter a host" in operator.get(reverse("search")).content.decode()
    assert operator.get(reverse("search"), {"q": "ab" * 500}).status_code == 200


def test_it_takes_a_fixed_number_of_queries_and_says_where_there_is_more(
    operator: Client, lab: None, queries_of: Callable[[str], int]
) -> None:
    before = queries_of(f"{reverse('search')}?q=storage")
    for number in range(2, MAX_FOUND + 5):
        storage1_drive(a_host(f"storage{number}"))
    assert queries_of(f"{reverse('search')}?q=storage") == before
    assert f"the first {MAX_FOUND}" in operator.get(reverse("search"), {"q": "storage"}).content.decode()


def test_a_drive_that_was_in_two_hosts_is_found_once(lab: None) -> None:
    storage1_drive(a_host("storage2"))
    (drives,) = (group for group in find("s64gne0r800123") if group.title == "Drives")
    assert [hit.title for hit in drives.hits] == ["SAMSUNG MZQL21T9HCJR"]
    assert "storage1/nvme0" in drives.hits[0].detail
    assert "storage2/nvme0" in drives.hits[0].detail


def test_it_finds_imports_with_their_drives_controllers_and_hosts(operator: Client) -> None:
    given = {"drive": "Ultrastar SN650", "serial": "A0673B20", "controller": "MegaRAID 9361-8i", "host": "attic"}
    made = begin_import(title="Drives of 2019", pattern="", given=given, by=None)
    add_found(made, [Read("a.csv", PLAIN)])
    addresses = {hit.title: hit.address for words in ("sn650", "a0673", "9361", "attic") for hit in hits(words)}
    assert addresses == {
        "Ultrastar SN650": "/products/model/Ultrastar%20SN650/",
        "A0673B20": "/products/serial/A0673B20/",
        "MegaRAID 9361-8i": "/products/controller/MegaRAID%209361-8i/",
        "attic": "/results/?host=attic",
    }
    assert {operator.get(address).status_code for address in addresses.values()} == {200}
    assert [(hit.title, hit.address) for hit in hits("of 2019")] == [("Drives of 2019", f"/imports/{made.number}/")]


def test_it_finds_references_and_leads_to_them_from_their_drives(db: None) -> None:
    reference = an_import(title="Published table", drive="MSP7535")
    Import.objects.filter(pk=reference.pk).update(slug="mtron", source="One DVD per second")
    assert [(hit.title, hit.detail) for hit in hits("dvd")] == [("Published table", "reference · One DVD per second")]
    (drive,) = hits("msp7535")
    assert (drive.title, drive.address) == ("MSP7535", f"/imports/{reference.number}/")


def test_a_drive_of_several_imports_is_found_once(db: None) -> None:
    an_import()
    an_import(title="Again", text=PLAIN.replace("10200", "1"))
    assert [hit.detail for hit in hits("pm9a3")] == ["drive model · Again"]


def test_the_palette_gets_the_first_hits_of_each_group(viewer: Client, lab: None) -> None:
    for number in range(2, 10):
        a_host(f"storage{number}")
    hits = viewer.get(reverse("search_hits"), {"q": "storage"}).json()["hits"]
    assert [hit["title"] for hit in hits if hit["group"] == "Hosts"] == [f"storage{number}" for number in range(1, 6)]
    assert viewer.get(reverse("search_hits")).json() == {"hits": []}


def groups_of(client: Client, words: str) -> list[tuple[str, str, str]]:
    hits = client.get(reverse("search_hits"), {"q": words}).json()["hits"]
    return [(hit["group"], hit["title"], hit["address"]) for hit in hits]


def test_the_palette_compares_two_targets(viewer: Client) -> None:
    host = a_host("lab")
    a_drive(host, "loop0")
    a_drive(host, "loop1")
    for words in ("compare loop0 and loop1", "compare lab/loop0 lab/loop1", "Compare loop0, loop1"):
        group, _, address = groups_of(viewer, words)[0]
        assert group == ACTION
        assert address == "/bench/?product=target%3Alab%2Floop0&product=target%3Alab%2Floop1"
    assert not [hit for hit in groups_of(viewer, "compare loop0 and nothing") if hit[2].startswith("/bench/?")]


def test_the_palette_compares_runs_and_drives_of_imports(viewer: Client) -> None:
    version, target = first_look(), storage1_scratch(a_host("storage1"))
    first, second = (first_look_run(version, [target], repeats=1).number for _ in range(2))
    an_import(title="Table", drive="Ultrastar SN650")
    for words in (f"compare run {first} and run {second}", f"compare {first} with {second}"):
        assert groups_of(viewer, words)[0][2] == f"/bench/?product=run%3A{first}&product=run%3A{second}"
    address = groups_of(viewer, f"compare run {first} and SN650")[0][2]
    assert address == f"/bench/?product=run%3A{first}&product=model%3AUltrastar+SN650"
    assert not [hit for hit in groups_of(viewer, f"compare run {first} and run 999") if hit[0] == ACTION]


def test_the_palette_opens_a_run_and_creates_what_the_role_may(viewer: Client, admin: Client) -> None:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))], repeats=1)
    for words in (f"open run {run.number}", f"#{run.number}", str(run.number)):
        assert groups_of(viewer, words)[0][2] == f"/runs/{run.number}/"
    assert (ACTION, "Add host", "/hosts/add/") in groups_of(admin, "add host")
    assert not [hit for hit in groups_of(viewer, "add host") if hit[0] == ACTION]


def test_an_exact_match_is_first(viewer: Client) -> None:
    a_host("db20")
    a_host("db2")
    assert groups_of(viewer, "db2")[0] == (EXACT, "db2", "/hosts/db2/")
    a_drive(a_host("db3", hostname="sdb.db3"), "sda")
    a_drive(a_host("db4"), "sdab")
    assert groups_of(viewer, "sda")[0] == (EXACT, "db3/sda", "/hosts/db3/targets/sda/")
