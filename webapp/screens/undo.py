"""Messages with an Undo button, which is a form and needs no script."""

from collections.abc import Iterable

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString


def with_undo(
    request: HttpRequest, words: str, undo: str, *, back: str = "", given: Iterable[tuple[str, str]] = ()
) -> SafeString:
    """`undo` is the address of the opposite action; `back` and the fields of `given`, the old values, go with its
    form."""
    context = {"words": words, "undo": undo, "back": back, "given": list(given)}
    return render_to_string("screens/messages/undo.html", context, request)
