"""Ceilings that people enter: on pages, in charts of bandwidth, and in what the tables of an import show."""

from collections.abc import Iterable

import pytest
from django.test import Client

from webapp.analysis.import_findings import due
from webapp.analysis.known_ceilings import MOST_OF_OWNER, PUBLISHED, known_ceilings
from webapp.analysis.models import EnteredCeiling
from webapp.core.models import AuditEntry
from webapp.hosts.inventory.ceilings import Bound
from webapp.hosts.inventory.links import read_link
from webapp.imports.references.reading import load_references
from webapp.imports.selectors import results_of
from webapp.results.models import Import
from webapp.results.reading.rows import read_rows
from webapp.screens.explore.import_findings import sections_of

pytestmark = pytest.mark.django_db
ARECA = "Areca ARC-1680IX-12"


@pytest.fixture
def table() -> Import:
    load_references()
    return Import.objects.get(slug="mtron-raid0-12")


def enter(client: Client, table: Import, text: str, owner: str = "", **other: str) -> str:
    back = f"/imports/{table.number}/"
    given = {"owner": owner or f"import {table.number}", "text": text, "back": back} | other
    answer = client.post("/ceilings/", given, follow=True)
    assert answer.redirect_chain[-1][0] == back
    return answer.content.decode()


def matched(table: Import) -> set[str]:
    return {
        match.name for section in sections_of(table) for finding in section.findings for match in finding.matches
    }  # fmt: skip


def test_the_limit_of_a_published_table_matches_the_link_of_its_controller(table: Import) -> None:
    assert matched(table) == {"PCIe 1.0 x8"}


def test_an_entered_ceiling_replaces_the_published_one_and_can_be_removed(operator: Client, table: Import) -> None:
    enter(operator, table, " pcie 2.0  x4", f"controller {ARECA}")
    enter(operator, table, "Backplane: 1.8 GB/s")
    assert matched(table) == {"PCIe 2.0 x4", "Backplane"}
    enter(operator, table, "pcie 2.0 x4", f"controller {ARECA}", remove="1")
    assert matched(table) == {"PCIe 1.0 x8", "Backplane"}
    actions = AuditEntry.objects.filter(action__startswith="ceiling.").order_by("at").values_list("action", flat=True)
    assert list(actions) == ["ceiling.enter", "ceiling.enter", "ceiling.remove"]


def test_what_the_table_shows_is_made_again(operator: Client, table: Import) -> None:
    seals = {imported.number: seal for imported, seal in due()}
    enter(operator, table, "SATA 3G")
    assert {imported.number: seal for imported, seal in due()}[table.number] != seals[table.number]


def test_a_chart_of_bandwidth_draws_it_as_a_band(operator: Client, table: Import) -> None:
    enter(operator, table, "Backplane: 1.8 GB/s")
    lows = {bound.target: bound.realistic.low_bytes_per_s for bound in bounds(table) if bound.realistic}
    expected = {f"Backplane of import {table.number}": 0.95 * 1.8e9, f"PCIe 1.0 x8 of {ARECA}": 1.6e9}
    assert lows == pytest.approx(expected)
    query = f"{sections_of(table)[0].query}&metric=bytes_per_s&ceilings=on"
    assert (
        f"PCIe 1.0 x8 of {ARECA}: 2.00 GB/s at most" in operator.get(f"/explore/?{query}", follow=True).content.decode()
    )


def bounds(table: Import) -> Iterable[Bound]:
    return known_ceilings(read_rows(results_of(table))).bounds


@pytest.mark.parametrize(
    ("owner", "text"), [("", "fast"), ("", "PCIe 9 x4"), ("drive x", "SATA 6G"), ("host ", "SATA 6G")]
)
def test_what_is_no_ceiling_is_refused(operator: Client, table: Import, owner: str, text: str) -> None:
    enter(operator, table, text, owner)
    assert not EnteredCeiling.objects.exists()


def test_an_owner_has_few(operator: Client, table: Import) -> None:
    for lanes in range(1, MOST_OF_OWNER + 3):
        enter(operator, table, f"PCIe 3.0 x{lanes}")
    assert EnteredCeiling.objects.count() == MOST_OF_OWNER


def test_it_leads_to_no_other_site(operator: Client, table: Import) -> None:
    given = {"owner": f"import {table.number}", "text": "SATA 6G", "back": "https://example.org/"}
    assert operator.post("/ceilings/", given).headers["Location"] == "/imports/"


def test_published_links_can_be_read() -> None:
    assert all(read_link(text).bytes_per_s for text in PUBLISHED.values())
