"""Saved comparisons: the list, and what can be done with each."""

from collections.abc import Callable, Iterator, Mapping
from urllib.parse import parse_qsl, urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString

from webapp.analysis.dimensions import dimension
from webapp.analysis.models import SavedComparison
from webapp.analysis.question import KEYS, Pairs, split
from webapp.analysis.services import (
    change_comparison,
    copy_comparison,
    delete_comparison,
    may_change,
    plain_query,
    restore_comparison,
    save_comparison,
)
from webapp.bench.saved import checked_query, is_bench, products_in_words
from webapp.core.errors import Refusal
from webapp.core.models import User
from webapp.imports.selectors import import_titles
from webapp.results.reading.filter import FACTOR_PREFIX, is_on, read_filter
from webapp.screens.access import operator_action, page, person

# The filters of a comparison in words, for pages without a filter form.

MAX_TITLES = 5  # in one list of imports
_SWITCHES = {"invalid": "invalid results included", "reference": "references included"}


def filters_in_words(pairs: Pairs, titles: Mapping[int, str]) -> str:
    """`Run 17, 18 · Import 3 “Old tests” · Block size 4k · references included`, or "none". `titles`: of imports."""
    return " · ".join(_words(pairs, titles)) or "none"


def _words(pairs: Pairs, titles: Mapping[int, str]) -> Iterator[str]:
    given: dict[str, list[str]] = {}
    for key, text in split(pairs)[0]:
        if key not in KEYS and text:
            given.setdefault(key, []).append(text)
    for key, texts in given.items():
        if key == "import":
            yield f"Import {_imports(texts, titles)}"
        elif key not in _SWITCHES:
            yield f"{_label(key.removeprefix(FACTOR_PREFIX))} {', '.join(texts)}"
        elif is_on(given, key):
            yield _SWITCHES[key]


def _imports(texts: list[str], titles: Mapping[int, str]) -> str:
    """Numbers with titles; only the texts for many imports, and if they cannot be read."""
    try:
        numbers = read_filter([("import", text) for text in texts]).imports
    except Refusal:
        numbers = ()
    if not 0 < len(numbers) <= MAX_TITLES:
        return ", ".join(texts)
    return ", ".join(f"{number} “{titles[number]}”" if number in titles else str(number) for number in numbers)


def _label(name: str) -> str:
    known = dimension(name)
    return known.label if known else name.capitalize()


SHOWN = {"own": "Own", "all": "Everybody's", "deleted": "Deleted"}


@page
def saved_list(request: HttpRequest) -> HttpResponse:
    shown = request.GET.get("show", "all")
    shown = shown if shown in SHOWN else "all"
    comparisons = SavedComparison.objects.select_related("owner").filter(deleted_at__isnull=shown != "deleted")
    if shown == "own":
        comparisons = comparisons.filter(owner=person(request))
    titles = import_titles()
    rows = [(saved, _compared(saved.query, titles), may_change(saved, person(request))) for saved in comparisons]
    return render(request, "screens/saved_comparisons.html", {"rows": rows, "shown": shown, "choices": SHOWN})


def _compared(query: str, titles: Mapping[int, str]) -> str:
    """The products of Bench, or the filters of Explore, in words. `titles`: of imports."""
    return products_in_words(query, titles) if is_bench(query) else filters_in_words(parse_qsl(query), titles)


@page
def saved_page(request: HttpRequest, pk: int) -> HttpResponse:  # noqa: ARG001 - every page gets its request
    """The permalink. Explore and Bench drop choices that are not there any more."""
    return redirect(_address(get_object_or_404(SavedComparison, pk=pk)))


def _address(saved: SavedComparison) -> str:
    return f"{_page_of(saved.query)}?{urlencode([*parse_qsl(saved.query), ('saved', str(saved.pk))])}"


def _page_of(query: str) -> str:
    return reverse("bench" if is_bench(query) else "explore")


def opened(text: str, pairs: Pairs, user: User) -> dict[str, object]:
    """What the page of a comparison says of the saved one that it came from."""
    saved = (
        SavedComparison.objects.select_related("owner").filter(pk=int(text)).first()
        if text.isascii() and text.isdigit()
        else None
    )
    query = plain_query(pairs)
    if saved is None:
        return {"query": query}
    return {"query": query, "saved": saved, "changed": query != saved.query, "own": may_change(saved, user)}


@operator_action
def save_action(request: HttpRequest) -> HttpResponse:
    try:
        saved = save_comparison(
            title=_given(request, "title"), note=_given(request, "note"), query=_given(request, "query"),
            by=person(request), check=checked_query,
        )  # fmt: skip
    except Refusal as refusal:
        messages.error(request, str(refusal))
        return redirect(f"{_page_of(_given(request, 'query'))}?{_given(request, 'query')}")
    messages.success(request, f"Saved as “{saved.title}”. You can send its address to anybody who may log in here.")
    return redirect(_address(saved))


def _given(request: HttpRequest, name: str) -> str:
    return str(request.POST.get(name, ""))


@operator_action
def change_action(request: HttpRequest, pk: int) -> HttpResponse:
    saved = get_object_or_404(SavedComparison, pk=pk)
    try:
        change_comparison(
            saved=saved, title=_given(request, "title"), note=_given(request, "note"), query=_given(request, "query"),
            by=person(request), check=checked_query,
        )  # fmt: skip
        messages.success(request, f"{saved.title} is saved with the current selection.")
    except Refusal as refusal:
        messages.error(request, str(refusal))
    return redirect(_address(saved))


@operator_action
def copy_action(request: HttpRequest, pk: int) -> HttpResponse:
    copy = copy_comparison(saved=get_object_or_404(SavedComparison, pk=pk), by=person(request))
    messages.success(request, f"{copy.title} is a copy that belongs to you.")
    return redirect(_address(copy))


@operator_action
def delete_action(request: HttpRequest, pk: int) -> HttpResponse:
    return _there_or_not(request, pk, delete_comparison, _with_undo, "was deleted before")


@operator_action
def restore_action(request: HttpRequest, pk: int) -> HttpResponse:
    return _there_or_not(request, pk, restore_comparison, lambda _, saved: f"{saved.title} is back.", "is not deleted")


def _there_or_not(
    request: HttpRequest,
    pk: int,
    act: Callable[..., bool],
    message: Callable[[HttpRequest, SavedComparison], str],
    nothing: str,
) -> HttpResponse:
    saved = get_object_or_404(SavedComparison, pk=pk)
    try:
        if act(saved=saved, by=person(request)):
            messages.success(request, message(request, saved))
        else:
            messages.info(request, f"{saved.title} {nothing}.")
    except Refusal as refusal:
        messages.error(request, str(refusal))
    return redirect("saved_comparisons")


def _with_undo(request: HttpRequest, saved: SavedComparison) -> SafeString:
    context = {"title": saved.title, "restore": reverse("restore_comparison", kwargs={"pk": saved.pk})}
    return render_to_string("screens/messages/comparison_deleted.html", context, request)
