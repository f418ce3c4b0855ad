"""The menu: which section a page belongs to."""

import pytest

from webapp.screens.templatetags.navigation import PERSONAL, SECTIONS


@pytest.mark.parametrize(
    ("page", "section"),
    [
        ("overview", "Overview"), ("bench", "Bench"), ("product", "Bench"), ("host_target", "Hosts"),
        ("plan_import", "Plans"), ("queue", "Queue"), ("schedule", "Schedules"), ("trial", "Runs"), ("run", "Runs"),
        ("acceptance", "Trends"), ("baseline", "Trends"), ("results", "Results"), ("import", "Imports"),
        ("comparisons", "Explore"), ("explore", "Explore"), ("notice_settings", "Notices"), ("person", "People"),
        ("audit", "Audit log"),
    ],
)  # fmt: skip
def test_a_page_is_in_one_section(page: str, section: str) -> None:
    every = [*SECTIONS, *(one for own in PERSONAL.values() for one in own)]
    assert [one.label for one in every if one.has(page)] == [section]
