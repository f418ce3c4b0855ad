"""The sections of the menu, and which of them a page belongs to."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import template
from django.urls import reverse

register = template.Library()


@dataclass(frozen=True)
class Section:
    """`pages` are names of addresses, `words` parts of such names; `without` is a word that excludes one."""

    page: str  # its first page
    label: str
    pages: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    without: str = "\0"

    def has(self, page: str) -> bool:
        named = page == self.page or page in self.pages
        return named or (any(word in page for word in self.words) and self.without not in page)


@dataclass(frozen=True)
class ShownSection:
    address: str
    label: str
    is_current: bool


BENCH = Section("bench", "Bench", frozenset({"product"}))
SECTIONS = (
    Section("overview", "Overview"),
    BENCH,
    Section("hosts", "Hosts", words=("host",)),
    Section("plans", "Plans", words=("plan",)),
    Section("queue", "Queue"),
    Section("schedules", "Schedules", words=("schedule",)),
    Section("runs", "Runs", frozenset({"trial"}), words=("run",)),
    Section("trends", "Trends", frozenset({"baseline", "acceptance"})),
    Section("results", "Results"),
    Section("imports", "Imports", words=("import",), without="plan"),
    Section("explore", "Explore", words=("compar",)),
)
PERSONAL = {
    "viewer": (Section("account", "Account"), Section("notices", "Notices", words=("notice",))),
    "administrator": (Section("people", "People", frozenset({"person"})),),
    "operator": (Section("audit", "Audit log"),),
}


@register.simple_tag(takes_context=True)
def sections(context: Mapping[str, Any]) -> list[ShownSection]:
    """Those of the menu. Saved comparisons of Bench (`of_bench`) have addresses of Explore."""
    page, of_bench = _page(context), bool(context.get("of_bench"))
    return [_shown(one, is_current=one is BENCH if of_bench else one.has(page)) for one in SECTIONS]


@register.simple_tag(takes_context=True)
def personal_sections(context: Mapping[str, Any]) -> list[ShownSection]:
    """Those of the person's menu that their role opens."""
    user, page = context["request"].user, _page(context)
    roles = {"viewer": True, "administrator": user.is_administrator, "operator": user.is_operator}
    return [_shown(one, is_current=one.has(page)) for role, own in PERSONAL.items() if roles[role] for one in own]


@register.simple_tag(takes_context=True)
def searched(context: Mapping[str, Any]) -> str:
    """The text that the page Search searched for; else ""."""
    return str(context["request"].GET.get("q", "")) if _page(context) == "search" else ""


def _page(context: Mapping[str, Any]) -> str:
    match = context["request"].resolver_match
    return (match.url_name or "") if match else ""


def _shown(section: Section, *, is_current: bool) -> ShownSection:
    return ShownSection(reverse(section.page), section.label, is_current)
