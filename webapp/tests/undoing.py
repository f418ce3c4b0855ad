"""Presses the Undo button of a message."""

import re
from html import unescape
from urllib.parse import urlencode

from django.test import Client

_FORM = re.compile(r'<form method="post" action="([^"]+)"(?:(?!</form>).)*>Undo</button></form>', re.DOTALL)
_FIELD = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


def undo(client: Client, page: str) -> str:
    """The page after it."""
    form = _FORM.search(page)
    assert form, "The page has no Undo button."
    given = [(unescape(name), unescape(value)) for name, value in _FIELD.findall(form[0])]
    body, kind = urlencode(given), "application/x-www-form-urlencoded"
    answer = client.post(unescape(form[1]), body, content_type=kind, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()
