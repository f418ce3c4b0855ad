"""The sections of the navigation, their tabs, and which of them a page belongs to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import template
from django.urls import NoReverseMatch, reverse

register = template.Library()


@dataclass(frozen=True)
class Tab:
    """`lists` and `pages` are names of addresses, `words` parts of names; `without` is a word that excludes one."""

    page: str  # its first page
    label: str
    lists: frozenset[str] = frozenset()  # further pages with the tabs
    pages: frozenset[str] = frozenset()  # pages of single objects, without the tabs
    words: tuple[str, ...] = ()
    without: str = "\0"

    def has(self, page: str) -> bool:
        named = page == self.page or page in self.lists or page in self.pages
        return named or (any(word in page for word in self.words) and self.without not in page)

    @property
    def address(self) -> str:
        """The address of its first page; "" if this installation does not have the page."""
        try:
            return reverse(self.page)
        except NoReverseMatch:
            return ""


@dataclass(frozen=True)
class Section:
    """`icon` is an SVG path in a box of 24 by 24, drawn as a line. A section of one tab shows no tabs."""

    label: str
    icon: str
    tabs: tuple[Tab, ...]


@dataclass(frozen=True)
class Link:
    address: str
    label: str
    is_current: bool
    icon: str = ""


SECTIONS = (
    Section("Overview", "M4 4h6v9H4zM14 4h6v5h-6zM14 13h6v7h-6zM4 17h6v3H4z", (Tab("overview", "Overview"),)),
    Section(
        "Compare",
        "M4 6h10M4 12h16M4 18h7",
        (
            Tab("bench", "Bench", pages=frozenset({"product"})),
            Tab("rankings", "Rankings", words=("ranking",)),
            Tab("explore", "Explore", lists=frozenset({"saved_comparisons"}), words=("compar",)),
            Tab("trends", "Trends", frozenset({"acceptance"}), frozenset({"baseline"})),
        ),
    ),
    Section(
        "Runs",
        "M7 4v16l13-8z",
        (
            Tab("runs", "Runs", pages=frozenset({"trial"}), words=("run",)),
            Tab("queue", "Queue"),
            Tab("schedules", "Schedules", frozenset({"schedule_calendar"}), words=("schedule",)),
        ),
    ),
    Section("Plans", "M5 6h14M5 12h14M5 18h9", (Tab("plans", "Plans", words=("plan",)),)),
    Section("Hosts", "M4 5h16v6H4zM4 14h16v6H4zM7 8h.01M7 17h.01", (Tab("hosts", "Hosts", words=("host",)),)),
    Section(
        "Data",
        "M4 6c0 4 16 4 16 0s-16-4-16 0v12c0 4 16 4 16 0V6M4 12c0 4 16 4 16 0",
        (
            Tab("results", "Results"),
            Tab("imports", "Imports", words=("import",), without="plan"),
            Tab("references", "References"),
        ),
    ),
)
PERSONAL = {
    "viewer": (Tab("account", "Account"), Tab("notices", "Notices", words=("notice",))),
    "administrator": (Tab("people", "People", pages=frozenset({"person"})), Tab("storage", "Storage")),
    "operator": (Tab("audit", "Audit log"),),
}


@register.simple_tag(takes_context=True)
def sections(context: Mapping[str, Any]) -> list[Link]:
    """The six sections; each leads to its first tab."""
    page = _page(context)
    return [
        Link(section.tabs[0].address, section.label, any(tab.has(page) for tab in section.tabs), section.icon)
        for section in SECTIONS
    ]


@register.simple_tag(takes_context=True)
def tabs(context: Mapping[str, Any]) -> list[Link]:
    """The tabs of the page's section; none on pages of single objects and in sections of one tab."""
    page = _page(context)
    for section in SECTIONS:
        if len(section.tabs) > 1 and any(page == tab.page or page in tab.lists for tab in section.tabs):
            return _links(section.tabs, page)
    return []


@register.simple_tag
def every_page() -> list[Link]:
    """All tabs of all sections, for the command palette."""
    return _links([tab for section in SECTIONS for tab in section.tabs], page="")


@register.simple_tag(takes_context=True)
def personal_pages(context: Mapping[str, Any]) -> list[Link]:
    """Those of the user's menu that their role opens."""
    user = context["request"].user
    roles = {"viewer": True, "administrator": user.is_administrator, "operator": user.is_operator}
    return _links([tab for role, tabs in PERSONAL.items() if roles[role] for tab in tabs], _page(context))


@register.simple_tag(takes_context=True)
def searched(context: Mapping[str, Any]) -> str:
    """The text that the page Search searched for; else ""."""
    return str(context["request"].GET.get("q", "")) if _page(context) == "search" else ""


def _page(context: Mapping[str, Any]) -> str:
    match = context["request"].resolver_match
    return (match.url_name or "") if match else ""


def _links(tabs: Iterable[Tab], page: str) -> list[Link]:
    return [Link(tab.address, tab.label, tab.has(page)) for tab in tabs if tab.address]
