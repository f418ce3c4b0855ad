"""The navigation: which section and tab a page belongs to."""

import pytest
from django.test import Client
from django.urls import NoReverseMatch, reverse

from webapp.screens.templatetags.navigation import PERSONAL, SECTIONS


@pytest.mark.parametrize(
    ("page", "tab"),
    [
        ("overview", "Overview"), ("bench", "Bench"), ("product", "Bench"), ("rankings", "Rankings"),
        ("host_target", "Hosts"), ("plan_import", "Plans"), ("queue", "Queue"), ("schedule", "Schedules"),
        ("trial", "Runs"), ("run", "Runs"), ("acceptance", "Trends"), ("baseline", "Trends"), ("results", "Results"),
        ("import", "Imports"), ("references", "References"), ("saved_comparisons", "Explore"), ("explore", "Explore"),
        ("notice_settings", "Notices"), ("person", "People"), ("audit", "Audit log"),
    ],
)  # fmt: skip
def test_a_page_is_in_one_tab(page: str, tab: str) -> None:
    tabs = [tab for section in SECTIONS for tab in section.tabs] + [tab for tabs in PERSONAL.values() for tab in tabs]
    assert [each.label for each in tabs if each.has(page)] == [tab]


def test_there_are_six_sections() -> None:
    assert [section.label for section in SECTIONS] == ["Overview", "Compare", "Runs", "Plans", "Hosts", "Data"]


def tabs_of(person: Client, page: str) -> str:
    return person.get(reverse(page)).content.decode().split('aria-label="Pages of this section"')[1].split("</nav>")[0]


def test_a_list_shows_the_tabs_of_its_section(viewer: Client) -> None:
    tabs = tabs_of(viewer, "queue")
    assert 'href="/queue/" aria-current="page"' in tabs
    assert [address in tabs for address in ("/runs/", "/schedules/", "/plans/")] == [True, True, False]
    assert "Pages of this section" not in viewer.get(reverse("plans")).content.decode()


def test_a_page_that_does_not_exist_has_no_tab(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_queue(page: str) -> str:
        if page == "queue":
            raise NoReverseMatch
        return reverse(page)

    monkeypatch.setattr("webapp.screens.templatetags.navigation.reverse", without_queue)
    assert 'href="/queue/"' not in tabs_of(viewer, "runs")
