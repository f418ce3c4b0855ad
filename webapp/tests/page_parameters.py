"""Which parameters a page reads: noted while it answers, listed from its forms, and found in the code."""

import ast
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl

from django.core.handlers import wsgi
from django.http import QueryDict
from django.http import request as requests

ALL = "*"  # a page that goes through all of its parameters
CSRF = "csrfmiddlewaretoken"
_IN_LINKS = re.compile(r"""(?:<(?:input|select|textarea)[^>]*\sname="|[?&](?:amp;)?)([\w.-]+)""")


class Recorded(QueryDict):
    """Notes which parameters a page reads."""

    read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.read.add(str(key))
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().get(key, default)

    def getlist(self, key: str, default: Any = None) -> Any:
        self.read.add(key)
        return super().getlist(key, default)

    def lists(self) -> Any:
        self.read.add(ALL)
        return super().lists()

    def items(self) -> Any:
        self.read.add(ALL)
        return super().items()

    def __iter__(self) -> Any:
        self.read.add(ALL)
        return super().__iter__()


class RecordedForm(Recorded):
    read: set[str] = set()


@contextmanager
def recording() -> Iterator[tuple[set[str], set[str]]]:
    """The names that the page reads from its address, and those from its form."""
    with (
        patch.object(wsgi, "QueryDict", Recorded),
        patch.object(requests, "QueryDict", RecordedForm),
        patch.object(Recorded, "read", set()),
        patch.object(RecordedForm, "read", set()),
    ):
        yield Recorded.read, RecordedForm.read


def names_in_links(html: str) -> set[str]:
    return set(_IN_LINKS.findall(html))


class FormReader(HTMLParser):
    """`forms`: the address of each form that posts -> its fields as a browser would send them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.forms: dict[str, list[tuple[str, str]]] = {}
        self._fields: list[tuple[str, str]] | None = None
        self._select = self._text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag == "form" and values.get("method", "").lower() == "post":
            self._fields = self.forms.setdefault(values.get("action", ""), [])
        if self._fields is None:
            return
        name, is_button = values.get("name", ""), values.get("type") in ("submit", "button", "file")
        if tag == "select":
            self._select = name
        elif tag == "option" and self._select and ("selected" in values or not self._has(self._select)):
            self._fields[:] = [pair for pair in self._fields if pair[0] != self._select]
            self._fields.append((self._select, values.get("value", "")))
        elif tag == "textarea" and name:
            self._text = name
        elif (tag == "input" and name and not is_button) or (tag == "button" and name):
            is_choice = values.get("type") in ("radio", "checkbox")
            if not is_choice or "checked" in values or not self._has(name):
                self._fields.append((name, values.get("value", "on" if is_choice else "")))

    def handle_data(self, data: str) -> None:
        if self._text and self._fields is not None:
            self._fields.append((self._text, data))
            self._text = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._text and self._fields is not None:
            self._fields.append((self._text, ""))
            self._text = ""
        if tag == "select":
            self._select = ""
        if tag == "form":
            self._fields = None

    def _has(self, name: str) -> bool:
        return any(pair[0] == name for pair in self._fields or ())


def forms_of(html: str, path: str) -> dict[str, list[tuple[str, str]]]:
    """The forms of a page at `path`; a form without an address posts to its page."""
    return {
        (action or path).partition("?")[0]: [pair for pair in fields if pair[0] != CSRF]
        for action, fields in FormReader(html).forms.items()
    }


def names_in_code(place: Path, kind: str) -> dict[str, str]:
    """Each literal name that a view reads from `request.GET` or `request.POST` (`kind`), with the file that does."""
    names: dict[str, str] = {}
    for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
        if "tests" not in path.parts:
            tree = ast.parse(path.read_text())
            names |= {name: path.name for node in ast.walk(tree) for name in _read_names(node, kind)}
    return names


def _read_names(node: ast.AST, kind: str) -> Iterator[str]:
    match node:
        case ast.Call(
            func=ast.Attribute(value=source, attr="get" | "getlist"), args=[ast.Constant(value=str(name)), *_]
        ):
            pass
        case ast.Subscript(value=source, slice=ast.Constant(value=str(name))):
            pass
        case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In()], comparators=[source]):
            pass
        case _:
            return
    if isinstance(source, ast.Attribute) and source.attr == kind:
        yield name


def without(query: str, name: str) -> list[tuple[str, str]]:
    return [pair for pair in parse_qsl(query, keep_blank_values=True) if pair[0] != name]
