"""Messages with an Undo button, which is a form and needs no script."""

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString


def with_undo(request: HttpRequest, words: str, undo: str, *, back: str = "") -> SafeString:
    """`undo` is the address of the opposite action; `back` goes with its form."""
    return render_to_string("screens/messages/undo.html", {"words": words, "undo": undo, "back": back}, request)
